// @ts-check
/**
 * Networks by name, as in `densembed/models/names.py` and `architectures.py`.
 *
 * @import { Family } from "./families.js"
 */

import { FAMILIES } from "./families.js";
import { quoted, unknown } from "./text.js";

const MAX_DENSITIES = 64;
const MAX_HIDDEN = 4096;
const POOLED_STAGES = 2;
const WINDOW = 2;

/**
 * A layer of feature maps.
 *
 * @typedef {object} Stage
 * @property {"adaptive" | "convolution" | "relu" | "softmax" | "max"} kind
 * @property {number} maps number of output channels
 * @property {number[]} kernel taps along the rows and the columns; 0 for ReLU
 */

/**
 * The structure of a network, from which the shapes of its tensors follow.
 *
 * @typedef {object} Plan
 * @property {number[]} inputShape (channels, height, width); the height of a signal is 1
 * @property {number} axes 1 for a signal, 2 for a picture
 * @property {number} classes
 * @property {Stage[]} stages the layers before the densities
 * @property {number[]} grid (height, width) of the inputs for which the network was made
 * @property {number[]} pixel lengths of a pixel under the densities along the columns and the rows,
 *   in pixels of the grid for which they were made
 * @property {number[]} maps (channels, height, width) at the densities
 * @property {"pixels" | "fixed" | "moving"} kind
 * @property {Family} family
 * @property {number} densities K, per channel
 * @property {number} locators number of densities of the micro network, per channel
 * @property {boolean} shared whether all channels have the same densities
 * @property {"input" | "mass"} frame the box in which the densities are placed
 * @property {boolean} scales whether the scales move as well
 * @property {number} hidden units of the classifier's hidden layer; 0 for a linear classifier
 */

/**
 * @typedef {object} Arguments what a name has in place of {family}, {frame}, {size} and {maps}
 * @property {string} family
 * @property {"input" | "mass"} frame
 * @property {number[]} sizes
 * @property {number[]} maps
 * @property {number} axes
 */

/**
 * The number of densities with `count` per axis. V8 keeps the result of ** as a float, even that of
 * integers, and loops up to it are then slower.
 *
 * @param {number} count
 * @param {number} axes
 */
const onGrid = (count, axes) => (axes === 1 ? count : count * count);

/**
 * @param {Partial<Plan>} parts
 * @param {Arguments} args
 * @returns {Partial<Plan>}
 */
function densities(parts, { family, frame, axes, sizes: [b, b0 = 0] }) {
  return {
    kind: b0 ? "moving" : "fixed",
    family: FAMILIES.get(family),
    frame,
    densities: onGrid(b, axes),
    locators: onGrid(b0, axes),
    ...parts,
  };
}

/**
 * A layer with the same number of taps along each axis of its inputs; 1 along the row of a signal.
 *
 * @param {Arguments} args
 * @param {Stage["kind"]} kind
 * @param {number} maps
 * @param {number} taps
 * @returns {Stage}
 */
const layer = ({ axes }, kind, maps, taps) =>
  ({ kind, maps, kernel: [axes === 1 ? Math.min(taps, 1) : taps, taps] });

/**
 * @param {Arguments} args
 * @param {number} [taps]
 * @returns {Partial<Plan>}
 */
function adaptive(args, taps = 3) {
  const stages = args.maps.flatMap((maps, stage) => [
    layer(args, "adaptive", maps, taps),
    layer(args, "relu", maps, 0),
    ...(stage < POOLED_STAGES ? [layer(args, "softmax", maps, WINDOW)] : []),
  ]);
  return densities({ stages, shared: true }, args);
}

/** @typedef {(args: Arguments) => Partial<Plan>} Build */
/** @type {Record<string, { build: Build, words: string, one?: string, max?: number }>} */
const MODELS = {
  linear: { build: () => ({}), words: "Linear classifier" },
  "mlp-{size}": {
    build: ({ sizes: [hidden] }) => ({ hidden }),
    words: "MLP with {} hidden unit{s}",
    max: MAX_HIDDEN,
  },
  "{family}-el-{frame}{size}": { build: (args) => densities({}, args), words: "{}-EL{}, B = {}" },
  "{family}-el-mnn-{frame}{size}-{size}": {
    build: (args) => densities({}, args),
    words: "{}-EL with mNN{}, B = {}, B₀ = {}",
  },
  "adaptive-conv-pool-{family}-el-{frame}{size}": {
    build: (args) => adaptive({ ...args, maps: [8] }, 5),
    words: "Adaptive convolution and pooling, {}-EL{}, B = {}",
  },
  "adaptive-conv-pool-{family}-el-mnn-{frame}{size}-{size}": {
    build: (args) => adaptive({ ...args, maps: [8] }, 5),
    words: "Adaptive convolution and pooling, {}-EL with mNN{}, B = {}, B₀ = {}",
  },
  "{family}-el-mnn-scale-{frame}{size}-{size}": {
    build: (args) => densities({ scales: true }, args),
    words: "{}-EL with mNN of learned scales{}, B = {}, B₀ = {}",
  },
  "stages-{maps}-{family}-el-{frame}{size}": {
    build: (args) => adaptive(args),
    words: "Adaptive stages of {} map{s}, {}-EL{}, B = {}",
    one: "One adaptive stage of {} map{s}, {}-EL{}, B = {}",
  },
  "stages-{maps}-{family}-el-mnn-{frame}{size}-{size}": {
    build: (args) => adaptive(args),
    words: "Adaptive stages of {} map{s}, {}-EL with mNN{}, B = {}, B₀ = {}",
    one: "One adaptive stage of {} map{s}, {}-EL with mNN{}, B = {}, B₀ = {}",
  },
  "cnn-{maps}": {
    build: (args) => ({
      stages: args.maps.flatMap((maps) => [
        layer(args, "convolution", maps, 3),
        layer(args, "relu", maps, 0),
        layer(args, "max", maps, WINDOW),
      ]),
    }),
    words: "Plain CNN of {} map{s}",
  },
};

/** @type {Record<string, string>} */
const PATTERNS = {
  "{family}": `(${[...FAMILIES.keys()].join("|")})`,
  "{frame}": "(mass-)?",
  "{size}": "(-?\\d+)",
  "{maps}": "(-?\\d+(?:--?\\d+){0,2})",
};
const PART = /\{family\}|\{frame\}|\{size\}|\{maps\}/g;

/**
 * The template of a name and its arguments. Throws an Error for a name that no model has.
 *
 * @param {string} name
 */
function parse(name) {
  for (const [template, kind] of Object.entries(MODELS)) {
    const match = new RegExp(`^${template.replace(PART, (part) => PATTERNS[part])}$`).exec(name);
    if (!match) continue;
    /** @type {Arguments} */
    const args = { family: "", frame: "input", sizes: [], maps: [], axes: 2 };
    const parts = template.match(PART) ?? [];
    const texts = match.slice(1);
    parts.forEach((part, k) => {
      if (part === "{family}") args.family = texts[k];
      else if (part === "{frame}") args.frame = texts[k] ? "mass" : "input";
      else if (part === "{size}") args.sizes.push(number(texts[k]));
      else args.maps = texts[k].replace(/(\d)-/g, "$1 ").split(" ").map(number);
    });
    const max = kind.max ?? MAX_DENSITIES;
    if ([...args.sizes, ...args.maps].every((size) => size >= 1 && size <= max))
      return { kind, args, parts, texts };
    throw new Error(`The sizes in ${quoted(name, 60)} must lie between 1 and ${max}.`);
  }
  /** @type {Record<string, string>} */
  const placeholders = {
    "{family}": "FAMILY",
    "{frame}": "[mass-]",
    "{size}": "N",
    "{maps}": "MAPS",
  };
  const templates = Object.keys(MODELS).map((each) => each.replace(PART, (p) => placeholders[p]));
  throw new Error(
    `${unknown("model", name, similarNames(name))}; names look like ${templates.join(", ")}. ` +
      `FAMILY is one of ${[...FAMILIES.keys()].join(", ")}, N is a number, and MAPS is one to 3 ` +
      "numbers, as in 8-16.",
  );
}

/**
 * @param {string} digits
 */
function number(digits) {
  return digits.length <= 9 ? Number(digits) : Infinity;
}

/**
 * One name per template and family, with the numbers of `name` where it has any.
 *
 * @param {string} name
 */
function similarNames(name) {
  const written = name.slice(0, 80).match(/\d+/g) ?? [];
  return Object.entries(MODELS).flatMap(([template, { max = MAX_DENSITIES }]) => {
    const numbers = written.map((digits) =>
      (number(digits) >= 1 && number(digits) <= max ? digits : "5"));
    const rest = [...numbers];
    const sizes = template.split("{size}").length - 1;
    const stages = Math.min(Math.max(numbers.length - sizes, 1), 3);
    const filled = template.replace(/\{size\}|\{maps\}/g, (part) =>
      Array.from({ length: part === "{maps}" ? stages : 1 }, () => rest.shift() ?? "5").join("-"),
    );
    const families = template.includes("{family}") ? [...FAMILIES.keys()] : [""];
    const frames = template.includes("{frame}") ? ["", "mass-"] : [""];
    return families.flatMap((family) =>
      frames.map((frame) => filled.replace("{family}", family).replace("{frame}", frame)),
    );
  });
}

/**
 * The name as it is stored, such as "logistic-el-5" for "logistic-el-05". Throws an Error with a
 * sentence if there is no model of that name.
 *
 * @param {string} name
 */
export function checkName(name) {
  parse(name);
  return name.replace(/(?<=^|-)0+(?=\d)/g, "");
}

/**
 * A model's name in words, such as "Logistic-EL with mNN, B = 10, B₀ = 5".
 *
 * @param {string} name
 */
export function describe(name) {
  const { kind, parts, texts, args } = parse(name);
  let words = args.maps.length === 1 && kind.one ? kind.one : kind.words;
  parts.forEach((part, k) => {
    let text = String(Number(texts[k]));
    if (part === "{family}") {
      text = FAMILIES.get(texts[k])?.words ?? texts[k];
      text = text[0].toUpperCase() + text.slice(1);
    } else if (part === "{frame}") {
      text = args.frame === "input" ? "" : `, frame of the ${args.frame}`;
    } else if (part === "{maps}" && args.maps.length > 1) {
      text = `${args.maps.slice(0, -1).join(", ")} and ${args.maps.at(-1)}`;
    }
    words = words.replace("{}", text);
  });
  return words.replace("{s}", Number(texts[0]) === 1 ? "" : "s");
}

/**
 * The structure of the network of that name. Throws an Error if the inputs are too small for it.
 *
 * @param {string} name
 * @param {number[]} shape (channels, height, width), or (channels, length) of signals
 * @param {number} classes
 * @returns {Plan}
 */
export function plan(name, [channels, ...sizes], classes) {
  const { kind, args } = parse(name);
  const axes = sizes.length;
  const built = kind.build({ ...args, axes });
  const stages = built.stages ?? [];
  const inputShape = [channels, ...(axes === 1 ? [1] : []), ...sizes];
  let maps = inputShape;
  const pools = (/** @type {Stage} */ stage) => stage.kind === "softmax" || stage.kind === "max";
  const minimum = WINDOW ** stages.filter(pools).length;
  if (Math.min(...sizes) < minimum)
    throw new Error(
      axes === 1
        ? `Expected signals of at least ${minimum} samples; got ${sizes[0]}.`
        : `Expected images of at least ${minimum} × ${minimum} pixels; got ${sizes.join(" × ")}.`,
    );
  for (const stage of stages) {
    const [down, across] = pools(stage) ? stage.kernel : [1, 1];
    maps = [stage.maps, Math.floor(maps[1] / down), Math.floor(maps[2] / across)];
  }
  return {
    kind: "pixels",
    family: /** @type {Family} */ (FAMILIES.get("uniform")),
    densities: maps[1] * maps[2],
    locators: 0,
    frame: "input",
    shared: built.kind === undefined,
    scales: false,
    hidden: 0,
    ...built,
    inputShape,
    grid: inputShape.slice(1),
    pixel: [1, 1],
    axes,
    classes,
    stages,
    maps,
  };
}

/**
 * The structure of a network with the same tensors for inputs on another grid. Densities on the
 * pixels are placed on any grid; all other layers count pixels, and keep their own grid.
 *
 * @param {Plan} of
 * @param {number[]} sizes (height, width), or the length of signals
 * @returns {Plan}
 */
export function planAt(of, sizes) {
  const inputShape = [of.inputShape[0], ...(of.axes === 1 ? [1] : []), ...sizes];
  if (of.kind === "pixels" || of.stages.length) return { ...of, inputShape };
  const pixel = of.grid.map((size, axis) => size / inputShape[axis + 1]).reverse();
  return { ...of, inputShape, maps: inputShape, pixel };
}

/**
 * The name and shape of each tensor of a network, in the order of torch's state_dict.
 *
 * @param {Plan} of
 * @returns {[string, number[]][]}
 */
export function shapes(of) {
  /** @type {[string, number[]][]} */
  const list = [];
  const { axes } = of;
  let channels = of.inputShape[0];
  of.stages.forEach(({ kind, maps, kernel }, k) => {
    const own = `embedding.features.${k}`;
    if (kind === "adaptive" || kind === "convolution") {
      const taps = kernel.slice(-axes);
      list.push([`${own}.weight`, [maps, channels, ...taps]], [`${own}.bias`, [maps]]);
      if (kind === "adaptive") list.push([`${own}.amplitude_logit`, [1, axes]]);
    } else if (kind === "softmax") list.push([`${own}.beta`, [maps]]);
    channels = maps;
  });
  const own = embeddingName(of);
  const groups = of.shared ? 1 : channels;
  if (of.kind === "fixed") list.push([`${own}.alpha`, [groups, of.densities, axes]]);
  if (of.kind !== "pixels") list.push([`${own}.beta`, [groups, of.densities, axes]]);
  if (of.kind === "moving") {
    const numbers = axes * (of.scales ? 2 : 1) * groups * of.densities;
    list.push(
      [`${own}.locator.0.alpha`, [groups, of.locators, axes]],
      [`${own}.locator.0.beta`, [groups, of.locators, axes]],
      [`${own}.locator.2.weight`, [numbers, channels * of.locators]],
      [`${own}.locator.2.bias`, [numbers]],
    );
  }
  let features = channels * of.densities;
  if (of.hidden) {
    list.push(
      ["classifier.0.weight", [of.hidden, features]],
      ["classifier.0.bias", [of.hidden]],
    );
    features = of.hidden;
  }
  const last = of.hidden ? "classifier.2" : "classifier";
  list.push([`${last}.weight`, [of.classes, features]], [`${last}.bias`, [of.classes]]);
  return list;
}

/**
 * The prefix of the tensors of the densities.
 *
 * @param {Plan} of
 */
export function embeddingName(of) {
  return of.stages.length ? "embedding.embedding" : "embedding";
}
