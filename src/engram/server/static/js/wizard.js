// A new campaign: its area with a live preview of the cells, its budget, its engine.

import { address, get, unlessSignedIn } from "./api.js";
import { AreaChoice } from "./area_choice.js";
import { h } from "./dom.js";
import { choice, field, form, input, wordsOf } from "./forms.js";
import { header, sayingLine } from "./header.js";
import { t } from "./strings.js";

async function start() {
  const me = await get("/me");
  const box = h("section", { class: "map-box", "aria-label": t("preview") });
  const name = input({ name: "name", maxlength: "200", required: true });
  const budget = input({ type: "number", min: "1", step: "any", value: "50", name: "budget", required: true });
  const policy = choice({ "": t("policy_default"), gp: t("policy_gp"), random: t("policy_random") }, { name: "policy" });
  const detection = input({ type: "number", min: "0.001", max: "1", step: "any", value: "1", name: "detection", required: true });
  const learn = h("input", { type: "checkbox", name: "learn", onchange: () => (detection.disabled = learn.checked) });
  const alarm = input({ type: "number", min: "0", max: "0.999", step: "any", value: "0", name: "false_alarm", required: true });
  const seed = input({ type: "number", min: "0", step: "1", value: "0", name: "seed" });
  let whole = null;
  const side = h("aside", { class: "side", "aria-label": t("newCampaign") });
  document.body.replaceChildren(
    header(t("newCampaign"), me.account),
    h("main", { class: "planner wizard" }, box, side),
    sayingLine());
  const area = new AreaChoice(box, {
    changed: () => whole && (whole.querySelector("[type=submit]").disabled = !area.ready),
  });
  whole = form([
    area.whole,
    field(t("campaignName"), name),
    field(t("budgetField"), budget, t("budgetHint")),
    field(t("policy"), policy, t("policyHint")),
    h("details", { class: "act", id: "may-miss" }, h("summary", {}, t("missing")),
      field(t("detectionField"), detection, t("detectionFieldHint")),
      h("label", { class: "tick" }, learn, t("learnIt")), field(t("falseAlarmField"), alarm)),
    h("details", { class: "act" }, h("summary", {}, t("more")), field(t("seed"), seed, t("seedHint"))),
  ], t("create"), async () => {
    const terms = { name: name.value.trim(), budget: Number(budget.value), seed: Number(seed.value) };
    if (policy.value) terms.policy = policy.value;
    if (learn.checked) terms.detection = "learn";
    else if (Number(detection.value) !== 1) terms.detection = Number(detection.value);
    if (Number(alarm.value)) terms.false_alarm = Number(alarm.value);
    const made = await area.create(terms);
    location.assign(`/campaigns/${address(made.name, made.uid)}`);
  }, { id: "wizard-form", class: "panel panel-body" });
  whole.querySelector("[type=submit]").disabled = !area.ready;
  side.append(whole);
  document.body.dataset.ready = "true";
}

start().catch(unlessSignedIn).catch((error) => {
  document.body.replaceChildren(header(t("newCampaign"), ""), h("main", { class: "narrow" }, h("p", { role: "alert" }, wordsOf(error))));
});
