// Explore and Compare in a page of Streamlit: models and test images come from the server, which
// hears of the view where it comes to rest.
/**
 * @import { Host, Model } from "densembed/app/host.js"
 * @import { Input } from "densembed/app/input.js"
 * @import { Values } from "densembed/app/kinds.js"
 * @import { SamplesData } from "densembed/app/samples.js"
 * @import { Checkpoint } from "densembed/engine/densembed.js"
 * @import { Component } from "densembed/panels/types.js"
 */
import { Unsupported, readCheckpoint } from "densembed/engine/densembed.js";
import { compare } from "densembed/app/compare.js";
import { make } from "densembed/app/controls.js";
import { explore } from "densembed/app/explore.js";
import { messageOf, once, recover, reportFailure } from "densembed/app/host.js";
import { Samples } from "densembed/app/samples.js";
import { ServedCheckpoint } from "densembed/app/served.js";
import { find } from "densembed/panels/dom.js";
import { bytes } from "densembed/panels/unpack.js";
import { UNREACHABLE, back, isLeft, line } from "../common/shell.js";

/**
 * @typedef {object} ModelData
 * @property {string} title
 * @property {string} name
 * @property {string} group
 * @property {string} story
 * @property {string | null} url of the file
 * @property {string} content the file itself in base 64, without a URL
 * @property {string} samples URL of the test images
 * @property {string} networks URL of what the server computes of it
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
 * @typedef {object} Report
 * @property {string} link
 * @property {string} pixels of the input in base 64
 * @property {string | null} label
 * @property {number} order that of the data which the view followed
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

let lost = false;  // whether the server did not answer the last request

/** The server did not answer, but may do so later. */
class Unreached extends Error {
  /** @param {string} sentence */
  constructor(sentence) {
    super(sentence);
    lost = true;
  }
}

/**
 * The response of the server. Errors are sentences: those of the server, or about what came instead
 * of it, as a browser has its own words, and a proxy between sends web pages.
 * @param {string} url
 * @param {RequestInit} [options]
 */
async function get(url, options) {
  const response = await fetch(url, options).catch(() => {
    throw new Unreached(UNREACHABLE);
  });
  const isPage = response.headers.get("content-type")?.startsWith("text/html");
  if (isPage) throw new Unreached(
    `A web page came instead of the data (status ${response.status}): reload the page.`);
  if (lost) {
    lost = false;
    back();
  }
  if (!response.ok) throw new Error(await response.text());
  return response;
}

let asked = false;  // for test images

/**
 * The test images at a URL. Those of one class are asked for at the same time as what they are.
 * @param {string} url
 * @param {string} name of the class; empty for the one that is shown first
 * @returns {Promise<Samples>}
 */
const samplesAt = (url, name) => shared(url, async () => {
  const address = (/** @type {string} */ query) => `${url}${url.includes("?") ? "&" : "?"}${query}`;
  const imagesAt = async (/** @type {string} */ query) =>
    new Uint8Array(await (await get(address(query))).arrayBuffer());
  const first = asked ? undefined : imagesAt(`class=${encodeURIComponent(name)}`);
  asked = true;  // further models often share them
  first?.catch(() => {});  // the next request reports it
  /** @type {SamplesData & { missing?: string }} */
  const data = await (await get(url)).json();
  if (data.missing) throw new Error(data.missing);
  return shared(JSON.stringify(data), async () => {
    const samples = new Samples(data, (label) => imagesAt(`label=${label}`));
    const early = name || samples.usual;
    // Nothing comes for a class that the data do not have.
    await first?.then((images) => { if (images.length) samples.keep(early, images); }, () => {});
    return samples;
  });
});

/** @param {string} url @param {string} name of the file @returns {Promise<Checkpoint>} */
const checkpointAt = (url, name) => shared(url, async () =>
  readCheckpoint(await (await get(url)).arrayBuffer(), name));

/** A checkpoint whose networks the server computes. @param {string} url */
async function served(url) {
  const facts = await (await get(url)).json();
  return new ServedCheckpoint(facts, async (what, query, pixels) => {
    const link = `${url}/${what}?${new URLSearchParams(
      Object.entries(query).map(([name, value]) => [name, String(value)]))}`;
    const response = await get(link, { method: "POST", body: pixels });
    return new Float32Array(await response.arrayBuffer());
  });
}

/**
 * @param {string} key
 * @param {ModelData} data
 * @param {(error?: unknown) => void} report
 * @param {() => string} wanted the class that the link names
 * @returns {Model}
 */
function modelOf(key, data, report, wanted) {
  const { title, name, group, story, url, content, samples, networks } = data;
  const open = async () => {
    try {
      return await checkpointAt(url ?? `data:;base64,${content}`, `${key}.safetensors`);
    } catch (error) {
      if (error instanceof Unsupported) return shared(`${networks} ${url}`, () => served(networks));
      throw error;
    }
  };
  return { title, name, group, story, open, samples: async (checkpoint) => {
    report();
    try {
      return await samplesAt(samples, wanted());
    } catch (error) {
      report(error);
      return Samples.empty(await checkpoint);
    }
  } };
}

/** @param {Values} values */
function base64({ buffer, byteOffset, byteLength }) {
  let letters = "";
  for (const value of new Uint8Array(buffer, byteOffset, byteLength))
    letters += String.fromCharCode(value);
  return btoa(letters);
}

const early = JSON.parse(document.getElementById("early")?.textContent ?? "{}");
if (early.url) {  // what the first view needs, while Streamlit starts
  const name = new URL(early.url, location.href).pathname.split("/").at(-1) ?? "";
  for (const loading of [checkpointAt(early.url, name), samplesAt(early.samples, early.label)])
    loading.catch(() => {});  // the view tries again, and reports it
}

class Live {
  /** @type {LiveData | undefined} */
  data;
  /** @type {{ refresh: () => void, retry: () => void } | undefined} */
  shown;
  missing = "";  // a sentence about test images
  /** @type {WeakSet<Host>} */
  lacking = new WeakSet();  // hosts whose view lacks a part that has not arrived
  reported = "";  // the last report
  page = location.pathname;
  opening = Promise.resolve();  // the view that is opened last

  /** @param {HTMLElement} root */
  constructor(root) {
    this.problems = find(root, ".problems", HTMLElement);
    this.root = find(root, ".view", HTMLElement);
    /** @type {Host} */
    this.host = {
      models: {}, defaults: {}, link: "", uploads: true, upload: null, unlike: null,
      details: {},
      rest: () => {},
      report: (sentences) => this.say(sentences),
      open: (link) => this.open(link),
    };
    this.retry = this.retry.bind(this);
  }

  /**
   * @param {LiveData} data
   * @param {(report: Report) => void} tell
   */
  update(data, tell) {
    this.tell = tell;
    const { data: last, host } = this;
    this.data = data;
    host.models = Object.fromEntries(
      Object.entries(data.models).map(([key, model]) => [key, modelOf(key, model, (error) => {
        this.missing = error === undefined ? "" : messageOf(error);
        if (error instanceof Unreached) this.lacking.add(this.host);
        else this.lacking.delete(this.host);
      }, () => new URLSearchParams(data.link).get("class") ?? "")]));
    Object.assign(host, { defaults: data.defaults, details: data.details });
    if (data.upload !== last?.upload) host.upload = data.upload ? bytes(data.upload) : null;
    host.unlike = data.unlike ? bytes(data.unlike) : null;
    if (last && data.order === last.order) return this.shown?.refresh();
    this.reported = "";
    this.open(data.link);
    return undefined;
  }

  /**
   * Open the view, after the one before, or the last one to be loaded would stay.
   * @param {string} link
   */
  open(link) {
    const { view, order } = /** @type {LiveData} */ (this.data);
    // The view that is shown until the next one is loaded may still come to rest.
    const rest = (/** @type {string} */ shown, /** @type {Input} */ { pixels, label }) => {
      if (this.lacking.has(next)) return;  // its link, too, lacks what has not arrived
      next.link = shown;  // where the view opens again
      this.report({ link: shown, pixels: base64(pixels), label, order });
    };
    const next = this.host = { ...this.host, link, rest };
    this.opening = this.opening.then(async () => {
      if (next !== this.host) return;
      try {
        this.shown = await VIEWS[view](this.root, next);
      } catch (error) {
        if (error instanceof Unreached) this.lacking.add(next);
        reportFailure(next, error);
      }
    });
  }

  /** Try again what could not be loaded, once it is known what that is. */
  retry() {
    this.opening = this.opening.then(() => {
      if (this.lacking.has(this.host)) this.open(this.host.link);
      else if (recover(this.host)) this.shown?.retry();
    });
  }

  /**
   * Report where the view came to rest, if that is new, but not once another page was chosen.
   * @param {Report} report
   */
  report(report) {
    const text = JSON.stringify(report);
    if (text === this.reported || isLeft() || location.pathname !== this.page) return;
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
  const live = root.live ??= new Live(parentElement);
  line.addEventListener("back", live.retry);
  live.update(data, (report) => setStateValue("report", report));
  return () => line.removeEventListener("back", live.retry);
};
