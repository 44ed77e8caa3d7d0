// @ts-check
/**
 * Numbers of receptive fields, as in `densembed/fields/measures.py`.
 *
 * @import { FieldOptions, Network } from "./network.js"
 */

const MASS = 0.9;

/** A copy of the numbers that are being selected from; one array serves all calls. */
let scratch = new Float64Array(0);

/** @param {ArrayLike<number>} values */
function copied(values) {
  if (scratch.length < values.length) scratch = new Float64Array(values.length);
  const some = scratch.subarray(0, values.length);
  some.set(values);
  return some;
}

/**
 * The percentile of some numbers, interpolated linearly between the nearest two.
 *
 * @param {ArrayLike<number>} values
 * @param {number} percent
 */
export function percentile(values, percent) {
  return percentileOf(copied(values), percent);
}

/**
 * The percentile of the absolute values of some numbers.
 *
 * @param {ArrayLike<number>} values
 * @param {number} percent
 */
export function largestValue(values, percent) {
  const some = copied(values);
  for (let at = 0; at < some.length; at++) some[at] = Math.abs(some[at]);
  return percentileOf(some, percent);
}

/** @param {Float64Array} some are reordered @param {number} percent */
function percentileOf(some, percent) {
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
 * @param {number[]} inputShape (channels, height, width), or (channels, length) of a signal, whose
 *   field has one row
 * @returns {Measures}
 */
export function measure(values, before, { width, height }, [, ...sizes]) {
  const [columns, rows = 1] = sizes.reverse();
  const along = columns / width;
  const down = rows / height;
  const total = sum(values) || 1;
  const start = sum(before) || 1;
  const inColumns = new Float64Array(width);
  let [logs, variation, u, squares] = [0, 0, 0, 0];
  for (let y = 0, at = 0; y < height; y++) {
    let inRow = 0;
    for (let x = 0; x < width; x++, at++) {
      const value = values[at];
      inRow += value;
      inColumns[x] += value;
      if (value > 0) logs += value * Math.log2(value);
      variation += Math.abs(value / total - before[at] / start) / 2;
    }
    const place = (y + 0.5) * down;
    u += (inRow / total) * place;
    squares += (inRow / total) * place ** 2;
  }
  let t = 0;
  for (let x = 0; x < width; x++) {
    const place = (x + 0.5) * along;
    t += (inColumns[x] / total) * place;
    squares += (inColumns[x] / total) * place ** 2;
  }
  const entropy = sum(values) ? Math.log2(total * along * down) - logs / total : 0;
  const spread = Math.sqrt(Math.max(squares - t ** 2 - u ** 2, 0));
  const area = countLargest(values, MASS * total) * along * down;
  return { centre: [t, u], spread, entropy, area, variation };
}

/**
 * How many of the largest values it takes to reach a sum: a quicksort that leaves out what is
 * certainly in or out, so several times faster than sorting.
 *
 * @param {Float32Array} values
 * @param {number} wanted
 */
function countLargest(values, wanted) {
  const some = copied(values);
  let [left, right, count] = [0, some.length, 0];
  while (left < right && wanted > 0) {
    const pivot = some[(left + right) >> 1];
    // Before `i` are larger values, from `i` to `k` equal ones, from `last` on smaller ones.
    let [i, k, last, larger] = [left, left, right, 0];
    while (k < last) {
      const value = some[k];
      if (value > pivot) {
        larger += value;
        some[k++] = some[i];
        some[i++] = value;
      } else if (value < pivot) {
        some[k] = some[--last];
        some[last] = value;
      } else k++;
    }
    if (larger >= wanted) right = i;
    else if (larger + (k - i) * pivot >= wanted)
      return count + i - left + Math.ceil((wanted - larger) / pivot);
    else {
      wanted -= larger + (k - i) * pivot;
      count += k - left;
      left = k;
    }
  }
  return count;
}

/**
 * Mean distance between the locations of the same densities, in pixels.
 *
 * @param {Float64Array} first (densities, axes)
 * @param {Float64Array} second
 * @param {number} [axes] 1 for a signal
 */
export function meanDisplacement(first, second, axes = 2) {
  let total = 0;
  for (let at = 0; at < first.length; at += axes) {
    let square = 0;
    for (let axis = 0; axis < axes; axis++) square += (second[at + axis] - first[at + axis]) ** 2;
    total += Math.sqrt(square);
  }
  return (axes * total) / first.length;
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
