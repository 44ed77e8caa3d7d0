// What Explore and Compare share: a state that is drawn when it changes, and told when it rests.
import { recover, reportFailure } from "./host.js";
import { Pending, settled } from "./served.js";

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
  frame;  // the next one, if something is drawn that it will show
  moving = false;  // whether the state has changed since the view came to rest
  told = true;  // whether the host knows the state, which it is told a moment after that
  stale = false;  // whether the state has changed since it was drawn
  /** @type {number | undefined} */
  resting;

  /** @param {HTMLElement} root @param {Host} host */
  constructor(root, host) {
    this.root = root;
    this.host = host;
    this.set = this.set.bind(this);
  }

  update() {}

  rest() {}

  /** Whether a model that was chosen is still on its way; the last view stays until then. */
  get loading() {
    return false;
  }

  /**
   * Change the state and draw it at once, while the browser waits for the next frame; further
   * changes before that frame are drawn at its beginning.
   * @param {State} changes
   */
  set(changes) {
    Object.assign(this.state, changes);
    this.stale = this.moving = true;
    this.told = false;
    if (this.frame === undefined) this.draw();
    this.wait();
  }

  /** Try again what could not be loaded. */
  retry() {
    this.set({});
  }

  draw() {
    this.stale = false;
    this.frame = requestAnimationFrame(() => {
      this.frame = undefined;
      if (this.stale) this.draw();
    });
    this.attempt(() => this.update());
  }

  /**
   * Draw something. If the server still computes numbers for it, the last view stays until then.
   * @param {() => void} show
   */
  attempt(show) {
    try {
      show();
      this.root.ariaBusy = String(this.loading);
    } catch (error) {
      if (!(error instanceof Pending)) throw error;
      this.root.ariaBusy = "true";
      error.promise.then(() => {
        recover(this.host);
        this.set({});
      }, (reason) => reportFailure(this.host, reason));
    }
  }

  /**
   * Do long work one piece at a time, so that a pen that goes on meanwhile does not wait for it.
   * @param {(() => unknown)[]} pieces
   * @returns {Promise<boolean>} whether all is done; not if the state has changed meanwhile
   */
  async doAtRest(pieces) {
    for (const piece of pieces) {
      await new Promise((done) => { setTimeout(done); });
      if (this.moving) return false;
      await settled(piece);
    }
    return true;
  }

  /** Rest after a moment without a change. */
  wait() {
    clearTimeout(this.resting);
    this.resting = setTimeout(async () => {
      this.moving = false;
      try {
        await this.rest();
      } catch (error) {  // test images or numbers that did not arrive
        reportFailure(this.host, error);
      }
      this.told = !this.moving;
    }, REST);
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
