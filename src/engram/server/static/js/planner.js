// The planner's page: a map of all that is known and believed, and everything a planner does.

import { campaignHere, get, News, unlessSignedIn } from "./api.js";
import { AreaMap } from "./area_map.js";
import { crewColour, limits } from "./colours.js";
import { h, say, settled } from "./dom.js";
import { wordsOf } from "./forms.js";
import { header, sayingLine } from "./header.js";
import { Lattice } from "./lattice.js";
import { layersBox } from "./layers_box.js";
import { areaPanel } from "./panel_area.js";
import { cellPanel } from "./panel_cell.js";
import { handOutPanel } from "./panel_hand_out.js";
import { logPanel } from "./panel_log.js";
import { peoplePanel } from "./panel_people.js";
import { statusPanel } from "./panel_status.js";
import { cellName, number, t } from "./strings.js";
import { timeBar } from "./time_bar.js";
import { cellsApart, tour } from "./tour.js";

const ROLES = ["viewer", "crew", "planner", "owner"];
const PEEK = [60, 60, 60];

class Planner {
  constructor(where, me, facts, place) {
    this.where = where;
    this.facts = facts;
    this.values = null;
    this.cells = { measured: [], out: [], waiting: [], closed: [], budget: 0, budget_left: 0 };
    this.suggestions = [];
    this.planned = [];
    this.lattice = new Lattice(facts.area.rows, facts.area.cols, place.lattice);
    this.live = h("span", { class: "live", id: "live" }, t("connecting"));
    this.layers = layersBox({ layer: () => this.drawLayer(), parts: (parts) => this.area.cells.show(parts) });
    this.time = timeBar({ at: () => this.moved() });
    this.panels = {
      status: statusPanel(this), handOut: handOutPanel(this), cell: cellPanel(this),
      area: areaPanel(this), log: logPanel(this), people: peoplePanel(this),
    };
    this.build(me);
    this.later = settled(() => this.panels.status.refresh(), 700);
    this.soon = settled(() => this.refresh().catch((error) => say(wordsOf(error), "bad")), 80);
  }

  may(role) {
    return ROLES.indexOf(this.facts.role) >= ROLES.indexOf(role);
  }

  get past() {
    return this.time.at !== null;
  }

  build(me) {
    const { status, handOut, cell, area, log, people } = this.panels;
    const element = h("div", { id: "map", class: "map", tabindex: "0", role: "application", "aria-label": t("mapName"), "aria-describedby": "map-help" });
    const side = [status, cell];
    if (this.may("crew")) side.splice(1, 0, handOut);
    if (this.may("planner")) side.push(area);
    side.push(log);
    if (this.may("planner")) side.push(people);
    document.body.replaceChildren(
      header(this.facts.name, me.account, this.live, h("a", { href: `/crew/${this.where}` }, t("openCrew"))),
      h("main", { class: "planner" },
        h("section", { class: "map-box", "aria-label": t("map") }, element, this.layers.whole, this.time.whole,
          h("p", { id: "map-help", class: "hidden" }, t("mapHelp"))),
        h("aside", { class: "side", "aria-label": t("work") }, side.map((one) => one.whole))),
      sayingLine());
    this.area = new AreaMap(element, this.lattice, {
      pick: (chosen) => {
        this.panels.cell.open(chosen);
        if (window.innerWidth < 900) this.panels.cell.whole.scrollIntoView({ block: "nearest" });
      },
      moved: (chosen) => say(this.inWords(chosen)),
      margin: 270,
    });
  }

  /** A cell as one line, for those who do not see the map. */
  inWords(cell) {
    const at = (one) => one.cell[0] === cell[0] && one.cell[1] === cell[1];
    const measured = this.cells.measured.find(at);
    const out = this.cells.out.find(at);
    const index = cell[0] * this.lattice.cols + cell[1];
    let state = t("state_open");
    if (measured?.settled || measured?.outcome > 0) state = t(measured.outcome > 0 ? "sign_find" : "sign_blank");
    else if (measured && !out) state = t("signVisited", { n: measured.visits });
    else if (out) state = t("outWith", { by: out.by });
    else if (this.cells.closed.includes(index)) state = t("state_closed");
    const value = this.valueAt(cell);
    const belief = value === null ? "" : t("layerHere", { layer: t(`layer_${this.layers.layer}`), value: number(value) });
    return `${cellName(cell)}: ${state}. ${belief}`;
  }

  measured(cell) {
    return this.cells.measured.find((m) => m.cell[0] === cell[0] && m.cell[1] === cell[1]);
  }

  valueAt([row, col]) {
    const value = this.values?.[row * this.lattice.cols + col];
    return Number.isFinite(value) ? value : null;
  }

  mark(cells) {
    this.area.cells.marked = cells;
    this.area.cells.redraw();
  }

  suggest(cells) {
    this.suggestions = cells;
    this.paint();
  }

  /** What is out: tours as they were planned, and the rest crew by crew in the order of a short way. */
  tours() {
    const names = this.crews();
    const left = new Map(this.cells.out.map((query) => [query.query, query]));
    const planned = this.planned.flatMap(({ queries, line, words }) => {
      const stops = queries.filter((query) => left.has(query)).map((query) => left.get(query));
      for (const { query } of stops) left.delete(query);
      const name = stops[0]?.by ?? "";
      return stops.length ? [{ name, line, words, colour: crewColour(names, name), cells: stops.map((stop) => stop.cell) }] : [];
    });
    const byCrew = new Map();
    for (const { by, cell } of left.values()) byCrew.set(by, [...(byCrew.get(by) ?? []), cell]);
    const others = [...byCrew].map(([name, cells]) => {
      const start = this.facts.crews[name] ?? null;
      return { name, start, colour: crewColour(names, name), cells: tour(cells, start, cellsApart) };
    });
    return [...planned, ...others].sort((a, b) => a.name.localeCompare(b.name));
  }

  crews() {
    const seen = [...this.cells.out, ...this.cells.measured].map((one) => one.by);
    return [...new Set([...Object.keys(this.facts.crews), ...seen])].sort();
  }

  paint() {
    const { measured, waiting, closed } = this.cells;
    const tours = this.tours();
    const hollow = { colour: PEEK, cells: this.suggestions, hollow: true };
    this.area.cells.setScenery({
      finds: measured.filter((m) => m.outcome > 0).map((m) => m.cell),
      blanks: measured.filter((m) => m.outcome <= 0).map((m) => m.cell),
      waiting: waiting.map((w) => w.cell),
      closed,
      tours: this.suggestions.length ? [...tours, hollow] : tours,
    });
    this.panels.status.count(this.cells);
    this.panels.handOut.tell(tours, this.crews());
  }

  get moment() {
    return this.past ? `at=${this.time.at}` : "";
  }

  /** Look at what is in force at the moment that is chosen. */
  async refresh() {
    this.cells = await get(`/campaigns/${this.where}/cells?${this.moment}`);
    if (!this.past) this.time.grow(this.cells.seq);
    this.planned = this.lattice.onEarth && !this.past ? (await get(`/campaigns/${this.where}/tours`)).tours : [];
    this.paint();
    await this.drawLayer();
    if (!this.past) this.later();
  }

  async drawLayer() {
    const name = this.layers.layer;
    if (name === "none") {
      this.values = null;
      this.layers.say(name, null);
      this.area.cells.setBelief(null);
      return;
    }
    const moment = this.moment;
    this.looking?.abort();
    this.looking = new AbortController();
    try {
      const found = await get(`/campaigns/${this.where}/beliefs?layers=${name}&${moment}`, { signal: this.looking.signal });
      if (moment !== this.moment || name !== this.layers.layer) return;
      this.values = Float32Array.from(found.layers[name].flat(), (v) => v ?? NaN);
      const ends = limits(this.values);
      this.area.cells.setBelief(this.values, ...ends);
      this.layers.say(name, ends);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.values = null;
      this.area.cells.setBelief(null);
      this.layers.say(name, null, wordsOf(error));
    }
  }

  async moved() {
    document.body.classList.toggle("in-the-past", this.past);
    this.suggestions = [];
    await this.refresh().catch((error) => say(wordsOf(error), "bad"));
    if (this.past && !this.time.knows(this.time.at)) {
      const { events } = await get(`/campaigns/${this.where}/history?after=${this.time.at - 1}&limit=100`);
      this.time.grow(1, events);
    }
    if (this.panels.cell.chosen) await this.panels.cell.open(this.panels.cell.chosen);
  }

  listen(seq) {
    this.news = new News(this.where, seq, {
      event: (event) => {
        this.panels.log.add(event);
        this.time.grow(event.seq, [event]);
        if (!this.past) this.soon();
      },
      reset: () => location.reload(),
      state: (on) => {
        this.live.textContent = t(on ? "live" : "notLive");
        this.live.dataset.on = String(on);
      },
    });
  }
}

/** What lies under the cells: tiles of a host that the owner chose, or a picture. */
function background({ lattice, area, where }, settings) {
  if (settings.tiles && lattice.onEarth) {
    L.tileLayer(settings.tiles, { maxZoom: 22, maxNativeZoom: 19 }).addTo(area.map);
  }
  if (settings.picture) {
    const [south, west, north, east] = settings.corners ?? lattice.bounds().flat();
    L.imageOverlay(`/api/v1/campaigns/${where}/photos/${settings.picture}.jpg`, [[south, west], [north, east]], { zIndex: 1 }).addTo(area.map);
  }
  if (settings.credit) {
    L.control.attribution({ prefix: false }).addAttribution(h("i", {}, settings.credit).innerHTML).addTo(area.map);
  }
}

async function start() {
  const where = campaignHere();
  const [me, facts, place, settings] = await Promise.all([
    get("/me"), get(`/campaigns/${where}`), get(`/campaigns/${where}/place`), get(`/campaigns/${where}/page`),
  ]);
  const planner = new Planner(where, me, facts, place);
  background(planner, settings);
  planner.listen(facts.seq);
  await planner.refresh();
  planner.time.grow(facts.seq, await planner.panels.log.load(facts.seq));
  if (planner.may("planner")) await planner.panels.people.load();
  document.body.dataset.ready = "true";
}

start().catch(unlessSignedIn).catch((error) => {
  document.body.replaceChildren(header(t("campaigns"), ""), h("main", { class: "narrow" }, h("p", { role: "alert" }, wordsOf(error))));
});
