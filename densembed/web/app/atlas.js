// The mean field of each class, over some of its test images.
/**
 * @import { Checkpoint, Network } from "../engine/densembed.js"
 * @import { Samples } from "./samples.js"
 * @import { Scale, StillsData } from "../panels/types.js"
 */
import { percentile } from "../engine/densembed.js";
import { onGrid } from "../input/grid.js";
import { round } from "../panels/text.js";
import { colours } from "../resources.js";
import { asInput, nounsOf, planesOf } from "./kinds.js";
import { RESOLUTION, TOP } from "./response.js";

const COLUMNS = 5;
const AVERAGED = 20;  // test images per class

/**
 * That a model has no test images. @param {Checkpoint} checkpoint @param {string} model its name
 */
export const withoutTests = ({ inputShape }, model) =>
  `There are no ${nounsOf(inputShape).test}s for ${model}, over which the fields could be `
  + "averaged.";

/**
 * @param {Checkpoint} checkpoint
 * @param {Network} network
 * @param {Samples} samples
 * @param {string} name of the class
 */
function meanOf({ header, inputShape }, network, samples, name) {
  const total = network.adaptive ? Math.min(AVERAGED, samples.count(name)) : 1;
  const sizes = planesOf(inputShape).slice(1);
  return network.meanField(Array.from({ length: total }, (_, k) =>
    asInput(onGrid(samples.image(name, k + 1), samples.shape, sizes), header)));
}

/**
 * The upper end of the colour scale of some fields.
 * @param {Float32Array[]} fields
 * @param {number} [share] percentile of each
 */
export const topOf = (fields, share = TOP) =>
  Math.max(...fields.map((values) => percentile(values, share)));

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
      this.#fields.push(meanOf(checkpoint, checkpoint.network(current), samples, name));
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
  const [, height, width] = planesOf(checkpoint.inputShape);
  const signals = checkpoint.axes === 1;
  const { test } = nounsOf(checkpoint.inputShape);
  const what = checkpoint.network(0).adaptive ? `over up to ${AVERAGED} ${test}s per class`
    : `${checkpoint.hasDensities ? "the densities are fixed" : "this model has no densities"}, so `
      + "it is the same for every input";
  const note = moment && `${moment}, `;
  const axis = signals ? `, from 0 to ${round(scale.high)} ${scale.unit}` : "";
  return {
    columns: COLUMNS, shared: { title, note: note + what + axis, scale },
    figures: fields.map((values, k) => ({
      values, shape: [signals ? 1 : height * RESOLUTION, width * RESOLUTION],
      size: [width, height], scale, title: samples.tested[k], note: "",
      alt: signals ? "Mean field, a curve, class" : "Mean field, a heatmap, class",
      curves: signals ? { colours: [colours.after], signs: null } : null,
    })),
  };
}
