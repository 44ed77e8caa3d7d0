// The parts of a network with the numbers of one input: what the chain and the five steps draw.
/**
 * @import { Micro } from "../engine/network.js"
 * @import { Response } from "./response.js"
 */

/**
 * What a network is made of: densities that move with the input or stay, a weight per pixel,
 * hidden units, or maps of convolution stages.
 * @typedef {"moving" | "fixed" | "linear" | "hidden" | "maps"} Kind
 */

const LARGEST_SHOWN = 3;  // readings of the micro network that are named

/** @param {Response} response @param {number} current @returns {Kind} */
export function kindOf({ checkpoint }, current) {
  const network = checkpoint.network(current);
  if (!network.onPixels) return "maps";
  if (network.hasMicroNetwork) return "moving";
  return checkpoint.hasDensities ? "fixed" : network.linear ? "linear" : "hidden";
}

/** The numbers of one input in a network, at one snapshot. */
export class Anatomy {
  /** @param {Response} response @param {number} current */
  constructor(response, current) {
    this.response = response;
    this.kind = kindOf(response, current);
    this.network = response.checkpoint.network(current);
    this.result = response.result(current);
    const { values, weight, bias } = this.network.features(response.input);
    this.values = values;
    this.weight = weight;
    this.bias = bias;
    /** @type {Micro | null} */
    this.micro = this.kind === "moving" ? this.network.micro(response.input) : null;
    const [channels] = response.checkpoint.inputShape;
    this.grid = gridOf(values.length, [channels, ...this.network.grid], this.kind);
  }

  get count() {
    return this.values.length;
  }

  /** The weights of a class. @param {number} label */
  weights(label) {
    return this.weight.subarray(label * this.count, (label + 1) * this.count);
  }

  /** What each unit adds to the score of a class. @param {number} label */
  terms(label) {
    const weights = this.weights(label);
    return Float64Array.from(this.values, (value, k) => value * weights[k]);
  }

  /** The largest term of any class, at which the colour scale of the terms ends. */
  get bound() {
    let bound = 0;
    for (let k = 0; k < this.weight.length; k++)
      bound = Math.max(bound, Math.abs(this.weight[k] * this.values[k % this.count]));
    return bound || 1;
  }

  /**
   * What each density adds to the score of a class: its terms, summed over the maps that it reads.
   * @param {number} label
   */
  shares(label) {
    const sums = new Float64Array(this.network.densities);
    this.terms(label).forEach((term, k) => { sums[k % sums.length] += term; });
    return sums;
  }

  /** The unit that adds most to the score of a class. @param {number} label */
  strongest(label) {
    const terms = this.terms(label);
    return terms.indexOf(terms.reduce((a, b) => Math.max(a, b)));
  }

  /**
   * The sums of the terms for and against a class.
   * @param {number} label
   */
  evidence(label) {
    const [raised, lowered] = [1, -1].map((sign) =>
      this.terms(label).filter((term) => sign * term > 0));
    const sum = (/** @type {Float64Array} */ terms) => terms.reduce((all, term) => all + term, 0);
    return { raised: sum(raised), raising: raised.length, lowered: sum(lowered),
      lowering: lowered.length, bias: this.bias[label] };
  }

  /** The channel of the input that a unit on the pixels reads. @param {number} unit */
  channelOf(unit) {
    const [channels] = this.response.checkpoint.inputShape;
    return Math.floor(unit / (this.count / channels)) % channels;
  }

  /**
   * A map of a unit over the pixels, (height, width): the mass of its density in each pixel, the
   * weights of a hidden unit, or the gradient of its value.
   * @param {number} unit
   */
  map(unit) {
    const { kind, network, response: { input, checkpoint } } = this;
    if (kind === "moving" || kind === "fixed") return network.gamma(this.result, unit);
    const gradient = network.featureGradient(input, unit);
    const [channels, height, width] = checkpoint.inputShape;
    const plane = height * width;
    if (channels === 1) return gradient;
    return Float32Array.from({ length: plane }, (_, k) => {
      let sum = 0;
      for (let c = 0; c < channels; c++) sum += gradient[c * plane + k];
      return sum;
    });
  }

  /** The ink that a unit reads, (height, width). @param {number} unit */
  ink(unit) {
    const [, height, width] = this.response.checkpoint.inputShape;
    const first = this.channelOf(unit) * height * width;
    return this.response.input.subarray(first, first + height * width);
  }

  /**
   * The readings of the micro network that move a density most: their numbers, and by how much
   * they change α along the columns and the rows.
   * @param {number} unit
   */
  pulls(unit) {
    const { micro } = this;
    if (!micro) return [];
    const { readings, weight } = micro;
    const pull = (/** @type {number} */ entry, /** @type {number} */ k) =>
      weight[entry * readings.length + k] * readings[k];
    return Array.from(readings, (_, k) => ({ k, by: [pull(2 * unit, k), pull(2 * unit + 1, k)] }))
      .sort((a, b) => Math.hypot(...b.by) - Math.hypot(...a.by)).slice(0, LARGEST_SHOWN);
  }
}

/**
 * Rows and columns for the units of a network: pixels as in the picture, others nearly square.
 * @param {number} count
 * @param {number[]} shape of the inputs for which the network was made
 * @param {Kind} kind
 * @returns {[rows: number, columns: number]}
 */
function gridOf(count, [channels, height, width], kind) {
  if (kind === "linear") return [channels * height, width];
  let columns = Math.ceil(Math.sqrt(count));
  while (count % columns && columns < 2 * Math.sqrt(count)) columns++;
  if (count % columns) columns = Math.ceil(Math.sqrt(count));
  return [Math.ceil(count / columns), columns];
}
