// The first page: the campaigns one has a part in.

import { address, get, unlessSignedIn } from "./api.js";
import { h } from "./dom.js";
import { wordsOf } from "./forms.js";
import { header, sayingLine } from "./header.js";
import { number, t } from "./strings.js";

function card(line) {
  const where = address(line.name, line.uid);
  const work = line.role === "crew";
  const main = work ? `/crew/${where}` : `/campaigns/${where}`;
  const counts = line.problem || t("lineCounts", {
    told: number(line.told), found: number(line.found), left: number(line.budget_left), asked: number(line.asked),
  });
  return h("li", { class: "card" },
    h("h2", {}, h("a", { href: main }, line.name)),
    h("p", {}, counts),
    h("p", { class: "links" },
      h("a", { href: `/campaigns/${where}` }, t("openMap")),
      line.role !== "viewer" && h("a", { href: `/crew/${where}` }, t("openCrew"))));
}

async function start() {
  const [me, { campaigns }] = await Promise.all([get("/me"), get("/campaigns")]);
  if (campaigns.length === 1 && campaigns[0].role === "crew" && !location.search) {
    location.replace(`/crew/${address(campaigns[0].name, campaigns[0].uid)}`);
    return;
  }
  const mayCreate = me.role === "planner" || me.role === "owner";
  document.body.replaceChildren(
    header(t("campaigns"), me.account),
    h("main", { class: "narrow" },
      mayCreate && h("p", {}, h("a", { href: "/new", class: "button primary" }, t("newCampaign"))),
      campaigns.length
        ? h("ul", { class: "cards" }, campaigns.map(card))
        : h("p", {}, t(mayCreate ? "noCampaigns" : "noPart"))),
    sayingLine(),
  );
}

start().catch(unlessSignedIn).catch((error) => {
  document.body.replaceChildren(header(t("campaigns"), ""), h("main", { class: "narrow" }, h("p", {}, wordsOf(error))));
});
