// @ts-check
/** The box around the mass of an input, as in `densembed/functional/frame.py`. */

/** Side of the box in units of the root mean square radius. */
const SIDE = 5.6;

/** The box of one input, and the gradient of the input for that of the box. */
export class Box {
  #mass = 0;
  #centre;
  #variance;
  #whole;
  #shape;
  #pixel;

  /**
   * @param {number[]} shape (channels, height, width) of the input
   * @param {number} axes 1 for a signal, which has one row
   * @param {number[]} pixel lengths of a pixel along the columns and the rows in a common unit, in
   *   which the box is a square
   */
  constructor([, height, width], axes, pixel) {
    this.#pixel = pixel.slice(0, axes);
    this.#shape = { height, width };
    this.#whole = [width, height].slice(0, axes);
    /** lower ends along the columns and the rows, in pixels */
    this.lower = this.#whole.map(() => 0);
    /** lengths along the columns and the rows */
    this.lengths = [...this.#whole];
    this.#centre = [...this.lower];
    this.#variance = [...this.lower];
  }

  /**
   * Moves the box to the mass of |x|, summed over the channels.
   *
   * @param {Float64Array} x (channels, height, width)
   */
  follow(x) {
    const whole = this.#whole;
    let top = 0;
    for (const value of x) top = Math.max(top, Math.abs(value));
    this.lower = whole.map(() => 0);
    this.lengths = [...whole];
    this.#mass = 0;
    if (top === 0) return;
    const sums = whole.map(() => 0);
    let mass = 0;
    for (let at = 0; at < x.length; at++) {
      if (x[at] === 0) continue; // most pixels of a digit
      const part = Math.abs(x[at]) / top;
      mass += part;
      for (let axis = 0; axis < sums.length; axis++) sums[axis] += part * this.#place(at, axis);
    }
    const centre = sums.map((sum) => sum / mass);
    const squares = whole.map(() => 0);
    for (let at = 0; at < x.length; at++) {
      if (x[at] === 0) continue;
      const part = Math.abs(x[at]) / top;
      for (let axis = 0; axis < squares.length; axis++)
        squares[axis] += part * (this.#place(at, axis) - centre[axis]) ** 2;
    }
    this.#mass = mass * top;
    this.#centre = centre;
    this.#variance = squares.map((square) => square / mass + 1 / 12);
    const pixel = this.#pixel;
    const scaled = this.#variance.map((each, axis) => each * pixel[axis] ** 2);
    const side = SIDE * Math.sqrt(sum(scaled) / whole.length);
    this.lengths = pixel.map((each) => side / each);
    this.lower = centre.map((each, axis) => each - this.lengths[axis] / 2);
  }

  /** The centre of a pixel along an axis. @param {number} at @param {number} axis */
  #place(at, axis) {
    const { height, width } = this.#shape;
    return (axis ? Math.floor(at / width) % height : at % width) + 0.5;
  }

  /**
   * Adds the gradient of the input for a gradient of the box.
   *
   * @param {Float64Array} x the last input
   * @param {number[]} byLower gradient of `lower`
   * @param {number[]} byLength gradient of `lengths`
   * @param {Float64Array} back
   */
  backward(x, byLower, byLength, back) {
    if (this.#mass === 0) return;
    const pixel = this.#pixel;
    const side = this.lengths[0] * pixel[0];
    // lower = centre − length / 2, length = side / pixel, and
    // side = SIDE √(mean of variance · pixel²)
    const bySide = sum(byLength.map((by, axis) => (by - byLower[axis] / 2) / pixel[axis]));
    const byVariance = pixel.map((each) =>
      (bySide * (SIDE * each) ** 2) / (2 * pixel.length * side));
    for (let at = 0; at < x.length; at++) {
      let total = 0;
      for (let axis = 0; axis < pixel.length; axis++) {
        const away = this.#place(at, axis) - this.#centre[axis];
        total += byLower[axis] * away
          + byVariance[axis] * (away ** 2 + 1 / 12 - this.#variance[axis]);
      }
      back[at] += (Math.sign(x[at]) * total) / this.#mass;
    }
  }
}

/** @param {number[]} values */
const sum = (values) => values.reduce((total, each) => total + each);
