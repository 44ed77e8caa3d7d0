// The sentences above the field of a model on Explore.
/** @import { Checkpoint } from "../engine/densembed.js" */
import { counted } from "../engine/text.js";
import { forSignals, withoutDensities } from "./glossary.js";
import { nounsOf } from "./kinds.js";

const IMAGE = { cell: "pixel", most: "bright", box: "ink", input: "[ink]", map: "[map]" };
const SIGNAL = { cell: "sample", most: "high", box: "mass of the signal", input: "of the signal",
  map: "map" };

/**
 * Test error, data and parameters: on a phone the list of models has no room for them.
 * @param {Checkpoint} checkpoint
 */
export function facts({ errors, parameters, inputShape, provenance }) {
  const { dataset_title: data, test_images: images } = provenance;
  const tested = counted(images, nounsOf(inputShape).test);
  const text = errors ? `${errorText(errors)} error on ${data} (${tested})` : data;
  const member = errors && errors.length > 1
    ? " Shown is the member whose error is nearest to the mean." : "";
  return `${text}, ${parameters.toLocaleString("en")} parameters.${member}`;
}

/** How far a training went; "" if it is complete. @param {Checkpoint} checkpoint */
export function incomplete({ header: { outcome, steps_per_epoch: perEpoch }, config, steps }) {
  if (outcome === "done") return "";
  const last = steps[steps.length - 1].toLocaleString("en");
  const after = `after ${last} of ${counted(config.epochs * perEpoch, "step")}`;
  if (outcome === "stopped") return `The training was stopped ${after}.`;
  return outcome === "diverged"
    ? `The training diverged; its last good snapshot is that ${after}.`
    : `The last snapshot of the training is that ${after}.`;
}

/** The changes of the data set in the course of the training. @param {Checkpoint} checkpoint */
export function dataChanges({ header: { data_changes: changes = [] } }) {
  return changes.map((change) => `The data set changed ${change}.`).join(" ");
}

/** The error of one member, or mean ± standard deviation. @param {number[]} errors */
function errorText(errors) {
  const count = errors.length;
  const mean = errors.reduce((sum, each) => sum + each) / count;
  if (count === 1) return `${mean.toFixed(2)} %`;
  const squares = errors.reduce((sum, each) => sum + (each - mean) ** 2, 0);
  const deviation = Math.sqrt(squares / (count - 1));
  return `${mean.toFixed(2)} ± ${deviation.toFixed(2)} % (${count} members)`;
}

/**
 * What the field of a model shows.
 * @param {Checkpoint} checkpoint
 * @param {boolean} others whether a model with densities can be chosen
 */
export function leadOf(checkpoint, others) {
  const signal = checkpoint.axes === 1;
  const text = fieldOf(checkpoint, signal ? SIGNAL : IMAGE, others);
  return signal ? forSignals(text) : text;
}

/**
 * @param {Checkpoint} checkpoint
 * @param {typeof IMAGE} words
 * @param {boolean} others
 */
function fieldOf(checkpoint, { cell, most, box, input, map }, others) {
  const { densities, frame, hasMicroNetwork, onPixels } = checkpoint.network(0);
  if (!checkpoint.hasDensities) return `${withoutDensities(onPixels, cell)}, so its field is the `
    + `same everywhere.${others
      ? " Choose a model with EL in its name to see where such a network looks." : ""}`;
  const [own, they, them] = densities === 1
    ? ["its one [density] lies", "It is", "it"]
    : ["most of its [densities|density] lie", "They are", "them"];
  const boxed = frame === "mass"
    ? `A box around the ${box} (dashed) moves and scales ${them}.` : "";
  const moves = hasMicroNetwork ? `A [micro network] moves ${them} with the input. ${boxed}`
    : boxed || `${they} fixed; a [micro network] would move ${them} with the input.`;
  const reads = onPixels ? `the mean ${input}`
    : `the mean of a ${map} of its stages`;
  const task = checkpoint.readsDigits ? "This network recognises handwritten digits. " : "";
  return `${task}The [receptive field] is ${most} where the network looks: ${own} there, and ${
    densities === 1 ? "" : "each "}reads ${reads} under it. ${moves}`;
}
