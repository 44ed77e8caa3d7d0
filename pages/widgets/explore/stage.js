// Explore: the field before training and at the slider's step, and what the model says at both.

class Pair extends Stage {
  parts = { predictions: ".opinion", before: ".before", numbers: ".numbers", steps: ".steps" };

  constructor(root) {
    super(root);
    this.before = new Panel(root.querySelector(".before"), this);
    this.after = new Panel(root.querySelector(".after"), this);
    this.numbers = root.querySelector(".numbers");
  }

  take(data, setState, setTrigger) {
    this.reportDivider = (place) => setState("divider", place);
    if (data.divider !== this.toldDivider)
      this.toldDivider = this.after.divider.value = data.divider;
    this.root.dataset.columns = 3 - ["predictions", "before"].filter((name) =>
      data.hidden.includes(name)).length;
    super.take(data, setState, setTrigger);
  }

  // The swipe's divider: the server hears of it where it comes to rest, as of the step.
  divide(place) {
    this.draw();
    clearTimeout(this.dividing);
    this.dividing = setTimeout(() => {
      if (this.toldDivider !== place) this.reportDivider(this.toldDivider = place);
    }, REST);
  }

  unpack(data) {
    if (data.stack !== this.data?.stack) this.stack = data.stack && new Fields(data);
    if (data.dots && data.dots.loc !== this.data?.dots?.loc || data.dots?.weights !==
        this.data?.dots?.weights)
      this.dots = data.dots && Object.fromEntries(
        ["loc", "scale", "weights"].map((name) => [name, floats(data.dots[name])]));
  }

  list() {
    super.list();
    const { colours, legend } = this.data;
    this.legend.innerHTML = legend.map((name, k) =>
      `<span><i style="background: ${colours[k]}"></i>${escape(name)}</span>`).join("");
  }

  show(index) {
    const { data, stack } = this;
    const { alt, titles, notes, probabilities } = data;
    const minus = data.way === "difference";
    const [first, now] = [0, index].map((k) => stack?.at(k));
    const change = minus && index ? now.map((value, k) => value - first[k]) : now;
    this.before.show({
      values: first, at: 0, scale: data.scales[0], title: titles[0], note: notes[0], alt,
    });
    this.after.show({
      values: change, at: index, scale: data.scales[minus && index ? 1 : 0],
      left: data.way === "swipe" ? first : null,
      title: titles[index],
      note: (minus && index ? "minus before training, " : "") + notes[index],
      alt,
    });
    this.says.innerHTML = `Prediction<small>${escape(data.said[index])}</small>`;
    if (probabilities) this.tell([probabilities[0], probabilities[index]],
      ([before, now]) => `${before} before, ${now} now`);
    this.numbers.textContent = data.numbers[index];
    this.slider.setAttribute("aria-valuetext", titles[index]);
  }
}

export default mount(Pair);
