/**
 * All movers of one process: a mover, an enqueuer of schedules, a janitor and a repairer per partition of every declared queue. Watches the
 * registry for new queues, ranks itself among the living daemons, and hands the nudges of every `K:wake` to the right
 * mover.
 */
import type { Clock } from '../core/clock.ts';
import { messageOf } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import { createLoop } from '../core/loop.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { pauseAfter } from '../redis/connection/outage.ts';
import { createServerWatch } from '../redis/connection/server-watch.ts';
import { controlKeys, type PartitionRef } from '../redis/keys.ts';
import type { SweepLimits } from '../redis/transitions/lease.ts';
import { beat, forget, type Identity, leave, presence } from '../redis/transitions/presence.ts';
import { listQueues, partitionsOf } from '../redis/transitions/queues.ts';
import type { Leadership } from './election.ts';
import { createEnqueuer, type Enqueuer } from './enqueuer.ts';
import { createJanitor, type Janitor } from './janitor.ts';
import { createMover, type Mover, type MoverOptions } from './mover.ts';
import { createRanks } from './ranks.ts';
import { createRemoved } from './removed.ts';
import { createRepairer, type Repairer } from './repairer.ts';

export interface MoversParts {
  readonly redis: Redis;
  readonly subscriber: Redis;
  readonly namespace: string;
  readonly identity: Identity;
  readonly beatTtlMs: number;
  readonly options: MoverOptions;
  readonly limits: SweepLimits;
  readonly clock: Clock;
  readonly events: Emitter;
}

export interface Movers {
  readonly start: () => Promise<void>;
  readonly stop: () => Promise<void>;
  /** Every partition with its leadership, if this process has it. */
  readonly partitions: () => readonly { readonly ref: PartitionRef; readonly leadership: Leadership | undefined }[];
  /** The oldest success of any mover, monotonic ms. */
  readonly lastProgressMs: () => number;
  /** The oldest turn of any loop, monotonic ms. */
  readonly lastTurnMs: () => number;
  /** Reads the registry and the membership again: the step of the loop. */
  readonly pass: () => Promise<number>;
}

/** Who works for one partition. */
interface Led {
  readonly mover: Mover;
  readonly enqueuer: Enqueuer;
  readonly chores: readonly (Enqueuer | Janitor | Repairer)[];
}

/** Long enough for people to see in `workers` that somebody is missing. */
const FORGET_AFTER_MS = 600_000;

export function createMovers(parts: MoversParts): Movers {
  const { redis, subscriber, namespace, identity, beatTtlMs, options, limits, clock, events } = parts;
  const control = controlKeys(namespace);
  const server = createServerWatch({ redis, namespace, who: identity.id, events });
  const removed = createRemoved({ redis, namespace });
  const byWake = new Map<string, Led>();
  const ranks = createRanks({ redis, namespace, processId: identity.id, clock });
  const missingSince = new Map<string, number>();
  let subscribed = false;
  let deaf: { readonly sinceMs: number } | undefined;
  let starting: Promise<void> | undefined;
  let stopped: Promise<void> | undefined;

  async function pass(): Promise<number> {
    await listen();
    await server.look((await beat(redis, { namespace, identity, ttlMs: beatTtlMs })) === 'anew');
    const [present, queues] = await Promise.all([presence(redis, namespace), listQueues(redis, namespace)]);
    await forgetLost(present.filter((one) => !one.identity).map((one) => one.id));
    ranks.see(present.flatMap(({ id, identity }) => (identity?.role === 'daemon' ? [{ ...identity, id }] : [])));
    await removed.look(queues);
    const refs = queues.flatMap((layout) => partitionsOf(namespace, layout));
    for (const ref of refs) await lead(ref);
    const declared = new Set(refs.map(({ keys }) => keys.wake));
    await Promise.all([...byWake.keys()].filter((wake) => !declared.has(wake)).map(letGo));
    return beatTtlMs / 3;
  }

  /** Ids of killed processes would stay in the alive set for ever. What a dead worker left is found by its consumer. */
  async function forgetLost(missing: readonly string[]): Promise<void> {
    const nowMs = clock.monotonicMs();
    for (const id of missingSince.keys()) if (!missing.includes(id)) missingSince.delete(id);
    for (const id of missing) {
      const sinceMs = missingSince.get(id) ?? nowMs;
      missingSince.set(id, sinceMs);
      if (nowMs - sinceMs > FORGET_AFTER_MS) await forget(redis, namespace, id);
    }
  }

  async function lead(ref: PartitionRef): Promise<void> {
    if (byWake.has(ref.keys.wake) || stopped) return;
    const key = ref.keys.leader;
    const standing = {
      rank: () => ranks.betterFor(key).length,
      betterBeatSince: (sinceMs: number) => ranks.betterBeatSince(key, sinceMs),
    };
    const mover = createMover({ redis, ref, processId: identity.id, options, clock, events, ...standing });
    const duty = { redis, ref, leading: mover.leading, clock, events };
    const enqueuer = createEnqueuer({ ...duty, namespace });
    const chores = [enqueuer, createJanitor({ ...duty, limits }), createRepairer(duty)];
    await subscribe(ref.keys.wake);
    if (stopped) return;
    byWake.set(ref.keys.wake, { mover, enqueuer, chores });
    for (const service of [mover, ...chores]) service.start();
  }

  /** A queue that was removed is led no more. If it is declared again, it gets a mover of its own again. */
  async function letGo(wake: string): Promise<void> {
    const gone = byWake.get(wake);
    byWake.delete(wake);
    if (gone) await stopAll(gone);
    await subscriber.sunsubscribe(wake).catch(() => undefined);
  }

  function onMessage(channel: string, message: string): void {
    if (channel === control.wake) loop.wake();
    else if (message === 'schedules') byWake.get(channel)?.enqueuer.wake();
    else byWake.get(channel)?.mover.nudge(message);
  }

  /**
   * Nudges are an optimisation: without them (no right to subscribe, no connection) the safety tick finds the jobs. The
   * ping shows a socket that died in silence; its time-out dials again.
   */
  async function listen(): Promise<void> {
    if (subscribed) subscriber.ping().catch(() => undefined);
    else await subscribe(control.wake, ...byWake.keys());
  }

  async function subscribe(...channels: string[]): Promise<void> {
    try {
      await subscriber.ssubscribe(...channels);
      subscribed = true;
      if (deaf) events.emit('redis.back', { who: 'nudges', awayMs: Math.round(clock.monotonicMs() - deaf.sinceMs) });
      deaf = undefined;
    } catch (error) {
      subscribed = false;
      const answered = error instanceof Error && error.name === 'ReplyError';
      if (!deaf) events.emit('redis.away', { who: 'nudges', why: messageOf(error), answered });
      deaf ??= { sinceMs: clock.monotonicMs() };
    }
  }

  /** After a reconnect nothing is subscribed any more; what was missed meanwhile the safety tick finds. */
  function onReady(): void {
    subscribed = false;
    loop.wake();
  }

  async function begin(): Promise<void> {
    subscriber.on('smessage', onMessage).on('ready', onReady);
    redis.on('ready', wakeAll);
    await pass();
    if (!stopped) loop.start();
  }

  async function end(): Promise<void> {
    await starting?.catch(() => undefined);
    await loop.stop();
    subscriber.off('smessage', onMessage).off('ready', onReady);
    redis.off('ready', wakeAll);
    await Promise.all([...byWake.values()].map(stopAll));
    await leave(redis, namespace, identity.id).catch(() => undefined);
  }

  const stopAll = ({ mover, chores }: Led) => Promise.all([mover, ...chores].map((service) => service.stop()));

  /** After a reconnect nobody should wait out the pause of its last failure. */
  function wakeAll(): void {
    loop.wake();
    for (const { mover } of byWake.values()) mover.wake();
  }

  const loop = createLoop({ who: 'registry', pass, clock, events, pauseAfter });
  return {
    start() {
      starting ??= begin();
      return starting;
    },
    stop() {
      stopped ??= end();
      return stopped;
    },
    partitions: () => [...byWake.values()].map(({ mover }) => ({ ref: mover.ref, leadership: mover.leading() })),
    // The registry rests for longer than a mover: until its next pass is due, it is on time.
    lastProgressMs: () =>
      Math.min(
        loop.lastProgressMs() + beatTtlMs / 3,
        ...[...byWake.values()].map(({ mover }) => mover.lastProgressMs()),
      ),
    lastTurnMs: () => Math.min(loop.lastTurnMs(), ...[...byWake.values()].map(({ mover }) => mover.lastTurnMs())),
    pass,
  };
}
