// Handing out cells: how many to which crew, suggestions beforehand, who has what.

import { get, post } from "./api.js";
import { css } from "./colours.js";
import { h, newKey, say, show } from "./dom.js";
import { action, field, form, input, panel } from "./forms.js";
import { cellName, number, t } from "./strings.js";

export function handOutPanel(planner) {
  const { whole, body } = panel("hand-out", t("handOut"), true);
  const names = h("datalist", { id: "crew-names" });
  const lines = h("div", { class: "crew-lines" });
  const out = h("div", { class: "out" });

  function line(name = "", n = 3) {
    const who = input({ list: "crew-names", value: name, maxlength: "200", name: "crew", "aria-label": t("crewName"), placeholder: t("crewName"), required: true });
    const many = input({ type: "number", min: "1", max: "1000", value: String(n), name: "n", "aria-label": t("howMany"), required: true });
    const away = h("button", { type: "button", class: "quiet", "aria-label": t("removeLine") }, "×");
    const row = h("div", { class: "crew-line" }, who, many, away);
    away.addEventListener("click", () => lines.children.length > 1 && row.remove());
    return row;
  }

  async function ask() {
    const wishes = [...lines.children].map((row) => ({
      by: row.querySelector("[name=crew]").value.trim(),
      n: Number(row.querySelector("[name=n]").value),
    }));
    let given = 0;
    for (const wish of wishes) {
      const answer = await post(`/campaigns/${planner.where}/ask`, { ...wish, key: newKey() });
      given += answer.queries.length;
      if (answer.note) say(answer.note);
    }
    planner.suggest([]);
    await planner.refresh();
    return t("handedOut", { n: number(given) });
  }

  async function peek() {
    const first = lines.firstElementChild;
    const n = Number(first.querySelector("[name=n]").value) || 3;
    const by = first.querySelector("[name=crew]").value.trim();
    const { suggestions } = await get(`/campaigns/${planner.where}/peek?n=${n}&by=${encodeURIComponent(by)}`);
    planner.suggest(suggestions.map((one) => one.cell));
    say(t("suggested", { cells: suggestions.map((one) => cellName(one.cell)).join(", ") }));
  }

  /** Crews that share out cells and are back within their hours; on Earth. */
  function outing() {
    const middle = planner.lattice.centre([planner.lattice.rows >> 1, planner.lattice.cols >> 1]);
    const name = input({ value: t("outingName"), name: "by", maxlength: "200", required: true });
    const crews = input({ type: "number", min: "1", max: "50", value: "2", name: "crews", required: true });
    const most = input({ type: "number", min: "1", max: "1000", value: "8", name: "most", required: true });
    const start = input({ value: middle.map((v) => v.toFixed(5)).join(", "), name: "start", required: true });
    const hours = input({ type: "number", min: "0.1", max: "240", step: "any", value: "4", name: "hours", required: true });
    const speed = input({ value: "3km/h", name: "speed", required: true });
    const visit = input({ type: "number", min: "0", step: "any", value: "10", name: "visit", required: true });
    return h("details", { class: "act" }, h("summary", {}, t("planTours")), form([
      field(t("outingBy"), name),
      h("div", { class: "pair" }, field(t("howManyCrews"), crews), field(t("cellsEach"), most)),
      field(t("outingStart"), start, t("goToHint")),
      h("div", { class: "pair" }, field(t("hours"), hours), field(t("speed"), speed)),
      field(t("minutesPerVisit"), visit),
    ], t("planToursButton"), async () => {
      const answer = await post(`/campaigns/${planner.where}/ask`, {
        n: Number(most.value), by: name.value.trim(), key: newKey(),
        outing: {
          crews: Number(crews.value), start: start.value.split(/[\s,;]+/).map(Number), hours: Number(hours.value),
          speed: speed.value.trim(), minutes_per_visit: Number(visit.value),
        },
      });
      await planner.refresh();
      return answer.note || t("handedOut", { n: number(answer.queries.length) });
    }, { id: "outing-form" }));
  }

  lines.append(line(t("firstCrew")));
  body.append(
    names,
    form([
      lines,
      h("p", { class: "actions" },
        action(t("addCrew"), () => lines.append(line(t("nextCrew", { n: lines.children.length + 1 }))), { class: "quiet" }),
        action(t("peek"), peek, { class: "quiet", id: "peek" })),
    ], t("handOutButton"), ask, { id: "ask-form" }),
    ...(planner.lattice.onEarth ? [outing()] : []),
    out);

  /** tours: [{name, colour, cells}] */
  function tell(tours, crews) {
    show(names, crews.map((name) => h("option", { value: name })));
    show(out, tours.length === 0 ? h("p", { class: "empty" }, t("nothingOut")) : tours.map(({ name, colour, cells, words }) => {
      const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
      swatch.style.backgroundColor = css(colour);
      return h("section", {}, h("h3", {}, swatch, t("crewHas", { name, n: number(cells.length) })),
        words && h("p", { class: "faint" }, words),
        h("ol", { class: "stops" }, cells.map((cell) =>
          h("li", {}, h("button", { type: "button", class: "link", onclick: () => planner.area.select(cell) }, cellName(cell))))));
    }));
  }

  return { whole, tell };
}
