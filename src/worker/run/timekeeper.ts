/**
 * How late the handlers of this process start, why, and how long they run, added up in Redis once a minute and queue.
 * Only where a leader keeps minutes: `job/minutes.ts`. The jobs of all partitions are added in the first one, because whoever
 * looks adds the partitions up. A worker that dies takes the last minute with it.
 */
import type { EventSource } from '../../job/events.ts';
import { addTime, clear, MINUTE_MS, noTally, type Tally } from '../../job/minutes.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { type PartitionRef, partitionRef } from '../../redis/keys.ts';
import { addCauses } from '../../redis/read/causes.ts';
import { addKept, addTimes, type KeptTally, lookedAt } from '../../redis/read/minutes.ts';
import type { CauseBook } from './cause-book.ts';

interface Times {
  readonly start: Tally;
  readonly run: Tally;
  /** By what is promised of the queue; undefined: nothing. */
  promise: KeptTally | undefined;
}

export interface TimekeeperParts {
  readonly redis: Redis;
  readonly namespace: string;
  /** Epoch ms by the clock of Redis. */
  readonly serverMs: () => number;
  readonly events: EventSource;
  /** Why jobs were late. */
  readonly causes: CauseBook;
  /** Within which time jobs of a queue are promised to start; undefined: nothing is promised. */
  readonly withinMs: (queue: string) => number | undefined;
}

export interface Timekeeper {
  /** Called often; once a minute it adds up. Never fails. */
  readonly pass: () => Promise<void>;
}

/** Before a minute ends, so that its state has what it should. */
const AHEAD_MS = 10_000;
/** A leader that has not looked for so many minutes keeps none. */
const STALE_MINUTES = 5;

export function createTimekeeper(parts: TimekeeperParts): Timekeeper {
  const { redis, namespace, serverMs, events, causes, withinMs } = parts;
  const byQueue = new Map<string, Times>();
  let minute = minuteOf(serverMs());

  function timesOf(queue: string): Times {
    const known = byQueue.get(queue);
    if (known) return known;
    const times = { start: noTally(), run: noTally(), promise: newPromise(queue) };
    byQueue.set(queue, times);
    return times;
  }

  function newPromise(queue: string): KeptTally | undefined {
    const within = withinMs(queue);
    return within === undefined ? undefined : { withinMs: within, kept: 0, late: 0 };
  }

  const ran = ({ queue, tookMs }: { readonly queue: string; readonly tookMs: number }) =>
    addTime(timesOf(queue).run, tookMs);
  events.on('job.started', ({ queue, lateMs }) => {
    const { start, promise } = timesOf(queue);
    addTime(start, lateMs);
    if (promise && lateMs > promise.withinMs) promise.late += 1;
    else if (promise) promise.kept += 1;
  });
  // Those that are dropped are counted in Redis.
  events.on('job.expired', ({ queue, dead }) => {
    const { promise } = timesOf(queue);
    if (promise && dead) promise.late += 1;
  });
  for (const name of ['job.completed', 'job.retried', 'job.deferred', 'job.dead', 'job.failed'] as const) {
    events.on(name, ran);
  }

  /** What was counted under one promise is added before another one counts. */
  async function flushPromise(queue: string, times: Times, first: PartitionRef): Promise<void> {
    if (times.promise) await addKept(redis, first.keys, times.promise);
    if (times.promise?.withinMs !== withinMs(queue)) times.promise = newPromise(queue);
  }

  async function flush(queue: string, times: Times, now: number): Promise<void> {
    const { start, run } = times;
    const ref = partitionRef(namespace, { queue, partition: 0, layoutGeneration: 0 });
    await flushPromise(queue, times, ref);
    if ([...start.buckets, ...run.buckets].every((count) => count === 0)) return;
    const minutes = await causes.take(queue, serverMs());
    const at = await lookedAt(redis, ref);
    if (at === undefined || now - at.minute > STALE_MINUTES) {
      clear(start);
      clear(run);
      return;
    }
    await addTimes(redis, ref, { name: 'start', tally: start, minute: now });
    await addTimes(redis, ref, { name: 'run', tally: run, minute: now });
    for (const [minute, sums] of minutes) await addCauses(redis, ref, { minute, sums, nowMs: serverMs() });
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
