// Test images to choose from, by class.

/**
 * @import { Checkpoint } from "../engine/densembed.js"
 * @import { Values } from "./kinds.js"
 */
import { isSignal, planesOf } from "./kinds.js";

/**
 * @typedef {object} SamplesData
 * @property {string} title of the data set
 * @property {string[]} classes
 * @property {number[]} shape channels, height, width of images; channels, length of signals
 * @property {number[]} counts images of each class
 * @property {[low: number, high: number]} [range] of all values of signals
 */

export class Samples {
  /**
   * @param {SamplesData} data
   * @param {(label: number) => Promise<Uint8Array>} load the bytes of a class’s images, one after
   *   another; signals have 32 bits per value
   */
  constructor({ title, classes, shape, counts, range = [0, 1] }, load) {
    this.title = title;
    this.classes = classes;
    this.signals = isSignal(shape);
    this.shape = planesOf(shape);
    const [low, high] = range;
    const bound = Math.max(-low, high);
    /** The ends of an axis for signals, which has 0 in the middle if they have both signs. */
    this.range = /** @type {[number, number]} */ (low < 0 && high > 0 ? [-bound, bound] : range);
    this.counts = counts;
    this.empty = false;  // whether there are none
    this.size = this.shape[0] * this.shape[1] * this.shape[2];
    this.load = load;
    /** @type {Map<string, Values>} */
    this.loaded = new Map();
    /** @type {Map<string, Promise<void>>} */
    this.loading = new Map();
    /** @type {Set<string>} */
    this.failed = new Set();  // classes whose images did not arrive
  }

  /**
   * One empty picture, for a model without test images; of signals the mean of what it trained on.
   * @param {Pick<Checkpoint, "classes" | "inputShape" | "header">} checkpoint
   */
  static empty({ classes, inputShape, header }) {
    const counts = classes.map((_, label) => Number(label === 0));
    const title = isSignal(inputShape) ? "an empty signal" : "an empty picture";
    const { mean, std } = header.scaling ?? { mean: 0, std: 0 };
    /** @type {[number, number]} */
    const range = [mean - std, mean + std];
    const samples = new Samples({ title, classes, shape: inputShape, counts, range },
      async () => new Uint8Array(samples.blank().fill(mean).buffer));
    samples.empty = true;
    return samples;
  }

  /** Classes that have images. */
  get tested() {
    return this.classes.filter((_, label) => this.counts[label]);
  }

  /** The class that is shown if nobody has chosen one. */
  get usual() {
    const { tested } = this;
    return tested[7 % tested.length];
  }

  /** @param {string} name of the class */
  count(name) {
    return this.counts[this.classes.indexOf(name)] ?? 0;
  }

  /**
   * A test image, 0 to 255, or a signal; an empty one until its class is loaded.
   * @param {string} name of the class
   * @param {number} example from 1
   */
  image(name, example) {
    const images = this.loaded.get(name);
    return images ? images.subarray((example - 1) * this.size, example * this.size)
      : this.blank();
  }

  /** An empty input. @returns {Values} */
  blank() {
    return this.signals ? new Float32Array(this.size) : new Uint8Array(this.size);
  }

  /**
   * Keep the images of a class.
   * @param {string} name
   * @param {Uint8Array} content
   */
  keep(name, content) {
    this.loaded.set(name, this.valuesOf(content));
  }

  /** Inputs of their bytes. @param {Uint8Array} content */
  valuesOf(content) {
    const { buffer, byteOffset, length } = content;
    return this.signals ? new Float32Array(buffer, byteOffset, length / 4) : content;
  }

  /** A signal that stays in the middle of the axis. */
  level() {
    return new Float32Array(this.size).fill((this.range[0] + this.range[1]) / 2);
  }

  /**
   * Load the images of some classes, again after a failure. The promise is undefined if all are
   * loaded.
   * @param {string[]} names
   */
  need(names) {
    const missing = names.filter((name) => !this.loaded.has(name));
    if (!missing.length) return undefined;
    return Promise.all(missing.map((name) => {
      let promise = this.loading.get(name);
      if (!promise) {
        this.failed.delete(name);
        promise = this.load(this.classes.indexOf(name))
          .then((content) => this.keep(name, content))
          .catch((error) => { this.failed.add(name); throw error; })
          .finally(() => this.loading.delete(name));
        this.loading.set(name, promise);
      }
      return promise;
    }));
  }
}
