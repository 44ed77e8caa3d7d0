// @ts-check
/** A signal in a text: numbers that were typed or pasted, or the first row of a table. */

import { onGrid } from "./grid.js";

const LARGEST = 1e30; // in size, so that squares of values are finite

/**
 * The cells of a line. Commas are decimal ones if semicolons or tabs separate the cells.
 * @param {string} line
 */
function cellsOf(line) {
  const decimal = /[;\t]/.test(line) && !line.includes(".");
  return line.split(decimal ? /[;\s]+/ : /[,;\s]+/).filter(Boolean)
    .map((text) => ({ text, value: Number(decimal ? text.replace(",", ".") : text) }));
}

/** @typedef {ReturnType<typeof cellsOf>} Cells */

const isNumber = (/** @type {Cells[0]} */ { value }) => Number.isFinite(value);

/** Whether cells are headings that count from 0 or 1. @param {Cells} cells */
const count = (cells) => cells.slice(0, -1).every(({ value }, k) =>
  value === cells[0].value + k && [0, 1].includes(cells[0].value));

/**
 * The signal in a text. A table has one signal per row, of which the first is taken, and may have
 * headings and a class in the last column. A signal of another length is resampled, by means.
 * @param {string} text
 * @param {number} length
 * @returns {{ values: Float32Array, count: number }} the signal, and how many numbers it had
 * @throws {Error} with one sentence, if there is no signal
 */
export function readSignal(text, length) {
  let lines = text.split(/\r?\n/).map(cellsOf).filter((cells) => cells.some(isNumber));
  if (lines.length > 1 && lines[0].length > 2 && count(lines[0])) lines = lines.slice(1);
  const isColumn = lines.every((cells) => cells.length === 1);
  let cells = isColumn ? lines.flat() : lines.find((each) => each.length > 1) ?? [];
  const last = cells.at(-1);
  const hasClass = last && !isColumn && (!isNumber(last) || cells.length === length + 1);
  if (hasClass) cells = cells.slice(0, -1);
  const wrong = cells.find((cell) => !isNumber(cell));
  if (wrong) throw new Error(`“${wrong.text.slice(0, 20)}” is not a number.`);
  const large = cells.find(({ value }) => Math.abs(value) > LARGEST);
  if (large) throw new Error(`“${large.text.slice(0, 20)}” is too large.`);
  if (cells.length < 2) throw new Error("A signal has at least two numbers.");
  const values = Float32Array.from(cells, ({ value }) => value);
  return { values: onGrid(values, [1, 1, values.length], [1, length]), count: cells.length };
}
