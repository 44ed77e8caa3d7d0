// A row of small test images to choose from, which can be shuffled.
/** @import { Component, ThumbnailsData } from "./types.js" */
import { find } from "./dom.js";

/** @param {string} label @param {() => void} onclick */
function button(label, onclick) {
  const element = document.createElement("button");
  element.type = "button";
  element.onclick = onclick;
  element.ariaLabel = element.title = label;
  return element;
}

/**
 * Show the row in an element that has its HTML.
 * @param {HTMLElement} parent
 * @param {ThumbnailsData} data
 * @param {{ pick: (number: number) => void, shuffle: (seed: number) => void }} callbacks
 */
export function mount(parent, data, { pick, shuffle }) {
  const { sprite, numbers, chosen, seeds, ground = "#000" } = data;
  const row = find(parent, ".row", HTMLElement);
  const buttons = numbers.map((number, k) => {
    const thumbnail = button(`Example ${number}`, () => pick(number));
    thumbnail.ariaPressed = String(number === chosen);
    thumbnail.style.background =
      `url(${sprite}) ${-30 * k}px 0 / ${30 * numbers.length}px padding-box ${ground}`;
    return thumbnail;
  });
  const last = button("Shuffle", () => shuffle(Math.floor(seeds * Math.random())));
  last.className = "shuffle";
  last.textContent = "Shuffle";
  const root = row.getRootNode();
  const active = root instanceof ShadowRoot ? root.activeElement : document.activeElement;
  const focus = [...row.children].findIndex((child) => child === active);
  row.replaceChildren(...buttons, last);
  [...buttons, last][focus]?.focus();
}

/** @param {Component<ThumbnailsData>} component */
export default ({ parentElement, data, setTriggerValue }) => mount(parentElement, data, {
  pick: (number) => setTriggerValue("pick", number),
  shuffle: (seed) => setTriggerValue("shuffle", seed),
});
