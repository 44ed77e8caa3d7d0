// Explore: the field before training and at the slider's step, and the predictions at both.
/** @import { PairData } from "./types.js" */
import { fill, find, mark, write } from "./dom.js";
import { Panel } from "./panel.js";
import { REST, Stage, mounter } from "./stage.js";
import { escape } from "./text.js";

/** @extends {Stage<PairData>} */
class Pair extends Stage {
  /** @type {number | undefined} */
  divider;  // as the server knows it
  parts = { predictions: ".opinion", before: ".before", numbers: ".numbers", steps: ".steps" };

  /** @param {HTMLElement} root @param {PairData} data */
  constructor(root, data) {
    super(root, data);
    const callbacks = {
      divide: (/** @type {number} */ place) => this.divide(place),
      choose: (/** @type {number} */ number) => this.callbacks.density?.(number),
    };
    this.before = new Panel(find(root, ".before", HTMLElement), callbacks);
    this.after = new Panel(find(root, ".after", HTMLElement), callbacks);
    this.numbers = find(root, ".numbers", HTMLElement);
    this.why = find(root, ".why", HTMLElement);
    find(this.why, "button", HTMLElement).onclick = () => this.callbacks.why?.();
    this.after.plot.setAttribute("aria-describedby", this.numbers.id);
  }

  /**
   * The swipe's divider is reported where it comes to rest, as the step is.
   * @param {number} place
   */
  divide(place) {
    this.draw();
    clearTimeout(this.dividing);
    this.dividing = setTimeout(() => {
      if (this.divider !== place) this.callbacks.divider?.(this.divider = place);
    }, REST);
  }

  /** @param {PairData} data */
  unpack({ hidden, divider, curves }) {
    this.root.classList.toggle("signals", Boolean(curves));
    if (divider !== this.divider)
      this.after.divider.value = String(this.divider = divider);
    this.root.dataset.columns = String(3 - ["predictions", "before"].filter((name) =>
      hidden.includes(name)).length);
  }

  list() {
    super.list();
    this.fillLegend(this.data.legend);
    this.why.hidden = !this.data.predicts || !this.callbacks.why;
  }

  /** @param {number} index */
  show(index) {
    const { data } = this;
    const { way, shape, size, scales, alt, picture, contours, probabilities } = data;
    const minus = way === "difference" && index > 0;
    const [first, now] = [0, index].map((k) => data.fields?.at(k) ?? null);
    const [title, note] = [data.titles, data.notes].map((texts) => texts.at(index) ?? "");
    const shared = { shape, size, alt, picture, contours };
    const curves = data.colours.map((colour) =>
      data.curves && { ...data.curves, colours: [colour] });
    this.before.show({
      ...shared, values: first, densities: data.densities?.at(0), box: data.boxes?.at(0),
      scale: scales[0], curves: curves[0],
      title: data.titles.at(0) ?? "", note: data.notes.at(0) ?? "",
    });
    this.after.show({
      ...shared,
      values: minus && first && now ? now.map((value, k) => value - first[k]) : now,
      left: way === "swipe" ? first : null,
      densities: data.densities?.at(index),
      box: data.boxes?.at(index),
      scale: scales[minus ? 1 : 0], curves: curves[1],
      title,
      note: (minus ? "minus before training, " : "") + note,
    });
    const prediction = escape(data.predictions.at(index) ?? "");
    fill(this.prediction, `Prediction<small>${prediction}</small>`);
    const rows = probabilities && [0, index].map((k) => probabilities.at(k) ?? []);
    if (rows) this.fillBars(rows, ([before, after]) => `${before} before, ${after} now`);
    write(this.numbers, data.numbers.at(index) ?? "");
    mark(this.slider, "aria-valuetext", title);
  }
}

export const mount = mounter(Pair);
