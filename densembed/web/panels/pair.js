// Explore: the field before training and at the slider's step, and the predictions at both.
/** @import { PairData } from "./types.js" */
import { find } from "./dom.js";
import { Fields, floats } from "./fields.js";
import { Panel } from "./panel.js";
import { REST, Stage, component, mounter } from "./stage.js";
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

  /** @param {PairData} data @param {PairData} [previous] */
  unpack(data, previous) {
    const { stack, shape, low = 0, high = 1, dots, hidden, divider } = data;
    if (stack !== previous?.stack)
      this.fields = stack && shape ? new Fields({ stack, shape, low, high }) : null;
    if (dots?.loc !== previous?.dots?.loc || dots?.weights !== previous?.dots?.weights)
      this.arrays = dots && {
        loc: floats(dots.loc), scale: floats(dots.scale), weights: floats(dots.weights),
      };
    if (divider !== this.divider)
      this.after.divider.value = String(this.divider = divider);
    this.root.dataset.columns = String(3 - ["predictions", "before"].filter((name) =>
      hidden.includes(name)).length);
  }

  list() {
    super.list();
    this.fillLegend(this.data.legend);
  }

  /** @param {number} index */
  densities(index) {
    const { dots } = this.data;
    if (!dots || !this.arrays) return null;
    const [from, to] = [index * dots.count, (index + 1) * dots.count];
    const { loc, scale, weights } = this.arrays;
    return {
      ...dots, loc: loc.subarray(2 * from, 2 * to), scale: scale.subarray(2 * from, 2 * to),
      weights: weights.subarray(from, to),
    };
  }

  /** @param {number} index */
  show(index) {
    const { way, shape, size, scales, titles, notes, alt, picture, contours, ...data } = this.data;
    const minus = way === "difference" && index > 0;
    const [first, now] = [0, index].map((k) => this.fields?.at(k) ?? null);
    const shared = { shape, size, alt, picture, contours };
    this.before.show({
      ...shared, values: first, densities: this.densities(0), scale: scales[0],
      title: titles[0], note: notes[0],
    });
    this.after.show({
      ...shared,
      values: minus && first && now ? now.map((value, k) => value - first[k]) : now,
      left: way === "swipe" ? first : null,
      densities: this.densities(index),
      scale: scales[minus ? 1 : 0],
      title: titles[index],
      note: (minus ? "minus before training, " : "") + notes[index],
    });
    this.prediction.innerHTML = `Prediction<small>${escape(data.predictions[index])}</small>`;
    if (data.probabilities) this.fillBars([data.probabilities[0], data.probabilities[index]],
      ([before, after]) => `${before} before, ${after} now`);
    this.numbers.textContent = data.numbers[index];
    this.slider.setAttribute("aria-valuetext", titles[index]);
  }
}

export const mount = mounter(Pair);
export default component(mount);
