// Explore and Compare in a page of Streamlit: models and test images come from the server, which
// hears of the view where it comes to rest.
/**
 * @import { Host, Model } from "densembed/app/host.js"
 * @import { SamplesData } from "densembed/app/samples.js"
 * @import { Component } from "densembed/panels/types.js"
 */
import { readCheckpoint } from "densembed/engine/densembed.js";
import { compare } from "densembed/app/compare.js";
import { make } from "densembed/app/controls.js";
import { explore } from "densembed/app/explore.js";
import { messageOf, once } from "densembed/app/host.js";
import { Samples } from "densembed/app/samples.js";
import { find } from "densembed/panels/dom.js";
import { bytes } from "densembed/panels/fields.js";

/**
 * @typedef {object} ModelData
 * @property {string} title
 * @property {string} story
 * @property {string | null} url of the file
 * @property {string} content the file itself in base 64, without a URL
 * @property {string} samples URL of the test images
 *
 * @typedef {object} LiveData what Python sends
 * @property {"explore" | "compare"} view
 * @property {Record<string, ModelData>} models by their keys
 * @property {Record<string, string>} defaults keys of models by parameter
 * @property {string} link
 * @property {number} order increases when the view is to follow `link`
 * @property {string} upload the uploaded picture as a model's input, in base 64, or empty
 * @property {string} unlike a drawing that is unlike the training images, likewise
 * @property {Record<string, string>} details that Python shows, by slug
 *
 * @typedef {{ link: string, pixels: string, label: string | null }} Report
 */

const VIEWS = { explore, compare };
/**
 * How checkpoints and test images are loaded, by their URLs: they are kept when another page of the
 * app is shown.
 * @type {Map<string, () => Promise<any>>}
 */
const loaders = new Map();

/**
 * @template T
 * @param {string} key
 * @param {() => Promise<T>} load
 * @returns {Promise<T>}
 */
function shared(key, load) {
  const loader = loaders.get(key) ?? once(load);
  loaders.set(key, loader);
  return loader();
}

/** @param {string} url */
async function get(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(await response.text());
  return response;
}

/** @param {string} url @returns {Promise<Samples>} */
const samplesAt = (url) => shared(url, async () => {
  /** @type {SamplesData} */
  const data = await (await get(url)).json();
  const separator = url.includes("?") ? "&" : "?";
  return new Samples(data, async (label) =>
    new Uint8Array(await (await get(`${url}${separator}label=${label}`)).arrayBuffer()));
});

/**
 * @param {string} key
 * @param {ModelData} data
 * @param {(sentence: string) => void} report
 * @returns {Model}
 */
function modelOf(key, { title, story, url, content, samples }, report) {
  const name = `${key}.safetensors`;
  const open = () => shared(url ?? content, async () => readCheckpoint(
    url === null ? bytes(content).buffer : await (await get(url)).arrayBuffer(), name));
  return { title, story, open, samples: async (checkpoint) => {
    report("");
    try {
      return await samplesAt(samples);
    } catch (error) {
      report(messageOf(error));
      return Samples.empty(checkpoint);
    }
  } };
}

/** @param {Uint8Array} values */
function base64(values) {
  let letters = "";
  for (const value of values) letters += String.fromCharCode(value);
  return btoa(letters);
}

class Live {
  /** @type {LiveData | undefined} */
  data;
  /** @type {{ refresh: () => void } | undefined} */
  shown;
  missing = "";  // a sentence about test images
  reported = "";  // the last report

  /** @param {HTMLElement} root */
  constructor(root) {
    this.problems = find(root, ".problems", HTMLElement);
    this.root = find(root, ".view", HTMLElement);
    /** @type {Host} */
    this.host = {
      models: {}, defaults: {}, link: "", uploads: true, upload: null, unlike: null,
      details: {},
      rest: (link, { pixels, label }) => this.report({ link, pixels: base64(pixels), label }),
      report: (sentences) => this.say(sentences),
    };
  }

  /**
   * @param {LiveData} data
   * @param {(report: Report) => void} tell
   */
  async update(data, tell) {
    this.tell = tell;
    const { data: last, host } = this;
    this.data = data;
    host.models = Object.fromEntries(
      Object.entries(data.models).map(([key, model]) => [key, modelOf(key, model, (sentence) => {
        this.missing = sentence;
      })]));
    Object.assign(host, { defaults: data.defaults, details: data.details });
    if (data.upload !== last?.upload) host.upload = data.upload ? bytes(data.upload) : null;
    host.unlike = data.unlike ? bytes(data.unlike) : null;
    if (last && data.order === last.order) return this.shown?.refresh();
    host.link = data.link;
    this.reported = "";
    try {
      this.shown = await VIEWS[data.view](this.root, host);
    } catch (error) {
      this.say([messageOf(error)]);
    }
    return undefined;
  }

  /** Report where the view came to rest, if that is new. @param {Report} report */
  report(report) {
    const text = JSON.stringify(report);
    if (text === this.reported) return;
    this.reported = text;
    this.tell?.(report);
  }

  /** @param {string[]} sentences */
  say(sentences) {
    const all = [this.missing, ...sentences].filter(Boolean);
    this.problems.replaceChildren(...all.map((sentence) => make("p", {}, sentence)));
    this.problems.hidden = !all.length;
  }
}

/** @param {Component<LiveData>} component */
export default ({ parentElement, data, setStateValue }) => {
  /** @type {HTMLElement & { live?: Live }} */
  const root = find(parentElement, ".view", HTMLElement);
  root.live ??= new Live(parentElement);
  root.live.update(data, (report) => setStateValue("report", report));
};
