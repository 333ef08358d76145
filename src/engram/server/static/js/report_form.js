// One cell to visit: where it is, and three large buttons for what was there.

import { h, newKey, say } from "./dom.js";
import { action, field, input, wordsOf } from "./forms.js";
import { smaller } from "./photo.js";
import { cellName, t } from "./strings.js";
import { detectionField, mayMiss } from "./visits.js";

const DAY = 86400;

/** crew: {facts, where}; send(report) keeps it. */
export function reportForm(crew, query, send) {
  const { area } = crew.facts;
  const one = area.channels * area.cell[0] * area.cell[1] === 1;
  const value = input({ type: "number", step: "any", min: String(area.range[0]), max: String(area.range[1]), name: "value", inputmode: "decimal" });
  const note = h("textarea", { name: "note", maxlength: "2000", rows: "2" });
  const photo = input({ type: "file", accept: "image/*", capture: "environment", name: "photo" });
  const trust = mayMiss(crew.facts) ? detectionField(crew.facts) : null;
  const unreached = h("div", { class: "unreached", hidden: true });

  const base = () => ({ cell: query.cell, by: crew.facts.crew });

  async function tell(outcome) {
    const wrong = [value, trust?.given].find((one) => one && !one.checkValidity());
    if (wrong) {
      wrong.closest("details").open = true;
      wrong.reportValidity();
      return;
    }
    const body = { ...base(), outcome, note: note.value.trim(), ...trust?.said() };
    if (one && value.value !== "") body.value = [Number(value.value)];
    const file = photo.files[0];
    let small = null;
    if (file) {
      try {
        small = await smaller(file);
      } catch (error) {
        say(t("badPhoto", { words: wordsOf(error) }), "bad");
        return;
      }
    }
    await send({ key: newKey(), where: crew.where, what: "tell", body, photo: small });
  }

  const fail = (retry) => () =>
    send({ key: newKey(), where: crew.where, what: "fail", body: { ...base(), retry, reason: note.value.trim() }, photo: null });

  unreached.append(
    action(t("tryLater"), fail(DAY), { class: "large", id: "later" }),
    action(t("never"), fail(null), { class: "large", id: "never" }));

  return h("form", { class: "report", onsubmit: (event) => event.preventDefault() },
    h("details", { class: "act" }, h("summary", {}, t("valueNotePhoto")),
      one && field(t("value"), value, t("valueHint", { low: area.range[0], high: area.range[1] })),
      trust?.whole, field(t("note"), note), field(t("photo"), photo)),
    h("div", { class: "large-buttons", role: "group", "aria-label": t("whatWasThere", { cell: cellName(query.cell) }) },
      action(t("foundButton"), () => tell(1), { class: "large found", id: "found" }),
      action(t("nothingButton"), () => tell(0), { class: "large nothing", id: "nothing" }),
      action(t("unreachedButton"), () => {
        unreached.hidden = false;
        unreached.firstChild.focus();
      }, { class: "large", id: "unreached" })),
    unreached);
}
