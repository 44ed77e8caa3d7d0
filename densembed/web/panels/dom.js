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

/**
 * Give an element its content if it is new: a screen reader hears of every change.
 * @param {Element} element
 * @param {string} html
 */
export function fill(element, html) {
  if (element.innerHTML !== html) element.innerHTML = html;
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
