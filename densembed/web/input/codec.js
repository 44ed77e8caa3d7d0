// Pictures as text in links: compressed by zlib, in the alphabet of base 64 for URLs.

export const MAX_TEXT = 6000;  // some browsers and servers reject longer links

/**
 * @param {Uint8Array} data
 * @param {CompressionStream | DecompressionStream} stream
 */
async function through(data, stream) {
  const blob = new Blob([new Uint8Array(data)]);
  return new Uint8Array(await new Response(blob.stream().pipeThrough(stream)).arrayBuffer());
}

/** @param {Uint8Array} pixels */
export async function toText(pixels) {
  const compressed = await through(pixels, new CompressionStream("deflate"));
  return btoa(String.fromCharCode(...compressed))
    .replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/**
 * The pixels of a text, or null if it does not stand for so many.
 * @param {string} text
 * @param {number} size
 */
export async function fromText(text, size) {
  if (text.length > MAX_TEXT) return null;
  try {
    const letters = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const compressed = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    const pixels = await through(compressed, new DecompressionStream("deflate"));
    return pixels.length === size ? pixels : null;
  } catch {
    return null;
  }
}
