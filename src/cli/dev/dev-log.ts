/** What happens in `dev`, one readable line each, on stderr: the events of jobs, and what handlers log. */

import { listenToAll } from '../../job/event-list.ts';
import type { EventSource } from '../../job/events.ts';
import type { Attempted } from '../../job/outcome.ts';
import { systemClock } from '../../kernel/clock.ts';
import { counted, span } from '../../kernel/humanize.ts';
import type { Log } from '../../kernel/log.ts';
import type { Output } from '../terminal/output.ts';
import { json, line, stackLines } from '../terminal/text.ts';
import { iso } from '../terminal/when.ts';

/** A log for people. Debug lines are left out. */
export function createDevLog(out: Output, bound: Readonly<Record<string, unknown>> = {}): Log {
  const write = (fields: Readonly<Record<string, unknown>>, message: string) => {
    const all = { ...bound, ...fields };
    say(out, line`${message} ${Object.keys(all).length === 0 ? '' : json(all)}`.trimEnd());
  };
  return {
    debug: () => undefined,
    info: write,
    warn: write,
    error: write,
    child: (fields) => createDevLog(out, { ...bound, ...fields }),
  };
}

/** Tells what becomes of each job. `isServed`: whether a living worker serves a queue, in this process or another. */
export function tellEvents(out: Output, events: EventSource, isServed: (queue: string) => Promise<boolean>): void {
  const hint = hints(out, isServed);
  /** Who misses Redis, and why: each connection says so for itself, and a person wants to read it once. */
  const away = new Map<string, string>();

  listenToAll(
    events,
    {
      'jobs.promoted': ({ queue, count, deadLetters }) => {
        if (count > 0) {
          say(out, line`${queue}  ${count} due, on the way`);
          // Without an answer nobody knows; the outage has lines of its own.
          hint(queue).catch(() => undefined);
        }
        if (deadLetters > 0)
          say(
            out,
            line`${queue}  ${counted(deadLetters, 'dead letter')} of members that cannot be jobs; see "duestream dead ls ${queue}"`,
          );
      },
      'job.started': ({ queue, id, name, attempt, lateMs }) =>
        say(out, line`${queue}  ${id}  ${name} started, attempt ${attempt}, ${span(lateMs)} after its due time`),
      'job.completed': ({ queue, id, tookMs }) => say(out, line`${queue}  ${id}  done in ${span(tookMs)}`),
      'job.retried': ({ queue, id, delayMs, error }) =>
        sayFailure(out, line`${queue}  ${id}  failed, again in ${span(delayMs)}: ${error.message}`, error),
      'job.deferred': ({ queue, id, delayMs, reason }) =>
        say(out, line`${queue}  ${id}  put aside for ${span(delayMs)}${reason === undefined ? '' : `: ${reason}`}`),
      'job.dead': ({ queue, id, reason, error }) =>
        sayFailure(out, line`${queue}  ${id}  dead (${reason}): ${error.message}`, error),
      'job.failed': ({ queue, id, error }) =>
        sayFailure(out, line`${queue}  ${id}  failed, and is not tried again (at most once): ${error.message}`, error),
      'job.expired': ({ queue, id, dead }) =>
        say(out, line`${queue}  ${id}  too late: ${dead ? 'it became a dead letter' : 'it was dropped'}`),
      'job.cancelled': ({ queue, id }) => say(out, line`${queue}  ${id}  cancelled`),
      'schedule.unreadable': ({ queue, schedule, why }) =>
        say(out, line`${queue}  schedule ${schedule} cannot be read and does not fire: ${why}`),
      'slots.lost': ({ queue, id, lost, concurrency }) =>
        say(out, line`${queue}  ${id}  ignores its abort signal; ${lost} of ${concurrency} slots are lost`),
      'promise.rejected': ({ error }) => say(out, line`unhandled rejection: ${error}`),
      'redis.away': ({ who, why, answered }) => {
        const isKnown = [...away.values()].includes(why);
        away.set(who, why);
        if (!isKnown) say(out, answered ? line`Redis refuses: ${why}` : line`Redis is away: ${why}`);
      },
      'redis.changed': ({ before, runId, empty }) =>
        say(
          out,
          empty || before === runId ? 'Redis has lost all keys of this namespace' : 'another Redis server answers',
        ),
      'schema.refused': ({ why }) => say(out, line`stopping: ${why}`),
      'redis.back': ({ who }) => {
        if (away.delete(who) && away.size === 0) say(out, 'Redis is back');
      },
    },
    PASSED_OVER,
  );
}

/** Says when no worker serves a queue: until then a ready job looks like a job that runs. */
function hints(out: Output, isServed: (queue: string) => Promise<boolean>): (queue: string) => Promise<void> {
  const hinted = new Map<string, number>();
  return async (queue) => {
    const nowMs = systemClock.monotonicMs();
    if (nowMs - (hinted.get(queue) ?? Number.NEGATIVE_INFINITY) < HINT_EVERY_MS) return;
    hinted.set(queue, nowMs);
    if (await isServed(queue)) hinted.delete(queue);
    else say(out, line`${queue}  no worker serves it: start one with "duestream worker <module>"`);
  };
}

/** What a person at a terminal does not miss: how it is done, and what a daemon is asked for later. */
const PASSED_OVER = [
  ...([
    'leader.elected',
    'leader.lost',
    'mover.passed',
    'process.ticked',
    'schedule.fired',
    'schedule.missed',
  ] as const),
  ...(['job.fenced', 'jobs.parked', 'parked.waiting', 'suspects.waiting', 'worker.exhausted'] as const),
  ...(['entries.reclaimed', 'entries.adopted', 'consumer.retired', 'partition.repaired'] as const),
  ...(['redis.evicts', 'redis.keeps', 'jobs.missed'] as const),
] as const;

const HINT_EVERY_MS = 10_000;

/** With where it was thrown. */
function sayFailure(out: Output, text: string, { stack }: Attempted): void {
  say(out, text);
  for (const one of stackLines(stack)) out.note(one);
}

function say(out: Output, text: string): void {
  out.note(`${iso(systemClock.wallMs()).slice(11, 23)}  ${text}`);
}
