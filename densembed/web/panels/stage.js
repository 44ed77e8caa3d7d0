// What Explore and Compare share: panels and predictions at the place of a slider, which can play.
/** @import { Callbacks, StageData } from "./types.js" */
import { clip, fill, find, mark, write } from "./dom.js";
import { escape, percentage } from "./text.js";

export const REST = 400;  // ms without a move after which a place is reported
const FILM = 10_000;  // ms of the film of all steps, at speed 1
const SPEEDS = [0.5, 1, 2];
const CALM = 350;  // for readers who prefer reduced motion: fewer than three changes per second

/**
 * A button with a sign, and its name for screen readers and as a tooltip.
 * @param {string} sign
 * @param {string} name
 * @param {() => void} click
 */
function button(sign, name, click) {
  const element = document.createElement("button");
  Object.assign(element, { type: "button", textContent: sign, title: name, onclick: click });
  element.ariaLabel = name;
  return element;
}

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
  /** @type {{ bars: HTMLElement[], value: HTMLElement }[]} one per class */
  rows = [];
  /** @type {(label: number) => string} */
  words = () => "";

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
    this.play = find(root, ".steps .play", HTMLElement);
    this.slider = find(root, ".steps input", HTMLInputElement);
    this.output = find(root, ".steps output", HTMLElement);
    this.slider.oninput = () => { this.stop(); this.move(Number(this.slider.value)); };
    this.bars.onpointerover = ({ target }) => {
      const row = target instanceof Element && target.closest("li");
      if (row) row.title = this.words([...this.bars.children].indexOf(row));
    };
    this.play.onclick = () => (this.film ? this.stop() : this.start());
    this.repeat = button("↻", "Repeat", () => {
      this.repeat.ariaPressed = String(this.repeat.ariaPressed !== "true");
    });
    this.repeat.ariaPressed = "false";
    this.speed = document.createElement("select");
    this.addFilmControls();
  }

  /** A step back and forward, the speed of the film, and whether it repeats. */
  addFilmControls() {
    const go = (/** @type {number} */ by) => () => {
      this.stop();
      this.move(clip(this.index + by, 0, this.data.steps.length - 1));
    };
    const back = button("‹", "One step back", go(-1));
    const forward = button("›", "One step forward", go(1));
    this.speed.ariaLabel = this.speed.title = "Speed";
    this.speed.innerHTML = SPEEDS.map((speed) =>
      `<option value="${speed}"${speed === 1 ? " selected" : ""}>${speed} ×</option>`).join("");
    this.play.before(back);
    this.play.after(forward);
    this.output.after(this.speed, this.repeat);
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
    this.rows = [...this.bars.querySelectorAll("li")].map((row) => ({
      bars: [...row.querySelectorAll("div")], value: find(row, ".value", HTMLElement),
    }));
    this.bars.hidden = this.legend.hidden = !predicts;
  }

  /** @param {string[]} names one per colour */
  fillLegend(names) {
    const entries = names.map((name, k) =>
      `<span><i style="background: ${this.data.colours[k]}"></i>${escape(name)}</span>`);
    if (this.data.right !== null) entries.push("<small>◂ right answer</small>");
    fill(this.legend, entries.join(""));
  }

  /**
   * The predictions at one moment.
   * @param {number[][]} rows probabilities of the classes, for each colour
   * @param {(shares: string[]) => string} words for the probabilities of one class
   */
  fillBars(rows, words) {
    const last = rows[rows.length - 1];
    this.rows.forEach(({ bars, value }, k) => {
      // A scale, not a width: the page need not be laid out.
      bars.forEach((bar, n) => { bar.style.transform = `scaleX(${rows[n][k].toFixed(4)})`; });
      write(value, percentage(last[k]));
    });
    this.words = (k) =>
      `${this.data.classes[k]}: ${words(rows.map((row) => row[k].toFixed(3)))}`;
  }

  /** @param {number} index */
  place(index) {
    return `${this.data.by} ${this.data.steps[index].toLocaleString("en")}`;
  }

  draw() {
    this.show(this.index);
    this.slider.value = String(this.index);
    write(this.output, this.place(this.index));
    mark(this.root, "data-step", String(this.data.steps[this.index]));
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
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.move(this.index < last ? this.index : 0);
    let place = this.index / last;  // in shares of the film
    /** @type {number | undefined} */
    let before;
    const tick = (/** @type {number} */ now) => {
      before ??= now;
      if (!calm || now - before >= CALM) {
        // The last step is shown for as long as the others before the film begins again.
        if (this.index === last && place >= 1 + 1 / last) place = 0;
        else place += (now - before) * Number(this.speed.value) / FILM;
        before = now;
      }
      const index = Math.min(last, Math.floor(place * last + 1e-9));
      if (index !== this.index) this.move(index);
      if (index < last || this.repeat.ariaPressed === "true")
        this.film = requestAnimationFrame(tick);
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
