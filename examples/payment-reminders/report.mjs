/**
 * The judgement of a run: what was planned, what the mail server received, what happened in between → counts, lateness
 * and checks. Pure, and it asks none of our own counters: the mail server is the witness.
 *
 * Two groups of jobs are looked at apart from the rest, because nothing can be on time while its leader or its worker
 * is dead: those that fell due between the kill of the leader and the next leader, and those the killed worker held.
 */
import { checksOf } from './checks.mjs';
import { earlyOf, groupBy, isCancelled, lostOf, runningAtKill, storiesOf, surplusOf } from './stories.mjs';

/** @typedef {import('./plan.mjs').Plan} Plan */
/** @typedef {import('./stories.mjs').DemoEvent} DemoEvent */
/** @typedef {import('./stories.mjs').Story} Story */
/** @typedef {import('./post-office.mjs').Received} Received */
/** @typedef {{ readonly name: string, readonly ok: boolean, readonly detail: string }} Check */
/** @typedef {{ readonly count: number, readonly p50: number, readonly p99: number, readonly max: number, readonly all: readonly number[] }} Lateness */
/**
 * @typedef {object} Report
 * @property {boolean} ok
 * @property {Readonly<Record<string, number>>} counts
 * @property {readonly Check[]} checks
 * @property {{ readonly healthy: Lateness, readonly failover: Lateness, readonly takenOver: Lateness }} lateness
 */
/** A job that falls due just before the leader dies may be caught as well, and the next leader needs a moment. */
const MARGIN_MS = 100;

/**
 * @param {{ plan: Plan, received: readonly Received[], events: readonly DemoEvent[] }} run
 * @returns {Report}
 */
export function makeReport({ plan, received, events }) {
  const stories = storiesOf(plan, received, events);
  const checks = checksOf({ stories, received, events });
  const all = [...stories.values()];
  const accepted = all.filter((story) => story.accepted.length > 0);
  const counts = {
    scheduled: new Set(events.flatMap((event) => (event.kind === 'scheduled' ? [event.id] : []))).size,
    sent: accepted.length,
    cancelled: all.filter(isCancelled).length,
    retried: accepted.filter(({ refused }) => refused.some(({ code }) => code === 451)).length,
    dead: all.filter(({ refused }) => refused.some(({ code }) => code === 550)).length,
    conflicts: events.reduce((sum, event) => sum + (event.kind === 'lock-conflicts' ? event.count : 0), 0),
    duplicates: surplusOf(all).length,
    runningAtKill: runningAtKill(events).size,
    early: earlyOf(all).length,
    lost: lostOf(all).length,
  };
  return { ok: checks.every(({ ok }) => ok), counts, checks, lateness: latenessOf(all, events) };
}

/**
 * Lateness of mails that nobody put off: no refusal before, no lock in the way.
 *
 * @param {readonly Story[]} stories
 * @param {readonly DemoEvent[]} events
 */
function latenessOf(stories, events) {
  const held = new Set(events.flatMap((event) => (event.kind === 'worker-killed' ? event.held : [])));
  const killed = events.find((event) => event.kind === 'leader-killed');
  const back = events.find((event) => event.kind === 'leader-back');
  const from = (killed?.atMs ?? Number.POSITIVE_INFINITY) - MARGIN_MS;
  const to = (back?.atMs ?? Number.POSITIVE_INFINITY) + MARGIN_MS;
  const groups = groupBy(
    stories.filter(
      ({ job, refused, accepted }) => job.queue === 'emails' && refused.length === 0 && accepted.length > 0,
    ),
    ({ job }) => {
      if (held.has(job.id)) return 'takenOver';
      return job.dueMs >= from && job.dueMs <= to ? 'failover' : 'healthy';
    },
  );
  /** @param {'healthy' | 'failover' | 'takenOver'} group */
  const of = (group) =>
    summary((groups.get(group) ?? []).map(({ job, accepted }) => latest(accepted, group) - job.dueMs));
  return { healthy: of('healthy'), failover: of('failover'), takenOver: of('takenOver') };
}

/**
 * A job that was taken over is judged by its last mail: that is when it was done for certain.
 *
 * @param {readonly Received[]} accepted
 * @param {string} group
 */
const latest = (accepted, group) => accepted.at(group === 'takenOver' ? -1 : 0)?.receivedMs ?? 0;

/**
 * @param {readonly number[]} values
 * @returns {Lateness}
 */
function summary(values) {
  const all = [...values].sort((a, b) => a - b);
  /** @param {number} share */
  const at = (share) => all[Math.max(0, Math.ceil(all.length * share) - 1)] ?? 0;
  return { count: all.length, p50: at(0.5), p99: at(0.99), max: at(1), all };
}
