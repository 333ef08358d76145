// What has not been sent yet, what was sent, and where somebody else was faster.

import { h, show } from "./dom.js";
import { action } from "./forms.js";
import { cellName, t, when } from "./strings.js";

function what(report) {
  const { body } = report;
  const words = report.what === "fail"
    ? t(body.retry === null ? "mineNever" : "mineLater")
    : t(body.outcome > 0 ? "sign_find" : "sign_blank");
  const more = [body.value && body.value.join(", "), body.note || body.reason, report.photo && t("withPhoto")];
  return [words, ...more.filter(Boolean)].join(", ");
}

/** A button that has to be pressed twice. */
function twice(name, sure, work) {
  let asked = false;
  const button = action(name, async () => {
    if (asked) return work();
    asked = true;
    button.textContent = sure;
    return undefined;
  }, { class: "quiet" });
  return button;
}

function waiting(report) {
  return h("li", {}, h("strong", {}, cellName(report.body.cell)), " ", what(report), " ", h("small", {}, when(report.made / 1000)));
}

function trouble(outbox) {
  return (report) => h("li", { class: "trouble", data: { state: report.state } },
    h("strong", {}, t(`trouble_${report.state}`), " ", cellName(report.body.cell)),
    h("p", {}, t("mine"), " ", what(report)),
    (report.theirs ?? []).map((event) => h("p", {}, t("theirs", { by: event.by, when: when(event.at), kind: t(`kind_${event.kind}`), text: event.text }))),
    h("p", { class: "faint" }, report.words),
    h("p", { class: "actions" },
      report.state === "refused" && action(t("tryAgain"), () => outbox.again(report)),
      report.state === "refused" && report.photo && action(t("withoutPhoto"), () => outbox.again(report, { photo: null, photoName: null })),
      twice(t("discard"), t("discardSure"), () => outbox.drop(report))));
}

/** The sections of a campaign's reports. */
export function crewLists(outbox, where) {
  const troubles = h("section", { class: "troubles", "aria-label": t("troubles") });
  const unsent = h("section", { "aria-label": t("unsent") });
  let shown = null; // what is pressed or read stays as it is while the reports are the same
  return {
    whole: [troubles, unsent],
    refresh() {
      const mine = outbox.of(where);
      const now = mine.map((one) => `${one.key} ${one.state} ${one.words}`).join();
      if (now === shown) return;
      shown = now;
      const bad = mine.filter((one) => one.state !== "waiting");
      const good = mine.filter((one) => one.state === "waiting");
      show(troubles, bad.length > 0 && [h("h2", {}, t("troubles")), h("ul", { class: "reports" }, bad.map(trouble(outbox)))]);
      show(unsent, good.length > 0 && [h("h2", {}, t("unsentN", { n: good.length })), h("ul", { class: "reports", id: "unsent" }, good.map(waiting))]);
    },
  };
}
