// A card that points at one part of the page after another.
/** @import { Component } from "densembed/panels/types.js" */
import { find } from "densembed/panels/dom.js";
import { Messages } from "../common/messages.js";

const KEY = "densembed-tour";
const ROOM = 140;  // pixels for the card, which is at the bottom of the window

/** @typedef {{ stop: number | null, stops: Stop[], order: number }} TourData */
/** @typedef {[part: string, text: string]} Stop */

class Tour {
  stop = 0;  // from 1; 0 for none
  room = false;  // whether the page has had room for the card
  /** @type {number | null | undefined} */
  linked;
  messages = new Messages();

  /** @param {HTMLElement} card @param {TourData} data */
  constructor(card, data) {
    this.data = data;
    this.card = card;
    // A rule, and no mark on the part itself, which may not be there yet.
    this.rule = document.head.appendChild(document.createElement("style"));
    this.count = find(card, ".count", HTMLElement);
    this.text = find(card, ".text", HTMLElement);
    this.next = find(card, ".next", HTMLElement);
    this.next.onclick = () => this.go((this.stop + 1) % (this.data.stops.length + 1));
    this.skip = find(card, ".skip", HTMLElement);
    this.skip.onclick = () => this.go(0);
    card.onkeydown = (event) => { if (event.key === "Escape") this.go(0); };
  }

  /** @param {TourData} data @param {Component<TourData>["setStateValue"]} report */
  update(data, report) {
    this.data = data;
    this.report = report;
    if (this.messages.followed(data.order)) {
      if (this.linked !== data.stop)
        this.stop = data.stop ?? (localStorage.getItem(KEY) ? 0 : 1);
      this.linked = data.stop;
    }
    this.show();
  }

  /** @param {string} [part] */
  mark(part) {
    // The room stays, so that nothing moves when the card is closed.
    this.room ||= Boolean(part);
    this.rule.textContent = (this.room ? `
      body [data-testid="stMainBlockContainer"] {padding-bottom: ${ROOM}px;}` : "") + (part ? `
      .live :is(${part}) {
        outline: 2px solid #5aa9e6; outline-offset: 4px; scroll-margin: 72px 8px ${ROOM}px;
      }` : "");
  }

  show() {
    const { stops } = this.data;
    this.card.hidden = !this.stop;
    this.mark(stops[this.stop - 1]?.[0]);
    if (!this.stop) return;
    this.count.textContent = `Tour, ${this.stop} of ${stops.length}`;
    this.text.textContent = stops[this.stop - 1][1];
    this.skip.hidden = this.stop === stops.length;
    this.next.textContent = this.skip.hidden ? "Done" : "Next";
  }

  /** @param {number} stop */
  go(stop) {
    this.stop = this.linked = stop;
    localStorage.setItem(KEY, "seen");
    if (!stop && this.card.matches(":focus-within"))
      find(document, ".live button", HTMLElement).focus({ preventScroll: true });
    this.show();
    if (stop) document.querySelector(`.live :is(${this.data.stops[stop - 1][0]})`)
      ?.scrollIntoView({ block: "nearest" });
    this.report?.("stop", this.messages.next(stop));
  }
}

/** @param {Component<TourData>} component */
export default ({ parentElement, data, setStateValue }) => {
  /** @type {HTMLElement & { tour?: Tour }} */
  const card = find(parentElement, ".tour", HTMLElement);
  const tour = card.tour ??= new Tour(card, data);
  tour.update(data, setStateValue);
  return () => tour.mark();
};
