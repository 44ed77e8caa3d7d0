// @ts-check
// Numbers of one field, in pixels; as densembed.fields.measures has them.

const MASS = 0.9;

/**
 * The value below which a share of the numbers lies, interpolated as NumPy's `percentile` does.
 * @param {Float32Array} values
 * @param {number} percent
 */
export function percentile(values, percent) {
  const sorted = Float32Array.from(values).sort();
  const place = (percent / 100) * (sorted.length - 1);
  const below = Math.floor(place);
  const above = sorted[Math.min(below + 1, sorted.length - 1)];
  return sorted[below] + (place - below) * (above - sorted[below]);
}

/**
 * Centre, spread, entropy and area of a field in words; null for a field without mass.
 * @param {Float32Array} values rows × columns, row 0 at the top
 * @param {number[]} shape rows and columns
 * @param {number} resolution cells per pixel on each axis
 * @returns {Record<string, string>}
 */
export function measures(values, [rows, columns], resolution) {
  const pixels = values.length / resolution ** 2;
  const names = ["centre", "spread", "entropy", `${100 * MASS} % of the field in`];
  const along = new Float64Array(columns), down = new Float64Array(rows);
  let total = 0;
  for (let i = 0, k = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++, k++) {
      total += values[k];
      along[j] += values[k];
      down[i] += values[k];
    }
  }
  if (!values.some((value) => value !== 0))
    return Object.fromEntries(names.map((name) => [name, "not drawn"]));
  const whole = total || 1;
  /** @param {Float64Array} masses */
  const moments = (masses) => {
    let mean = 0, square = 0;
    masses.forEach((mass, k) => { mean += (mass / whole) * ((k + 0.5) / resolution); });
    masses.forEach((mass, k) => {
      square += (mass / whole) * ((k + 0.5) / resolution - mean) ** 2;
    });
    return [mean, square];
  };
  const [[t, across], [u, upright]] = [moments(along), moments(down)];
  const cell = 1 / resolution ** 2;
  let entropy = 0;
  for (const value of values)
    if (value > 0) entropy -= (value / whole) * Math.log2(value / whole / cell);
  const sorted = Float32Array.from(values).sort();
  let covered = 0, area = 0;
  while (area < sorted.length && covered < MASS) covered += sorted[sorted.length - ++area] / whole;
  const texts = [
    `${t.toFixed(1)}, ${u.toFixed(1)}`,
    `${Math.sqrt(across + upright).toFixed(1)} pixels`,
    `${entropy.toFixed(1)} of ${Math.log2(pixels).toFixed(1)} bits`,
    `${(area * cell).toFixed(0)} of ${pixels} pixels`,
  ];
  return Object.fromEntries(names.map((name, k) => [name, texts[k]]));
}
