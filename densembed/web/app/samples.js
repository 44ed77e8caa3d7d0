// Test images to choose from, by class.

/** @import { Checkpoint } from "../engine/densembed.js" */

/**
 * @typedef {object} SamplesData
 * @property {string} title of the data set
 * @property {string[]} classes
 * @property {[channels: number, height: number, width: number]} shape
 * @property {number[]} counts images of each class
 */

export class Samples {
  /**
   * @param {SamplesData} data
   * @param {(label: number) => Promise<Uint8Array>} load the images of a class, one after another
   */
  constructor({ title, classes, shape, counts }, load) {
    this.title = title;
    this.classes = classes;
    this.shape = shape;
    this.counts = counts;
    this.size = shape[0] * shape[1] * shape[2];
    this.load = load;
    /** @type {Map<string, Uint8Array>} */
    this.loaded = new Map();
    /** @type {Map<string, Promise<void>>} */
    this.loading = new Map();
  }

  /**
   * One empty picture, for a model without test images.
   * @param {Pick<Checkpoint, "classes" | "inputShape">} checkpoint
   */
  static empty({ classes, inputShape }) {
    const shape = /** @type {SamplesData["shape"]} */ (inputShape);
    const counts = classes.map((_, label) => Number(label === 0));
    return new Samples({ title: "an empty picture", classes, shape, counts },
      async () => new Uint8Array(shape[0] * shape[1] * shape[2]));
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
   * A test image, 0 to 255; an empty one until its class is loaded.
   * @param {string} name of the class
   * @param {number} example from 1
   */
  image(name, example) {
    const images = this.loaded.get(name);
    return images ? images.subarray((example - 1) * this.size, example * this.size)
      : new Uint8Array(this.size);
  }

  /**
   * Load the images of some classes. The promise of a class that is loaded is undefined.
   * @param {string[]} names
   */
  need(names) {
    const missing = names.filter((name) => !this.loaded.has(name));
    if (!missing.length) return undefined;
    return Promise.all(missing.map((name) => {
      let promise = this.loading.get(name);
      if (!promise) this.loading.set(name, promise = this.load(this.classes.indexOf(name))
        .then((images) => { this.loaded.set(name, images); }));
      return promise;
    }));
  }
}
