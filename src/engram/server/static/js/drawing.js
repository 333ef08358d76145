// Drawing a polygon on a map, by mouse, finger or keyboard.

/** Corners set one by one; finished by the first corner again, a double click, Enter or a button. */
export class Drawing {
  constructor(area, { changed, done }) {
    this.area = area;
    this.told = { changed, done };
    this.corners = [];
    this.shape = L.polygon([], { className: "drawn", weight: 3 }).addTo(area.map);
    this.dots = L.layerGroup().addTo(area.map);
    area.taker = this;
    area.element.classList.add("is-drawing");
    area.map.doubleClickZoom.disable();
    this._twice = () => this.finish();
    area.map.on("dblclick", this._twice);
  }

  get ready() {
    return this.corners.length >= 3;
  }

  point(corner) {
    if (this.ready && this._isFirst(corner)) {
      this.finish();
      return;
    }
    const last = this.corners.at(-1);
    if (last && last[0] === corner[0] && last[1] === corner[1]) return;
    this.corners.push(corner);
    this.shape.setLatLngs(this.corners);
    this.dots.addLayer(L.circleMarker(corner, { radius: 5, className: "drawn", interactive: false }));
    this.told.changed?.(this.corners);
  }

  _isFirst(corner) {
    const { map } = this.area;
    const apart = map.latLngToContainerPoint(corner).distanceTo(map.latLngToContainerPoint(this.corners[0]));
    return apart < 10;
  }

  undo() {
    this.corners.pop();
    this.shape.setLatLngs(this.corners);
    const dots = this.dots.getLayers();
    if (dots.length) this.dots.removeLayer(dots.at(-1));
    this.told.changed?.(this.corners);
  }

  finish() {
    if (!this.ready) return;
    const { corners } = this;
    this.stop(corners);
  }

  /** End; without corners nothing was drawn. */
  stop(corners = null) {
    this.shape.remove();
    this.dots.remove();
    this.area.taker = null;
    this.area.element.classList.remove("is-drawing");
    this.area.map.off("dblclick", this._twice);
    setTimeout(() => this.area.map.doubleClickZoom.enable(), 0);
    this.told.done(corners);
  }
}
