// @ts-check
/** Pictures on another grid: the `scaled_images` of `densembed/data/transform.py`. */

import { Means } from "../engine/layers.js";

/**
 * A picture on another grid: each new pixel is the mean of the picture over its area, in whole
 * bytes.
 * @param {Uint8Array} pixels
 * @param {number[]} shape channels, height, width
 * @param {number[]} sizes height and width of the other grid
 */
export function onGrid(pixels, shape, sizes) {
  if (shape[1] === sizes[0] && shape[2] === sizes[1]) return pixels;
  // A clamped array rounds halves to the even number, as torch does.
  const means = new Means(shape, sizes).forward(pixels);
  return new Uint8Array(Uint8ClampedArray.from(means).buffer);
}
