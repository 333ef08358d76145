// The crew's page: my cells in the order of a short way, told with one press, with or without a
// network.

import { campaignHere, get, News, post, Problem, Unreachable } from "./api.js";
import { AreaMap } from "./area_map.js";
import { crewLists } from "./crew_lists.js";
import { h, newKey, say, settled, show } from "./dom.js";
import { action, wordsOf } from "./forms.js";
import { header, sayingLine } from "./header.js";
import { hold, keep, kept } from "./keeping.js";
import { bearing, distance, Lattice } from "./lattice.js";
import { Outbox } from "./outbox.js";
import { Position } from "./position.js";
import { reportForm } from "./report_form.js";
import { cellName, compass, metres, steps, t } from "./strings.js";
import { cellsApart, tour } from "./tour.js";
import { mayMiss } from "./visits.js";

const MINE = [0, 114, 178];
const PATIENCE = 8000;
const AT_ONCE = 3;

const same = (a, b) => a[0] === b[0] && a[1] === b[1];

class Crew {
  constructor(where, seen) {
    this.where = where;
    this.outbox = new Outbox({
      changed: () => this.paint(),
      sent: (report, receipt) => this.sent(report, receipt),
      signIn: (needed) => (this.signIn.hidden = !needed),
    });
    this.soon = settled(() => this.refresh(), 150);
    this.order = [];
    this.chosen = null;
    this.known = 0; // the last event of the log that this phone was told of
    this.see(seen);
    this.lattice = new Lattice(this.facts.area.rows, this.facts.area.cols, this.place.lattice);
    this.position = new Position({
      moved: (here) => this.moved(here),
      failed: (words) => say(t("noPosition", { words }), "bad"),
    });
    this.build();
  }

  see(seen) {
    Object.assign(this, { facts: seen.facts, place: seen.place, cells: seen.cells });
  }

  build() {
    this.state = h("span", { class: "live", id: "network" });
    this.offline = h("span", { class: "faint", id: "offline-ready" });
    this.unsent = h("strong", { id: "unsent-count" });
    this.signIn = h("p", { class: "banner", hidden: true }, t("signInAgain"), " ", h("a", { href: "/sign-in" }, t("signInLink")));
    this.card = h("section", { class: "now", "aria-label": t("nextCell") });
    this.list = h("ol", { class: "todo", id: "todo" });
    this.lists = crewLists(this.outbox, this.where);
    const element = h("div", { id: "map", class: "map small-map", tabindex: "0", role: "application", "aria-label": t("mapName"), "aria-describedby": "map-help" });
    this.locate = action(t("usePosition"), () => this.position.watch(), { class: "quiet", hidden: !(this.lattice.onEarth && this.position.possible) });
    document.body.replaceChildren(
      header(this.facts.name, this.facts.crew, this.state, this.unsent, this.offline),
      h("main", { class: "crew" }, this.signIn, this.lists.whole[0], this.card, this.lists.whole[1],
        element, h("p", { id: "map-help", class: "hidden" }, t("mapHelp")),
        h("h2", {}, t("myCells")), this.list,
        h("p", { class: "actions" },
          action(t("askMore", { n: AT_ONCE }), () => this.ask(), { id: "ask-more" }),
          this.locate,
          action(t("sortFromHere"), () => this.sort(), { class: "quiet" }))),
      sayingLine());
    this.area = new AreaMap(element, this.lattice, { pick: (cell) => this.choose(cell) });
    this.online(navigator.onLine);
    for (const name of ["online", "offline"]) window.addEventListener(name, () => this.online(name === "online"));
  }

  online(on) {
    this.state.textContent = t(on ? "online" : "offline");
    this.state.dataset.on = String(on);
    if (on) this.soon();
  }

  /** Cells that are out with me and not reported yet. */
  get mine() {
    const reported = this.outbox.of(this.where).map((report) => report.body.cell);
    return this.cells.out.filter((q) => q.by === this.facts.crew && !reported.some((cell) => same(cell, q.cell)));
  }

  /** Where a way begins: where the phone is, where I was last, or where crews start. */
  get start() {
    if (this.lattice.onEarth && this.position.here) return this.lattice.fraction(...this.position.here).map((v) => v - 0.5);
    const last = this.cells.measured.filter((m) => m.by === this.facts.crew).sort((a, b) => b.at - a.at)[0];
    return last?.cell ?? this.facts.crews[this.facts.crew] ?? null;
  }

  /** The order stays as it is while cells are done; new ones make a new way. */
  ordered() {
    const { mine } = this;
    const known = this.order.filter((cell) => mine.some((q) => same(q.cell, cell)));
    if (known.length === mine.length) this.order = known;
    else this.order = tour(mine.map((q) => q.cell), this.start, cellsApart);
    return this.order.map((cell) => mine.find((q) => same(q.cell, cell)));
  }

  sort() {
    this.order = [];
    this.paint();
  }

  choose(cell) {
    this.chosen = this.mine.find((q) => same(q.cell, cell)) ?? null;
    if (!this.chosen) say(t("notMine", { cell: cellName(cell) }));
    this.shown = null;
    this.paint();
  }

  whereIs(cell) {
    if (!this.lattice.onEarth) {
      const from = this.start;
      return from ? h("span", { class: "way" }, steps(from, cell)) : null;
    }
    if (!this.position.here) return null;
    const to = this.lattice.centre(cell);
    const angle = bearing(this.position.here, to);
    const arrow = h("span", { class: "arrow", "aria-hidden": "true" }, "↑");
    arrow.style.transform = `rotate(${Math.round(angle)}deg)`;
    return h("span", { class: "way" }, arrow, t("way", { far: metres(distance(this.position.here, to)), compass: compass(angle), angle: Math.round(angle) }));
  }

  paint() {
    const queries = this.ordered();
    const left = this.outbox.of(this.where).length;
    this.unsent.textContent = left ? t("notSent", { n: left }) : t("allSent");
    this.unsent.dataset.left = String(left);
    this.lists.refresh();
    const now = queries.find((q) => this.chosen && q.query === this.chosen.query) ?? queries[0] ?? null;
    this.paintCard(now);
    this.paintList(queries, now);
    this.area.cells.cursor = now?.cell ?? null;
    const measured = this.cells.measured;
    this.area.cells.setScenery({
      finds: measured.filter((m) => m.outcome > 0).map((m) => m.cell),
      blanks: measured.filter((m) => m.outcome <= 0).map((m) => m.cell),
      closed: this.cells.closed,
      tours: queries.length ? [{ colour: MINE, cells: queries.map((q) => q.cell), start: null }] : [],
    });
  }

  /** The list is made anew when it has become another; else only the ways are. */
  paintList(queries, now) {
    const listed = [now?.query, ...queries.map((q) => q.query)].join();
    if (listed !== this.listed) {
      this.listed = listed;
      this.ways = queries.map(() => h("span", {}));
      show(this.list, queries.map((q, k) => h("li", {},
        h("button", { type: "button", class: "cell-line", "aria-current": now === q ? "true" : null, onclick: () => this.choose(q.cell) },
          h("span", {}, cellName(q.cell)), this.ways[k]))));
    }
    queries.forEach((q, k) => show(this.ways[k], this.whereIs(q.cell)));
  }

  /** The card of the next cell; what was typed into it stays while the cell is the same. */
  paintCard(now) {
    if (!now) {
      this.shown = null;
      show(this.card, h("p", { class: "empty" }, t("nothingToDo")));
      return;
    }
    if (this.shown !== now.query) {
      this.shown = now.query;
      this.way = h("div", { class: "way-box" });
      show(this.card, h("h2", {}, cellName(now.cell)), this.way, reportForm(this, now, (report) => this.report(report)));
    }
    show(this.way, this.whereIs(now.cell));
  }

  async report(report) {
    this.chosen = null;
    await this.outbox.add(report);
    say(t("keptReport", { cell: cellName(report.body.cell) }), "good");
  }

  /** What the server has acknowledged is seen as done, also if the network goes right now. */
  async sent({ where, what, body }, { seq, at }) {
    if (where !== this.where) return;
    this.known = Math.max(this.known, seq);
    this.cells.out = this.cells.out.filter((query) => !same(query.cell, body.cell));
    if (what === "tell") this.cells.measured.push({ cell: body.cell, outcome: body.outcome, by: body.by, at, seq, query: null, visits: 1, settled: body.outcome > 0 || !mayMiss(this.facts) });
    await this.remember();
    this.soon();
  }

  remember() {
    return keep("seen", { where: this.where, facts: this.facts, place: this.place, cells: this.cells });
  }

  moved(here) {
    this.locate.hidden = true;
    this.dot ??= L.circleMarker(here, { radius: 8, className: "me", interactive: false }).addTo(this.area.map);
    this.dot.setLatLng(here);
    this.paint();
  }

  async ask() {
    const answer = await post(`/campaigns/${this.where}/ask`, { n: AT_ONCE, key: newKey() });
    await this.refresh();
    say(answer.note || t("askedMore", { n: answer.queries.length }), "good");
  }

  async refresh() {
    try {
      const cells = await get(`/campaigns/${this.where}/cells`, { signal: AbortSignal.timeout(PATIENCE) });
      if (cells.seq >= this.known) {
        this.cells = cells;
        await this.remember();
      }
      this.signIn.hidden = true;
      this.outbox.send();
    } catch (error) {
      if (error instanceof Problem) {
        this.signIn.hidden = error.status !== 401;
        if (error.status !== 401) say(wordsOf(error), "bad");
      }
    }
    this.paint();
  }

  listen() {
    this.news = new News(this.where, this.facts.seq, {
      event: () => this.soon(),
      reset: () => {
        this.known = 0;
        this.soon();
      },
      state: (on) => {
        this.online(on && navigator.onLine);
        if (on) this.outbox.send();
      },
    });
  }
}

/** The campaign from the server, or as it was seen last. */
async function look(where) {
  try {
    const signal = AbortSignal.timeout(PATIENCE);
    const [facts, place, cells] = await Promise.all(
      ["", "/place", "/cells"].map((part) => get(`/campaigns/${where}${part}`, { signal })));
    const seen = { where, facts, place, cells };
    await keep("seen", seen);
    return seen;
  } catch (error) {
    const seen = await kept("seen", where);
    if (seen) return seen;
    if (error instanceof Problem && error.status === 401) location.assign("/sign-in");
    throw error;
  }
}

async function worksOffline(line) {
  if (!navigator.serviceWorker) {
    line.textContent = t("needsSecure");
    return;
  }
  await navigator.serviceWorker.register("/crew/sw.js");
  await navigator.serviceWorker.ready;
  line.textContent = t("offlineReady");
}

async function start() {
  const where = campaignHere();
  const crew = new Crew(where, await look(where));
  hold();
  await crew.outbox.load();
  document.body.dataset.ready = "true";
  crew.outbox.send();
  crew.listen();
  crew.position.resume();
  await worksOffline(crew.offline).catch(() => (crew.offline.textContent = t("notOfflineReady")));
}

start().catch((error) => {
  const words = error instanceof Unreachable || error.name === "TimeoutError" ? t("neverSeen") : wordsOf(error);
  document.body.replaceChildren(header(t("openCrew"), ""), h("main", { class: "narrow" }, h("p", { role: "alert" }, words)), sayingLine());
});
