/**
 * One queue of a worker: its slots, its fetcher, and what looks after its jobs. It has a blocking connection of its own;
 * commands, heartbeat, the clock of the server and the extension of leases belong to the worker, for all its queues.
 *
 *  fetcher ─▶ round trips ─▶ starter ─▶ executor ─▶ acknowledger      each knows those behind it, and what is in flight
 *                  ▲ adopter, reclaimer ─▶ ┘                  │
 *                  └──── what is over: the next trip ─────────┘      the only way back (`NextTrip`)
 */

import type { Emitter } from '../job/events.ts';
import { createAbort } from '../kernel/abort.ts';
import { Channels } from '../redis/channels.ts';
import { timeoutOf } from '../redis/connection/call-end.ts';
import { isCluster } from '../redis/connection/cluster/members.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { isFull } from '../redis/connection/memory.ts';
import type { ServerOf } from '../redis/connection/server-clock.ts';
import { controlKeys, type PartitionRef } from '../redis/keys.ts';
import { READ_BYTES_MAX } from '../redis/scripts/bytes.ts';
import { createJobs, type Jobs } from '../redis/scripts/jobs.ts';
import type { LeadersPass, Passed } from '../redis/scripts/passes.ts';
import { createAssignment, createServedPartitions, type ServedPartitions } from './fetch/assignment.ts';
import { PollingFetcher, paceOf } from './fetch/polling-fetcher.ts';
import { RoundTrips } from './fetch/round-trips.ts';
import { StreamFetcher } from './fetch/stream-fetcher.ts';
import type { Settings, Work } from './options.ts';
import { createAdopter } from './recover/adopter.ts';
import { createHandover, type Handover } from './recover/handover.ts';
import type { Heartbeat } from './recover/heartbeat.ts';
import { createReclaimer } from './recover/reclaimer.ts';
import { Acknowledger, type NextTrip } from './run/acknowledgement.ts';
import type { CauseBook } from './run/cause-book.ts';
import { Executor } from './run/execution.ts';
import { Gathering } from './run/gathering.ts';
import type { HandlerCalls } from './run/handlers.ts';
import { Holds } from './run/holds.ts';
import { abort, InFlight, LostSlots } from './run/in-flight.ts';
import type { HandleChain } from './run/middleware.ts';
import { Starter } from './run/starter.ts';
import { StopOrders } from './run/stop-orders.ts';

interface ServedQueueParts {
  readonly work: Work;
  readonly settings: Settings;
  readonly commands: Redis;
  /** A connection that waits in reads; where none waits, the channel on which partitions say that they have jobs. */
  readonly source: Redis | Channels;
  readonly jobs: Jobs;
  readonly consumer: string;
  readonly events: Emitter;
  /** Aborted when nothing is worth a further try. */
  readonly giveUp: AbortSignal;
  readonly serverOf: ServerOf;
  readonly chain: HandleChain;
  readonly calls: () => HandlerCalls;
  /** A handler has said how far it is. */
  readonly reported: () => void;
  /** Why jobs of this process were late, and what held them in line. */
  readonly causes: CauseBook;
  /** A connection for messages, which is opened when it is asked for. */
  readonly channels: () => Channels;
  /** Orders to stop were not heard for a while: the next extension is to ask for them at once. */
  readonly onMissed: () => void;
  /** Of the worker. */
  readonly beats: Pick<Heartbeat, 'lastProgressMs' | 'lastTurnMs' | 'steadySinceMs'>;
}

/** How long handlers have to end after they were told to stop. */
const END_MS = 500;

export class ServedQueue {
  readonly name: string;
  readonly inFlight: InFlight;
  readonly #parts: ServedQueueParts;
  readonly #log: Settings['log'];
  readonly #partitions: ServedPartitions;
  readonly #slots: LostSlots;
  readonly #handover: Handover;
  /** Some reads without an answer, and three heartbeats. */
  readonly #stuckAfterMs: number;
  /** From its start until its stop. */
  #isStarted = false;
  /** From the start on, when the partitions are known. */
  #running: Running | undefined;

  constructor(parts: ServedQueueParts) {
    const { work, settings, commands, source, jobs, consumer } = parts;
    const { clock, namespace, windowMs, abortGraceMs, recycleAtPercent } = settings;
    const { queue } = work;
    this.#parts = parts;
    this.name = queue.name;
    this.inFlight = new InFlight(work.slots, {
      leftBehind: () => this.#running?.adopter.lost(),
      handlerBegan: () => this.#running?.stopOrders.handlerBegan(),
    });
    const { inFlight } = this;
    this.#log = settings.log.child({ queue: queue.name });
    this.#partitions = createServedPartitions({
      ...{ redis: commands, namespace, queue, consumer, log: this.#log },
      dispatches: settings.dispatches,
    });
    const { events } = parts;
    this.#slots = new LostSlots({ inFlight, queue: queue.name, abortGraceMs, recycleAtPercent, clock, events });
    const { refs } = this.#partitions;
    this.#handover = createHandover({ commands, jobs, inFlight, consumer, windowMs, refs });
    const readsMs = source instanceof Channels ? 4 * timeoutOf(commands) : 2.5 * timeoutOf(source);
    this.#stuckAfterMs = Math.max(readsMs, settings.beatTtlMs);
  }

  /** Declares the queue unless it is declared, and follows its layout. May be repeated: what could not begin before begins then. */
  async declare(): Promise<void> {
    await this.#partitions.declare();
    if (this.#isStarted) this.start();
  }

  /** The partitions that it reads now. */
  get refs(): readonly PartitionRef[] {
    return this.#partitions.refs;
  }

  /** As of `ServedPartitions`. */
  get versions(): string | undefined {
    return this.#partitions.versions();
  }

  /** Begins to fetch, at once or when the queue is declared. */
  start(): void {
    this.#isStarted = true;
    if (this.#running || this.refs.length === 0) return;
    const { source } = this.#parts;
    const { inFlight } = this;
    const { refs } = this.#partitions;
    this.#running = assemble(this.#parts, { inFlight, refs, slots: this.#slots, log: this.#log });
    const { adopter, reclaimer, fetcher } = this.#running;
    if (!(source instanceof Channels)) source.on('ready', adopter.connected);
    adopter.start();
    reclaimer.start();
    fetcher.start();
  }

  /** Stops fetching and hands over: entries that were not started at once, jobs that run at `endMs` by the monotonic clock. */
  async stop(endMs: number): Promise<void> {
    this.#isStarted = false;
    const { fetcher, adopter, reclaimer, stopOrders, holds, gathering } = this.#running ?? {};
    await Promise.all([fetcher?.stop(), adopter?.stop(), reclaimer?.stop()]);
    stopOrders?.stop();
    // Nothing more comes, so no batch waits for more.
    gathering?.hurry();
    // Redis may stand still, and handlers are to be told in time all the same.
    await Promise.all([holds?.stop(), this.#end(endMs)]);
  }

  /** Waits for handlers, tells them to end when their time is up, and hands over what runs on. */
  async #end(endMs: number): Promise<void> {
    await this.#handover.unseen();
    await this.#drained(endMs - this.#parts.settings.clock.monotonicMs());
    if (this.inFlight.size() === 0) return;
    for (const entry of this.inFlight.all()) abort(entry, 'shutdown');
    await this.#drained(END_MS);
    await this.#handover.running();
  }

  #drained(ms: number): Promise<void> {
    const over = createAbort();
    const callOff = this.#parts.settings.clock.timer(ms, () => over.abort());
    return this.inFlight.whenEmpty(over.signal).finally(callOff);
  }

  /** Leaves the consumer group, if nothing is in flight any more. */
  leave(): Promise<void> {
    return this.#handover.consumer();
  }

  /** The connection for commands is back. Where no read waits, new entries come over it as well. */
  wake(): void {
    // Entries that a round trip was given over the old connection cannot arrive any more.
    this.#running?.adopter.connected();
    if (this.#parts.source instanceof Channels) this.#running?.fetcher.wake();
  }

  /** Paused, it takes nothing new; what it has goes on. */
  setPaused(isPaused: boolean): void {
    this.inFlight.setPaused(isPaused);
    const fetcher = this.#running?.fetcher;
    if (isPaused && fetcher instanceof StreamFetcher) fetcher.endRead();
  }

  /** Makes a pass of a leader in this process part of a round trip. */
  relay(ref: PartitionRef, pass: LeadersPass): Promise<Passed> | undefined {
    // In a cluster a read for each partition waits for as much as there was room for when it began.
    if (isCluster(this.#parts.commands)) return undefined;
    const mine = this.#partitions.refs.find(({ keys }) => keys.ready === ref.keys.ready);
    return mine && this.#running?.roundTrips.relay(mine, pass);
  }

  isLive(): boolean {
    if (!this.#running) return true;
    const { settings, beats, work } = this.#parts;
    // Without a free slot the fetcher rests; the heartbeat never does.
    const passedMs = this.#isFullyUsed() ? Number.POSITIVE_INFINITY : this.#running.fetcher.loop.lastTurnMs();
    const isTurning = settings.clock.monotonicMs() - Math.min(passedMs, beats.lastTurnMs()) < this.#stuckAfterMs;
    return isTurning && this.inFlight.overdue() < work.slots && !this.#slots.isExhausted();
  }

  isReady(): boolean {
    if (!this.#running) return false;
    const { settings, beats } = this.#parts;
    const progressMs = Math.min(this.#running.fetcher.loop.lastProgressMs(), beats.lastProgressMs());
    return this.#isFullyUsed() || settings.clock.monotonicMs() - progressMs < this.#stuckAfterMs;
  }

  #isFullyUsed(): boolean {
    return this.inFlight.free() === 0;
  }
}

type Running = ReturnType<typeof assemble>;

interface Own {
  readonly inFlight: InFlight;
  readonly refs: readonly PartitionRef[];
  readonly slots: LostSlots;
  readonly log: Settings['log'];
}

/** What fetches and runs, for partitions that are known. */
function assemble(parts: ServedQueueParts, own: Own) {
  const { work, settings, commands, source, beats } = parts;
  const { jobLeaseMs, namespace, graceMs, beatTtlMs, rhythm } = settings;
  const base = baseOf(parts, own);
  const blocking = source instanceof Channels ? commands : source;
  const { serverOf, giveUp: signal } = parts;
  const holds = new Holds({ ...base, jobLeaseMs, serverOf, signal, onHeld: () => stopOrders.held() });
  const { roundTrips, starter, gathering } = circuitOf(parts, own, {
    holds,
    readerJobs: blocking === commands ? parts.jobs : createJobs(blocking),
    isLookDue: () => fetcher.isLookDue(),
    onLost: () => adopter.lost(),
  });
  const fetching = { ...base, roundTrips, starter };
  const fleet = { namespace, queue: work.queue.name, everyMs: beatTtlMs, fleet: controlKeys(namespace).wake };
  const fetcher =
    source instanceof Channels
      ? new PollingFetcher({
          ...fetching,
          fleet: fleet.fleet,
          wakeChannel: source,
          assignment: createAssignment({ ...base, ...fleet }),
          pace: paceOf(settings.pollEveryMs, settings.read === 'poll'),
        })
      : new StreamFetcher({ ...fetching, blocking: source, blockMs: rhythm.blockMs });

  const adopter = createAdopter({ ...base, starter, idleMs: timeoutOf(blocking), calmMs: rhythm.adoptMs });
  const watching = { namespace, graceMs, beatTtlMs, jobLeaseMs, beats };
  const reclaimer = createReclaimer({ ...base, ...watching, starter });
  const stopOrders = new StopOrders({ ...base, holds, channels: parts.channels, onMissed: parts.onMissed });
  return { fetcher, roundTrips, adopter, reclaimer, stopOrders, holds, gathering };
}

function baseOf({ commands, jobs, consumer, events, settings }: ServedQueueParts, { inFlight, refs }: Own) {
  const { windowMs, clock, random } = settings;
  return { inFlight, refs, commands, jobs, consumer, windowMs, clock, events, random };
}

/** What a job goes round through. The round trip that completes it stands above those that run it: `nextTrip` is the way back. */
function circuitOf(
  parts: ServedQueueParts,
  own: Own,
  trips: {
    readonly holds: Holds;
    readonly readerJobs: Jobs;
    readonly isLookDue: () => boolean;
    readonly onLost: () => void;
  },
) {
  const { work, settings, commands, serverOf, chain, calls, reported, giveUp } = parts;
  const { causes } = parts;
  const { queue, handlers, onAbandoned, batch, concurrency } = work;
  const { slots, log } = own;
  const base = baseOf(parts, own);
  const { jobLeaseMs, rhythm } = settings;
  // After a crash nobody knows which job of a batch it was: each runs alone then.
  const suspectCrashes = batch ? 1 : Math.max(1, queue.crashes - 1);
  const limits = { bytesMax: READ_BYTES_MAX, suspectCrashes, jobLeaseMs };
  const full = ({ keys }: PartitionRef) => isFull(commands, keys);
  const nextTrip: NextTrip = {
    complete: (completion) => roundTrips.complete(completion),
    start: (ref, entries) => roundTrips.start(ref, entries),
  };
  const acknowledger = new Acknowledger({ ...base, log, nextTrip, isFull: full, signal: giveUp });
  const running = {
    ...base,
    log,
    slots,
    holds: trips.holds,
    serverOf,
    calls,
    reported,
    causes,
    acknowledger,
  };
  const { aroundBatch } = chain;
  const gathering = batch && new Gathering({ ...base, log, calls, batch, concurrency, around: aroundBatch });
  const executor = new Executor({ ...running, isFull: full, queue, handlers, onAbandoned, chain, gathering });
  const compensations = onAbandoned !== undefined;
  const starter = new Starter({
    ...base,
    ...limits,
    serverOf,
    queue: queue.name,
    nextTrip,
    executor,
    compensations,
  });
  const roundTrips: RoundTrips = new RoundTrips({
    ...base,
    ...limits,
    ...trips,
    serverOf,
    acknowledger,
    starter,
    gatherMs: rhythm.gatherMs,
  });
  return { roundTrips, starter, gathering };
}
