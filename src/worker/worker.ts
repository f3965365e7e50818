/**
 * A worker: reads one queue and runs its handlers. This file wires the parts and keeps their order of life:
 *
 *  start   connect → heartbeat → declare the queue, join its groups → extend, adopt, reclaim → read
 *  stop    not ready → stop reading → release what was not started → wait for what runs → at the end of the grace
 *          tell handlers to stop and hand their jobs back without using an attempt → leave → close
 */
import { hostname } from 'node:os';
import { DuestreamError } from '../core/errors.ts';
import { createEmitter, type EventSource } from '../core/events.ts';
import { newJobId } from '../core/job.ts';
import { defineQueue, type Queue, type Untyped } from '../core/queue.ts';
import { close, openBlocking, openCommands, timeoutOf, whenReady } from '../redis/connection/connect.ts';
import { withRetry } from '../redis/connection/outage.ts';
import { isFull } from '../redis/connection/pressure.ts';
import { createServers } from '../redis/connection/server-clock.ts';
import { READ_BYTES_MAX } from '../redis/transitions/bytes.ts';
import { createJobs } from '../redis/transitions/jobs.ts';
import { createAdopter } from './adopter.ts';
import { createConsumer } from './consumer.ts';
import { createExecute } from './execute.ts';
import { createExpire } from './expiry.ts';
import { createExtender } from './extender.ts';
import { checkHandlers, type QueueHandlers } from './handlers.ts';
import { createHandover } from './handover.ts';
import { createHeartbeat } from './heartbeat.ts';
import { abort, createInflight } from './inflight.ts';
import { checkDelivery, readWorkerOptions, type WorkerOptions } from './options.ts';
import { createSlots } from './overdue-slots.ts';
import { createReclaimer } from './reclaimer.ts';
import { createServedPartitions } from './served-partitions.ts';
import { createSettle } from './settle.ts';
import { watchClientId } from './unblock.ts';

export interface Worker {
  /** Connects and begins to read. @throws DuestreamError `unavailable`, `refused` */
  readonly start: () => Promise<void>;
  /** Stops in order; twice is fine. Resolves when everything is closed. */
  readonly stop: (options?: { readonly graceMs?: number }) => Promise<void>;
  readonly events: EventSource;
  /** Connected, reading and sending heartbeats with success, not stopping. */
  readonly ready: () => boolean;
  /** Its loops turn, and too many slots are not taken by handlers that ignore their signal. */
  readonly live: () => boolean;
  /** Jobs whose handlers run now. */
  readonly running: () => number;
  /** The name of this worker in the consumer group: random per start. */
  readonly consumer: string;
  readonly queue: string;
}

type State = 'new' | 'running' | 'stopping' | 'stopped';

/** How long `start` tries to reach Redis. */
const START_BUDGET_MS = 5000;

/**
 * A worker for one queue.
 *
 * @param queue a defined queue, or its name.
 * @param handlers a function for all jobs, or an object of functions by job name.
 * @throws DuestreamError `bad-input` for options outside their range.
 * @example
 * const worker = createWorker(emails, async (job, { signal }) => send(job.data, signal), { redis: 'redis://127.0.0.1:6379' });
 * await worker.start();
 */
export function createWorker<Data = Untyped>(
  queue: Queue<Data> | string,
  handlers: QueueHandlers<Data>,
  options: WorkerOptions,
): Worker {
  const definition: Queue<Data> = typeof queue === 'string' ? defineQueue<Data>(queue) : queue;
  checkHandlers(definition.name, handlers);
  const settings = readWorkerOptions(options);
  const { clock, log, namespace, concurrency, windowMs, onAbandoned } = settings;
  checkDelivery(definition.delivery, settings);
  const consumer = `w-${newJobId()}`;
  const events = createEmitter();
  const inflight = createInflight();
  const giveUp = new AbortController();
  const stopAsked = new AbortController();
  const connection = { redis: options.redis, name: `worker:${definition.name}` };
  const commands = openCommands(connection);
  const blocking = openBlocking({ ...connection, name: `reader:${definition.name}` });
  const readTimeoutMs = timeoutOf(blocking);
  /** Four reads without an answer. */
  const stuckAfterMs = 4 * readTimeoutMs;
  const jobs = createJobs(commands);
  const serverOf = createServers(commands, clock);
  const identity = {
    ...{ id: consumer, role: 'worker' as const, host: hostname(), pid: process.pid },
    ...{ startedMs: clock.wallMs(), queues: [definition.name] },
  };
  const base = { clock, events, inflight, random: Math.random };
  const settle = createSettle({
    ...base,
    jobs,
    windowMs,
    signal: giveUp.signal,
    isFull: (ref) => isFull(commands, ref.keys),
  });
  const slots = createSlots({ ...base, ...settings, queue: definition.name });
  const queueLog = log.child({ queue: definition.name });
  const running = { queue: definition, handlers, onAbandoned, settle, slots, serverOf, log: queueLog };
  const execute = createExecute({ ...base, ...running });
  const servedPartitions = createServedPartitions({
    redis: commands,
    namespace,
    queue: definition,
    consumer,
    log: queueLog,
  });
  const { refs } = servedPartitions;
  const heartbeat = createHeartbeat({
    ...{ redis: commands, namespace, identity, beatTtlMs: settings.beatTtlMs, server: serverOf(), clock, events },
    onBeat: servedPartitions.declare,
  });
  const probe = () => commands.ping();
  const extender = createExtender({ ...base, ...settings, jobs, probe, consumer, queue: definition.name });
  let state: State = 'new';
  const handover = createHandover({ commands, jobs, inflight, consumer, windowMs, refs });
  let parts: ReturnType<typeof assemble> | undefined;
  let starting: Promise<void> | undefined;
  let stopped: Promise<void> | undefined;

  function assemble() {
    const reading = { commands, blocking, jobs, refs, consumer, concurrency, windowMs };
    const expire = createExpire({ ...base, ...reading, compensations: onAbandoned !== undefined, serverOf });
    const limits = { bytesMax: READ_BYTES_MAX, suspectCrashes: Math.max(1, definition.crashes - 1) };
    const { jobLeaseMs } = settings;
    const consuming = createConsumer({ ...base, ...reading, ...limits, jobLeaseMs, execute, expire });
    const { take } = consuming;
    const adopter = createAdopter({ ...base, ...reading, take, idleMs: readTimeoutMs });
    const beatenMs = heartbeat.lastProgressMs;
    const reclaimer = createReclaimer({ ...base, ...settings, commands, refs, consumer, take, beatenMs });
    return { consuming, adopter, reclaimer };
  }

  async function start(): Promise<void> {
    if (state !== 'new')
      throw new DuestreamError('stopped', `this worker is ${state} and cannot be started again; create another one`);
    state = 'running';
    starting = begin();
    try {
      await starting;
    } catch (error) {
      const cutShort = stopAsked.signal.aborted;
      await stop({ graceMs: 0 });
      throw cutShort ? new DuestreamError('stopped', 'this worker was stopped while it started') : error;
    }
  }

  async function begin(): Promise<void> {
    const { signal } = stopAsked;
    await Promise.all([commands, blocking].map((redis) => whenReady(redis, START_BUDGET_MS, signal)));
    watchClientId(blocking);
    await withRetry('start of the worker', heartbeat.start, { clock, budgetMs: START_BUDGET_MS, signal });
    signal.throwIfAborted();
    parts = assemble();
    const { adopter, consuming } = parts;
    commands.on('ready', () => {
      for (const one of [heartbeat, extender, adopter]) one.wake();
    });
    blocking.on('ready', adopter.connected).on('ready', consuming.wake);
    extender.start();
    parts.adopter.start();
    parts.reclaimer.start();
    parts.consuming.start();
  }

  function stop({ graceMs = settings.shutdownMs } = {}): Promise<void> {
    stopped ??= shutDown(graceMs);
    return stopped;
  }

  async function shutDown(graceMs: number): Promise<void> {
    state = 'stopping';
    stopAsked.abort();
    const endMs = clock.monotonicMs() + graceMs;
    // A Redis that stands still would hold each step below until its time-out; a closed connection holds none.
    const calledOff = clock.timer(graceMs + HANG_UP_AFTER_MS, hangUp);
    await starting?.catch(() => undefined);
    await Promise.all([parts?.consuming.stop(), parts?.adopter.stop(), parts?.reclaimer.stop()]);
    await handover.unseen();
    await drained(endMs - clock.monotonicMs());
    if (inflight.size() > 0) {
      for (const held of inflight.all()) abort(held, 'shutdown');
      await drained(500);
      await handover.running();
    }
    giveUp.abort();
    await extender.stop();
    await heartbeat.stop();
    await heartbeat.leave();
    await handover.consumer();
    calledOff();
    hangUp();
    state = 'stopped';
  }

  function hangUp(): void {
    giveUp.abort();
    close(blocking);
    close(commands);
  }

  function drained(ms: number): Promise<void> {
    const over = new AbortController();
    const callOff = clock.timer(ms, () => over.abort());
    return inflight.whenEmpty(over.signal).finally(callOff);
  }

  function live(): boolean {
    if (!parts) return state !== 'stopped';
    const { lastTurnMs } = parts.consuming;
    // Without a free slot the reader rests; the heartbeat never does.
    const turnedMs = inflight.free(concurrency) === 0 ? Number.POSITIVE_INFINITY : lastTurnMs();
    const turning = clock.monotonicMs() - Math.min(turnedMs, heartbeat.lastTurnMs()) < stuckAfterMs;
    return turning && inflight.overdue() < concurrency && !slots.exhausted();
  }

  function ready(): boolean {
    if (state !== 'running' || !parts || commands.status !== 'ready') return false;
    const progressMs = Math.min(parts.consuming.lastProgressMs(), heartbeat.lastProgressMs());
    return inflight.free(concurrency) === 0 || clock.monotonicMs() - progressMs < stuckAfterMs;
  }

  return {
    start,
    stop,
    events,
    ready,
    live,
    running: () => inflight.busy(),
    consumer,
    queue: definition.name,
  };
}

/** How long after the grace a stop may take to hand over what is left. */
const HANG_UP_AFTER_MS = 2000;
