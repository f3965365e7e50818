/** The starts of handlers, as their log of effects tells them, and what explains one. */

/** @typedef {import('../stage/history.mjs').Event} Event */
/** @typedef {Event & { token: string, finish: Event | undefined, effectCount: number }} Start */

/** @typedef {{ fromUs: number, toUs: number, keepsJobs?: boolean }} Loss what Redis was told in this time it may have forgotten; or all but jobs it took */
/** @typedef {{ pid: number | undefined, fromUs: number, toUs: number }} Cut one worker, or every one, lost what it held */

/** A settle is on its way for a moment after its handler has ended. */
const SETTLING_US = 1_500_000;
/** What a worker was given before it froze, or before it was cut off, begins in the first turn of its loop after that. */
const THAWED_US = 500_000;
/** A worker that ends on its own account tells its handlers first, and is gone by then. */
const ENDING_US = 5_000_000;
/** A worker that was cut off knows by then what it has lost: work goes on within 5 s. */
const RECOVERED_US = 5_000_000;
/** Timers and the log of effects are not of one clock. */
const TIMER_US = 50_000;

/** @param {readonly Event[]} effects */
export function startsOf(effects) {
  /** @type {Map<string, Start[]>} */
  const starts = new Map();
  for (const event of effects) {
    const { ev, id = '', token = '', pid } = event;
    const of = starts.get(id) ?? [];
    starts.set(id, of);
    const current = of.findLast((start) => start.token === token && start.pid === pid);
    if (ev === 'start') of.push({ ...event, token, finish: undefined, effectCount: 0 });
    else if (current && ev === 'effect') current.effectCount += 1;
    else if (current && ev === 'finish') current.finish = event;
  }
  return starts;
}

/**
 * It failed, it was told to stop for a reason that is on record, its worker died or froze before it could settle, or
 * Redis forgot its end.
 *
 * @param {Start} start
 * @param {import('./checker.mjs').Story} story
 */
export function isExplained(start, story) {
  const { pid, us, finish } = start;
  const { pauses } = story;
  if (isForgotten(start, story)) return true;
  if (finish?.how === 'error' || wasStopped(start, story)) return true;
  if (hasDied({ pid, us, finish }, story)) return true;
  const untilUs = settledUs(finish);
  return pauses.some((pause) => pause.pid === pid && pause.fromUs < untilUs && pause.toUs + THAWED_US > us);
}

/**
 * Its worker told it to stop, and the record says why: its time was up, the worker was asked to end or ended on its own,
 * or it was cut off from what it held. What the worker itself gave as the reason does not count.
 *
 * @param {Start} start
 * @param {import('./checker.mjs').Story} story
 */
function wasStopped({ id = '', pid, us, finish }, { exits, dismissals = [], cuts = [], timeouts = new Map() }) {
  if (finish?.how !== 'aborted') return false;
  const endUs = finish.us;
  const timeoutMs = timeouts.get(id) ?? Number.POSITIVE_INFINITY;
  if (endUs - us >= timeoutMs * 1000 - TIMER_US) return true;
  if (dismissals.some((asked) => asked.pid === pid && asked.us <= endUs)) return true;
  // One that was killed told its handlers nothing.
  if (exits.some((exit) => exit.pid === pid && !exit.signal && exit.us > us && exit.us < endUs + ENDING_US))
    return true;
  return cuts.some(
    (cut) =>
      (cut.pid ?? pid) === pid && us < cut.toUs + THAWED_US && endUs > cut.fromUs && endUs < cut.toUs + RECOVERED_US,
  );
}

/**
 * Its worker ended before it can have settled, which it cannot while Redis answers nobody.
 *
 * @param {Pick<Start, 'pid' | 'us' | 'finish'>} start
 * @param {Pick<import('./checker.mjs').Story, 'exits' | 'stalls'>} story
 */
export function hasDied({ pid, us, finish }, { exits, stalls = [] }) {
  const usual = settledUs(finish);
  const stalled = stalls.filter(({ fromUs, toUs }) => finish && finish.us < toUs && usual > fromUs);
  const untilUs = Math.max(usual, ...stalled.map(({ toUs }) => toUs + RECOVERED_US));
  return exits.some((exit) => exit.pid === pid && exit.us > us && exit.us < untilUs);
}

/**
 * It ran, or its end was on its way, at some moment of a stretch.
 *
 * @param {Pick<Start, 'us' | 'finish'>} start
 * @param {{ fromUs: number, toUs: number } | undefined} stretch
 */
export function isUnderway({ us, finish }, stretch = { fromUs: 0, toUs: Number.POSITIVE_INFINITY }) {
  return us < stretch.toUs + SETTLING_US && settledUs(finish) > stretch.fromUs;
}

/** Redis was told of its end in a time of which it may have forgotten all. @param {Start} start @param {import('./checker.mjs').Story} story */
export function isForgotten(start, { loss }) {
  return loss !== undefined && madeUs(start) <= loss.toUs && settledUs(start.finish) >= loss.fromUs;
}

/**
 * When Redis made a start: its token says so. The worker writes its line when the reply comes, on a busy machine after the
 * end of Redis that forgot it.
 *
 * @param {Pick<Start, 'us' | 'ms' | 'token'>} start
 */
export function madeUs({ us, ms, token }) {
  const lagUs = ms * 1000 - Number(token);
  return lagUs > 0 && lagUs < SETTLING_US ? us - lagUs : us;
}

/** @param {Loss | undefined} loss @param {number} us */
export function isWithin(loss, us) {
  return loss !== undefined && us >= loss.fromUs && us < loss.toUs;
}

/** @param {Event | undefined} finish */
function settledUs(finish) {
  return finish === undefined ? Number.POSITIVE_INFINITY : finish.us + SETTLING_US;
}

/** Tokens are decimal numbers without leading zeros. @param {string} one @param {string} other */
export function isNewer(one, other) {
  return one.length === other.length ? one > other : one.length > other.length;
}
