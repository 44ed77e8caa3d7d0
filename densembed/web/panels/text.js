// Numbers and texts.

// eslint-disable-next-line no-control-regex -- XML allows no control characters
const NO_XML = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu;

/** With a minus sign instead of the hyphen. @param {number | string} number */
export const signed = (number) => String(number).replace("-", "−");

/**
 * With so many decimals, or with three significant digits if it is very large; 0 has no sign.
 * @param {number} value @param {number} digits
 */
export const fixed = (value, digits) =>
  signed(Math.abs(value) < 1e7 ? value.toFixed(digits) : value.toPrecision(3))
    .replace(/^−(?=[0.]+$)/, "");

/**
 * Likewise, but with one significant digit if it would read as 0 without being 0.
 * @param {number} value @param {number} digits
 */
export const notZero = (value, digits) =>
  value && !Number(value.toFixed(digits)) ? signed(Number(value.toPrecision(1)))
    : fixed(value, digits);

/** With so many decimals and its sign. @param {number} value @param {number} [digits] */
export const withSign = (value, digits = 2) => {
  const text = fixed(value, digits);
  return value > 0 && Number(text) ? `+${text}` : text;
};

/** @param {number} share */
export const percentage = (share) => `${(100 * share).toFixed(1)} %`;

/** @param {number} value */
export const round = (value) => signed(Number(value.toPrecision(3)));

/** With a number on one line with its symbol, sign or unit. @param {string} text */
export const together = (text) =>
  text.replace(/ ([=×]) (?=[\dB])/g, "\u00a0$1\u00a0").replace(/(?<=\d) (?=%)/g, "\u00a0");

/** For HTML and XML. @param {string} text */
export const escape = (text) =>
  text.replace(NO_XML, "\ufffd").replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);

/**
 * As much of a text as has room in a width, in letters of that size.
 * @param {string} text
 * @param {number} width
 * @param {number} size
 */
export function shorten(text, width, size) {
  const letters = Math.floor(2 * width / size);
  return text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
}
