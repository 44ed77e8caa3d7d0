// @ts-check
/**
 * From strokes on a pad to a model's input: one digit, several, or none.
 *
 * What `read_picture` does with black ink on white paper: the ink is detected, the marks that are
 * a digit are selected, thin strokes are thickened, and the digit is brought to the size and
 * position of MNIST's digits. The names and constants are those of `densembed/data/ink.py` and
 * `images.py`, which explain them. The estimate of the paper is left out. For it, Python takes a
 * dot for the four parts of a ring, and breaks up what is as thick as a third of the pad.
 */

/** @typedef {{width: number, points: number[]}} Stroke Points are x0, y0, x1, y1, … on the pad. */
/** @typedef {"digit" | "several digits" | "no ink"} Content */
/**
 * @typedef {object} ModelInput
 * @property {Uint8Array} pixels Of the height and width of the model's input; ink is 255.
 * @property {Content} content
 * @property {boolean} clean Whether there is little ink besides the digit.
 */
/** @typedef {{top: number, left: number, height: number, width: number}} Box */
/**
 * @typedef {object} Mark A connected piece of ink.
 * @property {number} label
 * @property {number} top
 * @property {number} bottom
 * @property {number} left
 * @property {number} right
 * @property {number} area
 * @property {number} halfWidth
 * @property {number[]} edges Pixels on the pad's edges: top, bottom, left, right.
 */

/** The side of the pad on which strokes are drawn. */
export const PAD = 560;
/** The side of the raster: ten pixels for each of the 28 of a digit. */
export const SIDE = 280;

const SMOOTH = 0.002;
const LEAST_CONTRAST = 0.06;
const OWN_CONTRAST = 0.4;
const RAMP = [0.3, 0.7];
const LEAST_EXTENT = 0.03;
const BLOB = 0.3;
const FAT = 0.2;
const ALONG = 0.4;
const BORDER = 0.5;
const NEAR = 0.3;
const PART = 0.12;
const ALIKE = 0.5;
const STRAY = 0.05;
const THIN = 2.2;
const BOX = 20 / 28;
const EDGE = 0.25;
const FAR = 1e4;

/** The ink of strokes, which follows the pen: a call of `draw` adds what is new. */
export class Raster {
  constructor() {
    /** Of `SIDE` × `SIDE` pixels, row by row, 0 to 1. */
    this.ink = new Float32Array(SIDE * SIDE);
    /** @type {Float32Array | null} */
    this.base = null;
    /** @type {{stroke: Stroke, drawn: number}[]} */
    this.drawn = [];
  }

  /**
   * @param {Stroke[]} strokes All of them. Those of the last call may have become longer.
   * @param {Float32Array | null} base Ink that lies under the strokes, of the raster's size.
   */
  draw(strokes, base = null) {
    const grown =
      base === this.base &&
      strokes.length >= this.drawn.length &&
      this.drawn.every(
        ({ stroke, drawn }, k) => stroke === strokes[k] && drawn <= stroke.points.length,
      );
    if (!grown) {
      if (base) this.ink.set(base);
      else this.ink.fill(0);
      this.base = base;
      this.drawn = [];
    }
    const scale = SIDE / PAD;
    strokes.forEach((stroke, k) => {
      const { width, points } = stroke;
      const before = this.drawn[k]?.drawn ?? 0;
      for (let i = before; i + 1 < points.length; i += 2) {
        const from = Math.max(i - 2, 0); // the first point is a dot
        const ends = [points[from], points[from + 1], points[i], points[i + 1]];
        const [x0, y0, x1, y1] = ends.map((value) => value * scale);
        segment(this.ink, x0, y0, x1, y1, (width * scale) / 2);
      }
      this.drawn[k] = { stroke, drawn: points.length - (points.length % 2) };
    });
    return this.ink;
  }
}

/**
 * Add a line with round ends; its edge is one pixel wide.
 * @param {Float32Array} ink
 * @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1
 * @param {number} radius
 */
function segment(ink, x0, y0, x1, y1, radius) {
  const reach = radius + 0.5;
  const inner = Math.max(radius - 0.5, 0) ** 2;
  const outer = reach ** 2;
  const [dx, dy] = [x1 - x0, y1 - y0];
  const square = dx * dx + dy * dy || 1;
  const top = Math.max(Math.floor(Math.min(y0, y1) - reach), 0);
  const bottom = Math.min(Math.ceil(Math.max(y0, y1) + reach), SIDE);
  const left = Math.max(Math.floor(Math.min(x0, x1) - reach), 0);
  const right = Math.min(Math.ceil(Math.max(x0, x1) + reach), SIDE);
  for (let y = top; y < bottom; y++) {
    const py = y + 0.5 - y0;
    for (let x = left; x < right; x++) {
      const px = x + 0.5 - x0;
      const share = Math.min(Math.max((px * dx + py * dy) / square, 0), 1);
      const distance = (px - share * dx) ** 2 + (py - share * dy) ** 2;
      if (distance >= outer) continue;
      const value = distance <= inner ? 1 : Math.min(reach - Math.sqrt(distance), 1);
      const at = y * SIDE + x;
      if (value > ink[at]) ink[at] = value;
    }
  }
}

/**
 * The model's input of a raster.
 * @param {Float32Array} ink Of `SIDE` × `SIDE` pixels, row by row, 0 to 1.
 * @param {number} height Of the input.
 * @param {number} width
 * @returns {ModelInput}
 */
export function toInput(ink, height = 28, width = 28) {
  /** @type {ModelInput} */
  const nothing = { pixels: new Uint8Array(height * width), content: "no ink", clean: true };
  const box = boxOf(ink, SIDE, SIDE, 0);
  if (!box) return nothing;
  const crop = inPad(grow(box, 3));
  const strength = smooth(ink, crop);
  const threshold = OWN_CONTRAST * quantile(strength, 0.6 * LEAST_CONTRAST);
  const core = quantile(strength, threshold);
  const mask = new Uint8Array(strength.length);
  for (let i = 0; i < mask.length; i++) mask[i] = Number(strength[i] > threshold);
  const depth = distances(mask, 0, crop.width);
  const { marks, labels } = label(mask, depth, crop);
  const writing = selectWriting(marks, labels, crop);
  const [main] = [...writing].sort((a, b) => score(b) - score(a));
  if (!main || core < LEAST_CONTRAST) return nothing;
  const digits = [main, ...writing.filter((mark) => isSecondDigit(mark, main))];
  const kept = withNearStrokes(digits, writing, labels, crop);
  const drawn = fullStrokes(strength, mask, depth, labels, kept, core, crop);
  return {
    pixels: normalise(drawn.ink, drawn.height, drawn.width, height, width),
    content: digits.length > 1 ? "several digits" : "digit",
    clean: drawn.clean,
  };
}

/**
 * The smallest box around the values above a level; null if there are none.
 * @param {ArrayLike<number>} values
 * @param {number} height @param {number} width
 * @param {number} above
 * @returns {Box | null}
 */
function boxOf(values, height, width, above) {
  let [top, bottom, left, right] = [height, 0, width, 0];
  for (let y = 0, row = 0; y < height; y++, row += width) {
    let x = 0;
    while (x < width && !(values[row + x] > above)) x++;
    if (x === width) continue;
    if (!bottom) top = y;
    bottom = y + 1;
    if (x < left) left = x;
    for (x = width - 1; x >= right; x--) if (values[row + x] > above) right = x + 1;
  }
  return bottom ? { top, left, height: bottom - top, width: right - left } : null;
}

/** @param {Box} box @param {number} by @returns {Box} */
function grow({ top, left, height, width }, by) {
  return { top: top - by, left: left - by, height: height + 2 * by, width: width + 2 * by };
}

/** @param {Box} box The part of it that is on the pad. @returns {Box} */
function inPad({ top, left, height, width }) {
  const [y, x] = [Math.max(top, 0), Math.max(left, 0)];
  const bottom = Math.min(top + height, SIDE);
  return { top: y, left: x, height: bottom - y, width: Math.min(left + width, SIDE) - x };
}

/**
 * A Gaussian of the ink in a box, as `scipy.ndimage.gaussian_filter` computes it.
 * @param {Float32Array} ink @param {Box} box
 */
function smooth(ink, { top, left, height, width }) {
  const reach = 2; // four standard deviations
  /** @param {number} k */
  const inside = (k) => (k < 0 ? -1 - k : k >= SIDE ? 2 * SIDE - 1 - k : k);
  const wide = width + 2 * reach;
  const columns = Int32Array.from({ length: wide }, (_, x) => inside(left - reach + x));
  const around = new Float32Array((height + 2 * reach) * wide);
  for (let y = 0, i = 0; y < height + 2 * reach; y++) {
    const row = inside(top + y - reach) * SIDE;
    for (let x = 0; x < wide; x++, i++) around[i] = ink[row + columns[x]];
  }
  const rows = filter(around, wide);
  const both = filter(rows, 1);
  const result = new Float32Array(height * width);
  for (let y = 0; y < height; y++)
    result.set(both.subarray(y * wide, y * wide + width), y * width);
  return result;
}

const TAPS = [0, 1, 2].map((k) => Math.exp(-0.5 * (k / (SMOOTH * SIDE)) ** 2));
const [NEXT, FARTHER] = [1, 2].map((k) => TAPS[k] / (TAPS[0] + 2 * TAPS[1] + 2 * TAPS[2]));
const OWN = 1 - 2 * NEXT - 2 * FARTHER;

/**
 * That Gaussian along an axis; the first result is of the first whole kernel.
 * @param {Float32Array} values @param {number} stride Of the axis.
 */
function filter(values, stride) {
  const result = new Float32Array(values.length - 4 * stride);
  for (let i = 0; i < result.length; i++) {
    const at = i + 2 * stride;
    result[i] =
      OWN * values[at] +
      NEXT * (values[at - stride] + values[at + stride]) +
      FARTHER * (values[i] + values[at + 2 * stride]);
  }
  return result;
}

/**
 * The value that a fifth of the values above a level exceed, to within 0.0005.
 * @param {Float32Array} values @param {number} above
 */
function quantile(values, above) {
  const bins = 1000;
  const counts = new Uint32Array(bins + 1);
  let rest = 0;
  for (let i = 0; i < values.length; i++)
    if (values[i] > above) {
      counts[Math.min((bins * values[i] + 0.5) | 0, bins)]++;
      rest++;
    }
  rest *= 0.2;
  for (let bin = bins; bin > 0; bin--) if ((rest -= counts[bin]) < 0) return bin / bins;
  return 0;
}

/**
 * Distance from each pixel to the nearest of a value, by Meijster's algorithm.
 * @param {Uint8Array} mask @param {number} value @param {number} width
 * @param {number} limit Distances above it are not exact.
 */
function distances(mask, value, width, limit = Infinity) {
  const down = new Int32Array(mask.length); // the distance within a column
  for (let i = 0; i < width; i++) down[i] = mask[i] === value ? 0 : FAR;
  for (let i = width; i < mask.length; i++) down[i] = mask[i] === value ? 0 : down[i - width] + 1;
  for (let i = mask.length - width - 1; i >= 0; i--)
    if (down[i] > down[i + width]) down[i] = down[i + width] + 1;
  const result = new Float32Array(mask.length);
  const vertex = new Int32Array(width + 1);
  const start = new Float64Array(width + 1);
  for (let row = 0; row < mask.length; row += width) {
    for (let end = 0; end < width; ) {
      // Between two zeros no others matter.
      while (end < width && down[row + end] === 0) end++;
      if (end === width) break;
      const begin = Math.max(end - 1, 0);
      while (end < width && down[row + end] > 0) end++;
      let last = -1;
      for (let x = begin; x <= end && x < width; x++) {
        const own = down[row + x];
        if (own > limit) continue;
        let from = -Infinity;
        while (last >= 0) {
          const v = vertex[last];
          const other = down[row + v];
          from = ((own - other) * (own + other) + (x - v) * (x + v)) / (2 * (x - v));
          if (from > start[last]) break;
          from = -Infinity;
          last--;
        }
        last++;
        vertex[last] = x;
        start[last] = from;
      }
      if (last < 0) {
        result.fill(FAR, row + begin, row + end);
        continue;
      }
      start[last + 1] = Infinity;
      for (let x = begin, k = 0; x < end; x++) {
        while (start[k + 1] < x) k++;
        const off = x - vertex[k];
        const own = down[row + x - off];
        result[row + x] = Math.sqrt(own * own + off * off);
      }
    }
  }
  return result;
}

// --- the digit among the marks -----------------------------------------------------------------

/** @param {Mark} mark */
const heightOf = (mark) => mark.bottom - mark.top;
/** @param {Mark} mark */
const widthOf = (mark) => mark.right - mark.left;
/** @param {Mark} mark */
const extentOf = (mark) => Math.max(heightOf(mark), widthOf(mark));
/** @param {Mark} mark */
const touchedBy = (mark) => mark.edges.filter(Boolean).length;
/** @param {Mark} mark */
const along = (mark) => Math.max(...mark.edges) / extentOf(mark);

/** @param {Mark} mark */
function score(mark) {
  const thin = 1 / (1 + (mark.halfWidth / extentOf(mark) / FAT) ** 4);
  return Math.sqrt(extentOf(mark)) * thin * (along(mark) > ALONG || touchedBy(mark) > 1 ? 0.3 : 1);
}

/**
 * The marks in a box, in its coordinates, and the label of each pixel, 0 where there is no ink.
 * @param {Uint8Array} mask @param {Float32Array} depth @param {Box} box
 */
function label(mask, depth, { top, left, height, width }) {
  /** @type {{y: number, from: number, to: number, parent: number}[]} */
  const runs = [];
  /** @param {number} run */
  const root = (run) => {
    while (runs[run].parent !== run) run = runs[run].parent = runs[runs[run].parent].parent;
    return run;
  };
  let row = 0; // the first run of the row
  for (let y = 0; y < height; y++) {
    let above = row; // the first run of the row above that may touch
    row = runs.length;
    while (above < row && runs[above].y < y - 1) above++;
    for (let x = 0; x < width; x++) {
      if (!mask[y * width + x]) continue;
      const from = x;
      while (x < width && mask[y * width + x]) x++;
      const own = runs.length;
      runs.push({ y, from, to: x, parent: own });
      while (above < row && runs[above].to < from) above++;
      for (let other = above; other < row && runs[other].from <= x; other++)
        runs[root(other)].parent = root(own);
    }
  }
  const labels = new Int32Array(mask.length);
  /** @type {Map<number, Mark>} */
  const marks = new Map();
  runs.forEach(({ y, from, to }, own) => {
    const mark = marks.get(root(own)) ?? newMark(root(own) + 1);
    marks.set(root(own), mark);
    mark.top = Math.min(mark.top, y);
    mark.bottom = y + 1;
    mark.left = Math.min(mark.left, from);
    mark.right = Math.max(mark.right, to);
    mark.area += to - from;
    for (let at = y * width + from; at < y * width + to; at++) {
      labels[at] = mark.label;
      if (depth[at] > mark.halfWidth) mark.halfWidth = depth[at];
    }
    if (y + top === 0) mark.edges[0] += to - from;
    if (y + top === SIDE - 1) mark.edges[1] += to - from;
    if (from + left === 0) mark.edges[2]++;
    if (to + left === SIDE) mark.edges[3]++;
  });
  const least = Math.max(3, (LEAST_EXTENT * SIDE) / 2);
  return { marks: [...marks.values()].filter((mark) => extentOf(mark) >= least), labels };
}

/** @param {number} number @returns {Mark} */
function newMark(number) {
  const [top, left] = [Infinity, Infinity];
  const none = { area: 0, halfWidth: 0, edges: [0, 0, 0, 0] };
  return { label: number, top, bottom: 0, left, right: 0, ...none };
}

/**
 * Marks that may be a digit or a part of one.
 * @param {Mark[]} marks @param {Int32Array} labels @param {Box} box
 */
function selectWriting(marks, labels, box) {
  const least = Math.max(3, LEAST_EXTENT * SIDE);
  const strokes = marks.filter((mark) => mark.halfWidth <= Math.max(2.5, BLOB * extentOf(mark)));
  const inner = strokes.filter(
    (mark) => !isEdge(mark, box) && !isFrame(mark, marks, labels, box.width),
  );
  const large = (/** @type {Mark} */ mark) => extentOf(mark) >= least;
  if (inner.some(large)) return inner;
  return strokes.some(large) ? strokes : [];
}

/** @param {Mark} mark @param {Box} box */
function isEdge(mark, { top, left }) {
  const across = mark.left + left === 0 && mark.right + left === SIDE;
  const down = mark.top + top === 0 && mark.bottom + top === SIDE;
  return (
    Math.max(...mark.edges) > BORDER * SIDE ||
    (across && heightOf(mark) < 0.3 * widthOf(mark)) ||
    (down && widthOf(mark) < 0.3 * heightOf(mark))
  );
}

/** @param {Mark} mark @param {Mark[]} marks @param {Int32Array} labels @param {number} width */
function isFrame(mark, marks, labels, width) {
  const around = marks.some(
    (other) =>
      other !== mark &&
      extentOf(other) > 0.15 * extentOf(mark) &&
      mark.top < other.top &&
      other.bottom < mark.bottom &&
      mark.left < other.left &&
      other.right < mark.right,
  );
  const shorter = Math.min(heightOf(mark), widthOf(mark));
  const rim = Math.max(2, Math.round(0.12 * shorter));
  if (!around || shorter <= 3 * rim) return false;
  let inside = 0;
  for (let y = mark.top + rim; y < mark.bottom - rim; y++)
    for (let x = mark.left + rim; x < mark.right - rim; x++)
      if (labels[y * width + x] === mark.label) inside++;
  return inside <= 0.1 * mark.area;
}

/** @param {Mark} mark @param {Mark} main */
function isSecondDigit(mark, main) {
  if (mark === main || heightOf(mark) < ALIKE * heightOf(main)) return false;
  if (along(mark) > ALONG || touchedBy(mark) > touchedBy(main)) return false;
  const ratio = (mark.halfWidth + 0.5) / (main.halfWidth + 0.5);
  if (ratio <= 0.5 || ratio >= 2) return false;
  const gapX = Math.max(mark.left, main.left) - Math.min(mark.right, main.right);
  const gapY = Math.max(mark.top, main.top) - Math.min(mark.bottom, main.bottom);
  return gapX >= 0 || gapY > 0.3 * heightOf(main);
}

/**
 * The labels of the digits and of the strokes that belong to them.
 * @param {Mark[]} digits @param {Mark[]} marks @param {Int32Array} labels @param {Box} box
 */
function withNearStrokes(digits, marks, labels, { width }) {
  const kept = new Set(digits.map((mark) => mark.label));
  const [main] = digits;
  const rest = marks.filter(
    (mark) =>
      !kept.has(mark.label) &&
      extentOf(mark) >= PART * extentOf(main) &&
      touchedBy(mark) <= touchedBy(main),
  );
  if (!rest.length) return kept;
  const far = distances(select(labels, kept), 1, width, NEAR * extentOf(main));
  const near = new Set();
  for (let i = 0; i < far.length; i++) if (far[i] <= NEAR * extentOf(main)) near.add(labels[i]);
  for (const mark of rest) if (near.has(mark.label)) kept.add(mark.label);
  return kept;
}

/** @param {Int32Array} labels @param {Set<number>} kept */
function select(labels, kept) {
  const mask = new Uint8Array(labels.length);
  const isKept = new Uint8Array(Math.max(...kept) + 1);
  for (const own of kept) isKept[own] = 1;
  for (let i = 0; i < mask.length; i++) mask[i] = isKept[labels[i]];
  return mask;
}

// --- strokes as MNIST has them -----------------------------------------------------------------

/**
 * Ink of the kept marks: full inside, soft at the edge, no thinner than `THIN`.
 * @param {Float32Array} strength @param {Uint8Array} mask @param {Float32Array} depth
 * @param {Int32Array} labels @param {Set<number>} labelsKept @param {number} core
 * @param {Box} crop
 */
function fullStrokes(strength, mask, depth, labels, labelsKept, core, crop) {
  const kept = select(labels, labelsKept);
  const box = /** @type {Box} */ (boxOf(kept, crop.height, crop.width, 0));
  let [area, total, all] = [0, 0, 0];
  for (let i = 0; i < kept.length; i++) {
    all += mask[i];
    if (kept[i]) {
      area++;
      total += depth[i];
    }
  }
  // The mean over a line that is w wide is (w + 2) / 4.
  const lineWidth = Math.max(1, (4 * total) / area - 2);
  const size = Math.max(box.height, box.width);
  const thicker = Math.max((THIN * size - 20 * lineWidth) / (2 * (20 - THIN)), 0);
  const { top, left, height, width } = grow(box, Math.ceil(Math.max(thicker, 1 + lineWidth / 4)));
  const [reach, low, high] = [1 + lineWidth / 4, core * RAMP[0], core * RAMP[1]];
  const ink = new Float32Array(height * width);
  const wide = new Uint8Array(ink.length);
  for (let y = 0; y < box.height; y++) {
    const from = (y + box.top) * crop.width + box.left;
    wide.set(kept.subarray(from, from + box.width), (y + box.top - top) * width + box.left - left);
  }
  const around = distances(wide, 1, width, 3 + thicker + lineWidth / 4);
  if (thicker)
    for (let i = 0; i < ink.length; i++)
      if (around[i] < thicker + 1) ink[i] = Math.min(thicker + 1 - around[i], 1);
  let marked = 0;
  for (let y = Math.max(top, 0); y < Math.min(top + height, crop.height); y++)
    for (let x = Math.max(left, 0); x < Math.min(left + width, crop.width); x++) {
      const from = y * crop.width + x;
      if (strength[from] <= low) continue;
      const i = (y - top) * width + x - left;
      if (mask[from] && around[i] <= 2 + lineWidth / 4) marked++;
      if (around[i] > reach) continue;
      const value = (strength[from] - low) / (high - low);
      if (value > ink[i]) ink[i] = Math.min(value, 1);
    }
  return { ink, height, width, clean: all - marked <= STRAY * area };
}

/**
 * Bring a digit to the size and position of MNIST's digits.
 * @param {Float32Array} ink @param {number} height @param {number} width
 * @param {number} rows Of the result. @param {number} columns
 */
function normalise(ink, height, width, rows, columns) {
  const box = /** @type {Box} */ (boxOf(ink, height, width, EDGE - 1e-9));
  const unit = Math.max(box.height, box.width) / (BOX * Math.min(rows, columns));
  let [total, massY, massX] = [0, 0, 0];
  for (let y = 0; y < box.height; y++)
    for (let x = 0; x < box.width; x++) {
      const value = ink[(y + box.top) * width + x + box.left];
      total += value;
      massY += value * (y + 0.5);
      massX += value * (x + 0.5);
    }
  const windowY = rows * unit;
  const windowX = columns * unit;
  const offY = rows / 2 - Math.floor(rows / 2) - 0.5;
  const offX = columns / 2 - Math.floor(columns / 2) - 0.5;
  const y = keepInside(massY / total + offY * unit, box.height, windowY);
  const x = keepInside(massX / total + offX * unit, box.width, windowX);
  const down = weights(y - windowY / 2, windowY, rows, box.height);
  const across = weights(x - windowX / 2, windowX, columns, box.width);
  const narrow = new Float32Array(columns * box.height); // turned: its lines are columns
  for (let column = 0; column < columns; column++) {
    const { first, taps } = across[column];
    for (let row = 0; row < box.height; row++) {
      const from = (row + box.top) * width + box.left + first;
      let sum = 0;
      for (let k = 0; k < taps.length; k++) sum += taps[k] * ink[from + k];
      narrow[column * box.height + row] = sum;
    }
  }
  const small = new Float32Array(rows * columns);
  let peak = 1e-6;
  for (let row = 0; row < rows; row++) {
    const { first, taps } = down[row];
    for (let column = 0; column < columns; column++) {
      const from = column * box.height + first;
      let sum = 0;
      for (let k = 0; k < taps.length; k++) sum += taps[k] * narrow[from + k];
      small[row * columns + column] = sum;
      if (sum > peak) peak = sum;
    }
  }
  const share = (/** @type {number} */ value) => Math.min(Math.max(value / peak, 0), 1);
  return Uint8Array.from(small, (value) => Math.round(255 * share(value)));
}

/**
 * The point nearest to `centre` at which a window around it contains [0, length].
 * @param {number} centre @param {number} length @param {number} window
 */
function keepInside(centre, length, window) {
  return Math.min(Math.max(centre, length - window / 2), window / 2);
}

/**
 * The weights of Pillow's resampling by a Hamming window, of the pixels within [0, length).
 * @param {number} start @param {number} window @param {number} count @param {number} length
 */
function weights(start, window, count, length) {
  const scale = window / count;
  const support = Math.max(scale, 1);
  return Array.from({ length: count }, (_, k) => {
    const centre = start + (k + 0.5) * scale;
    const first = Math.floor(centre - support + 0.5);
    const taps = [];
    for (let i = first; i < Math.floor(centre + support + 0.5); i++)
      taps.push(hamming((i + 0.5 - centre) / support));
    const total = taps.reduce((sum, tap) => sum + tap, 0);
    const inside = taps.map((tap) => tap / total).slice(Math.max(-first, 0));
    const begin = Math.max(first, 0);
    return { first: begin, taps: Float64Array.from(inside.slice(0, Math.max(length - begin, 0))) };
  });
}

/** @param {number} x */
function hamming(x) {
  if (x === 0) return 1;
  if (Math.abs(x) >= 1) return 0;
  return (Math.sin(Math.PI * x) / (Math.PI * x)) * (0.54 + 0.46 * Math.cos(Math.PI * x));
}
