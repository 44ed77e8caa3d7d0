// @ts-check
/** The box around the mass of a signal, as in `densembed/functional/frame.py`. */

/** Side of the box in units of the root mean square radius. */
const SIDE = 5.6;

/** The box of one signal, and the gradient of the signal for that of the box. */
export class Box {
  /** lower ends along the columns and the rows, in pixels */
  lower = [0, 0];
  /** lengths along the columns and the rows */
  lengths;
  #mass = 0;
  #centre = [0, 0];
  #variance = [0, 0];
  #shape;

  /** @param {number[]} shape (channels, height, width) of the signal */
  constructor([, height, width]) {
    this.#shape = { height, width };
    this.lengths = [width, height];
  }

  /**
   * Moves the box to the mass of |x|, summed over the channels.
   *
   * @param {Float64Array} x (channels, height, width)
   */
  follow(x) {
    const { height, width } = this.#shape;
    let top = 0;
    for (const value of x) top = Math.max(top, Math.abs(value));
    this.lower = [0, 0];
    this.lengths = [width, height];
    this.#mass = 0;
    if (top === 0) return;
    const sums = [0, 0];
    let mass = 0;
    for (let at = 0; at < x.length; at++) {
      if (x[at] === 0) continue; // most pixels of a digit
      const part = Math.abs(x[at]) / top;
      mass += part;
      sums[0] += part * ((at % width) + 0.5);
      sums[1] += part * ((Math.floor(at / width) % height) + 0.5);
    }
    const centre = sums.map((sum) => sum / mass);
    const squares = [0, 0];
    for (let at = 0; at < x.length; at++) {
      if (x[at] === 0) continue;
      const part = Math.abs(x[at]) / top;
      squares[0] += part * ((at % width) + 0.5 - centre[0]) ** 2;
      squares[1] += part * ((Math.floor(at / width) % height) + 0.5 - centre[1]) ** 2;
    }
    this.#mass = mass * top;
    this.#centre = centre;
    this.#variance = squares.map((square) => square / mass + 1 / 12);
    const length = SIDE * Math.sqrt((this.#variance[0] + this.#variance[1]) / 2);
    this.lengths = [length, length];
    this.lower = centre.map((each) => each - length / 2);
  }

  /**
   * Adds the gradient of the signal for a gradient of the box.
   *
   * @param {Float64Array} x the last signal
   * @param {number[]} byLower gradient of `lower`
   * @param {number} byLength gradient of the length of both axes
   * @param {Float64Array} back
   */
  backward(x, byLower, byLength, back) {
    if (this.#mass === 0) return;
    const { height, width } = this.#shape;
    const [length] = this.lengths;
    // lower = centre − length / 2, and length = SIDE √((v₀ + v₁) / 2)
    const slope = byLength - (byLower[0] + byLower[1]) / 2;
    const byVariance = (slope * SIDE * SIDE) / (4 * length);
    for (let at = 0; at < x.length; at++) {
      const away = [
        (at % width) + 0.5 - this.#centre[0],
        (Math.floor(at / width) % height) + 0.5 - this.#centre[1],
      ];
      let sum = 0;
      for (const axis of [0, 1])
        sum +=
          byLower[axis] * away[axis] +
          byVariance * (away[axis] ** 2 + 1 / 12 - this.#variance[axis]);
      back[at] += (Math.sign(x[at]) * sum) / this.#mass;
    }
  }
}
