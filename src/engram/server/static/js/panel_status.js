// Where the search stands: counts, advice, what is left, whether the memory fits.

import { get } from "./api.js";
import { findsChart, leftChart } from "./chart.js";
import { h, show } from "./dom.js";
import { panel, wordsOf } from "./forms.js";
import { number, t } from "./strings.js";

export function statusPanel(planner) {
  const { whole, body } = panel("status", t("status"), true);
  const counts = h("dl", { class: "counts" });
  const words = h("div", { class: "advice" }, h("p", {}, t("computing")));
  const curves = h("div", { class: "charts" });
  body.append(counts, words, curves);

  const fact = (name, value) => h("div", {}, h("dt", {}, t(name)), h("dd", {}, value));

  function count(cells) {
    const found = cells.measured.filter((m) => m.outcome > 0).length;
    show(counts,
      fact("told", number(cells.measured.length)),
      fact("found", number(found)),
      fact("out", number(cells.out.length)),
      fact("budgetLeft", `${number(cells.budget_left)} / ${number(cells.budget)}`));
  }

  async function advise() {
    const status = await get(`/campaigns/${planner.where}/status`);
    const left = status.remaining;
    show(words,
      h("p", { class: status.advice.stop ? "stop" : "go" }, status.advice.words),
      h("p", {}, t("leftWords", {
        expected: number(left.expected), low: number(left.low), high: number(left.high),
        level: number(100 * left.level), chance: number(Math.floor(1000 * status.chance_remaining) / 10),
      })),
      status.targets && h("p", { class: "targets" }, h("strong", {}, t("targets")), " ", status.targets.words),
      status.detection && h("p", { class: "missed" }, h("strong", {}, t("missing")), " ", status.detection.words),
      (status.layers ?? []).map((effect) => h("p", { class: "effect" }, effect.words)),
      h("p", {}, h("strong", {}, t("fitness")), " ", status.prior_fitness.words));
  }

  async function draw() {
    const found = await get(`/campaigns/${planner.where}/curves`);
    const figure = (name, picture) => picture && h("figure", {}, h("figcaption", {}, t(name)), picture);
    show(curves, figure("findsTitle", findsChart(found)), figure("leftTitle", leftChart(found)));
  }

  return {
    whole,
    count,
    async refresh() {
      try {
        await advise();
        await draw();
      } catch (error) {
        show(words, h("p", {}, wordsOf(error)));
      }
    },
  };
}
