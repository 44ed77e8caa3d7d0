// @ts-check
// What the snapshots of a checkpoint answer to one input. Everything is computed when it is first
// asked for, and kept.

import { measures, percentile } from "./measures.js";

/** @import { Checkpoint, Result } from "../engine/densembed.js" */

export const RESOLUTION = 4;  // cells per pixel on each axis
const TOP = 99.5;  // percentile of a field at which its colour scale ends

/**
 * A function whose results are kept by its argument.
 * @template T
 * @param {(key: number) => T} compute
 */
function kept(compute) {
  /** @type {Map<number, T>} */
  const results = new Map();
  return (/** @type {number} */ key) => {
    let result = results.get(key);
    if (result === undefined) results.set(key, result = compute(key));
    return result;
  };
}


export class Response {
  /**
   * @param {Checkpoint} checkpoint
   * @param {Uint8Array} pixels channels × height × width, 0 to 255
   * @param {number | null} [channel] index of the channel whose field is shown; null for their sum
   */
  constructor(checkpoint, pixels, channel = null) {
    this.checkpoint = checkpoint;
    this.pixels = pixels;
    this.channel = channel;
    const [, height, width] = checkpoint.inputShape;
    this.size = /** @type {[number, number]} */ ([width, height]);
    this.shape = /** @type {[number, number]} */ ([height * RESOLUTION, width * RESOLUTION]);
    const ink = Float32Array.from(pixels, (value) => value / 255);
    const options = { resolution: RESOLUTION, channel };
    this.network = (/** @type {number} */ k) => checkpoint.network(k);
    this.result = kept((k) => this.network(k).run(ink));
    this.probabilities = kept((k) => this.result(k).probabilities);
    this.field = kept((k) => this.network(k).field(this.result(k), options));
    this.perPixel = kept((k) => this.network(k).pixelField(this.result(k), { channel }));
    this.densities = kept((k) => this.network(k).densities(this.result(k)));
    this.measures = kept((k) => measures(this.field(k), this.shape, RESOLUTION));
    /** @type {Map<number, (k: number) => Float32Array>} */
    this.classFields = new Map();
  }

  /** The index of the last snapshot. */
  get last() {
    return this.checkpoint.steps.length - 1;
  }

  /**
   * The densities times their weights for a class, summed.
   * @param {number} k
   * @param {number} label
   */
  classField(k, label) {
    let fields = this.classFields.get(label);
    if (!fields) {
      fields = kept((step) => {
        const network = this.network(step);
        return network.field(this.result(step), {
          resolution: RESOLUTION, channel: this.channel, weights: network.classWeights(label),
        });
      });
      this.classFields.set(label, fields);
    }
    return fields(k);
  }

  /**
   * The upper end of the colour scale of some snapshots.
   * @param {Iterable<number>} snapshots
   */
  top(snapshots) {
    return Math.max(...[...snapshots].map((k) => percentile(this.field(k), TOP)));
  }

  /**
   * The end of a colour scale that is symmetrical around 0, of the first and the last snapshot.
   * @param {number} label
   */
  classTop(label) {
    return Math.max(...[0, this.last].map((k) => {
      const values = this.classField(k, label);
      return percentile(values.map(Math.abs), TOP);
    }));
  }

  /** The upper end of the colour scale of `perPixel`. */
  perPixelTop() {
    return Math.max(...[0, this.last].map((k) => percentile(this.perPixel(k), TOP)));
  }

  /** Mean distance between the locations of the densities at two snapshots, in pixels. */
  displacement(/** @type {number} */ k) {
    const [first, now] = [this.densities(0).loc, this.densities(k).loc];
    let sum = 0;
    for (let i = 0; i < first.length; i += 2)
      sum += Math.hypot(now[i] - first[i], now[i + 1] - first[i + 1]);
    return sum / (first.length / 2);
  }

  /** @param {number} k */
  prediction(k) {
    const shares = [...this.probabilities(k)];
    const most = Math.max(...shares);
    return `${this.checkpoint.classes[shares.indexOf(most)]} (${(100 * most).toFixed(1)} %)`;
  }

  /** The centre, spread and other measures of the field at a snapshot, in one line. */
  numbers(/** @type {number} */ k) {
    const parts = Object.entries(this.measures(k)).map(([name, value]) => `${name} ${value}`);
    if (this.checkpoint.hasDensities)
      parts.push(`densities have moved ${this.displacement(k).toFixed(1)} pixels on average since `
        + "the start");
    return parts.join(" · ");
  }
}

