// In five steps: what a density is, what it reads, and how a hundred of them read a picture.
/**
 * @import { Host } from "./host.js"
 * @import { State } from "./parameters.js"
 * @import { Response } from "./response.js"
 * @import { Samples } from "./samples.js"
 * @import { Scale, View } from "../panels/types.js"
 */
import { largestValue, percentile } from "../engine/densembed.js";
import { FAMILIES } from "../engine/families.js";
import { densitiesAt, masses } from "../engine/separable.js";
import { counted } from "../engine/text.js";
import { onGrid } from "../input/grid.js";
import { clip, follow, pointIn } from "../panels/dom.js";
import { mount as mountStills } from "../panels/stills.js";
import { fixed, percentage } from "../panels/text.js";
import { colours, scales } from "../resources.js";
import { Anatomy } from "./anatomy.js";
import { make, slider } from "./controls.js";
import { explain, literal, withoutDensities } from "./glossary.js";
import { offers, part, whenLoaded } from "./host.js";
import { incomplete } from "./lead.js";
import { spriteOf } from "./pictures.js";
import { RESOLUTION, TOP } from "./response.js";
import { tie } from "./words.js";

export const CHAPTERS = 5;
const FAMILY = "logistic";
const DIM = 0.45;  // brightness of the picture under densities
const OTHERS = 2;  // further pictures for which the densities are shown
/**
 * @typedef {{ title: string, text: string, equation: string, figures: View[], say?: string }} Page
 */

/**
 * The ink of each pixel; of a picture with several channels, their mean.
 * @param {Response} response
 */
function inkOf({ input, size: [width, height] }) {
  const pixels = width * height;
  const channels = input.length / pixels;
  const ink = new Float32Array(pixels);
  input.forEach((value, k) => { ink[k % pixels] += value / channels; });
  return ink;
}

/** What the input is called, which is blank without test images. @param {Response} response */
const nameOf = ({ pixels }) => pixels.some(Boolean) ? "this picture" : "a blank picture";

export class Story {
  /** Place and width of the bump, in shares of the picture. */
  bump = { across: 0.5, down: 0.36, width: 0.06 };
  chapter = 1;

  /**
   * @param {Host} host
   * @param {(changes: State) => void} set
   * @param {() => void} play
   */
  constructor(host, set, play) {
    this.host = host;
    this.set = set;
    this.play = play;
    this.heading = make("h2", { tabIndex: -1 });
    this.text = make("p");
    this.say = make("p", { className: "said", ariaLive: "polite" });
    const range = { low: 0, high: 1, step: 0.01 };
    const move = (/** @type {"across" | "down" | "width"} */ name) =>
      (/** @type {number} */ value) => { this.bump[name] = value; this.set({}); };
    const percent = (/** @type {number} */ value) => `${Math.round(100 * value)} %`;
    this.sliders = {
      across: slider("From left to right", range, percent, move("across")),
      down: slider("From top to bottom", range, percent, move("down")),
      width: slider("Width", { low: 0.01, high: 0.25, step: 0.01 }, percent, move("width")),
    };
    this.bench = make("div", { className: "bench" },
      ...Object.values(this.sliders).map(({ element }) => element));
    this.watch = make("button", { type: "button", onclick: () => this.play() },
      "▶ Watch it learn");
    this.equation = make("code");
    this.deeper = make("details", { className: "deeper" }, make("summary", {}, "The equation"),
      this.equation);
    this.back = make("button", { type: "button", onclick: () => this.go(this.chapter - 1) },
      "Back");
    this.next = make("button", { type: "button", className: "next",
      onclick: () => this.go(this.chapter + 1) }, "Next");
    this.count = make("span", { className: "count" });
    this.stills = part("stills");
    this.stills.root.onpointerdown = (event) => this.drag(event);
    this.element = make("section", { className: "story", ariaLabel: "In five steps" },
      make("div", { className: "words" }, this.heading, this.text, this.say, this.bench,
        this.watch, this.deeper,
        make("div", { className: "bar" }, this.back, this.next, this.count)),
      this.stills.element);
  }

  /** @param {number} chapter */
  go(chapter) {
    if (chapter > CHAPTERS) return this.set({ more: "about" });
    this.set({ chapter });
    return requestAnimationFrame(() => requestAnimationFrame(() => this.heading.focus()));
  }

  /** Drag the bump over the picture. @param {PointerEvent} event */
  drag(event) {
    const plot = event.target instanceof Element && event.target.closest(".plot");
    if (!(plot instanceof HTMLElement) || event.button || !event.isPrimary || this.chapter > 2)
      return;
    event.preventDefault();
    const { root } = this.stills;
    const move = (/** @type {PointerEvent} */ at) => {
      const [x, y] = pointIn(at, plot).map((share) => clip(share));
      Object.assign(this.bump, { across: x, down: y });
      this.set({});
    };
    move(event);
    follow(root, event, move);
  }

  /**
   * @param {State} state
   * @param {Response} response
   * @param {number} current snapshot
   * @param {Samples} samples
   */
  show(state, response, current, samples) {
    this.chapter = Number(state.chapter);
    this.response = response;
    const chapters = [
      () => this.one(response), () => this.reading(response),
      () => this.hundred(response, current), () => this.moving(response, state, samples),
      () => this.learning(response, current),
    ];
    const { title, text, say = "", equation, figures } = chapters[this.chapter - 1]();
    this.heading.textContent = `${this.chapter}. ${title}`;
    explain(this.text, text);
    explain(this.say, say);
    this.say.hidden = !say;
    this.equation.textContent = equation;
    this.bench.hidden = this.chapter > 2;
    this.watch.hidden = this.chapter < CHAPTERS;
    for (const [name, { show }] of Object.entries(this.sliders))
      show(this.bump[/** @type {"across" | "down" | "width"} */ (name)]);
    this.back.disabled = this.chapter === 1;
    this.next.textContent = this.chapter < CHAPTERS ? "Next" : "See all of it at once";
    this.count.textContent = `${this.chapter} of ${CHAPTERS}`;
    this.element.classList.toggle("draggable", this.chapter <= 2);
    mountStills(this.stills.root, { columns: figures.length, shared: null, figures });
  }

  /**
   * The bump over the picture: its field, its mass per pixel, and its reading.
   * @param {Response} response
   */
  bumpOn(response) {
    const { size: [width, height] } = response;
    const ink = inkOf(response);
    const { across, down, width: share } = this.bump;
    const family = FAMILIES.get(FAMILY);
    if (!family) throw new Error(`There is no family ${FAMILY}.`);
    const loc = Float64Array.of(across * width, down * height);
    const scale = Float64Array.of(share * width, share * height);
    const along = (/** @type {typeof masses} */ fill, /** @type {number} */ cells) => {
      const rows = new Float64Array(height * cells);
      const columns = new Float64Array(width * cells);
      fill(family, loc, scale, 2, 1, height, height * cells, rows);
      fill(family, loc, scale, 2, 0, width, width * cells, columns);
      return Float32Array.from({ length: rows.length * columns.length },
        (_, k) => rows[Math.floor(k / columns.length)] * columns[k % columns.length]);
    };
    const mass = along(masses, 1);
    const product = mass.map((value, k) => value * ink[k]);
    return { field: along(densitiesAt, RESOLUTION), mass, ink, product,
      reading: product.reduce((sum, value) => sum + value, 0) };
  }

  /**
   * @param {number} high
   * @param {string} name
   * @param {string} unit
   * @param {Scale["stops"]} [stops]
   * @returns {Scale}
   */
  scale(high, name, unit, stops = scales.density) {
    return { low: 0, high: high || 1, name, unit, open: false, stops };
  }

  /** @param {Response} response @returns {Page} */
  one(response) {
    const { field, reading } = this.bumpOn(response);
    const { shape, size, checkpoint } = response;
    return { title: "One bump",
      text: "Many networks have a weight for every pixel. A network with density layers has bumps, "
        + "called [densities|density]. A bump reads the part of the picture that it covers. "
        + "*Drag it* over the picture.",
      say: `Under the bump the picture has *${(100 * reading).toFixed(0)} %* [ink].`,
      equation: "φ(t, u) = f((t − μ₁) / s₁) / s₁ · f((u − μ₂) / s₂) / s₂, "
        + "with f(z) = e⁻ᶻ / (1 + e⁻ᶻ)² (eq. 20)",
      figures: [{ values: field, shape, size, title: "a bump over the picture",
        note: "", hint: "drag to move it", alt: "A density over the picture,",
        picture: { url: spriteOf([response.pixels], checkpoint.inputShape), opacity: 0.62 },
        scale: this.scale(largestValue(field, 100), "density per pixel²", "per pixel²") }] };
  }

  /** @param {Response} response @returns {Page} */
  reading(response) {
    const { mass, ink, product, reading } = this.bumpOn(response);
    const [width, height] = response.size;
    const high = largestValue(mass, 100);
    /** @type {(values: Float32Array, title: string, note: string, scale: Scale) => View} */
    const view = (values, title, note, scale) => ({ values, shape: [height, width],
      size: [width, height], title, note, scale, alt: `${title}, a heatmap,` });
    return { title: "Its reading",
      text: "The [reading] of a bump is one number: the mean [ink] under it. In "
        + "each pixel the [mass] of the bump is multiplied by the ink, and all products are added. "
        + "On a stroke the reading is high, far from every stroke close to 0.",
      say: `The sum of all products is the reading: *${reading.toFixed(3)}*.`,
      equation: "Γₘₙ = (F(m) − F(m − 1)) · (F(n) − F(n − 1)) is the exact mass in a pixel (eq. 8), "
        + "and Γx = Σ Γₘₙ xₘₙ is the reading (eq. 5)",
      figures: [
        { hint: "drag to move it", ...view(mass, "mass of the bump", "",
          this.scale(high, "mass per pixel", "in this pixel")) },
        view(ink, "× ink", response.input.length > ink.length ? "mean of the channels" : "",
          this.scale(1, "ink, 0 to 1", "ink", scales.ink)),
        view(product, "= product", "their sum is the reading",
          this.scale(high, "mass × ink", "in this pixel")),
      ] };
  }

  /** @param {Response} response @param {number} current @returns {Page} */
  hundred(response, current) {
    const { checkpoint, shape, size } = response;
    const { classes } = checkpoint;
    const anatomy = new Anatomy(response, current);
    const { probabilities, logits } = anatomy.result;
    const label = probabilities.indexOf(Math.max(...probabilities));
    const name = classes[label];
    const count = anatomy.network.densities;
    const plain = literal(name);
    const says = tie(classes, logits)
      ?? `For ${nameOf(response)}, the [score] of ${plain} is ${fixed(logits[label], 1)}, the `
      + `highest: the network predicts *${plain}*, with ${percentage(probabilities[label])}.`;
    const equation = checkpoint.hasDensities ? "score of class c = Σᵢ w_ci (Γx)ᵢ + b_c (eq. 4)"
      : "score of class c = Σᵢ w_ci hᵢ + b_c, where h is what the last layer reads";
    const other = offers(this.host, "-EL")
      ? " To see many bumps, choose a model with EL in its name." : "";
    if (!checkpoint.hasDensities) return { title: "Many readings", equation, say: says,
      text: `${withoutDensities(anatomy.network.onPixels, "pixel")}.${other}`,
      figures: this.fields(response, [current]) };
    const shares = classes.map((_, k) => anatomy.shares(k));
    const bound = shares.reduce((most, each) => Math.max(most, largestValue(each, 100)), 0) || 1;
    const bumps = counted(count, "bump");
    return { title: count === 100 ? "A hundred bumps" : bumps, say: says, equation,
      text: count === 1
        ? "The network has 1 bump, which is its [receptive field]: *bright is where the network "
          + "looks*. Each class has a [weight] for its reading, and the reading times the weight "
          + "is the [score] of the class. The highest score wins."
        : `The network has ${bumps}. Their sum is its [receptive field]: it is bright where many `
          + "bumps lie together, so *bright is where the network looks*. Each class has a "
          + "[weight] for every reading; readings times weights, added up, are the [score] of the "
          + "class. The highest score wins.",
      figures: [{ values: null, shape, size, title: bumps, alt: "Densities as ellipses,",
        note: `red raises the score of ${name}, blue lowers it`,
        picture: { url: spriteOf([response.pixels], checkpoint.inputShape, DIM), opacity: 1 },
        densities: { loc: anatomy.result.locations, scale: anatomy.result.scales,
          weights: shares[label], bound, against: colours.against,
          favour: colours.for, chosen: null, name: `adds to the score of ${name}` },
        scale: { low: -bound, high: bound, name: `adds to the score of ${name}`, unit: "",
          open: false, stops: [[0, colours.against], [0.5, "#55595e"], [1, colours.for]] } },
      ...this.fields(response, [current])] };
  }

  /**
   * Fields at some snapshots, on one scale.
   * @param {Response} response
   * @param {number[]} snapshots
   * @returns {View[]}
   */
  fields(response, snapshots) {
    const { checkpoint, shape, size } = response;
    const scale = { ...this.scale(response.top(snapshots), "density per pixel²", "per pixel²"),
      open: true };
    return snapshots.map((k) => ({ values: response.field(k), shape, size, scale,
      title: snapshots.length > 1 ? checkpoint.moment(checkpoint.steps[k])
        : checkpoint.hasDensities ? "their sum" : "field",
      note: snapshots.length > 1 ? `prediction ${response.predictionText(k)}`
        : "the receptive field", alt: "Receptive field, a heatmap," }));
  }

  /**
   * @param {Response} response
   * @param {State} state
   * @param {Samples} samples
   * @returns {Page}
   */
  moving(response, state, samples) {
    const { checkpoint, shape, size, last } = response;
    const network = checkpoint.network(last);
    const names = samples.tested.filter((name) => name !== state.class);
    const others = names.filter((_, k) => k % Math.ceil(names.length / OTHERS) === 0)
      .slice(0, OTHERS);
    whenLoaded(this.host, samples.need(others), () => this.set({}));
    const inputs = [{ title: nameOf(response), pixels: response.pixels }, ...others.map((name) => (
      { title: `a test image of ${name}`,
        pixels: onGrid(samples.image(name, 1), samples.shape, checkpoint.inputShape.slice(1)) }))];
    const fields = inputs.map(({ pixels }) =>
      network.field(network.place(Float32Array.from(pixels, (value) => value / 255))));
    const high = Math.max(...fields.map((values) => percentile(values, TOP)));
    const scale = { ...this.scale(high, "density per pixel²", "per pixel²"), open: true };
    const figures = inputs.map(({ title, pixels }, k) => ({ values: fields[k], shape, size, scale,
      title, note: "field over the picture", alt: "Receptive field, a heatmap, for",
      picture: { url: spriteOf([pixels], checkpoint.inputShape), opacity: 0.8 } }));
    const equation = "α(x) = W Γ₀x + b₀, and each location is μ = N / (1 + e^(−4α)) "
      + "(eqs. 21 and 22)";
    if (network.adaptive && !network.hasMicroNetwork)
      return { title: "They move", figures,
        equation: "μ = c − L/2 + L / (1 + e^(−4α)), with the centre c and the side L of the box",
        text: "In this model the bumps lie in a box around the ink of the picture. If the ink is "
          + "shifted or larger, so are the box and every bump in it: that is why the bright field "
          + "moves when the picture changes." };
    return network.adaptive ? { title: "They move", figures, equation,
      text: "First, a [micro network] looks at the picture with bumps of its own. From *their* "
        + `readings it computes where ${network.densities === 1 ? "the bump of the network goes"
          : "each of the other bumps goes"}. Training has taught it places that help to tell the `
        + "classes apart. *Another picture, another place*: that is why the bright field moves "
        + "when the picture changes." }
      : { title: "They can move", figures, equation,
        text: `${checkpoint.hasDensities ? "In this model the bumps stay, so the"
          : "This model has no bumps, and its"} field is the same for every picture. In a model `
          + "with a [micro network] (mNN in its name) it moves: the micro network reads the "
          + `picture first and computes where each bump goes.${
            offers(this.host, "mNN") ? " Choose one above to see it." : ""}` };
  }

  /** @param {Response} response @param {number} current @returns {Page} */
  learning(response, current) {
    const { checkpoint, last } = response;
    const { steps, errors, typical } = checkpoint;
    const cut = incomplete(checkpoint);
    const error = errors?.length
      ? ` ${cut ? "When it was last tested, it misread" : "Afterwards, it misreads"} ${
        errors[typical].toFixed(1)} % of the test images, which it never saw in training.` : "";
    const one = checkpoint.network(0).densities === 1;
    const at = one ? "the middle" : "a regular grid";
    const on = checkpoint.config.location_start !== "grid"
      ? one ? "at a random place" : "at random places"
      : checkpoint.network(0).hasMicroNetwork ? `near ${at}` : one ? `in ${at}` : `on ${at}`;
    const [places, moves] = checkpoint.hasDensities
      ? [one ? `the bump lies ${on} and ` : `the bumps lie ${on} and `,
        one ? "the bump moves and " : "every bump moves and "] : ["", ""];
    const batch = Math.min(Number(checkpoint.config.batch_size),
      checkpoint.provenance.train_images);
    const seen = batch > 1 ? `up to ${batch.toLocaleString("en")} pictures` : "a picture";
    const shown = [...new Set([0, current, last])];
    const said = [...new Set([0, last])].map((k) =>
      `*${literal(response.predictionText(k))}* ${checkpoint.moment(steps[k])}`);
    return { title: "They learn", figures: this.fields(response, shown),
      text: `At first, ${places}all weights are random, so the prediction is random, too. `
        + `${cut || `[Training|training] takes [${counted(steps[last], "step")}|step].`} In each `
        + `step, the network sees ${seen} with their right answers. Then `
        + `${moves}every weight changes a little, so that the right [class] gets a higher `
        + `score.${error}`,
      say: `Prediction for ${nameOf(response)}: ${said.join(", ")}.`,
      equation: "Adam: θ ← θ − η m̂ / (√v̂ + ε), with the gradient of the cross-entropy "
        + "−log p(right class) with respect to all parameters θ" };
  }
}
