/** The starts of handlers, as their log of effects tells them, and what explains one. */

/** @typedef {import('./history.mjs').Event} Event */
/** @typedef {Event & { token: string, finish: Event | undefined, effectCount: number }} Start */

/** @typedef {{ fromUs: number, toUs: number }} Loss what Redis was told in this time it may have forgotten */

/** A settle is on its way for a moment after its handler has ended. */
const SETTLING_US = 1_500_000;

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
 * It failed, its worker told it to stop, its worker died or froze before it could settle, or Redis forgot its end.
 *
 * @param {Start} start
 * @param {import('./checker.mjs').Story} story
 */
export function isExplained(start, story) {
  const { pid, us, finish } = start;
  const { exits, pauses } = story;
  if (isForgotten(start, story)) return true;
  if (finish?.how === 'error' || finish?.how === 'aborted') return true;
  if (hasDied({ pid, us, finish }, exits)) return true;
  const untilUs = settledUs(finish);
  return pauses.some((pause) => pause.pid === pid && pause.fromUs < untilUs && pause.toUs > us);
}

/**
 * Its worker ended before it can have settled.
 *
 * @param {Pick<Start, 'pid' | 'us' | 'finish'>} start
 * @param {import('./checker.mjs').Story['exits']} exits
 */
export function hasDied({ pid, us, finish }, exits) {
  return exits.some((exit) => exit.pid === pid && exit.us > us && exit.us < settledUs(finish));
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
export function isForgotten({ us, finish }, { loss }) {
  return loss !== undefined && us <= loss.toUs && settledUs(finish) >= loss.fromUs;
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
