// Curves over one axis, in place of a heatmap. Each row of the values is a curve, or a step
// function if it has one value per sample.
/** @import { Curves, Densities, Scale, View } from "./types.js" */
import { clip } from "./dom.js";
import { escape, round } from "./text.js";

const HEIGHT = 100;  // of the drawing, which is as high as its plot
const MOST = 2000;  // points of a curve; of more the least and the largest of each few are drawn
const TICKS = 4;
const FAR = 10;  // heights of the plot, beyond which a curve is not followed
const LINE = 'fill="none" vector-effect="non-scaling-stroke"';

/**
 * Places along the axis with round numbers, from 0 on.
 * @param {number} length
 */
export function ticksOf(length) {
  const rough = length / TICKS;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * ([5, 2, 1].find((each) => each * unit <= rough) ?? 1);
  const whole = Math.max(1, step);
  return Array.from({ length: Math.floor(length / whole) + 1 }, (_, k) => k * whole);
}

/** @param {Scale} scale @returns {(value: number) => number} the height of a value */
const heightIn = ({ low, high }) => (value) =>
  Number((HEIGHT * (1 - clip((value - low) / (high - low) || 0, -FAR, FAR))).toFixed(2));

/**
 * The points of a row of values, as a path.
 * @param {Float32Array} row
 * @param {number} length of the axis
 * @param {(value: number) => number} height
 */
function pathOf(row, length, height) {
  const width = length / row.length;
  const place = (/** @type {number} */ k) => Number((k * width).toFixed(3));
  const points = [];
  const several = Math.ceil(row.length / MOST);
  if (several > 1) for (let k = 0; k < row.length; k += 2 * several) {
    const some = row.subarray(k, k + 2 * several);
    const middle = place(k + some.length / 2);
    points.push(`${middle} ${height(some.reduce((a, b) => Math.min(a, b)))}`,
      `${middle} ${height(some.reduce((a, b) => Math.max(a, b)))}`);
  } else if (width === 1)
    row.forEach((value, k) => points.push(`${k} ${height(value)}`, `${k + 1} ${height(value)}`));
  else row.forEach((value, k) => points.push(`${place(k + 0.5)} ${height(value)}`));
  return `M${points.join("L")}`;
}

/** @param {string} path @param {number} zero its height @param {string} style */
function areaOf(path, zero, style) {
  const ends = path.slice(1).split("L");
  const [first, last] = [ends[0], ends[ends.length - 1]].map((point) => point.split(" ")[0]);
  return `<path d="${path}L${last} ${zero}L${first} ${zero}Z" stroke="none" ${style}/>`;
}

/**
 * The rows of an array.
 * @param {Float32Array} values
 * @param {number} count
 */
const rowsOf = (values, count) => Array.from({ length: count }, (_, k) =>
  values.subarray(k * values.length / count, (k + 1) * values.length / count));

/** @param {Densities} densities @returns {{ colour: string, share: number }[]} one per density */
const looks = ({ weights, bound, against, favour }) => Array.from(weights, (weight) => {
  const share = clip(weight / bound, -1);
  return { colour: share < 0 ? against : favour, share: Math.abs(share) };
});

/**
 * The elements of an SVG with the view box of `boxOf`.
 * @param {View} view
 * @param {Curves} curves
 * @param {Float32Array | null} values
 */
export function drawCurves(view, { colours, signs, under }, values) {
  const { scale, size: [length], shape, densities, box, path } = view;
  const height = heightIn(scale);
  const zero = height(clip(0, scale.low, scale.high));
  /** @type {string[]} */
  const parts = [];
  const line = (/** @type {string} */ d, /** @type {string} */ stroke, width = 1,
    more = "") => parts.push(`<path d="${d}" stroke="${stroke}" stroke-width="${width}"
      ${LINE} ${more}/>`);
  const across = [scale.low, (scale.low + scale.high) / 2, scale.high].map(height);
  line([...ticksOf(length).map((t) => `M${t} 0V${HEIGHT}`),
    ...across.map((y) => `M0 ${y}H${length}`)].join(""), "currentColor", 1, 'stroke-opacity="0.1"');
  if (under) for (const row of rowsOf(under.values, under.values.length / length))
    line(pathOf(row, length, heightIn({ ...scale, ...under })), "currentColor", 1.5,
      'stroke-opacity="0.4"');
  line(`M0 ${zero}H${length}`, "currentColor", 1, 'stroke-opacity="0.5"');
  if (values && shape) rowsOf(values, shape[0]).forEach((row, k) => {
    if (densities) {
      const { colour, share } = looks(densities)[k];
      const chosen = k + 1 === densities.chosen;
      line(pathOf(row, length, height), colour, chosen ? 3 : 1 + share,
        `stroke-opacity="${chosen ? 1 : 0.3 + 0.7 * share}"`);
      return;
    }
    const d = pathOf(row, length, height);
    if (scale.low < 0 && signs) [-1, 1].forEach((sign, n) => {
      const part = row.map((value) => (sign * value > 0 ? value : 0));
      parts.push(areaOf(pathOf(part, length, height), zero,
        `fill="${signs[n]}" fill-opacity="0.7"`));
    });
    else if (scale.low === 0 && shape[0] === 1)
      parts.push(areaOf(d, zero, `fill="${colours[k]}" fill-opacity="0.2"`));
    line(d, scale.low < 0 && signs ? "currentColor" : colours[k % colours.length], 1.5,
      'stroke-linejoin="round"');
  });
  if (densities && values && shape) rowsOf(values, shape[0]).forEach((row, k) => {
    // A line without length has round ends, which stay round where the drawing is stretched.
    const at = densities.loc[k];
    const cell = clip(Math.floor(at / length * row.length), 0, row.length - 1);
    const { colour, share } = looks(densities)[k];
    line(`M${at} ${Math.max(4, height(row[cell]))}h0`, colour, 7 + 4 * share,
      `stroke-linecap="round" data-number="${k + 1}"`);
  });
  if (box) line(`M${box[0]} 0V${HEIGHT}M${box[0] + box[1]} 0V${HEIGHT}`, "currentColor", 1,
    'class="box" stroke-dasharray="4 3" stroke-opacity="0.8"');
  if (path?.length) line(`M${path.map((t, k) =>
    `${t} ${HEIGHT * k / Math.max(1, path.length - 1)}`).join("L")}`, "currentColor", 1.5,
  'class="path" stroke-opacity="0.7"');
  return parts;
}

/** The vertical line that divides a swipe. @param {number} t */
export const dividerAt = (t) =>
  `<path d="M${t} 0V${HEIGHT}" stroke="currentColor" stroke-width="2" ${LINE}/>`;

/** The view box of `drawCurves`. @param {number} length */
export const boxOf = (length) => `0 0 ${length} ${HEIGHT}`;

/** The numbers below the axis, in HTML. @param {number} length */
export const ticksInHtml = (length) => ticksOf(length).map((t) =>
  `<span style="left: ${100 * t / length}%">${t}</span>`).join("");

/**
 * The numbers at both axes in an SVG, around a plot at that place.
 * @param {View} view
 * @param {{ x: number, y: number, width: number, height: number }} plot
 */
export function axesInSvg({ scale, size: [length] }, { x, y, width, height }) {
  const side = [scale.low, (scale.low + scale.high) / 2, scale.high].map((value, k) =>
    `<text x="${x - 8}" y="${y + 5 + height * (1 - k / 2)}" text-anchor="end">${
      round(value)}</text>`);
  const below = ticksOf(length).map((t) => `<text x="${x + width * t / length}"
    y="${y + height + 20}" text-anchor="middle">${t}</text>`);
  return `${side.join("")}${below.join("")}<text x="${x + width / 2}" y="${y + height + 42}"
    text-anchor="middle">t in samples; ${escape(scale.name)}</text>`;
}
