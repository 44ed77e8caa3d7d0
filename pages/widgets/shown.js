// The picture that a model gets: ink as numbers, a colour photograph as itself.

class Shown {
  constructor(root) {
    this.root = root;
    this.panel = new Panel(root.querySelector("figure"), this);
  }

  take(data) {
    this.data = data;
    this.root.classList.toggle("colour", !data.stack);
    this.panel.show({
      values: data.stack && new Fields(data).at(0), at: 0, scale: data.scale, title: data.title,
      note: data.note, alt: "The picture that the model gets:",
    });
  }
}

export default mount(Shown);
