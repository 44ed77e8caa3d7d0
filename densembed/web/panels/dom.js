/**
 * The element below a root that a selector names.
 * @template {Element} T
 * @param {ParentNode} root
 * @param {string} selector
 * @param {new () => T} type
 */
export function find(root, selector, type) {
  const element = root.querySelector(selector);
  if (!(element instanceof type)) throw new Error(`There is no ${type.name} at ${selector}.`);
  return element;
}

/** @type {WeakMap<Element, string>} what `fill` and `write` gave to an element last */
const contents = new WeakMap();

/**
 * Give an element its content if it is new: a screen reader hears of every change, and the browser
 * lays out the page.
 * @param {Element} element
 * @param {string} html
 */
export function fill(element, html) {
  if (contents.get(element) !== html) element.innerHTML = html;
  contents.set(element, html);
}

/**
 * Give an element its text if it is new.
 * @param {Element} element
 * @param {string} text
 */
export function write(element, text) {
  if (contents.get(element) !== text) element.textContent = text;
  contents.set(element, text);
}

/**
 * Set an attribute if it is new.
 * @param {Element} element
 * @param {string} name
 * @param {string} value
 */
export function mark(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/**
 * Call `move` for each move of one pointer, until it is released.
 * @param {HTMLElement} element
 * @param {PointerEvent} pressed
 * @param {(event: PointerEvent) => void} move
 */
export function follow(element, { pointerId }, move) {
  element.setPointerCapture(pointerId);
  element.onpointermove = (event) => { if (event.pointerId === pointerId) move(event); };
  element.onpointerup = element.onpointercancel = (event) => {
    if (event.pointerId === pointerId) element.onpointermove = null;
  };
}

/**
 * Where the pointer is in an element, in shares of its width and height.
 * @param {MouseEvent} event
 * @param {Element} element
 */
export function pointIn(event, element) {
  const box = element.getBoundingClientRect();
  return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
}

/**
 * A number between two ends.
 * @param {number} value
 * @param {number} low
 * @param {number} high
 */
export const clip = (value, low = 0, high = 1) => Math.min(high, Math.max(low, value));
