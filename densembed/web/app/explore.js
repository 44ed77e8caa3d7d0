// Explore: one model, one input, and the field at every saved step of training.

import { percentile } from "../engine/densembed.js";
import { mount as mountPair } from "../panels/pair.js";
import { colours, scales, style } from "../resources.js";
import { choice, list, make, slider, toggle } from "./controls.js";
import { DETAILS, Details } from "./details.js";
import { messageOf, part } from "./host.js";
import { InputControls, inputParameters, sourcesOf } from "./input.js";
import { InputPanel } from "./input_panel.js";
import { flag, number, oneOf, readLink, someOf, writeLink } from "./parameters.js";
import { spriteOf } from "./pictures.js";
import { Response } from "./response.js";
import { View } from "./view.js";

/**
 * @import { Checkpoint } from "../engine/densembed.js"
 * @import { Host } from "./host.js"
 * @import { Input } from "./input.js"
 * @import { Parameter } from "./parameters.js"
 * @import { Samples } from "./samples.js"
 * @import { Scale } from "../panels/types.js"
 */

const WAYS = {
  field: "field", overlay: "over the input", difference: "difference", swipe: "swipe",
  pixels: "per pixel", densities: "densities", class: "weight for a class",
};
/** @type {Record<string, string>} */
const OLD_WAYS = { "on the input": "overlay", "over the input": "overlay",
  "per pixel": "pixels", "class weight": "class", "weight for a class": "class" };
/** @type {Record<string, string>} */
const OLD_DETAILS = { "What am I looking at?": "about", "One density": "density",
  "Effect of each pixel": "effect", "What it computes": "effect", "All classes": "classes",
  Export: "export", "Take it away": "export" };
/** Parts that a link may hide. */
const PARTS = ["menu", "sidebar", "change", "ways", "more", "predictions", "before", "numbers",
  "steps"];
const PREDICTED = "predicted";
const TOGETHER = "together";
const CHANNELS = ["red", "green", "blue"];
const DIM = 0.4;  // brightness of the input under its densities
const MOST = 97;  // percentile of the weights at which their colour scale ends

/**
 * @param {Checkpoint} checkpoint
 * @returns {string[]} the ways to show the field of a model
 */
function waysOf(checkpoint) {
  const linear = checkpoint.network(0).classWeights(0) !== null;
  return ["field", "overlay", "difference", "swipe",
    ...(checkpoint.hasDensities ? ["pixels", "densities"] : []), ...(linear ? ["class"] : [])];
}

/**
 * Test error, data and parameters: on a phone the list of models has no room for them.
 * @param {Checkpoint} checkpoint
 */
function facts({ errors, parameters, provenance: { dataset_title: data, test_images: images } }) {
  const tested = `${images.toLocaleString("en")} test image${images === 1 ? "" : "s"}`;
  const text = errors ? `${errorText(errors)} error on ${data} (${tested})` : data;
  return `${text}, ${parameters.toLocaleString("en")} parameters.`;
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
 * @param {Host} host
 * @param {Checkpoint} checkpoint
 * @param {Samples} samples
 * @param {string[]} sources
 * @returns {Record<string, Parameter>}
 */
function parametersOf(host, checkpoint, samples, sources) {
  const { classes, steps } = checkpoint;
  const keys = Object.keys(host.models);
  const count = checkpoint.hasDensities ? checkpoint.network(0).densities : 0;
  const channels = checkpoint.inputShape[0] === CHANNELS.length ? CHANNELS : [];
  return {
    model: { ...oneOf("Model", keys, defaultOf(host)), always: "model" in host.defaults },
    ...inputParameters(samples, sources),
    step: number("Step of training", steps[0], steps[steps.length - 1], steps[steps.length - 1]),
    show: oneOf("Show", waysOf(checkpoint), "field", OLD_WAYS),
    opacity: number("Opacity", 0, 1, 0.6),
    for: oneOf("For class", [PREDICTED, ...classes], PREDICTED, { "its answer": PREDICTED }),
    contours: flag("Contours"),
    channel: oneOf("Channel", [TOGETHER, ...channels], TOGETHER),
    more: oneOf("More", [...DETAILS, ...Object.keys(host.details)], null, OLD_DETAILS),
    hide: someOf("Hide", PARTS),
    density: number("Density", 1, Math.max(1, count), 1, true),
    divider: number("Divider of the swipe", 0, 100, 50, true),
  };
}

/** The model of a link that names none. @param {Host} host */
const defaultOf = ({ models, defaults }) => defaults.model ?? Object.keys(models)[0];

/**
 * Show the view in an element.
 * @param {HTMLElement} root
 * @param {Host} host
 */
export async function explore(root, host) {
  const keys = Object.keys(host.models);
  const wanted = new URLSearchParams(host.link).get("model");
  const key = wanted !== null && keys.includes(wanted) ? wanted : defaultOf(host);
  const checkpoint = await host.models[key].open();
  const samples = await host.models[key].samples(checkpoint);
  const view = new Explore(root, host, checkpoint, samples);
  await view.start(key, host.link);
  return view;
}

class Explore extends View {
  /** @type {Response | undefined} */
  response;
  chosen = "";  // the model that was chosen last
  /** @type {Response | undefined} */
  whole;  // the response for which the fields of all steps are computed

  /**
   * @param {HTMLElement} root
   * @param {Host} host
   * @param {Checkpoint} checkpoint
   * @param {Samples} samples
   */
  constructor(root, host, checkpoint, samples) {
    super(host);
    const { set } = this;
    this.checkpoint = checkpoint;
    this.samples = samples;
    this.parameters = this.parametersOf();
    this.state = readLink(this.parameters, new URLSearchParams()).state;
    this.inputs = this.controls();
    this.panel = new InputPanel(host, this.inputs);
    this.model = list("Model", (model) => this.open(model));
    this.story = make("p", { className: "note" });
    this.inputPlace = make("div");
    this.way = choice("Show", (show) => set({ show }));
    this.opacity = slider("Opacity", { low: 0, high: 1, step: 0.1 },
      (value) => value.toFixed(1), (opacity) => set({ opacity }));
    this.label = list("for class", (name) => set({ for: name }));
    this.contours = toggle("Contours", (contours) => set({ contours }));
    this.channel = choice("Channel", (channel) => set({ channel }));
    this.details = new Details(host, set);
    this.pair = part("pair");
    this.left = make("div", { className: "left" });
    this.choices = make("div", { className: "choices" },
      make("div", {}, this.model.element, this.story), this.inputPlace);
    this.ways = make("div", { className: "bar ways" }, this.way.element, this.opacity.element,
      this.label.element, this.contours.element, this.channel.element);
    root.classList.add("live");
    root.replaceChildren(
      make("style", {}, style),
      this.choices,
      make("div", { className: "scene" }, this.left,
        make("div", { className: "right" }, this.ways, this.pair.element)),
      this.details.element);
  }

  controls() {
    return new InputControls(this.host, this.samples, this.sources, this.set);
  }

  get sources() {
    return sourcesOf(this.host, this.checkpoint.readsDigits);
  }

  parametersOf() {
    return parametersOf(this.host, this.checkpoint, this.samples, this.sources);
  }

  /**
   * Show what a link says.
   * @param {string} key of its model
   * @param {string} link
   */
  async start(key, link) {
    const { state, problems } = readLink(this.parameters, new URLSearchParams(link));
    // A link may name a step between two that are saved.
    const step = this.checkpoint.steps.findLast((each) => each <= Number(state.step));
    this.state = { ...state, model: key, step: step ?? 0 };
    if (!(await this.inputs.readLink(state)))
      problems.push("The picture in the link is damaged or of another size than the model’s.");
    problems.push(...this.inputs.problems(state));
    this.host.report(problems);
    this.place(key);
  }

  /**
   * Show another model; what else was chosen stays where the model has it.
   * @param {string} key
   */
  async open(key) {
    this.chosen = key;
    const model = this.host.models[key];
    let checkpoint, samples;
    try {
      checkpoint = await model.open();
      samples = await model.samples(checkpoint);
    } catch (error) {
      this.host.report([messageOf(error)]);
      this.place(String(this.state.model));
      return;
    }
    if (this.chosen !== key) return;  // another one was chosen while this one was loaded
    const last = this.state.step === this.checkpoint.steps.at(-1);
    const link = writeLink(this.parameters,
      { ...this.state, model: key, step: last ? null : this.state.step });
    this.checkpoint = checkpoint;
    if (samples !== this.samples) {
      const { strokes, linked } = this.inputs;
      this.samples = samples;
      this.inputs = this.controls();
      this.inputs.strokes = strokes;
      this.inputs.linked = linked?.length === samples.size ? linked : null;
      this.panel = new InputPanel(this.host, this.inputs);
    }
    this.parameters = this.parametersOf();
    const { state } = readLink(this.parameters, link);
    this.host.report([]);  // what was wrong with the link concerns the model before
    const step = checkpoint.steps.findLast((each) => each <= Number(state.step)) ?? 0;
    this.state = { ...state, step };
    this.place(key);
    this.set({});
  }

  /** @param {string} key of the model */
  place(key) {
    const { models } = this.host;
    this.model.show(key, Object.fromEntries(
      Object.entries(models).map(([name, { title }]) => [name, title])));
    this.story.textContent = `${facts(this.checkpoint)} ${models[key]?.story ?? ""}`;
    this.inputPlace.replaceChildren(this.inputs.bar);
    this.left.replaceChildren(this.panel.element, this.inputs.changes);
    this.update();
  }

  /** What waits until nothing has changed for a moment: the link, and the scale of all steps. */
  async rest() {
    const { state, parameters, response, inputs } = this;
    if (response && this.whole !== response) {
      this.whole = response;
      this.update();
    }
    const ink = await inputs.ink(state);
    this.host.rest(writeLink(parameters, { ...state, ink }).toString(), inputs.input(state));
  }

  update() {
    const { checkpoint, state, inputs } = this;
    inputs.load(state)?.then(() => this.set({}));
    const input = inputs.input(state);
    const channel = state.channel === TOGETHER ? null
      : CHANNELS.indexOf(String(state.channel));
    const same = this.response && this.response.checkpoint === checkpoint
      && this.response.channel === channel
      && this.response.pixels.every((value, k) => value === input.pixels[k]);
    const response = same && this.response || new Response(checkpoint, input.pixels, channel);
    this.response = response;
    inputs.show(state);
    this.panel.show(input, state);
    this.showWays();
    this.showPair(input, response);
    this.hide({
      sidebar: this.choices, change: inputs.changes, ways: this.ways, more: this.details.element,
    });
    this.details.show(state, response, this.classIndex, this.samples);
    if (this.whole !== response) this.wait();
  }

  /** Show what the host has changed: its models, or the uploaded picture. */
  refresh() {
    this.parameters = this.parametersOf();
    this.place(String(this.state.model));
    this.set({});
  }

  /** The index of the class whose weights are shown: by default of the prediction. */
  get classIndex() {
    const { state, response, checkpoint } = this;
    if (state.for !== PREDICTED) return checkpoint.classes.indexOf(String(state.for));
    return response?.prediction ?? 0;
  }

  showWays() {
    const { checkpoint, state } = this;
    const ways = waysOf(checkpoint);
    this.way.show(String(state.show), Object.fromEntries(
      Object.entries(WAYS).filter(([slug]) => ways.includes(slug))));
    this.opacity.show(Number(state.opacity));
    this.opacity.element.hidden = state.show !== "overlay";
    this.label.show(String(state.for), Object.fromEntries(
      [PREDICTED, ...checkpoint.classes].map((name) => [name, name])));
    this.label.element.hidden = !["densities", "class"].includes(String(state.show))
      && state.more !== "effect";
    this.contours.show(Boolean(state.contours));
    this.contours.element.hidden = state.show === "densities";
    const channels = checkpoint.inputShape[0] === CHANNELS.length ? [TOGETHER, ...CHANNELS] : [];
    this.channel.show(String(state.channel),
      Object.fromEntries(channels.map((name) => [name, name])));
    this.channel.element.hidden = !channels.length;
  }

  /**
   * @param {Input} input
   * @param {Response} response
   */
  showPair(input, response) {
    const { checkpoint, state } = this;
    const { steps, classes } = checkpoint;
    const step = Number(state.step);
    const name = classes[this.classIndex];
    const look = this.look(response, name);
    const blank = input.blank ? ", for a blank picture" : "";
    mountPair(this.pair.root, {
      size: response.size, shape: response.shape, ...look, step, steps, by: "step",
      titles: steps.map((each) => checkpoint.moment(each)),
      notes: steps.map((each) =>
        `epoch ${Number(checkpoint.epochOf(each).toPrecision(3))}${blank}`),
      numbers: { at: (/** @type {number} */ k) => response.numbers(k) },
      predictions: { at: (/** @type {number} */ k) =>
        input.blank ? "none: no digit found" : response.predictionText(k) },
      predicts: !input.blank,
      probabilities: input.blank ? null
        : { at: (/** @type {number} */ k) => [...response.result(k).probabilities] },
      classes, right: input.label === null ? null : classes.indexOf(input.label),
      colours: [colours.before, colours.after],
      legend: ["before training", "at this step"],
      way: String(state.show), divider: Number(state.divider), contours: Boolean(state.contours),
      hidden: this.hidden,
      picture: this.under(input),
    }, {
      step: (chosen) => this.set({ step: chosen }),
      divider: (divider) => this.set({ divider }),
      density: (density) => this.set({ density, more: "density" }),
    });
  }

  /** @param {Input} input */
  under({ pixels }) {
    const { state, checkpoint } = this;
    if (!["overlay", "densities"].includes(String(state.show))) return null;
    const dimmed = state.show === "densities" ? DIM : 1;
    const url = spriteOf([pixels], checkpoint.inputShape, dimmed);
    return { url, opacity: Number(state.opacity) };
  }

  /**
   * The fields of all steps with their scales, or the densities.
   * @param {Response} response
   * @param {string} name of the class
   */
  look(response, name) {
    const { state } = this;
    const label = this.classIndex;
    const { density, signed } = scales;
    const current = response.checkpoint.steps.indexOf(Number(state.step));
    /** @type {(high: number, name: string, unit: string) => Scale} */
    const positive = (high, title, unit) =>
      ({ low: 0, high: high || 1, name: title, unit, open: true, stops: density });
    /** @type {(high: number, name: string, unit: string) => Scale} */
    const both = (high, title, unit) =>
      ({ low: -high || -1, high: high || 1, name: title, unit, open: true, stops: signed });
    const { checkpoint } = response;
    if (state.show === "densities") {
      const { against, for: favour } = colours;
      const weightsAt = (/** @type {number} */ k) => checkpoint.network(k).classWeights(label)
        ?? new Float32Array(checkpoint.network(k).densities);
      const bound = percentile(weightsAt(response.last).map(Math.abs), MOST) || 1;
      const scale = both(bound, `weight for ${name}`, "");
      scale.stops = [[0, against], [0.5, "#55595e"], [1, favour]];
      const chosen = state.more === "density" ? Number(state.density) : null;
      return {
        fields: null, scales: [scale],
        alt: `Densities as ellipses, coloured by their weight for ${name},`,
        densities: { at: (/** @type {number} */ k) => {
          const result = response.result(k);
          return {
            loc: result.locations, scale: result.scales, weights: weightsAt(k), bound, against,
            favour, chosen,
          };
        } },
      };
    }
    if (state.show === "class") {
      const fields = (/** @type {number} */ k) => response.classField(k, label);
      const title = `weight for ${name} × density per pixel²`;
      return {
        fields: { at: fields }, densities: null,
        scales: [both(response.bound(fields), title, "per pixel²")],
        alt: `Densities times their weights for ${name}, summed,`,
      };
    }
    if (state.show === "pixels") return {
      fields: { at: response.pixelField }, densities: null,
      shape: /** @type {[number, number]} */ ([response.size[1], response.size[0]]),
      scales: [positive(response.bound(response.pixelField),
        "mass of the densities in a pixel, ΣΓ", "in this pixel")],
      alt: "Sum of Γ over the densities, a heatmap of the pixels,",
    };
    // While something moves the scale is of three steps: all of them are computed at rest.
    const top = response.top(this.whole === response
      ? checkpoint.steps.keys() : [0, current, response.last]);
    return {
      fields: { at: response.field }, densities: null,
      scales: [positive(top, "density per pixel²", "per pixel²"),
        both(top, "difference, density per pixel²", "per pixel²")],
      alt: "Receptive field, a heatmap of the sum of the densities,",
    };
  }
}
