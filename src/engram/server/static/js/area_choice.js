// The area of a new campaign: drawn, uploaded or a plain grid, with its cells as they would be.

import { call, post } from "./api.js";
import { AreaMap } from "./area_map.js";
import { CellsLayer } from "./cells_layer.js";
import { h, settled, show } from "./dom.js";
import { Drawing } from "./drawing.js";
import { Earth } from "./earth.js";
import { action, field, input, wordsOf } from "./forms.js";
import { Lattice } from "./lattice.js";
import { number, t } from "./strings.js";

const KINDS = ["drawn", "file", "plain"];

/** told: changed() is called when the area has become another, or none. */
export class AreaChoice {
  constructor(box, told) {
    this.box = box;
    this.told = told;
    this.kind = "drawn";
    this.corners = null;
    this.shut = new Set();
    this.words = h("p", { class: "preview-words", role: "status" });
    this.tools = h("div", {});
    this.cellSize = input({ value: "250m", name: "cell-size", maxlength: "30" });
    this.file = input({ type: "file", name: "file", accept: ".geojson,.json,.gpkg,.kml,.zip,.tif,.tiff,.png,.npy,.npz,.csv,.txt" });
    this.pixels = input({ value: "1,1", name: "pixels", pattern: "\\d+,\\d+" });
    this.rows = input({ type: "number", min: "1", max: "2000", value: "16", name: "rows" });
    this.cols = input({ type: "number", min: "1", max: "2000", value: "16", name: "cols" });
    this.look = settled(() => this.preview(), 250);
    for (const one of [this.cellSize, this.file, this.pixels, this.rows, this.cols]) one.addEventListener("input", () => this.look());
    this.whole = h("fieldset", {}, h("legend", {}, t("area")),
      h("div", { class: "kinds" }, KINDS.map((kind) => this.radio(kind))), this.tools, this.words);
    this.choose("drawn");
  }

  radio(kind) {
    const button = h("input", { type: "radio", name: "kind", value: kind, checked: kind === this.kind });
    button.addEventListener("change", () => this.choose(kind));
    return h("label", { class: "tick" }, button, t(`area_${kind}`));
  }

  choose(kind) {
    this.kind = kind;
    this.drawing?.stop();
    this.ready = false;
    this.map?.map.remove();
    this.overlay = null;
    this.map = null;
    const fields = {
      drawn: () => [this.goTo(), field(t("cellSize"), this.cellSize, t("cellSizeHint")), this.drawTools()],
      file: () => [field(t("file"), this.file, t("fileHint")), field(t("cellSize"), this.cellSize, t("maskHint")), field(t("pixels"), this.pixels)],
      plain: () => [h("div", { class: "pair" }, field(t("rows"), this.rows), field(t("cols"), this.cols)), this.drawTools()],
    };
    show(this.tools, fields[kind]());
    if (kind !== "plain") this.earth();
    this.preview();
  }

  element() {
    const element = h("div", { id: "map", class: "map", tabindex: "0", role: "application", "aria-label": t("mapName"), "aria-describedby": "draw-help" });
    show(this.box, element, h("p", { id: "draw-help", class: "hidden" }, t(this.kind === "plain" ? "mapHelp" : "earthHelp")));
    return element;
  }

  earth() {
    this.map?.map.remove();
    this.overlay = null;
    this.map = new Earth(this.element());
  }

  goTo() {
    const where = input({ name: "where", placeholder: "52.52, 13.40" });
    return h("div", { class: "go-to" }, field(t("goTo"), where, t("goToHint")), action(t("go"), () => {
      const [lat, lon, wide] = where.value.split(/[\s,;]+/).filter(Boolean).map(Number);
      if (Number.isFinite(lat) && Number.isFinite(lon)) this.map.map.setView([lat, lon], wide || 13, { animate: false });
    }, { id: "go" }));
  }

  drawTools() {
    const box = h("div", {});
    const rest = () => show(box, h("p", { class: "actions" },
      action(t(this.kind === "plain" ? "drawClosed" : this.corners ? "drawAgain" : "drawArea"), begin, { id: "draw" })));
    const working = (n) => show(box, h("p", {}, t(this.kind === "plain" ? "drawHint" : "earthDrawHint", { n })), h("p", { class: "actions" },
      action(t("finishDrawing"), () => this.drawing?.finish(), { disabled: n < 3, id: "finish-drawing" }),
      action(t("undoCorner"), () => this.drawing?.undo(), { class: "quiet", disabled: n < 1 }),
      action(t("stopDrawing"), () => this.drawing?.stop(), { class: "quiet" })));
    const begin = () => {
      if (this.kind === "drawn") this.clear();
      this.map.element.focus();
      this.drawing = new Drawing(this.map, {
        changed: (corners) => working(corners.length),
        done: (corners) => {
          this.drawing = null;
          if (corners) this.drawn(corners);
          rest();
        },
      });
      working(0);
    };
    rest();
    return box;
  }

  drawn(corners) {
    if (this.kind === "drawn") this.corners = corners;
    else {
      for (const [r, c] of this.map.lattice.cellsIn(corners)) {
        const i = r * this.map.lattice.cols + c;
        if (!this.shut.delete(i)) this.shut.add(i);
      }
    }
    this.preview();
  }

  clear() {
    this.overlay?.remove();
    this.outline?.remove();
    this.overlay = null;
    this.corners = null;
    this.set(false, "");
  }

  set(ready, words) {
    this.ready = ready;
    this.words.textContent = words;
    this.told.changed();
  }

  get geojson() {
    const ring = [...this.corners, this.corners[0]].map(([lat, lon]) => [lon, lat]);
    return { type: "Polygon", coordinates: [ring] };
  }

  async preview() {
    const asked = (this.asked = Symbol("preview"));
    const late = () => asked !== this.asked;
    try {
      if (this.kind === "plain") return this.plain();
      if (this.kind === "drawn" && !this.corners) return this.set(false, t("drawFirst"));
      if (this.kind === "file" && !this.file.files.length) return this.set(false, t("fileFirst"));
      this.set(false, t("computing"));
      const found = this.kind === "drawn"
        ? await post("/areas/drawn", { geojson: this.geojson, cell_size: this.cellSize.value.trim() })
        : await call("POST", "/areas/preview", { form: this.form() });
      if (late()) return undefined;
      this.cells(new Lattice(found.area.rows, found.area.cols, found.lattice), found.closed);
      return this.set(found.open > 0, [found.words, ...found.notes].join(". "));
    } catch (error) {
      return late() ? undefined : this.set(false, wordsOf(error));
    }
  }

  /** The upload as a form; more are fields of a campaign. */
  form(more = {}) {
    const form = new FormData();
    form.set("file", this.file.files[0]);
    form.set("cell_size", this.cellSize.value.trim());
    for (const [name, value] of Object.entries(more)) form.set(name, value);
    if (!("terms" in more)) form.set("cell", this.pixels.value);
    return form;
  }

  plain() {
    const rows = Math.min(2000, Number(this.rows.value) | 0), cols = Math.min(2000, Number(this.cols.value) | 0);
    if (rows < 1 || cols < 1) return this.set(false, t("sizeFirst"));
    if (!this.map?.lattice || this.map.lattice.rows !== rows || this.map.lattice.cols !== cols) {
      this.shut.clear();
      this.grid(new Lattice(rows, cols));
    }
    this.map.cells.setScenery({ closed: [...this.shut] });
    return this.set(this.shut.size < rows * cols, t("plainCells", { n: number(rows * cols), open: number(rows * cols - this.shut.size) }));
  }

  grid(lattice) {
    this.map?.map.remove();
    this.overlay = null;
    this.map = new AreaMap(this.element(), lattice, { pick: () => {} });
  }

  /** Show cells: on the map of the Earth, or on a grid of their own. */
  cells(lattice, closed) {
    if (!lattice.onEarth) {
      this.grid(lattice);
      this.map.cells.setScenery({ closed });
      return;
    }
    if (this.map?.lattice) this.earth();
    this.overlay?.remove();
    this.outline?.remove();
    this.overlay = new CellsLayer(lattice).addTo(this.map.map);
    this.overlay.setScenery({ closed });
    if (this.corners && this.kind === "drawn") this.outline = L.polygon(this.corners, { className: "drawn", weight: 3, interactive: false }).addTo(this.map.map);
    this.map.map.fitBounds(lattice.bounds(), { padding: [30, 30], animate: false });
  }

  /** Create the campaign of this area. */
  create(terms) {
    if (this.kind === "drawn") {
      return post("/campaigns", { ...terms, area: { geojson: this.geojson, cell_size: this.cellSize.value.trim() } });
    }
    if (this.kind === "plain") {
      const { rows, cols } = this.map.lattice;
      const closed = [...this.shut].map((i) => [Math.floor(i / cols), i % cols]);
      return post("/campaigns", { ...terms, size: [rows, cols], closed });
    }
    const cell = this.pixels.value.split(",").map(Number);
    const whole = this.cellSize.value.trim() ? terms : { ...terms, cell };
    return call("POST", "/areas/campaigns", { form: this.form({ terms: JSON.stringify(whole) }) });
  }
}
