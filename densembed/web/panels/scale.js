// Colour scales: their colours, and colour bars in HTML and SVG.
/** @import { Scale } from "./types.js" */
import { mark, write } from "./dom.js";
import { escape, round } from "./text.js";

export const COLOUR_BAR = `<div class="scale" aria-hidden="true"><div class="bar"></div
  ><div class="ticks"><span></span><span></span><span></span></div><div class="unit"></div></div>`;

/**
 * 256 colours between the stops, as pixels of a canvas.
 * @param {Scale["stops"]} stops
 */
export function ramp(stops) {
  const parts = stops.map(([, colour]) =>
    [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)));
  return Uint32Array.from({ length: 256 }, (_, k) => {
    const next = Math.max(1, stops.findIndex(([share]) => share >= k / 255));
    const [from, to] = [stops[next - 1][0], stops[next][0]];
    const between = (k / 255 - from) / (to - from);
    const [r, g, b] = parts[next - 1].map((part, c) =>
      Math.round(part + between * (parts[next][c] - part)));
    return (255 << 24) | (b << 16) | (g << 8) | r;
  });
}

/**
 * The texts at the ends and the middle of a colour bar.
 * @param {Scale} scale
 */
const ticks = ({ low, high, open }) => [
  (open && low < 0 ? "≤ " : "") + round(low), round((low + high) / 2),
  (open ? "≥ " : "") + round(high)];

/**
 * Show a scale in the element of COLOUR_BAR.
 * @param {Element} element
 * @param {Scale} scale
 */
export function fillBar(element, scale) {
  const [bar, marks, unit] = element.children;
  const stops = scale.stops.map(([share, colour]) => `${colour} ${100 * share}%`);
  mark(bar, "style", `background: linear-gradient(90deg, ${stops.join()})`);
  ticks(scale).forEach((text, k) => write(marks.children[k], text));
  write(unit, scale.name);
}

/**
 * The colour bar in an SVG of that width, from y on down: 64 units high.
 * @param {Scale} scale
 * @param {number} width
 * @param {number} y
 */
export function barInSvg(scale, width, y) {
  const stops = scale.stops.map(([share, colour]) =>
    `<stop offset="${share}" stop-color="${colour}"/>`);
  const anchors = ["start", "middle", "end"];
  const texts = ticks(scale).map((text, k) =>
    `<text x="${k * width / 2}" y="${y + 36}" text-anchor="${anchors[k]}">${text}</text>`);
  return `<linearGradient id="scale">${stops.join("")}</linearGradient>
    <rect y="${y + 10}" width="${width}" height="10" fill="url(#scale)"/>${texts.join("")}
    <text x="${width / 2}" y="${y + 56}" text-anchor="middle">${escape(scale.name)}</text>`;
}
