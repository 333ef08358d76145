// One cell: what is believed of it, its story, why it was suggested, and what can be done with it.

import { get, post } from "./api.js";
import { h, newKey, show } from "./dom.js";
import { action, field, form, input, panel, wordsOf } from "./forms.js";
import { cellName, degrees, number, t, when } from "./strings.js";
import { detectionField, visitsOf } from "./visits.js";

/** Cells by their numbers, for large areas and for those who do not see the map. */
function finder(planner) {
  const { rows, cols } = planner.facts.area;
  const row = input({ type: "number", min: "0", max: String(rows - 1), name: "row", required: true });
  const col = input({ type: "number", min: "0", max: String(cols - 1), name: "col", required: true });
  return form([h("div", { class: "pair" }, field(t("row"), row), field(t("col"), col))], t("showCell"), async () => {
    const cell = [Number(row.value), Number(col.value)];
    planner.area.select(cell);
    planner.area.map.panTo(planner.lattice.centre(cell), { animate: false });
  }, { id: "find-cell", class: "finder" });
}

export function cellPanel(planner) {
  const { whole, body: all } = panel("cell", t("cell"), true);
  const body = h("div", { class: "cell-body" }, h("p", { class: "empty" }, t("noCell")));
  all.append(finder(planner), body);
  let chosen = null;

  const send = (what, fields) =>
    post(`/campaigns/${planner.where}/${what}`, { ...fields, key: newKey() });

  async function done(words) {
    await planner.refresh();
    await open(chosen);
    return words;
  }

  function belief(cell) {
    const value = planner.valueAt(cell);
    if (value === null) return null;
    return h("p", {}, t("layerHere", { layer: t(`layer_${planner.layers.layer}`), value: number(value) }));
  }

  function place(cell) {
    if (!planner.lattice.onEarth) return null;
    return h("p", { class: "place" }, degrees(planner.lattice.centre(cell)));
  }

  function tellForm(cell) {
    const outcome = input({ type: "number", min: "0", max: "1", step: "any", value: "1", name: "outcome", required: true });
    const note = input({ name: "note", maxlength: "2000" });
    const by = input({ name: "by", list: "crew-names", value: planner.facts.crew, maxlength: "200", required: true });
    const trust = detectionField(planner.facts);
    return h("details", { class: "act" }, h("summary", {}, t("tell")), form([
      field(t("outcome"), outcome, t("outcomeHint")), field(t("by"), by), trust.whole, field(t("note"), note),
    ], t("tellButton"), async () => {
      await send("tell", { cell, outcome: Number(outcome.value), note: note.value, by: by.value.trim(), ...trust.said() });
      return done(t("toldWords", { cell: cellName(cell) }));
    }, { id: "tell-form" }));
  }

  function failForm(cell) {
    const days = input({ type: "number", min: "0", max: "3650", step: "any", value: "1", name: "days" });
    const never = h("input", { type: "checkbox", name: "never" });
    const reason = input({ name: "reason", maxlength: "2000" });
    return h("details", { class: "act" }, h("summary", {}, t("fail")), form([
      field(t("tryAgainIn"), days), h("label", { class: "tick" }, never, t("neverAgain")), field(t("reason"), reason),
    ], t("failButton"), async () => {
      await send("fail", { cell, retry: never.checked ? null : Number(days.value) * 86400, reason: reason.value });
      return done(t("failedWords", { cell: cellName(cell) }));
    }, { id: "fail-form" }));
  }

  function correctForm(cell, now) {
    const outcome = input({ type: "number", min: "0", max: "1", step: "any", value: String(now), name: "outcome", required: true });
    const reason = input({ name: "reason", maxlength: "2000" });
    return h("details", { class: "act" }, h("summary", {}, t("correct")), form([
      field(t("outcome"), outcome, t("outcomeHint")), field(t("reason"), reason),
      h("p", { class: "actions" }, action(t("retract"), async () => {
        await send("retract", { cell, reason: reason.value });
        await done();
      }, { class: "quiet" })),
    ], t("correctButton"), async () => {
      await send("correct", { cell, outcome: Number(outcome.value), reason: reason.value });
      return done(t("correctedWords", { cell: cellName(cell) }));
    }, { id: "correct-form" }));
  }

  function acts(cell, state) {
    if (planner.past || !planner.may("crew")) return null;
    const measured = planner.measured(cell);
    const found = [];
    if (measured && planner.may("planner")) found.push(correctForm(cell, measured.outcome));
    if (!measured?.settled && state !== "closed") found.push(tellForm(cell), failForm(cell));
    if (planner.may("planner") && ["open", "waiting", "visited"].includes(state)) {
      found.push(action(t("closeCell"), async () => {
        await send("close", { cells: [cell] });
        await done();
      }, { class: "quiet" }));
    }
    if (planner.may("planner") && state === "closed") {
      found.push(action(t("openCell"), async () => {
        await send("open", { cells: [cell] });
        await done();
      }, { class: "quiet" }));
    }
    return h("div", { class: "acts" }, found);
  }

  function event(line) {
    const { note, photo } = line.facts;
    const who = line.via && line.via !== line.by ? t("byVia", line) : line.by;
    return h("li", {},
      h("strong", {}, t(`kind_${line.kind}`)), " ", line.text, " ",
      h("small", {}, who, ", ", h("time", { datetime: line.at }, when(line.at))),
      note && h("q", {}, note),
      photo && h("a", { href: `/api/v1/campaigns/${planner.where}/photos/${photo}.jpg`, target: "_blank", rel: "noopener" },
        h("img", { src: `/api/v1/campaigns/${planner.where}/photos/${photo}.jpg`, alt: t("photoOf", { note: note ?? "" }), class: "photo", loading: "lazy" })));
  }

  async function explain(query, box) {
    show(box, h("p", {}, t("computing")));
    try {
      const why = await get(`/campaigns/${planner.where}/queries/${query}`);
      show(box,
        why.words.split("\n").map((words) => h("p", {}, words)),
        h("img", { src: `/api/v1/campaigns/${planner.where}/queries/${query}/picture.png`, alt: t("pictureOf", { query }), class: "why-picture" }));
    } catch (error) {
      show(box, h("p", {}, wordsOf(error)));
    }
  }

  function why(queries) {
    return queries.map((one) => {
      const box = h("div", { class: "why" });
      const whole = h("details", { class: "act why-box" },
        h("summary", {}, t("whyQuery", { query: one.query, by: one.by, state: t(`query_${one.state}`) })), box);
      whole.addEventListener("toggle", () => whole.open && !box.firstChild && explain(one.query, box));
      return whole;
    });
  }

  async function open(cell) {
    chosen = cell;
    if (!cell) return;
    whole.open = true;
    try {
      const story = await get(`/campaigns/${planner.where}/cells/${cell[0]}/${cell[1]}`);
      if (chosen !== cell) return;
      show(body,
        h("h3", {}, cellName(cell), " · ", t(`state_${story.state}`)),
        place(cell), belief(cell), visitsOf(story), acts(cell, story.state), why(story.queries),
        h("h3", {}, t("story")),
        story.events.length ? h("ol", { class: "story" }, story.events.map(event)) : h("p", { class: "empty" }, t("noStory")));
    } catch (error) {
      show(body, h("p", {}, wordsOf(error)));
    }
  }

  return { whole, open, get chosen() { return chosen; } };
}
