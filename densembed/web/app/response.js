// The answer of every snapshot of a checkpoint to one input. Everything is computed when it is
// first asked for, and kept.
/**
 * @import { Checkpoint } from "../engine/densembed.js"
 * @import { Values } from "./kinds.js"
 */
import { largestValue, meanDisplacement, measure, percentile } from "../engine/densembed.js";
import { fixed, notZero, percentage } from "../panels/text.js";
import { asInput, nounsOf, planesOf } from "./kinds.js";

export const RESOLUTION = 4;  // cells per pixel on each axis
export const TOP = 99.5;  // percentile of a field at which its colour scale ends

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
  whole = false;  // whether the fields of all steps are computed

  /**
   * @param {Checkpoint} checkpoint
   * @param {Values} pixels (channels, height, width), 0 to 255; or (channels, length) of a signal
   * @param {number | null} [channel] whose field is shown; null for the sum of all
   */
  constructor(checkpoint, pixels, channel = null) {
    this.checkpoint = checkpoint;
    this.pixels = pixels;
    this.channel = channel;
    const { inputShape, axes } = checkpoint;
    const [, height, width] = planesOf(inputShape);
    this.nouns = nounsOf(inputShape);
    this.size = /** @type {[number, number]} */ ([width, height]);
    this.shape = /** @type {[number, number]} */ (
      [axes === 1 ? 1 : height * RESOLUTION, width * RESOLUTION]);
    this.input = asInput(pixels, checkpoint.header);
    // All of a curve is seen, while brighter pixels than the scale has are bright.
    this.share = axes === 1 ? 100 : TOP;
    this.result = kept((k) => checkpoint.network(k).run(this.input));
    this.field = kept((k) => checkpoint.network(k).field(this.result(k), { channel }));
    /** The value at which a colour scale of one field ends. */
    this.end = kept((k) => percentile(this.field(k), this.share));
    this.pixelField = kept((k) => checkpoint.network(k).pixelField(this.result(k), { channel }));
    const byClass = kept((label) => kept((k) => {
      const network = checkpoint.network(k);
      return network.field(this.result(k), { channel, weights: network.classWeights(label) });
    }));
    /** The densities times their weights for a class, summed. */
    this.classField = (/** @type {number} */ k, /** @type {number} */ label) => byClass(label)(k);
    /** Each density of a signal, one after another. */
    this.densities = kept((k) => {
      const network = checkpoint.network(k);
      const all = new Float32Array(network.densities * this.shape[1]);
      for (let density = 0; density < network.densities; density++)
        all.set(network.density(this.result(k), density), density * this.shape[1]);
      return all;
    });
    this.measures = kept((k) => this.measure(k));
  }

  /** The index of the last snapshot. */
  get last() {
    return this.checkpoint.steps.length - 1;
  }

  /** The class that is predicted after training. */
  get prediction() {
    const { probabilities } = this.result(this.last);
    return probabilities.indexOf(Math.max(...probabilities));
  }

  /** @param {number} k */
  predictionText(k) {
    const { probabilities } = this.result(k);
    const most = Math.max(...probabilities);
    const label = probabilities.indexOf(most);
    if (probabilities.length > 1 && most === Math.min(...probabilities))
      return `all classes equally likely (${percentage(most)})`;
    return `${this.checkpoint.classes[label]} (${percentage(most)})`;
  }

  /**
   * The upper end of the colour scale of the fields at some snapshots; of all, once they are
   * computed.
   * @param {Iterable<number>} snapshots
   */
  top(snapshots) {
    const shown = this.whole ? this.checkpoint.steps.keys() : snapshots;
    return Math.max(...[...shown].map(this.end)) || 1;
  }

  /**
   * The height of single densities at some snapshots: a percentile of their largest values.
   * @param {number[]} snapshots
   * @param {number} percent
   */
  peak(snapshots, percent) {
    const cells = this.shape[1];
    const peaks = snapshots.flatMap((k) => Array.from({ length: this.densities(k).length / cells },
      (_, n) => this.densities(k).subarray(n * cells, (n + 1) * cells).reduce((a, b) =>
        Math.max(a, b))));
    return percentile(peaks, percent);
  }

  /**
   * The end of a scale for fields of either sign, by those before and after training.
   * @param {(k: number) => Float32Array} fields
   */
  bound(fields) {
    return Math.max(...[0, this.last].map((k) => largestValue(fields(k), this.share))) || 1;
  }

  /**
   * Measures of the field in words, by name.
   * @param {number} k
   * @returns {Record<string, string>}
   */
  measure(k) {
    const [height, width] = this.shape;
    const cells = this.size[0] * this.size[1];
    const { axes } = this.checkpoint;
    const noun = `${this.nouns.cell}s`;
    const { centre, spread, entropy, area } = measure(
      this.field(k), this.field(0), { width, height }, this.checkpoint.inputShape);
    const texts = {
      centre: centre.slice(0, axes).map((value) => value.toFixed(1)).join(", "),
      spread: `${notZero(spread, 1)} ${noun}`,
      entropy: `${fixed(entropy, 1)} of ${Math.log2(cells).toFixed(1)} bits`,
      "90 % of the field in": `${area.toFixed(area < 1 ? 1 : 0)} of ${cells} ${noun}`,
    };
    if (this.field(k).some(Boolean)) return texts;
    return Object.fromEntries(Object.keys(texts).map((name) => [name, "—"]));
  }

  /**
   * The measures of a snapshot in one line.
   * @param {number} k
   */
  numbers(k) {
    const parts = Object.entries(this.measures(k)).map(([name, text]) => `${name} ${text}`);
    if (this.checkpoint.hasDensities) {
      const { axes } = this.checkpoint;
      const distance = meanDisplacement(this.result(0).locations, this.result(k).locations, axes);
      const one = this.checkpoint.network(k).densities === 1;
      const by = `${notZero(distance, 1)} ${this.nouns.cell}s${one ? "" : " on average"}`;
      parts.push(`${one ? "the density has" : "densities have"} ${distance ? `moved ${by}`
        : "not moved"} since the start`);
    }
    return parts.join(" · ");
  }
}
