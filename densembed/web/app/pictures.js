// Pictures on canvases and as URLs.

/**
 * Paint an image on a canvas of its size.
 * @param {HTMLCanvasElement} canvas
 * @param {Uint8Array} pixels channels × height × width, 0 to 255
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
 * @param {Uint8Array[]} images each channels × height × width, 0 to 255
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
