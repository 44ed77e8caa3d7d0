// @ts-check
/** Inputs on another grid: the `scaled_images` of `densembed/data/transform.py`. */

import { Means } from "../engine/layers.js";

/**
 * An input on another grid: each new pixel or sample is the mean of the input over it, for pictures
 * in whole bytes.
 * @template {Uint8Array | Float32Array} Pixels
 * @param {Pixels} pixels
 * @param {number[]} shape channels, height, width
 * @param {number[]} sizes height and width of the other grid
 * @returns {Pixels}
 */
export function onGrid(pixels, shape, sizes) {
  if (shape[1] === sizes[0] && shape[2] === sizes[1]) return pixels;
  const means = new Means(shape, sizes).forward(pixels);
  const result = pixels instanceof Float32Array ? Float32Array.from(means)
    // A clamped array rounds halves to the even number, as torch does.
    : new Uint8Array(Uint8ClampedArray.from(means).buffer);
  return /** @type {Pixels} */ (result);
}
