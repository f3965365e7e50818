/**
 * A process that gets every job of a broadcast queue: one reader per partition, a connection for commands, one that hears
 * nudges, and a heartbeat that says how far behind it is.
 */

import { hostname } from 'node:os';
import { withReadRetry } from '../../client/calls/read-retry.ts';
import { createScheduleChain } from '../../client/jobs/middleware.ts';
import { createEmitter, type Emitter, type EventSource } from '../../job/events.ts';
import { newJobId } from '../../job/new-job-id.ts';
import type { Queue, Untyped } from '../../job/queue.ts';
import { createAbort } from '../../kernel/abort.ts';
import { checkObject } from '../../kernel/checks.ts';
import { createLife } from '../../kernel/life.ts';
import { version } from '../../kernel/version.ts';
import { membersOf } from '../../redis/connection/cluster/members.ts';
import { openCommands, openSubscriber, type Redis } from '../../redis/connection/connect.ts';
import { createOpening, type Opening } from '../../redis/connection/opening.ts';
import { createServers } from '../../redis/connection/server-clock.ts';
import { START_WITHIN_MS, startPolicy, whileStarting } from '../../redis/connection/starting.ts';
import { checkSchema } from '../../redis/schema.ts';
import { noteLag } from '../../redis/scripts/presence.ts';
import { WakeChannel } from '../fetch/wake-channel.ts';
import { createHeartbeat } from '../recover/heartbeat.ts';
import { createHandlerCalls } from '../run/context.ts';
import type { Middleware, PlainHandlers, QueueHandlers } from '../run/handlers.ts';
import { createHandleChain } from '../run/middleware.ts';
import { createCastReaders } from './cast-reader.ts';
import { createCastRunner } from './cast-run.ts';
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
  const { redis, queue, clock } = settings;
  const events = createEmitter();
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
    end: (begun) => shutDown(settings, { begun, opening, giveUp }),
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
      await withReadRetry('ready', () => commands.ping(), startPolicy(clock, life.signal));
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
    wakeChannel: new WakeChannel(subscriber),
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
