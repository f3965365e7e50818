/**
 * How late the handlers of this process start and how long they run, added up in Redis once a minute and queue, for charts.
 * Only where a leader keeps minutes: `job/minutes.ts`. The jobs of all partitions are added in the first one, because whoever
 * looks adds the partitions up. A worker that dies takes the last minute with it.
 */
import type { EventSource } from '../../job/events.ts';
import { addTime, clear, MINUTE_MS, noTally, type Tally } from '../../job/minutes.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { partitionRef } from '../../redis/keys.ts';
import { addTimes, lookedAt } from '../../redis/read/minutes.ts';

interface Times {
  readonly start: Tally;
  readonly run: Tally;
}

export interface TimekeeperParts {
  readonly redis: Redis;
  readonly namespace: string;
  /** Epoch ms by the clock of Redis. */
  readonly serverMs: () => number;
  readonly events: EventSource;
}

export interface Timekeeper {
  /** Called often; once a minute it adds up. Never fails. */
  readonly pass: () => Promise<void>;
}

/** Before a minute ends, so that its state has what it should. */
const AHEAD_MS = 10_000;
/** A leader that has not looked for so many minutes keeps none. */
const STALE_MINUTES = 5;

export function createTimekeeper({ redis, namespace, serverMs, events }: TimekeeperParts): Timekeeper {
  const byQueue = new Map<string, Times>();
  let minute = minuteOf(serverMs());

  function timesOf(queue: string): Times {
    const known = byQueue.get(queue) ?? { start: noTally(), run: noTally() };
    if (!byQueue.has(queue)) byQueue.set(queue, known);
    return known;
  }

  const ran = ({ queue, tookMs }: { readonly queue: string; readonly tookMs: number }) =>
    addTime(timesOf(queue).run, tookMs);
  events.on('job.started', ({ queue, lateMs }) => addTime(timesOf(queue).start, lateMs));
  for (const name of ['job.completed', 'job.retried', 'job.deferred', 'job.dead', 'job.failed'] as const) {
    events.on(name, ran);
  }

  async function flush(queue: string, { start, run }: Times, now: number): Promise<void> {
    if ([...start.buckets, ...run.buckets].every((count) => count === 0)) return;
    const ref = partitionRef(namespace, { queue, partition: 0, layoutGeneration: 0 });
    const at = await lookedAt(redis, ref);
    if (at === undefined || now - at.minute > STALE_MINUTES) {
      clear(start);
      clear(run);
      return;
    }
    await addTimes(redis, ref, { name: 'start', tally: start, minute: now });
    await addTimes(redis, ref, { name: 'run', tally: run, minute: now });
  }

  return {
    async pass() {
      const now = minuteOf(serverMs());
      if (now === minute) return;
      minute = now;
      // The chart has a gap then.
      await Promise.allSettled([...byQueue].map(([queue, times]) => flush(queue, times, now)));
    },
  };
}

const minuteOf = (ms: number): number => Math.floor((ms + AHEAD_MS) / MINUTE_MS);
