/**
 * One queue of a worker: its slots, its reader, and what looks after its jobs. It has a blocking connection of its own;
 * commands, heartbeat, the clock of the server and the extension of leases belong to the worker, for all its queues.
 */
import type { Emitter } from '../core/events.ts';
import { type Redis, timeoutOf } from '../redis/connection/connect.ts';
import { isFull } from '../redis/connection/pressure.ts';
import type { ServerOf } from '../redis/connection/server-clock.ts';
import { READ_BYTES_MAX } from '../redis/transitions/bytes.ts';
import { createJobs, type Jobs } from '../redis/transitions/jobs.ts';
import { createAdopter } from './adopter.ts';
import { createCompletions } from './completions.ts';
import { createConsumer } from './consumer.ts';
import { createExecute } from './execute.ts';
import { createExpire } from './expiry.ts';
import { createFullWatch } from './full-watch.ts';
import type { HandlerCalls } from './handlers.ts';
import { createHandover } from './handover.ts';
import type { Heartbeat } from './heartbeat.ts';
import { abort, createInflight, type Inflight } from './inflight.ts';
import type { HandleChain } from './middleware.ts';
import type { Settings, Work } from './options.ts';
import { createSlots } from './overdue-slots.ts';
import { createReclaimer } from './reclaimer.ts';
import { createServedPartitions } from './served-partitions.ts';
import { createSettle } from './settle.ts';
import { createTurns } from './turns.ts';
import { watchClientId } from './unblock.ts';

export interface ServedQueueParts {
  readonly work: Work;
  readonly settings: Settings;
  readonly commands: Redis;
  readonly blocking: Redis;
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
  readonly inflight: Inflight;
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
}

/** How long handlers have to end after they were told to stop. */
const END_MS = 500;

export function createServedQueue(parts: ServedQueueParts): ServedQueue {
  const { work, settings, commands, blocking, jobs, consumer } = parts;
  const { clock, namespace, windowMs } = settings;
  const inflight = createInflight();
  const log = settings.log.child({ queue: work.queue.name });
  const partitions = createServedPartitions({ redis: commands, namespace, queue: work.queue, consumer, log });
  const { refs } = partitions;
  const slots = createSlots({ ...settings, ...parts, inflight, queue: work.queue.name, concurrency: work.concurrency });
  const handover = createHandover({ commands, jobs, inflight, consumer, windowMs, refs });
  /** Four reads without an answer. */
  const stuckAfterMs = 4 * timeoutOf(blocking);
  let reading: Reading | undefined;

  function start(): void {
    reading = assemble(parts, { inflight, refs, slots, log });
    const { adopter, reclaimer, consuming } = reading;
    watchClientId(blocking);
    blocking.on('ready', adopter.connected).on('ready', consuming.wake);
    adopter.start();
    reclaimer.start();
    consuming.start();
  }

  async function stop(endMs: number): Promise<void> {
    await Promise.all([reading?.consuming.stop(), reading?.adopter.stop(), reading?.reclaimer.stop()]);
    await handover.unseen();
    await drained(endMs - clock.monotonicMs());
    if (inflight.size() === 0) return;
    for (const held of inflight.all()) abort(held, 'shutdown');
    await drained(END_MS);
    await handover.running();
  }

  function drained(ms: number): Promise<void> {
    const over = new AbortController();
    const callOff = clock.timer(ms, () => over.abort());
    return inflight.whenEmpty(over.signal).finally(callOff);
  }

  const isFullyUsed = () => inflight.free(work.concurrency) === 0;

  function isLive(): boolean {
    if (!reading) return true;
    // Without a free slot the reader rests; the heartbeat never does.
    const turnedMs = isFullyUsed() ? Number.POSITIVE_INFINITY : reading.consuming.lastTurnMs();
    const turning = clock.monotonicMs() - Math.min(turnedMs, parts.beats.lastTurnMs()) < stuckAfterMs;
    return turning && inflight.overdue() < work.concurrency && !slots.exhausted();
  }

  function isReady(): boolean {
    if (!reading) return false;
    const progressMs = Math.min(reading.consuming.lastProgressMs(), parts.beats.lastProgressMs());
    return isFullyUsed() || clock.monotonicMs() - progressMs < stuckAfterMs;
  }

  return {
    name: work.queue.name,
    inflight,
    declare: partitions.declare,
    start,
    stop,
    leave: handover.consumer,
    // What a turn was given over the old connection cannot arrive any more either.
    wake: () => reading?.adopter.connected(),
    isLive,
    isReady,
  };
}

type Reading = ReturnType<typeof assemble>;

/** What reads and runs, for partitions that are known. */
function assemble(
  parts: ServedQueueParts,
  own: {
    readonly inflight: Inflight;
    readonly refs: ReturnType<typeof createServedPartitions>['refs'];
    readonly slots: ReturnType<typeof createSlots>;
    readonly log: Settings['log'];
  },
) {
  const { work, settings, commands, blocking, jobs, consumer, events, serverOf, beats, around, calls } = parts;
  const { clock, windowMs, jobLeaseMs } = settings;
  const { queue, handlers, onAbandoned, concurrency } = work;
  const base = { clock, events, inflight: own.inflight, random: Math.random };
  const full = (ref: { readonly keys: Parameters<typeof isFull>[1] }) => isFull(commands, ref.keys);
  const limits = { bytesMax: READ_BYTES_MAX, suspectCrashes: Math.max(1, queue.crashes - 1) };
  const settling = { ...base, jobs, consumer, windowMs, signal: parts.giveUp };
  const completions = createCompletions(settling);
  const readerJobs = createJobs(blocking);
  const turns = createTurns({ ...settling, ...limits, concurrency, completions, readerJobs });
  const settle = createSettle({ ...settling, completions, turns, isFull: full });
  const stations = { ...own, settle, serverOf, calls, isFull: createFullWatch(full, clock) };
  const execute = createExecute({ ...base, ...stations, queue, handlers, onAbandoned, around });
  const reading = { commands, blocking, jobs, refs: own.refs, consumer, concurrency, windowMs };
  const expire = createExpire({ ...base, ...reading, compensations: onAbandoned !== undefined, serverOf });
  const consuming = createConsumer({ ...base, ...reading, ...limits, jobLeaseMs, turns, execute, expire });
  const { take } = consuming;
  const adopter = createAdopter({ ...base, ...reading, take, idleMs: timeoutOf(blocking) });
  const reclaimer = createReclaimer({ ...base, ...settings, ...reading, take, beats });
  return { consuming, adopter, reclaimer };
}
