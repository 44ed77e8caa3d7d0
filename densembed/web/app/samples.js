// Test images to choose from, by class.

/**
 * @typedef {object} SamplesData
 * @property {string} title of the data set
 * @property {string[]} classes
 * @property {number[]} shape channels, height, width
 * @property {number[]} counts images of each class
 * @property {string} images all of them, in the order of the classes, in base 64
 */

/** @param {string} encoded bytes in base 64 */
export function bytes(encoded) {
  const letters = atob(encoded);
  const values = new Uint8Array(letters.length);
  for (let k = 0; k < letters.length; k++) values[k] = letters.charCodeAt(k);
  return values;
}

export class Samples {
  /** @param {SamplesData} data */
  constructor({ title, classes, shape, counts, images }) {
    this.title = title;
    this.classes = classes;
    this.shape = shape;
    this.counts = counts;
    this.size = shape.reduce((product, side) => product * side, 1);
    this.pixels = bytes(images);
  }

  /** Classes that have images. */
  get tested() {
    return this.classes.filter((_, label) => this.counts[label]);
  }

  /**
   * A test image, with values from 0 to 255.
   * @param {string} name of the class
   * @param {number} example from 1
   */
  image(name, example) {
    const label = this.classes.indexOf(name);
    const before = this.counts.slice(0, label).reduce((sum, count) => sum + count, 0);
    const start = (before + example - 1) * this.size;
    return this.pixels.subarray(start, start + this.size);
  }

  /** @param {string} name of the class */
  count(name) {
    return this.counts[this.classes.indexOf(name)] ?? 0;
  }
}
