// Figures to save, as SVG or PNG.
import { find } from "./dom.js";

export const SAVE = `<div class="save"
  ><button type="button" data-kind="svg" aria-label="Save as SVG">SVG</button
  ><button type="button" data-kind="png" aria-label="Save as PNG">PNG</button></div>`;

/**
 * An SVG that needs no other file.
 * @param {number} width
 * @param {number} height
 * @param {string[]} parts
 */
export const svg = (width, height, parts) => `<svg xmlns="http://www.w3.org/2000/svg"
  width="${width}" height="${height}" font-family="sans-serif" font-size="15" fill="#222">
  <rect width="100%" height="100%" fill="#fff"/>${parts.join("")}</svg>`;

/**
 * Let the buttons of SAVE in an element save a figure.
 * @param {Element} element
 * @param {() => { source: string, title: string }} figure
 */
export function onSave(element, figure) {
  find(element, ":scope > .save", HTMLElement).onclick = ({ target }) => {
    const kind = target instanceof HTMLElement && target.dataset.kind;
    const { source, title } = figure();
    if (kind) download(source, title, kind);
  };
}

/** @param {string} source @param {string} title @param {string} kind */
async function download(source, title, kind) {
  const link = document.createElement("a");
  link.download = `densembed-${title.replace(/[^\p{L}\p{N}]+/gu, "-")}.${kind}`;
  link.href = kind === "svg"
    ? URL.createObjectURL(new Blob([source], { type: "image/svg+xml" }))
    : await asPng(source);
  link.click();
  if (kind === "svg") setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** @param {string} source */
async function asPng(source) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/png");
}
