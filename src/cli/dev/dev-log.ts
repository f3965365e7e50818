/** What happens in `dev`, one readable line each, on stderr: the events of jobs, and what handlers log. */
import { systemClock } from '../../core/clock.ts';
import type { EventSource } from '../../core/events.ts';
import type { Log } from '../../core/log.ts';
import type { Output } from '../terminal/output.ts';
import { counted, json, line } from '../terminal/text.ts';
import { iso, span } from '../terminal/when.ts';

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
  const hinted = new Map<string, number>();

  /** A job that is ready looks like one that runs, until somebody says that nobody will run it. */
  async function hint(queue: string): Promise<void> {
    const nowMs = systemClock.monotonicMs();
    if (nowMs - (hinted.get(queue) ?? Number.NEGATIVE_INFINITY) < HINT_EVERY_MS) return;
    hinted.set(queue, nowMs);
    if (await isServed(queue)) hinted.delete(queue);
    else say(out, line`${queue}  no worker serves it: start one with "duestream worker <module>"`);
  }

  events.on('jobs.promoted', ({ queue, count, deadLetters }) => {
    if (count > 0) {
      say(out, line`${queue}  ${count} due, ready for a worker`);
      // Without an answer nobody knows; the outage has lines of its own.
      hint(queue).catch(() => undefined);
    }
    if (deadLetters > 0)
      say(
        out,
        line`${queue}  ${counted(deadLetters, 'dead letter')} of members that cannot be jobs; see "duestream dead ls ${queue}"`,
      );
  });
  events.on('job.started', ({ queue, id, name, attempt, lateMs }) =>
    say(out, line`${queue}  ${id}  ${name} started, attempt ${attempt}, ${span(lateMs)} after its due time`),
  );
  events.on('job.completed', ({ queue, id, tookMs }) => say(out, line`${queue}  ${id}  done in ${span(tookMs)}`));
  events.on('job.retried', ({ queue, id, delayMs, error }) =>
    say(out, line`${queue}  ${id}  failed, again in ${span(delayMs)}: ${error.message}`),
  );
  events.on('job.deferred', ({ queue, id, delayMs }) =>
    say(out, line`${queue}  ${id}  put aside for ${span(delayMs)}`),
  );
  events.on('job.dead', ({ queue, id, reason, error }) =>
    say(out, line`${queue}  ${id}  dead (${reason}): ${error.message}`),
  );
  events.on('job.cancelled', ({ queue, id }) => say(out, line`${queue}  ${id}  cancelled`));
  events.on('redis.away', ({ why, answered }) =>
    say(out, answered ? line`Redis refuses: ${why}` : line`Redis is away: ${why}`),
  );
  events.on('redis.changed', ({ before, runId, empty }) =>
    say(out, empty || before === runId ? 'Redis has lost all keys of this namespace' : 'another Redis server answers'),
  );
  events.on('redis.back', () => say(out, 'Redis is back'));
}

const HINT_EVERY_MS = 10_000;

function say(out: Output, text: string): void {
  out.note(`${iso(systemClock.wallMs()).slice(11, 23)}  ${text}`);
}
