// The state of a view in its link: each parameter reads, checks and writes its own value. A view
// lists its parameters in `parametersOf`; those of the input are `inputParameters` of `input.js`.
import { closest } from "../engine/text.js";

/**
 * @typedef {string | number | boolean | null} Value
 * @typedef {Record<string, Value>} State
 * @typedef {object} Parameter
 * @property {string} label what the page calls it
 * @property {Value} usual the value of a link without this parameter
 * @property {(text: string) => Value | undefined} read the value of a text; undefined if invalid
 * @property {boolean} [always] whether a link names the usual value, too
 * @property {string} expected what a link may contain, after "which is not"
 * @property {readonly string[]} [slugs] the values that there are
 */

const MOST = 4;  // sentences about a link
/** The beginning of the key of a file that a visitor opened on a static site. */
export const OWN_FILE = "file-";
const RUN = /^\d{8}-\d{6}-/;  // the beginning of a run's identifier

/**
 * One of several slugs.
 * @param {string} label
 * @param {readonly string[]} slugs
 * @param {Value} usual
 * @param {Record<string, string>} [old] slug by a value of older links
 * @returns {Parameter}
 */
export function oneOf(label, slugs, usual, old = {}) {
  const expected = slugs.length && slugs.length <= 10 ? `one of ${slugs.join(", ")}` : "available";
  /** @param {string} written */
  const read = (written) => {
    const slug = slugs.includes(written) ? written : old[written];
    return slug !== undefined && slugs.includes(slug) ? slug : undefined;
  };
  return { label, usual, expected, read, slugs };
}

/**
 * A number from `low` to `high`; a whole number if `whole`.
 * @param {string} label
 * @param {number} low
 * @param {number} high
 * @param {Value} usual
 * @param {boolean} [whole]
 * @returns {Parameter}
 */
export function number(label, low, high, usual, whole = false) {
  /** @param {string} written */
  const read = (written) => {
    const value = Number(written.replaceAll("−", "-"));
    const fits = written.trim() && value >= low && value <= high;
    return fits && (!whole || Number.isInteger(value)) ? value : undefined;
  };
  const kind = whole ? "a whole number" : "a number";
  const bound = (/** @type {number} */ end) => end.toLocaleString("en").replace("-", "−");
  const range = low === high ? bound(low) : `${kind} from ${bound(low)} to ${bound(high)}`;
  return { label, usual, expected: range, read };
}

/**
 * Several slugs, with commas between them.
 * @param {string} label
 * @param {readonly string[]} slugs
 * @returns {Parameter}
 */
export function someOf(label, slugs) {
  const read = (/** @type {string} */ written) =>
    written.split(",").every((slug) => slugs.includes(slug.trim())) ? written : undefined;
  return { label, usual: null, expected: `a list of ${slugs.join(", ")}`, read };
}

/**
 * @param {string} label
 * @param {boolean} [usual]
 * @returns {Parameter}
 */
export function flag(label, usual = false) {
  /** @param {string} written */
  const read = (written) =>
    ["true", "1"].includes(written) ? true : ["false", "0"].includes(written) ? false : undefined;
  return { label, usual, expected: "true or false", read };
}

/**
 * @param {string} label
 * @param {(text: string) => boolean} isValid
 * @param {string} expected
 * @returns {Parameter}
 */
export function text(label, isValid, expected) {
  return { label, usual: null, expected, read: (value) => (isValid(value) ? value : undefined) };
}

/**
 * The state in a link, and a sentence about each part of the link that is invalid.
 * @param {Record<string, Parameter>} parameters
 * @param {URLSearchParams} link
 * @returns {{ state: State, problems: string[] }}
 */
export function readLink(parameters, link) {
  /** @type {State} */
  const state = {};
  /** @type {string[]} */
  const problems = [];
  for (const [key, { label, usual, read, expected, slugs = [] }] of Object.entries(parameters)) {
    const [written = null, ...others] = link.getAll(key);
    if (others.length) problems.push(`The link sets “${label}” more than once: the first is used.`);
    const value = written === null ? usual : read(written);
    state[key] = value === undefined ? usual : value;
    if (value !== undefined) continue;
    if (RUN.test(written ?? ""))
      problems.push(`The link sets “${label}” to the run “${short(written ?? "")}”, which was `
        + "deleted or has no readable checkpoint. The default is shown.");
    else if (written?.startsWith(OWN_FILE))
      problems.push(`The link sets “${label}” to the file `
        + `“${short(written.slice(OWN_FILE.length))}”, which is kept only in the tab in `
        + "which it was opened, until that tab is closed or reloaded: open it here. "
        + "The default is shown.");
    else
      problems.push(`The link sets “${label}” to “${short(written ?? "")}”, `
        + `which is not ${expected}.${meant(written ?? "", slugs)} The default is shown.`);
  }
  for (const key of new Set(link.keys()))
    if (!(key in parameters)) problems.push(
      `This view has no parameter “${short(key)}”.${meant(key, Object.keys(parameters))}`);
  const more = problems.length - MOST;
  if (more > 0)
    problems.splice(MOST - 1, more + 1, `${more + 1} more problems with this link.`);
  return { state, problems };
}

/** @param {string} written @param {readonly string[]} choices */
function meant(written, choices) {
  const choice = closest(written, [...choices]);
  return choice === null ? "" : ` Did you mean “${choice}”?`;
}

/** @param {string} written */
const short = (written) => (written.length > 40 ? `${written.slice(0, 40)}…` : written);

/**
 * The parameters of a state that differ from the usual values.
 * @param {Record<string, Parameter>} parameters
 * @param {State} state
 */
export function writeLink(parameters, state) {
  const link = new URLSearchParams();
  for (const [key, { usual, always }] of Object.entries(parameters)) {
    const value = state[key];
    if (value === null || value === undefined || value === usual && !always) continue;
    link.set(key, String(typeof value === "number" ? Number(value.toPrecision(10)) : value));
  }
  return link;
}
