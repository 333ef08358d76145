// The slider over the log: what was known and believed after any event.

import { h, settled } from "./dom.js";
import { t, when } from "./strings.js";

/** told: at(seq or null) is called when somebody has moved to a moment. */
export function timeBar(told) {
  const slider = h("input", { type: "range", min: "1", max: "1", value: "1", id: "time", "aria-label": t("timeName") });
  const words = h("output", { class: "time-words", for: "time" });
  const now = h("button", { type: "button", class: "quiet", id: "to-now" }, t("toNow"));
  const state = { last: 1, at: null, lines: new Map() };

  const write = () => {
    const seq = state.at ?? state.last;
    const line = state.lines.get(seq);
    const event = line ? t("momentLine", { when: when(line.at), kind: t(`kind_${line.kind}`), text: line.text }) : "";
    words.textContent = state.at === null ? t("nowAt", { seq, event }) : t("pastAt", { seq, event });
    slider.setAttribute("aria-valuetext", words.textContent);
    whole.classList.toggle("is-past", state.at !== null);
    now.disabled = state.at === null;
  };
  const chosen = settled(() => told.at(state.at), 120);
  slider.addEventListener("input", () => {
    const seq = Number(slider.value);
    state.at = seq >= state.last ? null : seq;
    write();
    chosen();
  });
  now.addEventListener("click", () => {
    state.at = null;
    slider.value = String(state.last);
    write();
    told.at(null);
  });
  const whole = h("div", { class: "time-bar" }, slider, words, now);
  return {
    whole,
    get at() {
      return state.at;
    },
    knows(seq) {
      return state.lines.has(seq);
    },
    /** The log has grown; lines are events as the history gives them. */
    grow(last, lines = []) {
      for (const line of lines) state.lines.set(line.seq, line);
      state.last = Math.max(state.last, last);
      slider.max = String(state.last);
      if (state.at === null) slider.value = String(state.last);
      write();
    },
  };
}
