// @ts-check
/**
 * Shifting, scaling, turning and blurring images, and adding noise to them: the `Transform` of
 * `densembed/data/transform.py`, with torchvision's kernels and torch's noise.
 */

/**
 * @typedef {object} Transform The defaults change nothing.
 * @property {number} [right] Shift in pixels.
 * @property {number} [down]
 * @property {number} [size] Factor; above 1 enlarges.
 * @property {number} [turn] Degrees, clockwise.
 * @property {number} [blur] Standard deviation of a Gaussian in pixels.
 * @property {number} [noise] Standard deviation of Gaussian noise as a share of full ink.
 */
/** @typedef {[channels: number, height: number, width: number]} Shape */

const SEED = 0;
const BLUR_EXTENT = 4;
const float = Math.fround;

/**
 * An affine map about the middle of an image, then a blur, then noise, in units of a byte.
 * @param {Uint8Array} pixels Of `shape`; what lies outside is 0.
 * @param {Shape} shape
 * @param {Transform} how
 */
export function transformed(pixels, shape, how) {
  const { right = 0, down = 0, size = 1, turn = 0, blur = 0, noise = 0 } = how;
  const result = Float32Array.from(pixels);
  if (!right && !down && size === 1 && !turn && !blur && !noise) return result;
  affine(pixels, shape, result, right, down, size, (turn * Math.PI) / 180);
  if (blur) gaussian(result, shape, blur);
  if (noise) {
    const values = normal(result.length);
    for (let i = 0; i < result.length; i++) result[i] += float(values[i] * float(255 * noise));
  }
  return result;
}

/**
 * `transformed` in whole bytes, as a model takes them.
 * @param {Uint8Array} pixels @param {Shape} shape @param {Transform} how
 */
export function transform(pixels, shape, how) {
  // A clamped array rounds to the nearest whole number, halves to the even one, as torch does.
  return new Uint8Array(Uint8ClampedArray.from(transformed(pixels, shape, how)).buffer);
}

/**
 * The same changes of signals: a shift and a stretch about the middle by linear interpolation, a
 * blur, and noise as a share of the signal's own standard deviation.
 * @param {Float32Array} values (channels, length); beyond its ends a signal stays as it is there
 * @param {number} length
 * @param {Transform} how
 */
export function transformSignal(values, length, { right = 0, size = 1, blur = 0, noise = 0 }) {
  const result = values.map((_, at) => {
    const first = at - (at % length);
    const place = ((at % length) - right - (length - 1) / 2) / size + (length - 1) / 2;
    const [low, high] = [0, 1].map((more) =>
      Math.min(length - 1, Math.max(0, Math.floor(place) + more)));
    const share = place - Math.floor(place);
    return (1 - share) * values[first + low] + share * values[first + high];
  });
  if (blur) for (let from = 0; from < result.length; from += length)
    blurLine(result, from, 1, length, blur);
  if (noise) {
    const mean = values.reduce((sum, value) => sum + value) / values.length;
    const square = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
    const numbers = normal(result.length);
    for (let i = 0; i < result.length; i++) result[i] += noise * Math.sqrt(square) * numbers[i];
  }
  return result;
}

/**
 * Bilinear interpolation, rounded where torchvision rounds to single precision.
 * @param {Uint8Array} pixels
 * @param {Shape} shape
 * @param {Float32Array} result
 * @param {number} right @param {number} down @param {number} size
 * @param {number} angle In radians.
 */
function affine(pixels, [channels, height, width], result, right, down, size, angle) {
  const [cos, sin] = [Math.cos(angle) / size, Math.sin(angle) / size];
  const halfWidth = float(width / 2);
  const halfHeight = float(height / 2);
  const toX = [cos, sin, -cos * right - sin * down].map((v) => float(float(v) / halfWidth));
  const toY = [-sin, cos, sin * right - cos * down].map((v) => float(float(v) / halfHeight));
  const plane = height * width;
  /** @param {number[]} row @param {number} x @param {number} y @param {number} half */
  const at = ([a, b, c], x, y, half) =>
    float(float(float(float(float(a * x) + b * y) + c) + 1) * half - 0.5);
  for (let row = 0, i = 0; row < height; row++)
    for (let column = 0; column < width; column++, i++) {
      const [gridX, gridY] = [column + 0.5 - width / 2, row + 0.5 - height / 2];
      const x = at(toX, gridX, gridY, halfWidth);
      const y = at(toY, gridX, gridY, halfHeight);
      const [left, top] = [Math.floor(x), Math.floor(y)];
      const [east, south] = [float(x - left), float(y - top)];
      const [west, north] = [float(1 - east), float(1 - south)];
      for (let from = 0; from < channels * plane; from += plane) {
        /** @param {number} v @param {number} u */
        const pixel = (v, u) =>
          v >= 0 && v < height && u >= 0 && u < width ? pixels[from + v * width + u] : 0;
        result[from + i] =
          pixel(top, left) * float(north * west) +
          pixel(top, left + 1) * float(north * east) +
          pixel(top + 1, left) * float(south * west) +
          pixel(top + 1, left + 1) * float(south * east);
      }
    }
}

/**
 * A Gaussian blur in place; the border is reflected.
 * @param {Float32Array} values @param {Shape} shape @param {number} blur
 */
function gaussian(values, [channels, height, width], blur) {
  const plane = height * width;
  for (let from = 0; from < channels * plane; from += plane) {
    for (let y = 0; y < height; y++) blurLine(values, from + y * width, 1, width, blur);
    for (let x = 0; x < width; x++) blurLine(values, from + x, width, height, blur);
  }
}

/**
 * @param {Float32Array} values @param {number} from @param {number} stride @param {number} length
 * @param {number} blur
 */
function blurLine(values, from, stride, length, blur) {
  const kernel = kernelOf(blur, Math.min(Math.ceil(BLUR_EXTENT * blur), length - 1));
  const reach = (kernel.length - 1) / 2;
  const line = new Float64Array(length + 2 * reach);
  for (let k = -reach; k < length + reach; k++) {
    const inside = k < 0 ? -k : k < length ? k : 2 * length - 2 - k;
    line[k + reach] = values[from + inside * stride];
  }
  for (let x = 0; x < length; x++) {
    let sum = 0;
    for (let k = 0; k <= 2 * reach; k++) sum += kernel[k] * line[x + k];
    values[from + x * stride] = sum;
  }
}

/** @type {Map<string, Float64Array>} */
const kernels = new Map();

/**
 * Weights of the Gaussian at whole pixels, as torchvision's.
 * @param {number} blur @param {number} reach
 */
function kernelOf(blur, reach) {
  const key = `${blur} ${reach}`;
  const cached = kernels.get(key);
  if (cached) return cached;
  const taps = Array.from({ length: 2 * reach + 1 }, (_, k) =>
    Math.exp(-(((k - reach) / blur) ** 2) / 2),
  );
  const total = taps.reduce((sum, tap) => sum + tap);
  const kernel = Float64Array.from(taps, (tap) => tap / total);
  kernels.set(key, kernel);
  return kernel;
}

/** @type {Float32Array} */
let numbers = new Float32Array(0);

/**
 * `torch.randn(count)` on a CPU with the seed of `Transform`: Box and Muller's method on uniform
 * numbers of a Mersenne Twister, sixteen at a time. torch draws less than sixteen in another way.
 * @param {number} count
 */
export function normal(count) {
  if (numbers.length === count) return numbers;
  const random = mersenneTwister(SEED);
  numbers = new Float32Array(Math.max(count, 16));
  const uniform = () => (random() & 0xffffff) / 2 ** 24;
  for (let i = 0; i < numbers.length; i++) numbers[i] = uniform();
  /** @param {number} first */
  const sixteen = (first) => {
    for (let i = first; i < first + 8; i++) {
      const radius = Math.sqrt(-2 * Math.log(1 - numbers[i]));
      const angle = 2 * Math.PI * numbers[i + 8];
      numbers[i] = radius * Math.cos(angle);
      numbers[i + 8] = radius * Math.sin(angle);
    }
  };
  for (let first = 0; first + 16 <= numbers.length; first += 16) sixteen(first);
  if (numbers.length % 16) {
    // The last sixteen are drawn once more.
    const first = numbers.length - 16;
    for (let i = first; i < numbers.length; i++) numbers[i] = uniform();
    sixteen(first);
  }
  numbers = numbers.slice(0, count);
  return numbers;
}

/** @param {number} seed @returns {() => number} 32 bits per call. */
function mersenneTwister(seed) {
  const [size, shift] = [624, 397];
  const state = new Uint32Array(size);
  state[0] = seed;
  for (let i = 1; i < size; i++)
    state[i] = Math.imul(1812433253, state[i - 1] ^ (state[i - 1] >>> 30)) + i;
  let next = size;
  return () => {
    if (next === size) {
      for (let i = 0; i < size; i++) {
        const bits = (state[i] & 0x80000000) | (state[(i + 1) % size] & 0x7fffffff);
        state[i] = state[(i + shift) % size] ^ (bits >>> 1) ^ (bits & 1 ? 0x9908b0df : 0);
      }
      next = 0;
    }
    let bits = state[next++];
    bits ^= bits >>> 11;
    bits ^= (bits << 7) & 0x9d2c5680;
    bits ^= (bits << 15) & 0xefc60000;
    return (bits ^ (bits >>> 18)) >>> 0;
  };
}
