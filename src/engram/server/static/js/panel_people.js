// Who takes part: sign-in links for crews, and what the page shows beside the campaign.

import { call, get, post, put } from "./api.js";
import { h, show } from "./dom.js";
import { choice, field, form, input, panel } from "./forms.js";
import { t } from "./strings.js";

export function peoplePanel(planner) {
  const { whole, body } = panel("people", t("people"));
  const list = h("ul", { class: "people" });
  const link = h("div", { class: "link-box" });
  const account = input({ name: "account", maxlength: "100", required: true });
  const role = choice({ crew: t("role_crew"), viewer: t("role_viewer"), planner: t("role_planner") });

  async function refresh() {
    const { people } = await get(`/campaigns/${planner.where}/people`);
    show(list, people.map((one) => h("li", {}, t("person", { ...one, role: t(`role_${one.role}`) }))));
    return people;
  }

  const links = form([field(t("nameOfPerson"), account), field(t("role"), role)], t("makeLink"), async () => {
    const made = await post(`/campaigns/${planner.where}/links`, { account: account.value.trim(), role: role.value });
    const address = input({ value: made.link, readOnly: true, "aria-label": t("linkOf", made), id: "made-link" });
    address.addEventListener("focus", () => address.select());
    show(link,
      h("p", {}, t("linkOf", made)), address,
      h("img", { src: `data:image/svg+xml,${encodeURIComponent(made.qr)}`, alt: t("qrOf", made), class: "qr" }),
      h("p", {}, t("linkOnce")));
    await refresh();
    return t("linkMade", made);
  }, { id: "link-form" });

  /** The picture under the cells: what was chosen now, or what was there before. */
  async function pictureOf(file, known) {
    if (!file) return known;
    const form = new FormData();
    form.set("file", file);
    return (await call("POST", `/campaigns/${planner.where}/photos`, { form })).photo;
  }

  async function background() {
    const known = await get(`/campaigns/${planner.where}/page`);
    const tiles = input({ name: "tiles", maxlength: "500", value: known.tiles, placeholder: "https://…/{z}/{x}/{y}.png" });
    const picture = input({ type: "file", accept: "image/*", name: "background" });
    const corners = input({ name: "corners", value: (known.corners ?? []).join(", ") });
    const none = h("input", { type: "checkbox", name: "no-background" });
    const credit = input({ name: "credit", maxlength: "500", value: known.credit });
    const { onEarth } = planner.lattice;
    return form([
      onEarth && field(t("tiles"), tiles, t("tilesHint")),
      field(t("picture"), picture, t("pictureHint")),
      onEarth && field(t("corners"), corners, t("cornersHint")),
      known.picture && h("label", { class: "tick" }, none, t("noPicture")),
      field(t("credit"), credit),
    ], t("save"), async () => {
      const numbers = corners.value.split(/[\s,;]+/).filter(Boolean).map(Number);
      await put(`/campaigns/${planner.where}/page`, {
        tiles: tiles.value.trim(), credit: credit.value.trim(),
        picture: none.checked ? "" : await pictureOf(picture.files[0], known.picture),
        corners: numbers.length ? numbers : null,
      });
      location.reload();
    }, { id: "page-form" });
  }

  return {
    whole,
    async load() {
      await refresh();
      if (!planner.may("owner")) return show(body, list);
      show(body, list, h("h3", {}, t("inviteTitle")), links, link);
      body.append(h("h3", {}, t("background")), await background());
    },
  };
}
