// Inputs as pictures, on canvases and as URLs. `panels/panel.js` draws receptive fields.
/** @import { Values } from "./kinds.js" */
import { colours } from "../resources.js";

const TILE = 60;  // pixels of the small picture of a signal

/**
 * Paint an image on a canvas of its size.
 * @param {HTMLCanvasElement} canvas
 * @param {Values} pixels channels × height × width, 0 to 255
 * @param {number[]} shape channels, height, width
 * @param {{ brightness?: number, left?: number }} [options] a factor, and the place of the image
 */
export function paint(canvas, pixels, shape, { brightness = 1, left = 0 } = {}) {
  const [channels, height, width] = shape;
  const picture = new ImageData(width, height);
  const plane = width * height;
  for (let k = 0; k < plane; k++) {
    for (let c = 0; c < 3; c++)
      picture.data[4 * k + c] = brightness * pixels[k + (channels === 3 ? c * plane : 0)];
    picture.data[4 * k + 3] = 255;
  }
  canvas.getContext("2d")?.putImageData(picture, left, 0);
}

/**
 * Images side by side as one picture.
 * @param {Values[]} images each channels × height × width, 0 to 255
 * @param {number[]} shape channels, height, width
 * @param {number} [brightness] a factor
 */
export function spriteOf(images, shape, brightness = 1) {
  const [, height, width] = shape;
  const canvas = document.createElement("canvas");
  canvas.width = width * images.length;
  canvas.height = height;
  images.forEach((pixels, n) => paint(canvas, pixels, shape, { brightness, left: n * width }));
  return canvas.toDataURL();
}

/**
 * Signals side by side as one picture of their step functions.
 * @param {Values[]} signals each channels × length
 * @param {number[]} shape channels, 1, length
 */
export function curveSprite(signals, [, , length]) {
  const [low, high] = [Math.min, Math.max].map((end) =>
    signals.reduce((last, values) => end(last, ...values), signals[0][0]));
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [TILE * signals.length, TILE];
  const pen = canvas.getContext("2d");
  if (!pen) return "";
  pen.strokeStyle = colours.after;
  pen.lineWidth = 3;
  pen.beginPath();
  signals.forEach((values, n) => values.forEach((value, k) => {
    const left = TILE * (n + 0.05 + 0.9 * (k % length) / length);
    const y = TILE * (0.9 - 0.8 * (value - low) / (high - low || 1));
    if (k % length) pen.lineTo(left, y);
    else pen.moveTo(left, y);
    pen.lineTo(left + 0.9 * TILE / length, y);
  }));
  pen.stroke();
  return canvas.toDataURL();
}
