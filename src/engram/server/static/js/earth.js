// An empty map of the Earth to draw on: coastlines and degrees, from this server alone.

import { emptyMap } from "./area_map.js";

/** Coastlines as rings of [lat, lon], of a TopoJSON file. */
function rings({ arcs, transform, objects }) {
  const lines = arcs.map((arc) => {
    let x = 0, y = 0;
    return arc.map(([dx, dy]) => {
      x += dx;
      y += dy;
      return [y * transform.scale[1] + transform.translate[1], x * transform.scale[0] + transform.translate[0]];
    });
  });
  const joined = (ring) => ring.flatMap((i) => (i < 0 ? [...lines[~i]].reverse() : lines[i]));
  const polygons = objects.land.geometries.flatMap((one) => (one.type === "Polygon" ? [one.arcs] : one.arcs));
  return polygons.map((polygon) => polygon.map(joined));
}

async function coast(map) {
  const response = await fetch("/static/vendor/world-atlas/land-110m.json");
  const land = rings(await response.json());
  if (!map.getContainer().isConnected) return; // another map was chosen meanwhile
  const renderer = L.canvas({ padding: 0.5 });
  L.polygon(land, { renderer, className: "land", interactive: false, weight: 1, color: "#7a8580", fillColor: "#7a8580", fillOpacity: 0.18 }).addTo(map);
}

const STEPS = [30, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005];

/** Lines of latitude and longitude with their numbers, as many as can be read. */
const Degrees = L.Layer.extend({
  onAdd(map) {
    this._canvas = L.DomUtil.create("canvas", "cells-above", map.getPane("overlayPane"));
    this._map = map;
    this._draw();
  },
  onRemove() {
    this._canvas.remove();
  },
  getEvents() {
    return { move: this._draw, zoomend: this._draw, resize: this._draw };
  },
  _draw() {
    const map = this._map, size = map.getSize();
    this._canvas.width = size.x;
    this._canvas.height = size.y;
    L.DomUtil.setPosition(this._canvas, map.containerPointToLayerPoint([0, 0]));
    const context = this._canvas.getContext("2d");
    const bounds = map.getBounds();
    const span = bounds.getEast() - bounds.getWest();
    const step = STEPS.find((one) => span / one >= size.x / 220) ?? STEPS.at(-1);
    const digits = Math.max(0, -Math.floor(Math.log10(step)));
    context.strokeStyle = "rgba(127,127,127,0.4)";
    context.fillStyle = "rgba(127,127,127,1)";
    context.font = "11px system-ui, sans-serif";
    for (let lon = Math.ceil(bounds.getWest() / step) * step; lon < bounds.getEast(); lon += step) {
      const { x } = map.latLngToContainerPoint([bounds.getSouth(), lon]);
      rule(context, x, 0, x, size.y);
      context.fillText(`${lon.toFixed(digits)}°`, x + 3, size.y - 26);
    }
    for (let lat = Math.ceil(bounds.getSouth() / step) * step; lat < bounds.getNorth(); lat += step) {
      const { y } = map.latLngToContainerPoint([lat, bounds.getWest()]);
      rule(context, 0, y, size.x, y);
      context.fillText(`${lat.toFixed(digits)}°`, 4, y - 3);
    }
  },
});

function rule(context, x1, y1, x2, y2) {
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
}

const PANS = { ArrowUp: [0, -60], ArrowDown: [0, 60], ArrowLeft: [-60, 0], ArrowRight: [60, 0] };

/** A map of the Earth that a drawing can be made on; by keyboard, its middle is the pen. */
export class Earth {
  constructor(element) {
    this.element = element;
    this.taker = null;
    this.map = emptyMap(element, true);
    this.map.setView([30, 10], 2);
    new Degrees().addTo(this.map);
    coast(this.map).catch(() => {}); // without coastlines there are still degrees
    this.map.on("click", ({ latlng }) => this.taker?.point([latlng.lat, latlng.lng]));
    element.addEventListener("keydown", (event) => this._key(event));
  }

  _key(event) {
    if (event.target !== this.element || event.ctrlKey || event.altKey || event.metaKey) return;
    const { lat, lng } = this.map.getCenter();
    if (PANS[event.key]) this.map.panBy(PANS[event.key], { animate: false });
    else if (event.key === "+" || event.key === "=") this.map.zoomIn(1);
    else if (event.key === "-") this.map.zoomOut(1);
    else if (event.key === " ") this.taker?.point([lat, lng]);
    else if (event.key === "Enter") this.taker?.finish();
    else if (event.key === "Escape") this.taker?.stop();
    else return;
    event.preventDefault();
  }
}
