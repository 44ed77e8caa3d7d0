// Fields that do not move: one, a few side by side, or many small ones under one heading and on one
// colour scale.

const TOGETHER = `<p class="heading"></p><div class="grid"></div>
  <div class="scale" aria-hidden="true">${SCALE}</div><div class="save">${SAVE}</div>`;

class Stills {
  constructor(root) {
    this.root = root;
    root.innerHTML = TOGETHER;
    [this.heading, this.grid, this.scale, this.save] = root.children;
    this.panels = [];
    this.save.onclick = (event) => {
      const { kind } = event.target.dataset;
      if (kind) download(this.drawing(), this.data.together.title, kind);
    };
  }

  take(data) {
    const { figures, columns, together } = this.data = data;
    this.root.dataset.columns = columns;
    this.root.style.setProperty("--columns", columns);
    this.root.classList.toggle("together", Boolean(together));
    while (this.panels.length > figures.length) this.panels.pop().figure.remove();
    while (this.panels.length < figures.length) this.panels.push(this.panel());
    figures.forEach((each, k) => {
      const { panel, figure, stage } = this.panels[k];
      stage.data = each;
      figure.classList.toggle("colour", !each.stack);
      panel.show({ ...each, values: each.stack && new Fields(each).at(0), at: 0 });
    });
    if (!together) return;
    head(this.heading, together.title, together.note);
    fill(this.scale, together.scale);
  }

  panel() {
    const figure = document.createElement("figure");
    figure.className = "figure";
    this.grid.append(figure);
    const stage = { data: null };
    return { figure, stage, panel: new Panel(figure, stage) };
  }

  // All of them with the one colour bar as one SVG.
  drawing() {
    const { figures, columns, together } = this.data;
    const [w, h] = figures[0].size;
    const [wide, high] = [150, 40 + 140 * h / w];
    const rows = Math.ceil(figures.length / columns);
    const places = this.panels.map(({ panel }, k) =>
      panel.plate(wide * (k % columns) + 5, high * Math.floor(k / columns), 140));
    return sheet(wide * columns, high * rows + 64,
      [...places, bar(together.scale, wide * columns, high * rows)]);
  }
}

export default mount(Stills);
