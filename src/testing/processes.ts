/**
 * The processes of a kit, and their life: up before time begins, still while it stands, at work when it passes.
 *
 *  start − 1 min   worker and daemon start       the calls of clients wait
 *  start           both are up, time stands      calls are carried out; what they tell the processes is kept for them
 *  advance         time passes                   what is due runs, as in production
 */
import type { Client } from '../client/client.ts';
import { createScheduleChain } from '../client/jobs/scheduling.ts';
import type { Job } from '../job/job.ts';
import { type Queue, queueOf } from '../job/queue.ts';
import type { SharedLimitOptions } from '../job/shared-limit.ts';
import type { Clock } from '../kernel/clock.ts';
import { type DurationInput, durationMs } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import type { Redis } from '../redis/connection/connect.ts';
import type { ScheduleInput } from '../schedule/input.ts';
import { createSubscriber, type Subscriber } from '../worker/broadcast/subscriber.ts';
import { checkDelivery } from '../worker/options.ts';
import { checkHandlers, type Handlers, type Middleware, type QueueHandlers } from '../worker/run/handlers.ts';
import type { Chains } from '../worker/worker.ts';
import { runInline } from './inline.ts';
import { Ledger } from './ledger.ts';
import { type Run, Stage, waitedFor } from './play.ts';
import {
  AGE_MS,
  chainInside,
  createKitClient,
  createKitWorker,
  createMovers,
  createWorld,
  type World,
} from './services.ts';
import { VirtualTime } from './time.ts';

interface ProcessesParts {
  readonly startMs: number;
  readonly handlers: Handlers;
  readonly schedules: Readonly<Record<string, ScheduleInput>>;
  readonly queues?: readonly Queue[] | undefined;
  readonly limits?: Readonly<Record<string, SharedLimitOptions>> | undefined;
  readonly lasts?: ((job: Job<unknown>) => DurationInput) | undefined;
  readonly random?: (() => number) | undefined;
  readonly inline?: boolean | undefined;
}

/** So long before time begins they start: then no pass is so young that the next one would have to wait. */
const UP_MS = 60_000;

export class Processes {
  readonly time: VirtualTime;
  readonly clock: Clock;
  readonly ledger = new Ledger();
  readonly client: Client;
  readonly commands: Redis;
  readonly #parts: ProcessesParts;
  readonly #queues: ReadonlyMap<string, Queue>;
  readonly #stage: Stage;
  readonly #world: World;
  readonly #movers: ReturnType<typeof createMovers>;
  readonly #worker: ReturnType<typeof createKitWorker>;
  readonly #chains: Chains;
  readonly #middlewares: Middleware[] = [];
  readonly #subscribers: Pick<Subscriber, 'use'>[] = [];
  readonly #begun: Promise<void>;
  /** What was begun is over before time passes. */
  #going: Promise<unknown>;

  constructor(parts: ProcessesParts) {
    const { startMs, handlers, lasts = () => 0, random = () => 0.5, inline = false } = parts;
    this.#parts = parts;
    this.#queues = knownIn(parts);
    const time = new VirtualTime(startMs - UP_MS, () => this.#world.tellHeads());
    const nowMs = () => Math.max(startMs, time.nowMs);
    this.time = time;
    this.clock = { ...time.clock, wallMs: nowMs, monotonicMs: nowMs };
    const lastsMs = inline ? undefined : (job: Job<unknown>) => durationMs(lasts(job), 'lasts');
    const stage = new Stage(time, lastsMs, (queue, id) => this.ledger.lastOf(queue, id));
    this.#stage = stage;
    this.#world = createWorld(time, this.ledger);
    const { redis } = this.#world;
    this.#chains = { handle: chainInside(stage), schedule: createScheduleChain() };
    this.#movers = createMovers(redis, time);
    this.commands = this.#movers.commands;
    const queueOf = (name: string) => this.knownAs(name);
    this.#worker = createKitWorker({
      ...{ redis, time, handlers, queueOf, random },
      chains: this.#chains,
      inline,
    });
    if (this.#worker) stage.hear(this.#worker.events);
    const around = createScheduleChain();
    this.client = seenSoon(createKitClient(redis, this.clock, around), time);
    if (inline) {
      const { ledger, commands } = this;
      const own = { time, ledger, commands, client: createKitClient(redis, this.clock) };
      for (const chain of [around, this.#chains.schedule]) runInline(chain, own);
    }
    this.#begun = this.#begin();
    this.#begun.catch(() => undefined);
    this.#going = this.#begun;
    for (const middleware of handlers.use) this.use(middleware);
  }

  get runs(): readonly Run[] {
    return this.#stage.runs;
  }

  /** The definition that counts for a name. */
  knownAs(name: string): Queue {
    return this.#queues.get(name) ?? queueOf(name);
  }

  async #begin(): Promise<void> {
    const { time } = this;
    try {
      await this.#movers.define(this.#parts.limits ?? {});
      await this.#worker?.start();
      await this.#movers.start([...this.#queues.values()]);
      await time.quiet();
    } finally {
      time.close();
      time.skipTo(this.#parts.startMs);
      this.#world.welcome();
    }
    for (const [name, input] of Object.entries(this.#parts.schedules)) await this.client.schedules.put(name, input);
  }

  /** Does it when the processes are up, and before time passes. */
  next<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#going.then(work);
    // A kit that could not begin says so to each who waits for it, not to the first alone.
    this.#going = done.then(
      () => undefined,
      () => this.#begun,
    );
    this.#going.catch(() => undefined);
    return done;
  }

  use(middleware: Middleware): void {
    this.#middlewares.push(middleware);
    for (const one of [this.#chains.handle, this.#chains.schedule, ...this.#subscribers]) one.use(middleware);
  }

  subscribe<Data>(queue: Queue<Data>, given: QueueHandlers<NoInfer<Data>>): () => void {
    const { name, jobs, broadcast } = queueOf(queue);
    if (!broadcast?.isOn) {
      throw new DuestreamError('bad-config', `queue ${name} is no broadcast: define it with broadcast: true`);
    }
    checkHandlers(name, given as QueueHandlers<never>, jobs);
    const { redis } = this.#world;
    const subscriber = createSubscriber(waitedFor(queue, this.time), given, { redis, clock: this.clock });
    this.#stage.hear(subscriber.events);
    subscriber.use({ handle: (job, context, inner) => this.#stage.play(inner, job as Job<never>, context) });
    this.#middlewares.forEach(subscriber.use);
    this.#subscribers.push(subscriber);
    this.next(() => subscriber.start()).catch(() => undefined);
    return () => void this.next(() => subscriber.stop()).catch(() => undefined);
  }

  /** Time passes up to a moment. */
  async passed(untilMs: number): Promise<void> {
    await this.#going;
    await this.time.advanceTo(untilMs);
  }
}

/** What is set by hand is seen by all, as in production half a minute later. */
function seenSoon(client: Client, time: VirtualTime): Client {
  const { queues } = client;
  const thenSeen =
    <Given extends readonly unknown[], T>(call: (...given: Given) => Promise<T>) =>
    async (...given: Given): Promise<T> => {
      const done = await call(...given);
      time.lookSoon();
      return done;
    };
  return { ...client, queues: { ...queues, set: thenSeen(queues.set), unset: thenSeen(queues.unset) } };
}

/** Definitions by their names. @throws DuestreamError `bad-input` for a queue that cannot have its handlers */
function knownIn({ handlers, queues = [] }: ProcessesParts): ReadonlyMap<string, Queue> {
  const coded = queues.map((queue, at) => queueOf(queue, `queues[${at}]`));
  const known = new Map([...handlers.queues, ...coded].map((queue) => [queue.name, queue]));
  for (const [name, onAbandoned] of Object.entries(handlers.onAbandoned)) {
    checkDelivery((known.get(name) ?? queueOf(name)).delivery, { windowMs: AGE_MS, onAbandoned });
  }
  return known;
}
