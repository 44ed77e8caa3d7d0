// @ts-check
/** A signal in a text: numbers that were typed or pasted, or the first row of a table. */

import { onGrid } from "./grid.js";

export const LARGEST = 1e30; // in size, so that squares of values are finite
const SPLIT = "split"; // heading of the part of the data, which is no value
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
// What other programs write in place of a number; it is neither a heading nor a class.
const NO_NUMBER = /^[+−-]?(nan|inf(inity)?|∞)$/i;
const MISSING = /^([-?]|n\/?a|none|null|#.*)$/i; // may be a heading, but not a class
const DECIMAL_COMMA = /^[+-]?\d+(,\d+)?$/;

/** @typedef {{ text: string, value: number }} Cell */

/**
 * The parts of a line between separators that are not in quotation marks.
 * @param {string} line
 * @param {string} separators
 */
function split(line, separators) {
  const parts = [""];
  let quoted = false;
  for (const letter of line) {
    if (letter === '"') quoted = !quoted;
    else if (!quoted && separators.includes(letter)) parts.push("");
    else parts[parts.length - 1] += letter;
  }
  return parts.map((part) => part.trim());
}

/**
 * The cells of a line, of which an empty one may be the first, but not the last. Commas are decimal
 * ones if other characters separate the cells and no cell has a point.
 * @param {string} line
 * @param {boolean} isCell whether the line is one cell
 * @returns {Cell[]}
 */
function cellsOf(line, isCell) {
  const words = line.trim().split(/\s+/);
  const table = /[;\t]/.test(line.replace(/"[^"]*"/g, ""));
  const spaced = !table && (words.length > 1 || isCell) &&
    words.every((word) => DECIMAL_COMMA.test(word));
  const texts = table ? split(line, ";\t") : spaced || !line.includes(",") ? words
    : split(line, ",").flatMap((part) => part.split(/\s+/));
  while (texts.at(-1) === "") texts.pop();
  const decimal = (table || spaced) && !line.includes(".");
  return texts.map((text) => {
    const written = (decimal ? text.replace(",", ".") : text).replaceAll("−", "-");
    return { text, value: NUMBER.test(written) ? Number(written) : NaN };
  });
}

const isNoNumber = (/** @type {Cell} */ { text }) => NO_NUMBER.test(text);
const isMissing = (/** @type {Cell} */ { text }) => MISSING.test(text);
const isNumber = (/** @type {Cell} */ { value }) => Number.isFinite(value);

/** Whether cells are headings that count from 0 or 1. @param {Cell[]} row */
function count(row) {
  const cells = row.filter(({ text }) => text.toLowerCase() !== SPLIT);
  if (cells.length < 2) return false;
  const [{ value: first }, ...rest] = cells[0].text ? cells : cells.slice(1);
  return rest.length > 1 && [0, 1].includes(first) &&
    rest.slice(0, -1).every(({ value }, k) => value === first + k + 1);
}

/** @param {Cell[]} cells */
function check(cells) {
  const wrong = cells.findIndex((cell) => !isNumber(cell) || Math.abs(cell.value) > LARGEST);
  if (wrong < 0) return;
  const { text, value } = cells[wrong];
  throw new Error(!text ? `Value ${wrong + 1} is missing.`
    : `Value ${wrong + 1}, “${text.slice(0, 20)}”, is ${
      Number.isNaN(value) ? "not a number" : "too large"}.`);
}

/**
 * The signal in a text. A table has one signal per row, of which the first is taken, and may have
 * headings, the numbers of its rows below an empty one, a column `split`, and a class in the last
 * column. A signal of another length is resampled, by means.
 * @param {string} text
 * @param {number} length
 * @param {boolean} [whole] whether the text does not end in the middle of a line
 * @returns {{ values: Float32Array, note: string }} the signal, and what was made of the text
 * @throws {Error} with one sentence, if there is no signal
 */
export function readSignal(text, length, whole = true) {
  if (text.includes("\0")) throw new Error("This is not UTF-8 text: save the table as CSV.");
  const written = text.replace(/[[\]]/g, " ").split(/\r\n?|\n/);
  if (!whole) written.pop();
  const filled = written.filter((line) => line.trim());
  // Below a heading of one cell, if there is one. Of a signal of two numbers it may be a row.
  const isOne = (/** @type {string} */ line) => DECIMAL_COMMA.test(line.trim());
  const isList = length > 2 && filled.length > 2 && filled.slice(1).every(isOne) &&
    (isOne(filled[0]) || !filled[0].includes(","));
  const lines = filled.map((line) => cellsOf(line, isList)).filter((cells) => cells.length);
  const first = lines.findIndex((cells, k) => cells.some(isNumber) &&
    !(k === 0 && lines.length > 1 && cells.length > 2 && count(cells)));
  const unread = first < 0 ? lines[0] : lines.slice(0, first).find((row) => row.some(isNoNumber));
  check(unread ?? []);
  const headings = lines[first - 1] ?? [];
  const rows = first < 0 ? [] : lines.slice(first);
  const isColumn = rows.every((row) => row.length === 1);
  if (!whole && isColumn) throw new Error("The signal is too long: keep fewer numbers or digits.");
  const [row = []] = rows;
  const list = isColumn || row.length !== length && !headings.length &&
    rows.length > 1 && rows.flat().length === length;
  let cells = list ? rows.flat() : row;
  if (headings.length > 2)
    cells = cells.filter((_, k) => (k || headings[0].text) &&
      headings[k]?.text.toLowerCase() !== SPLIT);
  const notes = [];
  const last = cells.at(-1);
  const extra = cells.length === length + 1;
  const isClass = last && Number.isNaN(last.value) && !isNoNumber(last) && !isMissing(last);
  if (last && !list && (isClass || extra)) {
    cells = cells.slice(0, -1);
    const column = headings[row.indexOf(last)]?.text.slice(0, 20);
    if (isNumber(last))
      notes.push(`The last of ${length + 1} ${column ? `columns, “${column}”` :
        `numbers, ${last.text}`}, is read as the class.`);
    else if (!extra) notes.push(`“${last.text.slice(0, 20)}” is read as the class.`);
  }
  check(cells);
  if (cells.length < 2) throw new Error("A signal has at least two numbers.");
  if (cells.length !== length)
    notes.push(`${cells.length.toLocaleString("en")} numbers, resampled to ${length}.`);
  if (!list && rows.length > 1)
    notes.push(`This is the first of ${whole ? rows.length.toLocaleString("en") : "many"} rows.`);
  const values = Float32Array.from(cells, ({ value }) => value);
  return { values: onGrid(values, [1, 1, values.length], [1, length]), note: notes.join(" ") };
}
