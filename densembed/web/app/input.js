// The controls for the input, and the input that they make: a test image or a drawing, which may be
// moved, turned and blurred, or be on its way to another test image.

import { morph } from "../input/morph.js";
import { Raster, toInput } from "../input/strokes.js";
import { transform } from "../input/transform.js";
import { mount as mountPad } from "../panels/draw_pad.js";
import { mount as mountThumbnails } from "../panels/thumbnails.js";
import { choice, count, list, make, slider } from "./controls.js";
import { number, oneOf } from "./parameters.js";
import { spriteOf } from "./pictures.js";

/**
 * @import { Host } from "./host.js"
 * @import { Parameter, State } from "./parameters.js"
 * @import { Samples } from "./samples.js"
 * @import { Stroke } from "../panels/types.js"
 */

/**
 * @typedef {object} Input
 * @property {Uint8Array} pixels channels × height × width
 * @property {string | null} label the class of a test image
 * @property {string} note what was done to it
 * @property {boolean} blank whether there is no ink
 */

const SOURCES = { samples: "Test images", draw: "Draw" };
const NONE = "none";
const SHOWN = 16;  // thumbnails
const SEEDS = 10 ** 6;
/** @type {Record<string, { label: string, range: { low: number, high: number, step: number },
 *    usual: number, words: (value: number) => string }>} */
const CHANGES = {
  right: { label: "Move to the right", range: { low: -8, high: 8, step: 0.5 }, usual: 0,
    words: (value) => `${signed(value)} pixels` },
  down: { label: "Move down", range: { low: -8, high: 8, step: 0.5 }, usual: 0,
    words: (value) => `${signed(value)} pixels` },
  size: { label: "Size", range: { low: 0.5, high: 1.5, step: 0.05 }, usual: 1,
    words: (value) => `× ${value.toFixed(2)}` },
  turn: { label: "Turn clockwise", range: { low: -90, high: 90, step: 5 }, usual: 0,
    words: (value) => `${signed(value)}°` },
  blur: { label: "Blur", range: { low: 0, high: 3, step: 0.25 }, usual: 0,
    words: (value) => `${value} pixels` },
  noise: { label: "Noise", range: { low: 0, high: 0.5, step: 0.05 }, usual: 0,
    words: (value) => `${value} of full ink` },
};

/** @param {number} value */
const signed = (value) => String(value).replace("-", "−");

/**
 * The parameters of the input in a link.
 * @param {Samples} samples
 * @returns {Record<string, Parameter>}
 */
export function inputParameters(samples) {
  const { tested } = samples;
  const most = Math.max(...samples.counts);
  return {
    from: oneOf("Input", Object.keys(SOURCES), "samples"),
    class: oneOf("Class", tested, tested[7 % tested.length]),
    example: number("Example", 1, most, 1, true),
    shuffle: number("Shuffle", 0, SEEDS, null, true),
    to: oneOf("Morph into", tested, null),
    between: number("Between", 0, 1, 0),
    ...Object.fromEntries(Object.entries(CHANGES).map(([key, { label, range, usual }]) =>
      [key, number(label, range.low, range.high, usual)])),
  };
}

/**
 * The numbers of the thumbnails: the first examples, or a random choice.
 * @param {number} total
 * @param {number | null} seed
 */
function shownExamples(total, seed) {
  const numbers = Array.from({ length: total }, (_, k) => k + 1);
  if (seed === null) return numbers.slice(0, SHOWN);
  let state = seed + 1;
  const random = () => {  // a linear congruential generator: the same numbers for a link
    state = (1664525 * state + 1013904223) % 2 ** 32;
    return state / 2 ** 32;
  };
  for (let k = 0; k < Math.min(SHOWN, total); k++) {
    const other = k + Math.floor(random() * (total - k));
    [numbers[k], numbers[other]] = [numbers[other], numbers[k]];
  }
  return numbers.slice(0, SHOWN);
}

export class InputControls {
  /** @type {Stroke[]} */
  strokes = [];
  raster = new Raster();
  listed = "";
  /** @type {Record<string, { element: HTMLElement, show: (value: number) => void }>} */
  sliders = {};

  /**
   * @param {Host} host
   * @param {Samples} samples
   * @param {(changes: State) => void} set
   */
  constructor(host, samples, set) {
    this.samples = samples;
    this.set = set;
    this.source = choice("Input", (from) => set({ from }));
    this.classes = choice("Class", (name) => set({ class: name, example: 1 }), "pills");
    this.example = count("Example", (example) => set({ example }));
    this.thumbnails = host.part("thumbnails");
    this.pad = host.part("draw_pad");
    this.morphTarget = list("Morph into", (to) =>
      set(to === NONE ? { to: null, between: 0 } : { to, between: 0.5 }));
    this.between = slider("Between", { low: 0, high: 1, step: 0.01 },
      (value) => `${Math.round(100 * value)} %`, (between) => set({ between }));
    for (const [key, { label, range, words }] of Object.entries(CHANGES))
      this.sliders[key] = slider(label, range, words, (value) => set({ [key]: value }));
    const usual = Object.fromEntries(Object.entries(CHANGES).map(([key, each]) => [key, each.usual]));
    this.reset = make("button", { type: "button", onclick: () => set({ ...usual, to: null, between: 0 }) },
      "Reset");
    this.samplesBar = make("div", { className: "bar" }, this.classes.element, this.example.element);
    this.bar = make("div", { className: "input-bar" },
      make("div", { className: "bar" }, this.source.element), this.samplesBar,
      this.thumbnails.element);
    this.changes = make("details", { className: "changes" },
      make("summary", {}, "Move, turn, morph …"),
      ...Object.values(this.sliders).map(({ element }) => element),
      this.morphTarget.element, this.between.element, this.reset);
  }

  /** @param {State} state */
  show(state) {
    const { samples } = this;
    const drawing = state.from === "draw";
    const name = String(state.class);
    this.source.show(String(state.from), SOURCES);
    this.samplesBar.hidden = this.thumbnails.element.hidden = drawing;
    this.pad.element.hidden = !drawing;
    for (const [key, { show }] of Object.entries(this.sliders)) show(Number(state[key]));
    const others = { [NONE]: "no other image",
      ...Object.fromEntries(samples.tested.map((each) => [each, each])) };
    this.morphTarget.show(state.to === null ? NONE : String(state.to), others);
    this.between.show(Number(state.between));
    this.between.element.hidden = state.to === null;
    if (drawing) return;
    const total = samples.count(name);
    this.classes.show(name, Object.fromEntries(samples.tested.map((each) => [each, each])));
    this.example.show(Math.min(Number(state.example), total), total);
    const seed = state.shuffle === null ? null : Number(state.shuffle);
    const key = `${name} ${seed} ${state.example}`;
    if (key === this.listed) return;
    this.listed = key;
    const numbers = shownExamples(total, seed);
    mountThumbnails(this.thumbnails.root, {
      sprite: spriteOf(numbers.map((each) => samples.image(name, each)), samples.shape),
      numbers, chosen: Number(state.example), seeds: SEEDS,
    }, {
      pick: (example) => this.set({ example }), shuffle: (shuffle) => this.set({ shuffle }),
    });
  }

  /**
   * Show the pad with the input that the drawing became.
   * @param {string} url
   */
  showPad(url) {
    mountPad(this.pad.root, { input: url, base: null, strokes: this.strokes }, ({ strokes }) => {
      this.strokes = strokes;
      this.set({});
    });
  }

  /**
   * @param {State} state
   * @returns {Input}
   */
  input(state) {
    const { samples } = this;
    const [channels, height, width] = samples.shape;
    const drawing = state.from === "draw";
    const name = String(state.class);
    const example = Math.min(Number(state.example), samples.count(name));
    const notes = [`${height} × ${width}`];
    let pixels = drawing
      ? toInput(this.raster.draw(this.strokes), height, width).pixels
      : samples.image(name, example);
    if (state.to !== null && Number(state.between) > 0) {
      const to = String(state.to);
      const other = samples.image(to, Math.min(example, samples.count(to)));
      pixels = morph(pixels, other, Number(state.between), [channels, height, width]);
      notes.push(`${Math.round(100 * Number(state.between))} % of the way to ${to}`);
    }
    const changes = Object.fromEntries(Object.keys(CHANGES).map((key) => [key, Number(state[key])]));
    if (Object.entries(CHANGES).some(([key, { usual }]) => changes[key] !== usual)) {
      pixels = transform(pixels, [channels, height, width], changes);
      notes.push("edited");
    }
    return { pixels, label: drawing ? null : name, note: notes.join(", "),
      blank: !pixels.some((value) => value > 0) };
  }
}
