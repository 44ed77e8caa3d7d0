// The end of a colour scale. While an input is drawn or moved it stays, so that the same colour
// means the same value from frame to frame.

const FAR = 2;  // factor between the value and the end at which the end follows at once

export class ScaleEnd {
  value = 0;
  exact = 0;
  of = "";

  /**
   * @param {string} of what the scale is of: another quantity has another end
   * @param {number} exact the end without regard to the last one
   * @param {boolean} moving whether the input changes from frame to frame
   */
  at(of, exact, moving) {
    const near = exact < FAR * this.value && this.value < FAR * exact;
    if (!moving || !near || of !== this.of) this.value = exact;
    this.exact = exact;
    this.of = of;
    return this.value;
  }
}
