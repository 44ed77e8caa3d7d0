// Fields drawn and moved in the browser: the server only hears where the slider came to rest.
// What Explore and Compare share; each has its own arrangement of panels in a file of its own.

const REST = 400;  // ms without a move after which the step is told
const FRAME = 70;  // ms a step of the film
const CALM = 350;  // for who asks for less motion: fewer than three changes a second
const LEVELS = [0.2, 0.4, 0.6, 0.8];  // contours, as shares of the colour scale
const SCALE = `<div class="bar"></div><div class="ticks"><span></span><span></span><span></span></div
  ><div class="unit"></div>`;
const SAVE = `<button type="button" data-kind="svg" aria-label="Save as SVG">SVG</button
  ><button type="button" data-kind="png" aria-label="Save as PNG">PNG</button>`;
const PANEL = `
  <p class="heading"></p>
  <div class="plot" tabindex="0" role="img">
    <img alt=""><canvas></canvas><svg preserveAspectRatio="none"></svg>
    <input type="range" min="0" max="100" value="50" hidden
      aria-label="Divider between before, to its left, and after">
    <div class="tip" hidden></div>
  </div>
  <div class="save">${SAVE}</div>
  <div class="scale" aria-hidden="true">${SCALE}</div>`;

// By a loop: `Uint8Array.from` with a function took a third of a click's time.
function bytes(text) {
  const letters = atob(text);
  const found = new Uint8Array(letters.length);
  for (let k = 0; k < letters.length; k++) found[k] = letters.charCodeAt(k);
  return found.buffer;
}

const floats = (text) => new Float32Array(bytes(text));
const round = (value) => Number(value.toPrecision(3)).toString().replace("-", "−");
const NO_XML = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu;
const escape = (text) =>
  text.replace(NO_XML, "\ufffd").replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
// What of a text has room in a width of an SVG, in letters of that size.
const short = (text, width, size) => {
  const letters = Math.floor(2 * width / size);
  return text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
};

// What stands at the ends and the middle of a colour bar: a field goes beyond its ends.
const ticks = ({ low, high, open }) => [
  (open && low < 0 ? "≤ " : "") + round(low), round((low + high) / 2),
  (open ? "≥ " : "") + round(high)];

// A colour bar in the element that holds SCALE.
function fill(element, scale) {
  const [bar, marks, unit] = element.children;
  bar.style.background =
    `linear-gradient(90deg, ${scale.stops.map(([s, c]) => `${c} ${100 * s}%`).join()})`;
  ticks(scale).forEach((text, k) => { marks.children[k].textContent = text; });
  unit.textContent = scale.name;
}

// A heading in its element: a title, and a note on a line of its own.
function head(element, title, note) {
  element.title = title;
  element.innerHTML = `${escape(title)}<small>${escape(note) || "&nbsp;"}</small>`;
}

// The colour bar in an SVG of that width, from y on down: 64 units high.
function bar(scale, width, y) {
  const stop = ([share, colour]) => `<stop offset="${share}" stop-color="${colour}"/>`;
  const [left, middle, right] = ticks(scale);
  const tick = (x, anchor, value) =>
    `<text x="${x}" y="${y + 36}" text-anchor="${anchor}">${value}</text>`;
  return `<linearGradient id="scale">${scale.stops.map(stop).join("")}</linearGradient>
    <rect y="${y + 10}" width="${width}" height="10" fill="url(#scale)"/>
    ${tick(0, "start", left)}${tick(width / 2, "middle", middle)}${tick(width, "end", right)}
    <text x="${width / 2}" y="${y + 56}" text-anchor="middle">${escape(scale.name)}</text>`;
}

// An SVG that needs nothing else.
const sheet = (width, height, parts) => `<svg xmlns="http://www.w3.org/2000/svg" width="${width}"
  height="${height}" font-family="sans-serif" font-size="15" fill="#222">
  <rect width="100%" height="100%" fill="#fff"/>${parts.join("")}</svg>`;

async function download(source, title, kind) {
  const svg = new Blob([source], { type: "image/svg+xml" });
  const link = document.createElement("a");
  link.download = `densembed-${title.replace(/[^\p{L}\p{N}]+/gu, "-")}.${kind}`;
  if (kind === "svg") {
    link.href = URL.createObjectURL(svg);
  } else {
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source)}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    link.href = canvas.toDataURL("image/png");
  }
  link.click();
  if (kind === "svg") setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Fields packed as 16 bits a number; each is unpacked when it is first looked at.
class Fields {
  constructor({ stack, shape, low, high }) {
    this.packed = new Uint16Array(bytes(stack));
    this.size = shape[0] * shape[1];
    this.low = low;
    this.factor = (high - low) / 65535;
    this.known = [];
  }

  at(index) {
    return this.known[index] ??= this.unpack(index * this.size);
  }

  unpack(start) {
    const values = new Float32Array(this.size);
    for (let k = 0; k < this.size; k++) values[k] = this.low + this.packed[start + k] * this.factor;
    return values;
  }
}

// 256 colours between the stops [share, "#rrggbb"].
function ramp(stops) {
  const parts = stops.map(([, colour]) =>
    [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)));
  return Array.from({ length: 256 }, (_, k) => {
    const next = Math.max(1, stops.findIndex(([share]) => share >= k / 255));
    const [from, to] = [stops[next - 1][0], stops[next][0]];
    const between = (k / 255 - from) / (to - from);
    return parts[next - 1].map((part, c) => part + between * (parts[next][c] - part));
  });
}

// The line on which values (height × width, at the cells' centres) cross a level, as an SVG path.
function contour(values, width, height, level, cell) {
  let path = "";
  for (let i = 0; i + 1 < height; i++) {
    for (let j = 0; j + 1 < width; j++) {
      const at = i * width + j;
      const corners = [values[at], values[at + 1], values[at + width + 1], values[at + width]];
      const over = corners.map((value) => value > level);
      if (over.every((side) => side === over[0])) continue;
      const cuts = [];
      for (const [a, b, x0, y0, x1, y1] of [
        [0, 1, 0, 0, 1, 0], [1, 2, 1, 0, 1, 1], [2, 3, 1, 1, 0, 1], [3, 0, 0, 1, 0, 0]]) {
        if (over[a] === over[b]) continue;
        const share = (level - corners[a]) / (corners[b] - corners[a]);
        const x = (j + 0.5 + x0 + share * (x1 - x0)) * cell;
        const y = (i + 0.5 + y0 + share * (y1 - y0)) * cell;
        cuts.push(`${x.toFixed(2)} ${y.toFixed(2)}`);
      }
      for (let k = 0; k < cuts.length; k += 2) path += `M${cuts[k]}L${cuts[k + 1]}`;
    }
  }
  return path;
}

class Panel {
  constructor(figure, stage) {
    figure.innerHTML = PANEL;
    this.stage = stage;
    for (const name of ["plot", "tip", "heading", "save"])
      this[name] = figure.querySelector(`.${name}`);
    this.legend = figure.querySelector(".scale");
    for (const name of ["img", "canvas", "svg"]) this[name] = this.plot.querySelector(name);
    this.divider = this.plot.querySelector("input");
    this.divider.oninput = () => stage.divide(Number(this.divider.value));
    this.plot.onpointermove = (event) => {
      const box = this.plot.getBoundingClientRect();
      this.read((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
    };
    this.plot.onpointerleave = this.plot.onblur = () => { this.place = null; this.tell(); };
    this.plot.onkeydown = (event) => {  // the arrows read pixel by pixel
      const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
      if (event.target !== this.plot || !move[event.key]) return;
      event.preventDefault();
      const [width, height] = stage.data.size;
      const [x, y] = this.place ?? [0.5, 0.5];
      const [across, down] = move[event.key];
      this.read((Math.floor(x * width) + 0.5 + across) / width,
        (Math.floor(y * height) + 0.5 + down) / height);
    };
    this.plot.onclick = (event) => {
      const number = event.target.dataset?.number;
      if (number) stage.choose(Number(number));
    };
    this.save.onclick = (event) => {
      const { kind } = event.target.dataset;
      if (kind) download(this.drawing(), this.title, kind);
    };
  }

  // One look: values (or none), the step that its densities are of, its scale and its words.
  show({ values, left, at, scale, title, note, alt }) {
    const { size, shape, picture, contours } = this.stage.data;
    this.at = at;
    this.alt = alt;
    head(this.heading, title, note);
    this.title = note ? `${title}, ${note}` : title;
    this.plot.style.setProperty("--ratio", `${size[0]} / ${size[1]}`);
    this.img.hidden = !picture;
    if (picture && this.img.src !== picture.url) this.img.src = picture.url;
    this.canvas.style.opacity = picture ? picture.opacity : 1;
    this.canvas.hidden = !values;
    this.divider.hidden = !left;
    this.plot.setAttribute("role", left ? "group" : "img");  // an image has no controls within
    if (values && left) {
      const [height, width] = shape;
      const edge = this.divider.value / 100 * width;
      values = values.map((value, k) => (k % width + 0.5 < edge ? left[k] : value));
    }
    this.canvas.values = values;
    if (values) this.paint(values, scale);
    this.scale = scale;
    this.draw(values && contours, Boolean(left));
    fill(this.legend, scale);
    this.tell();
  }

  paint(values, { stops, low, high }) {
    const [height, width] = this.stage.data.shape;
    if (this.stops !== stops) {
      this.stops = stops;
      this.colours = new Uint32Array(ramp(stops).map(([r, g, b]) =>
        (255 << 24) | (Math.round(b) << 16) | (Math.round(g) << 8) | Math.round(r)));
    }
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    const image = new ImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const factor = 255 / (high - low);
    for (let k = 0; k < values.length; k++) {
      const shade = Math.round((values[k] - low) * factor);
      pixels[k] = this.colours[shade < 0 ? 0 : shade > 255 ? 255 : shade];
    }
    this.canvas.getContext("2d").putImageData(image, 0, 0);
  }

  // What lies over the picture: contours, densities, the divider of a swipe.
  draw(contours, swipes) {
    const { size, shape, dots } = this.stage.data;
    const [width, height] = size;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const parts = [];
    if (contours) {
      const { low, high } = this.scale;
      const levels = LEVELS.map((share) => share * high);
      for (const level of low < 0 ? [...levels, ...levels.map((l) => -l)] : levels) {
        const path = contour(this.canvas.values, shape[1], shape[0], level, width / shape[1]);
        parts.push(`<path d="${path}" fill="none" stroke="${low < 0 ? "#333" : "#fff"}"
          stroke-width="0.12" stroke-opacity="0.8"/>`);
      }
    }
    if (dots) parts.push(...this.densities(dots));
    if (swipes) {
      const x = this.divider.value / 100 * width;
      parts.push(`<line x1="${x}" x2="${x}" y1="0" y2="${height}" stroke="#fff"
        stroke-width="0.3"/>`);
    }
    this.svg.innerHTML = parts.join("");
  }

  *densities({ count, bound, against, favour, chosen }) {
    const { loc, scale, weights } = this.stage.dots;
    const marks = [];
    for (let k = 0; k < count; k++) {
      const at = this.at * count + k;
      const share = Math.max(-1, Math.min(1, weights[at] / bound));
      const colour = share < 0 ? against : favour;
      const place = `cx="${loc[2 * at]}" cy="${loc[2 * at + 1]}"`;
      yield `<ellipse ${place} rx="${scale[2 * at]}" ry="${scale[2 * at + 1]}" fill="none"
        stroke="${colour}" stroke-width="${0.1 + 0.1 * Math.abs(share)}"
        stroke-opacity="${0.25 + 0.75 * Math.abs(share)}"/>`;
      marks.push(`<circle ${place} r="${0.28 + 0.36 * Math.sqrt(Math.abs(share))}"
        fill="${colour}" fill-opacity="${0.35 + 0.65 * Math.abs(share)}" data-number="${k + 1}"/>`);
      if (k + 1 === chosen)
        marks.push(`<circle ${place} r="1" fill="none" stroke="#fff" stroke-width="0.2"/>`);
    }
    yield* marks;
  }

  read(x, y) {
    const inside = (share) => Math.max(0, Math.min(0.9999, share));
    this.place = [inside(x), inside(y)];
    this.tell();
  }

  // What is under the pointer or the arrow keys; without one, what the figure is.
  tell() {
    const { size, shape, dots } = this.stage.data;
    this.tip.hidden = !this.place;
    this.plot.setAttribute("aria-label", `${this.alt} ${this.title}`);
    if (!this.place) return;
    const [x, y] = this.place;
    let text = `column ${(x * size[0]).toFixed(2)}, row ${(y * size[1]).toFixed(2)}`;
    text += `\npixel ${Math.floor(x * size[0])}, ${Math.floor(y * size[1])} `;
    if (this.canvas.values) {
      const at = Math.floor(y * shape[0]) * shape[1] + Math.floor(x * shape[1]);
      const value = this.canvas.values[at];
      const sign = this.scale.low < 0 && value > 0 ? "+" : "";
      text += `\n${sign}${value.toFixed(4).replace("-", "−")} ${this.scale.unit}`;
    } else if (dots) {
      text += this.nearest(x * size[0], y * size[1]);
    }
    this.tip.textContent = text;
    this.plot.setAttribute("aria-label", text.replaceAll("\n", ", "));
    const left = x > 0.5;
    this.tip.style.left = left ? "auto" : `calc(${100 * x}% + 14px)`;
    this.tip.style.right = left ? `calc(${100 * (1 - x)}% + 14px)` : "auto";
    this.tip.style.top = `min(${100 * y}%, calc(100% - 64px))`;
  }

  nearest(t, u) {
    const { count } = this.stage.data.dots;
    const { loc, scale, weights } = this.stage.dots;
    let best = 0, least = Infinity;
    for (let k = 0; k < count; k++) {
      const at = this.at * count + k;
      const far = (loc[2 * at] - t) ** 2 + (loc[2 * at + 1] - u) ** 2;
      if (far < least) [best, least] = [k, far];
    }
    if (least > 1) return "";
    const at = this.at * count + best;
    const [x, y, a, b] = [loc[2 * at], loc[2 * at + 1], scale[2 * at], scale[2 * at + 1]];
    return `\ndensity ${best + 1} at ${x.toFixed(2)}, ${y.toFixed(2)}`
      + `\nscale ${a.toFixed(2)} × ${b.toFixed(2)} pixels`
      + `\nweight ${weights[at].toFixed(3).replace("-", "−")}`;
  }

  // The picture under its title as a part of an SVG, at that place and that wide.
  plate(x, y, width) {
    const [w, h] = this.stage.data.size;
    const height = h * width / w;
    const layers = [];
    const embed = (url, opacity) => layers.push(`<image href="${url}" y="40" width="${width}"
      height="${height}" opacity="${opacity}" preserveAspectRatio="none"
      style="image-rendering: pixelated"/>`);
    if (!this.img.hidden) embed(this.img.src, 1);
    if (!this.canvas.hidden) embed(this.canvas.toDataURL(), this.canvas.style.opacity || 1);
    return `<svg x="${x}" y="${y}" width="${width}" height="${height + 40}">
      <text x="${width / 2}" y="26" text-anchor="middle" font-size="18">${
        escape(short(this.title, width, 18))}</text>
      <rect y="40" width="${width}" height="${height}"/>
      ${layers.join("")}
      <svg y="40" width="${width}" height="${height}" viewBox="0 0 ${w} ${h}">${
        this.svg.innerHTML}</svg></svg>`;
  }

  // The panel with its title and colour bar as one SVG.
  drawing() {
    const [w, h] = this.stage.data.size;
    const end = 40 + 480 * h / w;
    return sheet(480, end + 64, [this.plate(0, 0, 480), bar(this.scale, 480, end)]);
  }
}

// Panels and opinions at the place where one slider stands, which can play. The data's `steps` are
// its places, `by` what it counts, `step` where it stands. An arrangement unpacks what is new in the
// data, shows its panels at the place `index`, and names the `parts` that a link may hide.
class Stage {
  constructor(root) {
    this.root = root;
    this.says = root.querySelector(".opinion .heading");
    this.bars = root.querySelector(".bars");
    this.legend = root.querySelector(".legend");
    [this.play, this.slider, this.output] =
      ["button", "input", "output"].map((name) => root.querySelector(`.steps ${name}`));
    this.slider.oninput = () => { this.stop(); this.move(Number(this.slider.value)); };
    this.play.onclick = () => (this.film ? this.stop() : this.start());
  }

  take(data, setState, setTrigger) {
    this.choose = (number) => setTrigger("density", number);
    this.report = (step) => setState("step", step);
    const steps = String(data.steps);
    this.unpack(data);
    this.data = data;
    this.slider.max = data.steps.length - 1;
    this.list();
    for (const [name, part] of Object.entries(this.parts))
      for (const each of this.root.querySelectorAll(part))
        each.hidden = data.hidden.includes(name);
    // Else it is this slider's own word, or the place that was sent before it.
    if (data.step !== this.told && data.step !== this.sent || steps !== this.steps) {
      this.told = data.step;
      this.steps = steps;
      this.index = data.steps.indexOf(data.step);
      clearTimeout(this.resting);
      this.stop();
    }
    this.sent = data.step;
    this.draw();
  }

  list() {
    const { classes, right, probabilities, colours } = this.data;
    const key = JSON.stringify([classes, right, !probabilities, colours]);
    if (this.listed === key) return;
    this.listed = key;
    this.root.style.setProperty("--opinions", colours.length);
    this.bars.innerHTML = classes.map((name, k) => `<li><span class="name${k === right ?
      " right" : ""}">${escape(name)}${k === right ? " ◂" : ""}</span><span class="track">${
      colours.map((colour) => `<div style="background: ${colour}"></div>`).join("")
      }</span><span class="value"></span></li>`).join("");
    this.bars.hidden = this.legend.hidden = !probabilities;
  }

  // The opinions of one moment, a row of probabilities for each colour, and each class in words.
  tell(rows, words) {
    [...this.bars.children].forEach((bar, k) => {
      rows.forEach((row, n) => { bar.children[1].children[n].style.width = `${100 * row[k]}%`; });
      bar.children[2].textContent = `${(100 * rows.at(-1)[k]).toFixed(0)} %`;
      bar.title = `${this.data.classes[k]}: ${words(rows.map((row) => row[k].toFixed(3)))}`;
    });
  }

  place(index) {
    return `${this.data.by} ${this.data.steps[index].toLocaleString("en")}`;
  }

  draw() {
    const { data, index } = this;
    this.show(index);
    this.slider.value = index;
    this.output.textContent = this.place(index);
    this.root.dataset.step = data.steps[index];
  }

  move(index) {
    this.index = index;
    this.draw();
    clearTimeout(this.resting);
    this.resting = setTimeout(() => {
      if (this.film || this.told === this.data.steps[this.index]) return;
      this.told = this.data.steps[this.index];
      this.report(this.told);
    }, REST);
  }

  start() {
    const last = this.data.steps.length - 1;
    if (!last) return;
    this.play.textContent = "Pause";
    const frame = matchMedia("(prefers-reduced-motion: reduce)").matches ? CALM : FRAME;
    let [begun, from] = [null, this.index < last ? this.index : 0];
    this.move(from);
    const tick = (now) => {
      begun ??= now;
      const index = Math.min(last, from + Math.floor((now - begun) / frame));
      if (index !== this.index) this.move(index);
      if (index < last) this.film = requestAnimationFrame(tick);
      else this.stop();
    };
    this.film = requestAnimationFrame(tick);
  }

  stop() {
    if (!this.film) return;
    cancelAnimationFrame(this.film);
    this.film = null;
    this.play.textContent = "Play";
    this.move(this.index);
  }
}


// What a component of an arrangement exports.
const mount = (Arrangement) => ({ parentElement, data, setStateValue, setTriggerValue }) => {
  const root = parentElement.querySelector(".stage");
  root.stage ??= new Arrangement(root);
  root.stage.take(data, setStateValue, setTriggerValue);
};
