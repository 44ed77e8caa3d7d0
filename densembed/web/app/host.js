// What the views need of the page in which they are: its models, test images, link and parts.

import { make } from "./controls.js";

/**
 * @import { Checkpoint } from "../engine/densembed.js"
 * @import { Samples } from "./samples.js"
 * @import { Scale } from "../panels/types.js"
 */

/**
 * A part of a view with a style of its own: its element, and the root of what is in it.
 * @typedef {{ element: HTMLElement, root: HTMLElement }} Part
 *
 * @typedef {object} Model
 * @property {string} title
 * @property {string} story a sentence about it
 * @property {() => Promise<Checkpoint>} open
 *
 * @typedef {object} Theme what Python and JavaScript draw alike
 * @property {Record<"density" | "signed" | "ink", Scale["stops"]>} scales
 * @property {{ before: string, after: string, against: string, for: string, series: string[] }} colours
 *
 * @typedef {object} Host
 * @property {Record<string, Model>} models by their keys in links
 * @property {(checkpoint: Checkpoint) => Samples} samples the test images that a model takes
 * @property {Theme} theme
 * @property {Record<string, { html: string, css: string }>} parts of the views, by name
 * @property {(name: string) => Part} part a new part
 * @property {() => URLSearchParams} link the parameters of the view
 * @property {(parameters: URLSearchParams) => void} setLink
 * @property {(sentences: string[]) => void} report
 */

/**
 * A part with its HTML and CSS in a shadow root, so that neither styles the rest of the page.
 * @param {{ html: string, css: string }} content
 * @returns {Part}
 */
export function part({ html, css }) {
  const element = make("div", { className: "part" });
  const root = make("div");
  root.innerHTML = html;
  element.attachShadow({ mode: "open" }).append(make("style", {}, css), root);
  return { element, root };
}
