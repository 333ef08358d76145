// The log, newest first, as it grows.

import { get } from "./api.js";
import { h, show } from "./dom.js";
import { panel } from "./forms.js";
import { t, when } from "./strings.js";

const KEPT = 100;

export function logPanel(planner) {
  const { whole, body } = panel("log", t("log"));
  const list = h("ol", { class: "story log", reversed: true });
  body.append(list, h("p", { class: "actions" },
    ["csv", "json", "npz"].map((form) =>
      h("a", { href: `/api/v1/campaigns/${planner.where}/export.${form}`, class: "button quiet", download: "" }, t("export", { form })))));
  let lines = [];

  const item = (line) => h("li", { value: line.seq },
    h("strong", {}, t(`kind_${line.kind}`)), " ", line.text, " ", h("small", {}, line.by, ", ", when(line.at)));

  return {
    whole,
    async load(seq) {
      const { events } = await get(`/campaigns/${planner.where}/history?after=${Math.max(0, seq - KEPT)}&limit=${KEPT}`);
      lines = events.reverse();
      show(list, lines.map(item));
      return events;
    },
    add(line) {
      if (lines.some((known) => known.seq === line.seq)) return;
      lines = [line, ...lines].slice(0, KEPT);
      list.prepend(item(line));
      while (list.children.length > KEPT) list.lastChild.remove();
    },
  };
}
