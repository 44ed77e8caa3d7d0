// The uploaded photograph: the frame that was read, every digit in it, and how it was understood.
/** @import { Component } from "densembed/panels/types.js" */
import { clip, find, pointIn } from "densembed/panels/dom.js";
import { Messages } from "../common/messages.js";

/**
 * @typedef {[left: number, top: number, right: number, bottom: number]} Box shares of the sides
 * @typedef {object} Digit
 * @property {Box} box
 * @property {string} label the prediction
 * @property {string} url the input of the model
 *
 * @typedef {object} Wish what the visitor asks for
 * @property {Box | null} frame
 * @property {number} turns quarter turns clockwise
 * @property {boolean} inverted
 * @property {number} digit
 *
 * @typedef {object} Data
 * @property {string} url
 * @property {Digit[]} digits
 * @property {Box} frame
 * @property {string} polarity
 * @property {string | null} paper a colour
 * @property {string | null} ink a colour
 * @property {Wish} wish
 * @property {number} order
 *
 * @typedef {object} State what outlives an answer of the server
 * @property {Messages} messages
 * @property {Wish} wish
 * @property {[x: number, y: number] | null} start of the frame that is drawn
 */

const LEAST = 0.03;  // of a side: a shorter drag is a click
const STEP = 0.02;  // of a side, by a key

/** @param {HTMLElement} element @param {Box} box */
function place(element, [left, top, right, bottom]) {
  Object.assign(element.style, { left: `${100 * left}%`, top: `${100 * top}%`,
    width: `${100 * (right - left)}%`, height: `${100 * (bottom - top)}%` });
}

/** @param {string} className @param {string} text */
function paragraph(className, text) {
  return Object.assign(document.createElement("span"), { className, textContent: text });
}

/** @param {Component<Data>} component */
export default ({ parentElement, data, setStateValue }) => {
  /** @type {HTMLElement & { state?: State }} */
  const sheet = find(parentElement, ".sheet", HTMLElement);
  const state = sheet.state ??= { messages: new Messages(), wish: data.wish, start: null };
  if (!state.messages.followed(data.order)) return;
  state.wish = data.wish;
  const image = find(parentElement, ".sheet img", HTMLImageElement);
  const frame = find(parentElement, ".frame", HTMLElement);
  const chips = find(parentElement, ".chips", HTMLElement);
  const { digits, wish } = data;
  const chosen = clip(wish.digit, 0, Math.max(0, digits.length - 1));
  /** @param {Partial<Wish>} changes */
  const ask = (changes) => {
    state.wish = { ...state.wish, digit: 0, ...changes };
    setStateValue("wish", state.messages.next(state.wish));
  };

  if (image.src !== data.url) image.src = data.url;
  image.alt = "The uploaded photograph";
  if (!state.start) place(frame, data.frame);
  frame.ariaLabel = "The part that is read. Arrow keys move it, with Shift they resize it.";
  for (const old of sheet.querySelectorAll(".box")) old.remove();
  digits.forEach(({ box }, k) => {
    const element = document.createElement("div");
    element.className = k === chosen ? "box chosen" : "box";
    place(element, box);
    sheet.append(element);
  });
  find(parentElement, ".found", HTMLElement).textContent = digits.length > 1
    ? `${digits.length} digits found, in reading order. Choose the one to look at:`
    : digits.length ? "One digit found." : "No digit found in this part.";
  chips.replaceChildren(...(digits.length > 1 ? digits : []).map(({ label, url }, k) => {
    const chip = Object.assign(document.createElement("button"), {
      type: "button", onclick: () => ask({ digit: k }), ariaPressed: String(k === chosen),
      ariaLabel: `Digit ${k + 1}: predicted ${label}`,
    });
    chip.append(Object.assign(document.createElement("img"), { src: url, alt: "" }), label);
    return chip;
  }));
  const colours = find(parentElement, ".colours", HTMLElement);
  colours.replaceChildren(`Read as ${data.polarity}. `);
  for (const [name, colour] of [["paper", data.paper], ["ink", data.ink]]) {
    if (!colour) continue;
    const swatch = paragraph("swatch", "");
    swatch.style.background = colour;
    colours.append(swatch, `${name} `);
  }
  /** @type {[string, boolean, () => void][]} */
  const tools = [
    ["Turn", false, () => ask({ turns: (state.wish.turns + 1) % 4, frame: null })],
    ["Invert", wish.inverted, () => ask({ inverted: !state.wish.inverted })],
    ["Whole photograph", !wish.frame, () => ask({ frame: null })],
  ];
  find(parentElement, ".tools", HTMLElement).replaceChildren(...tools.map(([name, on, act]) =>
    Object.assign(document.createElement("button"), {
      type: "button", textContent: name, onclick: act,
      ariaPressed: name === "Turn" ? null : String(on),
    })));

  /** @param {PointerEvent} event @returns {Box} */
  const dragged = (event) => {
    const [x, y] = pointIn(event, sheet).map((share) => clip(share));
    const [x0, y0] = state.start ?? [x, y];
    return [Math.min(x, x0), Math.min(y, y0), Math.max(x, x0), Math.max(y, y0)];
  };
  sheet.onpointerdown = (event) => {
    if (event.button || !event.isPrimary) return;  // another finger draws no frame
    const [x, y] = pointIn(event, sheet);
    state.start = [clip(x), clip(y)];
    sheet.setPointerCapture(event.pointerId);
  };
  sheet.onpointermove = (event) => {
    if (state.start && event.isPrimary) place(frame, dragged(event));
  };
  sheet.onpointercancel = () => { state.start = null; place(frame, data.frame); };
  sheet.onpointerup = (event) => {
    if (!state.start || !event.isPrimary) return;
    const box = dragged(event);
    state.start = null;
    if (box[2] - box[0] > LEAST && box[3] - box[1] > LEAST) {
      ask({ frame: box });
      return;
    }
    place(frame, data.frame);
    const hit = digits.findIndex(({ box: [left, top, right, bottom] }) =>
      left <= box[0] && box[0] <= right && top <= box[1] && box[1] <= bottom);
    if (hit >= 0) ask({ digit: hit });
  };
  frame.onkeydown = (event) => {
    const ways = /** @type {Record<string, [number, number]>} */ ({ ArrowLeft: [-STEP, 0],
      ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] });
    const way = ways[event.key];
    if (!way) return;
    event.preventDefault();
    const [left, top, right, bottom] = state.wish.frame ?? data.frame;
    /** @type {Box} */
    const moved = event.shiftKey ? [left, top, right + way[0], bottom + way[1]]
      : [left + way[0], top + way[1], right + way[0], bottom + way[1]];
    const fits = moved.map((share) => clip(share));
    if (fits[2] - fits[0] > LEAST && fits[3] - fits[1] > LEAST)
      ask({ frame: /** @type {Box} */ (fits) });
  };
};
