// The input: a picture that can be dragged, or a pad to draw on.
/**
 * @import { Host } from "./host.js"
 * @import { Input, InputControls } from "./input.js"
 * @import { State } from "./parameters.js"
 */
import { fillHeading } from "../panels/panel.js";
import { mount as mountStills } from "../panels/stills.js";
import { scales } from "../resources.js";
import { make } from "./controls.js";
import { part } from "./host.js";
import { spriteOf } from "./pictures.js";

const FAR = 8;  // pixels that a picture can be moved

export class InputPanel {
  /** @type {State} */
  state = {};

  /**
   * @param {Host} host
   * @param {InputControls} inputs
   */
  constructor(host, inputs) {
    this.host = host;
    this.inputs = inputs;
    this.picture = part("stills");
    this.heading = make("p", { className: "heading", ariaLive: "polite" });
    this.verdict = make("p", { className: "verdict", ariaHidden: "true" });
    this.element = make("div", { className: "input" }, this.heading, this.verdict,
      this.picture.element, inputs.pad.element);
    this.picture.root.onpointerdown = (event) => this.drag(event);
  }

  /**
   * @param {Input} input
   * @param {State} state
   * @param {string} prediction repeated beside the pad on a phone, where the other is out of sight
   */
  show(input, state, prediction = "") {
    this.state = state;
    const { pixels, shape, note, label, content, blank } = input;
    const [channels, height, width] = shape;
    this.picture.element.hidden = state.from === "draw";
    this.heading.hidden = this.verdict.hidden = state.from !== "draw";
    this.verdict.textContent = blank ? "" : `Prediction: ${prediction}`;
    fillHeading(this.heading, "draw a digit", blank ? "no digit yet"
      : content === "several digits" ? "several digits: draw one at a time"
        : this.isUnlike(this.inputs.input(state).pixels) ? "unlike the training images"
          : `scaled to ${note} (small picture)`);
    if (state.from === "draw") return this.inputs.showPad(input);
    const values = channels === 1 ? Float32Array.from(pixels, (value) => value / 255) : null;
    return mountStills(this.picture.root, { columns: 1, shared: null, figures: [{
      values, shape: [height, width], size: [width, height], title: "the input",
      note, hint: note.includes(",") ? "" : "drag to move",
      alt: `The input of the model${label === null ? "" : `, class ${label}`}:`,
      picture: values ? null : { url: spriteOf([pixels], shape), opacity: 1 },
      scale: { low: 0, high: 1, name: "ink, 0 to 1", unit: "ink", open: false,
        stops: scales.ink },
    }] });
  }

  /**
   * Whether the page knows that a drawing is unlike the training images.
   * @param {Uint8Array} pixels
   */
  isUnlike(pixels) {
    const { unlike } = this.host;
    return unlike?.length === pixels.length && unlike.every((value, k) => value === pixels[k]);
  }

  /**
   * Dragging the picture moves the ink with the pointer.
   * @param {PointerEvent} event
   */
  drag(event) {
    const plot = event.target instanceof Element && event.target.closest(".plot");
    if (!plot || event.button) return;
    const { root } = this.picture;
    const cell = plot.getBoundingClientRect().width / this.inputs.samples.shape[2];
    const { right, down } = this.state;
    const shift = (/** @type {number} */ from, /** @type {number} */ by) =>
      Math.max(-FAR, Math.min(FAR, Math.round(2 * (from + by / cell)) / 2));
    root.setPointerCapture(event.pointerId);
    root.onpointermove = ({ clientX, clientY }) => this.inputs.set({
      right: shift(Number(right), clientX - event.clientX),
      down: shift(Number(down), clientY - event.clientY),
    });
    root.onpointerup = root.onpointercancel = () => { root.onpointermove = null; };
  }
}
