// A static site: Explore and Compare in one page, without a server.
/**
 * @import { Checkpoint } from "../engine/densembed.js"
 * @import { Host, Model } from "./host.js"
 * @import { Values } from "./kinds.js"
 * @import { SamplesData } from "./samples.js"
 */
import { describe, readCheckpoint } from "../engine/densembed.js";
import { bytes } from "../panels/unpack.js";
import { compare } from "./compare.js";
import { make } from "./controls.js";
import { explore } from "./explore.js";
import { messageOf, once } from "./host.js";
import { isSignal, nounsOf, othersOf } from "./kinds.js";
import { OWN_FILE } from "./parameters.js";
import { Samples } from "./samples.js";

/**
 * @typedef {object} Stated what the page says of a model before it is loaded
 * @property {string} title
 * @property {string} story
 * @property {string | null} script
 * @property {string[]} classes
 * @property {number[]} shape of an input
 */

/**
 * @typedef {object} Site what Python wrote into the page
 * @property {Record<string, Stated>} models
 * @property {(SamplesData & { images: string })[]} samples of several data sets
 * @property {string[]} inputs names of the parameters of an input
 * @property {string} [link] where the page opens without a link of its own
 * @property {string} [upload] the picture of a page with one view, in base 64
 * @property {string} [signal] or its signal, with 32 bits per value
 */

/** @typedef {{ refresh: () => void, take: (key: string) => Promise<void> }} Shown */

/** @type {Record<string, { start: (root: HTMLElement, host: Host) => Promise<Shown>,
 *   title: string, text: string }>} */
const VIEWS = {
  explore: { start: explore, title: "What does this network look at?",
    text: "" },
  compare: { start: compare, title: "What differs between these models?",
    text: "One input, one slider and one colour scale: where each model looks, and what it "
      + "predicts." },
};

/** The parameter of each view that names the model whose inputs it shows. */
const MODEL = { explore: "model", compare: "first" };

/** @typedef {keyof typeof MODEL} View */

/** @param {string} view @param {string} parameters */
const linkOf = (view, parameters) => `#${view}${parameters && `?${parameters}`}`;

/** The kind of a model's inputs. @param {string[]} classes @param {number[]} shape */
const kindOf = (classes, shape) => JSON.stringify([classes, shape]);

/** The key of a visitor's file, of which there may be several. @param {string} file */
const keyOf = (file, number = 1) =>
  `${OWN_FILE}${file.replace(/\.safetensors$/, "")}${number > 1 ? `-${number}` : ""}`;

/** @param {Site} site */
export function start(site) {
  const { hash, pathname, search } = location;
  if (!hash && site.link) history.replaceState(null, "", `#${site.link}`);
  // As in a link of the app, where the parameters of Explore follow its address.
  else if (!hash && search) history.replaceState(null, "", `${pathname}#explore${search}`);
  new Page(site).open();
}

class Page {
  /** @type {Shown | null} */
  view = null;
  /** The last link of each view. @type {Record<View, string>} */
  links = { explore: "", compare: "" };

  /** @param {Site} site */
  constructor(site) {
    this.samples = site.samples.map(samplesOf);
    const [notices, heading, text, main] = ["notices", "title", "text", "view"].map((id) =>
      /** @type {HTMLElement} */ (document.getElementById(id)));
    this.notices = notices;
    this.missing = "";  // a sentence about test inputs
    this.unknown = "";  // a sentence about the view in the link
    this.heading = heading;
    this.text = text;
    this.main = main;
    /** @type {Record<string, Model>} */
    const models = {};
    this.inputs = site.inputs;
    /** The kind of inputs of each model. @type {Record<string, string>} */
    this.kinds = {};
    for (const [key, { title, story, script, classes, shape }] of Object.entries(site.models)) {
      models[key] = this.model(title, story, once(async () =>
        readCheckpoint(await contentOf(key, script), `${key}.safetensors`)));
      this.kinds[key] = kindOf(classes, shape);
    }
    /** @type {Host} */
    this.host = {
      models,
      defaults: {},
      link: "",
      uploads: site.upload !== undefined,
      upload: uploadOf(site),
      unlike: null,
      details: {},
      rest: (parameters) => {
        const { view } = this.place;
        history.replaceState(null, "", linkOf(view, parameters));
        this.relate(view, parameters);
      },
      report: (sentences) => this.report(sentences),
      open: (parameters) => { location.hash = `${this.place.view}?${parameters}`; },
    };
    /** @type {NodeListOf<HTMLAnchorElement>} */
    this.menu = document.querySelectorAll("nav a");
    addEventListener("hashchange", () => this.open());
    this.acceptFiles();
  }

  /** The view and its parameters in the link. */
  get place() {
    const [written, ...rest] = location.hash.slice(1).split("?");
    const name = written.toLowerCase();
    /** @type {View} */
    const view = name === "compare" ? name : "explore";
    const unknown = name && name !== view
      ? `There is no page “${written.slice(0, 40)}”, so Explore is shown.` : "";
    const parameters = new URLSearchParams(rest.join("?"));
    parameters.delete("tour");  // of a link of the app, which alone has one
    return { view, parameters: parameters.toString(), unknown };
  }

  async open() {
    const { view, parameters, unknown } = this.place;
    this.view = null;
    this.host.link = parameters;
    this.unknown = unknown;
    const { title, text, start: begin } = VIEWS[view];
    this.report([]);
    document.title = `${view[0].toUpperCase()}${view.slice(1)} – densembed`;
    this.heading.textContent = title;
    this.text.textContent = text;
    this.text.hidden = !text;
    this.relate(view, parameters);
    const root = make("div");
    this.main.replaceChildren(root);
    // A view that has been left may still load a file or come to rest.
    const { rest, report } = this.host;
    /** @type {Host} */
    const host = { ...this.host,
      rest: (link, input) => { if (root.isConnected) rest(link, input); },
      report: (sentences) => { if (root.isConnected) report(sentences); } };
    try {
      const begun = await begin(root, host);
      if (root.isConnected) this.view = begun;
    } catch (error) {
      host.report([messageOf(error)]);
    }
  }

  /**
   * Make the menu lead to the other view as it was left, with the input of this one.
   * @param {View} view
   * @param {string} parameters
   */
  relate(view, parameters) {
    this.links[view] = parameters;
    const other = view === "explore" ? "compare" : "explore";
    const from = new URLSearchParams(parameters);
    const to = new URLSearchParams(this.links[other]);
    if (this.kindIn(view, from) === this.kindIn(other, to)) for (const name of this.inputs) {
      to.delete(name);
      if (from.has(name)) to.set(name, from.get(name) ?? "");
    }
    for (const link of this.menu) {
      const isCurrent = link.hash.startsWith(`#${view}`);
      link.toggleAttribute("aria-current", isCurrent);
      link.hash = isCurrent ? view : linkOf(other, `${to}`);
    }
  }

  /** The kind of inputs that a view shows. @param {View} view @param {URLSearchParams} link */
  kindIn(view, link) {
    return this.kinds[link.get(MODEL[view]) ?? Object.keys(this.kinds)[0]];
  }

  /** @param {string[]} sentences */
  report(sentences) {
    const all = [this.unknown, this.missing, ...sentences].filter(Boolean);
    this.notices.replaceChildren(...all.map((sentence) => make("p", {}, sentence)));
    this.notices.hidden = !all.length;
  }

  /**
   * A model with the test images of the site that it takes, if any; else with one empty picture.
   * @param {string} title
   * @param {string} story
   * @param {() => Promise<Checkpoint>} open
   * @param {string} [group]
   * @returns {Model}
   */
  model(title, story, open, group = "Included models") {
    const samples = async (/** @type {Promise<Checkpoint>} */ opening) => {
      const checkpoint = await opening;
      const { classes, inputShape } = checkpoint;
      const taken = this.samples.find((own) => classes.join() === own.classes.join()
        && !othersOf(inputShape, own));
      this.missing = taken || this.host.upload ? ""
        : `This page has no ${nounsOf(inputShape).test}s for this model. In place of them is a `
          + `blank ${isSignal(inputShape) ? "signal, the mean of its training data" : "picture"}.`;
      return taken ?? Samples.empty(checkpoint);
    };
    return { title, name: "", group, story, open, samples };
  }

  /** Checkpoints that are dropped onto the page, or chosen by the button. */
  acceptFiles() {
    const input = /** @type {HTMLInputElement} */ (document.getElementById("file"));
    input.onchange = () => { this.take(input.files); input.value = ""; };
    addEventListener("dragover", (event) => event.preventDefault());
    addEventListener("drop", (event) => {
      event.preventDefault();
      this.take(event.dataTransfer?.files);
    });
  }

  /** Which of several files of one name the next one is. @param {string} file */
  numberOf(file) {
    let number = 1;
    while (keyOf(file, number) in this.host.models) number += 1;
    return number;
  }

  /** @param {FileList | null | undefined} files */
  async take(files) {
    const problems = [];
    let last = "";
    for (const file of [...files ?? []]) {  // the list is emptied while a file is read
      try {
        const checkpoint = readCheckpoint(await file.arrayBuffer(), file.name);
        const number = this.numberOf(file.name);
        last = keyOf(file.name, number);
        const title = `${describe(checkpoint.config.model)} · your file ${
          file.name}${number > 1 ? ` (${number})` : ""}`;
        const story = "Your file, which stays in this browser. Links to it work only here, until "
          + "the page is closed.";
        this.kinds[last] = kindOf(checkpoint.classes, checkpoint.inputShape);
        this.host.models[last] = this.model(title, story, async () => checkpoint,
          "Your files");
      } catch (error) {
        problems.push(messageOf(error));
      }
    }
    if (last) {
      const { view, parameters } = this.place;
      const link = new URLSearchParams(parameters);
      link.set(view === "compare" ? "first" : "model", last);
      history.replaceState(null, "", `#${view}?${link}`);
      this.view?.refresh();
      await (this.view?.take(last) ?? this.open());  // there is no view if it could not be opened
    }
    if (problems.length) this.report(problems);
  }
}

/** @param {SamplesData & { images: string }} data */
function samplesOf({ images, ...data }) {
  const content = bytes(images);
  const count = data.counts.reduce((sum, each) => sum + each, 0);
  const size = content.length / count;  // bytes of one
  return new Samples(data, async (label) => {
    const before = data.counts.slice(0, label).reduce((sum, each) => sum + each, 0);
    return content.slice(before * size, (before + data.counts[label]) * size);
  });
}

/** The input of a page with one view. @param {Site} site @returns {Values | null} */
function uploadOf({ upload, signal }) {
  if (signal !== undefined) return new Float32Array(bytes(signal).buffer);
  return upload === undefined ? null : bytes(upload);
}

/**
 * The content of a checkpoint: a script, which a page from `file:` may load, too, sets it.
 * @param {string} key
 * @param {string | null} script its address; null if the page itself contains the checkpoint
 * @returns {Promise<ArrayBuffer>}
 */
async function contentOf(key, script) {
  const page = /** @type {{ checkpoints?: Record<string, string> }} */ (globalThis);
  if (script !== null) await new Promise((resolve, reject) => {
    const element = make("script", { src: script, onload: resolve });
    element.onerror = () => reject(new Error(
      `The file ${script} could not be loaded. Check the connection, and choose the model again or `
      + "reload the page."));
    document.head.append(element);
  });
  const content = page.checkpoints?.[key];
  if (content === undefined) throw new Error(`The file of ${key} is damaged.`);
  return bytes(content).buffer;
}
