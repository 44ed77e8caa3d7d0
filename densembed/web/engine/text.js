// @ts-check
/** Text as Python writes it, for sentences that are the same in both. */

const UNPRINTABLE =
  /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/**
 * A number of things in words: "1 step", "1,000 steps", "100 densities".
 *
 * @param {number} number
 * @param {string} noun
 */
export const counted = (number, noun) =>
  `${number.toLocaleString("en-US")} ${number === 1 ? noun : `${noun.replace(/ty$/, "tie")}s`}`;

/**
 * The escape of a character in Python.
 *
 * @param {string} character
 */
function escaped(character) {
  const code = /** @type {number} */ (character.codePointAt(0));
  const short = { 9: "\\t", 10: "\\n", 13: "\\r" }[code];
  if (short) return short;
  const digits = code.toString(16);
  if (code < 0x100) return `\\x${digits.padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${digits.padStart(4, "0")}` : `\\U${digits.padStart(8, "0")}`;
}

/**
 * A name as text that can be shown: control characters become \n and the like.
 *
 * @param {string} text
 */
export function printable(text) {
  return text.replace(UNPRINTABLE, (character) =>
    character >= "\udc80" && character <= "\udcff"
      ? `\\x${(character.charCodeAt(0) - 0xdc00).toString(16)}`
      : escaped(character),
  );
}

/**
 * At most `most` characters of a text, as Python's repr shows them.
 *
 * @param {string} text
 * @param {number} [most]
 */
export function quoted(text, most = Infinity) {
  const shown = [...text].slice(0, most).join("");
  const quote = shown.includes("'") && !shown.includes('"') ? '"' : "'";
  const inner = shown.replace(/[\p{C}\p{Z}\\'"]/gu, (character) => {
    if (character === " ") return character;
    if (character === "\\" || character === quote) return `\\${character}`;
    return character === "'" || character === '"' ? character : escaped(character);
  });
  return quote + inner + quote;
}

/**
 * The value of a JSON document as Python's repr shows it.
 *
 * @param {unknown} value
 * @returns {string}
 */
export function repr(value) {
  if (typeof value === "string") return quoted(value);
  if (typeof value === "boolean") return value ? "True" : "False";
  if (value === null || value === undefined) return "None";
  if (Array.isArray(value)) return `[${value.map(repr).join(", ")}]`;
  if (typeof value === "object") {
    const parts = Object.entries(value).map(([key, each]) => `${quoted(key)}: ${repr(each)}`);
    return `{${parts.join(", ")}}`;
  }
  return value === Infinity ? "inf" : value === -Infinity ? "-inf" : String(value);
}

/**
 * Numbers of characters that two texts share, as difflib's SequenceMatcher counts them.
 *
 * @param {string} a
 * @param {string} b
 * @returns {number}
 */
function matching(a, b) {
  let best = 0, endA = 0, endB = 0;
  let before = new Uint32Array(b.length + 1);
  for (let i = 1; i <= a.length; i++) {
    const now = new Uint32Array(b.length + 1);
    for (let j = 1; j <= b.length; j++)
      if (a[i - 1] === b[j - 1]) {
        now[j] = before[j - 1] + 1;
        if (now[j] > best) [best, endA, endB] = [now[j], i, j];
      }
    before = now;
  }
  if (!best) return 0;
  const left = matching(a.slice(0, endA - best), b.slice(0, endB - best));
  return best + left + matching(a.slice(endA), b.slice(endB));
}

/**
 * The most similar of the choices, or null if none is similar.
 *
 * @param {string} name
 * @param {string[]} choices
 */
export function closest(name, choices) {
  const word = name.slice(0, 80).toLowerCase();
  let best = 0.7;
  /** @type {string | null} */
  let meant = null;
  for (const choice of choices) {
    const lowered = choice.toLowerCase();
    const ratio = (2 * matching(lowered, word)) / (lowered.length + word.length || 1);
    if (ratio > best || (ratio === best && lowered > (meant ?? "").toLowerCase()))
      [best, meant] = [ratio, choice];
  }
  return meant;
}

/**
 * The beginning of an error message, such as "Unknown model 'x' (did you mean 'y'?)".
 *
 * @param {string} kind
 * @param {string} name
 * @param {string[]} choices
 */
export function unknown(kind, name, choices) {
  const meant = closest(name, choices);
  const letters = [...name];
  const shown = printable(letters.length > 80 ? `${letters.slice(0, 80).join("")}…` : name);
  return `Unknown ${kind} '${shown}'${meant ? ` (did you mean ${quoted(meant)}?)` : ""}`;
}
