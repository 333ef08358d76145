// All cells of an area on two canvases: what is believed below, what is known above.
// One pixel per cell is kept as an image and stretched, so that 100,000 cells cost what ten do.

import { BLANK, CLOSED, css, FIND, limits, RAMP, WAITING } from "./colours.js";

const LINES_FROM = 7; // pixels of a cell from which on its borders are drawn
const SIGNS_FROM = 9; // ... from which on signs are drawn instead of colours

function picture(cols, rows) {
  const canvas = document.createElement("canvas");
  canvas.width = cols;
  canvas.height = rows;
  return canvas;
}

export const CellsLayer = L.Layer.extend({
  initialize(lattice) {
    this.lattice = lattice;
    const { rows, cols } = lattice;
    this._belief = picture(cols, rows);
    this._state = picture(cols, rows);
    this._scenery = { finds: [], blanks: [], waiting: [], tours: [], suggestions: [] };
    this._shown = { belief: false, visits: true, tours: true };
    this.cursor = null;
    this.marked = null;
  },

  onAdd(map) {
    const pane = map.getPane("overlayPane");
    this._below = L.DomUtil.create("canvas", "cells-below leaflet-zoom-animated", pane);
    this._above = L.DomUtil.create("canvas", "cells-above leaflet-zoom-animated", pane);
    this._map = map;
    this.draw();
  },

  onRemove() {
    cancelAnimationFrame(this._frame);
    this._below.remove();
    this._above.remove();
  },

  getEvents() {
    const soon = () => this.redraw();
    return { move: soon, viewreset: soon, zoomend: soon, resize: soon, zoomanim: this._animate };
  },

  /** A table of numbers (row by row), or null for none; limits from low to high. */
  setBelief(values, low, high) {
    this._shown.belief = values !== null;
    if (values) this._belief = this._coloured(values, low, high);
    this.redraw();
  },

  _coloured(values, low, high) {
    const { rows, cols } = this.lattice;
    const canvas = picture(cols, rows);
    const context = canvas.getContext("2d");
    const data = context.createImageData(cols, rows);
    const ends = low === undefined ? limits(values) : [low, high];
    const scale = 255 / (ends[1] - ends[0]);
    for (let i = 0; i < values.length; i++) {
      if (!Number.isFinite(values[i])) continue;
      const at = Math.max(0, Math.min(255, Math.round((values[i] - ends[0]) * scale)));
      data.data.set(RAMP[at], 4 * i);
      data.data[4 * i + 3] = 255;
    }
    context.putImageData(data, 0, 0);
    return canvas;
  },

  /** What is known: {finds, blanks, waiting} as cells, closed as numbers, tours, suggestions. */
  setScenery(scenery) {
    this._scenery = { ...this._scenery, ...scenery };
    const { rows, cols } = this.lattice;
    const context = this._state.getContext("2d", { willReadFrequently: true });
    const data = context.createImageData(cols, rows);
    this._closed = picture(cols, rows);
    const shut = this._closed.getContext("2d");
    const walls = shut.createImageData(cols, rows);
    for (const i of this._scenery.closed ?? []) {
      walls.data.set([...CLOSED, 190], 4 * i);
    }
    shut.putImageData(walls, 0, 0);
    const put = (cells, colour) => {
      for (const [r, c] of cells) data.data.set([...colour, 255], 4 * (r * cols + c));
    };
    put(this._scenery.waiting, WAITING);
    put(this._scenery.blanks, BLANK);
    put(this._scenery.finds, FIND);
    for (const { colour, cells } of this._scenery.tours) put(cells, colour);
    context.putImageData(data, 0, 0);
    this.redraw();
  },

  show(parts) {
    Object.assign(this._shown, parts);
    this.redraw();
  },

  redraw() {
    if (!this._map || this._frame) return;
    this._frame = requestAnimationFrame(() => {
      this._frame = 0;
      this.draw();
    });
  },

  _animate(event) {
    const map = this._map;
    const scale = map.getZoomScale(event.zoom, this._zoom);
    const offset = map._latLngToNewLayerPoint(this._corner, event.zoom, event.center);
    for (const canvas of [this._below, this._above]) {
      L.DomUtil.setTransform(canvas, offset, scale);
    }
  },

  draw() {
    const map = this._map;
    if (!map || !map._loaded) return;
    const size = map.getSize();
    const dense = Math.min(2, window.devicePixelRatio || 1);
    const origin = map.containerPointToLayerPoint([0, 0]);
    this._zoom = map.getZoom();
    this._corner = map.containerPointToLatLng([0, 0]);
    for (const canvas of [this._below, this._above]) {
      if (canvas.width !== Math.round(size.x * dense)) canvas.width = Math.round(size.x * dense);
      if (canvas.height !== Math.round(size.y * dense)) canvas.height = Math.round(size.y * dense);
      canvas.style.width = `${size.x}px`;
      canvas.style.height = `${size.y}px`;
      L.DomUtil.setTransform(canvas, origin, 1);
    }
    this._points = this._projected();
    const below = cleared(this._below);
    const above = cleared(this._above);
    if (this._shown.belief) this._stretch(below, this._belief, dense);
    if (this._closed) this._stretch(above, this._closed, dense);
    above.setTransform(dense, 0, 0, dense, 0, 0);
    const wide = this._width();
    if (wide >= LINES_FROM) this._lines(above, size);
    if (this._shown.visits && wide < SIGNS_FROM) this._stretch(above, this._state, dense);
    above.setTransform(dense, 0, 0, dense, 0, 0);
    if (this._shown.visits && wide >= SIGNS_FROM) this._signs(above, size, wide);
    if (this.marked) this._frames(above, this.marked, 1);
    if (this.cursor) this._frames(above, [this.cursor], 3);
    if (this._shown.tours) this._ways(above, wide);
  },

  /** Where a corner is on the screen, in fractions of pixels. */
  _point(row, col) {
    const map = this._map;
    return map.project(this.lattice.at(row, col)).subtract(map.getPixelOrigin()).add(map._getMapPanePos());
  },

  /** Corners of the lattice on the screen: as few of them as give every other one. */
  _projected() {
    const { rows, cols } = this.lattice.nodes;
    const all = rows.map((r) => cols.map((c) => this._point(r, c)));
    for (let parts = 1; ; parts *= 2) {
      const down = chosen(rows.length, parts), across = chosen(cols.length, parts);
      const whole = down.length === rows.length && across.length === cols.length;
      if (whole || error(rows, cols, all, down, across) < 0.6) {
        return { rows: down.map((i) => rows[i]), cols: across.map((j) => cols[j]), at: down.map((i) => across.map((j) => all[i][j])) };
      }
    }
  },

  /** Pixels of a cell, about: of the narrower side. */
  _width() {
    const row = this.lattice.rows / 2, col = this.lattice.cols / 2;
    const here = this._point(row, col);
    return Math.min(here.distanceTo(this._point(row, col + 1)), here.distanceTo(this._point(row + 1, col)));
  },

  /** An image of one pixel per cell, stretched over the cells. */
  _stretch(context, image, dense) {
    const { rows, cols, at } = this._points;
    const size = this._map.getSize();
    context.imageSmoothingEnabled = false;
    for (let i = 0; i + 1 < rows.length; i++) {
      for (let j = 0; j + 1 < cols.length; j++) {
        const a = at[i][j], b = at[i][j + 1], c = at[i + 1][j], d = at[i + 1][j + 1];
        if (away(a, b, c, d, size)) continue;
        const w = cols[j + 1] - cols[j], h = rows[i + 1] - rows[i];
        const ax = (b.x - a.x) / w, ay = (b.y - a.y) / w;
        const bx = (c.x - a.x) / h, by = (c.y - a.y) / h;
        context.setTransform(dense * ax, dense * ay, dense * bx, dense * by, dense * a.x, dense * a.y);
        const over = at.length > 2 ? 0.6 / Math.max(0.01, Math.hypot(ax, ay)) : 0;
        context.drawImage(image, cols[j], rows[i], w, h, 0, 0, w + over, h + over);
      }
    }
  },

  _lines(context, size) {
    const { rows, cols } = this.lattice;
    const seen = this._seen(size);
    context.beginPath();
    const line = (points) => points.forEach((p, k) => (k ? context.lineTo(p.x, p.y) : context.moveTo(p.x, p.y)));
    const across = this._points.cols.filter((c) => c >= 0 && c <= cols);
    const down = this._points.rows.filter((r) => r >= 0 && r <= rows);
    for (let r = seen.top; r <= seen.bottom; r++) line(across.map((c) => this._point(r, c)));
    for (let c = seen.left; c <= seen.right; c++) line(down.map((r) => this._point(r, c)));
    context.strokeStyle = "rgba(127,127,127,0.45)";
    context.lineWidth = 1;
    context.stroke();
  },

  /** Rows and columns that can be seen. */
  _seen(size) {
    const corners = [[0, 0], [size.x, 0], [0, size.y], [size.x, size.y]].map((p) => {
      const { lat, lng } = this._map.containerPointToLatLng(p);
      return this.lattice.fraction(lat, lng);
    });
    const ends = (k, most) => {
      const values = corners.map((p) => p[k]);
      return [
        Math.max(0, Math.floor(Math.min(...values)) - 1),
        Math.min(most, Math.ceil(Math.max(...values)) + 1),
      ];
    };
    const [top, bottom] = ends(0, this.lattice.rows);
    const [left, right] = ends(1, this.lattice.cols);
    return { top, bottom, left, right };
  },

  _signs(context, size, wide) {
    const around = (cells, sign) => {
      for (const cell of cells) {
        const p = this._point(cell[0] + 0.5, cell[1] + 0.5);
        if (p.x > -wide && p.y > -wide && p.x < size.x + wide && p.y < size.y + wide) sign(p);
      }
    };
    const r = Math.min(12, wide * 0.32);
    const { finds, blanks, waiting } = this._scenery;
    around(blanks, (p) => cross(context, p, r * 0.8));
    around(finds, (p) => disc(context, p, r, css(FIND)));
    around(waiting, (p) => pause(context, p, r));
  },

  _ways(context, wide) {
    for (const { colour, cells, start, line, hollow } of this._scenery.tours) {
      const stops = cells.map((cell) => this._point(cell[0] + 0.5, cell[1] + 0.5));
      const before = start ? [this._point(start[0] + 0.5, start[1] + 0.5)] : [];
      const way = line ? line.map((place) => this._map.latLngToContainerPoint(place)) : [...before, ...stops];
      for (const [width, stroke] of [[5, "rgba(255,255,255,0.8)"], [2.5, css(colour)]]) {
        context.beginPath();
        way.forEach((p, k) => (k ? context.lineTo(p.x, p.y) : context.moveTo(p.x, p.y)));
        context.lineWidth = width;
        context.strokeStyle = stroke;
        context.setLineDash(hollow ? [6, 5] : []);
        context.stroke();
      }
      context.setLineDash([]);
      const r = Math.max(8, Math.min(13, wide * 0.42));
      stops.forEach((p, k) => numbered(context, p, r, css(colour), k + 1, hollow));
    }
  },

  _frames(context, cells, width) {
    context.beginPath();
    for (const [r, c] of cells) {
      const corners = [this._point(r, c), this._point(r, c + 1), this._point(r + 1, c + 1), this._point(r + 1, c)];
      corners.forEach((p, k) => (k ? context.lineTo(p.x, p.y) : context.moveTo(p.x, p.y)));
      context.closePath();
    }
    context.lineWidth = width + 2.5;
    context.strokeStyle = "#fff";
    context.stroke();
    context.lineWidth = width;
    context.strokeStyle = "#000";
    context.stroke();
  },
});

/** Which of n nodes cut them into so many parts, about. */
function chosen(n, parts) {
  const found = new Set();
  for (let k = 0; k <= parts; k++) found.add(Math.round((k * (n - 1)) / parts));
  return [...found];
}

/** Pixels that a node is away, at most, from where the patch around it would draw it. */
function error(rows, cols, all, down, across) {
  let most = 0;
  for (let a = 0; a + 1 < down.length; a++) {
    for (let b = 0; b + 1 < across.length; b++) {
      const [top, bottom, left, right] = [down[a], down[a + 1], across[b], across[b + 1]];
      const p = all[top][left], q = all[top][right], r = all[bottom][left];
      for (let i = top; i <= bottom; i++) {
        const u = (rows[i] - rows[top]) / (rows[bottom] - rows[top]);
        for (let j = left; j <= right; j++) {
          const v = (cols[j] - cols[left]) / (cols[right] - cols[left]);
          const x = p.x + v * (q.x - p.x) + u * (r.x - p.x);
          const y = p.y + v * (q.y - p.y) + u * (r.y - p.y);
          most = Math.max(most, Math.abs(x - all[i][j].x), Math.abs(y - all[i][j].y));
        }
      }
    }
  }
  return most;
}

function cleared(canvas) {
  const context = canvas.getContext("2d");
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  return context;
}

function away(a, b, c, d, size) {
  return (
    Math.max(a.x, b.x, c.x, d.x) < 0 || Math.min(a.x, b.x, c.x, d.x) > size.x ||
    Math.max(a.y, b.y, c.y, d.y) < 0 || Math.min(a.y, b.y, c.y, d.y) > size.y
  );
}

function disc(context, p, r, fill) {
  context.beginPath();
  context.arc(p.x, p.y, r, 0, 7);
  context.fillStyle = fill;
  context.fill();
  context.lineWidth = 2;
  context.strokeStyle = "#fff";
  context.stroke();
}

function cross(context, p, r) {
  for (const [width, stroke] of [[5, "#fff"], [2.2, "#222"]]) {
    context.beginPath();
    context.moveTo(p.x - r, p.y - r);
    context.lineTo(p.x + r, p.y + r);
    context.moveTo(p.x + r, p.y - r);
    context.lineTo(p.x - r, p.y + r);
    context.lineWidth = width;
    context.strokeStyle = stroke;
    context.stroke();
  }
}

function pause(context, p, r) {
  for (const [width, stroke] of [[6, "#fff"], [3, css(WAITING)]]) {
    context.beginPath();
    for (const x of [-r * 0.4, r * 0.4]) {
      context.moveTo(p.x + x, p.y - r);
      context.lineTo(p.x + x, p.y + r);
    }
    context.lineWidth = width;
    context.strokeStyle = stroke;
    context.stroke();
  }
}

function numbered(context, p, r, colour, number, hollow) {
  context.beginPath();
  context.rect(p.x - r, p.y - r, 2 * r, 2 * r);
  context.fillStyle = hollow ? "#fff" : colour;
  context.fill();
  context.lineWidth = 2;
  context.strokeStyle = hollow ? colour : "#fff";
  context.stroke();
  context.fillStyle = hollow ? "#000" : "#fff";
  context.font = `bold ${Math.round(r * 1.25)}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(String(number), p.x, p.y + 0.5);
}
