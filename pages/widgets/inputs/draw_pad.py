"""A pad to draw a digit on with a mouse or a finger, with undo and clear."""

import base64

import streamlit as st

MAX_URL = 5 * 2**20
PREFIX = "data:image/png;base64,"
HTML = """
<div class="pad">
<canvas width="560" height="560" tabindex="0" role="img"
  aria-label="Pad to draw a digit on"></canvas>
<div class="tools">
  <label>pen <input type="range" min="16" max="72" step="4" value="44"
    aria-label="Pen size"></label>
  <button type="button" class="undo">Undo</button>
  <button type="button" class="clear">Clear</button>
  <figure><img alt="The input of the model"></figure>
</div>
</div>
"""
CSS = """
.pad {width: min(100% - 16px, 308px); margin: 8px auto 0;}
canvas {
  width: 100%; aspect-ratio: 1; display: block; box-sizing: border-box; touch-action: none;
  cursor: crosshair; background: #fff; border-radius: 4px;
  border: 1px solid var(--st-border-color, #8884);
}
.tools {
  display: flex; flex-wrap: wrap; align-items: center; gap: 8px; margin-top: 8px; min-height: 44px;
  font: 14px var(--st-font, sans-serif); color: var(--st-text-color);
}
.tools label {display: flex; align-items: center; gap: 6px; min-width: 60px; flex: 1 1 60px;}
.tools input {width: 100%; min-width: 30px; accent-color: var(--st-primary-color);}
.tools button {
  font: inherit; color: inherit; background: none; cursor: pointer; padding: 4px 8px;
  border: 1px solid var(--st-border-color, #8884); border-radius: 6px;
}
@media (max-width: 640px) {
  /* On a phone the tools are over the pad, where they are seen, and beside it there is room for a
     finger that scrolls. */
  .pad {display: flex; flex-direction: column-reverse; width: min(100%, 340px); margin-top: 0;}
  .tools {margin: 0 0 8px;}
}
@media (pointer: coarse) {.tools button {min-height: 44px; padding: 4px 12px;}}
.tools button:disabled {opacity: 0.4; cursor: default;}
.tools figure {margin: 0 0 0 auto; width: 44px; height: 44px; flex: none; background: #000;}
.tools img {width: 44px; height: 44px; image-rendering: pixelated; display: block;}
"""
JS = """
export default function({ parentElement, data, setStateValue }) {
  const canvas = parentElement.querySelector("canvas");
  const pen = canvas.getContext("2d");
  const size = parentElement.querySelector("input");
  const undo = parentElement.querySelector(".undo");
  const clear = parentElement.querySelector(".clear");
  parentElement.querySelector("img").src = data.given;
  const pad = canvas.pad ??= { strokes: data.strokes, base: null, url: null, now: null };
  const draw = () => {
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, canvas.width, canvas.height);
    if (pad.base) pen.drawImage(pad.base, 0, 0, canvas.width, canvas.height);
    pen.strokeStyle = "#000";
    pen.lineCap = pen.lineJoin = "round";
    for (const { width, points } of pad.strokes) {
      pen.lineWidth = width;
      pen.beginPath();
      pen.moveTo(points[0], points[1]);
      // A click leaves a dot: a line of no length to nowhere would leave nothing.
      if (points.every((value, k) => value === points[k % 2]))
        pen.lineTo(points[0] + 0.01, points[1]);
      for (let k = 2; k < points.length; k += 2) pen.lineTo(points[k], points[k + 1]);
      pen.stroke();
    }
    undo.disabled = clear.disabled = !pad.strokes.length && !pad.base;
  };
  if (pad.url !== data.base) {  // the picture of a link lies under the strokes
    pad.url = data.base;
    pad.base = null;
    if (data.base) {
      const image = new Image();
      image.onload = () => { pad.base = image; draw(); };
      image.src = data.base;
    }
  }
  const send = () => {
    draw();
    // Half as wide there are ten pixels of it for each of the model's, and the server reads it in a
    // quarter of the time.
    const sent = document.createElement("canvas");
    sent.width = sent.height = canvas.width / 2;
    sent.getContext("2d").drawImage(canvas, 0, 0, sent.width, sent.height);
    const png = pad.strokes.length || pad.base ? sent.toDataURL("image/png") : null;
    setStateValue("drawing", { png, strokes: pad.strokes, base: Boolean(pad.base) });
  };
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [
      Math.round((event.clientX - box.left) / box.width * canvas.width),
      Math.round((event.clientY - box.top) / box.height * canvas.height),
    ];
  };
  canvas.onpointerdown = (event) => {
    if (event.button || pad.now) return;
    canvas.setPointerCapture(pad.finger = event.pointerId);
    pad.now = { width: Number(size.value), points: at(event) };
    pad.strokes = [...pad.strokes, pad.now];
    draw();
  };
  canvas.onpointermove = (event) => {
    if (!pad.now || event.pointerId !== pad.finger) return;  // another finger draws nothing
    const parts = event.getCoalescedEvents?.() ?? [];
    for (const part of parts.length ? parts : [event]) pad.now.points.push(...at(part));
    draw();
  };
  canvas.onpointerup = canvas.onpointercancel = (event) => {
    if (pad.now && event.pointerId === pad.finger) { pad.now = null; send(); }
  };
  undo.onclick = () => {
    if (pad.strokes.length) pad.strokes = pad.strokes.slice(0, -1);
    else pad.base = null;
    send();
  };
  clear.onclick = () => { pad.strokes = []; pad.base = null; send(); };
  canvas.onkeydown = (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "z") { undo.click(); }
  };
  draw();
}
"""
_pad = st.components.v2.component("draw_pad", html=HTML, css=CSS, js=JS)


def pad(given: str, base: str | None) -> None:
    """The pad with the current drawing; `drawn` returns the drawing.

    Args:
        given: the model's input that results from the drawing, as a data URL.
        base: a picture under the strokes, which can be undone, as a data URL.
    """

    def keep() -> None:
        drawing = st.session_state["pad"].drawing
        st.session_state["drawing"] = drawing
        if not drawing["base"]:
            st.session_state.pop("linked", None)

    strokes = (st.session_state.get("drawing") or {}).get("strokes", [])
    _pad(
        data={"given": given, "base": base, "strokes": strokes}, key="pad",
        on_drawing_change=keep,
    )  # fmt: skip


def drawn() -> bytes | None:
    """The drawing as PNG, untrusted like any upload; None if nothing was drawn."""
    drawing = st.session_state.get("drawing")
    url = drawing.get("png") if isinstance(drawing, dict) else None
    if not isinstance(url, str) or not url.startswith(PREFIX) or len(url) > MAX_URL:
        return None
    try:
        return base64.b64decode(url[len(PREFIX) :], validate=True)
    except ValueError:
        return None
