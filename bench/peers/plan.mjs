/** What is scheduled: the same jobs for every system and round, made where they are used. */

/**
 * @typedef {object} Plan
 * @property {number} jobs
 * @property {number} bytes of data as JSON
 * @property {boolean} [generated] ids are the system's own
 * @property {number} [dueMs] all at one instant; 0 = at once
 * @property {number} [forMs] from then on, spread at random over so many ms
 * @property {number} [seed]
 */

/** @param {Plan} plan @returns {readonly import('./system.mjs').Planned[]} */
export function planned({ jobs, bytes, generated = false, dueMs = 0, forMs = 0, seed = 1 }) {
  const random = mulberry(seed);
  return Array.from({ length: jobs }, (_, at) => {
    const due = forMs === 0 ? dueMs : Math.floor(dueMs + random() * forMs);
    const id = generated ? undefined : `job-${String(at).padStart(12, '0')}`;
    const bare = JSON.stringify({ at, dueMs: due, text: '' }).length;
    return { id, at, dueMs: due, text: 'x'.repeat(Math.max(0, bytes - bare)) };
  });
}

/** A small generator of numbers below 1, the same for the same seed. @param {number} seed */
function mulberry(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
