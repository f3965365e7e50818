/**
 * The test kit: jobs, retries and schedules in virtual time, without Redis and without waiting. A year of schedules
 * or a ladder of three days passes as fast as the handlers run.
 *
 * Options, delivery, time-outs, budgets, backoff, compensation, schedules and clock changes are decided by the very code
 * of the product. Limits, groups and priorities hold as in Redis. Not played are crashes, several workers and lost replies: those are the product's business, and its own tests show them.
 *
 * @module duestream-testing
 */

import type { Scheduled } from '../client/calls/scheduled.ts';
import type { Client } from '../client/client.ts';
import { type CloseOptions, type Closing, notGated, OPEN, parseClosing } from '../client/groups/rules.ts';
import { createScheduleChain } from '../client/jobs/scheduling.ts';
import type { Job } from '../job/job.ts';
import type { ScheduleOptions } from '../job/options.ts';
import { defineQueue, type Queue, type QueueOptions, queueOf, type Untyped } from '../job/queue.ts';
import { gateWords, parseSettings } from '../job/queue-settings.ts';
import { checkNames } from '../kernel/checks.ts';
import { type DurationInput, durationMs, type InstantInput, instantMs } from '../kernel/duration.ts';
import type { ScheduleInput } from '../schedule/input.ts';
import { checkDelivery } from '../worker/options.ts';
import {
  defineHandlers,
  type HandlerCalls,
  type HandlerMap,
  type Handlers,
  isHandlers,
  type Middleware,
  type QueueHandlers,
} from '../worker/run/handlers.ts';
import { createHandleChain } from '../worker/run/middleware.ts';
import { createAgenda, virtualClock } from './agenda.ts';
import { createKitClient } from './client.ts';
import { createJobBook, type JobBook, type TestJob } from './jobs.ts';
import type { Run } from './kept.ts';
import { createScheduleBook } from './schedules.ts';
import { createSubscriptions, servedBy } from './served.ts';

export type { Run, TestJob };

/** What `createTestKit` takes. */
export interface TestKitOptions {
  /** What `defineHandlers` returned, or the map that it takes. */
  readonly handlers: Handlers | HandlerMap<Readonly<Record<string, Untyped>>>;
  /** Definitions that count for their queues, as those of a worker do; those of `handlers` count too. */
  readonly queues?: readonly Queue[] | undefined;
  /** The moment at which time begins. Default 2026-01-01T00:00:00Z. */
  readonly start?: InstantInput | undefined;
  /** Schedules by name, as in a file or in `client.schedules.put`. */
  readonly schedules?: Readonly<Record<string, ScheduleInput>> | undefined;
  /**
   * How long the run of a job lasts in virtual time, which matters to schedules that overlap and to limits of what runs at once.
   * One that lasts longer than the time-out of its job or its queue is timed out. It ends then, if its handler has looked at its
   * signal; any other goes on for as long as it lasts, 5 s more at most (the default of `abortGrace`), and keeps its place. Default 0.
   */
  readonly lasts?: ((job: Job<unknown>) => DurationInput) | undefined;
  /** What jitter follows from, 0 up to 1. Default 0.5, always. */
  readonly random?: (() => number) | undefined;
  /** Handlers run at once when a job is scheduled, whatever its due time and the limits of its queue; retries too. Default false. */
  readonly inline?: boolean | undefined;
}

/** As in the definition of a queue. */
type Limits = Pick<QueueOptions, 'rate' | 'concurrency' | 'perGroup' | 'groups' | 'fair'>;

/** What `duestream queues set`, `pause`, `resume`, `close` and `open` do; they take hold when time passes. */
export interface TestQueues {
  /**
   * Sets limits of a queue, also while its jobs run; what is left out stays as it is.
   *
   * @throws DuestreamError `bad-input`
   * @example kit.queues.set('imports', { rate: '10/s', perGroup: 1 });
   */
  set(queue: Queue<unknown> | string, limits: Limits): void;
  /** What comes due waits, and what runs goes on. @returns whether the queue went on until now */
  pause(queue: Queue<unknown> | string, reason?: string): boolean;
  /** @returns whether the queue was paused */
  resume(queue: Queue<unknown> | string): boolean;
  /**
   * Lets nobody of a queue with limits through for some time; what was let through before starts all the same. Single groups are
   * closed by `kit.client.groups.close`.
   *
   * @returns whether it is closed for longer than before
   * @throws DuestreamError `bad-input`, also for a queue that is not gated
   */
  close(queue: Queue<unknown> | string, options: CloseOptions): boolean;
  /** @returns whether the queue was closed @throws DuestreamError `bad-input` for a queue that is not gated */
  open(queue: Queue<unknown> | string): boolean;
}

/** Jobs, retries and schedules in virtual time: what `createTestKit` returns. */
export interface TestKit {
  /**
   * A client of this kit, for code that is given one: all that a client has, with the replies and the refusals of a real one,
   * in virtual time. What the kit ends it remembers for ever, as with a done window without end.
   */
  readonly client: Client;
  /** Schedules a job, with the options of a client. */
  schedule<Data>(queue: Queue<Data> | string, data: Data, options?: ScheduleOptions): Promise<Scheduled>;
  /** Cancels a job; one that runs is settled as cancelled instead of tried again. */
  cancel(queue: Queue<unknown> | string, id: string): 'cancelled' | 'requested' | 'over' | 'unknown';
  /**
   * Gets every job of a broadcast queue from now on, as a process with `createSubscriber` does; nothing is ever missed here.
   *
   * @returns ends the subscription
   * @throws DuestreamError `bad-config` for a queue that is no broadcast
   * @example
   * const prices = defineQueue<{ cents: number }>('prices', { broadcast: true });
   * const end = kit.subscribe(prices, (job) => console.log(job.data.cents));
   */
  subscribe<Data>(queue: Queue<Data>, handlers: QueueHandlers<NoInfer<Data>>): () => void;
  /** How much of a queue runs at once, and whether it rests. */
  readonly queues: TestQueues;
  /** As `use` of a worker: around handlers, and around what they schedule. Those of `handlers` count too. */
  use(middleware: Middleware): void;
  /** Lets time pass: everything that comes due happens, in its order, and has ended when this resolves. */
  advance(by: DurationInput): Promise<void>;
  /** Lets time pass up to an instant, which is not in the past. @throws DuestreamError `bad-input` */
  advanceTo(instant: InstantInput): Promise<void>;
  /** Goes to the next thing that comes due. @returns whether there was one */
  next(): Promise<boolean>;
  /** Time passes while nothing runs, as when every daemon and worker is down. What was due is late. */
  outage(lasting: DurationInput): void;
  /** The moment it is, in epoch ms. */
  readonly nowMs: number;
  /** Every start that has ended, in the order of their ends. */
  readonly runs: readonly Run[];
  /** Every job there was. */
  jobs(filter?: { readonly queue?: string; readonly state?: TestJob['state'] }): readonly TestJob[];
}

/**
 * @throws DuestreamError `bad-input` for handlers, queues or schedules that the product would refuse
 * @example
 * const kit = createTestKit({ handlers: { reminders: async (job) => send(job.data) } });
 * await kit.schedule('reminders', { to: 'a@example.org' }, { delay: '3d' });
 * await kit.advance('3d');
 * expect(kit.runs).toHaveLength(1);
 */
export function createTestKit(options: TestKitOptions): TestKit {
  checkNames(options, KIT_OPTIONS, 'createTestKit', 'bad-input');
  const { start = '2026-01-01T00:00:00Z', lasts = () => 0, random = () => 0.5, inline = false } = options;
  const handlers = handlersIn(options.handlers);
  const agenda = createAgenda(instantMs(start, 'start'));
  const coded = (options.queues ?? []).map((queue, at) => queueOf(queue, `queues[${at}]`));
  const known = new Map([...handlers.queues, ...coded].map((queue) => [queue.name, queue]));
  const knownAs = (name: string) => known.get(name) ?? defineQueue(name);
  const runs: Run[] = [];
  const chains = { handle: createHandleChain(), schedule: createScheduleChain() };
  handlers.use.forEach(use);
  const clock = virtualClock(agenda.nowMs);
  for (const name of Object.keys(handlers.onAbandoned)) {
    checkDelivery(knownAs(name).delivery, { windowMs: WINDOW_MS, onAbandoned: handlers.onAbandoned[name] });
  }
  const subscriptions = createSubscriptions(chains.handle.around);
  const jobs = createJobBook({
    agenda,
    random,
    runs,
    inline,
    clock,
    queueOf: (given) => known.get(given.name) ?? given,
    servedBy: servedBy(handlers, chains.handle.around),
    subscribersOf: subscriptions.of,
    calls: () => calls,
    lastsMs: (job) => durationMs(lasts(job), 'lasts'),
  });
  // A worker declares the queues that it serves.
  for (const name of Object.keys(handlers.map)) jobs.declare(knownAs(name));
  const schedules = createScheduleBook({ agenda, jobs, namespace: 'duestream', queueOf: knownAs });
  const client = createKitClient(jobs, schedules.parts, { clock });
  const calls: HandlerCalls = createKitClient(jobs, schedules.parts, { clock, chain: chains.schedule });
  for (const [name, input] of Object.entries(options.schedules ?? {})) schedules.put(name, input);

  function use(middleware: Middleware): void {
    chains.handle.use(middleware);
    chains.schedule.use(middleware);
  }

  return {
    client,
    use,
    subscribe: subscriptions.subscribe,
    queues: queuesOver(jobs, knownAs),
    schedule: (queue, data, given = {}) =>
      client.schedule(typeof queue === 'string' ? knownAs(queue) : queue, data, given),
    cancel: (queue, id) => jobs.cancel(queueOf(queue).name, id).kind,
    advance: (by) => agenda.advanceTo(agenda.nowMs() + durationMs(by, 'advance')),
    advanceTo: (instant) => agenda.advanceTo(instantMs(instant, 'advanceTo')),
    async next() {
      const nextMs = agenda.nextMs();
      if (nextMs !== undefined) await agenda.advanceTo(Math.max(nextMs, agenda.nowMs()));
      return nextMs !== undefined;
    },
    outage: (lasting) => agenda.skipTo(agenda.nowMs() + durationMs(lasting, 'outage')),
    get nowMs() {
      return agenda.nowMs();
    },
    runs,
    jobs: (wanted = {}) => jobs.all().filter((job) => isWanted(job, wanted)),
  };
}

function queuesOver({ gates, declare }: JobBook, knownAs: (name: string) => Queue): TestQueues {
  const declared = (queue: Queue<unknown> | string) => declare(knownAs(queueOf(queue).name));
  const isChanged = (queue: Queue, closing: Closing) => {
    const reply = gates.close(queue, closing);
    if (reply === 'ungated') throw notGated(queue);
    return reply === 'ok';
  };
  return {
    set(queue, limits) {
      checkNames(limits, gateWords, 'queues.set', 'bad-input');
      gates.set(declared(queue), parseSettings(limits));
    },
    pause: (queue, reason) => gates.pause(declared(queue), reason),
    resume: (queue) => gates.resume(declared(queue)),
    close(queue, options) {
      return isChanged(declared(queue), { group: '', ...parseClosing(options) });
    },
    open: (queue) => isChanged(declared(queue), { group: '', ...OPEN }),
  };
}

type Wanted = NonNullable<Parameters<TestKit['jobs']>[0]>;

function isWanted(job: TestJob, { queue, state }: Wanted): boolean {
  return (queue === undefined || job.queue === queue) && (state === undefined || job.state === state);
}

const KIT_OPTIONS: readonly string[] = Object.keys({
  handlers: 0,
  queues: 0,
  start: 0,
  schedules: 0,
  lasts: 0,
  random: 0,
  inline: 0,
} satisfies Record<keyof TestKitOptions, number>);

/** Any that remembers: the kit forgets nothing. */
const WINDOW_MS = 600_000;

function handlersIn(given: TestKitOptions['handlers']): Handlers {
  return isHandlers(given) ? given : defineHandlers(given);
}
