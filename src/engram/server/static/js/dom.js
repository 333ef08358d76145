// Elements without markup: what people wrote can never become code.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (value === true && name in element) element[name] = true;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(9).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

/** h("p", {class: "note"}, "text", element, ...) */
export function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for drawings. */
export function s(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

export const $ = (selector, root = document) => root.querySelector(selector);

export function show(element, ...children) {
  element.replaceChildren(...children.flat(9).filter(Boolean));
  return element;
}

/** Calls after the last call of a burst. */
export function settled(work, milliseconds) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...values), milliseconds);
  };
}

/** A name for a request that is made once, on this machine: 128 random bits. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

let spoken = null;

/** Say something to everybody: in a line on the page that screen readers read out. */
export function say(text, kind = "") {
  spoken ??= $("#said");
  if (!spoken) return;
  spoken.textContent = text;
  spoken.dataset.kind = kind;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => (spoken.textContent = ""), kind === "bad" ? 15000 : 6000);
}
