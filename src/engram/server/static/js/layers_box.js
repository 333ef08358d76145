// Which map is shown over the area, and what its colours mean.

import { h } from "./dom.js";
import { choice, field } from "./forms.js";
import { number, t } from "./strings.js";

const LAYERS = ["none", "probability", "doubt", "content", "total", "exploration", "exploitation", "likelihood", "reward"];

/** told: layer(name), parts({visits, tours}) */
export function layersBox(told) {
  const select = choice(Object.fromEntries(LAYERS.map((name) => [name, t(`layer_${name}`)])), { id: "layer" });
  select.value = "probability";
  select.addEventListener("change", () => told.layer(select.value));
  const part = (name) => {
    const box = h("input", { type: "checkbox", checked: true, id: `show-${name}` });
    box.addEventListener("change", () => told.parts({ [name]: box.checked }));
    return h("label", { class: "tick" }, box, t(`show_${name}`));
  };
  const low = h("span", {}), high = h("span", {});
  const about = h("small", { class: "about" });
  const scale = h("div", { class: "legend" }, low, h("span", { class: "ramp", role: "presentation" }), high);
  const signs = h("ul", { class: "signs" }, ["find", "blank", "out", "waiting", "closed"].map((name) =>
    h("li", {}, h("span", { class: `sign sign-${name}`, "aria-hidden": "true" }), t(`sign_${name}`))));
  const whole = h("details", { class: "layers", open: window.innerWidth > 700 },
    h("summary", {}, t("layers")),
    field(t("layer"), select), scale, about,
    h("div", { class: "ticks" }, part("visits"), part("tours")), signs);
  return {
    whole,
    get layer() {
      return select.value;
    },
    say(name, ends, words = "") {
      scale.classList.toggle("is-off", name === "none" || ends === null);
      low.textContent = ends ? number(ends[0]) : "";
      high.textContent = ends ? number(ends[1]) : "";
      about.textContent = words || t(`about_${name}`);
    },
  };
}
