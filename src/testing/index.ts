/**
 * The test kit: duestream in virtual time, without Redis and without waiting. A year of schedules or a ladder of three days
 * passes as fast as the handlers run.
 *
 * The daemon's movers, a worker, the client and the Lua scripts are those of production. In the place of Redis is a model of
 * it in this process (`redis/`, with a machine for Lua in `lua/`), and in the place of the clock one that is told to go on
 * (`time.ts`). So there is nothing here that says what becomes of a job.
 *
 * @module duestream-testing
 */
import type { Scheduled } from '../client/calls/scheduled.ts';
import type { Client } from '../client/client.ts';
import type { Cancelled } from '../client/jobs/cancel.ts';
import type { Queues } from '../client/queues/queues.ts';
import type { Job } from '../job/job.ts';
import type { ScheduleOptions } from '../job/options.ts';
import type { Queue, Untyped } from '../job/queue.ts';
import type { SharedLimitOptions } from '../job/shared-limit.ts';
import { asConfig, checkNames, isPromise } from '../kernel/checks.ts';
import { type DurationInput, durationMs, type InstantInput, instantMs } from '../kernel/duration.ts';
import { plainSchedule, type ScheduleInput } from '../schedule/input.ts';
import { handAfter, successor } from '../schedule/progress.ts';
import { parseScheduleName } from '../schedule/schedule.ts';
import {
  defineHandlers,
  type HandlerMap,
  type Handlers,
  isHandlers,
  type Middleware,
  type QueueHandlers,
} from '../worker/run/handlers.ts';
import type { TestJob } from './ledger.ts';
import type { Run } from './play.ts';
import { Processes } from './processes.ts';

export type { Run, TestJob };

/** What `createTestKit` takes. */
export interface TestKitOptions {
  /** What `defineHandlers` returned, or the map that it takes. */
  readonly handlers: Handlers | HandlerMap<Readonly<Record<string, Untyped>>>;
  /** Definitions that count for their queues, as those of a worker do; those of `handlers` count too. */
  readonly queues?: readonly Queue[] | undefined;
  /** The moment at which time begins. Default 2026-01-01T00:00:00Z. */
  readonly start?: InstantInput | undefined;
  /** Limits that several queues share, by name. */
  readonly limits?: Readonly<Record<string, SharedLimitOptions>> | undefined;
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

/** Jobs, retries and schedules in virtual time: what `createTestKit` returns. */
export interface TestKit {
  /**
   * A client of this kit, for code that is given one. While time stands still its calls are answered, and no job starts. What
   * has ended is remembered for ever, as with a done window without end.
   */
  readonly client: Client;
  /** Schedules a job, with the options of a client. */
  schedule<Data>(queue: Queue<Data> | string, data: Data, options?: ScheduleOptions): Promise<Scheduled>;
  /** Cancels a job; one that runs is settled as cancelled instead of tried again. */
  cancel(queue: Queue<unknown> | string, id: string): Promise<Cancelled['status']>;
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
  /** `client.queues`: how much of a queue runs at once, and whether it rests. What is set holds when time passes. */
  readonly queues: Queues;
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
 * @throws DuestreamError `bad-config` for handlers, queues or schedules that the product would refuse
 * @example
 * const kit = createTestKit({ handlers: { reminders: async (job) => send(job.data) } });
 * await kit.schedule('reminders', { to: 'a@example.org' }, { delay: '3d' });
 * await kit.advance('3d');
 * expect(kit.runs).toHaveLength(1);
 */
export function createTestKit(options: TestKitOptions): TestKit {
  const kit = asConfig(() => processesOf(options));
  const { time, ledger, client, clock } = kit;
  return {
    client,
    use: (middleware) => kit.use(middleware),
    subscribe: (queue, given) => kit.subscribe(queue, given),
    queues: client.queues,
    schedule: (queue, data, given = {}) =>
      client.schedule(typeof queue === 'string' ? kit.knownAs(queue) : queue, data, given),
    cancel: async (queue, id) => (await client.cancel(queue, id)).status,
    advance: (by) => kit.passed(clock.wallMs() + durationMs(by, 'advance')),
    advanceTo: (instant) => kit.passed(instantMs(instant, 'advanceTo')),
    async next() {
      const before = ledger.changes;
      await kit.passed(clock.wallMs());
      while (ledger.changes === before) {
        const nextMs = time.nextMs();
        if (nextMs === undefined || nextMs > time.nowMs + FAR_MS) return false;
        await kit.passed(nextMs);
      }
      return true;
    },
    outage: (lasting) => time.skipTo(clock.wallMs() + durationMs(lasting, 'outage')),
    get nowMs() {
      return clock.wallMs();
    },
    get runs() {
      return kit.runs;
    },
    jobs: (wanted = {}) => ledger.all().filter((job) => isWanted(job, wanted)),
  };
}

function processesOf(options: TestKitOptions): Processes {
  checkNames(options, KIT_OPTIONS, 'createTestKit');
  const { start = '2026-01-01T00:00:00Z', schedules = {} } = options;
  const startMs = instantMs(start, 'start');
  for (const [name, input] of Object.entries(schedules)) checkSchedule(name, input, startMs);
  return new Processes({ ...options, startMs, schedules, handlers: handlersIn(options.handlers) });
}

/** What is that far away is the end of a lease. */
const FAR_MS = 10 ** 11;

/** What is wrong with a schedule of an option is said at once, as far as that is known without waiting. */
function checkSchedule(name: string, given: ScheduleInput, nowMs: number): void {
  const input = plainSchedule(given);
  if (isPromise(input)) input.catch(() => undefined);
  else
    successor(
      undefined,
      { name: parseScheduleName(name), input, source: 'call', hand: handAfter(undefined, input), nowMs },
      undefined,
    );
}

type Wanted = NonNullable<Parameters<TestKit['jobs']>[0]>;

function isWanted(job: TestJob, { queue, state }: Wanted): boolean {
  return (queue === undefined || job.queue === queue) && (state === undefined || job.state === state);
}

const KIT_OPTIONS: readonly string[] = Object.keys({
  handlers: 0,
  queues: 0,
  start: 0,
  limits: 0,
  schedules: 0,
  lasts: 0,
  random: 0,
  inline: 0,
} satisfies Record<keyof TestKitOptions, number>);

function handlersIn(given: TestKitOptions['handlers']): Handlers {
  return isHandlers(given) ? given : defineHandlers(given);
}
