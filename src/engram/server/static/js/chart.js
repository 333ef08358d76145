// Curves as drawings: finds over the measurements, and what was left with its interval.

import { s } from "./dom.js";
import { number, t } from "./strings.js";

const WIDE = 340, TALL = 150, LEFT = 36, BOTTOM = 24, TOP = 8, RIGHT = 8;

function ticks(most) {
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000].find((n) => most / n <= 4.5) ?? most / 4;
  const found = [];
  for (let v = 0; v <= most + 1e-9; v += step) found.push(v);
  return found;
}

function frame(title, mostX, mostY) {
  const x = (v) => LEFT + (v / mostX) * (WIDE - LEFT - RIGHT);
  const y = (v) => TALL - BOTTOM - (v / mostY) * (TALL - TOP - BOTTOM);
  const picture = s("svg", { viewBox: `0 0 ${WIDE} ${TALL}`, class: "chart", role: "img", "aria-label": title });
  for (const v of ticks(mostY)) {
    picture.append(
      s("line", { x1: LEFT, x2: WIDE - RIGHT, y1: y(v), y2: y(v), class: "chart-grid" }),
      s("text", { x: LEFT - 5, y: y(v) + 4, "text-anchor": "end" }, number(v)),
    );
  }
  for (const v of ticks(mostX)) {
    picture.append(s("text", { x: x(v), y: TALL - 7, "text-anchor": "middle" }, number(v)));
  }
  return { picture, x, y };
}

/** Finds over the measurements: a staircase. */
export function findsChart({ finds }) {
  const last = finds.at(-1) ?? { told: 0, found: 0 };
  const title = t("findsChart", { found: last.found, told: last.told });
  const { picture, x, y } = frame(title, Math.max(1, last.told), Math.max(1, last.found));
  const path = finds.map((p, k) => (k ? `H${x(p.told)}V${y(p.found)}` : `M${x(p.told)},${y(p.found)}`));
  picture.append(s("path", { d: path.join("") || "M0,0", class: "chart-line" }));
  return picture;
}

/** What was left to find, expected and between which bounds. */
export function leftChart({ left, finds }) {
  if (!left.length) return null;
  const last = left.at(-1);
  const title = t("leftChart", {
    expected: number(last.expected), low: number(last.low), high: number(last.high), level: number(100 * last.level),
  });
  const mostX = Math.max(1, finds.at(-1)?.told ?? 1);
  const { picture, x, y } = frame(title, mostX, Math.max(1, ...left.map((p) => p.high)));
  const up = left.map((p) => `${x(p.told)},${y(p.high)}`);
  const back = left.map((p) => `${x(p.told)},${y(p.low)}`).reverse();
  picture.append(
    s("polygon", { points: [...up, ...back].join(" "), class: "chart-band" }),
    s("polyline", { points: left.map((p) => `${x(p.told)},${y(p.expected)}`).join(" "), class: "chart-line" }),
    ...left.map((p) => s("circle", { cx: x(p.told), cy: y(p.expected), r: 2.5, class: "chart-dot" })),
  );
  return picture;
}
