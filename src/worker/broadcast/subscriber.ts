/**
 * A process that gets every job of a broadcast queue: one reader per partition, a connection for commands, one that hears
 * nudges, and a heartbeat that says how far behind it is.
 */
import { hostname } from 'node:os';
import { registryAnswers, withReadRetry } from '../../client/calls/retry.ts';
import { createScheduleChain } from '../../client/jobs/scheduling.ts';
import { logEvents } from '../../job/event-log.ts';
import { createEmitter, type Emitter, type EventSource } from '../../job/events.ts';
import { newJobId } from '../../job/job-id.ts';
import type { Queue, Untyped } from '../../job/queue.ts';
import { createAbort } from '../../kernel/abort.ts';
import { checkObject } from '../../kernel/checks.ts';
import type { Clock } from '../../kernel/clock.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { createLife } from '../../kernel/life.ts';
import { createLoop, type Loop } from '../../kernel/loop.ts';
import { version } from '../../kernel/version.ts';
import { Channels } from '../../redis/channels.ts';
import { memberOf, membersOf } from '../../redis/connection/cluster/members.ts';
import { openCommands, openSubscriber, type Redis } from '../../redis/connection/connect.ts';
import {
  createOpening,
  type Opening,
  START_WITHIN_MS,
  startPolicy,
  whileStarting,
} from '../../redis/connection/opening.ts';
import { pauseAfter } from '../../redis/connection/outage.ts';
import { createServers } from '../../redis/connection/server-clock.ts';
import { isBroadcast, type PartitionRef } from '../../redis/keys.ts';
import { BEGINNING, type CastEntry, castAfter, castCount, newestCast, wentBack } from '../../redis/read/broadcast.ts';
import { checkSchema } from '../../redis/schema.ts';
import { noteLag } from '../../redis/scripts/presence.ts';
import { declarationOf, declareQueue, partitionsOf } from '../../redis/scripts/queues.ts';
import type { Pace } from '../fetch/polling-fetcher.ts';
import { createHeartbeat } from '../recover/heartbeat.ts';
import { createHandlerCalls } from '../run/context.ts';
import type { Middleware, PlainHandlers, QueueHandlers } from '../run/handlers.ts';
import { createHandleChain } from '../run/middleware.ts';
import { type CastRunner, createCastRunner } from './cast-run.ts';
import { type Missed, readSubscriber, type SubscriberOptions, type SubscriberSettings } from './options.ts';

export type { Missed, SubscriberOptions };

/** A process that gets every job of a broadcast queue: what `createSubscriber` returns. */
export interface Subscriber {
  /**
   * Connects and begins: every job that is sent from when this resolves on is handled. Twice is fine. A start that fails
   * stops it and leaves nothing behind.
   *
   * @throws DuestreamError `bad-config` for a queue that is no broadcast · `unavailable` · `refused` · `wrong-schema` ·
   * `stopped`
   */
  readonly start: () => Promise<void>;
  /** Connects unless that has happened, and resolves when Redis answers. @throws DuestreamError `unavailable`, `refused`, `stopped` */
  readonly ready: () => Promise<void>;
  /** Stops: running handlers have `shutdown` to end, then their signal aborts. Twice is fine. */
  readonly stop: () => Promise<void>;
  /** `stop`, for `await using subscriber = createSubscriber(…)`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>;
  /** As `use` of a worker. @throws DuestreamError `bad-input` for what is no middleware */
  readonly use: (middleware: Middleware) => void;
  /** `job.started`, `job.completed`, `job.failed`, `jobs.missed`, and what is told of Redis. */
  readonly events: EventSource;
  /** How many jobs were sent that this process has not begun yet, as Redis knows it now. @throws DuestreamError `unavailable`, `stopped` */
  readonly lag: () => Promise<number>;
  /** Connected, and every partition was read lately: for a readiness probe. */
  readonly isReady: () => boolean;
  /** Handlers that run now. */
  readonly running: () => number;
  /** The name of its queue. */
  readonly queue: string;
}

/** How long handlers have to end after they were told to stop. */
const END_MS = 500;

/**
 * Gets every job of a broadcast queue, in this process: `createSubscriber(queue, handlers, options)`. Each process that
 * subscribes gets each job once, in the order of their partition, one at a time per partition. It connects at `start`.
 *
 * A job is done when it was sent: what a handler throws is told by the event `job.failed` and not tried again. Jobs that
 * were sent while this process was too far behind, or was not there, are missed: `onMissed` says so.
 *
 * @param queue a queue defined with `broadcast`, or the name of one
 * @param handlers a function for all jobs, or an object of functions by job name
 * @throws DuestreamError `bad-config` for an option that there is not, or one outside its range
 * @example
 * const prices = defineQueue<{ item: string; cents: number }>('prices', { broadcast: true });
 * const subscriber = createSubscriber(prices, (job) => console.log(job.data.item), { redis: 'redis://127.0.0.1:6379' });
 * await subscriber.start();
 */
export function createSubscriber<Data = Untyped>(
  queue: string,
  handlers: PlainHandlers<Data>,
  options: SubscriberOptions,
): Subscriber;
export function createSubscriber<Data = Untyped>(
  queue: Queue<Data> | string,
  handlers: QueueHandlers<NoInfer<Data>>,
  options: SubscriberOptions,
): Subscriber;
export function createSubscriber(
  queue: Queue | string,
  handlers: QueueHandlers<never>,
  options: SubscriberOptions,
): Subscriber {
  checkObject(options, 'createSubscriber');
  return subscriberOf(readSubscriber(queue, handlers, options));
}

interface Chains {
  readonly handle: ReturnType<typeof createHandleChain>;
  readonly schedule: ReturnType<typeof createScheduleChain>;
}

function subscriberOf(settings: SubscriberSettings): Subscriber {
  const { redis, queue, clock, log } = settings;
  const events = createEmitter();
  const unlog = logEvents(events, log);
  const chains: Chains = { handle: createHandleChain(), schedule: createScheduleChain() };
  const giveUp = createAbort();
  const opening = createOpening({
    waitMs: START_WITHIN_MS,
    open: (): readonly [Redis, Redis] => [
      openCommands({ redis, name: `subscriber:${queue.name}` }),
      openSubscriber({ redis, name: `calls:${queue.name}` }),
    ],
    furnish: async (connections) => wire(settings, connections, { events, chains, giveUp: giveUp.signal }),
  });
  const life = createLife<void>({
    what: 'subscriber',
    async begin(signal) {
      const { commands, readers, heartbeat } = await opening.use(signal);
      const starting = { clock, signal };
      await whileStarting('subscriber', () => checkSchema(commands, settings.namespace), starting);
      await whileStarting('subscriber', readers.follow, starting);
      await whileStarting('subscriber', heartbeat.start, starting);
      signal.throwIfAborted();
      commands.on('ready', readers.doubt).on('ready', heartbeat.wake);
      readers.start();
    },
    async end(begun) {
      await shutDown(settings, { begun, opening, giveUp });
      unlog();
    },
    atFailure: undefined,
  });
  events.on('schema.refused', () => void life.stop());
  return {
    start: life.start,
    stop: () => life.stop(),
    events,
    queue: queue.name,
    [Symbol.asyncDispose]: () => life.stop(),
    use(middleware) {
      chains.handle.use(middleware);
      chains.schedule.use(middleware);
    },
    async ready() {
      life.check();
      const { commands } = await opening.connected(life.signal);
      await registryAnswers(commands, settings.namespace, startPolicy(clock, life.signal));
    },
    async lag() {
      life.check();
      const { readers } = await opening.connected(life.signal);
      return withReadRetry('lag', readers.behind, startPolicy(clock, life.signal));
    },
    isReady: () => life.state() === 'running' && isReading(opening),
    running: () => opening.opened()?.runner.running() ?? 0,
  };
}

type Parts = ReturnType<typeof wire>;

const isReading = (opening: Opening<Parts>): boolean => {
  const { commands, readers } = opening.opened() ?? {};
  return commands?.status === 'ready' && readers?.isReady() === true;
};

function wire(
  settings: SubscriberSettings,
  [commands, subscriber]: readonly [Redis, Redis],
  { events, chains, giveUp }: { readonly events: Emitter; readonly chains: Chains; readonly giveUp: AbortSignal },
) {
  const { queue, namespace, clock, handlers, beatTtlMs } = settings;
  const serverOf = createServers(commands, clock);
  const calls = createHandlerCalls(commands, settings, { chain: chains.schedule, giveUp });
  const log = settings.log.child({ queue: queue.name });
  const runner = createCastRunner({
    queue,
    handlers,
    around: chains.handle.around,
    calls,
    clock,
    serverOf,
    events,
    log,
  });
  const readers = createCastReaders({
    ...settings,
    redis: commands,
    wakeChannel: new Channels(subscriber),
    runner,
    events,
  });
  const identity = {
    id: `s-${newJobId()}`,
    role: 'subscriber' as const,
    host: hostname(),
    pid: process.pid,
    version,
    startedMs: clock.wallMs(),
    queues: [queue.name],
    connections: membersOf(commands).length + membersOf(subscriber).length,
  };
  const heartbeat = createHeartbeat({
    redis: commands,
    namespace,
    identity,
    beatTtlMs,
    server: serverOf(),
    clock,
    events,
    async onBeat() {
      await readers.follow();
      await noteLag(commands, { namespace, identity, beatTtlMs, lag: await readers.behind() });
    },
  });
  return { commands, readers, runner, heartbeat };
}

async function shutDown(
  { clock, shutdownMs }: SubscriberSettings,
  {
    begun,
    opening,
    giveUp,
  }: { readonly begun: Promise<void>; readonly opening: Opening<Parts>; readonly giveUp: AbortController },
): Promise<void> {
  const { readers, runner, heartbeat } = opening.opened() ?? {};
  const hangUp = () => {
    giveUp.abort();
    opening.close();
  };
  let over: (() => void) | undefined;
  const tooLong = new Promise<void>((resolve) => {
    over = resolve;
  });
  const timers = [
    clock.timer(shutdownMs, () => runner?.abort()),
    clock.timer(shutdownMs + END_MS, () => {
      hangUp();
      over?.();
    }),
  ];
  await begun;
  await Promise.race([Promise.all([readers?.stop(), heartbeat?.stop()]), tooLong]);
  for (const callOff of timers) callOff();
  await heartbeat?.leave();
  hangUp();
}

// What one partition of a broadcast queue sends, read in order by one process, from a place that it remembers.
//
//  K:work ──nudge──▶ read what comes after the place ──▶ each job: missed any? ─▶ handler ─▶ the place moves on
//  tick ───────────▶       │ nothing
//                          ▼
//                    is the place still there? (after every reconnection, and every few seconds)
//
// What must always hold: a job is handed to the handler once, in the order in which it was sent, or it is told that it
// was missed. The place is found once, as the newest entry there is, so that nothing is passed over between two reads.
// Each entry has a number that grows by one: a jump is what the bounds of the stream took away. A number that was seen
// before, or a place that is not there any more among older ones, means that a primary took over which lost writes.

interface CastReaderParts {
  readonly redis: Redis;
  readonly ref: PartitionRef;
  readonly wakeChannel: Channels;
  readonly runner: CastRunner;
  /** Whether what is there already is read too. */
  readonly fromOldest: boolean;
  readonly onMissed: ((missed: Missed) => void) | undefined;
  readonly pace: Pace;
  readonly clock: Clock;
  readonly events: Emitter;
}

interface CastReader {
  readonly ref: PartitionRef;
  /** Finds the place; what is sent from then on is read. May be repeated. */
  readonly begin: () => Promise<void>;
  readonly start: () => void;
  /** Ends after the job whose handler runs. */
  readonly stop: () => Promise<void>;
  /** Connected again: the place is looked at first. */
  readonly doubt: () => void;
  /** How many jobs were sent and not handled yet. */
  readonly behind: () => Promise<number>;
  readonly pass: () => Promise<number>;
  readonly lastProgressMs: () => number;
}

/** How often it is looked whether the place is still there, and whether the connection for nudges lives. */
const CHECK_MS = 5000;
/** Jobs per read: their records are held in memory until their turn. */
const PAGE = 20;

interface Reading extends CastReaderParts {
  /** The last entry that was read; undefined until it is known. */
  place: string | undefined;
  /** Its number; undefined when the first entry that comes decides. */
  count: number | undefined;
  stopping: boolean;
  doubtful: boolean;
  checkedMs: number;
}

function createCastReader(parts: CastReaderParts): CastReader {
  const { redis, ref, wakeChannel, clock, events } = parts;
  const reading: Reading = {
    ...parts,
    place: undefined,
    count: undefined,
    stopping: false,
    doubtful: false,
    checkedMs: clock.monotonicMs(),
  };
  const run = () => pass(reading);
  const probe = () => memberOf(redis, ref.keys.meta).ping();
  const who = `subscriber of ${ref.queue}:${ref.partition}`;
  const loop: Loop = createLoop({ who, pass: run, probe, clock, events, pauseAfter });
  let forget: (() => void) | undefined;
  return {
    ref,
    begin: () => begin(reading),
    start() {
      forget = wakeChannel.listen(ref.keys.work, loop.wake);
      loop.start();
    },
    async stop() {
      reading.stopping = true;
      forget?.();
      await loop.stop();
    },
    doubt() {
      reading.doubtful = true;
      loop.wake();
    },
    async behind() {
      if (reading.count === undefined) return 0;
      return Math.max(0, (await castCount(redis, ref)) - reading.count);
    },
    pass: run,
    lastProgressMs: loop.lastProgressMs,
  };
}

/** The number first: what is sent between the two reads is then seen as an entry. */
async function begin(reading: Reading): Promise<void> {
  const { redis, ref, fromOldest } = reading;
  if (reading.place !== undefined) return;
  const sent = await castCount(redis, ref);
  const newest = fromOldest ? undefined : await newestCast(redis, ref);
  reading.count = fromOldest ? undefined : (newest?.count ?? sent);
  reading.place = newest?.entry ?? BEGINNING;
}

async function pass(reading: Reading): Promise<number> {
  const { redis, ref, runner, wakeChannel, clock, pace } = reading;
  await begin(reading);
  const nowMs = clock.monotonicMs();
  if (reading.doubtful || nowMs - reading.checkedMs >= CHECK_MS) await check(reading, nowMs);
  const entries = await castAfter(redis, ref, { after: reading.place ?? BEGINNING, limit: PAGE });
  for (const entry of entries) {
    if (reading.stopping) return 0;
    arrive(reading, entry);
    await runner.run(ref, entry);
  }
  if (entries.length > 0) return 0;
  return wakeChannel.isDeaf() ? pace.deafMs : pace.tickMs;
}

/** The place moves on before the handler runs: whatever comes of it, the job is not handed over twice. */
function arrive(reading: Reading, { entry, count }: CastEntry): void {
  const before = reading.count;
  reading.place = entry;
  reading.count = count;
  if (before === undefined || count === before + 1) return;
  tell(reading, count > before ? { reason: 'bounds', count: count - before - 1 } : LOST);
}

const LOST = { reason: 'lost-writes', count: undefined } as const;

/** A place that these data never had: what comes from now on is read, from the newest entry that there is. */
async function check(reading: Reading, nowMs: number): Promise<void> {
  const { redis, ref, place, count, wakeChannel } = reading;
  reading.doubtful = false;
  reading.checkedMs = nowMs;
  wakeChannel.mend();
  if (place === undefined || count === undefined) return;
  try {
    if (!(await wentBack(redis, ref, { after: place, count }))) return;
    const sent = await castCount(redis, ref);
    const newest = await newestCast(redis, ref);
    reading.place = newest?.entry ?? BEGINNING;
    reading.count = newest?.count ?? sent;
    tell(reading, LOST);
  } catch (error) {
    reading.doubtful = true;
    throw error;
  }
}

function tell({ ref, events, onMissed }: Reading, missed: Pick<Missed, 'reason' | 'count'>): void {
  const { queue, partition } = ref;
  const { reason, count } = missed;
  events.emit('jobs.missed', { queue, reason, ...(count === undefined ? {} : { count }) });
  onMissed?.({ queue, partition, ...missed });
}

/** The readers of all partitions of a broadcast queue. They follow its layout as workers do. */
interface CastReaders {
  /** Declares the queue unless it is declared, and finds the place in each partition. May be repeated. */
  readonly follow: () => Promise<void>;
  readonly start: () => void;
  readonly stop: () => Promise<void>;
  readonly doubt: () => void;
  /** Jobs that were sent and not handled yet. */
  readonly behind: () => Promise<number>;
  readonly isReady: () => boolean;
}

interface ReadersParts extends Omit<SubscriberSettings, 'redis'> {
  readonly redis: Redis;
  readonly wakeChannel: Channels;
  readonly runner: CastRunner;
  readonly events: Emitter;
}

/** A partition that was not read for so long is not ready: a few reads without an answer. */
const STUCK_MS = 10_000;

function createCastReaders(parts: ReadersParts): CastReaders {
  const { redis, namespace, queue, clock, runner } = parts;
  let readers: readonly CastReader[] = [];
  let isStarted = false;
  let isStopped = false;

  async function follow(): Promise<void> {
    const { name } = queue;
    const isRepeated = readers.length > 0;
    const layout = await declareQueue(redis, { ...declarationOf(namespace, queue), isRepeated });
    const refs = partitionsOf(namespace, layout);
    if (readers.length === 0 && !refs.every(isBroadcast)) throw ofWorkers(name);
    const isFirst = readers.length === 0;
    const next = refs.map((ref) => {
      const known = readers.find((one) => one.ref.keys.cast === ref.keys.cast);
      // What a partition has sent that was not there before is new to everybody.
      return known ?? createCastReader({ ...parts, ref, fromOldest: parts.fromOldest || !isFirst });
    });
    await Promise.all(next.map((one) => one.begin()));
    if (isStopped) return;
    const gone = readers.filter((one) => !next.includes(one));
    const come = next.filter((one) => !readers.includes(one));
    readers = next;
    if (isStarted) for (const one of come) one.start();
    await Promise.all(gone.map((one) => one.stop()));
  }

  return {
    follow,
    start() {
      isStarted = true;
      for (const one of readers) one.start();
    },
    async stop() {
      isStopped = true;
      await Promise.all(readers.map((one) => one.stop()));
    },
    doubt() {
      for (const one of readers) one.doubt();
    },
    async behind() {
      const each = await Promise.all(readers.map((one) => one.behind()));
      return each.reduce((sum, one) => sum + one, 0);
    },
    // A handler that runs keeps its partition from being read.
    isReady: () =>
      runner.running() > 0 || readers.every((one) => clock.monotonicMs() - one.lastProgressMs() < STUCK_MS),
  };
}

const ofWorkers = (queue: string): DuestreamError =>
  new DuestreamError(
    'bad-config',
    `queue ${queue} is no broadcast: its jobs go to workers; define it with broadcast: true, or use createWorker`,
  );
