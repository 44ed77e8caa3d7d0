// What Explore and Compare share: a state that is drawn in the next frame, and told when it rests.
/**
 * @import { Host } from "./host.js"
 * @import { State } from "./parameters.js"
 */

const REST = 300;  // ms without a change after which the view rests

/** A view draws its state in `update`, and tells its host in `rest` that nothing has changed. */
export class View {
  /** @type {State} */
  state = {};
  /** @type {number | undefined} */
  frame;
  /** @type {number | undefined} */
  resting;

  /** @param {Host} host */
  constructor(host) {
    this.host = host;
    this.set = this.set.bind(this);
  }

  update() {}

  rest() {}

  /** @param {State} changes */
  set(changes) {
    Object.assign(this.state, changes);
    this.frame ??= requestAnimationFrame(() => { this.frame = undefined; this.update(); });
    this.wait();
  }

  /** Rest after a moment without a change. */
  wait() {
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.rest(), REST);
  }

  /** The parts that the link hides. */
  get hidden() {
    return String(this.state.hide ?? "").split(",").map((name) => name.trim());
  }

  /** Hide what the link hides. @param {Record<string, HTMLElement>} elements by their parts */
  hide(elements) {
    const { hidden } = this;
    for (const [name, element] of Object.entries(elements)) element.hidden = hidden.includes(name);
  }
}
