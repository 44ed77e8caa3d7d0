// The details that Explore shows on demand: about the model, one density, the effect of each pixel,
// all classes.
/**
 * @import { Checkpoint } from "../engine/densembed.js"
 * @import { Host } from "./host.js"
 * @import { State } from "./parameters.js"
 * @import { Response } from "./response.js"
 * @import { Samples } from "./samples.js"
 * @import { Scale, View } from "../panels/types.js"
 */
import { largestValue, percentile } from "../engine/densembed.js";
import { mount as mountStills } from "../panels/stills.js";
import { fixed, notZero } from "../panels/text.js";
import { colours, scales } from "../resources.js";
import { Atlas, atlasOf, topOf, withoutTests } from "./atlas.js";
import { Chain } from "./chain.js";
import { choice, count, make } from "./controls.js";
import { explain } from "./glossary.js";
import { part, whenLoaded } from "./host.js";
import { nounsOf, planesOf } from "./kinds.js";
import { ServedCheckpoint } from "./served.js";
import { Story } from "./story.js";
import { certainty } from "./words.js";

const TITLES = {
  story: "In five steps", about: "Why this answer?", density: "One density",
  effect: "Effect of each pixel",
  classes: "All classes",
};
const INSIDE = ["story", "about"];  // details that need the parts of a network of images

/**
 * The details that there are for a model, with their titles.
 * @param {Checkpoint} checkpoint
 * @returns {Record<string, string>}
 */
export function detailsOf(checkpoint) {
  const { cell } = nounsOf(checkpoint.inputShape);
  const inside = !(checkpoint instanceof ServedCheckpoint) && checkpoint.axes === 2;
  return Object.fromEntries(Object.entries({ ...TITLES, effect: `Effect of each ${cell}` }).filter(
    ([slug]) => (slug !== "density" || checkpoint.hasDensities)
      && (inside || !INSIDE.includes(slug))));
}

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
    this.answer = make("p");
    this.stills = part("stills");
    this.chain = new Chain(set);
    this.story = new Story(host, set, play);
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
    const titles = { ...detailsOf(checkpoint), ...this.host.details };
    const opened = String(state.more) in titles ? String(state.more) : null;
    this.titles.show(opened, titles);
    const current = checkpoint.steps.indexOf(Number(state.step));
    this.number.element.hidden = opened !== "density";
    this.text.replaceChildren();
    this.chain.element.hidden = opened !== "about";
    this.story.element.hidden = opened !== "story";
    if (opened === "story") this.story.show(state, response, current, samples);
    if (opened === "about") {
      this.chain.show(state, response, current, label);
      this.about(response);
    }
    const figures = opened === "density" ? this.density(response, current)
        : opened === "effect" ? this.effect(response, current, label) : [];
    const atlas = opened === "classes" ? this.classes(response, current, samples) : null;
    const columns = checkpoint.axes === 1 ? 1 : figures.length;
    const shown = atlas ?? { columns, shared: null, figures };
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

  /**
   * A scale of values from 0; all of a curve is seen.
   * @param {Response} response
   * @param {number} high
   * @param {string} name
   * @param {string} unit
   * @returns {Scale}
   */
  scale({ checkpoint: { axes } }, high, name, unit) {
    return { low: 0, high: high || 1, name, unit, open: axes === 2, stops: scales.density };
  }

  /** @param {Response} response */
  about({ checkpoint }) {
    if (this.chain.anatomy) explain(this.answer, certainty(this.chain.anatomy));
    this.text.append(this.answer);
    const moment = checkpoint.moment(Number(this.state.step));
    const learned = checkpoint.hasDensities
      ? " Training sets the places and widths of the densities, and all weights." : "";
    this.say(`The pictures below follow the input through the network, ${moment}, with all `
      + "values. Click a density or a square to follow it, or a class under “Prediction” "
      + `to see what raises its score.${learned}`);
  }

  /**
   * The scale of densities.
   * @param {Response} response
   * @param {number} high
   */
  densityScale(response, high) {
    const { per } = response.nouns;
    return this.scale(response, high, `density ${per}`, per);
  }

  /** @param {Response} response @param {number} current @returns {View[]} */
  density(response, current) {
    const { checkpoint, shape, size, nouns: { input, value, cell } } = response;
    const { axes } = checkpoint;
    const network = checkpoint.network(current);
    const result = response.result(current);
    const number = Math.min(Number(this.state.density), network.densities);
    this.number.show(number, network.densities);
    const [at, own] = [axes * (number - 1), number - 1];
    const words = (/** @type {Float64Array} */ values) => axes === 1 ? notZero(values[at], 2)
      : `${notZero(values[at], 2)} columns and ${notZero(values[at + 1], 2)} rows`;
    const way = axes === 1 ? ", from the first step at the top to the last one below" : "";
    this.say(`Location: ${words(result.locations)}. Scale: ${words(result.scales)}, in ${cell}s. `
      + `The line is the path of its location during training, for this input${way}.`);
    // A server sends no readings.
    if (network.onPixels && own in result.readings)
      this.say(`Its reading, the mean ${value} under it, is `
        + `${fixed(result.readings[own], 3)} for this ${input}.`);
    const weights = checkpoint.classes.map((_, label) => network.classWeights(label)?.[own] ?? 0);
    if (network.classWeights(0)) this.text.append(this.bars(checkpoint.classes, weights));
    const values = network.density(result, own);
    const path = checkpoint.steps.flatMap((_, k) =>
      [...response.result(k).locations.slice(at, at + axes)]);
    return [{ values, shape, size, path, title: `density ${number}`, note: "on its own",
      alt: `One density, a ${axes === 1 ? "curve" : "heatmap"}:`, curves: curvesOf(checkpoint),
      scale: { ...this.densityScale(response, largestValue(values, 100)), open: false } }];
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
        make("td", {}, fixed(weights[k], 2)));
    });
    const caption = "Its weight for each class: red raises the score, blue lowers it.";
    return make("table", { className: "weights" }, make("caption", {}, caption), ...rows);
  }

  /** @param {Response} response @param {number} current @param {number} label @returns {View[]} */
  effect(response, current, label) {
    const { checkpoint, size, shape, nouns } = response;
    const { classes } = checkpoint;
    const signals = checkpoint.axes === 1;
    const network = checkpoint.network(current);
    const [channels, height, width] = planesOf(checkpoint.inputShape);
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
    const inked = new Set(Array.from(response.pixels.keys()).filter((k) => response.pixels[k])
      .map((k) => k % plane));
    const bound = largestValue(effects.flatMap((values) => [...values]), response.share) || 1;
    if (checkpoint.hasDensities)
      this.say("The field shows where the network looks, but not how much a place matters.");
    this.say(`These ${signals ? "curves" : "maps"} show the effect of each ${nouns.cell}: how the `
      + `score of a class changes with the ${nouns.value} there (the effective receptive field, `
      + "Luo et al. 2016). Red raises the score of the class, blue lowers it.");
    const shown = signals ? "curve" : "map";
    this.say(network.linear
      ? `This network is linear, so it is equivalent to this one ${shown}: the `
        + `score is the sum of weight × ${nouns.value} over the ${nouns.cell}s, plus a bias.`
      : network.adaptive && !signals && strength.some((value, k) => value && !inked.has(k))
        ? "Some blank pixels matter, too: ink there would change readings and move densities."
        : `The network is not linear, so the ${shown} depends on the input.`);
    const score = `score per unit of ${signals ? "the scaled signal" : "ink"}`;
    const curves = curvesOf(checkpoint);
    const pixels = { shape: /** @type {[number, number]} */ ([height, width]), size };
    return [
      { values: response.field(current), shape, size, curves,
        scale: this.densityScale(response, response.top([0, current])),
        title: "where it looks", note: checkpoint.moment(checkpoint.steps[current]),
        alt: `Receptive field, a ${signals ? "curve" : "heatmap"} of the sum of the densities,` },
      { ...pixels, curves, values: effects[label], title: `effect on ${classes[label]}`,
        note: network.linear ? "the same for every input" : "at this input",
        alt: `Effect of each ${nouns.cell} on the score,`,
        scale: { low: -bound, high: bound, name: score, unit: score, open: !signals,
          stops: scales.signed } },
      { ...pixels, curves, values: strength, title: "overall effect",
        note: "root mean square over the classes", alt: `Effect of each ${nouns.cell},`,
        scale: this.scale(response, percentile(strength, response.share), score, score) },
    ];
  }

  /**
   * The mean field of each class; null until the test images are loaded.
   * @param {Response} response
   * @param {number} current
   * @param {Samples} samples
   */
  classes(response, current, samples) {
    const { checkpoint, share } = response;
    if (samples.empty) {
      this.say(withoutTests(checkpoint, "this model"));
      return null;
    }
    const loading = samples.need(samples.tested);
    if (loading) {
      whenLoaded(this.host, loading, () => this.set({}));
      return null;
    }
    const fields = this.atlas.fields(checkpoint, current, samples);
    const scale = this.densityScale(response, topOf(fields, share));
    return atlasOf(fields, checkpoint, samples, scale, "mean field of each class");
  }
}

/**
 * How the figures of a model are drawn.
 * @param {Checkpoint} checkpoint
 * @returns {View["curves"]}
 */
const curvesOf = ({ axes }) => axes === 1
  ? { colours: [colours.after], signs: [colours.against, colours.for] } : null;

