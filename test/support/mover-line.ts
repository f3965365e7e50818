/**
 * Movers under test: one of a partition, driven pass by pass with a clock that only moves when told to, or whole
 * daemons' worth of them with connections of their own.
 */

import { createEmitter } from '../../src/job/events.ts';
import type { Clock } from '../../src/kernel/clock.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import type { Idle } from '../../src/kernel/loop.ts';
import { LeaderPool } from '../../src/mover/leader-pool.ts';
import { Mover, type MoverOptions } from '../../src/mover/promotion/mover.ts';
import { close, openCommands, openSubscriber, type Redis, whenReady } from '../../src/redis/connection/connect.ts';
import type { ServerOf } from '../../src/redis/connection/server-clock.ts';
import { type Line, listen, NAMESPACE } from './worker-line.ts';

const OPTIONS: MoverOptions = {
  leaseMs: 60_000,
  batchMax: 500,
  readyMax: 10_000,
  safetyTickMs: 5000,
};

/** A clock whose monotonic time only `advance` moves; sleeping and timers are real. */
export function handClock(): Clock & { readonly advance: (ms: number) => void } {
  let nowMs = 1_000_000;
  return {
    ...systemClock,
    monotonicMs: () => nowMs,
    advance: (ms) => {
      nowMs += ms;
    },
  };
}

export interface MoverCall extends Partial<MoverOptions> {
  readonly redis?: Redis;
  readonly clock?: Clock;
  readonly processId?: string;
  readonly lingerMs?: number;
  readonly rank?: () => number;
  readonly betterBeatSince?: (sinceMs: number) => Promise<boolean>;
  readonly serverOf?: ServerOf;
}

/** The mover of the test's partition; stopped after the test, not started. */
export function moverOn(line: Line, { redis = line.redis, clock = systemClock, ...call }: MoverCall = {}) {
  const { processId = 'm1', lingerMs, rank = () => 0, betterBeatSince = async () => true, serverOf, ...own } = call;
  const events = createEmitter();
  const mover = new Mover({
    redis,
    ref: line.ref,
    current: () => ({ ...line.ref, lingerMs }),
    processId,
    order: { rank, betterBeatSince: (_key, sinceMs) => betterBeatSince(sinceMs), isOlder: () => false },
    loneWorker: { relay: () => undefined, isPolled: () => false, canHold: () => true },
    windowMs: 600_000,
    ...(serverOf && { serverOf }),
    clock,
    events,
    options: { ...OPTIONS, ...own },
  });
  line.onEnd(() => mover.stop());
  return Object.assign(mover, { heard: listen(events) });
}

/** The movers of one daemon with two connections; stopped after the test, not started. */
export async function daemonOn(
  line: Line,
  id: string,
  own: Partial<MoverOptions> & { readonly lingerMs?: number; readonly beatTtlMs?: number; readonly clock?: Clock } = {},
) {
  const { beatTtlMs = 60_000, clock = systemClock, ...options } = own;
  const input = { redis: { path: line.server.socketPath } };
  const redis = openCommands({ ...input, name: `mover-${id}` });
  const subscriber = openSubscriber({ ...input, name: `nudges-${id}` });
  await Promise.all([whenReady(redis), whenReady(subscriber)]);
  const events = createEmitter();
  const identity = { id, role: 'daemon' as const, host: 'here', pid: 1, startedMs: 0, queues: [] };
  const pool = new LeaderPool({
    redis,
    subscriber,
    namespace: NAMESPACE,
    identity,
    beatTtlMs,
    clock,
    events,
    options: { ...OPTIONS, ...options },
    limits: {
      batch: 500,
      windowMs: 600_000,
      tombstonesMax: 10_000,
      floorMs: 60_000,
      retentionMs: 600_000,
      deadLettersMax: 1000,
    },
  });
  const die = () => {
    close(redis);
    close(subscriber);
  };
  line.onEnd(async () => {
    await pool.stop();
    die();
  });
  return Object.assign(pool, {
    heard: listen(events),
    /** Drops the connections without a word, as SIGKILL would. */
    die,
    redis,
    subscriber,
    leads: (queue = line.queue) => pool.partitions().some(({ ref, leadership }) => ref.queue === queue && leadership),
  });
}

/** Holds the reply to one script until the door opens, or loses it. */
export function slowed(redis: Redis, verb: string, reply: (send: () => Promise<unknown>) => Promise<unknown>): Redis {
  return new Proxy(redis, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (name !== `duestream_${verb}` || typeof value !== 'function') return value;
      return (...parts: unknown[]) => reply(() => Promise.resolve(value.apply(target, parts)));
    },
  });
}

/** How long a service rests after a pass, whether it asked Redis or not. */
export const restOf = (rest: number | Idle): number => (typeof rest === 'number' ? rest : rest.idleMs);
