// @ts-check
/**
 * Densities on an input: where they lie, and the expectations under them.
 *
 * @import { Family } from "./families.js"
 * @import { Plan } from "./names.js"
 */

import { FAMILIES, scaleUnit, sigmoid } from "./families.js";
import { Box } from "./frame.js";
import { Linear } from "./layers.js";
import { masses } from "./separable.js";

const SLOPE = 4;
const LEAST_SCALE = 2 ** -32;

/** What all kinds of embeddings share: densities with their locations, scales and Γ. */
class Densities {
  /**
   * @param {Family} family
   * @param {number[]} maps (channels, height, width) of the input; a signal has one row
   * @param {number} axes 1 for a signal
   * @param {boolean} shared whether all channels have the same densities
   * @param {number} count number of densities per channel
   * @param {"input" | "mass"} frame the box in which the densities are placed
   * @param {number[]} pixel lengths of a pixel along the columns and the rows
   */
  constructor(family, maps, axes, shared, count, frame, pixel) {
    const [channels, height, width] = maps;
    const all = (shared ? 1 : channels) * count;
    this.family = family;
    this.axes = axes;
    this.channels = channels;
    this.height = height;
    this.width = width;
    this.shared = shared;
    this.count = count;
    this.all = all;
    this.unit = scaleUnit(family);
    /** (densities, axes), in pixels of the input along the columns and the rows, as `scale` */
    this.loc = new Float64Array(axes * all);
    this.scale = new Float64Array(axes * all);
    this.rows = new Float64Array(height * all);
    this.columns = new Float64Array(width * all);
    this.readings = new Float64Array(channels * count);
    this.sums = new Float64Array(count);
    /** @type {Float64Array} the last input of an embedding whose densities move */
    this.signal = new Float64Array(0);
    this.box = new Box(maps, axes, pixel);
    /** Whether the box follows the input. */
    this.follows = frame === "mass";
    /** @type {Float64Array[] | null} */
    this.slopes = null;
  }

  /** @param {number} entry @param {number} alpha */
  setLocation(entry, alpha) {
    const axis = entry % this.axes;
    this.loc[entry] = this.box.lower[axis] + this.box.lengths[axis] * sigmoid(SLOPE * alpha);
  }

  /** @param {number} entry @param {number} beta */
  setScale(entry, beta) {
    const scale = this.box.lengths[entry % this.axes] * sigmoid(beta) * this.unit;
    this.scale[entry] = Math.max(scale, LEAST_SCALE);
  }

  /** Computes Γ for the present locations and scales. */
  placed() {
    const { family, loc, scale, axes, height, width } = this;
    masses(family, loc, scale, axes, 1, height, height, this.rows);
    masses(family, loc, scale, axes, 0, width, width, this.columns);
  }

  /**
   * Γx for the given factors of Γ: (channels, count).
   *
   * @param {Float64Array} x (channels, height, width)
   * @param {Float64Array} rows
   * @param {Float64Array} columns
   * @param {Float64Array} out
   */
  act(x, rows, columns, out) {
    const { channels, height, width, count, all, sums } = this;
    out.fill(0);
    for (let c = 0, at = 0; c < channels; c++) {
      const first = this.shared ? 0 : c * count;
      for (let m = 0; m < height; m++) {
        let empty = true;
        for (let n = 0; n < width; n++) {
          const value = x[at++];
          if (value === 0) continue; // most pixels of a digit
          if (empty) sums.fill(0);
          empty = false;
          const from = n * all + first;
          for (let k = 0; k < count; k++) sums[k] += value * columns[from + k];
        }
        if (empty) continue;
        const from = m * all + first;
        const to = c * count;
        for (let k = 0; k < count; k++) out[to + k] += sums[k] * rows[from + k];
      }
    }
  }

  /**
   * Σ_k g_k Γ_k of each channel: the gradient of the input for fixed locations and scales.
   *
   * @param {Float64Array} gradient (channels, count)
   * @param {Float64Array} back (channels, height, width)
   */
  spread(gradient, back) {
    const { channels, height, width, count, all, rows, columns, sums } = this;
    for (let c = 0, at = 0; c < channels; c++) {
      const first = this.shared ? 0 : c * count;
      for (let m = 0; m < height; m++) {
        for (let k = 0; k < count; k++)
          sums[k] = gradient[c * count + k] * rows[m * all + first + k];
        for (let n = 0; n < width; n++, at++) {
          let sum = 0;
          for (let k = 0; k < count; k++) sum += sums[k] * columns[n * all + first + k];
          back[at] += sum;
        }
      }
    }
  }

  /**
   * ∂R / ∂μ along the columns and the rows, then ∂R / ∂s: arrays (channels, count), one per axis.
   *
   * @param {boolean} both whether also for s
   * @returns {Float64Array[]}
   */
  #slopes(both) {
    const { rows, columns } = this;
    const results = [];
    for (const power of both ? [0, 1] : [0])
      for (let axis = 0; axis < this.axes; axis++) {
        const by = new Float64Array((axis ? rows : columns).length);
        this.#differentiate(axis, axis ? this.height : this.width, power, by);
        const slopes = new Float64Array(this.readings.length);
        this.act(this.signal, axis ? by : rows, axis ? columns : by, slopes);
        results.push(slopes);
      }
    return results;
  }

  /**
   * The derivatives of the masses along an axis: −Δ(z^power f(z)) / s.
   *
   * @param {number} axis
   * @param {number} size
   * @param {number} power 0 for the location, 1 for the scale
   * @param {Float64Array} out
   */
  #differentiate(axis, size, power, out) {
    const { loc, scale, family, axes, all } = this;
    for (let d = 0; d < all; d++) {
      const mu = loc[axes * d + axis];
      const s = scale[axes * d + axis];
      const at = (/** @type {number} */ edge) => {
        const z = (edge - mu) / s;
        return (family.pdf(z) * z ** power) / s;
      };
      for (let n = 0, lower = at(0); n < size; n++) {
        const upper = at(n + 1);
        out[n * all + d] = lower - upper;
        lower = upper;
      }
    }
  }

  /**
   * The gradients of the locations and scales, each (densities, axes), and that of the input
   * through the box, which is added to `back`.
   *
   * @param {Float64Array} gradient of the output, (channels, count)
   * @param {boolean} both whether the gradient of the scales is needed
   * @param {Float64Array} back
   */
  backwardPlaces(gradient, both, back) {
    const slopes = (this.slopes ??= this.#slopes(both || this.follows));
    const { loc, scale, axes, channels, count, box } = this;
    const byLoc = new Float64Array(loc.length);
    const byScale = new Float64Array(loc.length);
    for (let c = 0; c < channels; c++) {
      const first = this.shared ? 0 : c * count;
      for (let k = 0; k < count; k++)
        slopes.forEach((slope, kind) => {
          const by = kind < axes ? byLoc : byScale;
          by[axes * (first + k) + (kind % axes)] += gradient[c * count + k] * slope[c * count + k];
        });
    }
    if (this.follows) {
      const byLower = box.lower.map(() => 0);
      const byLength = box.lower.map(() => 0);
      for (let entry = 0; entry < loc.length; entry++) {
        const axis = entry % axes;
        const length = box.lengths[axis];
        byLower[axis] += byLoc[entry];
        byLength[axis] += (byLoc[entry] * (loc[entry] - box.lower[axis])) / length;
        if (scale[entry] > LEAST_SCALE) byLength[axis] += (byScale[entry] * scale[entry]) / length;
      }
      box.backward(this.signal, byLower, byLength, back);
    }
    return { byLoc, byScale };
  }
}

/** Densities at the same places in their box for every input (Section 4.1). */
export class FixedEmbedding extends Densities {
  /**
   * @param {Family} family
   * @param {number[]} maps
   * @param {number} axes
   * @param {boolean} shared
   * @param {number} count
   * @param {"input" | "mass"} frame
   * @param {number[]} pixel
   * @param {Float32Array} alpha
   * @param {Float32Array} beta
   */
  constructor(family, maps, axes, shared, count, frame, pixel, alpha, beta) {
    super(family, maps, axes, shared, count, frame, pixel);
    this.alpha = alpha;
    this.beta = beta;
    this.#place();
    this.placed();
    this.gradient = new Float64Array(this.channels * this.height * this.width);
  }

  #place() {
    this.alpha.forEach((value, entry) => this.setLocation(entry, value));
    this.beta.forEach((value, entry) => this.setScale(entry, value));
  }

  /** @param {Float64Array} x */
  locate(x) {
    if (!this.follows) return;
    this.box.follow(x);
    this.#place();
  }

  /** @param {Float64Array} x */
  forward(x) {
    if (this.follows) {
      this.locate(x);
      this.placed();
      this.signal = x;
      this.slopes = null;
    }
    this.act(x, this.rows, this.columns, this.readings);
    return this.readings;
  }

  /** @param {Float64Array} gradient */
  backward(gradient) {
    this.spread(gradient, this.gradient.fill(0));
    if (this.follows) this.backwardPlaces(gradient, true, this.gradient);
    return this.gradient;
  }
}

/** Densities that a micro network moves with the input (Section 4.2). */
export class MovingEmbedding extends Densities {
  /** @param {Plan} plan @param {(name: string) => Float32Array} tensor */
  constructor(plan, tensor) {
    const { family, maps, axes, shared, frame, pixel } = plan;
    super(family, maps, axes, shared, plan.densities, frame, pixel);
    this.inner = new FixedEmbedding(
      family, maps, axes, shared, plan.locators, frame, pixel,
      tensor("locator.0.alpha"), tensor("locator.0.beta"),
    );
    this.linear = new Linear(tensor("locator.2.weight"), tensor("locator.2.bias"));
    this.beta = tensor("beta");
    this.scales = plan.scales;
    this.beta.forEach((value, entry) => this.setScale(entry, value));
  }

  /** @param {Float64Array} x */
  locate(x) {
    const numbers = this.linear.forward(this.inner.forward(x));
    const { loc, beta } = this;
    if (this.follows) this.box.follow(x);
    for (let entry = 0; entry < loc.length; entry++) this.setLocation(entry, numbers[entry]);
    if (this.scales || this.follows)
      for (let entry = 0; entry < loc.length; entry++)
        this.setScale(entry, beta[entry] + (this.scales ? numbers[loc.length + entry] : 0));
  }

  /** @param {Float64Array} x */
  forward(x) {
    this.locate(x);
    this.placed();
    this.signal = x;
    this.slopes = null;
    this.act(x, this.rows, this.columns, this.readings);
    return this.readings;
  }

  /** @param {Float64Array} gradient */
  backward(gradient) {
    const { loc, scale, axes, unit, box } = this;
    const through = new Float64Array(this.signal.length);
    const { byLoc, byScale } = this.backwardPlaces(gradient, this.scales, through);
    const numbers = new Float64Array(this.linear.output.length);
    for (let entry = 0; entry < loc.length; entry++) {
      const length = box.lengths[entry % axes];
      const share = (loc[entry] - box.lower[entry % axes]) / length;
      numbers[entry] = byLoc[entry] * SLOPE * length * share * (1 - share);
      if (this.scales && scale[entry] > LEAST_SCALE)
        numbers[loc.length + entry] =
          byScale[entry] * scale[entry] * (1 - scale[entry] / (length * unit));
    }
    const back = this.inner.backward(this.linear.backward(numbers));
    this.spread(gradient, back);
    for (let at = 0; at < back.length; at++) back[at] += through[at];
    return back;
  }
}

/** One uniform density per pixel, so that Γ is the identity (Section 3.1). */
export class PixelEmbedding {
  /** @param {number[]} maps (channels, height, width) @param {number} axes 1 for a signal */
  constructor([channels, height, width], axes) {
    this.family = /** @type {Family} */ (FAMILIES.get("uniform"));
    this.channels = channels;
    this.height = height;
    this.width = width;
    this.loc = new Float64Array(axes * height * width);
    for (let k = 0; k < height * width; k++) {
      this.loc[axes * k] = (k % width) + 0.5;
      if (axes === 2) this.loc[axes * k + 1] = Math.floor(k / width) + 0.5;
    }
    this.scale = new Float64Array(this.loc.length).fill(0.5);
  }

  locate() {}

  /** @param {Float64Array} x */
  forward(x) {
    return x;
  }

  /** @param {Float64Array} gradient */
  backward(gradient) {
    return gradient;
  }
}
