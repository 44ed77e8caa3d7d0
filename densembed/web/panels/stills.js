// Fields without a slider: one, a few side by side, or many small ones under one heading and on one
// colour scale.
/** @import { Component, PackedStillsData, StillsData } from "./types.js" */
import { find, mark } from "./dom.js";
import { Panel, fillHeading } from "./panel.js";
import { SAVE, onSave, svg } from "./save.js";
import { COLOUR_BAR, barInSvg, fillBar } from "./scale.js";
import { mounter } from "./stage.js";
import { unpack } from "./unpack.js";

class Stills {
  /** @type {{ figure: HTMLElement, panel: Panel }[]} */
  panels = [];

  /** @param {HTMLElement} root @param {StillsData} data */
  constructor(root, data) {
    this.root = root;
    this.data = data;
    root.innerHTML = `<p class="heading"></p><div class="grid"></div>${COLOUR_BAR}${SAVE}`;
    this.heading = find(root, ":scope > .heading", HTMLElement);
    this.grid = find(root, ".grid", HTMLElement);
    this.bar = find(root, ":scope > .scale", HTMLElement);
    onSave(root, () => ({ source: this.asSvg(), title: this.data.shared?.title ?? "" }));
  }

  /** @param {StillsData} data */
  update(data) {
    const { figures, columns, shared } = this.data = data;
    mark(this.root, "data-columns", String(columns));
    mark(this.root, "style", `--columns: ${columns}`);
    this.root.classList.toggle("together", Boolean(shared));
    for (const { figure } of this.panels.splice(figures.length)) figure.remove();
    while (this.panels.length < figures.length) this.panels.push(this.panel());
    figures.forEach((each, k) => {
      const { panel, figure } = this.panels[k];
      figure.classList.toggle("colour", !each.values && !each.densities);
      panel.show(each);
    });
    if (!shared) return;
    fillHeading(this.heading, shared.title, shared.note);
    fillBar(this.bar, shared.scale);
  }

  panel() {
    const figure = document.createElement("figure");
    figure.className = "figure";
    this.grid.append(figure);
    return { figure, panel: new Panel(figure) };
  }

  /** All of them with the one colour bar. */
  asSvg() {
    const { figures, columns, shared } = this.data;
    if (!shared) return "";
    const [width, height] = [150, 40 + this.panels[0].panel.heightFor(140)];
    const rows = Math.ceil(figures.length / columns);
    const parts = this.panels.map(({ panel }, k) =>
      panel.plotInSvg(width * (k % columns) + 5, height * Math.floor(k / columns), 140));
    if (figures[0].curves) return svg(width * columns, height * rows, parts);
    return svg(width * columns, height * rows + 64,
      [...parts, barInSvg(shared.scale, width * columns, height * rows)]);
  }
}

export const mount = mounter(Stills);

/** @param {Component<PackedStillsData>} component */
export default ({ parentElement, data: { figures, ...rest } }) => mount(parentElement, {
  ...rest,
  figures: figures.map((each) =>
    ({ ...each, values: each.stack === null ? null : unpack(each) })),
});
