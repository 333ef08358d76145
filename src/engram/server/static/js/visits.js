// Visits that may miss a target: how far one can be trusted, and all of one cell.

import { h } from "./dom.js";
import { field, input } from "./forms.js";
import { number, t, when } from "./strings.js";

const percent = (chance) => number(Math.round(1000 * chance) / 10);

/** Whether a visit here may miss a target, or report one that is not there. */
export const mayMiss = ({ detection }) => Boolean(detection) && (detection.chance !== 1 || detection.false_alarm > 0);

/** A field for the chance of detection of one visit; said() is what a tell takes of it. */
export function detectionField(facts) {
  const { chance } = facts.detection ?? { chance: 1 };
  const usual = chance === "learn" ? t("detectionLearnt") : t("detectionUsual", { chance: `${percent(chance)} %` });
  const given = input({ type: "number", min: "0.001", max: "1", step: "any", name: "detection", inputmode: "decimal" });
  return {
    given,
    whole: field(t("detection"), given, t("detectionHint", { usual })),
    said: () => (given.value === "" ? {} : { detection: Number(given.value) }),
  };
}

/** All visits of a cell that count, where there is more than one or one said how far it is to be trusted. */
export function visitsOf({ visits }) {
  if (visits.length < 2 && !visits.some((visit) => visit.detection !== null)) return null;
  return [h("h3", {}, t("visits")), h("ol", { class: "visits" }, visits.map((visit) => h("li", {},
    h("strong", {}, t(visit.outcome > 0 ? "visitFind" : "visitBlank")), " ",
    h("small", {}, visit.by, ", ", when(visit.at),
      visit.detection === null ? "" : `, ${t("visitTrust", { chance: percent(visit.detection) })}`))))];
}
