/**
 * All movers of one process: for each partition of every queue a mover, an enqueuer, a janitor, a repairer, a weigher and, if
 * asked, a recorder. Watches the registry for new queues, ranks itself among the daemons, and hands the nudges of `K:wake` on.
 */

import type { Emitter } from '../job/events.ts';
import type { Clock } from '../kernel/clock.ts';
import { createLoop, type Loop } from '../kernel/loop.ts';
import { reasonOf } from '../kernel/reason.ts';
import { isCluster } from '../redis/connection/cluster/members.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { pauseAfter } from '../redis/connection/outage.ts';
import { createServerWatch, type ServerWatch } from '../redis/connection/server-watch.ts';
import { whileStarting } from '../redis/connection/starting.ts';
import { controlKeys, type PartitionRef } from '../redis/keys.ts';
import type { SweepLimits } from '../redis/scripts/lease.ts';
import { beat, type Identity, leave, presence } from '../redis/scripts/presence.ts';
import { listQueues, partitionsOf } from '../redis/scripts/queues.ts';
import { forgetLost } from './chores/forget-lost.ts';
import { createJanitor } from './chores/janitor.ts';
import { createRecorder } from './chores/recorder.ts';
import { createRemoved, type Removed } from './chores/removed-queues.ts';
import { createRepairer } from './chores/repairer.ts';
import { createWeigher } from './chores/weigher.ts';
import type { Leadership } from './election/election.ts';
import { createRanks, type Ranks } from './election/leader-order.ts';
import { createLoneWorker, type LoneWorker, type NearWorker } from './promotion/lone-worker.ts';
import { createMover, type Mover } from './promotion/mover.ts';
import type { MoverOptions } from './promotion/moving.ts';
import { createEnqueuer, type Enqueuer } from './schedules/enqueuer.ts';

export interface MoversParts {
  readonly redis: Redis;
  readonly subscriber: Redis;
  readonly namespace: string;
  readonly identity: Identity;
  readonly beatTtlMs: number;
  readonly options: MoverOptions;
  readonly limits: SweepLimits;
  /** Whether counts and lateness are kept by the minute. Default: no. */
  readonly minutes?: boolean;
  readonly clock: Clock;
  readonly events: Emitter;
  /** The worker of this process, if there is one. */
  readonly nearWorker?: () => NearWorker | undefined;
}

export interface Movers {
  /** Repeats its first pass while Redis is away, within the bound of a start or until the signal comes. */
  readonly start: (signal?: AbortSignal) => Promise<void>;
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
  readonly chores: readonly Pick<Loop, 'start' | 'stop'>[];
}

interface Registry extends MoversParts {
  readonly server: ServerWatch;
  readonly removed: Removed;
  readonly ranks: Ranks;
  readonly loneWorker: LoneWorker;
  /** Channel of nudges → who works for its partition. */
  readonly byWake: Map<string, Led>;
  /** Channel of nudges → its partition with the settings of its queue as they are now. */
  readonly current: Map<string, PartitionRef>;
  /** Process → monotonic ms since when it has no heartbeat. */
  readonly missingSince: Map<string, number>;
  subscribed: boolean;
  deaf: { readonly sinceMs: number } | undefined;
  starting: Promise<void> | undefined;
  stopped: Promise<void> | undefined;
}

interface Listeners {
  readonly onMessage: (channel: string, message: string) => void;
  readonly onReady: () => void;
  readonly wakeAll: () => void;
}

export function createMovers(parts: MoversParts): Movers {
  const { redis, namespace, identity, beatTtlMs, clock, events, nearWorker = () => undefined } = parts;
  const registry: Registry = {
    ...parts,
    server: createServerWatch({ redis, namespace, who: identity.id, events }),
    removed: createRemoved({ redis, namespace }),
    ranks: createRanks({ redis, namespace, processId: identity.id, clock }),
    loneWorker: createLoneWorker(nearWorker),
    byWake: new Map(),
    current: new Map(),
    missingSince: new Map(),
    subscribed: false,
    deaf: undefined,
    starting: undefined,
    stopped: undefined,
  };
  const run = () => pass(registry);
  const loop = createLoop({ who: 'registry', pass: run, clock, events, pauseAfter });
  const listeners = listenersOf(registry, loop.wake);
  const movers = () => [...registry.byWake.values()].map(({ mover }) => mover);
  return {
    start(signal) {
      registry.starting ??= begin(registry, listeners, { loop, signal });
      return registry.starting;
    },
    stop() {
      registry.stopped ??= end(registry, listeners, loop);
      return registry.stopped;
    },
    partitions: () =>
      movers().map(({ ref, leading }) => ({
        ref: registry.current.get(ref.keys.wake) ?? ref,
        leadership: leading(),
      })),
    // The registry rests for longer than a mover: until its next pass is due, it is on time.
    lastProgressMs: () =>
      Math.min(loop.lastProgressMs() + beatTtlMs / 3, ...movers().map(({ lastProgressMs }) => lastProgressMs())),
    lastTurnMs: () => Math.min(loop.lastTurnMs(), ...movers().map(({ lastTurnMs }) => lastTurnMs())),
    pass: run,
  };
}

function listenersOf(registry: Registry, wake: () => void): Listeners {
  const { byWake, namespace } = registry;
  const control = controlKeys(namespace);
  return {
    onMessage(channel, message) {
      if (channel === control.wake) wake();
      else if (message === 'schedules') byWake.get(channel)?.enqueuer.wake();
      else byWake.get(channel)?.mover.nudge(message);
    },
    /** After a reconnect nothing is subscribed any more; what was missed meanwhile the safety tick finds. */
    onReady() {
      registry.subscribed = false;
      wake();
    },
    /** After a reconnect nobody should wait out the pause of its last failure. */
    wakeAll() {
      wake();
      for (const { mover } of byWake.values()) mover.wake();
    },
  };
}

async function pass(registry: Registry): Promise<number> {
  const { server, redis, namespace, identity, beatTtlMs, ranks, loneWorker, removed, byWake } = registry;
  await listen(registry);
  await server.look((await beat(redis, { namespace, identity, ttlMs: beatTtlMs })) === 'anew');
  const [present, queues] = await Promise.all([presence(redis, namespace), listQueues(redis, namespace)]);
  const missing = present.flatMap(({ id, identity }) => (identity ? [] : [id]));
  await forgetLost(registry, missing);
  const living = present.flatMap(({ id, identity }) => (identity ? [{ ...identity, id }] : []));
  loneWorker.see(living);
  const refs = queues.flatMap((layout) => partitionsOf(namespace, layout));
  const leaders = refs.map(({ keys }) => keys.leader);
  ranks.see(living, leaders);
  await removed.look(queues);
  for (const ref of refs) await lead(registry, ref);
  const declared = new Set(refs.map(({ keys }) => keys.wake));
  await Promise.all([...byWake.keys()].filter((wake) => !declared.has(wake)).map((wake) => letGo(registry, wake)));
  return beatTtlMs / 3;
}

async function lead(registry: Registry, ref: PartitionRef): Promise<void> {
  const { byWake, ranks, redis, identity, options, clock, events, namespace, limits, current, minutes } = registry;
  current.set(ref.keys.wake, ref);
  if (byWake.has(ref.keys.wake) || registry.stopped) return;
  const key = ref.keys.leader;
  const standing = {
    rank: () => ranks.betterFor(key).length,
    betterBeatSince: (sinceMs: number) => ranks.betterBeatSince(key, sinceMs),
    relay: registry.loneWorker.relay,
    current: () => current.get(ref.keys.wake) ?? ref,
    windowMs: limits.windowMs,
  };
  const mover = createMover({ redis, ref, processId: identity.id, options, clock, events, ...standing });
  const duty = { redis, ref, current: standing.current, leading: mover.leading, clock, events };
  const enqueuer = createEnqueuer({ ...duty, namespace });
  const janitor = createJanitor({ ...duty, limits, promoted: mover.promoted });
  const recorders = minutes ? [createRecorder({ ...duty, serverMs: mover.serverMs })] : [];
  const chores = [enqueuer, janitor, createRepairer(duty), createWeigher(duty), ...recorders];
  await subscribe(registry, ref.keys.wake);
  if (registry.stopped) return;
  byWake.set(ref.keys.wake, { mover, enqueuer, chores });
  for (const service of [mover, ...chores]) service.start();
}

/** A queue that was removed is led no more. If it is declared again, it gets a mover of its own again. */
async function letGo(registry: Registry, wake: string): Promise<void> {
  const { byWake, current, subscriber } = registry;
  const gone = byWake.get(wake);
  for (const map of [byWake, current]) map.delete(wake);
  if (gone) await stopAll(gone);
  await subscriber.sunsubscribe(wake).catch(() => undefined);
}

/**
 * Nudges are an optimisation: without them (no right to subscribe, no connection) the safety tick finds the jobs. The
 * ping shows a socket that died in silence; its time-out dials again.
 */
async function listen(registry: Registry): Promise<void> {
  const { subscriber, namespace, byWake } = registry;
  if (registry.subscribed) subscriber.ping().catch(() => undefined);
  else await subscribe(registry, controlKeys(namespace).wake, ...byWake.keys());
}

async function subscribe(registry: Registry, ...channels: string[]): Promise<void> {
  const { subscriber, events, clock } = registry;
  try {
    await subscribeAll(subscriber, channels);
    registry.subscribed = true;
    if (registry.deaf)
      events.emit('redis.back', { who: 'nudges', awayMs: Math.round(clock.monotonicMs() - registry.deaf.sinceMs) });
    registry.deaf = undefined;
  } catch (error) {
    registry.subscribed = false;
    const answered = error instanceof Error && error.name === 'ReplyError';
    if (!registry.deaf) events.emit('redis.away', { who: 'nudges', why: reasonOf(error), answered });
    registry.deaf ??= { sinceMs: clock.monotonicMs() };
  }
}

/** One command, or in a cluster one for each channel: each is in the slot of its partition. */
async function subscribeAll(subscriber: Redis, channels: readonly string[]): Promise<void> {
  const calls = isCluster(subscriber) ? channels.map((channel) => [channel]) : [channels];
  await Promise.all(calls.map((some) => subscriber.ssubscribe(...some)));
}

async function begin(
  registry: Registry,
  { onMessage, onReady, wakeAll }: Listeners,
  { loop, signal }: { readonly loop: Loop; readonly signal: AbortSignal | undefined },
): Promise<void> {
  const { subscriber, redis, clock } = registry;
  subscriber.on('smessage', onMessage).on('ready', onReady);
  redis.on('ready', wakeAll);
  await whileStarting('movers', () => pass(registry), { clock, signal });
  if (!registry.stopped) loop.start();
}

async function end(registry: Registry, { onMessage, onReady, wakeAll }: Listeners, loop: Loop): Promise<void> {
  const { subscriber, redis, byWake, namespace, identity } = registry;
  await registry.starting?.catch(() => undefined);
  await loop.stop();
  subscriber.off('smessage', onMessage).off('ready', onReady);
  redis.off('ready', wakeAll);
  await Promise.all([...byWake.values()].map(stopAll));
  await leave(redis, namespace, identity.id).catch(() => undefined);
}

const stopAll = ({ mover, chores }: Led) => Promise.all([mover, ...chores].map((service) => service.stop()));
