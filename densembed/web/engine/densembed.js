// @ts-check
/**
 * Density-embedding networks in the browser, without dependencies: the same as in Python.
 *
 * A checkpoint file is read as it is. Inputs are (channels, height, width) from 0 to 1, a byte
 * divided by 255, which is the only preprocessing. Locations and scales are in pixels, along the
 * columns and then the rows; densities of several channels follow one another.
 *
 * Signals are (channels, length), scaled by the `scaling` of the header. They have one axis: one
 * number per location and scale, and fields of one row, per sample.
 *
 * @example
 * import { readCheckpoint } from "./densembed.js";
 *
 * const name = "logistic-el-mnn-10-5.safetensors";
 * const checkpoint = readCheckpoint(await (await fetch(name)).arrayBuffer(), name);
 * const network = checkpoint.network(-1); // after training; 0 is before
 * const result = network.run(pixels); // logits, probabilities, readings, locations, scales
 * const field = network.field(result); // Float32Array, 112 × 112 for 28 × 28 pixels
 * const seven = network.field(result, { weights: network.classWeights(7) }); // signed
 * const first = network.density(result, 0, { height: 56, width: 56 });
 */

export { Checkpoint, readCheckpoint } from "./checkpoint.js";
export { CheckpointError, Unsupported } from "./errors.js";
export {
  difference, fieldStatistics, largestValue, meanDisplacement, measure, percentile,
} from "./measures.js";
export { describe } from "./names.js";
export { Network } from "./network.js";
