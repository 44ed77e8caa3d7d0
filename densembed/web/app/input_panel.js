// The input: a picture that can be dragged, or a pad to draw on.
/**
 * @import { Host } from "./host.js"
 * @import { Input, InputControls } from "./input.js"
 * @import { Values } from "./kinds.js"
 * @import { State } from "./parameters.js"
 */
import { clip, follow, pointIn } from "../panels/dom.js";
import { fillHeading } from "../panels/panel.js";
import { mount as mountStills } from "../panels/stills.js";
import { colours, scales } from "../resources.js";
import { make } from "./controls.js";
import { part } from "./host.js";
import { spriteOf } from "./pictures.js";

const FAR = 8;  // pixels that a picture can be moved

export class InputPanel {
  /** @type {State} */
  state = {};
  strange = false;  // whether the drawing is unlike the training images

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
    const { pixels, shape, note, label, content, blank, stray } = input;
    const [channels, height, width] = shape;
    const onPad = state.from === "draw" && !this.inputs.samples.signals;
    this.picture.element.hidden = onPad;
    this.heading.hidden = this.verdict.hidden = !onPad;
    this.verdict.textContent = blank ? "" : `Prediction: ${prediction}`;
    this.strange = onPad && !blank && this.isUnlike(this.inputs.input(state).pixels);
    fillHeading(this.heading, this.strange ? "unlike the training images" : "draw a digit",
      blank ? "no digit yet"
        : content === "several digits" ? "several digits: draw one at a time"
          : this.strange ? "do not rely on the prediction"
            // No longer than the other line, as the pad would move under the pen.
            : stray ? `ink beside the digit is left out, ${note}`
              : `the network gets the small picture, ${note}`);
    const hint = note.includes(",") ? "" : state.from === "draw" ? "draw" : "drag to move";
    const of = label === null ? "" : `, class ${label}`;
    if (pixels instanceof Float32Array) return this.showSignal(pixels, note, hint, of);
    if (state.from === "draw") return this.inputs.showPad(input);
    const values = channels === 1 ? Float32Array.from(pixels, (value) => value / 255) : null;
    return mountStills(this.picture.root, { columns: 1, shared: null, figures: [{
      values, shape: [height, width], size: [width, height], title: "the input",
      note, hint, alt: `The input of the model${of}:`,
      picture: values ? null : { url: spriteOf([pixels], shape), opacity: 1 },
      scale: { low: 0, high: 1, name: "ink, 0 to 1", unit: "ink", open: false,
        stops: scales.ink },
    }] });
  }

  /**
   * A signal as the step function that a network reads.
   * @param {Float32Array} values
   * @param {string} note
   * @param {string} hint
   * @param {string} of its class in words
   */
  showSignal(values, note, hint, of) {
    const { shape: [channels, , length], range: [low, high] } = this.inputs.samples;
    return mountStills(this.picture.root, { columns: 1, shared: null, figures: [{
      values, shape: [channels, length], size: [length, 1], title: "the input", note, hint,
      alt: `The input of the model, a step function${of}:`,
      scale: { low, high, name: "value", unit: "", open: false, stops: scales.ink },
      curves: { colours: channels === 1 ? ["currentColor"] : colours.series, signs: null },
    }] });
  }

  /**
   * Whether the page knows that a drawing is unlike the training images.
   * @param {Values} pixels
   */
  isUnlike(pixels) {
    const { unlike } = this.host;
    return unlike?.length === pixels.length && unlike.every((value, k) => value === pixels[k]);
  }

  /**
   * Draw a signal: the sample under the pointer gets its height.
   * @param {Element} plot
   * @param {PointerEvent} event
   */
  drawOn(plot, event) {
    const { inputs, picture: { root } } = this;
    const { shape: [, , length], range: [low, high] } = inputs.samples;
    const values = Float32Array.from(inputs.input(this.state).pixels);
    /** @type {[sample: number, value: number] | null} */
    let last = null;
    const draw = (/** @type {PointerEvent} */ at) => {
      const [x, y] = pointIn(at, plot);
      const sample = clip(Math.floor(x * length), 0, length - 1);
      const value = high - clip(y) * (high - low);
      const [from, start] = last ?? [sample, value];
      const span = Math.abs(sample - from);
      for (let k = 0; k <= span; k++) {
        const share = span ? k / span : 1;
        values[from + Math.sign(sample - from) * k] = start + share * (value - start);
      }
      last = [sample, value];
      inputs.take(values.slice());
    };
    draw(event);
    follow(root, event, draw);
  }

  /**
   * Dragging the picture moves the ink with the pointer.
   * @param {PointerEvent} event
   */
  drag(event) {
    const plot = event.target instanceof Element && event.target.closest(".plot");
    if (!plot || event.button || !event.isPrimary) return;
    if (this.state.from === "draw") return this.drawOn(plot, event);
    const { root } = this.picture;
    const cell = plot.getBoundingClientRect().width / this.inputs.samples.shape[2];
    const { right, down } = this.state;
    const shift = (/** @type {number} */ from, /** @type {number} */ by) =>
      Math.max(-FAR, Math.min(FAR, Math.round(2 * (from + by / cell)) / 2));
    const { signals } = this.inputs.samples;
    follow(root, event, ({ clientX, clientY }) => this.inputs.set({
      right: shift(Number(right), clientX - event.clientX),
      ...(signals ? {} : { down: shift(Number(down), clientY - event.clientY) }),
    }));
  }
}
