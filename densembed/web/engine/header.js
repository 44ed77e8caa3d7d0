// @ts-check
/** The header of a checkpoint, checked as by `Header` in `densembed/training/checkpoint.py`. */

import { checkName } from "./names.js";
import { closest, printable, quoted, repr } from "./text.js";

/**
 * Settings of a training, see `RunConfig`. Of most of them Python knows the meaning.
 *
 * @typedef {Record<string, string | number | boolean> & { model: string, epochs: number }} Config
 */

/**
 * @typedef {object} EpochMetrics
 * @property {number} epoch
 * @property {number} step
 * @property {number[]} train_loss one entry per member, as `test_error`
 * @property {number[]} test_error in percent
 * @property {number} learning_rate
 * @property {number} seconds
 */

/**
 * @typedef {object} Header
 * @property {Config} config
 * @property {{ mean: number, std: number }} [scaling] of signals
 * @property {number[]} input_shape (channels, height, width), or (channels, length) of signals
 * @property {string[]} classes
 * @property {number} steps_per_epoch
 * @property {number[]} steps
 * @property {EpochMetrics[]} epochs
 * @property {"running" | "done" | "stopped" | "diverged" | "failed"} outcome
 * @property {Record<string, string | number> & { dataset_title: string, train_images: number,
 *   test_images: number }} provenance
 * @property {string[]} plugins
 * @property {string[]} [data_changes] in the course of the training
 */

/** Why a header is damaged, as a sentence. */
export class Damage extends Error {}

/** @typedef {(string | number)[]} Path */
/** @typedef {{ check: (value: any, path: Path) => any, takes: string, absent?: any }} Rule */

/** @param {Path} path @param {unknown} value @param {string} takes @returns {never} */
function fail(path, value, takes) {
  if (path.length === 2 && path[0] === "config") {
    const name = String(path[1]).replaceAll("_", " ");
    const characters = [...repr(value)];
    const got = characters.slice(0, 40).join("") + (characters.length > 40 ? " …" : "");
    throw new Damage(`${name[0].toUpperCase()}${name.slice(1)} takes ${takes}; got ${got}.`);
  }
  throw new Damage(`The field ${quoted(path.join(".") || "config")} is missing or damaged.`);
}

/**
 * @param {string} takes
 * @param {(value: any) => boolean} valid
 * @param {any} [absent] value of a missing field
 * @returns {Rule}
 */
const rule = (takes, valid, absent) => ({
  takes,
  absent,
  check: (value, path) => (valid(value) ? value : fail(path, value, takes)),
});

const commas = (/** @type {number} */ number) => number.toLocaleString("en-US");

/** @param {number} low @param {number} high @param {any} [absent] */
const integer = (low, high, absent) =>
  rule(
    `a whole number from ${commas(low)} to ${commas(high)}`,
    (value) => Number.isInteger(value) && value >= low && value <= high,
    absent,
  );

/** @param {number} low @param {number} high @param {any} [absent] @param {boolean} [above] */
const number = (low, high, absent, above = false) =>
  rule(
    `a number ${above ? `above ${commas(low)} and up` : `from ${commas(low)}`} to ${commas(high)}`,
    (value) =>
      typeof value === "number" && value >= low && value <= high && !(above && value === low) &&
      Math.abs(value) !== Infinity,
    absent,
  );

/** @param {string[]} choices @param {any} [absent] */
const oneOf = (choices, absent) =>
  rule(`one of ${choices.join(", ")}`, (value) => choices.includes(value), absent);

/** @param {number} most @param {any} [absent] */
const text = (most, absent) =>
  rule(
    `a text of at most ${commas(most)} characters`,
    (value) => typeof value === "string" && [...value].length <= most,
    absent,
  );

/** @type {Rule} */
const shortText = {
  takes: "",
  check: (value, path) => printable(text(200).check(value, path)),
};

/** @type {Rule} */
const title = {
  takes: "",
  check: (value, path) => shortText.check(value, path).trim() || "untitled data",
};

/** @type {Rule} */
const longText = {
  takes: "",
  check: (value, path) => printable(text(2000).check(value, path)),
};

/** @param {Rule} item @param {number} least @param {number} most @param {any} [absent] */
const list = (item, least, most, absent) => ({
  takes: "",
  absent,
  check: (/** @type {any} */ value, /** @type {Path} */ path) => {
    if (!Array.isArray(value) || value.length > most) fail(path, value, "");
    const items = value.map((/** @type {any} */ each, /** @type {number} */ k) =>
      item.check(each, [...path, k]),
    );
    return items.length < least ? fail(path, value, "") : items;
  },
});

/** @param {Record<string, Rule>} fields @returns {Rule} */
const object = (fields) => ({
  takes: "",
  check: (value, path) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) fail(path, value, "");
    /** @type {Record<string, any>} */
    const checked = {};
    for (const [name, { check, absent }] of Object.entries(fields)) {
      if (Object.hasOwn(value, name)) checked[name] = check(value[name], [...path, name]);
      else if (absent === undefined) fail([...path, name], value, "");
      else checked[name] = absent;
    }
    for (const name of Object.keys(value))
      if (!Object.hasOwn(fields, name)) surplus([...path, name]);
    return checked;
  },
});

/** @param {Path} path @returns {never} */
function surplus(path) {
  const parts = path.map((part) => {
    const line = String(part).trim().split(/\s+/).join(" ");
    return [...line].slice(0, 40).join("");
  });
  const meant = closest(/** @type {string} */ (parts.at(-1)), Object.keys(CONFIG));
  const hint = meant ? ` (did you mean ${quoted(meant)}?)` : "";
  throw new Damage(`There is no field ${quoted(parts.join("."))}${hint}.`);
}

/** @type {Rule} */
const model = {
  ...text(60, "logistic-el-mnn-10-5"),
  check: (value, path) => {
    const name = text(60).check(value, path);
    try {
      return checkName(name);
    } catch (error) {
      throw new Damage(/** @type {Error} */ (error).message);
    }
  },
};

/** @type {Rule} */
const grid = {
  ...text(100, "data"),
  check: (value, path) => {
    const grids = text(100).check(value, path);
    const sizes = grids.split(",").map((/** @type {string} */ part) => {
      const size = part.trim();
      if (size === "data") return size;
      const match = size.match(/^(\d{1,4})(?:[x×](\d{1,4}))?$/);
      const sides = match ? [match[1], match[2] ?? match[1]].map(Number) : [0];
      if (sides.some((side) => side < 1 || side > MAX_GRID))
        throw new Damage(
          "Grid takes sizes separated by commas, as in 14,28x20,data, each from 1 to " +
            `${MAX_GRID} pixels; got ${quoted(grids, 40)}.`,
        );
      return [...new Set(sides)].join("x");
    });
    return sizes.join(",");
  },
};

const MAX_GRID = 1024;

/**
 * (channels, height, width), or (channels, length) of signals.
 *
 * @param {boolean} signals
 * @returns {Rule}
 */
const shape = (signals) => ({
  takes: "",
  check: (value, path) => {
    if (!Array.isArray(value) || value.length < 2 || value.length > 3) fail(path, value, "");
    const sizes = value.map((each, k) => integer(1, 16_384).check(each, [...path, k]));
    const bounded = signals ? sizes.slice(0, 1) : sizes;
    if (sizes.length !== (signals ? 2 : 3) || Math.max(...bounded) > 256) fail(path, value, "");
    return sizes;
  },
});

/** @type {Rule} */
const classes = {
  takes: "",
  check: (value, path) => {
    const names = list(shortText, 1, 1000).check(value, path);
    if (new Set(names).size < names.length) throw new Damage("two classes have the same name.");
    if (!names.every((/** @type {string} */ name) => name.trim()))
      throw new Damage("a class has an empty name.");
    return names;
  },
};

/** @type {Record<string, Rule>} */
const CONFIG = {
  model,
  dataset: text(1000, "digits"),
  epochs: integer(1, 10_000, 20),
  grid,
  shift: integer(0, 64, 0),
  batch_size: integer(1, 100_000, 128),
  learning_rate: number(0, 1e6, 0.002, true),
  density_rate: number(0, 1e3, 1, true),
  weight_decay: number(0, 1, 0),
  locator_rate: number(0, 1e3, 1, true),
  locator_decay: number(0, 10, 0),
  location_start: oneOf(["normal", "grid"], "normal"),
  scale_start: number(-8, 4, -3),
  seed: integer(0, 2 ** 31 - 1, 0),
  seeds: integer(1, 100, 1),
  device: oneOf(["auto", "cpu", "cuda", "mps"], "auto"),
  compile: rule("true or false", (value) => typeof value === "boolean", false),
};

const count = integer(0, 1e12);
const MOST = 1e39, LARGEST = 1e30;  // as in Python, of metrics and of signals
const scaling = object({ mean: number(-LARGEST, LARGEST), std: number(1 / LARGEST, LARGEST) });
const HEADER = {
  config: object(CONFIG),
  scaling: {
    takes: "",
    absent: null,
    check: (/** @type {any} */ value, /** @type {Path} */ path) =>
      value === null ? null : scaling.check(value, path),
  },
  input_shape: shape(false),
  classes,
  steps_per_epoch: integer(1, 1e12),
  steps: list(count, 1, 1000),
  epochs: list(
    object({
      epoch: integer(1, 1e12),
      step: integer(1, 1e12),
      train_loss: list(number(-MOST, MOST), 0, Infinity),
      test_error: list(number(0, 100), 0, Infinity),
      learning_rate: number(0, MOST),
      seconds: number(0, 1e12),
    }),
    0,
    10_000,
  ),
  outcome: oneOf(["running", "done", "stopped", "diverged", "failed"]),
  provenance: object({
    created: shortText,
    densembed: shortText,
    torch: shortText,
    python: shortText,
    machine: shortText,
    device: shortText,
    threads: count,
    kernels: { ...shortText, absent: "" },
    dataset_title: title,
    train_images: count,
    test_images: count,
  }),
  plugins: list(shortText, 0, 20, []),
  data_changes: list(longText, 0, 1000, []),
};
const OF_IMAGES = object(HEADER);
const OF_SIGNALS = object({ ...HEADER, input_shape: shape(true) });

/**
 * The value of a JSON document; NaN and the infinities, which Python reads, become null.
 *
 * @param {string} document
 */
export function parseJson(document) {
  try {
    return JSON.parse(document);
  } catch {
    return JSON.parse(document.replace(/-?\b(NaN|Infinity)\b/g, "null"));
  }
}

/**
 * The checked header. Throws Damage with the sentence of the first fault.
 *
 * @param {unknown} document
 * @returns {Header}
 */
export function readHeader(document) {
  let content = null;
  try {
    content = parseJson(/** @type {string} */ (document));
  } catch {
    // reported as a missing config
  }
  const header = (content?.scaling ? OF_SIGNALS : OF_IMAGES).check(content, []);
  // as Python writes it
  if (!header.scaling) delete header.scaling;
  if (!header.data_changes?.length) delete header.data_changes;
  return header;
}
