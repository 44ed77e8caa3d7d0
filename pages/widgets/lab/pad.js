// A pad to draw a signal on: one column per pixel, from 0 at the bottom to 1 at the top.
/** @import { Component } from "densembed/panels/types.js" */
import { clip, find, pointIn } from "densembed/panels/dom.js";

/** @param {Component<{ values: number[] }>} component */
export default ({ parentElement, data, setStateValue }) => {
  const canvas = find(parentElement, "canvas", HTMLCanvasElement);
  const colour = getComputedStyle(canvas).getPropertyValue("--st-primary-color") || "#2f6f9f";
  const values = [...data.values];
  /** @type {[column: number, value: number] | null} */
  let last = null;
  const draw = () => {
    const pen = canvas.getContext("2d");
    if (!pen) return;
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.width = canvas.clientWidth * ratio;
    const height = canvas.height = canvas.clientHeight * ratio;
    const step = width / values.length;
    pen.fillStyle = colour;
    values.forEach((value, n) => {
      const tall = Math.max(2 * ratio, clip(value) * height);
      pen.fillRect(n * step, height - tall, Math.max(1, step - ratio), tall);
    });
  };
  const stroke = (/** @type {PointerEvent} */ event) => {
    const [x, y] = pointIn(event, canvas);
    const column = clip(Math.floor(x * values.length), 0, values.length - 1);
    const value = clip(1 - y);
    const [from, start] = last ?? [column, value];
    const span = Math.abs(column - from);
    for (let k = 0; k <= span; k++) {
      const level = span ? start + (value - start) * k / span : value;
      values[from + Math.sign(column - from) * k] = Math.round(level * 100) / 100;
    }
    last = [column, value];
    draw();
  };
  canvas.onpointerdown = (event) => { canvas.setPointerCapture(event.pointerId); stroke(event); };
  canvas.onpointermove = (event) => { if (last) stroke(event); };
  canvas.onpointerup = canvas.onpointercancel = () => {
    if (!last) return;
    last = null;
    setStateValue("drawn", values);
  };
  const observer = new ResizeObserver(draw);
  observer.observe(canvas);
  draw();
  return () => observer.disconnect();
};
