/** What the rows of the matrix ask for besides the absence of anomalies. A predicate returns what is wrong. */
import { PARTITIONS } from './dump.mjs';
import { linesWithin } from './said.mjs';

/** @typedef {import('./run.mjs').Outcome} Outcome */

/** The retry budget of a producer and one command more. */
const SETTLE_MS = 15_000;
/** A line a second, and of each partition: a leader lost and elected, a worker gone and what it left taken over. */
const LINES_MAX = 10 + 4 * PARTITIONS.length;

/** @param {Outcome} outcome @param {number} ms */
export function lateBy({ effects, fromMs, toMs }, ms) {
  // Chosen by their due: one that came too late is among them, however late it came.
  const during = effects.filter(
    ({ ev, due = 0, attempt }) => ev === 'start' && attempt === 1 && due >= fromMs - 1000 && due <= toMs + 5000,
  );
  return atMost('ms late at most', Math.max(0, ...during.map(({ ms: at, due = 0 }) => at - due)), ms);
}

/** @param {Outcome['effects']} effects */
export const failures = (effects) => effects.filter(({ ev, how }) => ev === 'finish' && how === 'error').length;

/** @param {string} what @param {number} value @param {number} most */
export const atMost = (what, value, most) => (value <= most ? [] : [`${what}: ${value}, allowed ${most}`]);

/** @param {string} what @param {number} value @param {number} least */
export const atLeast = (what, value, least) => (value >= least ? [] : [`${what}: ${value}, expected ${least} or more`]);

/** @param {string} what @param {number} value @param {number} wanted */
export const exactly = (what, value, wanted) => (value === wanted ? [] : [`${what}: ${value}, expected ${wanted}`]);

/** Every promise of a producer settled, in time. @param {Outcome} outcome */
export function settled({ calls }) {
  /** @type {Map<string, number>} */
  const open = new Map();
  let longest = 0;
  for (const { ev, id = '', us } of calls) {
    if (ev === 'enq.call') open.set(id, us);
    else if (ev.startsWith('enq.')) {
      longest = Math.max(longest, us - (open.get(id) ?? us));
      open.delete(id);
    }
  }
  return [
    ...exactly('calls that never settled', open.size, 0),
    ...atMost('ms until a call settled', longest / 1000, SETTLE_MS),
  ];
}

/** Work goes on soon after the end of the fault. @param {Outcome} outcome @param {number} ms */
export function resumed({ effects, toMs }, ms) {
  const first = effects.find((event) => event.ev === 'effect' && event.ms > toMs);
  return first ? atMost('ms until work went on', first.ms - toMs, ms) : ['work never went on'];
}

/** Jobs that were asked for after the loss run. @param {Outcome} outcome */
export function flow({ calls, effects, toMs }) {
  const after = new Set(calls.filter(({ ev, ms }) => ev === 'enq.ok' && ms > toMs).map(({ id }) => id));
  const first = effects.find(({ ev, id, ms }) => ev === 'effect' && ms > toMs && after.has(id));
  return first ? atMost('ms until a new job ran', first.ms - toMs, 5000) : ['no new job ran'];
}

/** Nobody floods a log. @param {Outcome} outcome */
export function calm({ actors, fromMs }) {
  const most = Math.max(0, ...actors.map(({ log }) => linesWithin(log, fromMs, fromMs + 10_000)));
  return atMost('lines of one log within 10 s', most, LINES_MAX);
}
