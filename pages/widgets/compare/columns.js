// Compare: two to four models at one place of their trainings, and each one's field less the first's.

class Columns extends Stage {
  parts = { predictions: ".opinion", differences: ".change", numbers: ".facts", steps: ".steps" };
  stacks = [];

  unpack({ stacks, sides, label }) {
    this.slider.setAttribute("aria-label", label);
    const same = (one, two) => ["low", "high", "stack"].every((part) => one[part] === two[part]);
    this.stacks = stacks.map((pack) => this.stacks.find((known) => same(known, pack))
      ?? { ...pack, fields: new Fields(pack) });
    const names = String(sides.map(({ name }) => name));
    if (names === this.names) return;
    this.names = names;
    this.root.dataset.count = sides.length;
    for (const figure of this.root.querySelectorAll("figure")) figure.remove();
    const steps = this.root.querySelector(".steps");  // for the keyboard: fields, slider, the rest
    this.panels = sides.map(({ name }) => this.panel(`field ${name}`, steps));
    this.changes = sides.slice(1).map(({ name }) => this.panel(`change ${name}`, null));
  }

  panel(kind, next) {
    const figure = document.createElement("figure");
    figure.className = `figure ${kind}`;
    this.root.insertBefore(figure, next);
    const panel = new Panel(figure, this);
    panel.facts = document.createElement("dl");
    panel.facts.className = "facts";
    figure.append(panel.facts);
    return panel;
  }

  facts(panel, pairs) {
    panel.facts.innerHTML = pairs.map(([name, value]) =>
      `<dt>${escape(name)}</dt><dd>${escape(value)}</dd>`).join("");
  }

  show(index) {
    const { data, panels, changes } = this;
    const { sides, scales: [scale, signed], measures } = data;
    const fields = sides.map(({ stack, each, share, at }) =>
      this.stacks[stack].fields.at(each[at[index]]).map((value) => value * share));
    sides.forEach(({ name, model, at, moments, numbers }, k) => {
      panels[k].show({
        values: fields[k], scale, title: model, note: `${name}, ${moments[at[index]]}`,
        alt: "Receptive field, a heatmap of the densities,",
      });
      this.facts(panels[k], measures.map((measure, n) => [measure, numbers[at[index]][n]]));
      if (!k) return;
      const change = fields[k].map((value, n) => value - fields[0][n]);
      changes[k - 1].show({
        values: change, scale: signed, title: `${name} − first`, note: `red: more in the ${name}`,
        alt: "Difference of two receptive fields,",
      });
      const most = change.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
      this.facts(changes[k - 1], [["largest difference",
        most ? `${round(most)} per pixel²` : "none: they are the same"]]);
    });
    this.opine(index);
  }

  opine(index) {
    const { sides, probabilities, colours, asked, note } = this.data;
    const words = asked.map((k) => `${sides[k].name}: ${sides[k].said[sides[k].at[index]]}`);
    this.says.innerHTML = `what they say<small>${escape(note) || "&nbsp;"}</small>`;
    this.slider.setAttribute("aria-valuetext", [this.place(index), ...words].join("; "));
    if (!probabilities) return;
    this.legend.innerHTML = words.map((line, k) =>
      `<span><i style="background: ${colours[k]}"></i>${escape(line)}</span>`).join("");
    this.tell(asked.map((k, n) => probabilities[n][sides[k].at[index]]),
      (shares) => shares.map((share, n) => `${sides[asked[n]].name} ${share}`).join(", "));
  }
}

export default mount(Columns);
