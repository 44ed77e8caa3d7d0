// What Explore and Compare share: panels and predictions at the place of a slider, which can play.
/** @import { Callbacks, StageData } from "./types.js" */
import { fill, find } from "./dom.js";
import { escape } from "./text.js";

export const REST = 400;  // ms without a move after which a place is reported
const FRAME = 70;  // ms per step of the film
const CALM = 350;  // for readers who prefer reduced motion: fewer than three changes per second

/**
 * An arrangement of panels. A subclass unpacks what is new in its data, shows its panels at an
 * index of the slider, and names the `parts` that a link may hide.
 * @template {StageData} Data
 */
export class Stage {
  /** @type {Record<string, string>} */
  parts = {};
  index = 0;
  /** @type {Data | undefined} */
  previous;
  /** @type {number | undefined} */
  reported;  // the step as the server knows it
  listed = "";

  /** @param {HTMLElement} root @param {Data} data */
  constructor(root, data) {
    this.root = root;
    this.data = data;
    /** @type {Callbacks} */
    this.callbacks = {};
    this.prediction = find(root, ".opinion .heading", HTMLElement);
    this.spoken = find(root, "[aria-live]", HTMLElement);
    this.bars = find(root, ".bars", HTMLElement);
    this.legend = find(root, ".legend", HTMLElement);
    this.play = find(root, ".steps button", HTMLElement);
    this.slider = find(root, ".steps input", HTMLInputElement);
    this.output = find(root, ".steps output", HTMLElement);
    this.slider.oninput = () => { this.stop(); this.move(Number(this.slider.value)); };
    this.play.onclick = () => (this.film ? this.stop() : this.start());
  }

  /**
   * Take new data; `previous` is undefined at first.
   * @param {Data} _data
   * @param {Data} [_previous]
   */
  unpack(_data, _previous) {}

  /** @param {number} _index */
  show(_index) {}

  /** @param {Data} data @param {Callbacks} callbacks */
  update(data, callbacks) {
    this.callbacks = callbacks;
    this.unpack(data, this.previous);
    this.data = data;
    this.slider.max = String(data.steps.length - 1);
    this.list();
    for (const [name, part] of Object.entries(this.parts))
      for (const each of this.root.querySelectorAll(part))
        each.toggleAttribute("hidden", data.hidden.includes(name));
    // Otherwise the server repeats what this slider reported, or the place before it.
    if (data.step !== this.reported && data.step !== this.previous?.step
        || String(data.steps) !== String(this.previous?.steps)) {
      this.reported = data.step;
      this.index = data.steps.indexOf(data.step);
      clearTimeout(this.resting);
      this.stop();
    }
    this.previous = data;
    this.draw();
  }

  /** The classes, with a bar per prediction. */
  list() {
    const { classes, right, predicts, colours } = this.data;
    const key = JSON.stringify([classes, right, !predicts, colours]);
    if (this.listed === key) return;
    this.listed = key;
    this.root.style.setProperty("--opinions", String(colours.length));
    this.bars.innerHTML = classes.map((name, k) => `<li><span class="name${k === right ?
      " right" : ""}">${escape(name)}${k === right ? " ◂" : ""}</span><span class="track">${
      colours.map((colour) => `<div style="background: ${colour}"></div>`).join("")
      }</span><span class="value"></span></li>`).join("");
    this.bars.hidden = this.legend.hidden = !predicts;
  }

  /** @param {string[]} names one per colour */
  fillLegend(names) {
    fill(this.legend, names.map((name, k) =>
      `<span><i style="background: ${this.data.colours[k]}"></i>${escape(name)}</span>`).join(""));
  }

  /**
   * The predictions at one moment.
   * @param {number[][]} rows probabilities of the classes, for each colour
   * @param {(shares: string[]) => string} words for the probabilities of one class
   */
  fillBars(rows, words) {
    [...this.bars.querySelectorAll("li")].forEach((bar, k) => {
      const shares = rows.map((row) => row[k]);
      [...bar.querySelectorAll("div")].forEach((each, n) => {
        each.style.width = `${100 * shares[n]}%`;
      });
      const percent = (100 * shares[rows.length - 1]).toFixed(0);
      find(bar, ".value", HTMLElement).textContent = `${percent} %`;
      bar.title = `${this.data.classes[k]}: ${words(shares.map((share) => share.toFixed(3)))}`;
    });
  }

  /** @param {number} index */
  place(index) {
    return `${this.data.by} ${this.data.steps[index].toLocaleString("en")}`;
  }

  draw() {
    this.show(this.index);
    this.slider.value = String(this.index);
    this.output.textContent = this.place(this.index);
    this.root.dataset.step = String(this.data.steps[this.index]);
    // A screen reader hears the predictions where they come to rest.
    this.spoken.ariaBusy = "true";
    clearTimeout(this.speaking);
    this.speaking = setTimeout(() => { this.spoken.ariaBusy = "false"; }, REST);
  }

  /** @param {number} index */
  move(index) {
    this.index = index;
    this.draw();
    clearTimeout(this.resting);
    this.resting = setTimeout(() => {
      const step = this.data.steps[this.index];
      if (this.film || this.reported === step) return;
      this.reported = step;
      this.callbacks.step?.(step);
    }, REST);
  }

  start() {
    const last = this.data.steps.length - 1;
    if (!last) return;
    this.play.textContent = "Pause";
    const frame = matchMedia("(prefers-reduced-motion: reduce)").matches ? CALM : FRAME;
    const from = this.index < last ? this.index : 0;
    /** @type {number | undefined} */
    let start;
    this.move(from);
    const tick = (/** @type {number} */ now) => {
      start ??= now;
      const index = Math.min(last, from + Math.floor((now - start) / frame));
      if (index !== this.index) this.move(index);
      if (index < last) this.film = requestAnimationFrame(tick);
      else this.stop();
    };
    this.film = requestAnimationFrame(tick);
  }

  stop() {
    if (!this.film) return;
    cancelAnimationFrame(this.film);
    this.film = 0;
    this.play.textContent = "Play";
    this.move(this.index);
  }
}

/**
 * @template Data
 * @typedef {(parent: HTMLElement, data: Data, callbacks?: Callbacks) => void} Mount
 */

/**
 * A function that shows data in the `.stage` below an element, and keeps the arrangement there.
 * @template Data
 * @param {new (root: HTMLElement, data: Data) =>
 *   { update: (data: Data, callbacks: Callbacks) => void }} Arrangement
 * @returns {Mount<Data>}
 */
export const mounter = (Arrangement) => (parent, data, callbacks = {}) => {
  /** @type {HTMLElement & { stage?: InstanceType<typeof Arrangement> }} */
  const root = find(parent, ".stage", HTMLElement);
  root.stage ??= new Arrangement(root, data);
  root.stage.update(data, callbacks);
};
