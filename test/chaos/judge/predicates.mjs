/** What the rows of the matrix ask for besides the absence of anomalies. A predicate returns what is wrong. */

import { routed } from '../stage/foreign.mjs';
import { PARTITIONS } from './dump.mjs';
import { mostLinesIn } from './said.mjs';

/** @typedef {import('../stage/run.mjs').Outcome} Outcome */

/** The retry budget of a producer and one command more. */
const SETTLE_MS = 15_000;
/** Work goes on so soon after a failover. */
const RESUME_MS = 5000;
/** A line a second, and of each partition: a leader lost and elected, a worker gone and what it left taken over. */
const LINES_MAX = 10 + 4 * PARTITIONS.length;

/** @param {Outcome} outcome @param {number} ms */
export function lateBy({ effects, fromMs, toMs, slackMs = 0 }, ms) {
  // Chosen by their due: one that came too late is among them, however late it came.
  const during = effects.filter(
    ({ ev, due = 0, attempt }) => ev === 'start' && attempt === 1 && due >= fromMs - 1000 && due <= toMs + 5000,
  );
  return notLater(Math.max(0, ...during.map(({ ms: at, due = 0 }) => at - due)), ms + slackMs);
}

/** @param {number} lateMs @param {number} ms */
export const notLater = (lateMs, ms) => atMost('ms late at most', lateMs, ms);

/**
 * How long something took is judged on a quiet machine alone, whether a leader that was kept waiting lost its lease, and how often
 * a reply was lost that comes once in a while; what never came is judged anywhere.
 *
 * @param {string} complaint
 */
export const needsQuiet = (complaint) => /^(ms [^:]*: \d|\d+ FLAP,|lost replies to \w+: [1-9])/.test(complaint);

/** @param {Outcome['effects']} effects */
export const failures = (effects) => effects.filter(({ ev, how }) => ev === 'finish' && how === 'error').length;

/** @param {string} what @param {number} value @param {number} most */
export const atMost = (what, value, most) => (value <= most ? [] : [`${what}: ${value}, allowed ${most}`]);

/** @param {string} what @param {number} value @param {number} least */
export const atLeast = (what, value, least) => (value >= least ? [] : [`${what}: ${value}, expected ${least} or more`]);

/** @param {string} what @param {number} value @param {number} wanted */
export const exactly = (what, value, wanted) => (value === wanted ? [] : [`${what}: ${value}, expected ${wanted}`]);

/** Every promise of a producer settled, in time. @param {Pick<Outcome, 'calls'>} outcome */
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

/**
 * Work goes on soon after the end of the fault, on every partition that has some: of the jobs that were not begun by
 * then, one is begun and has its effect, so many ms after the end or after the first of them was taken and due. An
 * effect of what began before says nothing, for it needs nobody but its own handler; nor does a job that Redis forgot.
 *
 * @param {Pick<Outcome, 'calls' | 'effects' | 'toMs' | 'report' | 'slackMs'>} outcome
 * @param {number} ms
 */
export function resumed({ calls, effects, toMs, slackMs = 0, report: { excused } }, ms) {
  const begun = new Set(effects.filter(({ ev, ms: at }) => ev === 'start' && at <= toMs).map(({ id }) => id));
  const counts = (/** @type {string} */ id) => !(begun.has(id) || excused.has(id));
  return wentOn({ calls: calls.filter(({ id = '' }) => counts(id)), effects, toMs, slackMs }, ms);
}

/**
 * The partitions that a fault strikes, for `undisturbed`.
 *
 * @param {readonly number[]} partitions
 * @returns {Readonly<Record<string, number>>}
 */
export const struck = (partitions) => Object.fromEntries(partitions.map((one) => [`struck ${one}`, 1]));

/**
 * Jobs of the partitions that the fault did not strike start as soon as before it, in the middle: no more than a fifth or
 * 5 ms later.
 *
 * @param {Pick<Outcome, 'effects' | 'fromMs' | 'toMs' | 'noted'>} outcome
 */
export function undisturbed({ effects, fromMs, toMs, noted }) {
  const isOther = (/** @type {string} */ id) => noted[`struck ${routed(id, PARTITIONS.length)}`] === undefined;
  const middle = (/** @type {number} */ from, /** @type {number} */ to) => {
    const lates = effects
      .filter(
        ({ ev, id = '', due = 0, attempt }) =>
          ev === 'start' && attempt === 1 && isOther(id) && due >= from && due < to,
      )
      .map(({ ms, due = 0 }) => ms - due)
      .sort((a, b) => a - b);
    return { count: lates.length, ms: lates[lates.length >> 1] ?? 0 };
  };
  const [before, during] = [middle(0, fromMs), middle(fromMs, toMs)];
  return [
    ...atLeast('jobs of other partitions before', before.count, 20),
    ...atLeast('jobs of other partitions meanwhile', during.count, 20),
    ...atMost('ms late in the middle, other partitions', during.ms, Math.max(before.ms * 1.2, before.ms + 5)),
  ];
}

/** What every failover is asked for: calls settle, and work goes on. @param {Outcome} outcome */
export const goesOn = (outcome) => [...settled(outcome), ...resumed(outcome, RESUME_MS)];

/** Replication that does not wait does lose what was acknowledged: without that a row shows nothing. @param {Outcome} outcome */
export const forgot = ({ report }) =>
  atLeast('jobs and ends that Redis forgot', report.counts.excused + report.counts.forgotten, 1);

/** No producer saw an error. @param {Pick<Outcome, 'calls'>} outcome */
export const failedNone = ({ calls }) =>
  exactly('calls that failed', calls.filter(({ ev }) => /fail|unknown/.test(ev)).length, 0);

/** Jobs that were asked for after the loss run, on every partition. @param {Pick<Outcome, 'calls' | 'effects' | 'toMs' | 'slackMs'>} outcome */
export function flow({ calls, effects, toMs, slackMs = 0 }) {
  const after = new Set(calls.filter(({ ev, ms }) => ev === 'enq.call' && ms > toMs).map(({ id }) => id));
  return wentOn({ calls: calls.filter(({ id }) => after.has(id)), effects, toMs, slackMs }, 5000);
}

/**
 * @param {Pick<Outcome, 'calls' | 'effects' | 'toMs' | 'slackMs'>} outcome calls: of those jobs alone that count
 * @param {number} ms
 */
function wentOn({ calls, effects, toMs, slackMs = 0 }, ms) {
  const ran = firstOf(effects, 'effect');
  // One that takes its worker with it has shown itself, and has no effect yet or never.
  const crashed = firstOf(effects, 'crash');
  /** @type {Map<number, { readyMs: number, ranMs: number }>} */
  const partitions = new Map();
  for (const { id = '', ms: takenMs, due = 0 } of calls.filter(({ ev }) => ev === 'enq.ok')) {
    if (crashed.has(id)) continue;
    const partition = routed(id, PARTITIONS.length);
    const { readyMs, ranMs } = partitions.get(partition) ?? {
      readyMs: Number.POSITIVE_INFINITY,
      ranMs: Number.POSITIVE_INFINITY,
    };
    const ready = Math.min(readyMs, Math.max(takenMs, due, toMs));
    partitions.set(partition, { readyMs: ready, ranMs: Math.min(ranMs, ran.get(id) ?? Number.POSITIVE_INFINITY) });
  }
  const complaints = [...partitions].flatMap(([partition, { readyMs, ranMs }]) =>
    ranMs === Number.POSITIVE_INFINITY
      ? [`work never went on in partition ${partition}`]
      : atMost(`ms until work went on in partition ${partition}`, ranMs - readyMs, ms + slackMs),
  );
  return [...complaints, ...atLeast('partitions that had work left', partitions.size, 1)];
}

/**
 * What was due when the fault ended and had not run is found again: it has its effect so many ms later at most.
 *
 * @param {Pick<Outcome, 'calls' | 'effects' | 'toMs'>} outcome
 * @param {number} ms
 */
export function foundAgain({ calls, effects, toMs }, ms) {
  const ran = firstOf(effects, 'effect');
  const crashed = firstOf(effects, 'crash');
  const due = calls.filter((call) => call.ev === 'enq.ok' && Math.max(call.ms, call.due ?? 0) <= toMs);
  const waits = due
    .filter(({ id = '' }) => !crashed.has(id) && (ran.get(id) ?? Number.POSITIVE_INFINITY) > toMs)
    .map(({ id = '' }) => (ran.get(id) ?? Number.POSITIVE_INFINITY) - toMs);
  return [
    ...atLeast('jobs that the fault struck', waits.length, 1),
    ...atMost('ms until all were found again', Math.max(0, ...waits), ms),
  ];
}

/** Id → when this first happened. @param {Outcome['effects']} effects @param {string} what @returns {ReadonlyMap<string, number>} */
function firstOf(effects, what) {
  /** @type {Map<string, number>} */
  const first = new Map();
  for (const { ev, id = '', ms } of effects) if (ev === what && !first.has(id)) first.set(id, ms);
  return first;
}

/** Nobody floods a log, from the fault to the end. @param {{ actors: readonly { log: string }[], fromMs: number }} outcome */
export function calm({ actors, fromMs }) {
  const most = Math.max(0, ...actors.map(({ log }) => mostLinesIn(log, { fromMs, forMs: 10_000 })));
  return atMost('lines of one log within 10 s', most, LINES_MAX);
}
