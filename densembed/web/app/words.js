// What the chain says about each kind of network, with the numbers of the input.
/** @import { Anatomy } from "./anatomy.js" */
import { counted } from "../engine/text.js";
import { fixed, notZero, percentage, withSign } from "../panels/text.js";
import { literal } from "./glossary.js";
import { channelsOf } from "./kinds.js";

/**
 * @typedef {object} Words
 * @property {Record<string, { title: string, caption: string }>} links texts by link of the chain
 * @property {string} unit what the readings are of
 * @property {string} value name of the value of a unit
 * @property {string} scale name of the scale of the values
 * @property {string} alt of the picture of the values
 * @property {string} map what the map of a unit shows
 * @property {string} mapNote
 * @property {string} ink what the map is multiplied by
 * @property {string} product
 * @property {string} sum title of the sum
 * @property {string} sumNote
 * @property {string} equals the sum in words
 * @property {string} place where the unit is, and why
 */

/**
 * That the highest score is not of one class only; otherwise null.
 * @param {string[]} classes @param {number[] | Float32Array | Float64Array} logits
 */
export function tie(classes, logits) {
  const most = Math.max(...logits);
  const highest = classes.filter((_, label) => logits[label] === most);
  if (highest.length === 1) return null;
  if (highest.length === classes.length) return "All scores are equal, so no class is preferred.";
  return `${highest.length} classes share the highest [score]: the first of them, *${
    literal(highest[0])}*, counts as the prediction.`;
}

/** How sure the network is, and by how much. @param {Anatomy} anatomy */
export function certainty({ response: { checkpoint: { classes }, pixels, nouns },
  result: { logits, probabilities } }) {
  const order = [...logits.keys()].sort((a, b) => logits[b] - logits[a]);
  const [first, second] = order;
  const gap = notZero(logits[first] - logits[second], 1);
  if (classes.length === 1) return "The model has one class, so its [probability] is always 100 %.";
  return tie(classes, logits)
    ?? `${pixels.some(Boolean) ? "The" : `Even for a blank ${nouns.input}, the`} highest [score] `
    + `wins: *${literal(classes[first])}*, with a [probability] of ${
      percentage(probabilities[first]).replace(" ", "\u00a0")}. `
    + `Its score is ${gap} above that of ${literal(classes[second])}, the next one. The larger `
    + "this difference, the more certain the prediction.";
}

/** @param {Anatomy} anatomy @param {string} name of the class @param {string} unit */
function evidence(anatomy, name, unit) {
  const label = anatomy.response.checkpoint.classes.indexOf(name);
  const { raised, raising, lowered, lowering, bias } = anatomy.evidence(label);
  const value = { density: "[Reading|reading]", reading: "[Reading|reading]",
    pixel: "[Ink|ink]" }[unit] ?? "Value";
  const by = (/** @type {number} */ change) => (change > 0 ? "+" : "") + notZero(change, 1);
  return `${value} × [weight]: the [score] of ${literal(name)} is raised by `
    + `${counted(raising, unit)} (${by(raised)}) and lowered by ${lowering} (${by(lowered)}). `
    + `With the [bias] (${by(bias)}) it is *${by(raised + lowered + bias)}*.`;
}

/** Column and row of a place. @param {ArrayLike<number>} loc @param {number} k */
const at = (loc, k) => `column ${fixed(loc[2 * k], 1)}, row ${fixed(loc[2 * k + 1], 1)}`;

/**
 * @param {Anatomy} anatomy
 * @param {string} name of the class
 * @param {number} unit
 * @returns {Words}
 */
export function wordsOf(anatomy, name, unit) {
  const { count, values, result, response } = anatomy;
  const [width, height] = response.size;
  const channels = channelsOf(response.checkpoint.inputShape);
  const amounts = channels.length ? "the amounts of red, green and blue [ink], from 0 (none) to 1 "
    + "(full)" : "an amount of [ink] from 0 (black) to 1 (white)";
  const weight = anatomy.weights(response.checkpoint.classes.indexOf(name))[unit];
  const value = values[unit];
  const picture = { title: "Picture",
    caption: `${height} × ${width} pixels, each with ${amounts}.` };
  const scores = { title: "Prediction", caption: "The highest [score] wins. The "
    + "[probabilities|probability] are the [softmax|probability] of the scores." };
  const adds = `× weight ${withSign(weight)} = *${withSign(weight * value)}* for the [score] of `
    + `${literal(name)}.`;
  const channel = channels[anatomy.channelOf(unit)];
  const ink = channel ?? "ink";
  /** @type {Words} */
  const densities = {
    links: { picture, units: { title: "", caption: "" },
      readings: { title: "Readings", caption: "One square per density: the mean ink under it, its "
        + "[reading]. Bright: on ink; dark: beside ink." },
      terms: { title: `Score of ${name}`, caption: evidence(anatomy, name, "density") }, scores },
    unit: "density", value: "reading", scale: "reading, the mean ink",
    alt: "Readings of the densities,",
    map: "mass per pixel", mapNote: "what this density looks at", ink, product: `mass × ${ink}`,
    sum: `Density ${unit + 1} of ${count}`,
    sumNote: `how it reads the ${channel ? `${channel} channel` : "picture"}`,
    equals: `The sum of mass × ${ink} over all pixels is its [reading], *${fixed(value, 3)}*, ${
      adds}`,
    place: "",
  };
  const onPicture = anatomy.kind === "moving" || anatomy.kind === "fixed";
  const here = onPicture ? at(result.locations, unit) : "";
  const size = onPicture ? `Its [scale] is ${notZero(result.scales[2 * unit], 1)} pixels `
    + `horizontally and ${notZero(result.scales[2 * unit + 1], 1)} vertically.` : "";
  const colour = `Red ones raise the score of ${literal(name)}, blue ones lower it.`;
  if (anatomy.kind === "moving" && anatomy.micro) {
    const { micro } = anatomy;
    const small = micro.readings.length;
    densities.links = { picture, micro: { title: "Micro network",
      caption: "The [micro network] reads the picture first, with "
        + `${counted(small, "small density")}. A [linear map] turns ${small === 1 ? "this [reading]"
          : `these ${small} [readings|reading]`} into ${counted(count, "place")}.` },
    units: { title: counted(count, "density"),
      caption: `The micro network has put each [density] here, for this picture. ${colour} Click `
        + "one." },
    readings: densities.links.readings, terms: densities.links.terms, scores };
    const pulls = anatomy.pulls(unit);
    const listed = (/** @type {string[]} */ texts) =>
      [texts.slice(0, -1).join(", "), ...texts.slice(-1)].filter(Boolean).join(" and ");
    densities.place = `It lies at ${here}; for a blank picture it would lie at `
      + `${at(micro.start.locations, unit)}. ${small === 1
        ? "The density of the micro network moves it (orange line); its reading is "
        : `Densities ${listed(pulls.map(({ k }) => `${k + 1}`))} of the micro network move it most `
          + `(orange lines); their ${pulls.length === 1 ? "reading is" : "readings are"} `}`
      + `${listed(pulls.map(({ k }) => fixed(micro.readings[k], 2)))}. ${size}`;
    return densities;
  }
  if (anatomy.kind === "fixed" && anatomy.network.frame === "mass") {
    densities.links.units = { title: `${counted(count, "density")} in a box`,
      caption: "Each [density] has its place in a box around the [ink], which moves and scales "
        + `it with the ink. Only training changes this place. ${colour} Click one.` };
    densities.place = `It lies at ${here}, and moves with the box around the ink. ${size}`;
    return densities;
  }
  if (anatomy.kind === "fixed") {
    densities.links.units = { title: counted(count, "fixed density"),
      caption: "Each [density] lies at the same place for every picture. Only training moves it. "
        + `${colour} Click one.` };
    densities.place = `It lies at ${here}, for every picture. ${size}`;
    return densities;
  }
  if (anatomy.kind === "linear") {
    const [rows, columns] = anatomy.network.grid;
    const x = unit % columns, y = Math.floor(unit / columns) % rows;
    return { ...densities,
      links: { picture,
        units: { title: `Weights for ${name}`, caption: "This model has no densities: it "
          + `reads each pixel on its own. Each pixel has a [weight] for ${literal(name)}, which `
          + `training sets.${channels.length
            ? ` Its channels lie one below the other: ${channels.join(", ")}.` : ""}` },
        terms: { title: `Score of ${name}`, caption: evidence(anatomy, name, "pixel") }, scores },
      unit: "pixel", value: "ink", map: `weight for ${name}`,
      sum: "", equals: "", place: `column ${x}, row ${y}` };
  }
  if (anatomy.kind === "hidden") return { ...densities,
    links: { picture,
      units: { title: `Hidden unit ${unit + 1}`, caption: "This model has no densities. Each "
        + "[hidden unit] has a [weight] for every pixel: ink on red raises it, ink on blue lowers "
        + "it." },
      readings: { title: counted(count, "hidden unit"), caption: "One square per hidden unit: its "
        + "value, or 0 (black) where the weighted sum is negative. Click one." },
      terms: { title: `Score of ${name}`, caption: evidence(anatomy, name, "unit") }, scores },
    unit: "hidden unit", value: "value", scale: "value after ReLU", alt: "Hidden units,",
    map: "weight per pixel",
    mapNote: channels.length ? "the sum over its channels" : "for every picture",
    product: "weight × ink",
    sum: `Hidden unit ${unit + 1} of ${count}`, sumNote: "how it reads the picture",
    equals: `The sum of weight × ink over all pixels${channels.length ? " and channels" : ""}, `
      + `plus a bias, is its value, or 0 if that is negative: *${fixed(value, 3)}*, ${adds}`,
    place: "Its weights are the same for every picture." };
  const { checkpoint } = response;
  const perMap = checkpoint.hasDensities ? anatomy.network.densities : 0;
  const own = perMap ? `density ${unit % perMap + 1} on map ${Math.floor(unit / perMap) + 1}`
    : "one cell of a map";
  return { ...densities,
    links: { picture,
      units: { title: "Receptive field", caption: "Convolution stages turn the picture into "
        + `[maps|map]${perMap ? `, and the densities lie on these maps, not on the picture` : ""}. `
        + `This is the effective receptive field of reading ${unit + 1}: the [gradient] of the `
        + "reading with respect to each pixel." },
      readings: { title: counted(count, "reading"), caption: perMap
        ? `${counted(count / perMap, "map")}, each read by ${counted(perMap, "density")}: one `
          + "square per reading. Click one."
        : "One square per cell of the last maps. Click one." },
      terms: { title: `Score of ${name}`, caption: evidence(anatomy, name, "reading") }, scores },
    unit: "reading", value: "value", scale: "reading", alt: "Readings of the maps,",
    map: "gradient per pixel", mapNote: "red: ink here raises the reading",
    sum: `Reading ${unit + 1} of ${count}`, sumNote: own,
    equals: `Its value is *${fixed(value, 3)}*, ${adds}`,
    place: "The field on the left is the gradient at this picture: stages are not linear, "
      + "so it is not a sum of mass × ink, and it changes with the picture." };
}
