// The mean field of each class, over some of its test images.
/**
 * @import { Checkpoint, Network } from "../engine/densembed.js"
 * @import { Samples } from "./samples.js"
 * @import { Scale, StillsData } from "../panels/types.js"
 */
import { percentile } from "../engine/densembed.js";
import { onGrid } from "../input/grid.js";
import { RESOLUTION, TOP } from "./response.js";

const COLUMNS = 5;
const AVERAGED = 20;  // test images per class

/**
 * @param {Network} network
 * @param {number[]} sizes height and width of its inputs
 * @param {Samples} samples
 * @param {string} name of the class
 */
function meanOf(network, sizes, samples, name) {
  const total = network.adaptive ? Math.min(AVERAGED, samples.count(name)) : 1;
  return network.meanField(Array.from({ length: total }, (_, k) =>
    Float32Array.from(onGrid(samples.image(name, k + 1), samples.shape, sizes),
      (value) => value / 255)));
}

/** The upper end of the colour scale of some fields. @param {Float32Array[]} fields */
export const topOf = (fields) => Math.max(...fields.map((values) => percentile(values, TOP)));

/** The fields of one model, kept until the model, the step or the test images change. */
export class Atlas {
  /** @type {unknown[]} */
  #of = [];
  /** @type {Float32Array[]} */
  #fields = [];

  /**
   * One field per class that has test images.
   * @param {Checkpoint} checkpoint
   * @param {number} current snapshot
   * @param {Samples} samples loaded for all tested classes
   * @param {number} [count] of classes, the first ones
   */
  fields(checkpoint, current, samples, count = samples.tested.length) {
    const of = [checkpoint, current, samples];
    if (of.some((value, k) => value !== this.#of[k])) [this.#fields, this.#of] = [[], of];
    // One by one: a server answers for one class at a time.
    for (const name of samples.tested.slice(this.#fields.length, count))
      this.#fields.push(
        meanOf(checkpoint.network(current), checkpoint.inputShape.slice(1), samples, name));
    return this.#fields;
  }
}

/**
 * What shows such fields on one colour scale.
 * @param {Float32Array[]} fields
 * @param {Checkpoint} checkpoint
 * @param {Samples} samples
 * @param {Scale} scale
 * @param {string} title
 * @param {string} [moment] of training, where it is not shown beside
 * @returns {StillsData}
 */
export function atlasOf(fields, checkpoint, samples, scale, title, moment = "") {
  const [, height, width] = checkpoint.inputShape;
  const what = checkpoint.network(0).adaptive ? `over up to ${AVERAGED} test images per class`
    : "the densities are fixed, so it is the same for every input";
  const note = moment && `${moment}, `;
  return {
    columns: COLUMNS, shared: { title, note: note + what, scale },
    figures: fields.map((values, k) => ({
      values, shape: [height * RESOLUTION, width * RESOLUTION], size: [width, height], scale,
      title: samples.tested[k], note: "", alt: "Mean field, a heatmap, class",
    })),
  };
}
