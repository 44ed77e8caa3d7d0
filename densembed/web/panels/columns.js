// Compare: two to four models at one place of their trainings, and the differences from the first.
/** @import { ColumnsData } from "./types.js" */
import { fill, find, mark } from "./dom.js";
import { Panel } from "./panel.js";
import { Stage, mounter } from "./stage.js";
import { escape, round } from "./text.js";

/** A panel with measures below it. */
class Measured extends Panel {
  /** @param {HTMLElement} figure */
  constructor(figure) {
    super(figure);
    this.facts = document.createElement("dl");
    this.facts.className = "facts";
    figure.append(this.facts);
  }

  /** @param {string[][]} pairs names and values */
  fill(pairs) {
    fill(this.facts, pairs.map(([name, value]) =>
      `<dt>${escape(name)}</dt><dd>${escape(value)}</dd>`).join(""));
  }
}

/** @extends {Stage<ColumnsData>} */
class Columns extends Stage {
  parts = { predictions: ".opinion", differences: ".change", numbers: ".facts", steps: ".steps" };
  names = "";
  /** @type {Measured[]} */
  panels = [];
  /** @type {Measured[]} */
  changes = [];

  /** @param {ColumnsData} data */
  unpack({ sides, label, curves }) {
    this.root.classList.toggle("signals", Boolean(curves));
    this.slider.setAttribute("aria-label", label);
    const names = String(sides.map(({ name }) => name));
    if (names === this.names) return;
    this.names = names;
    this.root.dataset.count = String(sides.length);
    for (const figure of this.root.querySelectorAll("figure")) figure.remove();
    // The order of the keyboard: fields, slider, the rest.
    const steps = find(this.root, ".steps", HTMLElement);
    this.panels = sides.map(({ name }) => this.panel(`field ${name}`, steps));
    this.changes = sides.slice(1).map(({ name }) => this.panel(`change ${name}`, null));
  }

  /** @param {string} kind @param {Node | null} next */
  panel(kind, next) {
    const figure = document.createElement("figure");
    figure.className = `figure ${kind}`;
    this.root.insertBefore(figure, next);
    return new Measured(figure);
  }

  /** @param {number} index */
  show(index) {
    const { sides, scales: [scale, signed], measures, shape, size, curves } = this.data;
    const fields = sides.map(({ fields: own, share, at }) =>
      (own.at(at[index]) ?? new Float32Array()).map((value) => value * share));
    sides.forEach(({ name, model, colour, at, moments, numbers }, k) => {
      const drawn = { shape, size, curves: curves && { ...curves, colours: [colour] } };
      this.panels[k].show({
        ...drawn, values: fields[k], scale, title: model,
        note: `${name}, ${moments.at(at[index])}`,
        alt: `Receptive field, a ${curves ? "curve" : "heatmap"} of the densities,`,
      });
      const values = numbers.at(at[index]) ?? [];
      this.panels[k].fill(measures.map((measure, n) => [measure, values[n]]));
      if (!k) return;
      const change = fields[k].map((value, n) => value - fields[0][n]);
      this.changes[k - 1].show({
        ...drawn, values: change, scale: signed, title: `${name} − first`,
        note: `red: more in the ${name}`, alt: "Difference of two receptive fields,",
      });
      const largest = change.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
      this.changes[k - 1].fill([["largest difference",
        largest ? `${round(largest)} ${signed.unit}` : "none: they are the same"]]);
    });
    this.predict(index);
  }

  /** @param {number} index */
  predict(index) {
    const { note } = this.data;
    const sides = this.data.sides.flatMap((side) => side.probabilities ? [side] : []);
    const lines = sides.map(({ name, predictions, at }) =>
      `${name}: ${predictions.at(at[index])}`);
    fill(this.prediction, `Predictions<small>${escape(note) || "&nbsp;"}</small>`);
    mark(this.slider, "aria-valuetext", [this.place(index), ...lines].join("; "));
    if (!sides.length) return;
    this.fillLegend(lines);
    this.fillBars(sides.map(({ at, probabilities }) => probabilities?.at(at[index]) ?? []),
      (shares) => shares.map((share, n) => `${sides[n].name} ${share}`).join(", "));
  }
}

export const mount = mounter(Columns);
