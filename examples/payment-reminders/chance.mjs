/**
 * Chance that is the same in every run: who gets refused, who pays meanwhile, how long the mail server thinks. The
 * generator draws from a seeded sequence; everybody else asks about a name, so that the plan and the mail server agree
 * without talking to each other.
 */

/**
 * A sequence of numbers in [0, 1) that depends on the seed alone (mulberry32).
 *
 * @param {number} seed
 */
export function sequence(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    next,
    /** @param {number} below */
    whole: (below) => Math.floor(next() * below),
    /**
     * @template T
     * @param {readonly T[]} list must not be empty
     * @returns {T}
     */
    pick: (list) => /** @type {T} */ (list[Math.floor(next() * list.length)]),
  };
}

/**
 * A number in [0, 1) that depends on the text alone.
 *
 * @param {string} text
 */
export function chanceOf(text) {
  let hash = 0x811c9dc5;
  for (const char of text) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  // FNV spreads its last characters badly, and ids differ at their ends; one turn of the sequence mixes them.
  return sequence(hash).next();
}
