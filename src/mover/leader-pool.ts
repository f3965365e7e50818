/**
 * The leader pool of a daemon: for each partition of every queue a mover and its chores. It reads the registry for new
 * queues, sends the heartbeat of the daemon, orders the daemons for each partition, and hands the nudges of `K:wake` on.
 */
import type { Emitter } from '../job/events.ts';
import type { Clock } from '../kernel/clock.ts';
import { createLoop, type Loop } from '../kernel/loop.ts';
import { reasonOf } from '../kernel/reason.ts';
import { RHYTHMS, type Rhythm } from '../kernel/rhythm.ts';
import { subscribeAll } from '../redis/channels.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { whileStarting } from '../redis/connection/opening.ts';
import { pauseAfter } from '../redis/connection/outage.ts';
import { createServers, type ServerOf } from '../redis/connection/server-clock.ts';
import { createServerWatch, type ServerWatch } from '../redis/connection/server-watch.ts';
import { controlKeys, type PartitionRef } from '../redis/keys.ts';
import { observe, type SweepLimits } from '../redis/scripts/lease.ts';
import { beat, forget, type Identity, leave, presence } from '../redis/scripts/presence.ts';
import {
  allQueues,
  claimNamespace,
  declareQueue,
  noteVersions,
  partitionsOf,
  type QueueLayout,
} from '../redis/scripts/queues.ts';
import { createVersionWatch, versionsOfAll } from '../redis/versions.ts';
import { createBorrower } from './chores/borrower.ts';
import { createExpirer } from './chores/expirer.ts';
import { createGatekeeper } from './chores/gatekeeper.ts';
import { createJanitor } from './chores/janitor.ts';
import { createRecorder } from './chores/recorder.ts';
import { createRepairer } from './chores/repairer.ts';
import { createSurveyor } from './chores/surveyor.ts';
import { createWeigher } from './chores/weigher.ts';
import { LeaderOrder, type Leadership } from './election/election.ts';
import type { Chore } from './partition-loop.ts';
import { LoneWorker, type NearWorker } from './promotion/lone-worker.ts';
import { Mover, type MoverOptions } from './promotion/mover.ts';
import { Enqueuer } from './schedules/enqueuer.ts';

interface LeaderPoolParts {
  readonly redis: Redis;
  readonly subscriber: Redis;
  readonly namespace: string;
  readonly identity: Identity;
  readonly beatTtlMs: number;
  readonly options: MoverOptions & { readonly lingerMs?: number };
  readonly limits: SweepLimits;
  /** Whether counts and lateness are kept by the minute. Default: no. */
  readonly minutes?: boolean;
  /** Default: that of the profile `default`. */
  readonly rhythm?: Rhythm;
  readonly clock: Clock;
  readonly events: Emitter;
  /** The worker of this process, if there is one. */
  readonly nearWorker?: () => NearWorker | undefined;
}

type Registry = Awaited<ReturnType<typeof allQueues>>;

/** The services of one partition. */
interface Led {
  readonly mover: Mover;
  readonly enqueuer: Enqueuer;
  readonly chores: readonly Pick<Chore, 'start' | 'stop'>[];
}

/** A process that ended without leaving stays listed for so long, for people to see in `workers` that it is missing. */
const FORGET_AFTER_MS = 600_000;

export class LeaderPool {
  readonly #parts: LeaderPoolParts;
  readonly #loop: Loop;
  /** Channel of nudges of the registry. */
  readonly #registryWake: string;
  readonly #server: ServerWatch;
  readonly #removed: RemovedQueues;
  readonly #order: LeaderOrder;
  readonly #loneWorker: LoneWorker;
  readonly #serverOf: ServerOf;
  readonly #watchVersions: ReturnType<typeof createVersionWatch>;
  /** Channel of nudges → the services of its partition. */
  readonly #led = new Map<string, Led>();
  /** Channel of nudges → its partition with the settings of its queue as they are now. */
  readonly #current = new Map<string, PartitionRef>();
  /** Process → monotonic ms since when it has no heartbeat. */
  readonly #missingSince = new Map<string, number>();
  /** Which queues have workers, for their diaries. */
  readonly #watched: ServedQueues;
  #isSubscribed = false;
  /** How many heartbeats there are until the registry is read; a message that something changed makes it none. */
  #beatsLeft = 0;
  /** Monotonic ms since when this process hears no nudges. */
  #deafSinceMs: number | undefined = undefined;
  #starting: Promise<void> | undefined = undefined;
  #stopped: Promise<void> | undefined = undefined;

  constructor(parts: LeaderPoolParts) {
    const { redis, namespace, identity, clock, events, nearWorker = () => undefined } = parts;
    this.#parts = parts;
    this.#loop = createLoop({ who: 'registry', pass: () => this.pass(), clock, events, pauseAfter });
    this.#registryWake = controlKeys(namespace).wake;
    this.#server = createServerWatch({ redis, namespace, who: identity.id, events });
    this.#removed = new RemovedQueues({ redis, namespace });
    this.#order = new LeaderOrder({ redis, namespace, processId: identity.id, clock });
    this.#loneWorker = new LoneWorker(nearWorker);
    this.#serverOf = createServers(redis, clock);
    this.#watchVersions = createVersionWatch(events);
    this.#watched = new ServedQueues(redis);
  }

  /** Repeats its first pass while Redis is away, within the bound of a start or until the signal comes. */
  start(signal?: AbortSignal): Promise<void> {
    this.#starting ??= this.#begin(signal);
    return this.#starting;
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#end();
    return this.#stopped;
  }

  /** Every partition with its leadership, if this process has it. */
  partitions(): readonly { readonly ref: PartitionRef; readonly leadership: Leadership | undefined }[] {
    return this.#movers().map((mover) => ({ ref: this.#currentOf(mover.ref), leadership: mover.leading() }));
  }

  /** The oldest success of the movers of these partitions, monotonic ms. The registry rests for longer than a mover: until then it is on time. */
  lastProgressMs(isAsked: (ref: PartitionRef) => boolean): number {
    const registryMs = this.#loop.lastProgressMs() + this.#parts.beatTtlMs / 3;
    const asked = this.#movers().filter(({ ref }) => isAsked(ref));
    return Math.min(registryMs, ...asked.map((mover) => mover.lastProgressMs()));
  }

  /** The oldest turn of any loop, monotonic ms, with the same patience. */
  lastTurnMs(): number {
    const registryMs = this.#loop.lastTurnMs() + this.#parts.beatTtlMs / 3;
    return Math.min(registryMs, ...this.#movers().map((mover) => mover.lastTurnMs()));
  }

  /** Sends a heartbeat, and when it is time or something has changed looks around: the step of the loop. */
  async pass(): Promise<number> {
    const { redis, namespace, identity, beatTtlMs, rhythm = RHYTHMS.default } = this.#parts;
    const isAnew = (await beat(redis, { namespace, identity, ttlMs: beatTtlMs })) === 'anew';
    await this.#server.look(isAnew);
    if (isAnew || !this.#isSubscribed || this.#beatsLeft <= 0) {
      this.#beatsLeft = rhythm.registryBeats;
      await this.#lookAround().catch((error: unknown) => {
        this.#beatsLeft = 0;
        throw error;
      });
    }
    this.#beatsLeft -= 1;
    return beatTtlMs / 3;
  }

  /** Reads the registry and the membership again. */
  async #lookAround(): Promise<void> {
    const { redis, namespace } = this.#parts;
    await this.#listen();
    const [present, registry] = await Promise.all([presence(redis, namespace), allQueues(redis, namespace)]);
    const { queues } = registry;
    await this.#forgetLost(present.flatMap(({ id, identity }) => (identity ? [] : [id])));
    const living = present.flatMap(({ id, identity }) => (identity ? [{ ...identity, id }] : []));
    this.#loneWorker.see(living);
    await this.#tellVersions(versionsOfAll(living), registry);
    await this.#sayLinger(queues);
    const refs = queues.flatMap((layout) => partitionsOf(namespace, layout));
    const leaders = refs.map(({ keys }) => keys.leader);
    this.#order.see(living, leaders);
    await this.#removed.look(queues);
    for (const ref of refs) await this.#lead(ref);
    await this.#watched.look(present, this.#movers());
    const declared = new Set(refs.map(({ keys }) => keys.wake));
    const gone = [...this.#led.keys()].filter((wake) => !declared.has(wake));
    await Promise.all(gone.map((wake) => this.#letGo(wake)));
  }

  /** A daemon says at its start how long due jobs linger; where nothing says so, the registry was lost since. */
  async #sayLinger(queues: readonly QueueLayout[]): Promise<void> {
    const { redis, namespace, options } = this.#parts;
    const isLost = queues.some(({ lingerDefaultMs }) => lingerDefaultMs === undefined);
    if (options.lingerMs && isLost) await claimNamespace(redis, namespace, options.lingerMs);
  }

  /** Clients and workers read in the registry which versions live; a worker of this process tells it itself. */
  async #tellVersions(living: string, { queues, versions = '' }: Registry): Promise<void> {
    const { redis, namespace, nearWorker } = this.#parts;
    // What cannot be written now is written after the next look: nobody waits for it. A registry without queues stays
    // empty: that is how others see that the data are lost.
    if (queues.length > 0 && living !== versions) await noteVersions(redis, namespace, living).catch(() => undefined);
    if (nearWorker?.() === undefined) this.#watchVersions(living);
  }

  /** The id of a process that was killed would stay in the alive set for ever. */
  async #forgetLost(missing: readonly string[]): Promise<void> {
    const { redis, namespace, clock } = this.#parts;
    const nowMs = clock.monotonicMs();
    for (const id of this.#missingSince.keys()) if (!missing.includes(id)) this.#missingSince.delete(id);
    for (const id of missing) {
      const sinceMs = this.#missingSince.get(id) ?? nowMs;
      this.#missingSince.set(id, sinceMs);
      if (nowMs - sinceMs > FORGET_AFTER_MS) await forget(redis, namespace, id);
    }
  }

  async #lead(ref: PartitionRef): Promise<void> {
    const { wake } = ref.keys;
    this.#current.set(wake, ref);
    if (this.#led.has(wake) || this.#stopped) return;
    const led = this.#servicesOf(ref);
    await this.#subscribe(wake);
    if (this.#stopped) return;
    this.#led.set(wake, led);
    for (const service of [led.mover, ...led.chores]) service.start();
  }

  #servicesOf(ref: PartitionRef): Led {
    const {
      redis,
      namespace,
      identity,
      options,
      limits,
      minutes,
      rhythm = RHYTHMS.default,
      clock,
      events,
    } = this.#parts;
    const current = () => this.#currentOf(ref);
    const mover = new Mover({
      redis,
      ref,
      current,
      processId: identity.id,
      options,
      windowMs: limits.windowMs,
      order: this.#order,
      loneWorker: this.#loneWorker,
      serverOf: this.#serverOf,
      rhythm,
      clock,
      events,
    });
    const duty = {
      redis,
      ref,
      current,
      leading: () => mover.leading(),
      clock,
      events,
      rhythm,
      turns: () => this.#leads(),
    };
    const enqueuer = new Enqueuer({ ...duty, namespace });
    const promoted = () => mover.promoted();
    const janitor = createJanitor({ ...duty, limits, promoted });
    const recorder = createRecorder({ ...duty, namespace, always: minutes === true, serverMs: () => mover.serverMs() });
    return {
      mover,
      enqueuer,
      chores: [
        enqueuer,
        janitor,
        createRepairer({ ...duty, promoted }),
        createWeigher({ ...duty, namespace }),
        createGatekeeper({ ...duty, namespace }),
        createBorrower({ ...duty, namespace }),
        createExpirer({ ...duty, namespace, windowMs: limits.windowMs }),
        createSurveyor(duty),
        recorder,
      ],
    };
  }

  /** A queue that was removed is led no more. If somebody declares it again, it gets a mover again. */
  async #letGo(wake: string): Promise<void> {
    const gone = this.#led.get(wake);
    for (const map of [this.#led, this.#current]) map.delete(wake);
    if (gone) await stopAll(gone);
    await this.#parts.subscriber.sunsubscribe(wake).catch(() => undefined);
  }

  #currentOf(ref: PartitionRef): PartitionRef {
    return this.#current.get(ref.keys.wake) ?? ref;
  }

  #leads(): number {
    return this.#movers().filter((mover) => mover.leading()).length;
  }

  #movers(): readonly Mover[] {
    return [...this.#led.values()].map(({ mover }) => mover);
  }

  /**
   * Nudges are an optimisation: without them (no right to subscribe, no connection) the safety tick finds the jobs. The
   * ping shows a socket that died in silence; its time-out dials again.
   */
  async #listen(): Promise<void> {
    if (this.#isSubscribed) this.#parts.subscriber.ping().catch(() => undefined);
    else await this.#subscribe(this.#registryWake, ...this.#led.keys());
  }

  async #subscribe(...channels: string[]): Promise<void> {
    const { subscriber, events, clock } = this.#parts;
    try {
      await subscribeAll(subscriber, channels);
      if (!this.#isSubscribed) this.#lookForMissed();
      this.#isSubscribed = true;
      if (this.#deafSinceMs !== undefined) {
        events.emit('redis.back', { who: 'nudges', awayMs: Math.round(clock.monotonicMs() - this.#deafSinceMs) });
      }
      this.#deafSinceMs = undefined;
    } catch (error) {
      this.#isSubscribed = false;
      const answered = error instanceof Error && error.name === 'ReplyError';
      if (this.#deafSinceMs === undefined) {
        events.emit('redis.away', { who: 'nudges', why: reasonOf(error), answered });
      }
      this.#deafSinceMs ??= clock.monotonicMs();
    }
  }

  /** Messages that nobody heard: of jobs that came sooner, and of schedules that were put. */
  #lookForMissed(): void {
    for (const { mover, enqueuer } of this.#led.values()) {
      mover.look();
      enqueuer.wake();
    }
  }

  readonly #onMessage = (channel: string, message: string): void => {
    if (channel === this.#registryWake) this.#lookSoon();
    else if (message === 'schedules') this.#led.get(channel)?.enqueuer.wake();
    else this.#led.get(channel)?.mover.nudge(message);
  };

  /** After a reconnect no channel is subscribed any more; once they are, a look finds the jobs of nudges that were missed. */
  readonly #onReady = (): void => {
    this.#isSubscribed = false;
    this.#loop.wake();
  };

  #lookSoon(): void {
    this.#beatsLeft = 0;
    this.#loop.wake();
  }

  /** After a reconnect no service should wait out the pause of its last failure. */
  readonly #wakeAll = (): void => {
    this.#lookSoon();
    for (const mover of this.#movers()) mover.wake();
  };

  async #begin(signal: AbortSignal | undefined): Promise<void> {
    const { subscriber, redis, clock } = this.#parts;
    subscriber.on('smessage', this.#onMessage).on('ready', this.#onReady);
    redis.on('ready', this.#wakeAll);
    await whileStarting('movers', () => this.pass(), { clock, signal });
    if (!this.#stopped) this.#loop.start();
  }

  async #end(): Promise<void> {
    const { subscriber, redis, namespace, identity } = this.#parts;
    await this.#starting?.catch(() => undefined);
    await this.#loop.stop();
    subscriber.off('smessage', this.#onMessage).off('ready', this.#onReady);
    redis.off('ready', this.#wakeAll);
    await Promise.all([...this.#led.values()].map(stopAll));
    await leave(redis, namespace, identity.id).catch(() => undefined);
  }
}

const stopAll = ({ mover, chores }: Led) => Promise.all([mover, ...chores].map((service) => service.stop()));

// Queues that left the registry while this daemon knew them. A process that does not know of the removal may still put
// jobs there: a foreign producer with a plain ZADD, or a call that was on its way. So the daemon goes on looking, once
// per pass of the registry, and declares a queue anew as soon as it has a job. A removed queue that stays empty costs
// one command per partition and look.

/** Most queues that are remembered; the one that was removed first is forgotten first. */
const REMEMBERED_MAX = 100;

interface RemovedQueuesParts {
  readonly redis: Redis;
  readonly namespace: string;
}

class RemovedQueues {
  readonly #parts: RemovedQueuesParts;
  readonly #removed = new Map<string, QueueLayout>();
  #declared: readonly QueueLayout[] = [];

  constructor(parts: RemovedQueuesParts) {
    this.#parts = parts;
  }

  /** `declared`: the queues in the registry now. */
  async look(declared: readonly QueueLayout[]): Promise<void> {
    const { redis, namespace } = this.#parts;
    const removed = this.#removed;
    for (const layout of this.#declared) removed.set(layout.queue, layout);
    for (const { queue } of declared) removed.delete(queue);
    this.#declared = declared;
    for (const queue of [...removed.keys()].slice(0, Math.max(0, removed.size - REMEMBERED_MAX))) removed.delete(queue);
    const all = [...removed.values()];
    // Where a node is down the next look asks again: queues of others are led meanwhile.
    const have = await Promise.all(all.map((layout) => this.#hasJobs(layout).catch(() => false)));
    // The next pass leads it: a call that declares a queue wakes all daemons.
    for (const layout of all.filter((_, at) => have[at])) await declareQueue(redis, { namespace, ...layout });
  }

  async #hasJobs(layout: QueueLayout): Promise<boolean> {
    const { redis, namespace } = this.#parts;
    const refs = partitionsOf(namespace, layout);
    const found = await Promise.all(refs.map(({ keys }) => redis.exists(keys.scheduled)));
    return found.some((count) => count > 0);
  }
}

// Whether a queue has a worker. A leader tells the diaries of its partitions when the last one went, and when one is there
// again, as exactly as a look at the heartbeats is: a worker that comes or leaves in an orderly way is a message, and one that
// was killed is missed when its last heartbeat has run out.

type Present = Awaited<ReturnType<typeof presence>>;

class ServedQueues {
  readonly #redis: Redis;
  /** The processes of the last look that lived. */
  #lived: ReadonlyMap<string, Identity> = new Map();
  /** Term and queue state that was told last, by the channel of its partition. */
  readonly #told = new Map<string, string>();

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async look(present: Present, movers: readonly Pick<Mover, 'ref' | 'leading'>[]): Promise<void> {
    const silent = present.flatMap(({ id, identity }) => (identity ? [] : (this.#lived.get(id) ?? [])));
    this.#lived = new Map(present.flatMap(({ id, identity }) => (identity ? [[id, identity] as const] : [])));
    const living = [...this.#lived.values()];
    for (const { ref, leading } of movers.map((mover) => ({ ref: mover.ref, leading: mover.leading() }))) {
      if (!leading) continue;
      const { term } = leading;
      const isServedBy = ({ role, queues }: Identity) => role !== 'daemon' && queues.includes(ref.queue);
      const state = living.some(isServedBy) ? 'served' : 'unserved';
      const { wake } = ref.keys;
      if (this.#told.get(wake) === `${term} ${state}`) continue;
      // Its last sign of life is older than a heartbeat is valid.
      const agoMs = Math.min(...silent.filter(isServedBy).map(({ beatTtlMs = 0 }) => beatTtlMs));
      const of = { term, state, agoMs: Number.isFinite(agoMs) ? agoMs : 0 } as const;
      // What cannot be told now is told after the next look.
      const told = await observe(this.#redis, ref, of).catch(() => undefined);
      if (told === 'ok' || told === 'same') this.#told.set(wake, `${term} ${state}`);
    }
  }
}
