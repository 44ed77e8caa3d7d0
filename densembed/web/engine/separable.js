// @ts-check
/**
 * Separable densities on images and signals: factors along each axis, and sums of their products.
 *
 * Factors are (cells, densities), so that the densities are on the contiguous axis. Locations and
 * scales are (densities, axes) in pixels, along the columns and then the rows; `axis` 0 is that of
 * the columns. A signal has one axis and is treated as an image with one row, in which each density
 * has the factor 1.
 *
 * @import { Family } from "./families.js"
 */

/** |z| up to which e^−z is followed from cell to cell by multiplications, without overflow. */
const SAFE = 300;

/**
 * Calls for each density `fill` with e^−z of the first point and the factor to the next one; with
 * (0, 0) where these would overflow or the family is not the logistic.
 *
 * @param {Family} family
 * @param {Float64Array} loc
 * @param {Float64Array} scale
 * @param {number} axes
 * @param {number} axis
 * @param {number} first place of the first point
 * @param {number} last place of the last point
 * @param {number} step distance of the points
 * @param {(d: number, mu: number, s: number, e: number, q: number) => void} fill
 */
function eachDensity(family, loc, scale, axes, axis, first, last, step, fill) {
  const logistic = family.name === "logistic";
  for (let d = 0, at = axis; at < loc.length; d++, at += axes) {
    const mu = loc[at];
    const s = scale[at];
    const start = (first - mu) / s;
    if (logistic && start > -SAFE && (last - mu) / s < SAFE)
      fill(d, mu, s, Math.exp(-start), Math.exp(-step / s));
    else fill(d, mu, s, 0, 0);
  }
}

/**
 * Γ along one axis: the mass of each density in each of `cells` equal cells of [0, size].
 *
 * @param {Family} family
 * @param {Float64Array} loc
 * @param {Float64Array} scale
 * @param {number} axes
 * @param {number} axis
 * @param {number} size
 * @param {number} cells
 * @param {Float64Array} out (cells, densities)
 */
export function masses(family, loc, scale, axes, axis, size, cells, out) {
  const count = loc.length / axes;
  const step = size / cells;
  if (axis === axes) out.fill(1, 0, cells * count);
  else eachDensity(family, loc, scale, axes, axis, 0, size, step, (d, mu, s, e, q) => {
    if (e) {
      let lower = 1 / (1 + e);
      for (let n = 0, at = d; n < cells; n++, at += count) {
        e *= q;
        const upper = 1 / (1 + e);
        out[at] = upper - lower;
        lower = upper;
      }
      return;
    }
    let lower = family.cdf(-mu / s);
    for (let n = 1, at = d; n <= cells; n++, at += count) {
      const upper = family.cdf((n * step - mu) / s);
      out[at] = upper - lower;
      lower = upper;
    }
  });
}

/**
 * The densities per pixel along one axis, at the centres of `cells` equal cells of [0, size].
 *
 * @param {Family} family
 * @param {Float64Array} loc
 * @param {Float64Array} scale
 * @param {number} axes
 * @param {number} axis
 * @param {number} size
 * @param {number} cells
 * @param {Float64Array} out (cells, densities)
 */
export function densitiesAt(family, loc, scale, axes, axis, size, cells, out) {
  const count = loc.length / axes;
  const step = size / cells;
  if (axis === axes) out.fill(1, 0, cells * count);
  else eachDensity(family, loc, scale, axes, axis, step / 2, size, step, (d, mu, s, e, q) => {
    const height = 1 / s;
    if (e)
      for (let n = 0, at = d; n < cells; n++, at += count) {
        const cdf = 1 / (1 + e);
        out[at] = e * cdf * cdf * height;
        e *= q;
      }
    else
      for (let n = 0, at = d; n < cells; n++, at += count)
        out[at] = family.pdf(((n + 0.5) * step - mu) / s) * height;
  });
}

/**
 * The means of the densities per pixel over `cells` equal cells of [0, size].
 *
 * @type {typeof densitiesAt}
 */
export function densitiesOver(family, loc, scale, axes, axis, size, cells, out) {
  masses(family, loc, scale, axes, axis, size, cells, out);
  if (axis < axes)
    for (let at = 0; at < (cells * loc.length) / axes; at++) out[at] *= cells / size;
}

/** Fields are clipped to this value, as in Python. */
const LARGEST = 1e30;

/**
 * Σ_d rows[y, d] · columns[x, d] for each cell, clipped to ±1e30.
 *
 * @param {Float64Array} rows (height, count)
 * @param {Float64Array} columns (width, count)
 * @param {number} count
 * @param {number} height
 * @param {number} width
 * @param {Float32Array} out (height, width)
 */
export function sumOfProducts(rows, columns, count, height, width, out) {
  // Two rows by four columns at once, so that each number is read once for several products. At
  // the ends the last row and column are computed several times.
  for (let y = 0; y < height; y += 2) {
    const y1 = Math.min(y + 1, height - 1);
    const a = y * count;
    const b = y1 * count;
    for (let x = 0; x < width; x += 4) {
      const x1 = Math.min(x + 1, width - 1);
      const x2 = Math.min(x + 2, width - 1);
      const x3 = Math.min(x + 3, width - 1);
      const c0 = x * count;
      const c1 = x1 * count;
      const c2 = x2 * count;
      const c3 = x3 * count;
      let a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0;
      for (let d = 0; d < count; d++) {
        const up = rows[a + d];
        const down = rows[b + d];
        const u0 = columns[c0 + d];
        const u1 = columns[c1 + d];
        const u2 = columns[c2 + d];
        const u3 = columns[c3 + d];
        a0 += up * u0;
        a1 += up * u1;
        a2 += up * u2;
        a3 += up * u3;
        b0 += down * u0;
        b1 += down * u1;
        b2 += down * u2;
        b3 += down * u3;
      }
      const top = y * width;
      const bottom = y1 * width;
      out[top + x] = a0;
      out[top + x1] = a1;
      out[top + x2] = a2;
      out[top + x3] = a3;
      out[bottom + x] = b0;
      out[bottom + x1] = b1;
      out[bottom + x2] = b2;
      out[bottom + x3] = b3;
    }
  }
  for (let at = 0; at < out.length; at++)
    if (!(Math.abs(out[at]) <= LARGEST)) out[at] = Math.sign(out[at] || 0) * LARGEST;
}
