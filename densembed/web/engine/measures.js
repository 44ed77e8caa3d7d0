// @ts-check
/**
 * Numbers of receptive fields, as in `densembed/fields/measures.py`.
 *
 * @import { FieldOptions, Network } from "./network.js"
 */

const MASS = 0.9;

/**
 * The percentile of some numbers, interpolated linearly between the nearest two.
 *
 * @param {ArrayLike<number>} values
 * @param {number} percent
 */
export function percentile(values, percent) {
  const some = new Float64Array(values);
  const place = ((some.length - 1) * percent) / 100;
  const below = Math.floor(place);
  select(some, below);
  let above = Infinity;
  for (let at = below + 1; at < some.length; at++) above = Math.min(above, some[at]);
  return above === Infinity ? some[below] : some[below] + (place - below) * (above - some[below]);
}

/**
 * Reorders numbers until the one at `place` is where sorting would put it, with no larger ones
 * before it and no smaller ones behind: several times faster than sorting.
 *
 * @param {Float64Array} values
 * @param {number} place
 */
function select(values, place) {
  for (let left = 0, right = values.length - 1; left < right; ) {
    const pivot = values[(left + right) >> 1];
    let i = left;
    let j = right;
    while (i <= j) {
      while (values[i] < pivot) i++;
      while (values[j] > pivot) j--;
      if (i <= j) {
        const swapped = values[i];
        values[i++] = values[j];
        values[j--] = swapped;
      }
    }
    if (place <= j) right = j;
    else if (place >= i) left = i;
    else return;
  }
}

/**
 * The second field minus the first.
 *
 * @param {Float32Array} first
 * @param {Float32Array} second
 */
export function difference(first, second) {
  return second.map((value, at) => value - first[at]);
}

/**
 * @typedef {object} Measures in pixels
 * @property {[number, number]} centre of mass (t, u)
 * @property {number} spread root mean square distance from the centre
 * @property {number} entropy in bits
 * @property {number} area number of pixels with 90 % of the mass
 * @property {number} variation total variation distance from the field before
 */

/**
 * Measures of a field of `width` × `height` cells over an input.
 *
 * @param {Float32Array} values
 * @param {Float32Array} before the field before training
 * @param {{ width: number, height: number }} cells
 * @param {number[]} inputShape (channels, height, width)
 * @returns {Measures}
 */
export function measure(values, before, { width, height }, [, rows, columns]) {
  const along = columns / width;
  const down = rows / height;
  const total = sum(values) || 1;
  const start = sum(before) || 1;
  let t = 0, u = 0, entropy = 0, variation = 0;
  for (let y = 0, at = 0; y < height; y++)
    for (let x = 0; x < width; x++, at++) {
      const mass = values[at] / total;
      t += mass * (x + 0.5) * along;
      u += mass * (y + 0.5) * down;
      if (mass > 0) entropy -= mass * Math.log2(mass / (along * down));
      variation += Math.abs(mass - before[at] / start) / 2;
    }
  let square = 0;
  for (let y = 0, at = 0; y < height; y++)
    for (let x = 0; x < width; x++, at++)
      square +=
        (values[at] / total) * (((x + 0.5) * along - t) ** 2 + ((y + 0.5) * down - u) ** 2);
  const sorted = values.slice().sort();
  let cells = 0;
  for (let mass = 0; cells < sorted.length && mass < MASS; cells++)
    mass += sorted[sorted.length - 1 - cells] / total;
  const area = cells * along * down;
  return { centre: [t, u], spread: Math.sqrt(square), entropy, area, variation };
}

/**
 * Mean distance between the locations of the same densities, in pixels.
 *
 * @param {Float64Array} first
 * @param {Float64Array} second
 */
export function meanDisplacement(first, second) {
  let total = 0;
  for (let at = 0; at < first.length; at += 2)
    total += Math.hypot(second[at] - first[at], second[at + 1] - first[at + 1]);
  return (2 * total) / first.length;
}

/**
 * Mean and standard deviation of the fields of a network over several inputs.
 *
 * @param {Network} network
 * @param {ArrayLike<number>[]} inputs at least one, as `Network.run` takes them
 * @param {FieldOptions} [options] of the field
 */
export function fieldStatistics(network, inputs, options = {}) {
  const out = network.field(network.place(inputs[0]), options);
  const sums = new Float64Array(out.length);
  const squares = new Float64Array(out.length);
  const first = out.slice(); // squares of distances from it lose fewer digits
  for (const pixels of inputs) {
    network.field(network.place(pixels), { ...options, out });
    for (let at = 0; at < out.length; at++) {
      const apart = out[at] - first[at];
      sums[at] += apart;
      squares[at] += apart * apart;
    }
  }
  const mean = first.map((value, at) => value + sums[at] / inputs.length);
  const deviation = first.map((_, at) => {
    const variance = squares[at] / inputs.length - (sums[at] / inputs.length) ** 2;
    return Math.sqrt(Math.max(variance, 0));
  });
  return { mean, deviation };
}

/** @param {Float32Array} values */
function sum(values) {
  let total = 0;
  for (let at = 0; at < values.length; at++) total += values[at];
  return total;
}
