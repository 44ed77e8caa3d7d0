// The terms of the pages, each with its meaning, which is shown where a term is pointed at.

import { together } from "../panels/text.js";
import { make } from "./controls.js";

/** @type {Record<string, string>} */
export const GLOSSARY = {
  density: "A density is a smooth bump over the picture with a total mass of 1. The network reads "
    + "the mean ink under it. It has a location (its centre) and a scale (its width).",
  "receptive field": "The receptive field is the part of the picture that reaches the network. "
    + "Here it is that of the whole network, the sum of all densities: the brighter, the more "
    + "densities read that place. Bright does not mean that the place matters for the answer.",
  "micro network": "A micro network (mNN) is a small network that reads the picture first and "
    + "computes from it where the densities of the main network are placed.",
  B: "B is the number of densities per side: a model with B = 10 has 10 × 10 = 100 densities.",
  "B₀": "B₀ is the number of densities per side in the micro network: B₀ = 5 means 25 densities.",
  reading: "The reading of a density is the mean ink under it: for every pixel, the mass of the "
    + "density there times the ink there, all added up. It is written Γx.",
  mass: "The mass of a density in a pixel is its volume over that pixel, Γ. Over the whole plane "
    + "the masses of a density add up to 1.",
  ink: "Ink is the brightness of a pixel of the input, from 0 (black) to 1 (white).",
  weight: "The weight of a density for a class says how much its reading raises (positive) or "
    + "lowers (negative) the score of that class. Training sets all weights.",
  "class weight": "The class weight of a density says how much its reading raises (positive) or "
    + "lowers (negative) the score of that class. Training sets all weights.",
  score: "The score of a class is the sum of reading × weight over all densities, plus a constant "
    + "(the bias). The highest score is the prediction.",
  bias: "The bias is a constant per class that is added to its score, whatever the picture.",
  probability: "The scores are turned into probabilities, which are positive and add up to 100 % "
    + "(softmax). Two close scores give two similar probabilities.",
  training: "Training shows the network thousands of pictures with their classes and changes its "
    + "numbers a little after each batch, so that the right class gets a higher score.",
  step: "A step is one change of all parameters during training, after a batch of images.",
  epoch: "An epoch is one pass of training over all training images.",
  parameters: "Parameters are the numbers that training sets: locations, scales and weights.",
  error: "The error is the share of the test images for which the network gives a wrong answer. "
    + "Test images are not used in training.",
  class: "A class is one of the possible answers, for example a digit from 0 to 9.",
  "linear map": "A linear map multiplies every input by a weight and adds up the products.",
  gradient: "The gradient says how much a number would change if a pixel became brighter.",
  location: "The location of a density is its centre: column and row, in pixels.",
  scale: "The scale of a density is its width along columns and rows, in pixels.",
  "hidden unit": "A hidden unit has a weight for every pixel. Its value is the weighted sum of the "
    + "ink plus a bias, or 0 if that is negative (ReLU).",
  EL: "EL stands for embedding layer: it reads the mean ink under each of its densities. The word "
    + "before EL is the shape of the densities.",
  centre: "The centre of the field is its mean position: column and row, in pixels.",
  spread: "The spread is the root mean square distance of the field from its centre, in pixels.",
  entropy: "The entropy tells how evenly the field covers the picture: 0 bits if it covers "
    + "one pixel, less if it is narrower, and most if it is equally bright everywhere "
    + "(log₂ 784 = 9.6 bits for 28 × 28 pixels). One bit less means that it covers about half as "
    + "many pixels.",
  area: "The smallest number of pixels that together hold 90 % of the field.",
  map: "A map is an image that a convolution stage computes from the input, for example its edges.",
  "density (signal)": "A density is a smooth bump over the axis of the signal with a total mass "
    + "of 1. The network reads the mean of the signal under it. It has a location (its centre) "
    + "and a scale (its width).",
  "receptive field (signal)": "The receptive field is the part of the signal that reaches the "
    + "network. Here it is the sum of all densities: the higher, the more densities read that "
    + "place.",
  "micro network (signal)": "A micro network (mNN) is a small network that reads the signal "
    + "first and computes from it where the densities of the main network are placed.",
  "B (signal)": "B is the number of densities.",
  "B₀ (signal)": "B₀ is the number of densities in the micro network.",
  "EL (signal)": "EL stands for embedding layer: it reads the mean of the signal under each of "
    + "its densities. The word before EL is the shape of the densities.",
  "centre (signal)": "The centre of the field is its mean position t, in samples.",
  "spread (signal)": "The spread is the root mean square distance of the field from its centre, "
    + "in samples.",
  "entropy (signal)": "The entropy tells how evenly the field covers the signal: 0 bits if it "
    + "covers one sample, less if it is narrower, and most if it is equally high "
    + "everywhere. One bit less means that it covers about half as many samples.",
  "area (signal)": "The smallest number of samples that together hold 90 % of the field.",
};

/**
 * What a model without densities reads, as the beginning of a sentence for `explain`.
 * @param {boolean} onPixels
 * @param {string} name of a cell of the input
 */
export const withoutDensities = (onPixels, name) => "This model has no [densities|density]: it "
  + `reads each ${onPixels ? name : "cell of its maps"} on its own`;

/** The terms that mean something else for signals. @param {string} text for `explain` */
export const forSignals = (text) => text.replace(MARKED, (marked, _, words, name = words) =>
  (`${name} (signal)` in GLOSSARY ? `[${words}|${name} (signal)]` : marked));

/** What the numbers of a field mean, with terms for `explain`. */
export const MEASURES = "[Centre|centre], [spread], [entropy] and [90 % of the field|area] tell "
  + "where the field lies and how wide it is.";

/**
 * The parts of a model's name, for `explain`: "Logistic-EL with mNN, B = 10, B₀ = 5" has 10 × 10
 * densities and a micro network with 5 × 5. Empty for a model without densities.
 * @param {string} name
 * @param {boolean} signals whether the model is one of signals, with B densities
 * @param {number} all number of densities, of all channels together
 */
export function partsOf(name, signals, all) {
  const [, layer] = /(?:^|, )([^,]*-EL)\b/.exec(name) ?? [];
  const [, side] = /\bB = (\d+)/.exec(name) ?? [];
  const [, small] = /\bB₀ = (\d+)/.exec(name) ?? [];
  if (!layer || !side) return "";
  const counts = (/** @type {string} */ each) => Number(each) === 1 ? ["1", "density"]
    : [signals ? each : `${each} × ${each}`, "densities"];
  const [number, noun] = counts(side);
  const several = all > Number(side) ** (signals ? 1 : 2);
  const each = several ? " per channel" : "";
  const micro = small ? ", placed by a [micro network] (mNN) with "
    + `${counts(small).join(" ")}${each} ([B₀] = ${small})` : "";
  const total = several ? `${each}, ${all.toLocaleString("en")} in all` : "";
  const text = `[${layer}|EL]: ${number} [${noun}|density]${total} ([B] = ${side})${micro}.`;
  return signals ? forSignals(text) : text;
}

const MARKED = /\\(.)|\*|\[([^\]|]+)(?:\|([^\]]+))?\]/gsu;
let tips = 0;

/** A name within a text for `explain`, without a meaning of its own. @param {string} name */
export const literal = (name) => name.replace(/[\\*[\]]/g, "\\$&");

/**
 * Fill an element with a text in which `[term]` or `[words|term]` is a term of the glossary and
 * `*words*` are bold. A backslash takes the meaning from the next character.
 * @param {HTMLElement} element
 * @param {string} text
 */
export function explain(element, text) {
  if (element.dataset.text === text) return;
  element.dataset.text = text;
  element.replaceChildren();
  /** @type {HTMLElement | null} */
  let bold = null;
  let at = 0;
  const joined = together(text);  // as long as the text
  for (const { 0: mark, 1: escaped, 2: words, 3: name, index } of text.matchAll(MARKED)) {
    (bold ?? element).append(joined.slice(at, index));
    at = index + mark.length;
    if (escaped) (bold ?? element).append(escaped);
    else if (mark === "*") {
      if (!bold) element.append(bold = make("b"));
      else bold = null;
    } else {
      const explained = term(together(words), name ?? words);
      (bold ?? element).append(explained);
      const [after] = /^[.,:;)]/.exec(text.slice(at)) ?? [""];
      explained.append(after);  // a line does not break before it
      at += after.length;
    }
  }
  (bold ?? element).append(joined.slice(at));
}

/**
 * A term whose meaning is shown on hover, focus and click.
 * @param {string} words
 * @param {string} name
 */
export function term(words, name) {
  const meaning = GLOSSARY[name];
  if (!meaning) throw new Error(`The glossary has no “${name}”.`);
  const id = `term-${++tips}`;
  const tip = make("span", { className: "meaning", id, role: "tooltip", hidden: true },
    together(meaning));
  const button = make("span", { className: "term", role: "button", tabIndex: 0,
    "aria-describedby": id }, words);
  const element = make("span", { className: "explained" }, button, tip);
  const show = (/** @type {boolean} */ shown) => {
    tip.hidden = !shown;
    if (!shown) return;
    tip.style.translate = "";
    const { left, right } = tip.getBoundingClientRect();
    // Not innerWidth, which on a phone grows with what lies beside the page.
    const { clientWidth } = document.documentElement;
    const over = Math.max(0, right + 8 - clientWidth) || Math.min(0, left - 8);
    tip.style.translate = `${-over}px 0`;
  };
  element.onpointerenter = () => show(true);
  element.onpointerleave = () => show(button.matches(":focus-visible"));
  button.onfocus = () => show(true);
  button.onblur = () => show(false);
  button.onclick = () => show(true);
  element.onkeydown = ({ key }) => { if (key === "Escape") show(false); };
  return element;
}
