// The grids of pixels on which Explore shows a network.

import { ServedCheckpoint } from "./served.js";

/** @import { Checkpoint } from "../engine/densembed.js" */

const SIDES = [7, 10, 14, 20, 28, 42, 56, 112];  // pixels along the shorter axis
const OWN = "data";  // in a checkpoint, the grid of the images of its data set

/**
 * A grid in a link, as `--grid` of the command line: "14", or "14x20" for height and width.
 * @param {number[]} sizes
 */
const textOf = (sizes) => (new Set(sizes).size === 1 ? `${sizes[0]}` : sizes.join("x"));

/** The grids on which a model was trained. @param {Checkpoint} checkpoint */
function trainedOn({ config, inputShape: [, ...own] }) {
  return String(config.grid).split(",").map((text) => {
    if (text === OWN) return own;
    const [height, width = height] = text.split("x").map(Number);
    return [height, width];
  });
}

/**
 * The grids on which a model can be shown, by their texts in links, the coarsest first. A model of
 * signals, or one that a server computes, has only its own.
 * @param {Checkpoint} checkpoint
 * @returns {Record<string, number[]>}
 */
export function gridsOf(checkpoint) {
  const [, ...own] = checkpoint.inputShape;
  const free = checkpoint.axes === 2 && !(checkpoint instanceof ServedCheckpoint);
  const short = Math.min(...own);
  const others = SIDES.map((side) => own.map((size) => Math.round(size * side / short)));
  const all = free ? [...others, ...trainedOn(checkpoint), own] : [own];
  return Object.fromEntries(all.sort((one, two) => one[0] - two[0])
    .map((sizes) => [textOf(sizes), sizes]));
}

/** The grid of the data on which a model was trained. @param {Checkpoint} checkpoint */
export const ownGrid = ({ inputShape: [, ...own] }) => textOf(own);

/**
 * The grids in words, with those of the training marked.
 * @param {Checkpoint} checkpoint
 * @returns {Record<string, string>}
 */
export function gridTexts(checkpoint) {
  const trained = trainedOn(checkpoint).map(textOf);
  return Object.fromEntries(Object.entries(gridsOf(checkpoint)).map(([text, sizes]) =>
    [text, `${sizes.join(" × ")}${trained.includes(text) ? " (training)" : ""}`]));
}
