// The chain: one input on its way through the network, with the numbers of the input and the step.
/**
 * @import { State } from "./parameters.js"
 * @import { Response } from "./response.js"
 * @import { Densities, Scale, View } from "../panels/types.js"
 * @import { Words } from "./words.js"
 */
import { largestValue } from "../engine/densembed.js";
import { unitOf } from "../panels/densities.js";
import { find, pointIn } from "../panels/dom.js";
import { Panel, fillHeading } from "../panels/panel.js";
import { fixed, percentage, withSign } from "../panels/text.js";
import { colours, scales } from "../resources.js";
import { Anatomy } from "./anatomy.js";
import { make } from "./controls.js";
import { explain } from "./glossary.js";
import { part } from "./host.js";
import { spriteOf } from "./pictures.js";
import { wordsOf } from "./words.js";

const DIM = 0.45;  // brightness of the picture under densities
const AMBER = "#f2b544";
const LINKS = ["picture", "micro", "units", "readings", "terms"];
const PARTS = ["mass", "ink", "product"];

export class Chain {
  /** @type {{ response: Response, current: number, label: number, state: State } | undefined} */
  shown;
  /** @type {number | null} */
  preview = null;  // the class under the pointer
  /** @type {string[]} */
  links = [];  // of the chain of this kind of network
  /** @type {Record<string, string>} */
  titles = {};

  /** @param {(changes: State) => void} set */
  constructor(set) {
    this.set = set;
    const { element, root } = part("chain");
    this.element = element;
    this.root = find(root, ".chain", HTMLElement);
    this.flow = find(root, ".flow", HTMLElement);
    this.thread = find(root, ".thread", SVGElement);
    /** @type {Record<string, Panel>} */
    this.panels = {};
    /** @type {Record<string, HTMLElement>} */
    this.captions = {};
    for (const name of [...LINKS, "scores"])
      this.captions[name] = find(root, `.${name} .caption`, HTMLElement);
    for (const name of LINKS) this.panels[name] = new Panel(
      find(root, `.${name} .figure`, HTMLElement), { choose: (unit) => this.choose(name, unit) });
    for (const name of PARTS)
      this.panels[name] = new Panel(find(root, `.sum .${name}`, HTMLElement));
    for (const name of ["units", "readings", "terms"]) this.follow(name);
    this.scores = find(root, ".scores .heading", HTMLElement);
    this.classes = find(root, ".classes", HTMLElement);
    this.sum = find(root, ".sum", HTMLElement);
    this.sumHeading = find(root, ".sum > .heading", HTMLElement);
    this.parts = find(root, ".parts", HTMLElement);
    this.equals = find(root, ".equals", HTMLElement);
    this.place = find(root, ".place", HTMLElement);
    this.table = find(root, "table", HTMLTableElement);
    new ResizeObserver(() => this.draw()).observe(this.root);
  }

  /** Click, or Enter at the place that the arrow keys have reached. @param {string} name */
  follow(name) {
    const { plot } = this.panels[name];
    plot.addEventListener("click", (event) => this.choose(name, null, pointIn(event, plot)));
    plot.addEventListener("keydown", (event) => {
      const { point } = this.panels[name];
      if (event.key !== "Enter" && event.key !== " " || !point) return;
      event.preventDefault();
      this.choose(name, null, point);
    });
  }

  /**
   * @param {string} name of the picture
   * @param {number | null} number of a density that was hit, from 1
   * @param {number[]} [point] in shares
   */
  choose(name, number, point) {
    if (name === "micro" || !this.anatomy) return;
    const unit = number === null ? this.unitAt(name, point ?? []) : number - 1;
    if (unit !== null) this.set({ unit: unit + 1 });
  }

  /**
   * The unit at a point of a picture; null if there is none.
   * @param {string} name
   * @param {number[]} point in shares
   */
  unitAt(name, [x = 0, y = 0]) {
    const { anatomy } = this;
    if (!anatomy) return null;
    if (name !== "units" || !this.placed) {
      const [rows, columns] = anatomy.grid;
      const unit = Math.floor(y * rows) * columns + Math.floor(x * columns);
      return unit < anatomy.count ? unit : null;
    }
    const [width, height] = anatomy.response.size;
    const { locations } = anatomy.result;
    let nearest = 0, least = Infinity;
    for (let k = 0; k < anatomy.count; k++) {
      const [across, down] = [locations[2 * k] - x * width, locations[2 * k + 1] - y * height];
      const distance = across ** 2 + down ** 2;
      if (distance < least) [nearest, least] = [k, distance];
    }
    return nearest;
  }

  /** Whether each unit has a place over the pixels. */
  get placed() {
    return this.anatomy?.kind === "moving" || this.anatomy?.kind === "fixed";
  }

  /**
   * @param {State} state
   * @param {Response} response
   * @param {number} current snapshot
   * @param {number} label the class whose score is shown
   */
  show(state, response, current, label) {
    if (this.shown?.response !== response || this.shown.current !== current)
      this.anatomy = new Anatomy(response, current);
    this.shown = { response, current, label, state };
    this.paint();
  }

  paint() {
    const { shown, anatomy } = this;
    if (!shown || !anatomy) return;
    const { response, state } = shown;
    this.label = this.preview ?? shown.label;
    const wanted = state.unit === null ? null : Number(state.unit) - 1;
    this.unit = wanted !== null && wanted < anatomy.count ? wanted : anatomy.strongest(shown.label);
    const words = wordsOf(anatomy, response.checkpoint.classes[this.label], this.unit);
    const links = Object.keys(this.captions).filter((name) => words.links[name]);
    this.links = links;
    this.root.style.setProperty("--links", String(links.length));
    links.forEach((name, k) => {
      const { caption } = words.links[name];
      explain(this.captions[name], caption);
      this.titles[name] = `${k + 1}: ${words.links[name].title}`;
    });
    for (const name of Object.keys(this.captions))
      find(this.root, `.link.${name}`, HTMLElement).hidden = !links.includes(name);
    this.showPictures(response, anatomy, words);
    this.showClasses(response, anatomy);
    this.showSum(response, anatomy, words);
    this.draw();
  }

  /** @param {Response} response @param {Anatomy} anatomy @param {Words} words */
  showPictures(response, anatomy, words) {
    const { label = 0, unit = 0 } = this;
    const { classes, inputShape } = response.checkpoint;
    const [channels, height, width] = inputShape;
    const pixels = /** @type {[number, number]} */ ([height, width]);
    const name = classes[label];
    const picture = { url: spriteOf([response.pixels], inputShape), opacity: 1 };
    const under = { url: spriteOf([response.pixels], inputShape, DIM), opacity: 1 };
    const common = { size: response.size, shape: pixels, title: "", note: "", alt: "" };
    const ink = this.inkScale("ink, 0 to 1", "ink");
    const terms = anatomy.terms(label);
    const bound = anatomy.bound;
    const evidence = this.signedScale(bound, `adds to the score of ${name}`, "");
    /** @type {Record<string, View>} */
    const views = {
      picture: { ...common, values: channels === 1 ? response.input : null,
        picture: channels === 1 ? null : picture, scale: ink, alt: "The picture," },
    };
    if (anatomy.micro) {
      const { locations, scales: own, readings } = anatomy.micro;
      views.micro = { ...common, values: null, picture: under,
        scale: { ...ink, name: "mean ink under each", stops: [[0, "#55595e"], [1, AMBER]] },
        densities: { loc: locations, scale: own, weights: readings,
          bound: Math.max(...readings) || 1, against: AMBER, favour: AMBER, chosen: null,
          name: "reading" }, alt: "Densities of the micro network," };
    }
    /** @type {Densities} */
    const densities = { loc: anatomy.result.locations, scale: anatomy.result.scales,
      weights: terms, bound, against: colours.against, favour: colours.for, chosen: unit + 1,
      name: `adds to the score of ${name}` };
    const dark = { ...evidence, stops: /** @type {Scale["stops"]} */ (
      [[0, colours.against], [0.5, "#55595e"], [1, colours.for]]) };
    if (this.placed) views.units = { ...common, values: null, picture: under, scale: dark,
      densities, alt: "Densities over the picture," };
    else if (words.links.units) {
      const map = anatomy.kind === "linear" ? anatomy.weights(label) : anatomy.map(unit);
      const most = largestValue(map, 100) || 1;
      // The weights of pixels are those of the grid for which the model was made.
      const [rows, columns] = anatomy.kind === "linear" ? anatomy.grid : pixels;
      views.units = { ...common, values: map, shape: [rows, columns],
        size: [columns, rows],
        scale: this.signedScale(most, words.map, "per unit of ink"), alt: `${words.map},` };
    }
    const [rows, columns] = anatomy.grid;
    const grid = { ...common, shape: /** @type {[number, number]} */ ([rows, columns]),
      size: /** @type {[number, number]} */ ([columns, rows]) };
    const padded = (/** @type {ArrayLike<number>} */ values) =>
      Float32Array.from({ length: rows * columns }, (_, k) => values[k] ?? 0);
    const about = (/** @type {number[]} */ point) => {
      const at = this.unitAt("readings", point);
      return at === null ? "" : `${words.unit} ${at + 1}\n${words.value} ${
        fixed(anatomy.values[at], 3)}\n${withSign(terms[at])} to the score of ${name}`;
    };
    const highest = anatomy.values.reduce((a, b) => Math.max(a, b));
    const most = this.placed ? 1 : highest || 1;
    if (words.links.readings) views.readings = { ...grid, values: padded(anatomy.values),
      tip: about, alt: words.alt,
      scale: { ...this.inkScale(words.scale, ""), high: most } };
    views.terms = { ...grid, values: padded(terms), tip: about, scale: evidence,
      alt: `What each ${words.unit} adds to the score,` };
    for (const [key, view] of Object.entries(views))
      this.panels[key].show({ ...view, title: this.titles[key] });
    for (const key of ["readings", "terms"]) {
      const [x, y] = [unit % columns, Math.floor(unit / columns)];
      const line = 0.012 * columns;
      this.panels[key].overlay.innerHTML = `<rect x="${x}" y="${y}" width="1" height="1"
        fill="none" stroke="${AMBER}" stroke-width="${Math.max(0.12, line)}"/>`;
    }
    this.moved(anatomy);
  }

  /** The way of the chosen density from its place for a blank picture. @param {Anatomy} anatomy */
  moved({ micro, result, response }) {
    const { unit = 0 } = this;
    const line = unitOf(response.size);
    if (!micro) return;
    const [x, y] = micro.start.locations.slice(2 * unit, 2 * unit + 2);
    const [u, v] = result.locations.slice(2 * unit, 2 * unit + 2);
    this.panels.units.overlay.insertAdjacentHTML("beforeend",
      `<circle cx="${x}" cy="${y}" r="${0.4 * line}" fill="none" stroke="#fff"
         stroke-width="${0.15 * line}"/>
       <line x1="${x}" y1="${y}" x2="${u}" y2="${v}" stroke="#fff" stroke-width="${0.18 * line}"
         stroke-dasharray="${0.5 * line} ${0.4 * line}"/>`);
  }

  /**
   * @param {string} name
   * @param {string} unit
   * @returns {Scale}
   */
  inkScale(name, unit) {
    return { low: 0, high: 1, name, unit, open: false, stops: scales.ink };
  }

  /**
   * @param {number} bound
   * @param {string} name
   * @param {string} unit
   * @returns {Scale}
   */
  signedScale(bound, name, unit) {
    return { low: -bound, high: bound, name, unit, open: false, stops: scales.signed };
  }

  /** @param {Response} response @param {Anatomy} anatomy */
  showClasses(response, anatomy) {
    const { classes } = response.checkpoint;
    const { logits, probabilities } = anatomy.result;
    fillHeading(this.scores, this.titles.scores, "score, probability");
    const most = Math.max(...logits.map(Math.abs)) || 1;
    const best = probabilities.indexOf(Math.max(...probabilities));
    if (this.classes.children.length !== classes.length)
      this.classes.replaceChildren(...classes.map((_, k) => this.classButton(k)));
    [...this.classes.querySelectorAll("button")].forEach((button, k) => {
      const share = 50 * logits[k] / most;
      button.ariaPressed = String(k === this.shown?.label);
      const [name, axis, score, percent] = button.children;
      name.className = `name${k === best ? " best" : ""}`;
      name.textContent = classes[k];
      const bar = /** @type {HTMLElement} */ (axis.firstElementChild);
      bar.style.cssText = `width: ${Math.abs(share)}%; left: ${50 + Math.min(0, share)}%; `
        + `background: ${share < 0 ? colours.against : colours.for}`;
      score.textContent = withSign(logits[k], 1);
      percent.textContent = percentage(probabilities[k]);
    });
  }

  /** @param {number} label */
  classButton(label) {
    const preview = (/** @type {number | null} */ shown) => {
      if (this.preview === shown) return;
      this.preview = shown;
      this.paint();
    };
    return make("li", {}, make("button", {
      type: "button",
      onclick: () => this.set({ for: this.shown?.response.checkpoint.classes[label] ?? null }),
      onpointerenter: (/** @type {PointerEvent} */ { pointerType }) => {
        if (pointerType === "mouse") preview(label);
      },
      onpointerleave: () => preview(null), onfocus: () => preview(label),
      onblur: () => preview(null),
    }, make("span"), make("span", { className: "axis" }, make("i")), make("span"), make("span")));
  }

  /**
   * The sum of the chosen unit.
   * @param {Response} response
   * @param {Anatomy} anatomy
   * @param {Words} words
   */
  showSum(response, anatomy, words) {
    const { unit = 0, label = 0 } = this;
    const { classes, inputShape: [channels, height, width] } = response.checkpoint;
    const common = { size: response.size, note: "", alt: "",
      shape: /** @type {[number, number]} */ ([height, width]) };
    fillHeading(this.sumHeading, words.sum, words.sumNote);
    this.sum.hidden = anatomy.kind === "linear";
    const map = anatomy.map(unit);
    const ink = anatomy.ink(unit);
    const product = map.map((value, k) => value * ink[k]);
    const most = largestValue(map, 100) || 1;
    const positive = this.placed;
    const scale = (/** @type {string} */ name, end = most) => positive
      ? { ...this.inkScale(name, ""), high: end, stops: scales.density }
      : this.signedScale(end, name, "");
    // A sum over the pixels of one plane; a hidden unit of colours has a sum over three.
    const whole = positive || anatomy.kind !== "maps" && channels === 1;
    this.parts.dataset.pictures = whole ? "3" : "1";
    for (const element of this.parts.querySelectorAll(".sign, .ink, .product"))
      element.toggleAttribute("hidden", !whole);
    this.panels.mass.show({ ...common, values: map, scale: scale(words.map), title: words.map,
      note: words.mapNote, alt: "" });
    if (whole) {
      this.panels.ink.show({ ...common, values: ink, scale: this.inkScale("ink, 0 to 1", "ink"),
        title: words.ink });
      const end = positive ? most : largestValue(product, 100) || 1;
      this.panels.product.show({ ...common, values: product, scale: scale(words.product, end),
        title: words.product });
    }
    explain(this.equals, words.equals);
    explain(this.place, words.place);
    const terms = classes.map((name, c) => {
      const weight = anatomy.weights(c)[unit];
      return make("tr", { className: c === label ? "now" : "" },
        make("th", { scope: "row" }, name), make("td", {}, withSign(weight)),
        make("td", { className: weight < 0 ? "against" : "for" },
          withSign(weight * anatomy.values[unit])));
    });
    const head = ["class", "weight", `weight × ${fixed(anatomy.values[unit], 3)}`];
    this.table.replaceChildren(make("thead", {},
      make("tr", {}, ...head.map((text) => make("th", { scope: "col" }, text)))),
    make("tbody", {}, ...terms));
  }

  /** The thread that follows the chosen unit from picture to picture. */
  draw() {
    const { anatomy, unit = 0, label = 0 } = this;
    if (!anatomy || !this.element.isConnected || this.element.hidden) return;
    const frame = this.root.getBoundingClientRect();
    const [width, height] = anatomy.response.size;
    const [rows, columns] = anatomy.grid;
    const place = (/** @type {string} */ name, /** @type {number} */ x,
      /** @type {number} */ y) => {
      const box = this.panels[name].plot.getBoundingClientRect();
      return [box.left - frame.left + x * box.width, box.top - frame.top + y * box.height];
    };
    const on = (/** @type {string} */ name, /** @type {ArrayLike<number>} */ loc,
      /** @type {number} */ k) => place(name, loc[2 * k] / width, loc[2 * k + 1] / height);
    const cell = (/** @type {string} */ name) => place(name, (unit % columns + 0.5) / columns,
      (Math.floor(unit / columns) + 0.5) / rows);
    const stops = this.placed ? [on("units", anatomy.result.locations, unit)] : [];
    if (this.links.includes("readings")) stops.push(cell("readings"));
    stops.push(cell("terms"));
    const row = this.classes.children[label]?.getBoundingClientRect();
    if (row) stops.push([row.left - frame.left, row.top - frame.top + row.height / 2]);
    const pulls = anatomy.micro ? anatomy.pulls(unit) : [];
    const strength = Math.hypot(...(pulls[0]?.by ?? [1]));
    const path = (/** @type {number[]} */ [x, y], /** @type {number[]} */ [u, v],
      /** @type {string} */ kind, /** @type {number} */ line) => {
      const middle = (x + u) / 2;
      return `<path class="${kind}" stroke-width="${line}"
        d="M${x} ${y}C${middle} ${y} ${middle} ${v} ${u} ${v}"/>`;
    };
    this.thread.innerHTML = [
      ...pulls.map(({ k, by }) => path(on("micro", anatomy.micro?.locations ?? [], k), stops[0],
        "pull", 0.8 + 1.6 * Math.hypot(...by) / strength)),
      ...stops.slice(1).map((to, k) => path(stops[k], to, "main", 1.8)),
    ].join("");
  }
}
