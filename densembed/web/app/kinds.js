// What an input is: an image of pixels, or a signal of samples. Both are computed and drawn by the
// same code, in which a signal is an image with one row.
/** @import { Header } from "../engine/header.js" */
import { LARGEST } from "../input/numbers.js";
import { counted } from "../engine/text.js";

/**
 * The numbers of an input: the bytes of an image, or the measured values of a signal.
 * @typedef {Uint8Array | Float32Array} Values
 *
 * @typedef {object} Nouns
 * @property {string} input
 * @property {string} test an input that was not trained on
 * @property {string} cell what has one number of an input
 * @property {string} per the unit of a density
 * @property {string} value what a density reads the mean of
 */

/** @type {Nouns} */
const IMAGE = { input: "picture", test: "test image", cell: "pixel", per: "per pixel²",
  value: "ink" };
/** @type {Nouns} */
const SIGNAL = { input: "signal", test: "test signal", cell: "sample", per: "per sample",
  value: "value" };

const COLOURS = ["red", "green", "blue"];

/** Whether inputs of that shape are signals. @param {number[]} shape */
export const isSignal = (shape) => shape.length === 2;

/** What the parts of an input of that shape are called. @param {number[]} shape */
export const nounsOf = (shape) => (isSignal(shape) ? SIGNAL : IMAGE);

/** The names of the channels of colour pictures; of other inputs none. @param {number[]} shape */
export const channelsOf = (shape) =>
  (!isSignal(shape) && shape[0] === COLOURS.length ? COLOURS : []);

/**
 * Channels, rows and columns of an input; a signal has one row.
 * @param {number[]} shape
 * @returns {[channels: number, height: number, width: number]}
 */
export const planesOf = ([channels, ...sizes]) =>
  [channels, sizes.length === 1 ? 1 : sizes[0], sizes[sizes.length - 1]];

/**
 * Why a model cannot take inputs, in words after “takes”; "" if it can.
 * @param {number[]} shape of the model’s inputs
 * @param {{ signals: boolean, shape: number[] }} others inputs, whose shape is as of `planesOf`
 */
export function othersOf(shape, { signals, shape: planes }) {
  const own = isSignal(shape);
  if (own !== signals) return own ? "signals, not pictures" : "pictures, not signals";
  const [channels, ...sizes] = planesOf(shape);
  if (sizes.join() !== planes.slice(1).join())
    return own ? "signals of another length" : "pictures of another size";
  if (channels === planes[0]) return "";
  return `${own ? "signals" : "pictures"} with ${counted(channels, "channel")}`;
}

/**
 * What a network takes: ink from 0 to 1, or values scaled as those of the training signals, which
 * are finite also if a checkpoint of anyone has a tiny deviation.
 * @param {Values} values
 * @param {Pick<Header, "scaling">} header of the checkpoint
 */
export function asInput(values, { scaling }) {
  if (!scaling) return Float32Array.from(values, (value) => value / 255);
  const { mean, std } = scaling;
  return Float32Array.from(values, (value) =>
    Math.max(-LARGEST, Math.min(LARGEST, (value - mean) / std)));
}
