// The corners of a cell, as offsets (x, y), in the order of its sides.
const CORNERS = [[0, 0], [1, 0], [1, 1], [0, 1]];

/**
 * The line on which values (height × width, at the cells' centres) cross a level, as an SVG path.
 * @param {Float32Array} values
 * @param {number} width
 * @param {number} height
 * @param {number} level
 * @param {number} cell the side of a cell
 */
export function contour(values, width, height, level, cell) {
  let path = "";
  for (let i = 0; i + 1 < height; i++) {
    for (let j = 0; j + 1 < width; j++) {
      const at = i * width + j;
      const side = values[at] > level;
      if ((values[at + 1] > level) === side && (values[at + width] > level) === side
        && (values[at + width + 1] > level) === side) continue;  // most cells
      const corners = CORNERS.map(([x, y]) => values[(i + y) * width + j + x]);
      const over = corners.map((value) => value > level);
      const cuts = [];
      for (let a = 0; a < 4; a++) {
        const b = (a + 1) % 4;
        if (over[a] === over[b]) continue;
        const share = (level - corners[a]) / (corners[b] - corners[a]);
        const [x, y] = [0, 1].map((axis) =>
          CORNERS[a][axis] + share * (CORNERS[b][axis] - CORNERS[a][axis]));
        cuts.push(`${((j + 0.5 + x) * cell).toFixed(2)} ${((i + 0.5 + y) * cell).toFixed(2)}`);
      }
      for (let k = 0; k < cuts.length; k += 2) path += `M${cuts[k]}L${cuts[k + 1]}`;
    }
  }
  return path;
}
