// @ts-check
/**
 * The layers before and after the densities. Signals are float64, (channels, height, width).
 *
 * A layer keeps its last input and reuses its buffers. `backward` turns the gradient of its output
 * into that of its last input.
 *
 * @import { Stage } from "./names.js"
 */

import { sigmoid } from "./families.js";

/** @typedef {(name: string) => Float32Array} Tensors the values of a tensor by its name */

/**
 * A layer of feature maps; output cell [n, n + 1] corresponds to [a n + b, a (n + 1) + b] of its
 * input, with the stretch a and the offset b for rows and columns.
 *
 * @typedef {object} Layer
 * @property {number[]} stretch
 * @property {number[]} offset
 * @property {(x: Float64Array) => Float64Array} forward
 * @property {(gradient: Float64Array) => Float64Array} backward
 */

/** y = W x + b. */
export class Linear {
  /** @param {Float32Array} weight (outputs, inputs) @param {Float32Array} bias (outputs) */
  constructor(weight, bias) {
    this.weight = weight;
    this.bias = bias;
    this.inputs = weight.length / bias.length;
    this.output = new Float64Array(bias.length);
    this.gradient = new Float64Array(this.inputs);
  }

  /** @param {Float64Array} x */
  forward(x) {
    const { weight, bias, inputs, output } = this;
    for (let o = 0, at = 0; o < output.length; o++) {
      let sum = bias[o];
      for (let i = 0; i < inputs; i++) sum += weight[at++] * x[i];
      output[o] = sum;
    }
    return output;
  }

  /** @param {Float64Array} gradient */
  backward(gradient) {
    const { weight, inputs } = this;
    const back = this.gradient.fill(0);
    for (let o = 0, at = 0; o < gradient.length; o++) {
      const by = gradient[o];
      for (let i = 0; i < inputs; i++) back[i] += by * weight[at++];
    }
    return back;
  }
}

/** max(x, 0). @implements {Layer} */
export class ReLU {
  stretch = [1, 1];
  offset = [0, 0];

  /** @param {number} size */
  constructor(size) {
    this.output = new Float64Array(size);
    this.gradient = new Float64Array(size);
  }

  /** @param {Float64Array} x */
  forward(x) {
    const { output } = this;
    for (let k = 0; k < output.length; k++) output[k] = x[k] > 0 ? x[k] : 0;
    return output;
  }

  /** @param {Float64Array} gradient */
  backward(gradient) {
    const back = this.gradient;
    for (let k = 0; k < back.length; k++) back[k] = this.output[k] > 0 ? gradient[k] : 0;
    return back;
  }
}

/**
 * Convolution that keeps the size of the maps, with a kernel of learned amplitude (Section 3.3):
 * the taps of the weights are spread over the pixels that they cover.
 *
 * @implements {Layer}
 */
export class Convolution {
  stretch = [1, 1];

  /**
   * @param {number[]} shape (channels, height, width) of the input
   * @param {Stage} stage
   * @param {Float32Array} weight (maps, channels, taps, taps)
   * @param {Float32Array} bias
   * @param {Float32Array} [amplitude] its logit for rows and columns
   */
  constructor([channels, height, width], { maps, kernel: taps }, weight, bias, amplitude) {
    const widths = [0, 1].map((axis) => (amplitude ? 0.5 + sigmoid(amplitude[axis]) : 1));
    const reach = amplitude ? Math.ceil(1.5 * taps) : taps;
    const before = (taps - 1) >> 1;
    this.offset = widths.map((each) => (taps * each - 1) / 2 - before);
    const [rows, columns] = widths.map((each) =>
      Array.from({ length: taps }, (_, tap) =>
        Float64Array.from({ length: reach }, (__, pixel) =>
          Math.max(0, Math.min((tap + 1) * each, pixel + 1) - Math.max(tap * each, pixel)),
        ),
      ),
    );
    const kernel = new Float64Array(maps * channels * reach * reach);
    for (let each = 0, at = 0; each < maps * channels; each++)
      for (let i = 0; i < taps; i++)
        for (let j = 0; j < taps; j++, at++)
          for (let m = 0; m < reach; m++) {
            const part = weight[at] * rows[i][m];
            if (part === 0) continue; // most pixels are outside of a tap
            const from = (each * reach + m) * reach;
            for (let n = 0; n < reach; n++) kernel[from + n] += part * columns[j][n];
          }
    this.bias = bias;
    this.channels = channels;
    this.height = height;
    this.width = width;
    this.before = before;
    // With a margin around the maps, a tap reads at the same distance from every cell.
    this.stride = width + reach - 1;
    this.area = (height + reach - 1) * this.stride;
    this.padded = new Float64Array(channels * this.area);
    this.map = new Float64Array((height - 1) * this.stride + width);
    this.output = new Float64Array(maps * height * width);
    this.gradient = new Float64Array(channels * height * width);
    const size = channels * reach * reach;
    /** for each map, the taps that are not 0, and the distances at which they read */
    this.taps = Array.from({ length: maps }, (_, map) => {
      const weights = [];
      const distances = [];
      for (let c = 0, at = map * size; c < channels; c++)
        for (let m = 0; m < reach; m++)
          for (let n = 0; n < reach; n++, at++)
            if (kernel[at]) {
              weights.push(kernel[at]);
              distances.push(c * this.area + m * this.stride + n);
            }
      while (weights.length % 4) {
        weights.push(0);
        distances.push(0);
      }
      return { weights: Float64Array.from(weights), distances: Int32Array.from(distances) };
    });
  }

  /** @param {Float64Array} x */
  forward(x) {
    const { output, bias, channels, height, width, before, stride, area, padded, map } = this;
    for (let c = 0, at = 0; c < channels; c++)
      for (let y = 0; y < height; y++) {
        const row = c * area + (y + before) * stride + before;
        for (let n = 0; n < width; n++) padded[row + n] = x[at++];
      }
    for (let k = 0, at = 0; k < bias.length; k++) {
      const { weights, distances } = this.taps[k];
      map.fill(bias[k]);
      for (let tap = 0; tap < weights.length; tap += 4)
        addFour(map, padded, weights, distances, tap);
      for (let y = 0; y < height; y++)
        for (let n = 0; n < width; n++) output[at++] = map[y * stride + n];
    }
    return output;
  }

  /** @param {Float64Array} gradient */
  backward(gradient) {
    const { channels, height, width, before, stride, area, map } = this;
    const spread = new Float64Array(this.padded.length);
    for (let k = 0, at = 0; k < this.bias.length; k++) {
      map.fill(0);
      for (let y = 0; y < height; y++)
        for (let n = 0; n < width; n++) map[y * stride + n] = gradient[at++];
      const { weights, distances } = this.taps[k];
      weights.forEach((weight, tap) => {
        const distance = distances[tap];
        for (let cell = 0; cell < map.length; cell++) spread[cell + distance] += weight * map[cell];
      });
    }
    for (let c = 0, at = 0; c < channels; c++)
      for (let y = 0; y < height; y++) {
        const row = c * area + (y + before) * stride + before;
        for (let n = 0; n < width; n++) this.gradient[at++] = spread[row + n];
      }
    return this.gradient;
  }
}

/**
 * Adds four taps to a map.
 *
 * @param {Float64Array} map
 * @param {Float64Array} from
 * @param {Float64Array} weights
 * @param {Int32Array} distances
 * @param {number} tap the first one
 */
function addFour(map, from, weights, distances, tap) {
  const w0 = weights[tap];
  const w1 = weights[tap + 1];
  const w2 = weights[tap + 2];
  const w3 = weights[tap + 3];
  const d0 = distances[tap];
  const d1 = distances[tap + 1];
  const d2 = distances[tap + 2];
  const d3 = distances[tap + 3];
  for (let cell = 0; cell < map.length; cell++)
    map[cell] +=
      w0 * from[cell + d0] + w1 * from[cell + d1] + w2 * from[cell + d2] + w3 * from[cell + d3];
}

/**
 * Pooling of windows of 2 × 2: their maximum, or their mean under weights e^βx (Section 3.4).
 *
 * @implements {Layer}
 */
export class Pool {
  stretch = [2, 2];
  offset = [0, 0];

  /** @param {number[]} shape (channels, height, width) @param {Float32Array} [beta] per channel */
  constructor([channels, height, width], beta) {
    this.channels = channels;
    this.beta = beta;
    this.height = height;
    this.width = width;
    this.rows = height >> 1;
    this.columns = width >> 1;
    this.output = new Float64Array(channels * this.rows * this.columns);
    this.gradient = new Float64Array(channels * height * width);
    /** ∂ output / ∂ x of the pixels of each window */
    this.slopes = new Float64Array(4 * this.output.length);
  }

  /** @param {Float64Array} x */
  forward(x) {
    const { output, slopes, channels, height, width, rows, columns } = this;
    const window = [0, 0, 0, 0];
    const tilted = [0, 0, 0, 0];
    for (let c = 0, at = 0; c < channels; c++) {
      const beta = this.beta ? this.beta[c] : Infinity;
      for (let m = 0; m < rows; m++)
        for (let n = 0; n < columns; n++, at++) {
          const first = (c * height + 2 * m) * width + 2 * n;
          window[0] = x[first];
          window[1] = x[first + 1];
          window[2] = x[first + width];
          window[3] = x[first + width + 1];
          const extreme = beta < 0 ? Math.min(...window) : Math.max(...window);
          if (beta === Infinity) {
            output[at] = extreme;
            slopes.fill(0, 4 * at, 4 * at + 4);
            slopes[4 * at + window.indexOf(extreme)] = 1;
            continue;
          }
          let total = 0, sum = 0;
          for (let k = 0; k < 4; k++) {
            tilted[k] = Math.exp(beta * (window[k] - extreme));
            total += tilted[k];
            sum += tilted[k] * (window[k] - extreme);
          }
          const mean = sum / total + extreme;
          output[at] = mean;
          for (let k = 0; k < 4; k++)
            slopes[4 * at + k] = (tilted[k] / total) * (1 + beta * (window[k] - mean));
        }
    }
    return output;
  }

  /** @param {Float64Array} gradient */
  backward(gradient) {
    const { slopes, channels, height, width, rows, columns } = this;
    const back = this.gradient.fill(0);
    for (let c = 0, at = 0; c < channels; c++)
      for (let m = 0; m < rows; m++)
        for (let n = 0; n < columns; n++, at++) {
          const first = (c * height + 2 * m) * width + 2 * n;
          back[first] = gradient[at] * slopes[4 * at];
          back[first + 1] = gradient[at] * slopes[4 * at + 1];
          back[first + width] = gradient[at] * slopes[4 * at + 2];
          back[first + width + 1] = gradient[at] * slopes[4 * at + 3];
        }
    return back;
  }
}
