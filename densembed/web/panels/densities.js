// Densities, drawn as ellipses around their centres.
/** @import { Densities } from "./types.js" */
import { clip } from "./dom.js";
import { fixed } from "./text.js";

const USUAL = 28;  // pixels of a picture in which lines and circles are as wide as they are written

/**
 * The unit of lines and circles over a picture, in its pixels: a share of its longer side, so that
 * they look the same on every grid.
 * @param {number[]} size
 */
export const unitOf = (size) => Math.max(...size) / USUAL;

/**
 * The SVG elements that draw the densities; their circles carry the density's number.
 * @param {Densities} densities
 * @param {number} unit of lines and circles, in pixels
 */
export function draw({ loc, scale, weights, bound, against, favour, chosen }, unit) {
  /** @type {string[][]} */
  const [ellipses, circles] = [[], []];
  Array.from(weights).forEach((weight, k) => {
    const share = clip(weight / bound, -1);
    const size = Math.abs(share);
    const colour = share < 0 ? against : favour;
    const centre = `cx="${loc[2 * k]}" cy="${loc[2 * k + 1]}"`;
    ellipses.push(`<ellipse ${centre} rx="${scale[2 * k]}" ry="${scale[2 * k + 1]}" fill="none"
      stroke="${colour}" stroke-width="${unit * (0.1 + 0.1 * size)}"
      stroke-opacity="${0.25 + 0.75 * size}"/>`);
    circles.push(`<circle ${centre} r="${unit * (0.28 + 0.36 * Math.sqrt(size))}" fill="${colour}"
      fill-opacity="${0.35 + 0.65 * size}" data-number="${k + 1}"/>`);
    if (k + 1 === chosen)
      circles.push(`<circle ${centre} r="${unit}" fill="none" stroke="#fff"
        stroke-width="${0.2 * unit}"/>`);
  });
  return [...ellipses, ...circles];
}

/**
 * The density near a point, in words; empty if there is none.
 * @param {Densities} densities
 * @param {number} t
 * @param {number} u
 * @param {number} near distance, in pixels or samples
 */
export function describe({ loc, scale, weights, name = "weight" }, t, u, near) {
  const axes = loc.length / weights.length;
  let nearest = 0, least = Infinity;
  for (let k = 0; k < weights.length; k++) {
    let distance = (loc[axes * k] - t) ** 2;
    if (axes === 2) distance += (loc[2 * k + 1] - u) ** 2;
    if (distance < least) [nearest, least] = [k, distance];
  }
  if (least > near ** 2) return "";
  const [place, width] = [loc, scale].map((array) =>
    Array.from({ length: axes }, (_, axis) => fixed(array[axes * nearest + axis], 2)));
  return `\ndensity ${nearest + 1} at ${place.join(", ")}`
    + `\nscale ${width.join(", ")} ${axes === 2 ? "pixels" : "samples"}`
    + `\n${name} ${fixed(weights[nearest], 3)}`;
}
