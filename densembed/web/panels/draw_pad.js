// A pad to draw a digit on with a mouse or a finger, with undo and clear.
/** @import { DrawPadData, Stroke } from "./types.js" */
import { find } from "./dom.js";

class DrawPad {
  /** @type {HTMLImageElement | null} */
  base = null;
  /** @type {string | null} */
  url = null;
  /** @type {{ stroke: Stroke, finger: number } | null} */
  current = null;
  /** @type {DOMRect | null} */
  place = null;  // of the canvas on the screen, in this frame

  /** @type {Stroke[]} */
  strokes = [];
  /** @type {{ strokes: Stroke[], base: HTMLImageElement | null } | null} */
  cleared = null;  // what Undo brings back once nothing else is left to undo

  /** @param {HTMLElement} root */
  constructor(root) {
    this.canvas = find(root, ".pad > canvas", HTMLCanvasElement);
    this.pen = this.canvas.getContext("2d");
    this.small = find(root, ".small", HTMLCanvasElement);
    this.size = find(root, "input", HTMLInputElement);
    this.undo = find(root, ".undo", HTMLButtonElement);
    this.clear = find(root, ".clear", HTMLButtonElement);
    this.canvas.onpointerdown = (event) => {
      if (event.button || this.current) return;
      this.canvas.setPointerCapture(event.pointerId);
      const stroke = { width: Number(this.size.value), points: this.pointsOf(event) };
      this.current = { stroke, finger: event.pointerId };
      this.strokes = [...this.strokes, stroke];
      this.draw();
      this.change();
    };
    // At once where the browser can, not together with the next frame.
    const moves = "onpointerrawupdate" in this.canvas ? "pointerrawupdate" : "pointermove";
    this.canvas.addEventListener(moves, (event) => {
      const { current } = this;
      // Another finger draws nothing.
      if (!(event instanceof PointerEvent) || event.pointerId !== current?.finger) return;
      const { points } = current.stroke;
      const first = points.length - 2;
      const parts = event.getCoalescedEvents?.() ?? [];
      for (const part of parts.length ? parts : [event])
        points.push(...this.pointsOf(part));
      this.line(current.stroke, first);
      this.change();
    });
    this.canvas.onpointerup = this.canvas.onpointercancel = (event) => {
      if (event.pointerId !== this.current?.finger) return;
      this.current = null;
      this.change();
    };
    this.undo.onclick = () => {
      this.current = null;  // by a key or another finger, while a stroke is drawn: it ends
      if (this.strokes.length) this.strokes = this.strokes.slice(0, -1);
      else if (this.base) this.base = null;
      else if (this.cleared) {
        ({ strokes: this.strokes, base: this.base } = this.cleared);
        this.cleared = null;
      }
      this.draw();
      this.change();
    };
    this.clear.onclick = () => {
      this.current = null;
      this.cleared = { strokes: this.strokes, base: this.base };
      this.strokes = [];
      this.base = null;
      this.draw();
      this.change();
    };
    this.canvas.onkeydown = (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "z") this.undo.click();
    };
  }

  /**
   * @param {DrawPadData} data
   * @param {(strokes: Stroke[], keepsBase: boolean) => void} onDraw
   */
  update({ paint, base, strokes }, onDraw) {
    this.onDraw = onDraw;
    paint(this.small);
    if (this.url !== base) {  // the picture of a link lies under the strokes
      if (base && base !== this.cleared?.base?.src) this.cleared = null;
      this.url = base;
      this.base = null;
      if (base) {
        this.base = new Image();
        this.base.onload = () => this.draw();
        this.base.src = base;
      }
    } else if (this.strokes === strokes) return;  // drawn when they were made
    if (!this.current) this.strokes = strokes;
    this.draw();
  }

  /** @param {PointerEvent} event */
  pointsOf({ clientX, clientY }) {
    const { canvas } = this;
    if (!this.place) {  // at most once per frame: after changes it lays out the page
      this.place = canvas.getBoundingClientRect();
      requestAnimationFrame(() => { this.place = null; });
    }
    const { left, top, width, height } = this.place;
    return [Math.round((clientX - left) / width * canvas.width),
      Math.round((clientY - top) / height * canvas.height)];
  }

  draw() {
    const { canvas, strokes, base, pen } = this;
    this.clear.disabled = !strokes.length && !base;
    this.undo.disabled = this.clear.disabled && !this.cleared;
    if (!pen) return;
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, canvas.width, canvas.height);
    if (base?.naturalWidth) pen.drawImage(base, 0, 0, canvas.width, canvas.height);
    pen.strokeStyle = "#000";
    pen.lineCap = pen.lineJoin = "round";
    for (const stroke of strokes) this.line(stroke);
  }

  /**
   * Draw a stroke, or what was added to it.
   * @param {Stroke} stroke
   * @param {number} [from] index of the point from which on it is drawn
   */
  line({ width, points }, from = 0) {
    const { pen } = this;
    if (!pen) return;
    pen.lineWidth = width;
    pen.beginPath();
    pen.moveTo(points[from], points[from + 1]);
    // A click leaves a dot: a line without length would leave nothing.
    if (!from && points.every((value, k) => value === points[k % 2]))
      pen.lineTo(points[0] + 0.01, points[1]);
    for (let k = from + 2; k < points.length; k += 2) pen.lineTo(points[k], points[k + 1]);
    pen.stroke();
  }

  change() {
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
  const canvas = find(parent, ".pad > canvas", HTMLCanvasElement);
  canvas.pad ??= new DrawPad(parent);
  canvas.pad.update(data, onDraw);
}
