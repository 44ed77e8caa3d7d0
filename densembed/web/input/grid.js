// @ts-check
/** Inputs on another grid: the `scaled_images` of `densembed/data/transform.py`. */

import { Means } from "../engine/layers.js";

/**
 * An input on another grid: each new pixel or sample is the mean of the input over it, for pictures
 * in whole bytes.
 * @param {Uint8Array | Float32Array} pixels
 * @param {number[]} shape channels, height, width
 * @param {number[]} sizes height and width of the other grid
 */
export function onGrid(pixels, shape, sizes) {
  if (shape[1] === sizes[0] && shape[2] === sizes[1]) return pixels;
  const means = new Means(shape, sizes).forward(pixels);
  if (pixels instanceof Float32Array) return Float32Array.from(means);
  // A clamped array rounds halves to the even number, as torch does.
  return new Uint8Array(Uint8ClampedArray.from(means).buffer);
}
