// Handing out cells: how many to which crew, suggestions beforehand, who has what.

import { get, post } from "./api.js";
import { css } from "./colours.js";
import { h, newKey, say, show } from "./dom.js";
import { action, form, input, panel } from "./forms.js";
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

  lines.append(line(t("firstCrew")));
  body.append(
    names,
    form([
      lines,
      h("p", { class: "actions" },
        action(t("addCrew"), () => lines.append(line(t("nextCrew", { n: lines.children.length + 1 }))), { class: "quiet" }),
        action(t("peek"), peek, { class: "quiet", id: "peek" })),
    ], t("handOutButton"), ask, { id: "ask-form" }),
    out);

  /** tours: [{name, colour, cells}] */
  function tell(tours, crews) {
    show(names, crews.map((name) => h("option", { value: name })));
    show(out, tours.length === 0 ? h("p", { class: "empty" }, t("nothingOut")) : tours.map(({ name, colour, cells }) => {
      const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
      swatch.style.backgroundColor = css(colour);
      return h("section", {}, h("h3", {}, swatch, t("crewHas", { name, n: number(cells.length) })),
        h("ol", { class: "stops" }, cells.map((cell) =>
          h("li", {}, h("button", { type: "button", class: "link", onclick: () => planner.area.select(cell) }, cellName(cell))))));
    }));
  }

  return { whole, tell };
}
