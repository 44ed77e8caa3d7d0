// @ts-check
/**
 * Checkpoint files, read as by `densembed/training/checkpoint.py`.
 *
 * @import { Header } from "./header.js"
 * @import { Plan } from "./names.js"
 */

import { CheckpointError, Unsupported } from "./errors.js";
import { Damage, parseJson, readHeader } from "./header.js";
import { describe, plan, planAt, shapes } from "./names.js";
import { Network } from "./network.js";
import { counted, printable, quoted } from "./text.js";

const FORMAT = "densembed";
const VERSION = "1";
const MAX_BYTES = 256 * 2 ** 20;
const MAX_HEADER = 4 * 2 ** 20;
const MODULE_NAME = /^[A-Za-z_]\w{0,40}(\.[A-Za-z_]\w{0,40}){0,5}$/;

/**
 * One tensor of a file.
 *
 * @typedef {object} Entry
 * @property {string} dtype
 * @property {number[]} shape
 * @property {[number, number]} data_offsets
 */

/** Snapshots of a training with its config and metrics. */
export class Checkpoint {
  /** @type {Map<string, Network>} */
  #networks = new Map();
  /** @type {Checkpoint | null} the last one of another grid */
  #other = null;
  #plan;
  #tensors;

  /**
   * @param {Header} header
   * @param {Plan | null} structure null if other code computes the networks
   * @param {Map<string, { values: Float32Array, size: number }>} tensors values of all snapshots
   *   and members, and their number for one
   * @param {number} members
   */
  constructor(header, structure, tensors, members) {
    this.header = header;
    this.members = members;
    this.#plan = structure;
    this.#tensors = tensors;
  }

  get config() {
    return this.header.config;
  }

  get provenance() {
    return this.header.provenance;
  }

  get classes() {
    return this.header.classes;
  }

  /** (channels, height, width), or (channels, length) of signals */
  get inputShape() {
    return this.header.input_shape;
  }

  /** The number of axes of an input: 2 of a picture, 1 of a signal. */
  get axes() {
    return this.inputShape.length - 1;
  }

  /** The step of each snapshot, from before the training to its end. */
  get steps() {
    return this.header.steps;
  }

  /** Test error of each member in percent at the last snapshot, null in the first epoch. */
  get errors() {
    const last = /** @type {number} */ (this.steps.at(-1));
    return this.header.epochs.filter(({ step }) => step <= last).at(-1)?.test_error ?? null;
  }

  /** The member whose error is closest to the mean, which is shown by default. */
  get typical() {
    const errors = this.errors;
    if (!errors) return 0;
    const mean = errors.reduce((sum, each) => sum + each) / errors.length;
    const distances = errors.map((each) => Math.abs(each - mean));
    return distances.indexOf(Math.min(...distances));
  }

  /** Number of parameters of one network. */
  get parameters() {
    return [...this.#tensors.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /** Whether the model has densities, instead of weights of pixels only. */
  get hasDensities() {
    return this.#plan?.kind !== "pixels";
  }

  /** The model in words. */
  get words() {
    return describe(this.config.model);
  }

  /** Whether the model reads pictures of digits. */
  get readsDigits() {
    return this.axes === 2 && this.classes.join() === "0,1,2,3,4,5,6,7,8,9";
  }

  /** The network after training. */
  get final() {
    return this.network(-1);
  }

  /**
   * The epoch of a step.
   *
   * @param {number} step
   */
  epochOf(step) {
    return step / this.header.steps_per_epoch;
  }

  /**
   * The epoch of a snapshot, e.g. "epoch 0.25" or "epoch 1,234".
   *
   * @param {number} step
   */
  epochText(step) {
    const epoch = this.epochOf(step);
    return `epoch ${epoch >= 100 ? Math.round(epoch).toLocaleString("en")
      : Number(epoch.toPrecision(3))}`;
  }

  /**
   * When a snapshot was taken, e.g. "after 1,000 steps".
   *
   * @param {number} step
   */
  moment(step) {
    if (step === this.steps[0]) return "before training";
    if (step === this.steps.at(-1) && this.header.outcome === "done") return "after training";
    return `after ${counted(step, "step")}`;
  }

  /**
   * The network at one snapshot; the same object each time.
   *
   * @param {number} [snapshot] index in `steps`, negative ones from the end
   * @param {number} [member] by default the typical one
   * @returns {Network}
   */
  network(snapshot = -1, member = this.typical) {
    const index = snapshot < 0 ? snapshot + this.steps.length : snapshot;
    if (!(index in this.steps) || !(member >= 0 && member < this.members))
      throw new RangeError(`There is no snapshot ${snapshot} of member ${member}.`);
    const key = `${index} ${member}`;
    let network = this.#networks.get(key);
    if (!network) {
      if (!this.#plan) throw new Error("This checkpoint has no networks.");
      const place = index * this.members + member;
      network = new Network(this.#plan, (name) => {
        const { values, size } = /** @type {{ values: Float32Array, size: number }} */ (
          this.#tensors.get(name)
        );
        return values.subarray(place * size, (place + 1) * size);
      });
      this.#networks.set(key, network);
    }
    return network;
  }

  /**
   * The same weights for inputs on another grid, as `at` of Python's networks; the same object each
   * time until a third grid is asked for.
   *
   * @param {number[]} sizes (height, width), or the length of signals
   * @returns {Checkpoint}
   */
  at(sizes) {
    const [channels, ...own] = this.inputShape;
    const same = (/** @type {number[]} */ others) => sizes.join() === others.join();
    if (same(own)) return this;
    if (!this.#plan) throw new Error("This checkpoint has no networks.");
    if (!this.#other || !same(this.#other.inputShape.slice(1))) {
      const header = { ...this.header, input_shape: [channels, ...sizes] };
      this.#other = new Checkpoint(header, planAt(this.#plan, sizes), this.#tensors, this.members);
    }
    return this.#other;
  }

  /**
   * The location of one density at every snapshot, for an input: (snapshots, axes), in pixels along
   * the columns and the rows.
   *
   * @param {ArrayLike<number>} pixels
   * @param {number} density
   * @param {number} [member]
   */
  path(pixels, density, member = this.typical) {
    const { axes } = this;
    const path = new Float64Array(axes * this.steps.length);
    this.steps.forEach((_, k) => {
      const { locations } = this.network(k, member).place(pixels);
      path.set(locations.subarray(axes * density, axes * (density + 1)), axes * k);
    });
    return path;
  }
}

/**
 * Reads a checkpoint file. The tensors stay where they are in `buffer`.
 *
 * @param {ArrayBuffer} buffer the content of the file
 * @param {string} [name] its name, for the sentence of an error
 * @returns {Checkpoint}
 * @throws {CheckpointError} if it is not a complete checkpoint
 * @throws {Unsupported} if its model is that of a plugin
 */
export function readCheckpoint(buffer, name = "The file") {
  const shown = printable(name);
  const fail = (/** @type {string} */ what) => new CheckpointError(`${shown} ${what}`);
  if (buffer.byteLength > MAX_BYTES) throw fail("is too large for a checkpoint.");
  if (!buffer.byteLength) throw fail("is empty (0 bytes). Choose another file.");
  const { entries, metadata, start } = readEntries(buffer, fail);
  if (metadata.version !== VERSION) {
    const version = metadata.version === undefined ? "None" : String(metadata.version);
    throw fail(
      `has version ${quoted(version, 20)} of the format, but this densembed reads version ` +
        `${VERSION}. Update densembed.`,
    );
  }
  const header = checkedHeader(metadata.header ?? "", shown, fail);
  let structure;
  const views = tensorViews(entries, metadata, buffer, start);
  if (!views) throw fail("is damaged or incomplete.");
  try {
    structure = plan(header.config.model, header.input_shape, header.classes.length);
  } catch (error) {
    throw fail(`has a damaged header: ${/** @type {Error} */ (error).message}`);
  }
  const { tensors, members } = checkedTensors(header, shapes(structure), views, fail);
  return new Checkpoint(header, structure, tensors, members);
}

/** @typedef {(what: string) => CheckpointError} Fail */

/**
 * @param {ArrayBuffer} buffer
 * @param {Fail} fail
 * @returns {{ entries: Record<string, Entry>, metadata: Record<string, any>, start: number }}
 */
function readEntries(buffer, fail) {
  const invalid = fail(
    "is not a densembed checkpoint. Choose a .safetensors file that densembed wrote.",
  );
  if (buffer.byteLength <= 8) throw invalid;
  const size = Number(new DataView(buffer).getBigUint64(0, true));
  if (size < 1 || size > Math.min(buffer.byteLength - 8, MAX_HEADER)) throw invalid;
  let document;
  try {
    const bytes = new Uint8Array(buffer, 8, size);
    document = parseJson(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    throw invalid;
  }
  const { __metadata__: metadata, ...entries } = document ?? {};
  if (typeof metadata !== "object" || metadata?.format !== FORMAT) throw invalid;
  return { entries, metadata, start: 8 + size };
}

/**
 * @param {unknown} document
 * @param {string} shown
 * @param {Fail} fail
 */
function checkedHeader(document, shown, fail) {
  try {
    const content = parseJson(/** @type {string} */ (document));
    /** @type {unknown[]} */
    const plugins = Array.isArray(content?.plugins) ? content.plugins : [];
    const plugin = plugins.find((each) => typeof each === "string" && MODULE_NAME.test(each));
    if (plugin)
      throw new Unsupported(
        `${shown} needs the plugin ${plugin}, which does not run in the browser.`,
      );
  } catch (error) {
    if (error instanceof Unsupported) throw error;
    throw fail("has a damaged header, which is not JSON.");
  }
  let header;
  try {
    header = readHeader(document);
  } catch (error) {
    if (error instanceof Damage) throw fail(`has a damaged header: ${error.message}`);
    throw error;
  }
  return header;
}

/**
 * The bytes of each tensor, or null if they are not exactly the rest of the file.
 *
 * @param {Record<string, Entry>} entries
 * @param {Record<string, any>} metadata
 * @param {ArrayBuffer} buffer
 * @param {number} start
 */
function tensorViews(entries, metadata, buffer, start) {
  if (Object.values(metadata).some((value) => typeof value !== "string")) return null;
  /** @type {Map<string, { dtype: string, shape: number[], offset: number, count: number }>} */
  const views = new Map();
  try {
    const sorted = Object.entries(entries).sort(([, a], [, b]) => {
      const [one, other] = [a.data_offsets, b.data_offsets];
      return one[0] - other[0] || one[1] - other[1];
    });
    let end = 0;
    for (const [name, { dtype, shape, data_offsets: [from, to] }] of sorted) {
      const whole = shape.every((size) => Number.isInteger(size) && size >= 0);
      const count = shape.reduce((product, size) => product * size, 1);
      if (!whole || from !== end || to - from !== count * WIDTHS[dtype].bytes) return null;
      views.set(name, { dtype, shape, offset: start + from, count });
      end = to;
    }
    return start + end === buffer.byteLength ? readers(views, buffer) : null;
  } catch {
    return null; // not the description of a tensor
  }
}

/**
 * @param {Map<string, { dtype: string, shape: number[], offset: number, count: number }>} views
 * @param {ArrayBuffer} buffer
 */
function readers(views, buffer) {
  /** @type {Map<string, { shape: number[], read: () => Float32Array | string }>} */
  const tensors = new Map();
  for (const [name, { dtype, shape, offset, count }] of views)
    tensors.set(name, { shape, read: () => asFloat32(dtype, buffer, offset, count) });
  return tensors;
}

/**
 * Name in torch and size of each type of numbers; those of floats of at most 16 bits have the
 * widths of their exponent and mantissa.
 *
 * @type {Record<string, { name: string, bytes: number, exponent?: number, mantissa?: number }>}
 */
const WIDTHS = {
  F32: { name: "float32", bytes: 4 },
  F64: { name: "float64", bytes: 8 },
  F16: { name: "float16", bytes: 2, exponent: 5, mantissa: 10 },
  BF16: { name: "bfloat16", bytes: 2, exponent: 8, mantissa: 7 },
  F8_E5M2: { name: "float8_e5m2", bytes: 1, exponent: 5, mantissa: 2 },
  F8_E4M3: { name: "float8_e4m3fn", bytes: 1, exponent: 4, mantissa: 3 },
  BOOL: { name: "bool", bytes: 1 },
  U8: { name: "uint8", bytes: 1 },
  I8: { name: "int8", bytes: 1 },
  I16: { name: "int16", bytes: 2 },
  U16: { name: "uint16", bytes: 2 },
  I32: { name: "int32", bytes: 4 },
  U32: { name: "uint32", bytes: 4 },
  I64: { name: "int64", bytes: 8 },
  U64: { name: "uint64", bytes: 8 },
  C64: { name: "complex64", bytes: 8 },
};

/**
 * The values as float32, a view if they are; the name of the type if float32 cannot represent
 * them exactly.
 *
 * @param {string} dtype
 * @param {ArrayBuffer} buffer
 * @param {number} offset
 * @param {number} count
 * @returns {Float32Array | string}
 */
function asFloat32(dtype, buffer, offset, count) {
  const { name, bytes, exponent = 0, mantissa = 0 } = WIDTHS[dtype];
  const place = offset % bytes ? buffer.slice(offset, offset + count * bytes) : buffer;
  const from = offset % bytes ? 0 : offset;
  if (dtype === "F32") return new Float32Array(place, from, count);
  if (dtype === "F64") {
    const values = new Float64Array(place, from, count);
    const exact = values.every((value) => Math.fround(value) === value);
    const finite = values.every(Number.isFinite);
    return exact || !finite ? Float32Array.from(values) : name;
  }
  if (!exponent) return name;
  const Bits = bytes === 2 ? Uint16Array : Uint8Array;
  const top = 2 ** exponent - 1;
  const bias = 2 ** (exponent - 1) - 1;
  const unit = 2 ** -mantissa;
  return Float32Array.from(new Bits(place, from, count), (each) => {
    const sign = each >> (8 * bytes - 1) ? -1 : 1;
    const power = (each >> mantissa) & top;
    const rest = each & (2 ** mantissa - 1);
    if (dtype === "F8_E4M3" ? (each & 0x7f) === 0x7f : power === top) return NaN;
    return sign * (power ? (1 + rest * unit) * 2 ** (power - bias) : rest * unit * 2 ** (1 - bias));
  });
}

/**
 * Why values of a type cannot be used, and how they are converted.
 *
 * @param {string} dtype
 */
const inexact = (dtype) =>
  dtype.includes("float")
    ? " that are not exact in float32. Convert its tensors with .float()"
    : ", where a model has floating-point numbers. Convert its tensors with .float(), and " +
      "multiply quantised ones by their scale,";

/**
 * @param {Header} header
 * @param {[string, number[]][]} expected
 * @param {Map<string, { shape: number[], read: () => Float32Array | string }>} views
 * @param {Fail} fail
 */
function checkedTensors(header, expected, views, fail) {
  const names = new Set(expected.map(([name]) => name));
  const missing = [...names].filter((name) => !views.has(name)).sort(byCodePoint);
  if (missing.length) throw fail(`lacks the tensor ${missing[0]} of ${header.config.model}.`);
  const surplus = [...views.keys()].filter((name) => !names.has(name)).sort(byCodePoint);
  if (surplus.length)
    throw fail(`has a tensor ${quoted(surplus[0], 60)} that its model does not have.`);
  const members = Math.min(...[...views.values()].map(({ shape }) => shape[1] ?? 0));
  /** @type {Map<string, { values: Float32Array, size: number }>} */
  const tensors = new Map();
  for (const [key, shape] of expected) {
    const tensor = /** @type {{ shape: number[], read: () => Float32Array | string }} */ (
      views.get(key)
    );
    const wanted = [header.steps.length, members, ...shape];
    if (tensor.shape.join() !== wanted.join() || wanted.includes(0))
      throw fail(
        `has a tensor ${key} of the wrong shape: expected ${tuple(wanted)}, ` +
          `got ${tuple(tensor.shape)}.`,
      );
    const values = tensor.read();
    if (typeof values === "string")
      throw fail(
        `has ${values} values in ${key}${inexact(values)} and save them with the file's ` +
          "metadata by safetensors.torch.save_file.",
      );
    if (!values.every((value) => Math.abs(value) < Infinity))
      throw fail(`has values in ${key} that are not finite.`);
    tensors.set(key, { values, size: shape.reduce((product, size) => product * size, 1) });
  }
  if (header.epochs.some((e) => e.test_error.length !== members || e.train_loss.length !== members))
    throw fail("has metrics for another number of members.");
  const { steps, epochs } = header;
  for (const [what, numbers] of /** @type {[string, number[]][]} */ ([
    ["snapshots", steps],
    ["epochs", epochs.map(({ epoch }) => epoch)],
    ["epochs", epochs.map(({ step }) => step)],
  ]))
    if (numbers.some((number, k) => k > 0 && number <= numbers[k - 1]))
      throw fail(`has ${what} that are not in order.`);
  if (steps[0]) throw fail("has no snapshot of step 0, from before training.");
  return { tensors, members };
}

/** @param {string} a @param {string} b */
const byCodePoint = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** A shape as Python writes it. @param {number[]} shape */
const tuple = (shape) => `(${shape.join(", ")}${shape.length === 1 ? "," : ""})`;
