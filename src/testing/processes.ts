/**
 * The processes of a kit, and their life: up before time begins, still while it stands, at work when it passes.
 *
 *  start − 1 min   worker and daemon start       the calls of clients wait
 *  start           both are up, time stands      calls are carried out; what they tell the processes is kept for them
 *  advance         time passes                   what is due runs, as in production
 */
import { createScheduleChain } from '../client/jobs/scheduling.ts';
import type { Job } from '../job/job.ts';
import { defineQueue, type Queue, queueOf } from '../job/queue.ts';
import type { Clock } from '../kernel/clock.ts';
import { type DurationInput, durationMs } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import type { ScheduleInput } from '../schedule/input.ts';
import { createSubscriber, type Subscriber } from '../worker/broadcast/subscriber.ts';
import { checkDelivery } from '../worker/options.ts';
import { checkHandlers, type Handlers, type Middleware, type QueueHandlers } from '../worker/run/handlers.ts';
import { runInline } from './inline.ts';
import { Ledger } from './ledger.ts';
import { Stage, waitedFor } from './play.ts';
import { AGE_MS, chainInside, createKitClient, createKitWorker, createMovers, createWorld } from './services.ts';
import { VirtualTime } from './time.ts';

interface ProcessesParts {
  readonly startMs: number;
  readonly handlers: Handlers;
  readonly schedules: Readonly<Record<string, ScheduleInput>>;
  readonly queues?: readonly Queue[] | undefined;
  readonly lasts?: ((job: Job<unknown>) => DurationInput) | undefined;
  readonly random?: (() => number) | undefined;
  readonly inline?: boolean | undefined;
}

export type Processes = ReturnType<typeof createProcesses>;

/** So long before time begins they start: then no pass is so young that the next one would have to wait. */
const UP_MS = 60_000;

export function createProcesses(parts: ProcessesParts) {
  const { startMs, handlers, lasts = () => 0, random = () => 0.5, inline = false } = parts;
  const knownQueues = knownIn(parts);
  const knownAs = (name: string) => knownQueues.get(name) ?? defineQueue(name);
  const time: VirtualTime = new VirtualTime(startMs - UP_MS, () => world.tellHeads());
  const nowMs = () => Math.max(startMs, time.nowMs);
  const clock: Clock = { ...time.clock, wallMs: nowMs, monotonicMs: nowMs };
  const ledger = new Ledger();
  const lastsMs = inline ? undefined : (job: Job<unknown>) => durationMs(lasts(job), 'lasts');
  const stage = new Stage(time, lastsMs, (queue, id) => ledger.lastOf(queue, id));
  const world = createWorld(time, ledger);
  const { redis } = world;
  const handle = chainInside((handler) => stage.around(handler));
  const schedule = createScheduleChain();
  const movers = createMovers(redis, time);
  const worker = createKitWorker({ redis, time, handlers, queueOf: knownAs, random, handle, schedule });
  if (worker) stage.hear(worker.events);
  const around = createScheduleChain();
  const client = createKitClient(redis, clock, around);
  if (inline) {
    const own = { time, ledger, commands: movers.commands, client: createKitClient(redis, clock) };
    for (const chain of [around, schedule]) runInline(chain, own);
  }
  const middlewares: Middleware[] = [];
  const subscribers: Pick<Subscriber, 'use'>[] = [];
  /** What was begun is over before time passes. */
  let going: Promise<unknown> = begin();
  going.catch(() => undefined);
  handlers.use.forEach(use);

  async function begin(): Promise<void> {
    try {
      await worker?.start();
      await movers.start([...knownQueues.values()]);
      await time.quiet();
    } finally {
      time.close();
      time.skipTo(startMs);
      world.welcome();
    }
    for (const [name, input] of Object.entries(parts.schedules)) await client.schedules.put(name, input);
  }

  function next<T>(work: () => Promise<T>): Promise<T> {
    const done = going.then(work);
    going = done.catch(() => undefined);
    return done;
  }

  function use(middleware: Middleware): void {
    middlewares.push(middleware);
    for (const one of [handle, schedule, ...subscribers]) one.use(middleware);
  }

  function subscribe<Data>(queue: Queue<Data>, given: QueueHandlers<NoInfer<Data>>): () => void {
    const { name, jobs, broadcast } = queueOf(queue);
    if (!broadcast?.isOn) {
      throw new DuestreamError('bad-config', `queue ${name} is no broadcast: define it with broadcast: true`);
    }
    checkHandlers(name, given as QueueHandlers<never>, jobs);
    const subscriber = createSubscriber(waitedFor(queue, time), given, { redis, clock });
    stage.hear(subscriber.events);
    subscriber.use({ handle: (job, context, inner) => stage.play(inner, job as Job<never>, context) });
    middlewares.forEach(subscriber.use);
    subscribers.push(subscriber);
    next(() => subscriber.start()).catch(() => undefined);
    return () => void next(() => subscriber.stop()).catch(() => undefined);
  }

  return {
    time,
    clock,
    ledger,
    client,
    commands: movers.commands,
    runs: stage.runs,
    knownAs,
    use,
    subscribe,
    next,
    /** Time passes up to a moment. */
    async passed(untilMs: number): Promise<void> {
      await going;
      await time.advanceTo(untilMs);
    },
  };
}

/** Definitions by their names. @throws DuestreamError `bad-input` for a queue that cannot have its handlers */
function knownIn({ handlers, queues = [] }: ProcessesParts): ReadonlyMap<string, Queue> {
  const coded = queues.map((queue, at) => queueOf(queue, `queues[${at}]`));
  const known = new Map([...handlers.queues, ...coded].map((queue) => [queue.name, queue]));
  for (const [name, onAbandoned] of Object.entries(handlers.onAbandoned)) {
    checkDelivery((known.get(name) ?? defineQueue(name)).delivery, { windowMs: AGE_MS, onAbandoned });
  }
  return known;
}
