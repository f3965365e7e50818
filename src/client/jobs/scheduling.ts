/**
 * The calls that put jobs into queues, as the compiler sees them: of a queue whose jobs have names, the name decides about the
 * data. `schedulingOf` in `schedule-calls.ts` carries them out.
 */
import type { ScheduleOptions } from '../../job/options.ts';
import type { Queue, QueueInput, Untyped } from '../../job/queue.ts';
import type { InputIn, NamedData, NameIn } from '../../job/types.ts';
import { checkFunction, checkNames } from '../../kernel/checks.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { DurabilityOption } from '../calls/durability.ts';
import type { Scheduled } from '../calls/scheduled.ts';

/** One job of `scheduleMany`. */
export type BulkJob<Data> = ScheduleOptions & { readonly data: Data };

/** Options of a job of a queue with `jobs`: its name is one of theirs. */
export type NamedOptions<Name> = Omit<ScheduleOptions, 'name'> & NameIn<'name', Name>;

/** One job of `scheduleMany` in a queue with `jobs`. */
export type NamedJob<Jobs> = {
  readonly [Name in keyof Jobs]: NamedOptions<Name> & { readonly data: InputIn<Jobs, Name> };
}[keyof Jobs];

/** The calls that put jobs into queues: those of a producer, and of a handler's context. */
export interface Scheduling {
  /**
   * Schedules one job. Resolves when Redis has it. Calls of one turn of the event loop share script calls, so a
   * thousand of them at once cost a few round trips; each has its own result.
   *
   * Of a queue with `jobs`, the name is one of theirs, and the data is checked: `bad-input`, and nothing is sent.
   *
   * @throws DuestreamError `exists` with `ifExists: 'error'`; after an outage `cause` is `Unconfirmed` and says the
   * id and the due time with which the same call can be repeated.
   * @example
   * await client.schedule(emails, { to, template }, { delay: '2m', id: `welcome:${user}`, name: 'welcome' });
   */
  schedule<Jobs, Name extends keyof Jobs>(
    queue: Queue<NamedData<Jobs>>,
    data: InputIn<NoInfer<Jobs>, Name>,
    options: Omit<ScheduleOptions, 'name'> & DurabilityOption & { readonly name: Name },
  ): Promise<Scheduled>;
  /** Of a queue with `jobs`, one of the name `default`, which need not be said. */
  schedule<Jobs extends { readonly default: unknown }>(
    queue: Queue<NamedData<Jobs>>,
    data: InputIn<NoInfer<Jobs>, 'default'>,
    options?: NamedOptions<'default'> & DurabilityOption,
  ): Promise<Scheduled>;
  /** Of a queue without `jobs`: any name, and data of the type of the queue. */
  schedule<Data>(queue: QueueInput<Data>, data: Data, options?: ScheduleOptions & DurabilityOption): Promise<Scheduled>;
  /**
   * Schedules up to a million jobs, results in their order. All are checked first: if one is wrong, the error names its
   * place and nothing is sent. The list is not one transaction: after an outage some may be scheduled.
   *
   * @throws DuestreamError whose `cause` is `Unconfirmed`: `confirmed` results and the `unconfirmed` jobs.
   * @example
   * await client.scheduleMany(emails, users.map((user) => ({ data: { to: user.mail }, delay: '1d', id: `day1:${user.id}` })));
   */
  scheduleMany<Jobs>(
    queue: Queue<NamedData<Jobs>>,
    jobs: readonly NamedJob<NoInfer<Jobs>>[],
    options?: DurabilityOption,
  ): Promise<readonly Scheduled[]>;
  /** Of a queue without `jobs`: any names, and data of the type of the queue. */
  scheduleMany<Data>(
    queue: QueueInput<Data>,
    jobs: readonly BulkJob<Data>[],
    options?: DurabilityOption,
  ): Promise<readonly Scheduled[]>;
}

// What stands around the calls that schedule: each middleware sees the whole call, may change its jobs, refuse it, or
// look at its results. It stands outside of everything else, so what it adds is checked and encoded like what the
// caller gave. Without one, a call goes its way without a look.

/** One call of `schedule`, which has one job, or of `scheduleMany`. */
export interface ScheduleCall {
  readonly queue: Queue;
  /** Data beside options, as in `scheduleMany`. */
  readonly jobs: readonly BulkJob<Untyped>[];
}

/** Returns what `next` resolves to: a result per job, in their order. To refuse a call, throw. */
export type ScheduleMiddleware = (
  call: ScheduleCall,
  next: (call: ScheduleCall) => Promise<readonly Scheduled[]>,
) => Promise<readonly Scheduled[]>;

/** What a producer takes; `handle` is for workers, so that one object can be given to both. */
export interface ClientMiddleware {
  readonly schedule?: ScheduleMiddleware | undefined;
}

/** @throws DuestreamError `bad-input` */
export function checkMiddleware(middleware: object): void {
  checkNames(middleware, ['schedule', 'handle'], 'a middleware', 'bad-input');
  const given = Object.entries(middleware).filter(([, part]) => part !== undefined);
  for (const [name, part] of given) checkFunction(part, `${name} of a middleware`);
  if (given.length > 0) return;
  throw new DuestreamError('bad-input', 'a middleware has neither schedule nor handle; allowed: one of them, or both');
}

/** Those of one producer, the first one outermost. */
export interface ScheduleChain {
  readonly use: (middleware: ClientMiddleware) => void;
  readonly isEmpty: () => boolean;
  readonly run: (call: ScheduleCall, last: ScheduleNext) => Promise<readonly Scheduled[]>;
}

type ScheduleNext = (call: ScheduleCall) => Promise<readonly Scheduled[]>;

export function createScheduleChain(): ScheduleChain {
  const all: ScheduleMiddleware[] = [];
  return {
    use(middleware) {
      checkMiddleware(middleware);
      if (middleware.schedule) all.push(middleware.schedule);
    },
    isEmpty: () => all.length === 0,
    async run(call, last) {
      const through = all.reduceRight<ScheduleNext>(
        (next, middleware) => async (given) => middleware(given, once(next)),
        last,
      );
      return through(call);
    },
  };
}

/** A second `next` would schedule everything twice. */
function once(next: ScheduleNext): ScheduleNext {
  let isCalled = false;
  return async (call) => {
    if (isCalled) throw new DuestreamError('bad-input', 'a middleware called next twice; allowed: once per call');
    isCalled = true;
    return next(call);
  };
}
