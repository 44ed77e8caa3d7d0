// A pad to draw a signal on: one column per pixel, from 0 at the bottom to 1 at the top.
/** @import { Component } from "densembed/panels/types.js" */
import { clip, find, pointIn } from "densembed/panels/dom.js";
import { Messages } from "../common/messages.js";

/** @typedef {{ values: number[], order: number }} PadData */

/** What outlives an answer of the server, which may come while the next stroke is drawn. */
class Pad {
  /** @type {number[]} */
  values = [];
  messages = new Messages();
  /** @type {{ finger: number, column: number, value: number } | null} */
  last = null;

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.colour = getComputedStyle(canvas).getPropertyValue("--st-primary-color") || "#2f6f9f";
    canvas.onpointerdown = (event) => {
      if (event.button || this.last) return;  // another finger draws nothing
      canvas.setPointerCapture(event.pointerId);
      this.stroke(event);
    };
    canvas.onpointermove = (event) => {
      if (event.pointerId === this.last?.finger) this.stroke(event);
    };
    canvas.onpointerup = canvas.onpointercancel = (event) => {
      if (event.pointerId !== this.last?.finger) return;
      this.last = null;
      this.report?.("drawn", this.messages.next([...this.values]));
    };
  }

  /** @param {PadData} data @param {Component<PadData>["setStateValue"]} report */
  update({ values, order }, report) {
    this.report = report;
    if (!this.messages.followed(order)) return;
    if (this.last && values.length === this.values.length) return;
    this.values = [...values];
    this.last = null;
  }

  draw() {
    const { canvas, values } = this;
    const pen = canvas.getContext("2d");
    if (!pen) return;
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.width = canvas.clientWidth * ratio;
    const height = canvas.height = canvas.clientHeight * ratio;
    const step = width / values.length;
    pen.fillStyle = this.colour;
    values.forEach((value, n) => {
      const tall = Math.max(2 * ratio, clip(value) * height);
      pen.fillRect(n * step, height - tall, Math.max(1, step - ratio), tall);
    });
  }

  /** @param {PointerEvent} event */
  stroke(event) {
    const { values } = this;
    const [x, y] = pointIn(event, this.canvas);
    const column = clip(Math.floor(x * values.length), 0, values.length - 1);
    const value = clip(1 - y);
    const { column: from, value: start } = this.last ?? { column, value };
    const span = Math.abs(column - from);
    for (let k = 0; k <= span; k++) {
      const level = span ? start + (value - start) * k / span : value;
      values[from + Math.sign(column - from) * k] = Math.round(level * 100) / 100;
    }
    this.last = { finger: event.pointerId, column, value };
    this.draw();
  }
}

/** @param {Component<PadData>} component */
export default ({ parentElement, data, setStateValue }) => {
  /** @type {HTMLCanvasElement & { pad?: Pad }} */
  const canvas = find(parentElement, "canvas", HTMLCanvasElement);
  const pad = canvas.pad ??= new Pad(canvas);
  pad.update(data, setStateValue);
  const observer = new ResizeObserver(() => pad.draw());
  observer.observe(canvas);
  pad.draw();
  return () => observer.disconnect();
};
