// @ts-check
/**
 * NumPy's permutations: `np.random.default_rng(seed).permutation(count)`, so that a link shows the
 * same test images as when Python chose them. NumPy keeps the stream of a generator (NEP 19).
 */

const POOL = 4;
const MULTIPLIER = 0x2360ed051fc65da44385df649fccf645n;
const [WORD, LONG] = [2n ** 64n - 1n, 2n ** 128n - 1n];

/**
 * Eight numbers from a seed below 2³², as `SeedSequence(seed).generate_state(8)`.
 * @param {number} seed
 */
function stateOf(seed) {
  let constant = 0x43b0d7e5;
  const scrambled = (/** @type {number} */ value, /** @type {number} */ factor) => {
    const first = value ^ constant;
    constant = Math.imul(constant, factor);
    const product = Math.imul(first, constant);
    return product ^ (product >>> 16);
  };
  const pool = Array.from({ length: POOL }, (_, k) => scrambled(k ? 0 : seed, 0x931e8875));
  for (let from = 0; from < POOL; from++)
    for (let to = 0; to < POOL; to++) {
      if (from === to) continue;
      const other = scrambled(pool[from], 0x931e8875);
      const mixed = Math.imul(0xca01f9dd, pool[to]) - Math.imul(0x4973f715, other);
      pool[to] = mixed ^ (mixed >>> 16);
    }
  constant = 0x8b51f9dd;
  return Array.from({ length: 8 }, (_, k) => scrambled(pool[k % POOL], 0x58f38ded) >>> 0);
}

/**
 * The numbers below 2³² of the generator PCG64.
 * @param {number} seed
 * @returns {Generator<number, never>}
 */
function* numbers(seed) {
  const words = stateOf(seed).map(BigInt);
  const [a, b, c, d] = [0, 2, 4, 6].map((k) => words[k] | (words[k + 1] << 32n));
  const increment = (((c << 64n) | d) << 1n | 1n) & LONG;
  const next = (/** @type {bigint} */ value) => (value * MULTIPLIER + increment) & LONG;
  let state = next((increment + ((a << 64n) | b)) & LONG);
  for (;;) {
    state = next(state);
    const mixed = (state >> 64n) ^ (state & WORD);
    const turn = state >> 122n;
    const value = ((mixed >> turn) | (mixed << (64n - turn))) & WORD;
    yield Number(value & 0xffffffffn);
    yield Number(value >> 32n);
  }
}

/**
 * The numbers from 0 to `count` − 1 in a random order.
 * @param {number} seed
 * @param {number} count
 */
export function permutation(seed, count) {
  const order = Array.from({ length: count }, (_, k) => k);
  const stream = numbers(seed);
  for (let last = count - 1; last > 0; last--) {
    let mask = last;
    for (const shift of [1, 2, 4, 8, 16]) mask |= mask >>> shift;
    let other;
    do other = (stream.next().value & mask) >>> 0; while (other > last);
    [order[last], order[other]] = [order[other], order[last]];
  }
  return order;
}
