// @ts-check
/**
 * Families of densities in standard form, as in `densembed/functional/densities.py`.
 *
 * Numbers are float64 here, so that differences of F are accurate without the families' `mass`.
 *
 * @typedef {object} Family
 * @property {string} name
 * @property {string} words display name
 * @property {number} std standard deviation of the standard form, or Infinity
 * @property {number} iqr interquartile range of the standard form
 * @property {(z: number) => number} pdf density at z
 * @property {(z: number) => number} cdf primitive F with F(−∞) = 0 and F(∞) = 1
 */

const { PI, SQRT2, abs, atan, atan2, exp, expm1, log, log1p, max, min, sin, sqrt } = Math;
const EDGE = 0.1;

/** @param {number} z */
export const sigmoid = (z) => 1 / (1 + exp(-z));

/**
 * F from its left half, F(z) = 1 − F(−z).
 *
 * @param {(z: number) => number} left
 */
const bySymmetry = (left) => (/** @type {number} */ z) => (z > 0 ? 1 - left(-z) : left(z));

/**
 * erfc of x ≥ 0: below 2.5 by the series of erf without cancellation, above by the continued
 * fraction.
 *
 * @param {number} x
 */
function erfc(x) {
  const peak = exp(-x * x) / sqrt(PI);
  if (x < 2.5) {
    let sum = 0;
    for (let term = 2 * x, k = 3; term > 1e-17; k += 2) {
      sum += term;
      term *= (2 * x * x) / k;
    }
    return 1 - peak * sum;
  }
  let fraction = x;
  for (let k = 60; k > 0; k--) fraction = x + k / 2 / fraction;
  return peak / fraction;
}

/** @type {Family[]} */
const families = [
  {
    name: "logistic",
    words: "logistic",
    std: PI / sqrt(3),
    iqr: 2 * log(3),
    pdf: (z) => sigmoid(z) * sigmoid(-z),
    cdf: sigmoid,
  },
  {
    name: "gaussian",
    words: "Gaussian",
    std: 1,
    iqr: 1.3489795003921634,
    pdf: (z) => exp((-z * z) / 2) / sqrt(2 * PI),
    cdf: bySymmetry((z) => erfc(-z / SQRT2) / 2),
  },
  {
    name: "laplace",
    words: "Laplace",
    std: SQRT2,
    iqr: 2 * log(2),
    pdf: (z) => exp(-abs(z)) / 2,
    cdf: bySymmetry((z) => exp(z) / 2),
  },
  {
    name: "cauchy",
    words: "Cauchy",
    std: Infinity,
    iqr: 2,
    pdf: (z) => 1 / (PI * (1 + z * z)),
    cdf: (z) => atan2(1, -z) / PI,
  },
  {
    name: "hypsecant",
    words: "hyperbolic secant",
    std: 1,
    iqr: (4 / PI) * log(1 + SQRT2),
    pdf: (z) => exp((-PI / 2) * abs(z)) * sigmoid(PI * abs(z)),
    cdf: bySymmetry((z) => (2 / PI) * atan(exp((PI / 2) * z))),
  },
  {
    name: "uniform",
    words: "uniform",
    std: 1 / sqrt(3),
    iqr: 1,
    pdf: (z) => (abs(z) <= 1 ? 0.5 : 0),
    cdf: (z) => min(max((1 + z) / 2, 0), 1),
  },
  {
    name: "triangular",
    words: "triangular",
    std: 1 / sqrt(6),
    iqr: 2 - SQRT2,
    pdf: (z) => max(1 - abs(z), 0),
    cdf: bySymmetry((z) => max(1 + z, 0) ** 2 / 2),
  },
  {
    name: "raisedcosine",
    words: "raised cosine",
    std: sqrt(1 / 3 - 2 / PI ** 2),
    iqr: 0.5294837907323009,
    pdf: (z) => sin((PI / 2) * max(1 - abs(z), 0)) ** 2,
    cdf: bySymmetry((z) => {
      const x = PI * max(1 + z, 0);
      return (x - sin(x)) / (2 * PI);
    }),
  },
  {
    name: "plateau",
    words: "plateau",
    std: sqrt((1 + (PI * EDGE) ** 2) / 3),
    iqr: 1 + 2 * EDGE * (log1p(-exp(-1.5 / EDGE)) - log1p(-exp(-0.5 / EDGE))),
    pdf: (z) => (-expm1(-2 / EDGE) / 2) * sigmoid((1 + z) / EDGE) * sigmoid((1 - z) / EDGE),
    cdf: bySymmetry((z) => {
      const lift = exp((z + 1) / EDGE) * sigmoid((1 - z) / EDGE);
      return (EDGE / 2) * log1p(-expm1(-2 / EDGE) * lift);
    }),
  },
];

/** @type {Map<string, Family>} */
export const FAMILIES = new Map(families.map((family) => [family.name, family]));

const [logistic] = families;

/**
 * Factor of s that gives every family the spread of the logistic at the same β.
 *
 * @param {Family} family
 */
export function scaleUnit(family) {
  return family.std === Infinity ? logistic.iqr / family.iqr : logistic.std / family.std;
}
