/** What a process holds: open files and memory, as Linux tells it. Elsewhere nobody tells, and nothing is judged. */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const REST_MS = 500;
const REST_MAX_MS = 10_000;

/** @typedef {{ fds: number, rssKb: number }} Held */
/** @typedef {{ actor: string, before: Held, after: Held }} Vital a process that lived through the run */

/**
 * @param {number} pid
 * @returns {Held | undefined} nothing of a process that is gone
 */
export function heldBy(pid) {
  try {
    const fds = readdirSync(`/proc/${pid}/fd`).length;
    return { fds, rssKb: Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) };
  } catch {
    return undefined;
  }
}

/**
 * What the daemons and workers hold now; hand the result on to `vitalsSince` when all is over.
 *
 * @param {import('../stage/cast.mjs').Cast} cast
 */
export function vitalsNow(cast) {
  return [...cast.living('daemon'), ...cast.living('worker')].map((actor) => ({ actor, held: heldBy(actor.pid) }));
}

/**
 * The same, once nobody opens anything more: to several servers connections are made when they are first needed.
 *
 * @param {import('../stage/cast.mjs').Cast} cast
 */
export async function vitalsAtRest(cast) {
  const untilMs = Date.now() + REST_MAX_MS;
  for (;;) {
    const before = vitalsNow(cast);
    await sleep(REST_MS);
    const now = vitalsNow(cast);
    if (filesOf(now) === filesOf(before) || Date.now() > untilMs) return now;
  }
}

/** @param {ReturnType<typeof vitalsNow>} vitals */
const filesOf = (vitals) => vitals.map(({ held }) => held?.fds).join();

/**
 * @param {ReturnType<typeof vitalsNow>} baseline
 * @returns {readonly Vital[]}
 */
export function vitalsSince(baseline) {
  return baseline.flatMap(({ actor, held: before }) => {
    const after = actor.isGone() ? undefined : heldBy(actor.pid);
    return before && after ? [{ actor: actor.name, before, after }] : [];
  });
}
