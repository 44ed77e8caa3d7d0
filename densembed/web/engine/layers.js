// @ts-check
/**
 * The layers before and after the densities. Maps are float64, (channels, height, width); those of
 * a signal have one row.
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

/**
 * The means of an image over the cells of another grid. Those of whole numbers are exact up to one
 * division.
 *
 * @implements {Layer}
 */
export class Means {
  offset = [0, 0];

  /**
   * @param {number[]} shape (channels, height, width) of the input
   * @param {number[]} sizes (height, width) of the output
   */
  constructor([channels, height, width], [rows, columns]) {
    this.channels = channels;
    this.width = width;
    this.pixels = height * width;
    this.stretch = [height / rows, width / columns];
    this.down = overlaps(height, rows);
    this.across = overlaps(width, columns);
    this.inRows = new Float64Array(channels * rows * width);
    this.output = new Float64Array(channels * rows * columns);
    this.gradient = new Float64Array(channels * this.pixels);
  }

  /** @param {ArrayLike<number>} x @returns {Float64Array} */
  forward(x) {
    const { channels, width, pixels, down, across, inRows, output } = this;
    inRows.fill(0);
    for (let c = 0, row = 0; c < channels; c++)
      for (const parts of down) {
        for (const [m, share] of parts)
          for (let n = 0, from = c * pixels + m * width; n < width; n++)
            inRows[row + n] += share * x[from + n];
        row += width;
      }
    for (let row = 0, at = 0; row < inRows.length; row += width)
      for (const parts of across) {
        let sum = 0;
        for (const [n, share] of parts) sum += share * inRows[row + n];
        output[at++] = sum / pixels;
      }
    return output;
  }

  /** @param {Float64Array} gradient */
  backward(gradient) {
    const { channels, width, pixels, down, across, inRows } = this;
    inRows.fill(0);
    for (let row = 0, at = 0; row < inRows.length; row += width)
      for (const parts of across) {
        for (const [n, share] of parts) inRows[row + n] += (share * gradient[at]) / pixels;
        at++;
      }
    const back = this.gradient.fill(0);
    for (let c = 0, row = 0; c < channels; c++)
      for (const parts of down) {
        for (const [m, share] of parts)
          for (let n = 0, to = c * pixels + m * width; n < width; n++)
            back[to + n] += share * inRows[row + n];
        row += width;
      }
    return back;
  }
}

/**
 * The pixels of an axis that each cell of another grid overlaps, and by how much: whole numbers
 * that add up to `size`.
 *
 * @param {number} size
 * @param {number} cells
 */
function overlaps(size, cells) {
  return Array.from({ length: cells }, (_, cell) => {
    /** @type {[pixel: number, share: number][]} */
    const parts = [];
    const [lower, upper] = [cell * size, (cell + 1) * size];
    for (let n = Math.floor(lower / cells); n * cells < upper; n++)
      parts.push([n, Math.min(upper, (n + 1) * cells) - Math.max(lower, n * cells)]);
    return parts;
  });
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
   * @param {Float32Array} weight (maps, channels, taps along the rows, along the columns)
   * @param {Float32Array} bias
   * @param {Float32Array} [amplitude] its logit for rows and columns; for the columns of a signal
   */
  constructor([channels, height, width], { maps, kernel: taps }, weight, bias, amplitude) {
    const logits = taps.map((_, axis) => amplitude?.at(axis - taps.length)); // rows may have none
    const widths = logits.map((logit) => (logit === undefined ? 1 : 0.5 + sigmoid(logit)));
    const reaches = taps.map((count, axis) =>
      logits[axis] === undefined ? count : Math.ceil(1.5 * count));
    const before = taps.map((count) => (count - 1) >> 1);
    this.offset = widths.map((each, axis) => (taps[axis] * each - 1) / 2 - before[axis]);
    const [rows, columns] = widths.map((each, axis) =>
      Array.from({ length: taps[axis] }, (_, tap) =>
        Float64Array.from({ length: reaches[axis] }, (__, pixel) =>
          Math.max(0, Math.min((tap + 1) * each, pixel + 1) - Math.max(tap * each, pixel)),
        ),
      ),
    );
    const [down, across] = reaches;
    const kernel = new Float64Array(maps * channels * down * across);
    for (let each = 0, at = 0; each < maps * channels; each++)
      for (let i = 0; i < taps[0]; i++)
        for (let j = 0; j < taps[1]; j++, at++)
          for (let m = 0; m < down; m++) {
            const part = weight[at] * rows[i][m];
            if (part === 0) continue; // most pixels are outside of a tap
            const from = (each * down + m) * across;
            for (let n = 0; n < across; n++) kernel[from + n] += part * columns[j][n];
          }
    this.bias = bias;
    this.channels = channels;
    this.height = height;
    this.width = width;
    // With a margin around the maps, a tap reads at the same distance from every cell.
    this.stride = width + across - 1;
    this.area = (height + down - 1) * this.stride;
    /** place of the first cell, behind the margin */
    this.origin = before[0] * this.stride + before[1];
    this.padded = new Float64Array(channels * this.area);
    this.map = new Float64Array((height - 1) * this.stride + width);
    this.output = new Float64Array(maps * height * width);
    this.gradient = new Float64Array(channels * height * width);
    const size = channels * down * across;
    /** for each map, the taps that are not 0, and the distances at which they read */
    this.taps = Array.from({ length: maps }, (_, map) => {
      const weights = [];
      const distances = [];
      for (let c = 0, at = map * size; c < channels; c++)
        for (let m = 0; m < down; m++)
          for (let n = 0; n < across; n++, at++)
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
    const { output, bias, channels, height, width, origin, stride, area, padded, map } = this;
    for (let c = 0, at = 0; c < channels; c++)
      for (let y = 0; y < height; y++) {
        const row = c * area + y * stride + origin;
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
    const { channels, height, width, origin, stride, area, map } = this;
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
        const row = c * area + y * stride + origin;
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
 * Pooling of windows of 2 × 2 pixels, or 2 samples of a signal: their maximum, or their mean under
 * weights e^βx (Section 3.4).
 *
 * @implements {Layer}
 */
export class Pool {
  offset = [0, 0];

  /**
   * @param {number[]} shape (channels, height, width)
   * @param {Stage} stage
   * @param {Float32Array} [beta] per channel
   */
  constructor([channels, height, width], { kernel: [down, across] }, beta) {
    this.stretch = [down, across];
    this.channels = channels;
    this.beta = beta;
    this.height = height;
    this.width = width;
    this.rows = Math.floor(height / down);
    this.columns = Math.floor(width / across);
    this.output = new Float64Array(channels * this.rows * this.columns);
    this.gradient = new Float64Array(channels * height * width);
    /** distances of the pixels of a window from its first one */
    this.window = Array.from({ length: down * across }, (_, k) =>
      Math.floor(k / across) * width + (k % across));
    /** ∂ output / ∂ x of the pixels of each window */
    this.slopes = new Float64Array(this.window.length * this.output.length);
  }

  /** @param {Float64Array} x */
  forward(x) {
    const { output, slopes, channels, height, width, rows, columns, stretch } = this;
    const size = this.window.length;
    const values = this.window.map(() => 0);
    const tilted = [...values];
    for (let c = 0, at = 0; c < channels; c++) {
      const beta = this.beta ? this.beta[c] : Infinity;
      for (let m = 0; m < rows; m++)
        for (let n = 0; n < columns; n++, at++) {
          const first = (c * height + stretch[0] * m) * width + stretch[1] * n;
          for (let k = 0; k < size; k++) values[k] = x[first + this.window[k]];
          const extreme = beta < 0 ? Math.min(...values) : Math.max(...values);
          if (beta === Infinity) {
            output[at] = extreme;
            slopes.fill(0, size * at, size * (at + 1));
            slopes[size * at + values.indexOf(extreme)] = 1;
            continue;
          }
          let total = 0, sum = 0;
          for (let k = 0; k < size; k++) {
            tilted[k] = Math.exp(beta * (values[k] - extreme));
            total += tilted[k];
            sum += tilted[k] * (values[k] - extreme);
          }
          const mean = sum / total + extreme;
          output[at] = mean;
          for (let k = 0; k < size; k++)
            slopes[size * at + k] = (tilted[k] / total) * (1 + beta * (values[k] - mean));
        }
    }
    return output;
  }

  /** @param {Float64Array} gradient */
  backward(gradient) {
    const { slopes, channels, height, width, rows, columns, stretch, window } = this;
    const size = window.length;
    const back = this.gradient.fill(0);
    for (let c = 0, at = 0; c < channels; c++)
      for (let m = 0; m < rows; m++)
        for (let n = 0; n < columns; n++, at++) {
          const first = (c * height + stretch[0] * m) * width + stretch[1] * n;
          for (let k = 0; k < size; k++)
            back[first + window[k]] = gradient[at] * slopes[size * at + k];
        }
    return back;
  }
}
