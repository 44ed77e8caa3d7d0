// Compare: two to four models side by side for one input, and their differences from the first.
/**
 * @import { Checkpoint } from "../engine/densembed.js"
 * @import { Host, Part } from "./host.js"
 * @import { Scale } from "../panels/types.js"
 * @import { Values } from "./kinds.js"
 * @import { Parameter } from "./parameters.js"
 * @import { Samples } from "./samples.js"
 */
import { mount as mountColumns } from "../panels/columns.js";
import { mark } from "../panels/dom.js";
import { mount as mountStills } from "../panels/stills.js";
import { colours, scales, style } from "../resources.js";
import { Atlas, atlasOf, topOf, withoutTests } from "./atlas.js";
import { choice, list, make, named } from "./controls.js";
import { distinguish } from "./distinguish.js";
import { MEASURES, explain, forSignals } from "./glossary.js";
import {
  groupsOf, load, loadOrOffer, part, recover, reportFailure, titlesOf, whenLoaded,
} from "./host.js";
import { DAMAGED, InputControls, inputParameters, sourcesOf } from "./input.js";
import { InputPanel } from "./input_panel.js";
import { othersOf } from "./kinds.js";
import { number, oneOf, readLink, someOf, writeLink } from "./parameters.js";
import { Response } from "./response.js";
import { ScaleEnd } from "./scale_end.js";
import { View } from "./view.js";

const NAMES = ["first", "second", "third", "fourth"];
/** @type {Record<string, string>} */
const SLIDERS = {
  step: "Step of training", epoch: "Epoch of training", fraction: "Fraction of the training",
};
/** @type {Record<string, string>} */
const OLD_DETAILS = { "Models and settings": "settings", "Model and recipe": "settings",
  "Training curves": "curves", "How they learned": "curves",
  "Where they disagree": "disagreements", "Confusion matrices": "confusion",
  "What they mistake": "confusion", "All classes": "classes", Export: "export",
  "Take it away": "export" };
const PARTS = ["menu", "sidebar", "change", "ways", "more", "predictions", "differences", "numbers",
  "steps"];
const SHOWN = "Each panel shows the [receptive field] of a model, made of its "
  + "[densities|density]. In a model's name, [EL] means a layer of";
const TERMS = `${SHOWN} B × B densities ([B] = 10 gives 100), and mNN means a [micro network] `
  + `with B₀ × B₀ densities ([B₀]) that places them. ${MEASURES}`;
const SIGNAL_TERMS = forSignals(`${SHOWN} [B] densities, and mNN means a [micro network] with `
  + `[B₀] densities that places them. ${MEASURES}`);
const FIELDS = { mean: "mean", sum: "sum" };
/** @type {Record<string, string>} */
const TITLES = { classes: "All classes" };
/** Parameters without which a link is that of a new view. */
const OWN = ["models", ...NAMES, "by", ...Object.keys(SLIDERS), "open"];

/**
 * The places of a checkpoint's snapshots: steps, epochs, or fractions of the planned training.
 * @param {Checkpoint} checkpoint
 * @param {string} by
 */
function placesOf(checkpoint, by) {
  if (by === "step") return checkpoint.steps;
  const total = by === "epoch" ? 1 : checkpoint.config.epochs;
  return checkpoint.steps.map((step) => {
    const value = checkpoint.epochOf(step) / total;
    return value < 1 ? Number(value.toPrecision(3)) : Number(value.toFixed(2));
  });
}

/**
 * Show the view in an element.
 * @param {HTMLElement} root
 * @param {Host} host
 */
export async function compare(root, host) {
  const keys = Object.keys(host.models);
  const wanted = new URLSearchParams(host.link).get("first") ?? "";
  const key = keys.includes(wanted) ? wanted : host.defaults.first ?? keys[0];
  const [first, samples] = await loadOrOffer(root, host, {
    label: "First model", name: "first", key });
  const view = new Compare(root, host, key, first, samples);
  await view.start(host.link);
  return view;
}

class Compare extends View {
  /** @type {Record<string, Checkpoint>} */
  checkpoints = {};
  /** @type {Record<string, Response>} */
  responses = {};
  end = new ScaleEnd();
  /** @type {Record<string, string>} */
  unopened = {};  // the keys of models that could not be opened, by their places
  /** @type {string | null} */
  chosen = null;  // the first model, while it is on its way
  /** @type {{ part: Part, atlas: Atlas }[]} */
  atlases = [];  // one per model
  /** @type {{ name: string, model: string, response: Response, share: number, at: number[] }[]} */
  sides = [];  // the models that are shown
  current = 0;  // place of the slider, among all
  /** @type {Omit<Scale, "high">} */
  scale = { low: 0, name: "", unit: "", open: true, stops: [] };  // of the fields

  /**
   * @param {HTMLElement} root
   * @param {Host} host
   * @param {string} key of the first model
   * @param {Checkpoint} first
   * @param {Samples} samples
   */
  constructor(root, host, key, first, samples) {
    super(root, host);
    this.keys = Object.keys(host.models);
    this.checkpoints[key] = first;
    this.samples = samples;
    this.sources = sourcesOf(host, first);
    this.parameters = this.parametersOf();
    this.state = readLink(this.parameters, new URLSearchParams()).state;
    this.inputs = this.controls();
    this.panel = new InputPanel(host, this.inputs);
    this.details = choice("More",
      (open) => this.set({ open: this.state.open === open ? null : open }), "pills");
    this.count = choice("Models", (models) => this.set({ models }));
    this.lists = NAMES.map((name) =>
      list(`${name[0].toUpperCase()}${name.slice(1)} model`,
        (chosen) => (name === NAMES[0] ? this.take(chosen) : this.set({ [name]: chosen }))));
    this.by = choice("Align runs by", (by) => this.align(by));
    this.field = choice("Combine densities by", (field) => this.set({ field }));
    this.story = make("p", { className: "note", role: "status" });
    this.columns = part("columns");
    this.note = make("p", { className: "note" });
    this.terms = make("p", { className: "glossed" });
    this.inputPlace = make("div");
    this.left = make("div", { className: "left" });
    this.ways = make("div", { className: "bar ways" }, named("Align runs by", this.by),
      named("Combine densities by", this.field));
    this.choices = make("div", { className: "choices" },
      make("div", {}, this.count.element,
        make("div", { className: "models" }, ...this.lists.map(({ element }) => element)),
        this.story),
      this.inputPlace);
    this.classes = make("div", { className: "atlases" });
    this.more = make("section", { className: "details" },
      make("div", { className: "bar" }, this.details.element), this.classes);
    this.place();
  }

  /** Put the view into the page, with models to draw: until then the page says that it loads. */
  mount() {
    this.root.classList.add("live");
    this.root.replaceChildren(
      make("style", {}, style),
      this.choices,
      make("div", { className: "scene" }, this.left,
        make("div", {}, this.columns.element, this.note, this.terms)),
      this.more);
  }

  controls() {
    return new InputControls(this.host, this.samples, this.sources, this.set);
  }

  place() {
    const { signals } = this.samples;
    this.root.classList.toggle("signals", signals);
    explain(this.terms, signals ? SIGNAL_TERMS : TERMS);
    this.inputPlace.replaceChildren(this.inputs.bar);
    this.left.replaceChildren(this.panel.element, this.inputs.changes, this.ways);
  }

  /**
   * Compare with another first model, whose test images are the inputs.
   * @param {string} key
   */
  async take(key) {
    this.chosen = key;
    this.showLoading();
    const { models } = this.host;
    let first, samples;
    try {
      [first, samples] = await load(models[key]);
    } catch (error) {
      if (this.chosen !== key) return;
      this.chosen = null;
      reportFailure(this.host, error);
      this.set({});
      return;
    }
    if (this.chosen !== key) return;  // another one was chosen while this one was loaded
    this.chosen = null;
    this.host.report([]);  // what was wrong concerns the first model before
    this.checkpoints[key] = first;
    if (samples !== this.samples) {
      this.samples = samples;
      this.sources = sourcesOf(this.host, first);
      const link = writeLink(this.parameters, this.state);
      this.parameters = this.parametersOf();
      this.state = readLink(this.parameters, link).state;
      const before = this.inputs;
      this.inputs = this.controls();
      this.inputs.keep(before);
      this.panel = new InputPanel(this.host, this.inputs);
      this.place();
    }
    this.set({ first: key });
  }

  /** @param {string} link */
  async start(link) {
    const written = new URLSearchParams(link);
    // Fields were sums when links did not say so.
    if (!written.has("field") && OWN.some((name) => written.has(name))) written.set("field", "sum");
    const last = NAMES.findLastIndex((name) => written.has(name));
    if (!written.has("models") && last >= 2) written.set("models", String(last + 1));
    this.state = readLink(this.parameters, written).state;
    const failures = await this.open();  // the models set the ranges of the slider
    this.mount();
    this.parameters = this.parametersOf();
    const { state, problems } = readLink(this.parameters, written);
    this.state = state;
    for (const name of NAMES) if (written.has(name) && !this.shown.includes(name)) problems.push(
      `The link sets “${name} model” while “Models” is ${state.models}, so it is not shown.`);
    if (!(await this.inputs.readLink(state)))
      problems.push(DAMAGED);
    problems.push(...this.inputs.problems(state));
    if (failures.length) reportFailure(this.host, failures[0], problems);
    else this.host.report(problems);
    await this.update();
    this.wait();
  }

  /** @returns {Record<string, Parameter>} */
  parametersOf() {
    const { host, keys } = this;
    return {
      models: oneOf("Models", ["2", "3", "4"], "2"),
      ...Object.fromEntries(NAMES.map((name, k) =>
        [name, {
          ...oneOf(`${name} model`, keys, host.defaults[name] ?? keys[k % keys.length]),
          always: name in host.defaults,
        }])),
      ...inputParameters(this.samples, this.sources),
      by: oneOf("Align runs by", Object.keys(SLIDERS), "step"),
      field: { ...oneOf("Combine densities by", Object.keys(FIELDS), "mean"), always: true },
      ...Object.fromEntries(Object.entries(SLIDERS).map(([by, label]) =>
        [by, number(label, 0, this.last(by), null)])),
      open: oneOf("More", Object.keys({ ...TITLES, ...this.host.details }), null, OLD_DETAILS),
      hide: someOf("Hide", PARTS),
    };
  }

  /** The last place of the slider; without a limit before the models are open. */
  last(/** @type {string} */ by) {
    const open = this.shown.flatMap((name) => this.checkpoints[String(this.state[name])] ?? []);
    return open.length ? Math.max(...open.flatMap((each) => placesOf(each, by))) : Infinity;
  }

  async rest() {
    const { inputs, state } = this;
    if (this.end.value !== this.end.exact) this.attempt(() => this.show());
    const ink = await inputs.ink(state);
    const link = writeLink(this.parameters, { ...state, ink });
    for (const name of NAMES) if (!this.shown.includes(name)) link.delete(name);
    this.host.rest(link.toString(), inputs.input(state));
    if (state.open === "classes") await this.showClasses();
  }

  /** Align by another unit; the slider keeps its place in the training of the first model. */
  align(/** @type {string} */ by) {
    const before = String(this.state.by);
    const place = this.state[before];
    const first = this.checkpoints[String(this.state.first)];
    const index = placesOf(first, before).findLastIndex((each) => each <= Number(place));
    const now = place === null || index < 0 ? null : placesOf(first, by)[index];
    this.set({ by, step: null, epoch: null, fraction: null, [by]: now });
  }

  /** The models that are shown, by their ordinals. */
  get shown() {
    return NAMES.slice(0, Number(this.state.models));
  }

  /** Open the models that are not open yet; returns the errors of those that cannot be opened. */
  async open() {
    /** @type {unknown[]} */
    const failures = [];
    const keys = [...new Set(this.shown.map((name) => String(this.state[name])))];
    await Promise.all(keys.filter((key) => !(key in this.checkpoints)).map(async (key) => {
      try {
        this.checkpoints[key] = await this.host.models[key].open();
      } catch (error) {
        failures.push(error);
        for (const name of NAMES) if (this.state[name] === key) {
          this.unopened[name] = key;
          this.state[name] = this.state.first;
        }
      }
    }));
    return failures;
  }

  /** Models that could not be opened, in whose place the first one is, are tried again. */
  retry() {
    const { state, unopened } = this;
    this.unopened = {};
    this.set(Object.fromEntries(Object.entries(unopened).filter(([name, key]) =>
      state[name] === state.first && key in this.host.models)));
  }

  get isOpen() {
    return this.shown.every((name) => String(this.state[name]) in this.checkpoints);
  }

  /** Open what is not open yet, then draw. */
  async update() {
    if (!this.isOpen) {
      this.showLoading();
      const [failure] = await this.open();
      if (failure) reportFailure(this.host, failure);
      else recover(this.host);
      this.wait();  // it may have been at rest while they were loaded
    }
    // Another model may have been chosen meanwhile; the view is drawn when it is loaded.
    if (!this.isOpen) return;
    const draw = () => this.attempt(() => this.show());
    whenLoaded(this.host, this.inputs.load(this.state), () => this.retry(), draw);
    draw();
  }

  get loading() {
    return this.chosen !== null || !this.isOpen;
  }

  /** Say which models are on their way. */
  showLoading() {
    const { state, shown, chosen, host: { models } } = this;
    const missing = shown.map((name) => String(state[name])).filter((key) =>
      !(key in this.checkpoints));
    const titles = [...new Set([...(chosen === null ? [] : [chosen]), ...missing])]
      .flatMap((key) => models[key]?.title ?? []);
    this.story.textContent = titles.length ? `Loading ${titles.join(" and ")}\u00a0…` : "";
    this.root.ariaBusy = String(this.loading);
  }

  show() {
    const { state, inputs, host, shown, parameters } = this;
    const input = inputs.input(state);
    inputs.show(state);
    mark(this.root, "data-from", String(state.from));
    this.panel.show(input, state);
    this.count.show(String(state.models), { 2: "2 models", 3: "3 models", 4: "4 models" });
    const titles = titlesOf(host.models);
    const groups = groupsOf(host.models);
    NAMES.forEach((name, k) => {
      const key = k === 0 && this.chosen !== null ? this.chosen : state[name];
      this.lists[k].show(String(key ?? parameters[name].usual), titles, groups);
      this.lists[k].element.hidden = !shown.includes(name);
    });
    this.by.show(String(state.by), { step: "step", epoch: "epoch", fraction: "fraction" });
    this.field.show(String(state.field), FIELDS);
    this.details.show(state.open === null ? null : String(state.open),
      { ...TITLES, ...host.details });
    this.hide({
      sidebar: this.choices, change: inputs.changes, ways: this.ways, more: this.more,
      numbers: this.terms,
    });
    this.showColumns(input);
    this.showLoading();
  }

  /** Show what the host has changed: its models, or the uploaded picture. */
  refresh() {
    const keys = this.keys = Object.keys(this.host.models);
    const parameters = this.parameters = this.parametersOf();
    const [first, ...others] = NAMES;
    const isGone = (/** @type {string} */ name) => !keys.includes(String(this.state[name]));
    this.set(Object.fromEntries(others.filter(isGone).map((name) =>
      [name, parameters[name].usual])));
    if (isGone(first)) this.take(String(parameters[first].usual));
  }

  /** @param {import("./input.js").Input} input */
  showColumns(input) {
    const { state } = this;
    const all = this.shown.map((name) =>
      ({ name, checkpoint: this.checkpoints[String(state[name])] }));
    /** @type {Record<string, string[]>} */
    const others = {};
    const entries = all.filter(({ name, checkpoint: { inputShape } }) => {
      const what = othersOf(inputShape, this.samples);
      if (what) (others[what] ??= []).push(name);
      return !what;
    });
    this.note.textContent = Object.entries(others).map(([what, names]) =>
      `The ${names.join(" and ")} ${names.length > 1 ? "models take" : "model takes"} ${what}.`)
      .join(" ");
    const by = String(state.by);
    const places = [...new Set(entries.flatMap(({ checkpoint }) => placesOf(checkpoint, by)))]
      .sort((a, b) => a - b);
    const end = places[places.length - 1];
    if (Number(state[by]) > end) state[by] = null;  // of a model that trained for longer
    const { classes } = entries[0].checkpoint;
    const titles = distinguish(all.map(({ name, checkpoint }) =>
      ({ name: this.host.models[String(state[name])]?.name ?? "", checkpoint })));
    const sides = entries.map(({ name, checkpoint }) => {
      const response = this.response(checkpoint, input.pixels);
      const ordinal = this.shown.indexOf(name);
      const own = placesOf(checkpoint, by);
      const order = classes.map((each) => checkpoint.classes.indexOf(each));
      const comparable = order.length === checkpoint.classes.length && !order.includes(-1);
      const moving = checkpoint.hasDensities;
      return {
        name, response, model: titles[ordinal], colour: colours.series[ordinal],
        share: state.field === "mean" ? 1 / checkpoint.network(0).densities : 1,
        at: places.map((place) => own.findLastIndex((each) => each <= place)),
        fields: { at: response.field },
        moments: { at: (/** @type {number} */ k) =>
          moving ? checkpoint.moment(checkpoint.steps[k]) : "the same at every step" },
        numbers: { at: (/** @type {number} */ k) => Object.values(response.measures(k)) },
        predictions: { at: (/** @type {number} */ k) =>
          input.unread ? `none: ${input.unread}` : response.predictionText(k) },
        probabilities: comparable && !input.unread
          ? { at: (/** @type {number} */ k) => {
            const { probabilities } = response.result(k);
            return order.map((label) => probabilities[label]);
          } } : null,
      };
    });
    const top = this.end.at(`${this.shown.map((name) => state[name])} ${state.field}`,
      Math.max(...sides.map(({ response, share }) =>
        share * response.top([0, response.last]))) || 1, this.moving);
    const { size, shape, nouns: { per } } = sides[0].response;
    const { signals } = this.samples;
    const unit = state.field === "mean" ? `mean density ${per}` : `density ${per}`;
    const place = state[by] === null ? end : Number(state[by]);
    const before = places.findLastIndex((each) => each <= place);
    const open = !signals;  // a curve is seen as a whole
    const scale = { low: 0, name: unit, unit: per, open, stops: scales.density };
    mountColumns(this.columns.root, {
      steps: places, by, label: SLIDERS[by],
      step: places[Math.max(0, before)],
      shape, size,
      scales: [
        { ...scale, high: top },
        { low: -top, high: top, name: `difference, ${unit}`, unit: per, open,
          stops: scales.signed },
      ],
      sides, measures: Object.keys(sides[0].response.measures(0)), classes,
      right: input.label === null ? null : classes.indexOf(input.label),
      predicts: !input.unread,
      colours: sides.flatMap(({ probabilities, colour }) => probabilities ? [colour] : []),
      curves: signals ? { signs: [colours.against, colours.for] } : null,
      note: input.unread && `none: ${input.unread}`, hidden: this.hidden,
    }, { step: (chosen) => this.set({ [by]: chosen === end ? null : chosen }) });
    Object.assign(this, { sides, scale, current: Math.max(0, before) });
    this.classes.hidden = state.open !== "classes";
  }

  /** The mean field of each class for each model, on one scale. */
  async showClasses() {
    const { sides, current, scale, samples } = this;
    if (samples.empty) {
      const sentence = withoutTests(sides[0].response.checkpoint, "the first model");
      this.classes.replaceChildren(make("p", {}, sentence));
      return;
    }
    await samples.need(samples.tested);
    if (sides !== this.sides) return;  // what is shown instead comes to rest, too
    while (this.atlases.length < sides.length)
      this.atlases.push({ part: part("stills"), atlas: new Atlas() });
    const fields = sides.map(({ response, at }, k) => (/** @type {number} */ count) =>
      this.atlases[k].atlas.fields(response.checkpoint, Math.max(0, at[current]), samples, count));
    const pieces = fields.flatMap((of) => samples.tested.map((_, k) => () => of(k + 1)));
    if (!(await this.doAtRest(pieces)) || sides !== this.sides) return;
    const shown = sides.map(({ share }, k) => fields[k](samples.tested.length)
      .map((values) => values.map((value) => share * value)));
    const high = Math.max(...shown.map((each) => topOf(each, sides[0].response.share))) || 1;
    sides.forEach(({ name, model, response: { checkpoint }, at }, k) => {
      const moment = `${name}, ${checkpoint.moment(checkpoint.steps[Math.max(0, at[current])])}`;
      mountStills(this.atlases[k].part.root,
        atlasOf(shown[k], checkpoint, samples, { ...scale, high }, model, moment));
    });
    this.classes.replaceChildren(...shown.map((_, k) => this.atlases[k].part.element));
  }

  /**
   * The response of a checkpoint, computed when the input changes.
   * @param {Checkpoint} checkpoint
   * @param {Values} pixels
   */
  response(checkpoint, pixels) {
    const { checkpoints } = this;
    const key = Object.keys(checkpoints).find((each) => checkpoints[each] === checkpoint) ?? "";
    const last = this.responses[key];
    if (last && last.pixels.every((value, k) => value === pixels[k])) return last;
    return this.responses[key] = new Response(checkpoint, pixels);
  }
}
