// @ts-check
/**
 * Inputs between two inputs: the ink of one flows to the other's by sliced optimal transport, and
 * what arrives is sharpened into strokes, with as much ink as there is between the two.
 *
 * Interpolated distances from the edge are crisper still, but break strokes that do not overlap.
 */

/** @typedef {[channels: number, height: number, width: number]} Shape */
/**
 * @typedef {object} Points Pixels with ink: their places, their ink, and how far each moves.
 * @property {Float64Array} x
 * @property {Float64Array} y
 * @property {Float64Array} ink
 * @property {Float64Array} moveX
 * @property {Float64Array} moveY
 */

const DIRECTIONS = 12;
const ROUNDS = 16;
const BLUR = 0.9; // pixels: closes the gaps between pixels that moved apart
const SOFT = 0.35; // of the peak, over which a stroke's edge falls
const ENDS = 1 / 6; // of the way, within which sharpening sets in

/**
 * The inputs between two of the same shape; the transport between them is computed once.
 * @param {Uint8Array} a @param {Uint8Array} b Images of several channels are cross-faded.
 * @param {Shape} shape
 * @returns {(t: number) => Uint8Array} From exactly `a` at 0 to exactly `b` at 1.
 */
export function morph(a, b, [channels, height, width]) {
  const hasInk = [a, b].every((pixels) => pixels.some(Boolean));
  if (channels > 1 || !hasInk)
    return (t) => a.map((value, i) => Math.round(value + clamp(t) * (b[i] - value)));
  const [from, to] = [points(a, width), points(b, width)];
  const [there, back] = [transport(from, to), transport(to, from)];
  return (t) => {
    t = clamp(t);
    if (t === 0 || t === 1) return (t ? b : a).slice();
    const ink = new Float64Array(height * width);
    spread(there, t, 1 - t, ink, height, width);
    spread(back, 1 - t, t, ink, height, width);
    const sharp = sharpened(ink, height, width);
    const share = Math.min(1, t / ENDS, (1 - t) / ENDS);
    return new Uint8Array(
      Uint8ClampedArray.from(ink, (value, i) => value + share * (sharp[i] - value)).buffer,
    );
  };
}

/** @param {number} t */
const clamp = (t) => Math.min(Math.max(t, 0), 1);

/** @param {Uint8Array} pixels @param {number} width @returns {Points} */
function points(pixels, width) {
  const places = Array.from(pixels.keys()).filter((i) => pixels[i]);
  return {
    x: Float64Array.from(places, (i) => i % width),
    y: Float64Array.from(places, (i) => Math.floor(i / width)),
    ink: Float64Array.from(places, (i) => pixels[i]),
    moveX: new Float64Array(places.length),
    moveY: new Float64Array(places.length),
  };
}

/**
 * Move points until, seen along each of some directions, their ink lies as that of others.
 * @param {Points} from @param {Points} to
 * @returns {Points}
 */
function transport(from, to) {
  const [x, y] = [from.x.slice(), from.y.slice()];
  const views = Array.from({ length: DIRECTIONS }, (_, k) => {
    const angle = (Math.PI * (k + 0.5)) / DIRECTIONS;
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    const there = to.x.map((value, i) => cos * value + sin * to.y[i]);
    const sorted = Uint32Array.from(there.keys()).sort((i, j) => there[i] - there[j] || i - j);
    const places = Float64Array.from(sorted, (i) => there[i]);
    const goal = { places, shares: shares(to.ink, sorted) };
    return { cos, sin, goal, order: Uint32Array.from(x.keys()) };
  });
  const along = new Float64Array(x.length);
  for (let round = 0; round < ROUNDS; round++) {
    const [moveX, moveY] = [new Float64Array(x.length), new Float64Array(x.length)];
    for (const { cos, sin, goal: { places, shares: wanted }, order } of views) {
      for (let i = 0; i < x.length; i++) along[i] = cos * x[i] + sin * y[i];
      insertionSort(order, along); // after the first round it is nearly in order
      const own = shares(from.ink, order);
      for (let k = 0, next = 0; k < order.length; k++) {
        while (next < wanted.length && wanted[next] < own[k]) next++;
        const last = Math.max(next - 1, 0);
        const right = Math.min(next, wanted.length - 1);
        const part = right > last ? (own[k] - wanted[last]) / (wanted[right] - wanted[last]) : 0;
        const move = places[last] + part * (places[right] - places[last]) - along[order[k]];
        moveX[order[k]] += move * cos;
        moveY[order[k]] += move * sin;
      }
    }
    for (let i = 0; i < x.length; i++) {
      x[i] += (2 / DIRECTIONS) * moveX[i];
      y[i] += (2 / DIRECTIONS) * moveY[i];
    }
  }
  const moveX = x.map((value, i) => value - from.x[i]);
  return { ...from, moveX, moveY: y.map((value, i) => value - from.y[i]) };
}

/**
 * The share of all ink before the middle of each point's, in an order.
 * @param {Float64Array} ink @param {Uint32Array} order
 */
function shares(ink, order) {
  const total = ink.reduce((sum, value) => sum + value);
  let before = 0;
  return Float64Array.from(order, (i) => {
    before += ink[i];
    return (before - ink[i] / 2) / total;
  });
}

/** @param {Uint32Array} order @param {Float64Array} keys */
function insertionSort(order, keys) {
  for (let k = 1; k < order.length; k++) {
    const own = order[k];
    let at = k;
    for (; at > 0 && keys[order[at - 1]] > keys[own]; at--) order[at] = order[at - 1];
    order[at] = own;
  }
}

/**
 * Add points on their way, each shared by the four pixels around it.
 * @param {Points} points @param {number} t @param {number} weight
 * @param {Float64Array} ink @param {number} height @param {number} width
 */
function spread({ x, y, ink: own, moveX, moveY }, t, weight, ink, height, width) {
  for (let i = 0; i < x.length; i++) {
    const u = Math.min(Math.max(x[i] + t * moveX[i], 0), width - 1);
    const v = Math.min(Math.max(y[i] + t * moveY[i], 0), height - 1);
    const [left, top] = [Math.floor(u), Math.floor(v)];
    const [right, bottom] = [Math.min(left + 1, width - 1), Math.min(top + 1, height - 1)];
    const [a, b] = [(u - left) * weight * own[i], (1 - u + left) * weight * own[i]];
    ink[top * width + left] += b * (1 - v + top);
    ink[top * width + right] += a * (1 - v + top);
    ink[bottom * width + left] += b * (v - top);
    ink[bottom * width + right] += a * (v - top);
  }
}

/**
 * Strokes with as much ink as there is: blurred, and cut at the level that leaves that much.
 * @param {Float64Array} ink @param {number} height @param {number} width
 */
function sharpened(ink, height, width) {
  const total = ink.reduce((sum, value) => sum + value) / 255;
  const soft = blurred(blurred(ink, height, width, width), width, height, 1);
  const peak = soft.reduce((most, value) => Math.max(most, value));
  /** @param {number} level */
  const cut = (level) => soft.map((value) => clamp((value / peak - level) / SOFT + 0.5));
  let [low, high] = [SOFT / 2, 1];
  for (let k = 0; k < 14; k++) {
    const level = (low + high) / 2;
    if (cut(level).reduce((sum, value) => sum + value) > total) low = level;
    else high = level;
  }
  return cut((low + high) / 2).map((value) => 255 * value);
}

const TAPS = [0, 1, 2, 3].map((k) => Math.exp(-0.5 * (k / BLUR) ** 2));

/**
 * @param {Float64Array} values @param {number} length Of the axis.
 * @param {number} others @param {number} stride Of the axis.
 */
function blurred(values, length, others, stride) {
  const result = new Float64Array(values.length);
  const across = stride === 1 ? length : 1;
  for (let other = 0; other < others; other++)
    for (let k = 0; k < length; k++) {
      const at = other * across + k * stride;
      let sum = TAPS[0] * values[at];
      for (let off = 1; off < TAPS.length; off++) {
        if (k >= off) sum += TAPS[off] * values[at - off * stride];
        if (k + off < length) sum += TAPS[off] * values[at + off * stride];
      }
      result[at] = sum;
    }
  return result;
}
