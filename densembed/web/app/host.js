// What the views need of the page in which they are: its models, test images, link and parts.

import { parts, style } from "../resources.js";
import { list, make } from "./controls.js";

/**
 * @import { Checkpoint } from "../engine/densembed.js"
 * @import { Input } from "./input.js"
 * @import { Values } from "./kinds.js"
 * @import { Samples } from "./samples.js"
 */

/**
 * A part of a view with a style of its own: its element, and the root of what is in it.
 * @typedef {{ element: HTMLElement, root: HTMLElement }} Part
 *
 * @typedef {object} Model
 * @property {string} title
 * @property {string} name the user's name of a run, or ""
 * @property {string} group of models in a list, such as "Your runs"
 * @property {string} story a sentence about it
 * @property {() => Promise<Checkpoint>} open
 * @property {(checkpoint: Promise<Checkpoint>) => Promise<Samples>} samples its test images
 *
 * @typedef {object} Host
 * @property {Record<string, Model>} models by their keys in links
 * @property {Record<string, string>} defaults keys of models by the parameters that name them
 * @property {string} link the parameters of the view when it opens
 * @property {(link: string, input: Input) => void} rest nothing has changed for a moment
 * @property {(sentences: string[]) => void} report problems of the link
 * @property {(link: string) => void} open the view again, with these parameters
 * @property {boolean} uploads whether the page takes pictures
 * @property {Values | null} upload the picture that the page took, as a model's input; or a signal
 * @property {Uint8Array | null} unlike the last drawing that is unlike the training images
 * @property {Record<string, string>} details details that the page itself shows, by their slugs
 */

/**
 * A new part with its HTML and CSS in a shadow root, so that neither styles the rest of the page.
 * @param {string} name
 * @returns {Part}
 */
export function part(name) {
  const { html, css } = parts[name];
  const element = make("div", { className: `part ${name}` });
  const root = make("div");
  root.innerHTML = html;
  element.attachShadow({ mode: "open" }).append(make("style", {}, css), root);
  return { element, root };
}

/** The titles of models by their keys. @param {Record<string, Model>} models */
export const titlesOf = (models) =>
  Object.fromEntries(Object.entries(models).map(([key, { title }]) => [key, title]));

/**
 * Whether a model can be chosen whose name has this part; a name of a run or file may have "EL".
 * @param {Host} host
 * @param {"-EL" | "mNN"} name
 */
export const offers = ({ models }, name) =>
  Object.values(models).some(({ title }) => title.includes(name));

/** The groups of models by their keys. @param {Record<string, Model>} models */
export const groupsOf = (models) =>
  Object.fromEntries(Object.entries(models).map(([key, { group }]) => [key, group]));

/**
 * A model and its test images, which are loaded at the same time; an error in an old browser.
 * @param {Model} model
 * @returns {Promise<[checkpoint: Checkpoint, samples: Samples]>}
 */
export async function load(model) {
  // The newest of what the pages use: nested style sheets, and attributes of ARIA as properties.
  if (!CSS.supports("selector(&)") || !("ariaPressed" in Element.prototype)) throw new Error(
    "This page needs a newer browser: Chrome or Edge 112, Firefox 119, Safari 16.5, or a later "
    + "version.");
  const checkpoint = model.open();
  return Promise.all([checkpoint, model.samples(checkpoint)]);
}

/**
 * The model of a view that opens. If it cannot be loaded, and there is no earlier view, another one
 * can be chosen from a list.
 * @param {HTMLElement} root
 * @param {Host} host
 * @param {{ label: string, name: string, key: string }} choice the model, and its parameter
 */
export async function loadOrOffer(root, host, { label, name, key }) {
  try {
    return await load(host.models[key]);
  } catch (error) {
    if (!root.classList.contains("live")) {
      const models = list(label, (chosen) => {
        const link = new URLSearchParams(host.link);
        link.set(name, chosen);
        host.open(link.toString());
      });
      models.show(key, titlesOf(host.models), groupsOf(host.models));
      root.classList.add("live");
      root.replaceChildren(make("style", {}, style), models.element);
    }
    throw error;
  }
}

/** The sentence of an error. @param {unknown} error */
export const messageOf = (error) => (error instanceof Error ? error.message : String(error));

/**
 * What a function loads, once; it is loaded again after a failure.
 * @template T
 * @param {() => Promise<T>} begin
 */
export function once(begin) {
  /** @type {Promise<T> | undefined} */
  let result;
  return () => {
    if (!result) {
      result = begin();
      result.catch(() => { result = undefined; });
    }
    return result;
  };
}

const failed = new WeakSet();  // hosts to whom a failure was reported

/**
 * Report what could not be loaded, until something can be.
 * @param {Host} host
 * @param {unknown} error
 * @param {string[]} [others] further sentences
 */
export function reportFailure(host, error, others = []) {
  failed.add(host);
  host.report([messageOf(error), ...others]);
}

/**
 * Remove the report of a failure; returns whether there was one.
 * @param {Host} host
 */
export function recover(host) {
  if (!failed.delete(host)) return false;
  host.report([]);
  return true;
}

/**
 * Go on once something is loaded; report why it is not, until it is.
 * @param {Host} host
 * @param {Promise<unknown> | undefined} loading
 * @param {() => void} goOn
 * @param {() => void} [stay] what to do instead after a failure
 */
export function whenLoaded(host, loading, goOn, stay) {
  loading?.then(() => {
    recover(host);
    goOn();
  }, (error) => {
    reportFailure(host, error);
    stay?.();
  });
}
