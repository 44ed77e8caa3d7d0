// Draws a receptive field or other numbers: one heatmap with its heading and colour bar, or curves
// over one axis with the numbers at both axes. It knows nothing of where its numbers come from.
/** @import { Scale, View } from "./types.js" */
import { contour } from "./contour.js";
import { axesInSvg, boxOf, dividerAt, drawCurves, ticksInHtml } from "./curve.js";
import { describe, draw, unitOf } from "./densities.js";
import { clip, fill, find, mark, pointIn, write } from "./dom.js";
import { SAVE, onSave, svg } from "./save.js";
import { COLOUR_BAR, barInSvg, fillBar, ramp } from "./scale.js";
import { escape, fixed, round, shorten, together, withSign } from "./text.js";

const LEVELS = [0.2, 0.4, 0.6, 0.8];  // contours, as shares of the colour scale
/** @type {Record<string, number[]>} */
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const PANEL = `
  <p class="heading"></p>
  <div class="plot" tabindex="0" role="img">
    <img alt=""><canvas></canvas><svg preserveAspectRatio="none"></svg>
    <input type="range" min="0" max="100" value="50" hidden
      aria-label="Divider between before, to its left, and after">
    <div class="tip" hidden></div>
  </div>
  ${SAVE}${COLOUR_BAR}<div class="places" aria-hidden="true" hidden></div>`;
const FLAT = 0.4;  // height of saved curves, relative to their width

/**
 * Show a title, and a note on a line of its own.
 * @param {HTMLElement} element
 * @param {string} title
 * @param {string} note
 */
export function fillHeading(element, title, note) {
  mark(element, "title", title);
  fill(element, `${escape(together(title))}<small>${escape(note) || "&nbsp;"}</small>`);
}

export class Panel {
  /**
   * @param {HTMLElement} figure the element to draw in
   * @param {{ divide?: (place: number) => void, choose?: (number: number) => void }} [callbacks]
   *   called when the divider moves, in percent, and when a density is clicked
   */
  constructor(figure, { divide, choose } = {}) {
    figure.innerHTML = PANEL;
    this.figure = figure;
    this.heading = find(figure, ".heading", HTMLElement);
    this.plot = find(figure, ".plot", HTMLElement);
    this.tip = find(figure, ".tip", HTMLElement);
    this.bar = find(figure, ".scale", HTMLElement);
    this.places = find(figure, ".places", HTMLElement);
    this.image = find(figure, "img", HTMLImageElement);
    /** @type {HTMLCanvasElement & { values?: Float32Array | null }} */
    this.canvas = find(figure, "canvas", HTMLCanvasElement);
    this.overlay = find(figure, "svg", SVGElement);
    this.divider = find(figure, "input", HTMLInputElement);
    /** @type {number[] | null} */
    this.point = null;  // where the pointer or the arrow keys are, in shares
    this.title = "";
    /** @type {Scale["stops"] | null} */
    this.stops = null;
    this.colours = new Uint32Array();
    /** @type {ImageData | null} */
    this.pixels = null;
    this.divider.oninput = () => divide?.(Number(this.divider.value));
    this.plot.onpointermove = (event) => this.pointAt(pointIn(event, this.plot));
    this.plot.onpointerleave = this.plot.onblur = () => this.pointAt(null);
    this.plot.onkeydown = (event) => {  // the arrows read pixel by pixel
      const move = ARROWS[event.key];
      if (event.target !== this.plot || !move || !this.view) return;
      event.preventDefault();
      const point = this.point ?? [0.5, 0.5];
      this.pointAt(this.view.size.map((count, axis) =>
        (Math.floor(point[axis] * count) + 0.5 + move[axis]) / count));
    };
    this.plot.onclick = ({ target }) => {
      const number = target instanceof SVGElement && target.dataset.number;
      if (number) choose?.(Number(number));
    };
    onSave(figure, () => ({ source: this.asSvg(), title: this.title }));
  }

  /** @param {View} view */
  show(view) {
    const { values, shape, size: [width, height], left, scale, title, note, hint, picture } = view;
    const { curves } = view;
    this.view = view;
    this.figure.classList.toggle("curves", Boolean(curves));
    this.places.hidden = !curves;
    if (curves) fill(this.places, ticksInHtml(width));
    fillHeading(this.heading, title, [note, hint].filter(Boolean).join(" · "));
    this.title = note ? `${title}, ${note}` : title;
    mark(this.plot, "style", `--ratio: ${width} / ${height}`);
    this.image.hidden = !picture;
    if (picture) mark(this.image, "src", picture.url);
    mark(this.canvas, "style", `opacity: ${picture ? picture.opacity : 1}`);
    this.canvas.hidden = !values;
    this.divider.hidden = !left;
    mark(this.plot, "role", left ? "group" : "img");  // an image has no controls within
    this.canvas.values = values && left && shape ? this.divided(values, left, shape[1]) : values;
    if (curves && shape) [this.canvas.width, this.canvas.height] = [shape[1], shape[0]];
    else if (this.canvas.values && shape) this.paint(this.canvas.values, shape, scale);
    mark(this.overlay, "viewBox", curves ? boxOf(width) : `0 0 ${width} ${height}`);
    fill(this.overlay, this.overlaid(view).join(""));
    fillBar(this.bar, scale);
    this.describe();
  }

  /**
   * The values with others to the left of the divider.
   * @param {Float32Array} values
   * @param {Float32Array} left
   * @param {number} width
   */
  divided(values, left, width) {
    const edge = Number(this.divider.value) / 100 * width;
    return values.map((value, k) => (k % width + 0.5 < edge ? left[k] : value));
  }

  /**
   * @param {Float32Array} values
   * @param {[rows: number, columns: number]} shape
   * @param {Scale} scale
   */
  paint(values, [height, width], { stops, low, high }) {
    if (this.stops !== stops) [this.stops, this.colours] = [stops, ramp(stops)];
    if (this.pixels?.width !== width || this.pixels.height !== height) {
      this.pixels = new ImageData(width, height);
      [this.canvas.width, this.canvas.height] = [width, height];
    }
    const pixels = new Uint32Array(this.pixels.data.buffer);
    const factor = 255 / (high - low);
    for (let k = 0; k < values.length; k++)
      pixels[k] = this.colours[clip(Math.round((values[k] - low) * factor), 0, 255)];
    this.canvas.getContext("2d")?.putImageData(this.pixels, 0, 0);
  }

  /**
   * What lies over the picture: contours, densities and their box, the divider of a swipe.
   * @param {View} view
   */
  overlaid(view) {
    const { shape, size, left, scale: { low, high }, contours, densities, box, path } = view;
    const { values = null } = this.canvas;
    const [width, height] = size;
    if (view.curves) return [...drawCurves(view, view.curves, values),
      ...(left ? [dividerAt(Number(this.divider.value) / 100 * width)] : [])];
    const unit = unitOf(size);
    const parts = [];
    if (values && shape && contours) {
      const levels = LEVELS.map((share) => share * high);
      for (const level of low < 0 ? [...levels, ...levels.map((l) => -l)] : levels) {
        const line = contour(values, shape[1], shape[0], level, width / shape[1]);
        parts.push(`<path d="${line}" fill="none" stroke="${low < 0 ? "#333" : "#fff"}"
          stroke-width="${0.12 * unit}" stroke-opacity="0.8"/>`);
      }
    }
    if (densities) parts.push(...draw(densities, unit));
    if (box) parts.push(`<rect class="box" x="${box[0]}" y="${box[1]}" width="${box[2]}"
      height="${box[3]}" fill="none" stroke="${low < 0 && values ? "#333" : "#fff"}"
      stroke-width="${0.15 * unit}" stroke-opacity="0.8"
      stroke-dasharray="${0.6 * unit} ${0.4 * unit}"/>`);
    if (path) parts.push(`<polyline points="${path.join()}" fill="none" stroke="#fff"
      stroke-width="${0.15 * unit}" stroke-opacity="0.8"/>`);
    if (left) {
      const x = Number(this.divider.value) / 100 * width;
      parts.push(`<line x1="${x}" x2="${x}" y1="0" y2="${height}" stroke="#fff"
        stroke-width="${0.3 * unit}"/>`);
    }
    return parts;
  }

  /** @param {number[] | null} point */
  pointAt(point) {
    this.point = point && point.map((share) => clip(share, 0, 0.9999));
    this.describe();
  }

  /** Describe what is under the pointer or the arrow keys; without them, the figure. */
  describe() {
    this.tip.hidden = !this.point;
    if (!this.point || !this.view) {
      mark(this.plot, "aria-label", `${this.view?.alt} ${this.title}`);
      return;
    }
    const { shape, size, scale, densities, curves } = this.view;
    const [x, y] = this.point;
    const [t, u] = [x * size[0], y * size[1]];
    let text = curves ? `t = ${t.toFixed(2)}\nsample ${Math.floor(t)}`
      : `column ${t.toFixed(2)}, row ${u.toFixed(2)}\npixel ${Math.floor(t)}, ${Math.floor(u)} `;
    if (curves && densities) {
      text += describe(densities, t, u, 1);
    } else if (curves && this.canvas.values && shape) {
      const [rows, columns] = shape;
      const at = Math.floor(x * columns);
      const { values: all } = this.canvas;
      const values = Array.from({ length: rows }, (_, k) => round(all[k * columns + at]));
      text += `\n${values.join(", ")} ${scale.unit}`;
    } else if (this.canvas.values && shape) {
      const value = this.canvas.values[
        Math.floor(y * shape[0]) * shape[1] + Math.floor(x * shape[1])];
      text += `\n${(scale.low < 0 ? withSign : fixed)(value, 4)} ${scale.unit}`;
    } else if (densities) {
      text += describe(densities, t, u, unitOf(size));
    }
    if (this.view.tip) text = this.view.tip([x, y]);
    write(this.tip, text);
    mark(this.plot, "aria-label", text.replaceAll("\n", ", "));
    const { style } = this.tip;
    style.left = x > 0.5 ? "auto" : `calc(${100 * x}% + 14px)`;
    style.right = x > 0.5 ? `calc(${100 * (1 - x)}% + 14px)` : "auto";
    style.top = `min(${100 * y}%, calc(100% - 64px))`;
  }

  /**
   * The picture under its title as a part of an SVG, at that place and that wide.
   * @param {number} x
   * @param {number} y
   * @param {number} width
   */
  plotInSvg(x, y, width) {
    const [w, h] = this.view?.size ?? [1, 1];
    const curves = this.view?.curves;
    const height = this.heightFor(width);
    const box = `y="40" width="${width}" height="${height}"`;
    const image = (/** @type {string} */ url, /** @type {string} */ opacity) =>
      `<image href="${url}" ${box} opacity="${opacity}" preserveAspectRatio="none"
        style="image-rendering: pixelated"/>`;
    return `<svg x="${x}" y="${y}" width="${width}" height="${height + 40}">
      <text x="${width / 2}" y="26" text-anchor="middle" font-size="18">${
        escape(shorten(this.title, width, 18))}</text>
      <rect ${box}${curves ? ' fill="none"' : ""}/>
      ${this.image.hidden ? "" : image(this.image.src, "1")}
      ${this.canvas.hidden || curves ? ""
        : image(this.canvas.toDataURL(), this.canvas.style.opacity)}
      <svg ${box} viewBox="${curves ? boxOf(w) : `0 0 ${w} ${h}`}"${
        curves ? ' preserveAspectRatio="none"' : ""}>${this.overlay.innerHTML}</svg></svg>`;
  }

  /** The height of the picture if it is that wide. @param {number} width */
  heightFor(width) {
    const [w, h] = this.view?.size ?? [1, 1];
    return this.view?.curves ? FLAT * width : h * width / w;
  }

  /** The panel with its title and colour bar. */
  asSvg() {
    if (!this.view) return "";
    const { scale, curves } = this.view;
    if (curves) {
      const plot = { x: 70, y: 40, width: 600, height: this.heightFor(600) };
      return svg(700, plot.height + 100,
        [this.plotInSvg(plot.x, 0, plot.width), axesInSvg(this.view, plot)]);
    }
    const end = 40 + this.heightFor(480);
    return svg(480, end + 64, [this.plotInSvg(0, 0, 480), barInSvg(scale, 480, end)]);
  }
}
