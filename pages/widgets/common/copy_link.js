/** @import { Component } from "densembed/panels/types.js" */
import { find } from "densembed/panels/dom.js";

/** @param {Component<null>} component */
export default ({ parentElement }) => {
  const button = find(parentElement, "button", HTMLElement);
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(window.location.href);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy link"; }, 1500);
    } catch {  // no clipboard without HTTPS or permission
      window.prompt("The link of this view", window.location.href);
    }
  };
};
