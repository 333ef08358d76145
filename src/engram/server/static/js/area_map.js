// A map of an area: on Earth, or on a plain grid; by mouse, by touch and by keyboard.

import { CellsLayer } from "./cells_layer.js";
import { t } from "./strings.js";

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** An empty map in an element. */
export function emptyMap(element, onEarth) {
  const map = L.map(element, {
    crs: onEarth ? L.CRS.EPSG3857 : L.CRS.Simple,
    minZoom: onEarth ? 1 : -6,
    maxZoom: onEarth ? 22 : 7,
    zoomSnap: 0.25,
    zoomDelta: 0.5,
    wheelPxPerZoomLevel: 120,
    keyboard: false,
    attributionControl: false,
    zoomControl: false,
    fadeAnimation: false,
  });
  L.control.zoom({ position: "topright", zoomInTitle: t("zoomIn"), zoomOutTitle: t("zoomOut") }).addTo(map);
  if (onEarth) L.control.scale({ imperial: false }).addTo(map);
  const sizes = new ResizeObserver(() => map.invalidateSize({ animate: false }));
  sizes.observe(element);
  map.on("unload", () => sizes.disconnect());
  return map;
}

/** A map with the cells of an area, and a cell that the arrow keys move. */
export class AreaMap {
  constructor(element, lattice, { pick, moved, margin = 12 }) {
    this.margin = margin; // pixels at the left that something else stands on
    this.element = element;
    this.lattice = lattice;
    this.told = { pick, moved };
    this.map = emptyMap(element, lattice.onEarth);
    this.fit();
    this.cells = new CellsLayer(lattice).addTo(this.map);
    this.taker = null; // a tool that takes clicks and keys while something is drawn
    this.map.on("click", ({ latlng }) => this._clicked(latlng));
    element.addEventListener("keydown", (event) => this._key(event));
  }

  fit() {
    const left = this.element.clientWidth > 700 ? this.margin : 12;
    this.map.fitBounds(this.lattice.bounds(), { paddingTopLeft: [left, 12], paddingBottomRight: [12, 12], animate: false });
  }

  _clicked({ lat, lng }) {
    if (this.taker) {
      this.taker.point([lat, lng]);
      return;
    }
    const cell = this.lattice.cellAt(lat, lng);
    if (cell) this.select(cell);
  }

  select(cell) {
    this.cells.cursor = cell;
    this.cells.redraw();
    this.told.pick(cell);
  }

  _key(event) {
    if (event.target !== this.element || event.ctrlKey || event.altKey || event.metaKey) return;
    const step = STEPS[event.key];
    if (step && event.shiftKey) this.map.panBy([80 * step[1], 80 * step[0]], { animate: false });
    else if (step) this._move(step);
    else if (event.key === "+" || event.key === "=") this.map.zoomIn();
    else if (event.key === "-") this.map.zoomOut();
    else if (event.key === "0") this.fit();
    else if (event.key === "Enter" || event.key === " ") this._enter(event);
    else if (event.key === "Escape" && this.taker) this.taker.stop();
    else return;
    event.preventDefault();
  }

  _enter(event) {
    const cell = this.cells.cursor;
    if (!cell) this._move([0, 0]);
    else if (!this.taker) this.select(cell);
    else if (event.key === "Enter" && this.taker.ready) this.taker.finish();
    else this.taker.point(this.lattice.centre(cell));
  }

  _move([down, right]) {
    const { rows, cols } = this.lattice;
    const [r, c] = this.cells.cursor ?? [rows >> 1, cols >> 1];
    const cell = [Math.max(0, Math.min(rows - 1, r + down)), Math.max(0, Math.min(cols - 1, c + right))];
    this.cells.cursor = cell;
    this.cells.redraw();
    if (!this.map.getBounds().contains(this.lattice.centre(cell))) {
      this.map.panTo(this.lattice.centre(cell), { animate: false });
    }
    this.told.moved?.(cell);
  }
}
