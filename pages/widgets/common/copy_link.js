/** @import { Component } from "densembed/panels/types.js" */
import { find } from "densembed/panels/dom.js";

/** @typedef {{ live?: { host: { link: string }, shown?: { told: boolean } } }} Viewed */

const LONGEST = 4000;  // ms that are waited, as a browser lets a page copy just after a click
const PAUSE = 50, CALM = 4;  // ms between two looks, and looks without a change

/** Whether the view has a change that the address of the page still lacks. */
function isBusy() {
  const view = /** @type {Viewed | null} */ (document.querySelector(".view"));
  const written = new URLSearchParams(location.search);
  const lacks = [...new URLSearchParams(view?.live?.host.link)].some(
    ([name, value]) => written.get(name) !== value);
  return lacks || view?.live?.shown?.told === false || document.querySelector(
    "[data-test-script-state]:not([data-test-script-state=notRunning])") !== null;
}

/** Wait until the address of the page says what the visitor has just chosen. */
async function settle() {
  const end = performance.now() + LONGEST;
  for (let calm = isBusy() ? 0 : CALM; calm < CALM && performance.now() < end;) {
    await new Promise((done) => { setTimeout(done, PAUSE); });
    calm = isBusy() ? 0 : calm + 1;
  }
}

/** @param {Component<null>} component */
export default ({ parentElement }) => {
  const button = find(parentElement, "button", HTMLElement);
  button.onclick = async () => {
    await settle();
    try {
      await navigator.clipboard.writeText(window.location.href);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy link"; }, 1500);
    } catch {  // no clipboard without HTTPS or permission
      window.prompt("The link of this view", window.location.href);
    }
  };
};
