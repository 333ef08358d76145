// Small parts of forms, so that every field has a name and every button says what became of it.

import { Problem, Unreachable } from "./api.js";
import { h, say } from "./dom.js";
import { t } from "./strings.js";

/** A field under its name. */
export function field(name, input, hint = "") {
  return h("label", { class: "field" }, h("span", { class: "field-name" }, name), input,
    hint && h("small", {}, hint));
}

export function input(attributes) {
  return h("input", { autocomplete: "off", ...attributes });
}

export function choice(options, attributes = {}) {
  return h("select", attributes, Object.entries(options).map(([value, name]) => h("option", { value }, name)));
}

/** What went wrong, in the server's words or ours. */
export function wordsOf(error) {
  if (error instanceof Unreachable) return t("unreachable");
  if (error instanceof Problem) return error.message;
  console.error(error);
  return String(error.message ?? error);
}

/** A button that can be pressed once at a time and says what went wrong. */
export function action(name, work, attributes = {}) {
  const button = h("button", { type: "button", ...attributes }, name);
  button.addEventListener("click", async () => {
    if (button.getAttribute("aria-busy") === "true") return;
    button.setAttribute("aria-busy", "true");
    try {
      await work();
    } catch (error) {
      say(wordsOf(error), "bad");
    } finally {
      button.removeAttribute("aria-busy");
    }
  });
  return button;
}

/** A form that is sent once at a time; work gives the words to say when it is done. */
export function form(parts, name, work, attributes = {}) {
  const button = h("button", { type: "submit", class: "primary" }, name);
  const whole = h("form", attributes, parts, h("p", { class: "actions" }, button));
  whole.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (button.getAttribute("aria-busy") === "true") return;
    button.setAttribute("aria-busy", "true");
    try {
      const words = await work(whole);
      if (words) say(words, "good");
    } catch (error) {
      say(wordsOf(error), "bad");
    } finally {
      button.removeAttribute("aria-busy");
    }
  });
  return whole;
}

/** A part of the side that can be folded. */
export function panel(id, name, open = false) {
  const body = h("div", { class: "panel-body" });
  const whole = h("details", { class: "panel", id, open }, h("summary", {}, h("h2", {}, name)), body);
  return { whole, body };
}
