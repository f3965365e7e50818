/**
 * Says "I live" into the control slot, and remembers when a beat last succeeded, and since when all have in time: a
 * watcher whose own writes fail or wait must not judge others, whose writes may wait still. With one of several beats it
 * looks around, and takes a sample of the server's clock.
 */

import type { Emitter } from '../../job/events.ts';
import type { Clock } from '../../kernel/clock.ts';
import { createLoop } from '../../kernel/loop.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { pauseAfter } from '../../redis/connection/outage.ts';
import type { ServerClock } from '../../redis/connection/server-clock.ts';
import { createServerWatch } from '../../redis/connection/server-watch.ts';
import { beat, beatAndHear, type Identity, leave, type WorkerPause } from '../../redis/scripts/presence.ts';

export interface HeartbeatParts {
  readonly redis: Redis;
  readonly namespace: string;
  readonly identity: Identity;
  readonly beatTtlMs: number;
  readonly server: ServerClock;
  /** Called after each beat. */
  readonly onBeat: () => Promise<unknown>;
  /** Called after one of so many beats, and after one that found its key gone. Default: after each. */
  readonly lookBeats?: number;
  /** A queue that was removed, or lost with everything else, has to be declared again. */
  readonly onLook?: () => Promise<unknown>;
  /** Of a worker: it was paused, or with undefined goes on. */
  readonly onPause?: (pause: WorkerPause | undefined) => void;
  readonly clock: Clock;
  readonly events: Emitter;
}

export interface Heartbeat {
  /** Sends the first beat and goes on. */
  readonly start: () => Promise<void>;
  readonly stop: () => Promise<void>;
  /** After a reconnect: go on at once. */
  readonly wake: () => void;
  readonly leave: () => Promise<void>;
  readonly pass: () => Promise<number>;
  /** Monotonic ms of the last beat that Redis confirmed. */
  readonly lastProgressMs: () => number;
  readonly lastTurnMs: () => number;
  /** Monotonic ms since which no pass has failed or come late; infinite while they fail. */
  readonly steadySinceMs: () => number;
}

export function createHeartbeat(parts: HeartbeatParts): Heartbeat {
  const { redis, namespace, identity, beatTtlMs, server, onBeat, lookBeats = 1, onLook, clock, events } = parts;
  const watch = createServerWatch({ redis, namespace, who: identity.id, events });
  let steadySinceMs = Number.POSITIVE_INFINITY;
  let beatenMs = clock.monotonicMs();
  /** How many beats there are until the next look. */
  let beatsLeft = 0;
  const beatOnce = beating(parts);

  async function pass(): Promise<number> {
    const anew = await beatOnce();
    await watch.look(anew);
    if (anew || beatsLeft <= 0) await look();
    beatsLeft -= 1;
    await onBeat();
    const nowMs = clock.monotonicMs();
    // A short outage fails nothing: the beat waits for the new connection, as those of all others do.
    const isLate = nowMs - beatenMs > (beatTtlMs * 2) / 3;
    steadySinceMs = isLate ? nowMs : Math.min(steadySinceMs, nowMs);
    beatenMs = nowMs;
    return beatTtlMs / 3;
  }

  async function look(): Promise<void> {
    beatsLeft = lookBeats;
    try {
      // First, because the look compares the clocks.
      await server.sample();
      await onLook?.();
    } catch (error) {
      beatsLeft = 0;
      throw error;
    }
  }

  const loop = createLoop({
    who: `heartbeat of ${identity.id}`,
    pass,
    clock,
    events,
    // Never longer than usual: what fails may come after the beat, and others must not miss that meanwhile.
    pauseAfter: (...failed) => Math.min(beatTtlMs / 3, pauseAfter(...failed)),
    onError() {
      steadySinceMs = Number.POSITIVE_INFINITY;
    },
  });
  return {
    async start() {
      await pass();
      loop.start();
    },
    stop: loop.stop,
    wake() {
      beatsLeft = 0;
      loop.wake();
    },
    leave: () => leave(redis, namespace, identity.id).catch(() => undefined),
    pass,
    lastProgressMs: loop.lastProgressMs,
    lastTurnMs: loop.lastTurnMs,
    steadySinceMs: () => steadySinceMs,
  };
}

/** One beat each time it is called. It says whether its key was gone. */
function beating({ redis, namespace, identity, beatTtlMs: ttlMs, onPause }: HeartbeatParts): () => Promise<boolean> {
  if (!onPause) return async () => (await beat(redis, { namespace, identity, ttlMs })) === 'anew';
  /** As it was heard last. A key that is made anew has it again. */
  let paused: WorkerPause | undefined;
  return async () => {
    const own = paused === undefined ? identity : { ...identity, paused };
    const heard = await beatAndHear(redis, { namespace, identity: own, ttlMs });
    const isOther = (heard.paused === undefined) !== (paused === undefined);
    paused = heard.paused;
    if (isOther) onPause(paused);
    return heard.isAnew;
  };
}
