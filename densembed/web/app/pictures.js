// Pictures as URLs.

/**
 * Images side by side as one picture.
 * @param {Uint8Array[]} images each channels × height × width, 0 to 255
 * @param {number[]} shape channels, height, width
 * @param {number} [brightness] a factor
 */
export function spriteOf(images, [channels, height, width], brightness = 1) {
  const canvas = document.createElement("canvas");
  canvas.width = width * images.length;
  canvas.height = height;
  const context = canvas.getContext("2d");
  images.forEach((pixels, n) => {
    const picture = new ImageData(width, height);
    const plane = width * height;
    for (let k = 0; k < plane; k++) {
      for (let c = 0; c < 3; c++)
        picture.data[4 * k + c] = brightness * pixels[k + (channels === 3 ? c * plane : 0)];
      picture.data[4 * k + 3] = 255;
    }
    context?.putImageData(picture, n * width, 0);
  });
  return canvas.toDataURL();
}
