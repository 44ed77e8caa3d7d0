// Networks that the browser cannot compute: a server answers, through the interface of the engine.

import { Checkpoint } from "../engine/densembed.js";

/** @import { Header } from "../engine/header.js" */

const KEPT = 12;  // answers

/**
 * @typedef {object} Facts
 * @property {Header} header
 * @property {string} words the model in words
 * @property {number} members
 * @property {number} parameters
 * @property {boolean} hasDensities
 * @property {boolean} adaptive
 * @property {boolean} onPixels
 * @property {number} densities of all channels
 * @property {(number[][] | null)[]} weights by snapshot and class
 *
 * @typedef {(what: string, query: Record<string, number>, pixels: Bytes) =>
 *   Promise<Float32Array>} Ask
 * @typedef {{ pixels: Bytes }} Asked
 * @typedef {Uint8Array<ArrayBuffer>} Bytes
 */

/** Thrown where numbers are missing that a server still computes. */
export class Pending extends Error {
  /** @param {Promise<unknown>} promise fulfilled when it is worth another try */
  constructor(promise) {
    super("The server computes.");
    this.promise = promise;
  }
}

/**
 * The result of a computation, after what is pending.
 * @template T
 * @param {() => T} compute
 */
export async function settled(compute) {
  for (;;)
    try {
      return compute();
    } catch (error) {
      if (!(error instanceof Pending)) throw error;
      await error.promise;
    }
}

export class ServedCheckpoint extends Checkpoint {
  /** @type {Map<string, Float32Array>} */
  #answers = new Map();
  /** @type {Promise<void> | null} */
  #busy = null;
  #facts;
  #ask;

  /** @param {Facts} facts @param {Ask} ask */
  constructor(facts, ask) {
    super(facts.header, null, new Map(), facts.members);
    this.#facts = facts;
    this.#ask = ask;
    this.networks = facts.header.steps.map((_, k) => new ServedNetwork(this, facts, k));
  }

  get parameters() {
    return this.#facts.parameters;
  }

  get hasDensities() {
    return this.#facts.hasDensities;
  }

  get words() {
    return this.#facts.words;
  }

  /** @param {number} [snapshot] */
  network(snapshot = -1) {
    return /** @type {any} */ (this.networks.at(snapshot));
  }

  /**
   * An input as the server takes it: bytes of an image, 32 bits per value of a signal.
   * @param {ArrayLike<number>} input as a network takes it
   */
  bytesOf(input) {
    return this.axes === 1 ? new Uint8Array(Float32Array.from(input).buffer)
      : Uint8Array.from(input, (value) => Math.round(255 * value));
  }

  /**
   * Numbers of the server. One request is made at a time: while the input changes, the next one is
   * for the last input.
   * @param {string} what
   * @param {Record<string, number>} query
   * @param {Bytes} pixels
   */
  numbers(what, query, pixels) {
    const key = JSON.stringify([what, query, String(pixels)]);
    const answer = this.#answers.get(key);
    if (answer) return answer;
    this.#busy ??= this.#ask(what, query, pixels).then((values) => {
      this.#answers.set(key, values);
      for (const first of this.#answers.keys())
        if (this.#answers.size > KEPT) this.#answers.delete(first);
    }).finally(() => { this.#busy = null; });
    throw new Pending(this.#busy);
  }
}

/** What the views use of a `Network`. */
class ServedNetwork {
  #checkpoint;
  #snapshot;
  #weights;

  /** @param {ServedCheckpoint} checkpoint @param {Facts} facts @param {number} snapshot */
  constructor(checkpoint, { densities, adaptive, onPixels, weights }, snapshot) {
    this.#checkpoint = checkpoint;
    this.#snapshot = snapshot;
    /** @type {Float64Array[] | null} */
    this.#weights = weights[snapshot]?.map((row) => Float64Array.from(row)) ?? null;
    this.densities = densities;
    this.adaptive = adaptive;
    this.hasMicroNetwork = adaptive;
    this.frame = "input";
    this.onPixels = onPixels;
    this.linear = false;
  }

  /**
   * The numbers of this snapshot among those of all.
   * @param {string} what
   * @param {Record<string, number>} query
   * @param {Bytes} pixels
   */
  #own(what, query, pixels) {
    const values = this.#checkpoint.numbers(what, query, pixels);
    const size = values.length / this.#checkpoint.steps.length;
    return values.subarray(this.#snapshot * size, (this.#snapshot + 1) * size);
  }

  /** @param {ArrayLike<number>} input */
  run(input) {
    const pixels = this.#checkpoint.bytesOf(input);
    const values = this.#own("predictions", {}, pixels);
    const { classes: { length }, axes } = this.#checkpoint;
    const places = 2 * length + axes * this.densities;
    const part = (/** @type {number} */ from, /** @type {number} */ to) =>
      Float64Array.from(values.subarray(from, to));
    return {
      pixels, readings: new Float64Array(0),
      logits: part(0, length), probabilities: part(length, 2 * length),
      locations: part(2 * length, places), scales: part(places, places + axes * this.densities),
    };
  }

  /** @param {ArrayLike<number>} input */
  place(input) {
    return this.run(input);
  }

  /**
   * @param {Asked} asked a result of `run`
   * @param {{ channel?: number | null, weights?: Float64Array | null }} [options]
   */
  field({ pixels }, { channel = null, weights = null } = {}) {
    const label = this.#weights?.findIndex((each) => each === weights) ?? -1;
    return this.#own("fields",
      { ...(label < 0 ? {} : { label }), ...(channel === null ? {} : { channel }) }, pixels);
  }

  /** @param {Asked} asked @param {{ channel?: number | null }} [options] */
  pixelField({ pixels }, { channel = null } = {}) {
    return this.#own("pixel-fields", channel === null ? {} : { channel }, pixels);
  }

  /** @param {Asked} asked @param {number} density */
  density({ pixels }, density) {
    return this.#checkpoint.numbers("density", { snapshot: this.#snapshot, density }, pixels);
  }

  /** @param {ArrayLike<number>} input */
  inputGradient(input) {
    return this.#checkpoint.numbers("gradient", { snapshot: this.#snapshot },
      this.#checkpoint.bytesOf(input));
  }

  /** @param {ArrayLike<number>[]} inputs */
  meanField(inputs) {
    const parts = inputs.map((input) => this.#checkpoint.bytesOf(input));
    const all = new Uint8Array(parts.length * parts[0].length);
    parts.forEach((part, k) => all.set(part, k * part.length));
    return this.#checkpoint.numbers("mean-field", { snapshot: this.#snapshot }, all);
  }

  /** @param {number} label */
  classWeights(label) {
    return this.#weights && this.#weights[label];
  }
}
