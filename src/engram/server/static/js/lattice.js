// Where cells lie: on Earth, by the degrees of some corners, or on a plain grid.

/** Latitude and longitude of corners of cells; on a plain grid, minus the row and the column. */
export class Lattice {
  constructor(rows, cols, known = null) {
    this.rows = rows;
    this.cols = cols;
    this.onEarth = known !== null;
    this.nodes = known ?? {
      rows: [0, rows],
      cols: [0, cols],
      lat: [[0, 0], [-rows, -rows]],
      lon: [[0, cols], [0, cols]],
    };
  }

  /** [lat, lon] of a corner; row and column may be fractions, and lie outside. */
  at(row, col) {
    const { rows, cols, lat, lon } = this.nodes;
    const i = interval(rows, row);
    const j = interval(cols, col);
    const u = (row - rows[i]) / (rows[i + 1] - rows[i]);
    const v = (col - cols[j]) / (cols[j + 1] - cols[j]);
    return [bilinear(lat, i, j, u, v), bilinear(lon, i, j, u, v)];
  }

  centre(cell) {
    return this.at(cell[0] + 0.5, cell[1] + 0.5);
  }

  outline(cell) {
    const [r, c] = cell;
    return [this.at(r, c), this.at(r, c + 1), this.at(r + 1, c + 1), this.at(r + 1, c)];
  }

  /** [row, col] of a point as fractions, by Newton steps from the middle. */
  fraction(lat, lon) {
    let row = this.rows / 2;
    let col = this.cols / 2;
    for (let step = 0; step < 12; step++) {
      const here = this.at(row, col);
      const down = this.at(row + 1, col);
      const right = this.at(row, col + 1);
      const a = down[0] - here[0], b = right[0] - here[0];
      const c = down[1] - here[1], d = right[1] - here[1];
      const det = a * d - b * c;
      const dy = lat - here[0], dx = lon - here[1];
      const moveRow = (d * dy - b * dx) / det;
      const moveCol = (a * dx - c * dy) / det;
      row += moveRow;
      col += moveCol;
      if (Math.abs(moveRow) + Math.abs(moveCol) < 1e-6) break;
    }
    return [row, col];
  }

  /** The cell at a point, or null outside. */
  cellAt(lat, lon) {
    const [row, col] = this.fraction(lat, lon).map(Math.floor);
    return row >= 0 && col >= 0 && row < this.rows && col < this.cols ? [row, col] : null;
  }

  bounds() {
    const lat = this.nodes.lat.flat(), lon = this.nodes.lon.flat();
    return [
      [Math.min(...lat), Math.min(...lon)],
      [Math.max(...lat), Math.max(...lon)],
    ];
  }

  /** Cells whose centre lies in a polygon of [lat, lon]. */
  cellsIn(polygon) {
    const corners = polygon.map(([lat, lon]) => this.fraction(lat, lon));
    const between = (values, most) => [
      Math.max(0, Math.floor(Math.min(...values))),
      Math.min(most, Math.ceil(Math.max(...values))),
    ];
    const [top, bottom] = between(corners.map((p) => p[0]), this.rows);
    const [left, right] = between(corners.map((p) => p[1]), this.cols);
    const found = [];
    for (let r = top; r < bottom; r++) {
      for (let c = left; c < right; c++) {
        if (inside(corners, r + 0.5, c + 0.5)) found.push([r, c]);
      }
    }
    return found;
  }
}

function interval(nodes, value) {
  let low = 0, high = nodes.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (nodes[middle] <= value) low = middle;
    else high = middle - 1;
  }
  return low;
}

function bilinear(table, i, j, u, v) {
  return (
    (1 - u) * ((1 - v) * table[i][j] + v * table[i][j + 1]) +
    u * ((1 - v) * table[i + 1][j] + v * table[i + 1][j + 1])
  );
}

function inside(polygon, y, x) {
  let within = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
    const [yi, xi] = polygon[i];
    const [yj, xj] = polygon[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) within = !within;
  }
  return within;
}

const RADIUS = 6371008.8;
const radians = (degrees) => (degrees * Math.PI) / 180;

/** Metres between two points on Earth. */
export function distance([lat1, lon1], [lat2, lon2]) {
  const a =
    Math.sin(radians(lat2 - lat1) / 2) ** 2 +
    Math.cos(radians(lat1)) * Math.cos(radians(lat2)) * Math.sin(radians(lon2 - lon1) / 2) ** 2;
  return 2 * RADIUS * Math.asin(Math.min(1, Math.sqrt(a)));
}

/** Degrees from north, clockwise, in which one sets out from one point to another. */
export function bearing([lat1, lon1], [lat2, lon2]) {
  const y = Math.sin(radians(lon2 - lon1)) * Math.cos(radians(lat2));
  const x =
    Math.cos(radians(lat1)) * Math.sin(radians(lat2)) -
    Math.sin(radians(lat1)) * Math.cos(radians(lat2)) * Math.cos(radians(lon2 - lon1));
  return ((Math.atan2(y, x) * 180) / Math.PI + 360) % 360;
}
