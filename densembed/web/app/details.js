// The details that Explore shows on demand: about the model, one density, the effect of each pixel,
// all classes.
/**
 * @import { Host } from "./host.js"
 * @import { State } from "./parameters.js"
 * @import { Response } from "./response.js"
 * @import { Samples } from "./samples.js"
 * @import { Scale, View } from "../panels/types.js"
 */
import { largestValue, percentile } from "../engine/densembed.js";
import { mount as mountStills } from "../panels/stills.js";
import { colours, scales } from "../resources.js";
import { Atlas, atlasOf, topOf } from "./atlas.js";
import { Chain } from "./chain.js";
import { choice, count, make } from "./controls.js";
import { part } from "./host.js";
import { TOP } from "./response.js";
import { ServedCheckpoint } from "./served.js";
import { Story } from "./story.js";

const TITLES = {
  story: "In five steps", about: "What am I looking at?", density: "One density",
  effect: "Effect of each pixel",
  classes: "All classes",
};
const INSIDE = ["story", "about"];  // details that need the parts of a network
const DENSITY = "density per pixel²";

export const DETAILS = Object.keys(TITLES);

export class Details {
  /**
   * @param {Host} host
   * @param {(changes: State) => void} set
   * @param {() => void} play
   */
  constructor(host, set, play) {
    this.host = host;
    this.set = set;
    this.atlas = new Atlas();
    /** @type {State} */
    this.state = {};
    this.titles = choice("More", (more) => set({ more: this.state.more === more ? null : more }),
      "pills");
    this.number = count("Density", (density) => set({ density }));
    this.text = make("div", { className: "text" });
    this.stills = part("stills");
    this.chain = new Chain(set);
    this.story = new Story(set, play);
    this.element = make("section", { className: "details" },
      make("div", { className: "bar" }, this.titles.element),
      make("div", { className: "detail" },
        make("div", { className: "words" }, this.number.element, this.text), this.stills.element),
      this.story.element, this.chain.element);
  }

  /**
   * @param {State} state
   * @param {Response} response
   * @param {number} label the class whose weights are shown
   * @param {Samples} samples
   */
  show(state, response, label, samples) {
    this.state = state;
    const { checkpoint } = response;
    const inside = !(checkpoint instanceof ServedCheckpoint);  // whether every layer is known
    const titles = Object.fromEntries(Object.entries({ ...TITLES, ...this.host.details }).filter(
      ([slug]) => (slug !== "density" || checkpoint.hasDensities)
        && (inside || !INSIDE.includes(slug))));
    const opened = String(state.more) in titles ? String(state.more) : null;
    this.titles.show(opened, titles);
    const current = checkpoint.steps.indexOf(Number(state.step));
    this.number.element.hidden = opened !== "density";
    this.text.replaceChildren();
    this.chain.element.hidden = opened !== "about";
    this.story.element.hidden = opened !== "story";
    if (opened === "story") this.story.show(state, response, current, samples);
    if (opened === "about") this.about(response);
    if (opened === "about") this.chain.show(state, response, current, label);
    const figures = opened === "density" ? this.density(response, current)
        : opened === "effect" ? this.effect(response, current, label) : [];
    const atlas = opened === "classes" ? this.classes(response, current, samples) : null;
    const shown = atlas ?? { columns: figures.length, shared: null, figures };
    this.stills.element.hidden = !shown.figures.length;
    if (shown.figures.length) mountStills(this.stills.root, shown);
  }

  /** Go on reading with what is open. */
  focus() {
    const heading = this.state.more === "story" ? this.story.heading : this.text;
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  }

  /** @param {string} sentence */
  say(sentence) {
    this.text.append(make("p", {}, sentence));
  }

  /** @param {number} high @param {string} name @param {string} unit @returns {Scale} */
  scale(high, name = DENSITY, unit = "per pixel²") {
    return { low: 0, high: high || 1, name, unit, open: true, stops: scales.density };
  }

  /** @param {Response} response */
  about({ checkpoint }) {
    const moment = checkpoint.moment(Number(this.state.step));
    const learned = checkpoint.hasDensities
      ? " Training has set the places and widths of the densities, and all weights." : "";
    this.say(`${checkpoint.words}: this input on its way through the network, ${moment}, with the `
      + "real numbers. Click a density or a square to follow it, and choose a class on the right "
      + `to see what raises its score.${learned}`);
  }

  /** @param {Response} response @param {number} current @returns {View[]} */
  density(response, current) {
    const { checkpoint, shape, size } = response;
    const network = checkpoint.network(current);
    const result = response.result(current);
    const number = Math.min(Number(this.state.density), network.densities);
    this.number.show(number, network.densities);
    const [at, own] = [2 * (number - 1), number - 1];
    const words = (/** @type {Float64Array} */ values) =>
      `${values[at].toFixed(2)} columns and ${values[at + 1].toFixed(2)} rows`;
    this.say(`Location: ${words(result.locations)}. Scale: ${words(result.scales)}, in pixels. The `
      + "line is the path of its location during training, for this input.");
    // A server sends no readings.
    if (network.onPixels && own in result.readings)
      this.say("It reads the mean ink under it: "
        + `${result.readings[own].toFixed(3)} for this picture.`);
    const weights = checkpoint.classes.map((_, label) => network.classWeights(label)?.[own] ?? 0);
    if (network.classWeights(0)) this.text.append(this.bars(checkpoint.classes, weights));
    const values = network.density(result, own);
    const path = checkpoint.steps.flatMap((_, k) =>
      [...response.result(k).locations.slice(at, at + 2)]);
    return [{ values, shape, size, path, title: `density ${number}`, note: "on its own",
      alt: "One density, a heatmap:", scale: { ...this.scale(Math.max(...values)), open: false } }];
  }

  /**
   * The weight of a density for each class.
   * @param {string[]} classes
   * @param {number[]} weights
   */
  bars(classes, weights) {
    const { against, for: favour } = colours;
    const most = Math.max(...weights.map(Math.abs)) || 1;
    const rows = classes.map((name, k) => {
      const share = 50 * weights[k] / most;
      const bar = make("div");
      bar.style.cssText = `width: ${Math.abs(share)}%; margin-left: ${50 + Math.min(0, share)}%; `
        + `background: ${share < 0 ? against : favour}`;
      return make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, bar),
        make("td", {}, weights[k].toFixed(2).replace("-", "−")));
    });
    const caption = "Its weight for each class: red raises the score, blue lowers it.";
    return make("table", { className: "weights" }, make("caption", {}, caption), ...rows);
  }

  /** @param {Response} response @param {number} current @param {number} label @returns {View[]} */
  effect(response, current, label) {
    const { checkpoint, size, shape } = response;
    const { classes } = checkpoint;
    const network = checkpoint.network(current);
    const [channels, height, width] = checkpoint.inputShape;
    const plane = height * width;
    const gradient = network.inputGradient(response.input);
    const effects = classes.map((_, c) => {
      const sum = new Float32Array(plane);
      const first = c * channels * plane;
      for (let k = 0; k < channels * plane; k++) sum[k % plane] += gradient[first + k];
      return sum;
    });
    const strength = effects[0].map((_, k) =>
      Math.sqrt(effects.reduce((sum, values) => sum + values[k] ** 2, 0) / classes.length));
    const bound = largestValue(effects.flatMap((values) => [...values]), TOP) || 1;
    this.say(`${checkpoint.hasDensities ? "The densities show where the network looks. " : ""}`
      + "These maps show the effect of each pixel: how the score of a class changes with the ink "
      + "there (the effective receptive field, Luo et al. 2016). Red raises the score of the "
      + "class, blue lowers it.");
    this.say(network.linear
      ? "Such a linear network is, as a whole, this one map: the "
        + "score is the sum of weight × ink, plus a bias."
      : network.adaptive ? "Some blank pixels matter too: ink there would move a density."
        : "The network is not linear, so the map depends on the input.");
    const score = "score per unit of ink";
    const pixels = { shape: /** @type {[number, number]} */ ([height, width]), size };
    return [
      { values: response.field(current), shape, size, scale: this.scale(response.top([0, current])),
        title: "where it looks", note: checkpoint.moment(checkpoint.steps[current]),
        alt: "Receptive field, a heatmap of the sum of the densities," },
      { ...pixels, values: effects[label], title: `effect on ${classes[label]}`,
        note: network.linear ? "the same for every input" : "at this input",
        alt: "Effect of each pixel on the score,",
        scale: { low: -bound, high: bound, name: score, unit: score, open: true,
          stops: scales.signed } },
      { ...pixels, values: strength, title: "overall effect",
        note: "root mean square over the classes", alt: "Effect of each pixel,",
        scale: this.scale(percentile(strength, TOP), score, score) },
    ];
  }

  /**
   * The mean field of each class; null until the test images are loaded.
   * @param {Response} response
   * @param {number} current
   * @param {Samples} samples
   */
  classes({ checkpoint }, current, samples) {
    const loading = samples.need(samples.tested);
    if (loading) {
      loading.then(() => this.set({}));
      return null;
    }
    const fields = this.atlas.fields(checkpoint, current, samples);
    return atlasOf(fields, checkpoint, samples, this.scale(topOf(fields)),
      "mean field of each class");
  }
}

