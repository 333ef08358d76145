// Colours that everybody can tell apart, in the dark and in the sun.

// Cividis at nine places: even in lightness, the same for colour-blind eyes.
const STOPS = [
  [0, 32, 77], [18, 53, 112], [60, 77, 110], [92, 103, 111], [124, 123, 120],
  [157, 146, 118], [193, 172, 104], [229, 200, 80], [255, 234, 70],
];

/** 256 colours as [r, g, b]. */
export const RAMP = Array.from({ length: 256 }, (_, i) => {
  const at = (i / 255) * (STOPS.length - 1);
  const j = Math.min(STOPS.length - 2, Math.floor(at));
  return STOPS[j].map((low, k) => Math.round(low + (at - j) * (STOPS[j + 1][k] - low)));
});

export const css = ([r, g, b]) => `rgb(${r},${g},${b})`;

export const FIND = [213, 94, 0];
export const BLANK = [255, 255, 255];
export const CLOSED = [90, 90, 96];
export const WAITING = [204, 121, 167];

const CREWS = [
  [0, 114, 178], [0, 158, 115], [204, 121, 167], [86, 180, 233], [230, 159, 0], [120, 94, 240],
];

/** The colour of a crew: by its place among all names. */
export function crewColour(names, name) {
  return CREWS[Math.max(0, names.indexOf(name)) % CREWS.length];
}

/** Lowest and highest of the numbers of a table, without what is none. */
export function limits(values) {
  let low = Infinity, high = -Infinity;
  for (const v of values) {
    if (!Number.isFinite(v)) continue;
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return low > high ? [0, 1] : low === high ? [low, low + 1e-9] : [low, high];
}
