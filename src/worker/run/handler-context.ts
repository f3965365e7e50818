/** What a handler is given beside its job: types alone. `context.ts` makes it. */
import type { Client } from '../../client/client.ts';
import type { LogFields } from '../../job/log-lines.ts';
import type { Log } from '../../kernel/log.ts';
import type { CommitJobOptions } from './commit-jobs.ts';

/** What a handler can do to other jobs. */
export type HandlerCalls = Pick<Client, 'schedule' | 'reschedule' | 'cancel'>;

/** What a handler gets beside its job. */
export interface HandlerContext extends HandlerCalls {
  /** Aborts when the job's time is up, a cancel was requested, the lease was lost, or the worker shuts down. */
  readonly signal: AbortSignal;
  /**
   * The fencing number of this start, as a decimal text. It only grows: across retries, replays and reuse of the id. A
   * store that keeps the newest token it saw can refuse the effects of an older start.
   */
  readonly token: string;
  /** How often handlers of this job were started, this start included. */
  readonly attempt: number;
  /** `{queue:partition}`: a key with these braces lives on the job's slot and can take part in `commit`. */
  readonly tag: string;
  /**
   * Asks for a Redis command to be carried out in the same step in which the job is completed: either both happen or
   * none. It is sent when the handler has returned; if Redis refuses it, the start counts as failed.
   *
   * @throws DuestreamError `bad-input` for a key elsewhere, or in a queue that delivers at most once.
   * @example context.commit('HINCRBY', `${context.tag}:balances`, account, 10);
   */
  readonly commit: (command: string, key: string, ...args: readonly (string | number)[]) => void;
  /**
   * Schedules one more job of the same queue in the step in which this one is completed: either both happen or none. It goes
   * into the partition of this job, so its id is made here; without `delay` and `at` it is due when this one ends.
   *
   * @throws DuestreamError `bad-input` for an `id`, for data that the queue refuses, for a bare job, or in a queue that
   * delivers at most once; after the handler has ended
   * @example const { id } = await context.commitJob({ step: 2 }, { delay: '3d' });
   */
  readonly commitJob: (
    data: unknown,
    options?: CommitJobOptions,
  ) => Promise<{ readonly id: string; readonly dueMs: number }>;
  /**
   * Says how far the handler is, for people who look at the job while it runs: `client.get`, `duestream show`, the HTTP API,
   * and the page of the job. It never waits: Redis is told at once, and then about once a second; the newest call counts. It does
   * nothing after the handler has ended or lost its lease, nor in a queue that delivers at most once or is broadcast.
   *
   * @param fraction from 0 to 1
   * @param text at most 200 bytes without control characters
   * @throws DuestreamError `bad-input`
   * @example context.progress(0.4, 'row 400');
   */
  readonly progress: (fraction: number, text?: string) => void;
  /**
   * Says how many turns of the rate this start has really used, in all: the number takes the place of the `cost` of the job, and of
   * what was said before. More turns are owed from now on, fewer are given back as far as nobody has waited for them yet. It resolves to
   * whether that counts: not in a queue without `costs`, nor after the handler has ended or lost its lease, nor in a queue that
   * delivers at most once or is broadcast, nor where Redis does not answer for ten seconds. None of that fails the job.
   *
   * @param turns 0 to 1000
   * @throws DuestreamError `bad-input`
   * @example await context.spent(Math.min(1000, Math.ceil(answer.usage.tokens / 1000)));
   */
  readonly spent: (turns: number) => Promise<boolean>;
  /**
   * As a producer does, on the worker's connection. A handler may run twice: give the job an id that follows from this one,
   * so that the second run finds it there. It counts at once, whatever becomes of this job; `durability` is not for it.
   *
   * @example await context.schedule(reminders, { invoice }, { id: `remind:${job.id}`, delay: '3d' });
   */
  readonly schedule: HandlerCalls['schedule'];
  /** As a producer does. @example await context.reschedule(reminders, `remind:${job.id}`, { delay: '1d' }); */
  readonly reschedule: HandlerCalls['reschedule'];
  /** As a producer does. @example await context.cancel(reminders, `remind:${job.id}`); */
  readonly cancel: HandlerCalls['cancel'];
  /** Epoch ms, by this machine's clock, at which the signal aborts because the time is up. */
  readonly deadlineMs: number;
  /**
   * Called, it keeps a line with the job, for people who look at it: `client.get`, `duestream show`, the HTTP API and the page of the
   * job, for as long as the job, its end or its dead letter is kept. The newest 100 lines and 8 KiB of a job stay. It never waits:
   * lines go with the next call that the worker makes for the job. What its queue redacts is not in them. It does nothing after the
   * handler has ended or lost its lease, nor in a queue that delivers at most once or is broadcast.
   *
   * Its methods write to the log of the worker, with the queue, the job's id and the attempt already filled in.
   *
   * @throws DuestreamError `bad-input` for what is no text, or fields that are no object
   * @example context.log('paid', { invoice: 42 });
   * @example context.log.info({ invoice: 42 }, 'paid');
   */
  readonly log: HandlerLog;
}

/** What `context.log` is: a function that keeps a line with the job, and the log of the worker. */
export interface HandlerLog extends Log {
  (text: string, fields?: LogFields): void;
}
