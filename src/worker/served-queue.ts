/**
 * One queue of a worker: its slots, its reader, and what looks after its jobs. It has a blocking connection of its own;
 * commands, heartbeat, the clock of the server and the extension of leases belong to the worker, for all its queues.
 */

import type { Emitter } from '../job/events.ts';
import { createAbort } from '../kernel/abort.ts';
import { isCluster } from '../redis/connection/cluster/members.ts';
import { type Redis, timeoutOf } from '../redis/connection/connect.ts';
import { isFull } from '../redis/connection/pressure.ts';
import type { ServerOf } from '../redis/connection/server-clock.ts';
import { controlKeys } from '../redis/keys.ts';
import { READ_BYTES_MAX } from '../redis/scripts/bytes.ts';
import { createJobs, type Jobs } from '../redis/scripts/jobs.ts';
import type { Relay } from '../redis/scripts/passes.ts';
import { createAssignment } from './fetch/assignment.ts';
import { createCalledConsumer } from './fetch/called-consumer.ts';
import { createConsumer } from './fetch/consumer.ts';
import { createServedPartitions } from './fetch/served-partitions.ts';
import { createTurns } from './fetch/turns.ts';
import { watchReads } from './fetch/unblock.ts';
import type { Calls } from './fetch/wake-channel.ts';
import type { Settings, Work } from './options.ts';
import { createAdopter } from './recover/adopter.ts';
import { createHandover } from './recover/handover.ts';
import type { Heartbeat } from './recover/heartbeat.ts';
import { createReclaimer } from './recover/reclaimer.ts';
import { Acknowledger } from './run/acknowledgement.ts';
import { Executor } from './run/execution.ts';
import { createExpire } from './run/expiry.ts';
import type { HandlerCalls } from './run/handlers.ts';
import { abort, InFlight, LostSlots } from './run/in-flight.ts';
import type { HandleChain } from './run/middleware.ts';

export interface ServedQueueParts {
  readonly work: Work;
  readonly settings: Settings;
  readonly commands: Redis;
  /** A connection that waits in reads, or in a cluster the calls that say when there is something. */
  readonly source: Redis | Calls;
  readonly jobs: Jobs;
  readonly consumer: string;
  readonly events: Emitter;
  /** Aborted when nothing is worth a further try. */
  readonly giveUp: AbortSignal;
  readonly serverOf: ServerOf;
  readonly around: HandleChain['around'];
  readonly calls: () => HandlerCalls;
  /** Of the worker. */
  readonly beats: Pick<Heartbeat, 'lastProgressMs' | 'lastTurnMs' | 'steadySinceMs'>;
}

export interface ServedQueue {
  readonly name: string;
  readonly inFlight: InFlight;
  /** Declares the queue unless it is declared, and follows its layout. May be repeated. */
  readonly declare: () => Promise<void>;
  /** Begins to read. The queue was declared before. */
  readonly start: () => void;
  /** Stops reading and hands over: what was not started at once, what runs at `endMs` by the monotonic clock. */
  readonly stop: (endMs: number) => Promise<void>;
  /** Leaves the consumer group, if nothing is held there any more. */
  readonly leave: () => Promise<void>;
  /** The connection for commands is back. */
  readonly wake: () => void;
  readonly isLive: () => boolean;
  readonly isReady: () => boolean;
  /** Makes a pass of a leader in this process part of a turn. */
  readonly relay: Relay;
}

/** How long handlers have to end after they were told to stop. */
const END_MS = 500;

export function createServedQueue(parts: ServedQueueParts): ServedQueue {
  const { work, settings, commands, source, jobs, consumer } = parts;
  const { clock, namespace, windowMs } = settings;
  const blocking = 'listen' in source ? undefined : source;
  const inFlight = new InFlight(work.concurrency);
  const log = settings.log.child({ queue: work.queue.name });
  const partitions = createServedPartitions({ redis: commands, namespace, queue: work.queue, consumer, log });
  const { refs } = partitions;
  const slots = new LostSlots({ ...settings, ...parts, inFlight, queue: work.queue.name });
  const handover = createHandover({ commands, jobs, inFlight, consumer, windowMs, refs });
  /** Four reads without an answer. */
  const stuckAfterMs = 4 * timeoutOf(blocking ?? commands);
  let reading: Reading | undefined;

  function start(): void {
    reading = assemble(parts, { inFlight, refs, slots, log });
    const { adopter, reclaimer, consuming } = reading;
    if (blocking) watchReads(commands, blocking);
    blocking?.on('ready', adopter.connected).on('ready', consuming.wake);
    adopter.start();
    reclaimer.start();
    consuming.start();
  }

  async function stop(endMs: number): Promise<void> {
    await Promise.all([reading?.consuming.stop(), reading?.adopter.stop(), reading?.reclaimer.stop()]);
    await handover.unseen();
    await drained(endMs - clock.monotonicMs());
    if (inFlight.size() === 0) return;
    for (const held of inFlight.all()) abort(held, 'shutdown');
    await drained(END_MS);
    await handover.running();
  }

  function drained(ms: number): Promise<void> {
    const over = createAbort();
    const callOff = clock.timer(ms, () => over.abort());
    return inFlight.whenEmpty(over.signal).finally(callOff);
  }

  const isFullyUsed = () => inFlight.free() === 0;

  function isLive(): boolean {
    if (!reading) return true;
    // Without a free slot the reader rests; the heartbeat never does.
    const turnedMs = isFullyUsed() ? Number.POSITIVE_INFINITY : reading.consuming.lastTurnMs();
    const turning = clock.monotonicMs() - Math.min(turnedMs, parts.beats.lastTurnMs()) < stuckAfterMs;
    return turning && inFlight.overdue() < work.concurrency && !slots.isExhausted();
  }

  function isReady(): boolean {
    if (!reading) return false;
    const progressMs = Math.min(reading.consuming.lastProgressMs(), parts.beats.lastProgressMs());
    return isFullyUsed() || clock.monotonicMs() - progressMs < stuckAfterMs;
  }

  return {
    name: work.queue.name,
    inFlight,
    declare: partitions.declare,
    start,
    stop,
    leave: handover.consumer,
    // What a turn was given over the old connection cannot arrive any more either.
    wake: () => wake(reading, blocking === undefined),
    isLive,
    isReady,
    relay: (ref, pass) => reading?.relay(ref, pass),
  };
}

type Reading = ReturnType<typeof assemble>;

/** In a cluster new entries come over the connection for commands as well. */
function wake(reading: Reading | undefined, isCalled: boolean): void {
  reading?.adopter.connected();
  if (isCalled) reading?.consuming.wake();
}

/** What reads and runs, for partitions that are known. */
function assemble(
  parts: ServedQueueParts,
  own: {
    readonly inFlight: InFlight;
    readonly refs: ReturnType<typeof createServedPartitions>['refs'];
    readonly slots: LostSlots;
    readonly log: Settings['log'];
  },
) {
  const { work, settings, commands, source, jobs, consumer, events, serverOf, beats, around, calls } = parts;
  const { clock, windowMs, jobLeaseMs, namespace } = settings;
  const isCalled = 'listen' in source;
  const blocking = isCalled ? commands : source;
  const { queue, handlers, onAbandoned, concurrency } = work;
  const base = { clock, events, inFlight: own.inFlight, random: Math.random };
  const full = (ref: { readonly keys: Parameters<typeof isFull>[1] }) => isFull(commands, ref.keys);
  const limits = { bytesMax: READ_BYTES_MAX, suspectCrashes: Math.max(1, queue.crashes - 1) };
  const acknowledging = { ...base, jobs, consumer, windowMs, log: own.log, isFull: full };
  const acknowledger = new Acknowledger({ ...acknowledging, signal: parts.giveUp });
  const readerJobs = isCalled ? jobs : createJobs(blocking);
  const turns = createTurns({ ...acknowledging, ...limits, concurrency, acknowledger, readerJobs });
  const services = { ...own, turns, acknowledger, serverOf, calls, isFull: full };
  const executor = new Executor({ ...base, ...services, queue, handlers, onAbandoned, around });
  const reading = { commands, blocking, jobs, refs: own.refs, consumer, concurrency, windowMs };
  const expire = createExpire({ ...base, ...reading, compensations: onAbandoned !== undefined, ...services });
  const taking = { ...base, ...reading, ...limits, jobLeaseMs, turns, executor, expire, acknowledger };
  const fleet = { namespace, queue: queue.name, everyMs: settings.beatTtlMs, fleet: controlKeys(namespace).wake };
  const consuming = isCalled
    ? createCalledConsumer({
        ...taking,
        ...fleet,
        calls: source,
        assignment: createAssignment({ ...taking, ...fleet }),
      })
    : createConsumer(taking);
  const { take } = consuming;
  const adopter = createAdopter({ ...base, ...reading, take, idleMs: timeoutOf(blocking) });
  const reclaimer = createReclaimer({ ...base, ...settings, ...reading, take, beats });
  const relay: Relay = (ref, pass) => {
    // In a cluster a read for each partition waits for as much as there was room for when it began.
    const mine = isCluster(blocking) ? undefined : own.refs.find(({ keys }) => keys.ready === ref.keys.ready);
    return mine && turns.relay(mine, pass);
  };
  return { consuming, adopter, reclaimer, relay };
}
