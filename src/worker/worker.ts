/**
 * A worker: reads queues and runs their handlers. This file wires what the queues share and keeps the order of life:
 *
 *  start   connect → heartbeat → declare the queues, join their groups → extend, adopt, reclaim → read
 *  stop    not ready → of each queue: stop reading, hand back what was not started, wait for what runs, at the end of the
 *          time tell handlers to stop and hand their jobs back without using an attempt → leave → close
 *
 * A worker of N queues has N + 1 connections: 1 for commands and N that wait; N workers of one queue have 2 N. Where no read may
 * wait (a cluster, `read: 'poll'`) it has 2: one for commands, and one that hears of new jobs. A worker that has none of these opens
 * one more when a handler runs for longer than a moment, to hear that its job was cancelled (`run/stop-orders.ts`). One
 * XREADGROUP over all streams is not taken: COUNT holds for each, and large entries of one would hold up the others.
 */

import { hostname } from 'node:os';
import { registryAnswers } from '../client/calls/retry.ts';
import { createScheduleChain, type ScheduleChain } from '../client/jobs/scheduling.ts';
import { createEmitter, type Emitter, type EventSource } from '../job/events.ts';
import { newJobId } from '../job/job-id.ts';
import type { Queue, Untyped } from '../job/queue.ts';
import { createAbort } from '../kernel/abort.ts';
import { checkObject } from '../kernel/checks.ts';
import type { Clock } from '../kernel/clock.ts';
import type { DurationInput } from '../kernel/duration.ts';
import { createLife } from '../kernel/life.ts';
import { version } from '../kernel/version.ts';
import { Channels } from '../redis/channels.ts';
import { isCluster, membersOf } from '../redis/connection/cluster/members.ts';
import { close, openBlocking, openCommands, openSubscriber, type Redis } from '../redis/connection/connect.ts';
import {
  createOpening,
  type Opening,
  START_WITHIN_MS,
  startPolicy,
  whileStarting,
} from '../redis/connection/opening.ts';
import { createServers } from '../redis/connection/server-clock.ts';
import { checkSchema } from '../redis/schema.ts';
import { createJobs } from '../redis/scripts/jobs.ts';
import type { Relay } from '../redis/scripts/passes.ts';
import type { WorkerPause } from '../redis/scripts/presence.ts';
import { declaredAmong } from '../redis/scripts/queues.ts';
import { createDeclaring } from './declaring.ts';
import {
  type AnyOptions,
  type ManyQueuesOptions,
  readWork,
  readWorkerOptions,
  type Settings,
  shutdownOf,
  type Work,
  type WorkerOptions,
} from './options.ts';
import { createHeartbeat } from './recover/heartbeat.ts';
import { CauseBook } from './run/cause-book.ts';
import { createHandlerCalls } from './run/context.ts';
import { createExtender } from './run/extender.ts';
import type { Middleware, PlainHandlers, QueueHandlers } from './run/handlers.ts';
import { LineWatch } from './run/line-watch.ts';
import type { HandleChain } from './run/middleware.ts';
import { createHandleChain } from './run/middleware.ts';
import { createTimekeeper } from './run/timekeeper.ts';
import { ServedQueue } from './served-queue.ts';
import { createSurroundings } from './surroundings.ts';

interface StopOptions {
  readonly shutdown?: DurationInput | undefined;
}

export interface Worker {
  /**
   * Connects and begins to read. Twice is fine: calls at the same time share one start. One that fails stops the worker
   * and leaves nothing behind.
   *
   * @throws DuestreamError `unavailable` · `refused` · `wrong-schema` for a namespace of another layout · `stopped` after a
   * stop, or when it was stopped meanwhile
   */
  readonly start: () => Promise<void>;
  /**
   * Connects unless that has happened, and resolves when Redis answers on all connections. It reads no job; `start` goes
   * on with the same connections. In an outage it waits for 5 s, and may be called again.
   *
   * @throws DuestreamError `unavailable`, `refused`, `stopped`
   */
  readonly ready: () => Promise<void>;
  /**
   * Stops in order; twice is fine, also before a start. Resolves when everything is closed.
   *
   * @param options `shutdown`: how long running handlers may take, instead of the worker's own `shutdown`
   */
  readonly stop: (options?: StopOptions) => Promise<void>;
  /** `stop`, for `await using worker = createWorker(…)`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>;
  /**
   * Puts a middleware around the handlers of all its queues: `handle` around each start, `schedule` around what handlers
   * schedule. The first one is the outermost. It counts for jobs that are started from now on.
   *
   * @throws DuestreamError `bad-input` for what is no middleware
   * @example
   * worker.use({ handle: (job, context, next) => tenants.run(job.data.tenant, next) });
   */
  readonly use: (middleware: Middleware) => void;
  readonly events: EventSource;
  /** Connected, reading and sending heartbeats with success, not stopping: for a readiness probe. */
  readonly isReady: () => boolean;
  /** Its loops turn, and too many slots are not taken by handlers that ignore their signal: for a liveness probe. */
  readonly isLive: () => boolean;
  /** Jobs whose handlers run now. */
  readonly running: () => number;
  /** The name of this worker in the consumer groups: random per worker. */
  readonly consumer: string;
  /** The names of its queues. */
  readonly queues: readonly string[];
}

/** The worker of a daemon says besides which of its queues do not do well, and which of some are declared. */
export interface WatchedWorker extends Worker {
  readonly declared: (queues: readonly string[]) => Promise<ReadonlySet<string> | undefined>;
  readonly notLive: () => readonly string[];
  readonly notReady: () => readonly string[];
  /** Makes a pass of a leader in this process part of a round trip to its partition. */
  readonly relay: Relay;
  /** Stops without a further command. What it holds is taken over by others when its leases have ended. */
  readonly abandon: () => void;
}

/** How long after its time a stop may take to hand over what is left. */
const HANG_UP_AFTER_MS = 2000;

/**
 * A worker of one queue: `createWorker(queue, handlers, options)`, or of several over shared connections:
 * `createWorker({ redis, queues: [{ queue, handler }] })`. It connects at `start`.
 *
 * @param queue a defined queue, or its name.
 * @param handlers a function for all jobs, an object of functions by job name, or what `inBatches` makes.
 * @throws DuestreamError `bad-config` for an option that there is not, or one outside its range.
 * @example
 * const worker = createWorker(emails, async (job, { signal }) => send(job.data, signal), { redis: 'redis://127.0.0.1:6379' });
 * await worker.start();
 */
export function createWorker<Data = Untyped>(
  queue: Queue<Data>,
  handlers: QueueHandlers<NoInfer<Data>>,
  options: WorkerOptions,
): WatchedWorker;
export function createWorker<Data = Untyped>(
  queue: string,
  handlers: PlainHandlers<Data>,
  options: WorkerOptions,
): WatchedWorker;
export function createWorker<Data = Untyped>(
  queue: Queue<Data> | string,
  handlers: QueueHandlers<NoInfer<Data>>,
  options: WorkerOptions,
): WatchedWorker;
export function createWorker<Datas extends readonly unknown[]>(options: ManyQueuesOptions<Datas>): WatchedWorker;
export function createWorker(...given: WorkerArguments): WatchedWorker {
  return createWatchedWorker(given);
}

/** Either form of `createWorker`, data not known. */
export type WorkerArguments =
  | readonly [options: AnyOptions]
  | readonly [queue: Queue | string, handlers: QueueHandlers<never>, options: WorkerOptions];

/** Of a daemon, or inside the worker that an application embeds. @throws DuestreamError `bad-config` */
export function createWatchedWorker(given: WorkerArguments): WatchedWorker {
  if (given.length === 1) {
    checkObject(given[0], 'createWorker');
    const { queues, ...rest } = given[0];
    const settings = readWorkerOptions(rest);
    return workerOf({ settings, works: readWork(queues, settings) });
  }
  const [queue, handler, options] = given;
  checkObject(options, 'createWorker');
  const { onAbandoned, ...rest } = options;
  const settings = readWorkerOptions(rest);
  return workerOf({ settings, works: readWork([{ queue, handler, onAbandoned }], settings) });
}

interface Working {
  readonly settings: Settings;
  readonly works: readonly Work[];
  readonly chains?: Chains | undefined;
  /** Default: random. */
  readonly consumer?: string | undefined;
}

/** A worker of settings that were read already. The test kit sets some for which there is no option. */
export function workerOf(working: Working): WatchedWorker {
  const { settings, works, chains = freshChains(), consumer = `w-${newJobId()}` } = working;
  const names = works.map(({ queue }) => queue.name);
  const events = createEmitter();
  const giveUp = createAbort();
  const opening = createOpening({
    waitMs: START_WITHIN_MS,
    open: () => openAll(settings, names),
    furnish: async (connections) =>
      wire({ settings, works, consumer, events, giveUp: giveUp.signal, chains }, connections),
  });
  const life = createLife({
    what: 'worker',
    begin: async (signal) => begin(await opening.use(signal), settings, signal),
    end: (begun, shutdownMs: number) => shutDown({ settings, opening, giveUp }, begun, shutdownMs),
    atFailure: 0,
  });
  const served = () => opening.opened()?.served ?? [];
  const namesOf = (some: readonly ServedQueue[]) => some.map(({ name }) => name);
  const notLive = () => (life.state() === 'stopped' ? names : namesOf(served().filter((one) => !one.isLive())));
  const connected = () => life.state() === 'running' && opening.opened()?.commands.status === 'ready';
  const notReady = () => (connected() ? namesOf(served().filter((one) => !one.isReady())) : names);
  const stop = (options: StopOptions = {}) => stopWithin(life, () => shutdownOf(options, settings.shutdownMs));
  function abandon(): void {
    giveUp.abort();
    opening.close();
    life.stop(0).catch(() => undefined);
  }
  events.on('schema.refused', abandon);
  return {
    use(middleware) {
      chains.handle.use(middleware);
      chains.schedule.use(middleware);
    },
    relay: (ref, pass) =>
      served()
        .find(({ name }) => name === ref.queue)
        ?.relay(ref, pass),
    start: life.start,
    stop,
    abandon,
    events,
    notLive,
    notReady,
    consumer,
    queues: names,
    [Symbol.asyncDispose]: () => stop(),
    declared: async (asked) => declaredIn(opening.opened(), settings, asked),
    async ready() {
      life.check();
      const { commands } = await opening.connected(life.signal);
      await registryAnswers(commands, settings.namespace, startPolicy(settings.clock, life.signal));
    },
    isLive: () => notLive().length === 0,
    isReady: () => notReady().length === 0,
    running: () => served().reduce((sum, { inFlight }) => sum + inFlight.busy(), 0),
  };
}

/** Calls at the same time get one promise. An option that there is not rejects, and stops nothing. */
function stopWithin(life: { readonly stop: (ms: number) => Promise<void> }, shutdownMs: () => number): Promise<void> {
  try {
    return life.stop(shutdownMs());
  } catch (error) {
    return Promise.reject(error);
  }
}

async function declaredIn(opened: Shared | undefined, { namespace }: Settings, asked: readonly string[]) {
  return opened && declaredAmong(opened.commands, namespace, asked);
}

async function begin(parts: Shared, { clock, namespace }: Settings, signal: AbortSignal): Promise<void> {
  const { commands, heartbeat, extender, served, declaring } = parts;
  // The first heartbeat writes already.
  await whileStarting('worker', () => checkSchema(commands, namespace), { clock, signal });
  await whileStarting('worker', heartbeat.start, { clock, signal }).catch((error: unknown) => {
    if (!declaring.startsWithout(error)) throw error;
    return whileStarting('worker', heartbeat.start, { clock, signal });
  });
  signal.throwIfAborted();
  commands.on('ready', () => {
    for (const one of [heartbeat, extender, ...served]) one.wake();
  });
  extender.start();
  for (const one of served) one.start();
}

async function shutDown(
  {
    settings: { clock },
    opening,
    giveUp,
  }: { readonly settings: Settings; readonly opening: Opening<Shared>; readonly giveUp: AbortController },
  begun: Promise<void>,
  shutdownMs: number,
): Promise<void> {
  const hangUp = () => {
    giveUp.abort();
    opening.close();
  };
  const endMs = clock.monotonicMs() + shutdownMs;
  // A Redis that stands still would hold each step below until its time-out; a closed connection holds none.
  const calledOff = clock.timer(shutdownMs + HANG_UP_AFTER_MS, hangUp);
  await begun;
  await handOver(opening.opened(), endMs, giveUp);
  calledOff();
  hangUp();
}

/** One for commands, and one for each queue to wait on; where none waits in a read, one that hears calls for all queues. */
function openAll({ redis, read, rhythm }: Settings, names: readonly string[]): readonly [Redis, ...Redis[]] {
  const commands = openCommands({ redis, name: `worker:${names.join(',')}` });
  if (isCluster(commands) || read === 'poll')
    return [commands, openSubscriber({ redis, name: `calls:${names.join(',')}` })];
  return [commands, ...names.map((name) => openBlocking({ redis, name: `reader:${name}`, waitsMs: rhythm.blockMs }))];
}

/** The middleware of a worker: around its handlers, and around what they schedule. */
export interface Chains {
  readonly handle: HandleChain;
  readonly schedule: ScheduleChain;
}

const freshChains = (): Chains => ({ handle: createHandleChain(), schedule: createScheduleChain() });

type Shared = ReturnType<typeof wire>;

/** What the queues share, and the queues. */
function wire(
  shared: {
    readonly settings: Settings;
    readonly works: readonly Work[];
    readonly consumer: string;
    readonly events: Emitter;
    readonly giveUp: AbortSignal;
    readonly chains: Chains;
  },
  [commands, ...readers]: readonly [Redis, ...Redis[]],
) {
  const { settings, works, consumer, events, giveUp, chains } = shared;
  const calls = createHandlerCalls(commands, settings, { chain: chains.schedule, giveUp });
  const { clock, namespace, beatTtlMs, rhythm } = settings;
  const jobs = createJobs(commands);
  const serverOf = createServers(commands, clock);
  const names = works.map(({ queue }) => queue.name);
  const { wakeChannel, channels } = channelsOf(settings, readers[0], { names, giveUp });
  const identity = identityOf(shared, [commands, ...readers]);
  const server = serverOf();
  const causes = new CauseBook(new LineWatch(commands, clock));
  const timed = { redis: commands, namespace, serverMs: server.nowMs, events };
  const timekeeper = createTimekeeper({ ...timed, causes, withinMs: (queue) => withinOf(served, queue) });
  const heartbeat = createHeartbeat({
    ...{ redis: commands, namespace, identity, beatTtlMs, server, clock, events },
    onBeat: timekeeper.pass,
    onPause: pausing(() => served, { clock, events }),
    lookBeats: rhythm.layoutBeats,
    async onLook() {
      await declaring.pass();
      await lookAround();
    },
  });
  const all = () => served;
  const lookAround = createSurroundings({ redis: commands, served: all, server, beatTtlMs, clock, events });
  const served = works.flatMap((work, at) => {
    const source = wakeChannel ?? readers[at];
    if (!source) return [];
    const own = { work, settings, commands, source, jobs, consumer, events, giveUp };
    const told = { reported: () => extender.reported(), onMissed: () => extender.wake(), channels, causes };
    return [new ServedQueue({ ...own, ...told, beats: heartbeat, serverOf, chain: chains.handle, calls })];
  });
  const declaring = createDeclaring(served, { clock, events });
  const extender = createExtender({
    jobs,
    consumer,
    clock,
    events,
    queue: names.join(', '),
    probe: () => commands.ping(),
    extendEveryMs: settings.extendEveryMs,
    jobLeaseMs: settings.jobLeaseMs,
    inFlights: served.map(({ inFlight }) => inFlight),
  });
  return { commands, heartbeat, extender, served, declaring };
}

/** What is done when somebody pauses this worker, or lets it go on. */
function pausing(
  served: () => readonly ServedQueue[],
  { clock, events }: { readonly clock: Clock; readonly events: Emitter },
) {
  let sinceMs = 0;
  return (pause: WorkerPause | undefined): void => {
    for (const one of served()) one.setPaused(pause !== undefined);
    if (pause === undefined) {
      events.emit('worker.resumed', { pausedMs: Math.round(clock.monotonicMs() - sinceMs) });
      return;
    }
    sinceMs = clock.monotonicMs();
    events.emit('worker.paused', { by: pause.by, reason: pause.reason });
  };
}

/** Within which time the jobs of a queue are promised to start; undefined: nothing is promised. */
const withinOf = (served: readonly ServedQueue[], queue: string): number | undefined =>
  served.find(({ name }) => name === queue)?.refs[0]?.lateness?.withinMs;

/** The channels of a worker that polls, which its reader listens to, and those on which a worker hears orders to stop. */
function channelsOf(
  { redis, read }: Settings,
  reader: Redis | undefined,
  { names, giveUp }: { readonly names: readonly string[]; readonly giveUp: AbortSignal },
) {
  const wakeChannel = reader && (isCluster(reader) || read === 'poll') ? new Channels(reader) : undefined;
  const open = () => openSubscriber({ redis, name: `orders:${names.join(',')}` });
  return { wakeChannel, channels: lazyChannels(wakeChannel, open, giveUp) };
}

/** What the heartbeat of this worker tells of it. */
function identityOf(
  {
    settings,
    works,
    consumer,
  }: { readonly settings: Settings; readonly works: readonly Work[]; readonly consumer: string },
  all: readonly Redis[],
) {
  return {
    id: consumer,
    role: 'worker' as const,
    ...{ host: hostname(), pid: process.pid, version, startedMs: settings.clock.wallMs() },
    queues: works.map(({ queue }) => queue.name),
    slots: Object.fromEntries(works.map(({ queue, slots }) => [queue.name, slots])),
    connections: all.reduce((sum, one) => sum + membersOf(one).length, 0),
    holds: true,
    pauses: true,
    keepsOrder: true,
    ...(settings.read === 'poll' ? { polls: true } : {}),
    ...(settings.dispatches ? { dispatches: true } : {}),
  };
}

/** The channels that the worker listens to already, or those of a connection of their own, which is closed with the worker. */
function lazyChannels(known: Channels | undefined, open: () => Redis, giveUp: AbortSignal): () => Channels {
  let channels = known;
  return () => {
    if (channels) return channels;
    const subscriber = open();
    giveUp.addEventListener('abort', () => close(subscriber), { once: true });
    if (giveUp.aborted) close(subscriber);
    channels = new Channels(subscriber);
    return channels;
  };
}

/** All queues at the same time; then what they share. */
async function handOver(parts: Shared | undefined, endMs: number, giveUp: AbortController): Promise<void> {
  if (!parts) return;
  const { heartbeat, extender, served } = parts;
  await Promise.all(served.map((one) => one.stop(endMs)));
  giveUp.abort();
  await extender.stop();
  await heartbeat.stop();
  await heartbeat.leave();
  await Promise.all(served.map((one) => one.leave()));
}
