// A pad to draw a digit on with a mouse or a finger, with undo and clear.
/** @import { DrawPadData, Stroke } from "./types.js" */
import { find, pointIn } from "./dom.js";

class DrawPad {
  /** @type {HTMLImageElement | null} */
  base = null;
  /** @type {string | null} */
  url = null;
  /** @type {{ stroke: Stroke, finger: number } | null} */
  current = null;

  /** @param {HTMLElement} root @param {Stroke[]} strokes */
  constructor(root, strokes) {
    this.strokes = strokes;
    this.canvas = find(root, "canvas", HTMLCanvasElement);
    this.input = find(root, "img", HTMLImageElement);
    this.size = find(root, "input", HTMLInputElement);
    this.undo = find(root, ".undo", HTMLButtonElement);
    this.clear = find(root, ".clear", HTMLButtonElement);
    this.canvas.onpointerdown = (event) => {
      if (event.button || this.current) return;
      this.canvas.setPointerCapture(event.pointerId);
      const stroke = { width: Number(this.size.value), points: this.pointsOf(event) };
      this.current = { stroke, finger: event.pointerId };
      this.strokes = [...this.strokes, stroke];
      this.change();
    };
    this.canvas.onpointermove = (event) => {
      if (event.pointerId !== this.current?.finger) return;  // another finger draws nothing
      const parts = event.getCoalescedEvents?.() ?? [];
      for (const part of parts.length ? parts : [event])
        this.current.stroke.points.push(...this.pointsOf(part));
      this.change();
    };
    this.canvas.onpointerup = this.canvas.onpointercancel = (event) => {
      if (event.pointerId !== this.current?.finger) return;
      this.current = null;
      this.change();
    };
    this.undo.onclick = () => {
      if (this.strokes.length) this.strokes = this.strokes.slice(0, -1);
      else this.base = null;
      this.change();
    };
    this.clear.onclick = () => { this.strokes = []; this.base = null; this.change(); };
    this.canvas.onkeydown = (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "z") this.undo.click();
    };
  }

  /**
   * @param {DrawPadData} data
   * @param {(strokes: Stroke[], keepsBase: boolean) => void} onDraw
   */
  update({ input, base, strokes }, onDraw) {
    this.onDraw = onDraw;
    this.input.src = input;
    if (!this.current) this.strokes = strokes;
    if (this.url !== base) {  // the picture of a link lies under the strokes
      this.url = base;
      this.base = null;
      if (base) {
        const image = new Image();
        image.onload = () => { this.base = image; this.draw(); };
        image.src = base;
      }
    }
    this.draw();
  }

  /** @param {PointerEvent} event */
  pointsOf(event) {
    const [x, y] = pointIn(event, this.canvas);
    return [Math.round(x * this.canvas.width), Math.round(y * this.canvas.height)];
  }

  draw() {
    const { canvas, strokes, base } = this;
    this.undo.disabled = this.clear.disabled = !strokes.length && !base;
    const pen = canvas.getContext("2d");
    if (!pen) return;
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, canvas.width, canvas.height);
    if (base) pen.drawImage(base, 0, 0, canvas.width, canvas.height);
    pen.strokeStyle = "#000";
    pen.lineCap = pen.lineJoin = "round";
    for (const { width, points } of strokes) {
      pen.lineWidth = width;
      pen.beginPath();
      pen.moveTo(points[0], points[1]);
      // A click leaves a dot: a line without length would leave nothing.
      if (points.every((value, k) => value === points[k % 2]))
        pen.lineTo(points[0] + 0.01, points[1]);
      for (let k = 2; k < points.length; k += 2) pen.lineTo(points[k], points[k + 1]);
      pen.stroke();
    }
  }

  change() {
    this.draw();
    this.onDraw?.(this.strokes, Boolean(this.base));
  }
}

/**
 * Show the pad in an element that has its HTML; `onDraw` gets the drawing after every change,
 * also while a stroke is drawn.
 * @param {HTMLElement} parent
 * @param {DrawPadData} data
 * @param {NonNullable<DrawPad["onDraw"]>} onDraw
 */
export function mount(parent, data, onDraw) {
  /** @type {HTMLCanvasElement & { pad?: DrawPad }} */
  const canvas = find(parent, "canvas", HTMLCanvasElement);
  canvas.pad ??= new DrawPad(parent, data.strokes);
  canvas.pad.update(data, onDraw);
}
