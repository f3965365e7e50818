/**
 * The calls that put jobs into queues, as the compiler sees them: of a queue whose jobs have names, the name decides about the
 * data. `schedulingOf` in `schedule-calls.ts` carries them out.
 */
import type { ScheduleOptions } from '../../job/options.ts';
import type { Queue, QueueInput } from '../../job/queue.ts';
import type { InputIn, NamedData, NameIn } from '../../job/types.ts';
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
