"""A pad to draw a signal on: one column per pixel, from 0 at the bottom to 1 at the top."""

import streamlit as st

HTML = '<canvas role="img" aria-label="Drawing pad for the signal"></canvas>'
CSS = """
canvas {
  width: 100%; height: 110px; display: block; touch-action: none; cursor: crosshair;
  background: var(--st-secondary-background-color);
}
"""
JS = """
export default function({ parentElement, data, setStateValue }) {
  const canvas = parentElement.querySelector("canvas");
  const ink = getComputedStyle(canvas).getPropertyValue("--st-primary-color") || "#2f6f9f";
  const pen = canvas.getContext("2d");
  let values = data.values.slice(), last = null;
  const draw = () => {
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.width = canvas.clientWidth * ratio;
    const height = canvas.height = canvas.clientHeight * ratio;
    const step = width / values.length;
    pen.fillStyle = ink;
    values.forEach((value, n) => {
      const tall = Math.max(2 * ratio, Math.min(1, Math.max(0, value)) * height);
      pen.fillRect(n * step, height - tall, Math.max(1, step - ratio), tall);
    });
  };
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    const clip = (share) => Math.min(1, Math.max(0, share));
    const column = Math.floor(clip((event.clientX - box.left) / box.width) * values.length);
    return [Math.min(values.length - 1, column), clip(1 - (event.clientY - box.top) / box.height)];
  };
  const stroke = (event) => {
    const [column, value] = at(event);
    const [from, start] = last ?? [column, value];
    const span = Math.abs(column - from);
    for (let k = 0; k <= span; k++) {
      const n = from + Math.sign(column - from) * k;
      const level = span ? start + (value - start) * k / span : value;
      values[n] = Math.round(level * 100) / 100;
    }
    last = [column, value];
    draw();
  };
  canvas.onpointerdown = (event) => { canvas.setPointerCapture(event.pointerId); stroke(event); };
  canvas.onpointermove = (event) => { if (last) stroke(event); };
  canvas.onpointerup = canvas.onpointercancel = () => {
    if (last) { last = null; setStateValue("drawn", values); }
  };
  const watch = new ResizeObserver(draw);
  watch.observe(canvas);
  draw();
  return () => watch.disconnect();
}
"""
_pad = st.components.v2.component("lab_pad", html=HTML, css=CSS, js=JS)


def pad(values: list[float], key: str, on_draw) -> None:
    """The pad with `values`. `on_draw()` is called at the end of a stroke, with the new values in
    `st.session_state[key].drawn`."""
    _pad(data={"values": values}, key=key, on_drawn_change=on_draw)
