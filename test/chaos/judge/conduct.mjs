/**
 * The judge of the processes, where `checker.mjs` is the judge of the jobs. Pure as well.
 *
 *  HOARD     a process that lived through it all holds more files than at first, or far more memory
 *  UNCAUGHT  an error that nobody caught, or a promise that was rejected and nobody listened
 *  FLAP      a daemon led a partition again that it had lost while nothing was wrong
 */

/** @typedef {import('./checker.mjs').Anomaly} Anomaly */
/**
 * @typedef {object} Conduct
 * @property {readonly import('./vitals.mjs').Vital[]} vitals of the processes that lived from the beginning to the end
 * @property {readonly { actor: string, line: string }[]} outcries
 * @property {RegExp | undefined} [declared] outcries that are the fault itself
 * @property {readonly import('./terms.mjs').Term[]} terms
 * @property {readonly { fromUs: number, toUs: number }[]} calm stretches without a fault
 */

/** A connection that was dialled again is not a leak; a descriptor for every job is. */
const FDS_PART = 0.1;
/** A heap grows when its process has worked: V8 gives memory back only when it must. */
const RSS_GROWTH_KB = 64 * 1024;

/**
 * @param {Conduct} conduct
 * @returns {readonly Anomaly[]}
 */
export function judgeConduct({ vitals, outcries, declared, terms, calm }) {
  return [
    ...vitals.flatMap(hoarded),
    ...outcries
      .filter(({ line }) => !declared?.test(line))
      .map(({ actor, line }) => ({ kind: 'UNCAUGHT', id: actor, detail: line })),
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
 * A leader gives way to a daemon of better rank, and that one to a better one still; nobody ever comes back.
 *
 * @param {Conduct['terms']} terms
 * @param {Conduct['calm'][number]} stretch
 */
function flaps(terms, { fromUs, toUs }) {
  return [...new Set(terms.map(({ partition }) => partition))].flatMap((partition) => {
    const of = terms.filter((term) => term.partition === partition && term.us <= toUs);
    const leaders = [...of.filter(({ us }) => us < fromUs).slice(-1), ...of.filter(({ us }) => us >= fromUs)];
    const names = leaders.map(({ leader }) => leader);
    if (new Set(names).size === names.length) return [];
    return [{ kind: 'FLAP', id: `partition ${partition}`, detail: `led in calm by ${names.join(', ')}` }];
  });
}
