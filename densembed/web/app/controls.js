// Controls: each makes its element once, and shows the value that `show` gets.

const LONG = 20;  // letters, from which a button has its text as a title, too

/**
 * @template T
 * @typedef {object} Control
 * @property {HTMLElement} element
 * @property {(value: T) => void} show
 */

/**
 * An element with attributes and children; a `data-*` or `aria-*` name is an attribute.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, unknown>} [properties]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-")) element.setAttribute(name, String(value));
    else Object.assign(element, { [name]: value });
  }
  element.append(...children);
  return element;
}

/**
 * Texts by value: pairs where their order matters, as an object lists whole numbers first.
 * @typedef {Record<string, string> | [value: string, text: string][]} Texts
 */

/** The value of an option that is no class: names have no line breaks. */
export const NONE = "\n";

/** @param {Texts} texts */
const pairs = (texts) => (Array.isArray(texts) ? texts : Object.entries(texts));

/**
 * Buttons of which one is pressed.
 * @param {string} label
 * @param {(value: string) => void} choose
 * @param {string} [kind] class of the group
 */
export function choice(label, choose, kind = "segments") {
  const element = make("div", { className: kind, role: "group", ariaLabel: label });
  let options = "";
  /**
   * @param {string | null} value
   * @param {Texts} texts button texts by value
   */
  const show = (value, texts) => {
    if (JSON.stringify(texts) !== options) {
      options = JSON.stringify(texts);
      element.classList.toggle("short", pairs(texts).every(([, text]) => text.length < 3));
      element.replaceChildren(...pairs(texts).map(([slug, text]) => make("button",
        { type: "button", value: slug, title: text.length > LONG ? text : "",
          onclick: () => choose(slug) }, text)));
    }
    for (const button of element.querySelectorAll("button"))
      button.ariaPressed = String(button.value === value);
  };
  return { element, show };
}

/**
 * A group of buttons under its label, which screen readers know already.
 * @param {string} label
 * @param {{ element: HTMLElement }} control
 */
export const named = (label, { element }) => make("div", { className: "field" },
  make("span", { ariaHidden: "true" }, label), element);

/**
 * A list to choose from.
 * @param {string} label
 * @param {(value: string) => void} choose
 */
export function list(label, choose) {
  const select = make("select", { ariaLabel: label });
  select.onchange = () => choose(select.value);
  const element = make("label", { className: "field" }, make("span", {}, label), select);
  let options = "";
  /**
   * @param {string | null} value
   * @param {Texts} texts
   * @param {Record<string, string>} [groups] of the options, by value, if there are several
   */
  const show = (value, texts, groups = {}) => {
    if (JSON.stringify([texts, groups]) !== options) {
      options = JSON.stringify([texts, groups]);
      const headings = [...new Set(Object.values(groups))];
      const inside = (/** @type {string | undefined} */ group) => pairs(texts)
        .filter(([slug]) => headings.length < 2 || groups[slug] === group)
        .map(([slug, text]) => make("option", { value: slug }, text));
      const children = headings.length < 2 ? inside(undefined) : headings.map((heading) =>
        make("optgroup", { label: heading }, ...inside(heading)));
      select.replaceChildren(...children);
    }
    select.value = value ?? "";
    const title = select.selectedOptions[0]?.text ?? "";
    if (select.title !== title) select.title = title;
  };
  return { element, show };
}

/**
 * A slider with its value in words.
 * @param {string} label
 * @param {{ low: number, high: number, step: number }} range
 * @param {(value: number) => string} words
 * @param {(value: number) => void} choose
 */
export function slider(label, { low, high, step }, words, choose) {
  const input = make("input", { type: "range", min: String(low), max: String(high),
    step: String(step), ariaLabel: label });
  const output = make("span");  // an <output> would be announced beside the slider's own text
  input.oninput = () => choose(Number(input.value));
  const element = make("label", { className: "field slider" },
    make("span", {}, label), output, input);
  /** @param {number} value */
  const show = (value) => {
    input.value = String(value);
    output.textContent = words(value);
    input.setAttribute("aria-valuetext", words(value));
  };
  return { element, show };
}

/**
 * @param {string} label
 * @param {(value: number) => void} choose
 */
export function count(label, choose) {
  const input = make("input", { type: "number", min: "1", step: "1", ariaLabel: label });
  let typing = false;  // a number that is not entered yet, and stays when the view is drawn
  input.oninput = () => { typing = true; };
  input.onblur = () => { typing = false; };
  input.onchange = () => {
    typing = false;
    const most = Number(input.max);
    choose(Math.min(most, Math.max(1, Math.round(Number(input.value)) || 1)));
  };
  const element = make("label", { className: "field" }, make("span", {}, label), input);
  /**
   * @param {number} value
   * @param {number} most
   */
  const show = (value, most) => {
    input.max = String(most);
    if (!typing && input.value !== String(value)) input.value = String(value);
  };
  return { element, show };
}

/**
 * @param {string} label
 * @param {(value: boolean) => void} choose
 */
export function toggle(label, choose) {
  const input = make("input", { type: "checkbox", role: "switch" });
  input.onchange = () => choose(input.checked);
  const element = make("label", { className: "toggle" }, input, label);
  /** @param {boolean} value */
  const show = (value) => { input.checked = value; };
  return { element, show };
}
