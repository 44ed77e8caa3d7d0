// The controls for the input, and the input that they make: a test image or a drawing, which may be
// moved, turned and blurred, or be on its way to another test image.

import { fromText, toText, MAX_TEXT } from "../input/codec.js";
import { onGrid } from "../input/grid.js";
import { morph } from "../input/morph.js";
import { LARGEST, readSignal } from "../input/numbers.js";
import { permutation } from "../input/permutation.js";
import { Raster, SIDE, toInput } from "../input/strokes.js";
import { transform, transformSignal } from "../input/transform.js";
import { mount as mountPad } from "../panels/draw_pad.js";
import { counted } from "../engine/text.js";
import { mount as mountThumbnails } from "../panels/thumbnails.js";
import { choice, count, list, make, NONE, slider } from "./controls.js";
import { part } from "./host.js";
import { number, oneOf, text } from "./parameters.js";
import { curveSprite, paint, spriteOf } from "./pictures.js";

/**
 * @import { Checkpoint } from "../engine/densembed.js"
 * @import { Host } from "./host.js"
 * @import { Values } from "./kinds.js"
 * @import { Parameter, State } from "./parameters.js"
 * @import { Samples } from "./samples.js"
 * @import { Stroke } from "../panels/types.js"
 */

/**
 * @typedef {object} Input
 * @property {Values} pixels of `shape`
 * @property {[channels: number, height: number, width: number]} shape
 * @property {string | null} label the class of a test image
 * @property {string} note what was done to it
 * @property {boolean} blank whether there is no ink
 * @property {boolean} loading whether it is blank only until a test image arrives
 * @property {string} unread why there is no prediction, or ""
 * @property {string} content of a drawing: "digit", "several digits" or "no ink"
 * @property {boolean} stray whether a drawing has ink besides the digit, which is left out
 */

/** @type {Record<string, string>} */
const SOURCES = { samples: "Test images", upload: "Upload", draw: "Draw" };
/** @type {Record<string, string>} */
const SIGNAL_SOURCES = { samples: "Test signals", upload: "Numbers", draw: "Draw" };
/** @type {Record<string, string>} */
const OLD_SOURCES = { Samples: "samples", Upload: "upload", Draw: "draw" };
const DOT = 0.25;  // largest extent of a dot; a digit takes up 0.7 of the side
const SHOWN = 16;  // thumbnails
const SEEDS = 10 ** 6;
const MOST_BYTES = 2 ** 20;  // of a table that are read for its first row
/** @typedef {{ label: string, range: { low: number, high: number, step: number }, usual: number,
 *    words: (value: number) => string }} Change */
/** @type {Record<string, Change>} */
const CHANGES = {
  right: { label: "Move to the right", range: { low: -8, high: 8, step: 0.5 }, usual: 0,
    words: units("pixel") },
  down: { label: "Move down", range: { low: -8, high: 8, step: 0.5 }, usual: 0,
    words: units("pixel") },
  size: { label: "Size", range: { low: 0.5, high: 1.5, step: 0.05 }, usual: 1,
    words: (value) => `× ${value.toFixed(2)}` },
  turn: { label: "Turn clockwise", range: { low: -90, high: 90, step: 5 }, usual: 0,
    words: (value) => `${signed(value)}°` },
  blur: { label: "Blur", range: { low: 0, high: 3, step: 0.25 }, usual: 0,
    words: units("pixel") },
  noise: { label: "Noise", range: { low: 0, high: 0.5, step: 0.05 }, usual: 0,
    words: (value) => `${value} of full ink` },
};
/** Signals have the same changes along their one axis. @type {Record<string, Change>} */
const SIGNAL_CHANGES = {
  right: { ...CHANGES.right, words: units("sample") },
  size: { ...CHANGES.size, label: "Stretch" },
  blur: { ...CHANGES.blur, words: units("sample") },
  noise: { ...CHANGES.noise, words: (value) => `${value} of the signal’s deviation` },
};

/** @param {number} value */
function signed(value) {
  return String(value).replace("-", "−");
}

/** Words for a number of units. @param {string} unit @returns {(value: number) => string} */
function units(unit) {
  return (value) => `${signed(value)} ${unit}${Math.abs(value) === 1 ? "" : "s"}`;
}

/** What can be done to an input. @param {Samples} samples */
const changesOf = ({ signals }) => (signals ? SIGNAL_CHANGES : CHANGES);

/** The state in which nothing is done to an input. @param {Samples} samples @returns {State} */
export const unchanged = (samples) => ({ to: null, between: 0, ...Object.fromEntries(
  Object.entries(changesOf(samples)).map(([key, { usual }]) => [key, usual])) });

/** What an input is called. @param {Samples} samples */
const inputOf = ({ signals }) => (signals ? "signal" : "picture");

/** Why a link shows no input of its own. */
export const DAMAGED = "The input in the link is damaged, or it is that of another model.";

/**
 * The parameters of the input in a link.
 * @param {Samples} samples
 * @param {string[]} sources
 * @returns {Record<string, Parameter>}
 */
export function inputParameters(samples, sources) {
  const { tested } = samples;
  const most = Math.max(...samples.counts);
  const choices = {
    class: oneOf("Class", tested, samples.usual),
    example: number("Example", 1, most, 1, true),
    shuffle: number("Shuffle", 0, SEEDS, null, true),
    to: oneOf("Morph into", tested, null),
  };
  // Without test inputs a link says nothing wrong about them: the page says that there are none.
  if (samples.empty)
    for (const each of Object.values(choices)) each.read = () => each.usual;
  return {
    from: oneOf("Input", sources, "samples", OLD_SOURCES),
    ink: text(samples.signals ? "Signal" : "Picture",
      (written) => /^[\w-]{1,6000}$/.test(written), `a complete ${inputOf(samples)}`),
    ...choices,
    between: number("Between", 0, 1, 0),
    ...Object.fromEntries(Object.entries(changesOf(samples)).map(
      ([key, { label, range: { low, high }, usual }]) => [key, number(label, low, high, usual)])),
  };
}

/**
 * The numbers of the thumbnails: the first examples, or a random choice.
 * @param {number} total
 * @param {number | null} seed
 */
function shownExamples(total, seed) {
  const order = seed === null ? Array.from({ length: total }, (_, k) => k)
    : permutation(seed, total);
  return order.slice(0, SHOWN).map((k) => k + 1);
}

/**
 * Where inputs come from on a page, for a model.
 * @param {Host} host
 * @param {Checkpoint} checkpoint
 */
export const sourcesOf = (host, { axes, readsDigits, inputShape: [channels] }) =>
  Object.keys(SOURCES).filter((source) => source === "samples" || (axes === 1 ? channels === 1
    : source === "upload" ? host.uploads : readsDigits));

export class InputControls {
  /** @type {Stroke[]} */
  strokes = [];
  /** @type {Values | null} */
  linked = null;  // the input of the link, until another one is drawn or uploaded
  /** @type {Values | null} */
  written = null;  // the signal whose numbers are in the field for them
  /** @type {Values | null} */
  lifted = null;  // the linked picture that was cleared from the pad
  raster = new Raster();
  /** @type {{ pixels: Uint8Array, content: string, stray: boolean } | null} */
  drawn = null;  // what the drawing became, until it changes
  /** @type {{ of: Uint8Array, ink: Float32Array, url: string } | null} */
  base = null;  // the linked picture as it lies under the strokes
  listed = "";
  /** @type {Record<string, { element: HTMLElement, show: (value: number) => void }>} */
  sliders = {};
  /** @type {{ from: Values, to: Values, at: (t: number) => Values } | undefined} */
  ends;

  /**
   * @param {Host} host
   * @param {Samples} samples
   * @param {string[]} sources
   * @param {(changes: State) => void} set
   */
  constructor(host, samples, sources, set) {
    this.host = host;
    this.samples = samples;
    this.sources = sources;
    this.set = set;
    // A picture that was moved aside would take the drawing with it.
    this.source = choice("Input", (from) => set({ from, ...unchanged(samples) }));
    this.classes = choice("Class", (name) => set({ class: name, example: 1 }), "pills");
    this.example = count("Example", (example) => set({ example }));
    this.thumbnails = part("thumbnails");
    this.numbers = make("textarea", { ariaLabel: "Numbers of a signal", rows: 2,
      placeholder: "Paste numbers, or a row of a table",
      oninput: () => this.readNumbers(this.numbers.value) });
    const file = make("input", { type: "file", accept: ".csv,.tsv,.txt", ariaLabel: "Table",
      onclick: () => { file.value = ""; },  // or the same file again would be no change
      onchange: async () => {
        const [table] = file.files ?? [];
        if (!table) return;
        const written = await table.slice(0, MOST_BYTES).text();
        if (!written.trim()) {
          this.refuse("The table is empty.");
          return;
        }
        this.numbers.value = written;
        this.readNumbers(this.numbers.value, table.size <= MOST_BYTES);
      } });
    this.said = make("p", { className: "note", role: "status" });
    this.numbersBar = make("div", { className: "numbers" }, this.numbers, file, this.said);
    this.drawBar = make("div", { className: "bar" },
      make("button", { type: "button", onclick: () => this.take(samples.level()) }, "Clear"),
      make("button", { type: "button", onclick: () => this.take(null) }, "Test signal"));
    this.pad = part("draw_pad");
    this.morphTarget = list("Morph into",
      (to) => set(to === NONE ? { to: null, between: 0 } : { to, between: 0.5 }));
    this.between = slider("Between", { low: 0, high: 1, step: 0.01 },
      (value) => `${Math.round(100 * value)} %`, (between) => set({ between }));
    for (const [key, { label, range, words }] of Object.entries(changesOf(samples)))
      this.sliders[key] = slider(label, range, words, (value) => set({ [key]: value }));
    this.reset = make("button", { type: "button", onclick: () => set(unchanged(samples)) },
      "Reset");
    this.samplesBar = make("div", { className: "bar" }, this.classes.element, this.example.element);
    this.unlinked = make("p", { className: "unlinked", role: "status", hidden: true },
      `This ${inputOf(samples)} is too large for the link of the page, which leaves it out.`);
    this.bar = make("div", { className: "input-bar" },
      make("div", { className: "bar" }, this.source.element), this.samplesBar,
      this.thumbnails.element, ...(samples.signals ? [this.numbersBar, this.drawBar] : []),
      this.unlinked);
    this.sliderBox = make("details", {},
      make("summary", {}, samples.signals ? "Move, stretch, morph\u00a0…"
        : "Move, turn, morph\u00a0…"),
      ...Object.values(this.sliders).map(({ element }) => element),
      this.morphTarget.element, this.between.element);
    this.changes = make("div", { className: "changes" }, this.sliderBox, this.reset);
  }

  /**
   * Keep the drawing, and the input of the link where it suits the test images of another model.
   * @param {InputControls} before
   */
  keep({ strokes, linked }) {
    const blank = this.samples.blank();
    const fits = linked?.length === blank.length && linked.constructor === blank.constructor;
    this.strokes = strokes;
    this.linked = fits ? linked : null;
  }

  /** @param {State} state */
  show(state) {
    const { samples } = this;
    const drawing = state.from === "draw";
    const name = String(state.class);
    const texts = samples.signals ? SIGNAL_SOURCES : SOURCES;
    this.source.show(String(state.from),
      Object.fromEntries(this.sources.map((source) => [source, texts[source]])));
    this.source.element.hidden = this.sources.length < 2;
    this.samplesBar.hidden = this.thumbnails.element.hidden = state.from !== "samples"
      || samples.empty;
    this.pad.element.hidden = !drawing || samples.signals;
    this.drawBar.hidden = !drawing || !samples.signals;
    this.showNumbers(state.from === "upload" && samples.signals);
    for (const [key, { show }] of Object.entries(this.sliders)) show(Number(state[key]));
    /** @type {[string, string][]} */
    const classes = samples.tested.map((each) => [each, each]);
    this.morphTarget.show(String(state.to ?? NONE),
      [[NONE, samples.signals ? "no other signal" : "no other image"], ...classes]);
    this.between.show(Number(state.between));
    this.between.element.hidden = state.to === null;
    this.reset.hidden = Object.entries(unchanged(samples)).every(([key, usual]) =>
      state[key] === usual);
    if (state.from !== "samples") return;
    const total = samples.count(name);
    this.classes.show(name, classes);
    this.example.show(Math.min(Number(state.example), total), total);
    const seed = state.shuffle === null ? null : Number(state.shuffle);
    const key = `${name} ${seed} ${state.example} ${samples.loaded.has(name)}`;
    if (key === this.listed) return;
    this.listed = key;
    const numbers = shownExamples(total, seed);
    mountThumbnails(this.thumbnails.root, {
      sprite: this.spriteOf(numbers.map((each) => samples.image(name, each))),
      numbers, chosen: Number(state.example), seeds: SEEDS,
      ground: samples.signals ? "var(--st-secondary-background-color)" : "#000",
    }, {
      pick: (example) => this.set({ example }), shuffle: (shuffle) => this.set({ shuffle }),
    });
  }

  /** @param {boolean} shown */
  showNumbers(shown) {
    this.numbersBar.hidden = !shown;
    const { linked } = this;
    if (!shown || this.written === linked) return;
    // Drawn, or of a link.
    this.written = linked;
    this.numbers.value = linked ? Array.from(linked, (value) =>
      Number(value.toPrecision(5))).join(" ") : "";
    this.said.textContent = "";
  }

  /**
   * Make the numbers of a text the input.
   * @param {string} written
   * @param {boolean} [whole] whether it does not end in the middle of a line
   */
  readNumbers(written, whole = true) {
    if (!written.trim()) {
      this.said.textContent = "";
      this.written = null;
      this.take(null);
      return;
    }
    try {
      const { values, note } = readSignal(written, this.samples.shape[2], whole);
      this.said.textContent = note;
      this.written = values;
      this.take(values);
    } catch (error) {
      this.refuse(/** @type {Error} */ (error).message);
    }
  }

  /** Say why no signal was read, and what stays. @param {string} fault */
  refuse(fault) {
    this.said.textContent = this.linked ? `${fault} The last signal is kept.` : fault;
  }

  /** Make a signal the input; null for the test signal. @param {Float32Array | null} values */
  take(values) {
    this.linked = values;
    this.set(unchanged(this.samples));
  }

  /** Inputs side by side as one small picture. @param {Values[]} inputs */
  spriteOf(inputs) {
    const { samples: { signals, shape } } = this;
    return signals ? curveSprite(inputs, shape) : spriteOf(inputs, shape);
  }

  /** The linked picture as ink on the pad and as black on white; null without one. */
  underStrokes() {
    const { linked, samples: { shape } } = this;
    if (linked instanceof Float32Array) return null;
    if (linked && this.base?.of !== linked) {
      const ink = enlarged(linked, shape[1], shape[2], SIDE);
      const url = spriteOf([linked.map((value) => 255 - value)], shape);
      this.base = { of: linked, ink, url };
    }
    return linked && this.base;
  }

  /**
   * Show the pad with the input that the drawing became.
   * @param {Input} input
   */
  showPad({ pixels, shape }) {
    const small = (/** @type {HTMLCanvasElement} */ canvas) => {
      const [, height, width] = shape;
      if (canvas.width !== width || canvas.height !== height)
        [canvas.width, canvas.height] = [width, height];
      paint(canvas, pixels, shape);
    };
    const base = this.underStrokes()?.url ?? null;
    mountPad(this.pad.root, { paint: small, base, strokes: this.strokes }, (strokes, keepsBase) => {
      this.strokes = strokes;
      this.drawn = null;
      if (keepsBase) this.linked ??= this.lifted;
      else if (this.linked) {
        this.lifted = this.linked;
        this.linked = null;
      }
      this.set({});
    });
  }

  /**
   * Read the picture of a link.
   * @param {State} state
   */
  async readLink(state) {
    const { samples, host: { upload } } = this;
    if (state.ink === null) {
      const given = state.from !== "samples" && upload instanceof Float32Array;
      if (given && samples.signals && upload.length === samples.size) this.linked = upload;
      return true;
    }
    const content = await fromText(String(state.ink), samples.blank().byteLength);
    const values = content && samples.valuesOf(content);
    this.linked = values?.every((value) => Math.abs(value) <= Math.fround(LARGEST)) ? values : null;
    this.drawn = null;
    return this.linked !== null;
  }

  /**
   * Sentences about what a link asks of a class that has fewer test images.
   * @param {State} state
   */
  problems(state) {
    const [name, most] = [String(state.class), this.samples.count(String(state.class))];
    if (state.from !== "samples" || Number(state.example) <= most) return [];
    return [`The link sets “Example” to “${state.example}”, but class ${name} has `
      + `${counted(most, this.samples.signals ? "test signal" : "test image")}. The last one is `
      + "shown."];
  }

  /** @param {State} state */
  load(state) {
    const to = state.to === null ? [] : [String(state.to)];
    return this.samples.need([String(state.class), ...to]);
  }

  /**
   * The pixels before anything is done to them; null if there is no picture yet.
   * @param {State} state
   */
  own(state) {
    if (this.samples.signals) return this.linked;
    if (state.from === "upload" && !(this.host.upload instanceof Float32Array)) {
      // The server makes it an input of a model that was just chosen once it hears of the choice.
      const upload = this.host.upload?.length === this.samples.size ? this.host.upload : null;
      if (upload) this.linked = this.drawn = null;  // or it would come back afterwards
      return upload ?? this.linked;
    }
    this.drawn ??= this.draw();
    return this.drawn.pixels;
  }

  /** What the drawing becomes as an input. */
  draw() {
    const { linked, samples: { shape, size } } = this;
    const [channels, height, width] = shape;
    if (!this.strokes.length && linked instanceof Uint8Array)
      return { pixels: linked, content: isDot(linked, shape) ? "no ink" : "digit", stray: false };
    const ink = this.raster.draw(this.strokes, this.underStrokes()?.ink ?? null);
    const { pixels, content, clean } = toInput(ink, height, width);
    const stray = content === "digit" && !clean;
    if (channels !== 1) return { pixels: new Uint8Array(size), content, stray };
    // A dot is no digit, but it stays in the link as it is.
    return { pixels: content === "no ink" ? reduced(ink, height, width) : pixels, content, stray };
  }

  /** The text of a drawn or uploaded picture in a link; null for others. @param {State} state */
  async ink(state) {
    const pixels = state.from === "samples" ? null : this.own(state);
    this.unlinked.hidden = true;
    if (!pixels || !this.samples.signals && !pixels.some(Boolean)) return null;
    const written = await toText(
      new Uint8Array(pixels.buffer, pixels.byteOffset, pixels.byteLength));
    this.unlinked.hidden = written.length <= MAX_TEXT;
    return this.unlinked.hidden ? written : null;
  }

  /**
   * @param {State} state
   * @param {number[]} [sizes] height and width of the grid on which the network gets it, by default
   *   those of the test images
   * @returns {Input}
   */
  input(state, sizes = this.samples.shape.slice(1)) {
    const { samples } = this;
    const { shape } = samples;
    const name = String(state.class);
    const example = Math.min(Number(state.example), samples.count(name));
    const grid = samples.signals ? shape.slice(1) : sizes;
    const notes = [samples.signals ? counted(shape[2], "sample") : grid.join(" × ")];
    const own = state.from === "samples" ? null : this.own(state);
    let pixels = own ?? samples.image(name, example);
    if (state.to !== null && Number(state.between) > 0) {
      const to = String(state.to);
      const other = samples.image(to, Math.min(example, samples.count(to)));
      pixels = this.way(pixels, other)(Number(state.between));
      notes.push(`${Math.round(100 * Number(state.between))} % of the way to ${to}`);
    }
    const possible = Object.entries(changesOf(samples));
    const changes = Object.fromEntries(possible.map(([key]) => [key, Number(state[key])]));
    if (possible.some(([key, { usual }]) => changes[key] !== usual)) {
      pixels = pixels instanceof Float32Array ? transformSignal(pixels, shape[2], changes)
        : transform(pixels, shape, changes);
      notes.push("edited");
    }
    const drawn = state.from === "draw" && !samples.signals ? this.drawn : null;
    const { content, stray } = drawn ?? { content: "digit", stray: false };
    const blank = content === "no ink" || (samples.empty && !own)
      || (!samples.signals && !pixels.some(Boolean));
    const tests = `test ${samples.signals ? "signals" : "images"}`;
    const missing = !own && !samples.empty && samples.count(name) > 0 && !samples.loaded.has(name);
    const loading = missing && !samples.failed.has(name);
    // Until there is a picture, an example shows what a field is. Its prediction is left out, as it
    // would be taken for that of the picture.
    const unread = state.from === "upload" && !own
      ? samples.signals ? "no numbers yet" : "no picture yet"
      : missing ? loading ? `loading the ${tests} …` : `the ${tests} could not be loaded`
      : blank ? samples.signals ? "no signal"
        : samples.empty ? "no picture" : "no digit found" : "";
    return {
      pixels: onGrid(pixels, shape, grid), shape: [shape[0], grid[0], grid[1]],
      label: own || samples.empty ? null : name, note: notes.join(", "), content, stray, blank,
      loading, unread,
    };
  }

  /**
   * The inputs between two; the way between them is computed once.
   * @param {Values} from
   * @param {Values} to
   */
  way(from, to) {
    const { ends } = this;
    const same = (/** @type {Values} */ one, /** @type {Values} */ two) =>
      one.every((value, k) => value === two[k]);
    if (ends && same(ends.from, from) && same(ends.to, to)) return ends.at;
    const at = from instanceof Float32Array
      ? (/** @type {number} */ t) => from.map((value, k) => (1 - t) * value + t * to[k])
      : morph(from, /** @type {Uint8Array} */ (to), this.samples.shape);
    this.ends = { from, to, at };
    return this.ends.at;
  }
}

/**
 * The mean ink in each pixel of an input, 0 to 255.
 * @param {Float32Array} ink of `SIDE` × `SIDE` pixels, 0 to 1
 * @param {number} height
 * @param {number} width
 */
function reduced(ink, height, width) {
  const sums = new Float64Array(height * width);
  ink.forEach((value, k) => {
    const row = Math.floor(Math.floor(k / SIDE) * height / SIDE);
    sums[row * width + Math.floor((k % SIDE) * width / SIDE)] += value;
  });
  return Uint8Array.from(sums, (sum) => Math.round(255 * sum * height * width / SIDE ** 2));
}

/**
 * Whether the ink of a picture is too small for a digit, as that of a click on the pad.
 * @param {Uint8Array} pixels
 * @param {[channels: number, height: number, width: number]} shape
 */
function isDot(pixels, [, height, width]) {
  const places = [...pixels.keys()].filter((k) => pixels[k]);
  const extent = (/** @type {number[]} */ values) =>
    1 + values.reduce((a, b) => Math.max(a, b)) - values.reduce((a, b) => Math.min(a, b));
  const rows = places.map((k) => Math.floor(k / width) % height);
  return Math.max(extent(rows), extent(places.map((k) => k % width))) <= DOT * width;
}

/**
 * A picture in larger, equal squares, from 0 to 1.
 * @param {Uint8Array} pixels
 * @param {number} height
 * @param {number} width
 * @param {number} side
 */
function enlarged(pixels, height, width, side) {
  return Float32Array.from({ length: side * side }, (_, k) => {
    const row = Math.floor(Math.floor(k / side) * height / side);
    return pixels[row * width + Math.floor((k % side) * width / side)] / 255;
  });
}
