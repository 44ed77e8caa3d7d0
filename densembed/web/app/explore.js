// Explore: one model, one input, and the field at every saved step of training.

import { largestValue } from "../engine/densembed.js";
import { find, mark } from "../panels/dom.js";
import { mount as mountPair } from "../panels/pair.js";
import { colours, scales, style } from "../resources.js";
import { choice, list, make, NONE, slider, toggle } from "./controls.js";
import { Details, detailsOf } from "./details.js";
import { MEASURES, explain, forSignals, partsOf } from "./glossary.js";
import { gridTexts, gridsOf, ownGrid } from "./grids.js";
import {
  groupsOf, load, loadOrOffer, offers, part, reportFailure, titlesOf, whenLoaded,
} from "./host.js";
import { DAMAGED, InputControls, inputParameters, sourcesOf, unchanged } from "./input.js";
import { InputPanel } from "./input_panel.js";
import { asInput, channelsOf, nounsOf } from "./kinds.js";
import { dataChanges, facts, incomplete, leadOf } from "./lead.js";
import { flag, number, oneOf, readLink, someOf, writeLink } from "./parameters.js";
import { spriteOf } from "./pictures.js";
import { Response } from "./response.js";
import { ScaleEnd } from "./scale_end.js";
import { settled } from "./served.js";
import { CHAPTERS } from "./story.js";
import { View } from "./view.js";

/**
 * @import { Checkpoint } from "../engine/densembed.js"
 * @import { Host } from "./host.js"
 * @import { Input } from "./input.js"
 * @import { Parameter, State } from "./parameters.js"
 * @import { Samples } from "./samples.js"
 * @import { PairData, Scale } from "../panels/types.js"
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
/** The predicted class in older links. A class with such a name takes precedence. */
const PREDICTED = ["predicted", "its answer"];
/** The shipped models that read drawings and photographs best, the best one first. */
const READERS = ["logistic-el-mnn-10-5", "logistic-el-mnn-8-4"];
const STARTED = "densembed-model";  // key under which this tab keeps the model it has started with
const TRIED = 20;  // test images among which one is sought that a model reads right
const TOGETHER = "together";
const MOST_UNITS = 10 ** 6;
const UNDER = ["overlay", "densities"];  // ways of showing a field over the input
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
  const forClass = oneOf("For class", classes, null);
  return {
    model: { ...oneOf("Model", keys, defaultOf(host)), always: "model" in host.defaults },
    ...inputParameters(samples, sources),
    grid: oneOf("Resolution", Object.keys(gridsOf(checkpoint)), ownGrid(checkpoint)),
    step: number("Step of training", steps[0], steps[steps.length - 1], steps[steps.length - 1]),
    show: oneOf("Show", waysOf(checkpoint), "field", OLD_WAYS),
    opacity: number("Opacity", 0, 1, 0.6),
    for: { ...forClass, read: (written) =>
      forClass.read(written) ?? (PREDICTED.includes(written) ? null : undefined) },
    contours: flag("Contours"),
    channel: oneOf("Channel", [TOGETHER, ...channelsOf(checkpoint.inputShape)], TOGETHER),
    more: oneOf("More", Object.keys({ ...detailsOf(checkpoint), ...host.details }), null,
      OLD_DETAILS),
    hide: someOf("Hide", PARTS),
    density: number("Density", 1, Math.max(1, count), 1, true),
    chapter: number("Chapter", 1, CHAPTERS, 1, true),
    unit: number("Followed unit", 1, MOST_UNITS, null, true),
    divider: number("Divider of the swipe", 0, 100, 50, true),
  };
}

/** The saved step that is nearest to another one. @param {number[]} steps @param {number} step */
const nearest = (steps, step) => steps.reduce((best, each) =>
  (Math.abs(each - step) < Math.abs(best - step) ? each : best));

/** The model of a link that names none. @param {Host} host */
const defaultOf = ({ models, defaults }) => defaults.model ?? Object.keys(models)[0];

/**
 * The model with which a source of inputs starts. For test images it is the one whose images are
 * there, for drawings and photographs the one that reads them best.
 * @param {Host} host
 * @param {string | null} source
 */
function startingModel(host, source) {
  const start = defaultOf(host);
  const own = source === "draw" || source === "upload";
  const reader = READERS.find((key) => key in host.models);
  return own && start.startsWith(READERS[0]) && reader || start;
}

/**
 * What this tab keeps under a key. A page in a sandboxed frame may keep nothing.
 * @param {string} key
 */
function kept(key) {
  try {
    return sessionStorage.getItem(key);
  } catch {
    return null;
  }
}

/**
 * Keep a text in this tab, where it may.
 * @param {string} key
 * @param {string} text
 */
function keep(key, text) {
  try {
    sessionStorage.setItem(key, text);
  } catch {
    // After a reload, the page then takes the model of its link for the visitor’s choice.
  }
}

/**
 * Show the view in an element.
 * @param {HTMLElement} root
 * @param {Host} host
 */
export async function explore(root, host) {
  const keys = Object.keys(host.models);
  const link = new URLSearchParams(host.link);
  const wanted = link.get("model");
  const key = wanted !== null && keys.includes(wanted) ? wanted
    : startingModel(host, link.get("from"));
  const [checkpoint, samples] = await loadOrOffer(root, host, {
    label: "Model", name: "model", key });
  const view = new Explore(root, host, checkpoint, samples);
  await view.start(key, host.link);
  return view;
}

class Explore extends View {
  /** @type {Response | undefined} */
  response;
  /** @type {string | null} */
  chosen = null;  // the model that is on its way
  picked = false;  // whether the visitor or a link chose the model, which then stays
  source = "";  // of the input, for which the model was started
  /** @type {State | null} */
  first = null;  // the input with which the view opened, until another one is chosen
  end = new ScaleEnd();

  /**
   * @param {HTMLElement} root
   * @param {Host} host
   * @param {Checkpoint} checkpoint
   * @param {Samples} samples
   */
  constructor(root, host, checkpoint, samples) {
    super(root, host);
    const { set } = this;
    this.checkpoint = checkpoint;
    this.samples = samples;
    this.parameters = this.parametersOf();
    this.state = readLink(this.parameters, new URLSearchParams()).state;
    this.inputs = this.controls();
    this.panel = new InputPanel(host, this.inputs);
    this.model = list("Model", (model) => this.take(model));
    this.story = make("p", { className: "note" });
    this.parts = make("p", { className: "glossed" });
    this.about = make("p", { className: "glossed" });
    this.sentence = make("p");
    this.watch = make("button", { type: "button", onclick: () => this.play() },
      "▶ Watch it learn");
    this.steps = make("button", { type: "button",
      onclick: () => this.reveal({ more: "story", chapter: 1 }) }, "How it works, in five steps");
    this.inputPlace = make("div");
    this.grid = list("Resolution", (grid) => set({ grid }));
    this.way = choice("Show", (show) => set({ show }));
    this.opacity = slider("Opacity", { low: 0, high: 1, step: 0.1 },
      (value) => value.toFixed(1), (opacity) => set({ opacity }));
    this.label = list("for class", (name) => set({ for: name === NONE ? null : name }));
    this.contours = toggle("Contours", (contours) => set({ contours }));
    this.channel = choice("Channel", (channel) => set({ channel }));
    this.details = new Details(host, set, () => this.play());
    this.pair = part("pair");
    this.left = make("div", { className: "left" });
    this.choices = make("div", { className: "choices" },
      make("div", {}, this.model.element, this.story, this.parts),
      this.inputPlace);
    this.ways = make("div", { className: "bar ways" }, this.way.element, this.opacity.element,
      this.label.element, this.contours.element, this.channel.element);
    root.classList.add("live");
    root.replaceChildren(
      make("style", {}, style),
      this.lead(),
      this.choices,
      make("div", { className: "scene" }, this.left,
        make("div", { className: "right" }, this.ways, this.pair.element, this.about)),
      this.details.element);
  }

  /** What the page shows, in a sentence, and how to begin. */
  lead() {
    return make("div", { className: "lead" },
      make("div", { className: "bar" }, this.watch, this.steps), this.sentence);
  }

  /** Play the training, where it can be seen. */
  play() {
    this.pair.element.scrollIntoView({ block: "nearest" });
    find(this.pair.root, ".play", HTMLElement).click();
  }

  /** Open a detail and scroll to it. @param {State} changes */
  reveal(changes) {
    this.set(changes);
    requestAnimationFrame(() => requestAnimationFrame(() => {
      this.details.element.scrollIntoView({ block: "start" });
      this.details.focus();
    }));
  }

  controls() {
    return new InputControls(this.host, this.samples, this.sources, this.set);
  }

  get sources() {
    return sourcesOf(this.host, this.checkpoint);
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
    const step = nearest(this.checkpoint.steps, Number(state.step));
    this.state = { ...state, model: key, step };
    if (step !== state.step) problems.push(`The link sets “Step of training” to “${state.step}”, `
      + `at which nothing was saved. The nearest step, ${step.toLocaleString("en")}, is shown.`);
    if (!(await this.inputs.readLink(state)))
      problems.push(DAMAGED);
    problems.push(...this.inputs.problems(state));
    this.host.report(problems);
    const written = new URLSearchParams(link);
    this.picked = written.has("model") && written.get("model") !== kept(STARTED);
    this.source = String(state.from);
    if (!this.setsInput(written)) await this.openRight();
    this.place();
  }

  /** Whether a link sets the input. @param {URLSearchParams} link */
  setsInput(link) {
    return Object.keys(inputParameters(this.samples, this.sources)).some((name) => link.has(name));
  }

  /** Open on a test image that the model reads right, if there is one among the first. */
  async openRight() {
    const { checkpoint, samples, state } = this;
    const network = checkpoint.network(checkpoint.steps.length - 1);
    const name = String(state.class);
    try {
      await samples.need([name]);
    } catch {
      return;  // the view tries again, and reports it
    }
    if (this.state !== state || state.class !== name) return;  // chosen meanwhile
    const label = checkpoint.classes.indexOf(name);
    let right = 1;
    for (let example = 1; example <= Math.min(TRIED, samples.count(name)); example++) {
      const pixels = asInput(samples.image(name, example), checkpoint.header);
      const { probabilities } = await settled(() => network.run(pixels));
      if (probabilities.indexOf(Math.max(...probabilities)) !== label) continue;
      right = example;
      break;
    }
    this.state.example = right;
    this.first = { from: "samples", class: name, example: right, ...unchanged(samples) };
  }

  /** Whether the input is the one with which the view opened. */
  get untouched() {
    return this.first !== null
      && Object.entries(this.first).every(([name, value]) => this.state[name] === value);
  }

  /** Start the model for another source of inputs, unless one was chosen. */
  follow() {
    const source = String(this.state.from);
    if (source === this.source) return;
    this.source = source;
    const key = startingModel(this.host, source);
    if (!this.picked && key !== this.state.model) this.open(key);
  }

  /** Show the model that the visitor chooses. @param {string} key */
  take(key) {
    this.picked = true;
    return this.open(key);
  }

  /**
   * Show another model; what else was chosen stays where the model has it.
   * @param {string} key
   */
  async open(key) {
    this.chosen = key;
    this.showLoading();
    const model = this.host.models[key];
    let checkpoint, samples;
    try {
      [checkpoint, samples] = await load(model);
    } catch (error) {
      if (this.chosen !== key) return;
      this.chosen = null;
      reportFailure(this.host, error);
      this.place();
      return;
    }
    if (this.chosen !== key) return;  // another one was chosen while this one was loaded
    const last = this.state.step === this.checkpoint.steps.at(-1);
    const link = writeLink(this.parameters,
      { ...this.state, model: key, step: last ? null : this.state.step });
    this.checkpoint = checkpoint;
    if (samples !== this.samples) {
      const before = this.inputs;
      this.samples = samples;
      this.inputs = this.controls();
      this.inputs.keep(before);
      this.panel = new InputPanel(this.host, this.inputs);
    }
    this.parameters = this.parametersOf();
    const { state } = readLink(this.parameters, link);
    this.host.report([]);  // what was wrong with the link concerns the model before
    const { untouched } = this;
    this.state = { ...state, step: nearest(checkpoint.steps, Number(state.step)) };
    if (untouched) await this.openRight();
    if (this.chosen !== key) return;
    this.chosen = null;
    this.place();
    this.set({});
  }

  get loading() {
    return this.chosen !== null;
  }

  showLoading() {
    const { chosen, host: { models } } = this;
    if (chosen === null) return;
    this.model.show(chosen, titlesOf(models), groupsOf(models));
    this.story.textContent = `Loading ${models[chosen]?.title ?? "the model"}\u00a0…`;
    this.root.ariaBusy = "true";
  }

  /** Show what stays until another model is chosen, and the view. */
  place() {
    const { models } = this.host;
    const key = String(this.state.model);
    this.model.show(key, titlesOf(models), groupsOf(models));
    const others = Object.keys(models).length > 1;
    const why = this.picked || !READERS.includes(key) || this.state.from === "samples" || !others
      ? ""
      : "Selected for drawings and photographs. If you choose a model, it is kept.";
    this.story.textContent = [facts(this.checkpoint), incomplete(this.checkpoint),
      dataChanges(this.checkpoint), models[key]?.story, why].filter(Boolean).join(" ");
    const signals = this.checkpoint.axes === 1;
    this.root.classList.toggle("signals", signals);
    explain(this.parts, partsOf(this.checkpoint.words, signals,
      this.checkpoint.network(0).densities));
    explain(this.about, signals ? forSignals(MEASURES) : MEASURES);
    explain(this.sentence, leadOf(this.checkpoint, offers(this.host, "-EL")));
    if (this.inputPlace.firstChild !== this.inputs.bar) {  // or a control would lose the focus
      this.inputPlace.replaceChildren(this.inputs.bar);
      this.left.replaceChildren(this.panel.element, this.inputs.changes);
      this.inputs.sliderBox.append(this.grid.element);
    }
    this.attempt(() => this.update());
    this.showLoading();
  }

  /** What waits until nothing has changed for a moment: the link, and the scale of all steps. */
  async rest() {
    const { state, parameters, response, inputs } = this;
    keep(STARTED, this.picked ? "" : String(state.model));
    if (response && !response.whole) {
      const ends = response.checkpoint.steps.map((_, k) => () => response.end(k));
      if (!(await this.doAtRest(ends))) return;
      response.whole = true;
      this.attempt(() => this.update());
    }
    const ink = await inputs.ink(state);
    const link = writeLink(parameters, { ...state, ink });
    // A link that sets no input would open on one that the model reads right.
    if (!this.untouched && !this.setsInput(link)) link.set("example", String(state.example));
    this.host.rest(link.toString(), inputs.input(state));
  }

  update() {
    this.follow();
    const draw = () => this.attempt(() => this.show());
    whenLoaded(this.host, this.inputs.load(this.state), () => this.set({}), draw);
    this.show();
  }

  show() {
    const { state, inputs } = this;
    const sizes = gridsOf(this.checkpoint)[String(state.grid)];
    const checkpoint = this.checkpoint.at(sizes);
    const input = inputs.input(state, sizes);
    const channel = state.channel === TOGETHER ? null
      : channelsOf(checkpoint.inputShape).indexOf(String(state.channel));
    const same = this.response && this.response.checkpoint === checkpoint
      && this.response.channel === channel
      && this.response.pixels.every((value, k) => value === input.pixels[k]);
    const response = same && this.response || new Response(checkpoint, input.pixels, channel);
    this.response = response;
    inputs.show(state);
    mark(this.root, "data-from", String(state.from));
    this.panel.show(input, state, response.predictionText(response.last));
    this.showWays();
    this.hide({
      sidebar: this.choices, change: inputs.changes, ways: this.ways, more: this.details.element,
      steps: this.watch, numbers: this.about,
    });
    this.showPair(input, response);
    this.steps.hidden = this.details.element.hidden || !("story" in detailsOf(checkpoint));
    this.details.show(state, response, this.classIndex, this.samples);
    if (!response.whole) this.wait();
  }

  /** Show what the host has changed: its models, or the uploaded picture. */
  refresh() {
    this.parameters = this.parametersOf();
    const key = String(this.state.model);
    if (!(key in this.host.models)) {
      this.open(defaultOf(this.host));
      return;
    }
    this.place();
    this.set({});
  }

  /** The index of the class whose weights are shown: by default of the prediction. */
  get classIndex() {
    const { state, response, checkpoint } = this;
    if (state.for !== null) return checkpoint.classes.indexOf(String(state.for));
    return response?.prediction ?? 0;
  }

  showWays() {
    const { checkpoint, state } = this;
    const ways = waysOf(checkpoint);
    const signals = checkpoint.axes === 1;
    const { cell } = nounsOf(checkpoint.inputShape);
    this.way.show(String(state.show), Object.fromEntries(
      Object.entries({ ...WAYS, pixels: `per ${cell}` }).filter(([slug]) => ways.includes(slug))));
    this.opacity.show(Number(state.opacity));
    this.opacity.element.hidden = state.show !== "overlay" || signals;
    this.label.show(String(state.for ?? NONE), [[NONE, "predicted"],
      ...checkpoint.classes.map((name) => /** @type {[string, string]} */ ([name, name]))]);
    this.label.element.hidden = !["densities", "class"].includes(String(state.show))
      && state.more !== "effect";
    this.contours.show(Boolean(state.contours));
    this.contours.element.hidden = state.show === "densities" || signals;
    const grids = gridTexts(checkpoint);
    this.grid.show(String(state.grid), grids);
    this.grid.element.hidden = Object.keys(grids).length === 1;
    const channels = channelsOf(checkpoint.inputShape);
    this.channel.show(String(state.channel), channels.length
      ? Object.fromEntries([TOGETHER, ...channels].map((name) => [name, name])) : {});
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
    const strange = this.panel.strange ? ", unlike the training images" : "";
    const blank = !input.blank ? "" : input.loading ? ", blank while loading"
      : `, for a blank ${response.nouns.input}`;
    mountPair(this.pair.root, {
      size: response.size, shape: response.shape, ...look, step, steps, by: "step",
      titles: { at: (/** @type {number} */ k) => checkpoint.moment(steps[k]) },
      notes: { at: (/** @type {number} */ k) =>
        `${checkpoint.epochText(steps[k])}${blank}` },
      numbers: { at: (/** @type {number} */ k) => response.numbers(k) },
      predictions: { at: (/** @type {number} */ k) =>
        input.unread ? `none: ${input.unread}` : response.predictionText(k) + strange },
      predicts: !input.unread,
      probabilities: input.unread ? null
        : { at: (/** @type {number} */ k) => [...response.result(k).probabilities] },
      classes, right: input.label === null ? null : classes.indexOf(input.label),
      colours: [colours.before, colours.after],
      legend: ["before training", "at this step"],
      way: String(state.show), divider: Number(state.divider), contours: Boolean(state.contours),
      hidden: this.hidden,
      picture: this.under(input),
      curves: this.curves(input),
      boxes: checkpoint.network(0).frame === "mass"
        ? { at: (/** @type {number} */ k) => response.result(k).box ?? undefined } : null,
    }, {
      step: (chosen) => this.set({ step: chosen }),
      divider: (divider) => this.set({ divider }),
      density: (density) => this.set({ density, more: "density" }),
      why: this.details.element.hidden || !("about" in detailsOf(checkpoint)) ? undefined
        : () => this.reveal({ more: "about" }),
    });
  }

  /** @param {Input} input */
  under({ pixels, shape }) {
    const { state } = this;
    if (!UNDER.includes(String(state.show)) || pixels instanceof Float32Array) return null;
    const dimmed = state.show === "densities" ? DIM : 1;
    const url = spriteOf([pixels], shape, dimmed);
    return { url, opacity: Number(state.opacity) };
  }

  /** How the fields of a signal are drawn. @param {Input} input @returns {PairData["curves"]} */
  curves({ pixels: values }) {
    if (!(values instanceof Float32Array)) return null;
    const [low, high] = this.samples.range;
    return { signs: [colours.against, colours.for],
      under: UNDER.includes(String(this.state.show)) ? { values, low, high } : null };
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
    const open = response.checkpoint.axes === 2;  // a curve is seen as a whole
    const current = response.checkpoint.steps.indexOf(Number(state.step));
    /** @type {(high: number, name: string, unit: string) => Scale} */
    const positive = (high, title, unit) =>
      ({ low: 0, high: high || 1, name: title, unit, open, stops: density });
    /** @type {(high: number, name: string, unit: string) => Scale} */
    const both = (high, title, unit) =>
      ({ low: -high || -1, high: high || 1, name: title, unit, open, stops: signed });
    const { checkpoint, nouns: { cell, per } } = response;
    const as = checkpoint.axes === 1 ? "a curve" : "a heatmap";
    const moving = !response.whole;
    const key = `${state.model} ${state.grid} ${state.show} ${state.channel}`;
    if (state.show === "densities") {
      const { against, for: favour } = colours;
      const weightsAt = (/** @type {number} */ k) => checkpoint.network(k).classWeights(label)
        ?? new Float32Array(checkpoint.network(k).densities);
      const bound = largestValue(weightsAt(response.last), MOST) || 1;
      const scale = both(bound, `weight for ${name}`, "");
      scale.stops = [[0, against], [0.5, "#55595e"], [1, favour]];
      const chosen = state.more === "density" ? Number(state.density) : null;
      const signals = checkpoint.axes === 1;
      const separate = (/** @type {number} */ k) => response.densities(k);
      const count = checkpoint.network(0).densities;
      if (signals) Object.assign(scale, positive(this.end.at(key,
        response.peak([0, response.last], MOST), moving),
      `density ${per}; red raises the score of ${name}, blue lowers it`, per));
      return {
        fields: signals ? { at: separate } : null, scales: [scale],
        ...(signals ? { shape: /** @type {[number, number]} */ ([count, response.shape[1]]) } : {}),
        alt: `Densities as ${signals ? "curves" : "ellipses"}, coloured by their weight for `
          + `${name},`,
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
      const title = `weight for ${name} × density ${per}`;
      return {
        fields: { at: fields }, densities: null,
        scales: [both(this.end.at(`${key} ${label}`, response.bound(fields), moving), title,
          per)],
        alt: `Densities times their weights for ${name}, summed,`,
      };
    }
    if (state.show === "pixels") return {
      fields: { at: response.pixelField }, densities: null,
      shape: /** @type {[number, number]} */ ([response.size[1], response.size[0]]),
      scales: [positive(this.end.at(key, response.bound(response.pixelField), moving),
        `mass of the densities in a ${cell}, ΣΓ`, `in this ${cell}`)],
      alt: `Sum of Γ over the densities, ${as} of the ${cell}s,`,
    };
    // While something moves the scale is of the steps that are shown: all are computed at rest.
    const top = this.end.at(key, response.top([0, current]), moving);
    return {
      fields: { at: response.field }, densities: null,
      scales: [positive(top, `density ${per}`, per),
        both(top, `difference, density ${per}`, per)],
      alt: `Receptive field, ${as} of the sum of the densities,`,
    };
  }
}
