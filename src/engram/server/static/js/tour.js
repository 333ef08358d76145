// The order in which to visit cells: the nearest next, then crossings are undone.

/**
 * Places in a short order from a start (null: from the first of them).
 * apart(a, b) is how far two of them are from each other.
 */
export function tour(places, start, apart) {
  const left = [...places];
  const order = [];
  let here = start;
  while (left.length) {
    let best = 0;
    if (here !== null) {
      for (let i = 1; i < left.length; i++) {
        if (apart(here, left[i]) < apart(here, left[best])) best = i;
      }
    }
    [here] = left.splice(best, 1);
    order.push(here);
  }
  return uncrossed(order, start, apart);
}

function uncrossed(order, start, apart) {
  const far = (a, b) => (a === null || b === undefined ? 0 : apart(a, b));
  let better = order.length < 300;
  for (let round = 0; better && round < 20; round++) {
    better = false;
    for (let i = 0; i < order.length - 1; i++) {
      for (let j = i + 1; j < order.length; j++) {
        const before = i ? order[i - 1] : start;
        const now = far(before, order[i]) + far(order[j], order[j + 1]);
        const then = far(before, order[j]) + far(order[i], order[j + 1]);
        if (then < now - 1e-9) {
          order.splice(i, j - i + 1, ...order.slice(i, j + 1).reverse());
          better = true;
        }
      }
    }
  }
  return order;
}

/** How far two cells are from each other, in cells. */
export const cellsApart = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);
