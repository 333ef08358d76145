// The bar at the top of every page: where one is, who one is, light or dark.

import { call } from "./api.js";
import { h } from "./dom.js";
import { action } from "./forms.js";
import { t } from "./strings.js";

const NEXT = { auto: "light", light: "dark", dark: "auto" };

function theme() {
  try {
    return localStorage.getItem("engram-theme") ?? "auto";
  } catch {
    return "auto";
  }
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem("engram-theme", name);
  } catch {
    // a browser that keeps nothing: it is chosen for this page
  }
}

function themeButton() {
  const button = h("button", { type: "button", class: "quiet", id: "theme" });
  const named = () => {
    button.textContent = t(`theme_${theme()}`);
    button.setAttribute("aria-label", t("themeName", { theme: t(`theme_${theme()}`) }));
  };
  button.addEventListener("click", () => {
    setTheme(NEXT[theme()]);
    named();
  });
  named();
  return button;
}

/** parts: what stands between the title and the buttons. */
export function header(title, account, ...parts) {
  setTheme(theme());
  document.title = `${title} · engram`;
  const out = action(t("signOut"), async () => {
    await call("POST", "/sign-out");
    location.assign("/sign-in");
  }, { class: "quiet" });
  return h("header", { class: "top" },
    h("a", { href: "/", class: "home", "aria-label": t("allCampaigns") }, "engram"),
    h("h1", {}, title),
    h("div", { class: "top-parts" }, parts),
    h("span", { class: "who" }, account),
    themeButton(),
    account && out);
}

/** The line that says what happened; screen readers read it out. */
export function sayingLine() {
  return h("p", { id: "said", role: "status", "aria-live": "polite" });
}
