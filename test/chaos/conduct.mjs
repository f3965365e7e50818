/**
 * The judge of the processes, where `checker.mjs` is the judge of the jobs. Pure as well.
 *
 *  HOARD     a process that lived through it all holds more files than at first, or far more memory
 *  UNCAUGHT  an error that nobody caught, or a promise that was rejected and nobody listened
 *  FLAP      the leader of a partition changed twice while nothing was wrong
 */

/** @typedef {import('./checker.mjs').Anomaly} Anomaly */
/**
 * @typedef {object} Conduct
 * @property {readonly import('./vitals.mjs').Vital[]} vitals of the processes that lived from the beginning to the end
 * @property {readonly { actor: string, line: string }[]} outcries
 * @property {readonly import('./terms.mjs').Term[]} terms
 * @property {readonly { fromUs: number, toUs: number }[]} calm stretches without a fault
 */

/** A connection that was dialled again is not a leak; a descriptor for every job is. */
const FDS_PART = 0.1;
/** A heap grows when its process has worked: V8 gives memory back only when it must. */
const RSS_GROWTH_KB = 64 * 1024;
/** A leader gives way once to a daemon of better rank. */
const CHANGES_MAX = 1;

/**
 * @param {Conduct} conduct
 * @returns {readonly Anomaly[]}
 */
export function judgeConduct({ vitals, outcries, terms, calm }) {
  return [
    ...vitals.flatMap(hoarded),
    ...outcries.map(({ actor, line }) => ({ kind: 'UNCAUGHT', id: actor, detail: line })),
    ...calm.flatMap((stretch) => flaps(terms, stretch)),
  ];
}

/** @param {import('./vitals.mjs').Vital} vital */
function hoarded({ actor, before, after }) {
  const details = [];
  const fdsMax = Math.floor(before.fds * (1 + FDS_PART));
  if (after.fds > fdsMax) details.push(`${after.fds} open files, ${before.fds} at first`);
  const mb = (/** @type {number} */ kb) => Math.round(kb / 1024);
  if (after.rssKb > before.rssKb + RSS_GROWTH_KB)
    details.push(`${mb(after.rssKb)} MB, ${mb(before.rssKb)} MB at first`);
  return details.map((detail) => ({ kind: 'HOARD', id: actor, detail }));
}

/**
 * @param {Conduct['terms']} terms
 * @param {Conduct['calm'][number]} stretch
 */
function flaps(terms, { fromUs, toUs }) {
  /** @type {Map<number, number>} */
  const changes = new Map();
  for (const { partition, us } of terms) {
    if (us >= fromUs && us <= toUs) changes.set(partition, (changes.get(partition) ?? 0) + 1);
  }
  return [...changes]
    .filter(([, count]) => count > CHANGES_MAX)
    .map(([partition, count]) => ({ kind: 'FLAP', id: `partition ${partition}`, detail: `${count} changes in calm` }));
}
