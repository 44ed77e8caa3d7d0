// @ts-check
/**
 * One network of a checkpoint: predictions, densities and receptive fields.
 *
 * @import { Layer, Tensors } from "./layers.js"
 * @import { Plan } from "./names.js"
 */

import { FixedEmbedding, MovingEmbedding, PixelEmbedding } from "./embedding.js";
import { Convolution, Linear, Means, Pool, ReLU } from "./layers.js";
import { embeddingName } from "./names.js";
import { densitiesAt, densitiesOver, masses, sumOfProducts } from "./separable.js";

const RESOLUTION = 4;

/**
 * Where the densities lie for an input, on the input itself. Densities of several channels follow
 * one another. Arrays of fixed densities are shared by all results: do not change them.
 *
 * @typedef {object} Placement
 * @property {Float64Array} locations (densities, axes), in pixels along the columns and the rows,
 *   or in samples of a signal
 * @property {Float64Array} scales the same
 */

/**
 * What a network computes for an input.
 *
 * @typedef {Placement & {
 *   logits: Float64Array,
 *   probabilities: Float64Array,
 *   readings: Float64Array,
 *   box: number[] | null,
 * }} Result
 *
 * `readings` is Γx, (channels or maps, densities per channel): the mean under each density. `box`
 * has the left and upper edge, the width and the height of the box in which the densities are
 * placed, in pixels of the input; of a signal the left edge and the width. It is null if the box is
 * the input itself.
 */

/**
 * What the last linear map of a network gets: logit_c = Σ_k weight[c, k] · values[k] + bias[c].
 *
 * @typedef {object} Features
 * @property {Float64Array} values the readings Γx, or the hidden units after ReLU
 * @property {Float32Array} weight (classes, features)
 * @property {Float32Array} bias (classes)
 */

/**
 * A micro network at one input (Section 4.2): its densities, their readings, and the linear map
 * from them to α of the densities that it moves.
 *
 * @typedef {Placement & {
 *   readings: Float64Array,
 *   weight: Float32Array,
 *   bias: Float32Array,
 *   start: Placement,
 * }} Micro
 *
 * `weight` is (entries of α, readings); of a picture, entry 2 i is α of density i along the columns
 * and 2 i + 1 along the rows. `start` is the placement for a blank input.
 */

/**
 * @typedef {object} FieldOptions
 * @property {number} [resolution] cells per pixel on each axis, by default 4
 * @property {number} [height] number of rows, by default resolution × the input's height; 1 of a
 *   signal
 * @property {number} [width] number of columns, by default resolution × the input's width
 * @property {ArrayLike<number> | null} [weights] of all densities, e.g. from `classWeights`
 * @property {number | null} [channel] the densities of one channel, by default those of all
 * @property {Float32Array} [out] array to fill and return, by default a new one
 */

/** @typedef {typeof densitiesAt} Fill */

/** Factors along each axis; one pair of arrays serves all networks. */
const scratch = { rows: new Float64Array(0), columns: new Float64Array(0) };

/** @param {"rows" | "columns"} name @param {number} size */
function room(name, size) {
  if (scratch[name].length < size) scratch[name] = new Float64Array(size);
  return scratch[name];
}

export class Network {
  #plan;
  /** @type {Layer[]} */
  #stages = [];
  #embedding;
  /** @type {(Linear | ReLU)[]} */
  #classifier;
  #input;
  /** Map from the maps to the input: stretch and offset for rows and columns. */
  #stretch = [1, 1];
  #offset = [0, 0];
  /** @type {Placement | null} */
  #placement = null;
  /** @type {Float64Array | null} */
  #weights = null;

  /** @param {Plan} plan @param {Tensors} tensor */
  constructor(plan, tensor) {
    this.#plan = plan;
    const own = embeddingName(plan);
    // Densities on the pixels take any grid, other layers the one for which they were made.
    const anyGrid = plan.kind !== "pixels" && !plan.stages.length;
    let maps = anyGrid ? plan.inputShape : [plan.inputShape[0], ...plan.grid];
    if (maps.join() !== plan.inputShape.join())
      this.#stages.push(new Means(plan.inputShape, plan.grid));
    plan.stages.forEach((stage, k) => {
      const part = (/** @type {string} */ name) => tensor(`embedding.features.${k}.${name}`);
      const [channels, height, width] = maps;
      if (stage.kind === "relu") this.#stages.push(new ReLU(channels * height * width));
      else if (stage.kind === "softmax") this.#stages.push(new Pool(maps, stage, part("beta")));
      else if (stage.kind === "max") this.#stages.push(new Pool(maps, stage));
      else {
        const amplitude = stage.kind === "adaptive" ? part("amplitude_logit") : undefined;
        this.#stages.push(new Convolution(maps, stage, part("weight"), part("bias"), amplitude));
      }
      const { stretch } = /** @type {Layer} */ (this.#stages.at(-1));
      maps = [stage.maps, Math.floor(height / stretch[0]), Math.floor(width / stretch[1])];
    });
    for (const { stretch, offset } of [...this.#stages].reverse()) {
      this.#offset = this.#offset.map((each, axis) => stretch[axis] * each + offset[axis]);
      this.#stretch = this.#stretch.map((each, axis) => stretch[axis] * each);
    }
    const part = (/** @type {string} */ name) => tensor(`${own}.${name}`);
    this.#embedding =
      plan.kind === "moving"
        ? new MovingEmbedding(plan, part)
        : plan.kind === "fixed"
          ? new FixedEmbedding(
              plan.family, plan.maps, plan.axes, plan.shared, plan.densities, plan.frame,
              plan.pixel, part("alpha"), part("beta"),
            )
          : new PixelEmbedding(plan.maps, plan.axes);
    const linear = (/** @type {string} */ name) =>
      new Linear(tensor(`${name}.weight`), tensor(`${name}.bias`));
    this.#classifier = plan.hidden
      ? [linear("classifier.0"), new ReLU(plan.hidden), linear("classifier.2")]
      : [linear("classifier")];
    this.#input = new Float64Array(plan.inputShape.reduce((product, size) => product * size));
  }

  /** The number of axes of an input: 2 of a picture, 1 of a signal. */
  get axes() {
    return this.#plan.axes;
  }

  /** Number of densities, of all channels together. */
  get densities() {
    return this.#embedding.loc.length / this.axes;
  }

  /** Whether the densities move with the input. */
  get adaptive() {
    return this.#plan.kind === "moving" || this.#plan.frame === "mass";
  }

  /** Whether a micro network places the densities. */
  get hasMicroNetwork() {
    return this.#plan.kind === "moving";
  }

  /** The box in which the densities are placed: the input, or a box around its mass. */
  get frame() {
    return this.#plan.frame;
  }

  /** Height and width of the inputs for which the network was made. */
  get grid() {
    return this.#plan.grid;
  }

  /** Whether the densities are over the pixels, not over the feature maps of other layers. */
  get onPixels() {
    return this.#plan.stages.length === 0;
  }

  /** Whether the network is one linear map of the pixels, which `inputGradient` then gives. */
  get linear() {
    return this.onPixels && !this.adaptive && !this.#plan.hidden;
  }

  /**
   * Computes the predictions and the densities for one input.
   *
   * @param {ArrayLike<number>} pixels (channels, height, width), from 0 to 1 (a byte / 255), as in
   *   Python; nothing else is normalised. Or a signal, (channels, length), with the values scaled
   *   by the header's `scaling`: (value − mean) / std
   * @returns {Result}
   */
  run(pixels) {
    let x = this.#embedding.forward(this.#maps(pixels));
    const readings = x.slice();
    for (const layer of this.#classifier) x = layer.forward(x);
    const logits = x.slice();
    return { logits, probabilities: softmax(x), readings, box: this.#box(), ...this.#placed() };
  }

  /**
   * Where the densities lie for one input, without its predictions.
   *
   * @param {ArrayLike<number>} pixels
   * @returns {Placement}
   */
  place(pixels) {
    if (this.adaptive) this.#embedding.locate(this.#maps(pixels));
    return this.#placed();
  }

  /** @param {ArrayLike<number>} pixels */
  #maps(pixels) {
    if (pixels.length !== this.#input.length)
      throw new RangeError(`Expected ${this.#input.length} pixels; got ${pixels.length}.`);
    this.#input.set(pixels);
    /** @type {Float64Array} */
    let x = this.#input;
    for (const stage of this.#stages) x = stage.forward(x);
    return x;
  }

  /** @returns {Placement} */
  #placed() {
    if (this.#placement) return this.#placement;
    const placement = this.#onInput(this.#embedding);
    if (!this.adaptive) this.#placement = placement;
    return placement;
  }

  /**
   * Locations and scales on the input, of densities over the maps.
   *
   * @param {{ loc: Float64Array, scale: Float64Array }} densities
   * @returns {Placement}
   */
  #onInput({ loc, scale }) {
    const placement = { locations: loc.slice(), scales: scale.slice() };
    if (this.#stages.length)
      for (let entry = 0; entry < loc.length; entry++) {
        const axis = 1 - (entry % this.axes); // of the stretch, rows first
        placement.locations[entry] = loc[entry] * this.#stretch[axis] + this.#offset[axis];
        placement.scales[entry] = scale[entry] * this.#stretch[axis];
      }
    return placement;
  }

  /** The box of the last input, on the input. */
  #box() {
    const embedding = this.#embedding;
    if (this.frame !== "mass" || embedding instanceof PixelEmbedding) return null;
    const { lower, lengths } = embedding.box;
    const [stretch, offset] = [this.#stretch.toReversed(), this.#offset.toReversed()];
    return [...lower.map((each, axis) => each * stretch[axis] + offset[axis]),
      ...lengths.map((each, axis) => each * stretch[axis])];
  }

  /**
   * What the last linear map gets for an input.
   *
   * @param {ArrayLike<number>} pixels
   * @returns {Features}
   */
  features(pixels) {
    const layers = this.#classifier.slice(0, -1);
    let x = this.#embedding.forward(this.#maps(pixels));
    for (const layer of layers) x = layer.forward(x);
    const { weight, bias } = /** @type {Linear} */ (this.#classifier.at(-1));
    return { values: x.slice(), weight, bias };
  }

  /**
   * ∂ features / ∂ x of one feature, (channels, height, width): its receptive field on the input.
   * For a hidden unit it is the gradient before ReLU, its weight per pixel.
   *
   * @param {ArrayLike<number>} pixels
   * @param {number} feature
   */
  featureGradient(pixels, feature) {
    const { length } = this.features(pixels).values;
    if (!(feature >= 0 && feature < length))
      throw new RangeError(`There is no feature ${feature}.`);
    const hidden = this.#classifier.filter((layer) => layer instanceof Linear).slice(0, -1);
    /** @type {Float64Array} */
    let gradient = Float64Array.from({ length }, (_, k) => (k === feature ? 1 : 0));
    for (const layer of [...this.#stages, this.#embedding, ...hidden].reverse())
      gradient = layer.backward(gradient);
    return Float32Array.from(gradient);
  }

  /**
   * The micro network at an input; null if there is none.
   *
   * @param {ArrayLike<number>} pixels
   * @returns {Micro | null}
   */
  micro(pixels) {
    const embedding = this.#embedding;
    if (!(embedding instanceof MovingEmbedding)) return null;
    embedding.locate(this.#maps(new Float64Array(this.#input.length)));
    const start = this.#onInput(embedding);
    embedding.locate(this.#maps(pixels));
    const { inner, linear } = embedding;
    return {
      ...this.#onInput(inner), readings: inner.readings.slice(), start, weight: linear.weight,
      bias: linear.bias,
    };
  }

  /**
   * Σ_i w_i φ_i(t, u), per square pixel, at the centres of equal cells, row 0 at the top; of a
   * signal Σ_i w_i φ_i(t), per sample, in one row. Without weights it is the receptive field, with
   * those of `classWeights` the field for a class. Uniform densities on the tiles of a grid have
   * their means over the cells, because a centre may lie on an edge that two of them share.
   *
   * @param {Placement} placement from `run` or `place`
   * @param {FieldOptions} [options]
   */
  field(placement, options = {}) {
    const fill = this.#plan.kind === "pixels" ? densitiesOver : densitiesAt;
    return this.#sum(placement, options, fill);
  }

  /**
   * The mean of the fields of several inputs.
   *
   * @param {ArrayLike<number>[]} inputs
   */
  meanField(inputs) {
    const out = this.field(this.place(inputs[0]));
    const sums = Float64Array.from(out);
    for (const pixels of inputs.slice(1)) {
      this.field(this.place(pixels), { out });
      for (let at = 0; at < out.length; at++) sums[at] += out[at];
    }
    return Float32Array.from(sums, (sum) => sum / inputs.length);
  }

  /**
   * φ_i(t, u) of one density, or φ_i(t).
   *
   * @param {Placement} placement
   * @param {number} density
   * @param {FieldOptions} [options]
   */
  density(placement, density, options = {}) {
    return this.field(this.#only(placement, density), { ...options, weights: null, channel: null });
  }

  /**
   * Σ_i w_i Γ_i, the mass of the densities in each pixel.
   *
   * @param {Placement} placement
   * @param {Pick<FieldOptions, "weights" | "channel" | "out">} [options]
   */
  pixelField(placement, options = {}) {
    return this.#sum(placement, { ...options, resolution: 1 }, masses);
  }

  /**
   * Γ_i, the mass of one density in each pixel: (height, width), or (length).
   *
   * @param {Placement} placement
   * @param {number} density
   */
  gamma(placement, density) {
    return this.pixelField(this.#only(placement, density));
  }

  /**
   * @param {Placement} placement
   * @param {FieldOptions} options
   * @param {Fill} fill
   */
  #sum({ locations, scales }, { resolution = RESOLUTION, weights, channel, ...options }, fill) {
    const { axes } = this;
    const [channels, rowsIn, columnsIn] = this.#plan.inputShape;
    const rowsOut = axes === 1 ? 1 : rowsIn * resolution;
    const { height = rowsOut, width = columnsIn * resolution } = options;
    const out = options.out ?? new Float32Array(height * width);
    if (this.#plan.kind === "pixels" && locations.length > axes) {
      const terms = this.#tiles(locations, scales, weights, height, width, fill);
      sumOfProducts(terms.rows, terms.columns, terms.count, height, width, out);
      return out;
    }
    const groups = this.#plan.shared ? 1 : channels;
    let first = 0, count = locations.length / axes;
    if (channel !== undefined && channel !== null) {
      count /= groups;
      first = (channel % groups) * count;
      locations = locations.subarray(axes * first, axes * (first + count));
      scales = scales.subarray(axes * first, axes * (first + count));
    }
    const rows = room("rows", height * count);
    const columns = room("columns", width * count);
    const { family } = this.#plan;
    fill(family, locations, scales, axes, 1, rowsIn, height, rows);
    fill(family, locations, scales, axes, 0, columnsIn, width, columns);
    if (weights)
      for (let y = 0, at = 0; y < height; y++)
        for (let d = 0; d < count; d++) rows[at++] *= weights[first + d];
    sumOfProducts(rows, columns, count, height, width, out);
    return out;
  }

  /**
   * The factors of the sum of uniform densities on the tiles of a grid, the densities of each
   * column of the grid summed.
   *
   * @param {Float64Array} locations
   * @param {Float64Array} scales
   * @param {ArrayLike<number> | null | undefined} weights
   * @param {number} height
   * @param {number} width
   * @param {Fill} fill
   */
  #tiles(locations, scales, weights, height, width, fill) {
    const { axes } = this;
    const [, rowsIn, columnsIn] = this.#plan.inputShape;
    const [, down, count] = this.#plan.maps;
    const every = (/** @type {Float64Array} */ values) =>
      Float64Array.from({ length: axes * down }, (_, k) =>
        values[Math.floor(k / axes) * axes * count + (k % axes)]);
    const parts = new Float64Array(height * down);
    fill(this.#plan.family, every(locations), every(scales), axes, 1, rowsIn, height, parts);
    const columns = room("columns", width * count);
    const alongs = [locations, scales].map((values) => values.subarray(0, axes * count));
    fill(this.#plan.family, alongs[0], alongs[1], axes, 0, columnsIn, width, columns);
    const rows = room("rows", height * count).fill(0);
    for (let y = 0; y < height; y++)
      for (let tile = 0; tile < down; tile++) {
        const part = parts[y * down + tile];
        if (part)
          for (let k = 0; k < count; k++)
            rows[y * count + k] += part * (weights ? weights[tile * count + k] : 1);
      }
    return { rows, columns, count };
  }

  /**
   * One density of several.
   *
   * @param {Placement} placement
   * @param {number} density
   * @returns {Placement}
   */
  #only({ locations, scales }, density) {
    const [from, to] = [this.axes * density, this.axes * (density + 1)];
    if (!(density >= 0 && to <= locations.length))
      throw new RangeError(`There is no density ${density}.`);
    return { locations: locations.subarray(from, to), scales: scales.subarray(from, to) };
  }

  /**
   * The weights of the densities for a class, summed over feature maps that share a density; null
   * if there is a hidden layer.
   *
   * @param {number} label index of the class
   * @returns {Float64Array | null}
   */
  classWeights(label) {
    const all = (this.#weights ??= this.#perDensity((weight) => weight));
    return all && all.subarray(label * this.densities, (label + 1) * this.densities);
  }

  /**
   * What each density adds to the logit of a class, w_i (Γx)_i: with the bias their sum is the
   * logit. Null if there is a hidden layer.
   *
   * @param {Result} result
   * @param {number} label
   */
  contributions({ readings }, label) {
    const all = this.#perDensity((weight, reading) => weight * readings[reading]);
    return all && all.slice(label * this.densities, (label + 1) * this.densities);
  }

  /**
   * Terms of each weight of a linear classifier, summed per density: (classes, densities).
   *
   * @param {(weight: number, reading: number) => number} term
   */
  #perDensity(term) {
    const [classifier] = this.#classifier;
    if (this.#plan.hidden || !(classifier instanceof Linear)) return null;
    const { inputs, weight } = classifier;
    const sums = new Float64Array(this.#plan.classes * this.densities);
    for (let c = 0, at = 0; c < this.#plan.classes; c++)
      for (let k = 0; k < inputs; k++, at++)
        sums[c * this.densities + (k % this.densities)] += term(weight[at], k);
    return sums;
  }

  /**
   * ∂ logit_c / ∂ x at one input: (classes, channels, height, width), the effect of each pixel.
   *
   * @param {ArrayLike<number>} pixels
   */
  inputGradient(pixels) {
    const { classes } = this.#plan;
    const result = new Float32Array(classes * this.#input.length);
    this.run(pixels);
    const layers = [...this.#stages, this.#embedding, ...this.#classifier].reverse();
    for (let label = 0; label < classes; label++) {
      /** @type {Float64Array} */
      let gradient = Float64Array.from({ length: classes }, (_, c) => (c === label ? 1 : 0));
      for (const layer of layers) gradient = layer.backward(gradient);
      result.set(gradient, label * this.#input.length);
    }
    return result;
  }
}

/** @param {Float64Array} logits */
function softmax(logits) {
  const largest = Math.max(...logits);
  const powers = logits.map((logit) => Math.exp(logit - largest));
  const total = powers.reduce((sum, power) => sum + power);
  return powers.map((power) => power / total);
}
