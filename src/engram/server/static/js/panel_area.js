// The area and the budget: closing and opening cells by drawing, adding to the budget.

import { post } from "./api.js";
import { h, newKey, show } from "./dom.js";
import { Drawing } from "./drawing.js";
import { action, field, form, input, panel } from "./forms.js";
import { number, t } from "./strings.js";

export function areaPanel(planner) {
  const { whole, body } = panel("area", t("areaAndBudget"));
  const box = h("div", { class: "drawn-box" });
  let tool = null;

  function begin() {
    tool?.stop();
    planner.area.element.focus();
    tool = new Drawing(planner.area, {
      changed: (corners) => show(box, hint(corners.length)),
      done: (corners) => (tool = null, corners ? chosen(planner.lattice.cellsIn(corners)) : rest()),
    });
    show(box, hint(0));
  }

  function hint(corners) {
    return [
      h("p", {}, t("drawHint", { n: corners })),
      h("p", { class: "actions" },
        action(t("finishDrawing"), () => tool?.finish(), { disabled: corners < 3, id: "finish-drawing" }),
        action(t("undoCorner"), () => tool?.undo(), { class: "quiet", disabled: corners < 1 }),
        action(t("stopDrawing"), () => tool?.stop(), { class: "quiet" })),
    ];
  }

  function chosen(cells) {
    planner.mark(cells);
    const shut = new Set(planner.cells.closed);
    const index = ([r, c]) => r * planner.lattice.cols + c;
    const busy = new Set([...planner.cells.measured, ...planner.cells.out].map((m) => index(m.cell)));
    const free = cells.filter((cell) => !shut.has(index(cell)) && !busy.has(index(cell)));
    const closed = cells.filter((cell) => shut.has(index(cell)) && !busy.has(index(cell)));
    const reason = input({ name: "reason", maxlength: "2000" });
    const send = (what, list) => async () => {
      await post(`/campaigns/${planner.where}/${what}`, { cells: list, reason: reason.value, key: newKey() });
      rest();
      await planner.refresh();
    };
    show(box,
      h("p", {}, t("drawnCells", { n: number(cells.length), free: number(free.length), closed: number(closed.length) })),
      field(t("reason"), reason),
      h("p", { class: "actions" },
        action(t("closeThem", { n: number(free.length) }), send("close", free), { class: "primary", disabled: !free.length, id: "close-drawn" }),
        action(t("openThem", { n: number(closed.length) }), send("open", closed), { disabled: !closed.length, id: "open-drawn" }),
        action(t("stopDrawing"), rest, { class: "quiet" })));
    box.querySelector("input").focus();
  }

  function rest() {
    planner.mark(null);
    wait();
  }

  function wait() {
    show(box, h("p", { class: "actions" }, action(t("draw"), begin, { id: "draw" })));
  }

  function budget() {
    const amount = input({ type: "number", min: "0", step: "any", value: "10", name: "amount", required: true });
    return form([field(t("addToBudget"), amount)], t("extend"), async () => {
      const answer = await post(`/campaigns/${planner.where}/extend`, { amount: Number(amount.value), key: newKey() });
      await planner.refresh();
      return t("extended", { budget: number(answer.budget) });
    }, { id: "extend-form" });
  }

  wait();
  body.append(h("h3", {}, t("closeByDrawing")), box, h("h3", {}, t("budget")), budget());
  return { whole };
}
