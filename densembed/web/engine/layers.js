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
        Array.from({ length: reach }, (_, pixel) =>
          Math.max(0, Math.min((tap + 1) * each, pixel + 1) - Math.max(tap * each, pixel)),
        ),
      ),
    );
    this.kernel = new Float64Array(maps * channels * reach * reach);
    for (let each = 0; each < maps * channels; each++)
      for (let i = 0; i < taps; i++)
        for (let j = 0; j < taps; j++) {
          const tap = weight[(each * taps + i) * taps + j];
          for (let m = 0; m < reach; m++)
            for (let n = 0; n < reach; n++)
              this.kernel[(each * reach + m) * reach + n] += tap * rows[i][m] * columns[j][n];
        }
    this.bias = bias;
    this.taps = [];
    for (let k = 0, at = 0; at < this.kernel.length; k++)
      for (let m = 0; m < reach; m++)
        for (let n = 0; n < reach; n++, at++)
          if (this.kernel[at])
            this.taps.push({
              weight: this.kernel[at], map: Math.floor(k / channels), channel: k % channels,
              down: m - before, along: n - before,
            });
    this.height = height;
    this.width = width;
    this.output = new Float64Array(maps * height * width);
    this.gradient = new Float64Array(channels * height * width);
  }

  /** @param {Float64Array} x */
  forward(x) {
    const { output, bias, height, width } = this;
    const size = height * width;
    bias.forEach((value, map) => output.fill(value, map * size, (map + 1) * size));
    for (const { weight, map, channel, down, along } of this.taps)
      addShifted(output, map * size, x, channel * size, weight, down, along, height, width);
    return output;
  }

  /** @param {Float64Array} gradient */
  backward(gradient) {
    const { height, width } = this;
    const back = this.gradient.fill(0);
    const size = height * width;
    for (const { weight, map, channel, down, along } of this.taps)
      addShifted(back, channel * size, gradient, map * size, weight, -down, -along, height, width);
    return back;
  }
}

/**
 * to[y, x] += weight · from[y + down, x + along], where that lies inside.
 *
 * @param {Float64Array} to
 * @param {number} toStart
 * @param {Float64Array} from
 * @param {number} fromStart
 * @param {number} weight
 * @param {number} down
 * @param {number} along
 * @param {number} height
 * @param {number} width
 */
function addShifted(to, toStart, from, fromStart, weight, down, along, height, width) {
  const left = Math.max(0, -along);
  const right = Math.min(width, width - along);
  const last = Math.min(height, height - down);
  for (let y = Math.max(0, -down); y < last; y++) {
    let source = fromStart + (y + down) * width + left + along;
    const row = toStart + y * width;
    for (let at = row + left; at < row + right; at++) to[at] += weight * from[source++];
  }
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
