// Explore: the field before training and at the slider's step, and the predictions at both.
/** @import { Callbacks, Densities, PackedPairData, PairData, Series } from "./types.js" */
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

  /** @param {PairData} data */
  unpack({ hidden, divider }) {
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
  show(index) {
    const { data } = this;
    const { way, shape, size, scales, alt, picture, contours, probabilities } = data;
    const minus = way === "difference" && index > 0;
    const [first, now] = [0, index].map((k) => data.fields?.at(k) ?? null);
    const [title, note] = [data.titles, data.notes].map((texts) => texts.at(index) ?? "");
    const shared = { shape, size, alt, picture, contours };
    this.before.show({
      ...shared, values: first, densities: data.densities?.at(0), scale: scales[0],
      title: data.titles.at(0) ?? "", note: data.notes.at(0) ?? "",
    });
    this.after.show({
      ...shared,
      values: minus && first && now ? now.map((value, k) => value - first[k]) : now,
      left: way === "swipe" ? first : null,
      densities: data.densities?.at(index),
      scale: scales[minus ? 1 : 0],
      title,
      note: (minus ? "minus before training, " : "") + note,
    });
    const prediction = escape(data.predictions.at(index) ?? "");
    this.prediction.innerHTML = `Prediction<small>${prediction}</small>`;
    const rows = probabilities && [0, index].map((k) => probabilities.at(k) ?? []);
    if (rows) this.fillBars(rows, ([before, after]) => `${before} before, ${after} now`);
    this.numbers.textContent = data.numbers.at(index) ?? "";
    this.slider.setAttribute("aria-valuetext", title);
  }
}

export const mount = mounter(Pair);

/**
 * The unpacked fields and densities of each place; equal ones are unpacked once.
 * @type {WeakMap<HTMLElement, { packed: PackedPairData, fields: Fields | null,
 *   arrays: Float32Array[] }>}
 */
const unpacked = new WeakMap();

/**
 * @param {HTMLElement} parent
 * @param {PackedPairData} packed
 * @param {Callbacks} callbacks
 */
function mountPacked(parent, packed, callbacks) {
  const { stack, dots, shape = [1, 1], low = 0, high = 1 } = packed;
  const last = unpacked.get(parent);
  const fields = last?.packed.stack === stack ? last.fields
    : stack === null ? null : new Fields({ stack, shape, low, high });
  const same = last?.packed.dots?.loc === dots?.loc && last?.packed.dots?.weights === dots?.weights;
  const arrays = same && last ? last.arrays
    : dots ? [dots.loc, dots.scale, dots.weights].map(floats) : [];
  unpacked.set(parent, { packed, fields, arrays });
  const [loc, scale, weights] = arrays;
  /** @type {Series<Densities> | null} */
  const densities = dots && {
    at: (index) => {
      const [from, to] = [index * dots.count, (index + 1) * dots.count];
      return {
        ...dots, loc: loc.subarray(2 * from, 2 * to), scale: scale.subarray(2 * from, 2 * to),
        weights: weights.subarray(from, to),
      };
    },
  };
  mount(parent, { ...packed, shape, fields, densities }, callbacks);
}

export default component(mountPacked);
