/**
 * What a handler is given: its job, and a context beside it. Made lazily where it costs: most handlers never look at the
 * signal, the deadline or the log, and never call Redis themselves.
 */

import type { Plan } from '../../client/calls/plan.ts';
import { settingsOf } from '../../client/calls/settings.ts';
import { jobsOver } from '../../client/client.ts';
import type { ScheduleChain } from '../../client/jobs/scheduling.ts';
import { createCallsOn } from '../../client/session.ts';
import { idOf, type JobRecord } from '../../job/codec.ts';
import type { Content } from '../../job/content.ts';
import { parseSpent } from '../../job/cost.ts';
import type { Job } from '../../job/job.ts';
import type { Life } from '../../job/judge.ts';
import { NO_HEADERS } from '../../job/labels.ts';
import { type LogFields, parseLogLine } from '../../job/log-lines.ts';
import { type AbortReason, type JobProgress, parseProgress } from '../../job/outcome.ts';
import { lifeMarkOf } from '../../job/record-header.ts';
import { createAbort } from '../../kernel/abort.ts';
import type { Clock } from '../../kernel/clock.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Log } from '../../kernel/log.ts';
import type { RedisInput } from '../../redis/connection/address.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { ARGUMENTS_MAX } from '../../redis/scripts/bytes.ts';
import type { Effect } from '../../redis/scripts/replies.ts';
import type { BatchJob, BatchJobParts } from './batch.ts';
import { effectsOf, planCommitted } from './commit-jobs.ts';
import type { HandlerCalls, HandlerContext, HandlerLog } from './handlers.ts';

/** One start of a job as its handler sees it. */
export function startedJob(
  queue: string,
  start: { readonly life: Life; readonly record: JobRecord; readonly dueMs: number },
): Job<never> {
  return new StartedJob(queue, start);
}

/** The same job with what is its own in a batch, where one call has many jobs and no context of each. */
export function inBatch(job: Job<never>, own: BatchJobParts): BatchJob<never> {
  return StartedJob.inBatch(job, own);
}

/**
 * A class: one is made for each job, copying would cost fifteen times as much, and few handlers ask for the mark. The handler of a
 * batch gets the same jobs.
 */
class StartedJob implements BatchJob<never> {
  readonly id: string;
  readonly bare: boolean;
  readonly queue: string;
  readonly name: string;
  /** The client and the worker share the queue's definition; what is in the record is what JSON carried. */
  readonly data: never;
  readonly headers: Job['headers'];
  readonly set: Job['set'];
  readonly target: Job['target'];
  readonly dueMs: number;
  readonly askedDueMs: number;
  readonly attempt: number;
  readonly failures: number;
  readonly crashes: number;
  readonly history: Job['history'];
  readonly #record: string;
  #own: BatchJobParts | undefined = undefined;

  static inBatch(job: Job<never>, own: BatchJobParts): BatchJob<never> {
    if (!(#own in job)) throw new Error(`job ${job.id} of a batch was not started here`);
    job.#own = own;
    return job;
  }

  constructor(queue: string, { life, record, dueMs }: Parameters<typeof startedJob>[1]) {
    const { member, started } = life;
    const { id, bare } = idOf(member);
    this.id = id;
    this.bare = bare;
    this.queue = queue;
    this.name = record.name;
    this.data = record.data as never;
    this.headers = record.headers ?? NO_HEADERS;
    this.set = record.setEnds;
    this.target = record.target;
    this.dueMs = dueMs;
    this.askedDueMs = record.askedDueMs;
    this.attempt = started.attempts;
    this.failures = started.failures;
    this.crashes = started.crashes;
    this.history = started.history;
    this.#record = started.record;
  }

  get mark(): string {
    return lifeMarkOf(this.#record);
  }

  get token(): string {
    return this.#inBatch.token;
  }

  get signal(): AbortSignal {
    return this.#inBatch.signal;
  }

  get log(): BatchJobParts['log'] {
    return this.#inBatch.log;
  }

  get spent(): BatchJobParts['spent'] {
    return this.#inBatch.spent;
  }

  get #inBatch(): BatchJobParts {
    if (this.#own === undefined) throw new Error(`job ${this.id} is in no batch; what it asks for is in the context`);
    return this.#own;
  }
}

/** An AbortController that is only made when somebody looks at the signal. */
export class LazyAbort {
  reason: AbortReason | undefined = undefined;
  #controller: AbortController | undefined = undefined;

  /** The handler has looked at its signal, so it may hear of the abort. */
  get isWatched(): boolean {
    return this.#controller !== undefined;
  }

  /** The first reason counts. */
  abort(why: AbortReason): void {
    this.reason ??= why;
    this.#tell();
  }

  get signal(): AbortSignal {
    this.#controller ??= createAbort();
    this.#tell();
    return this.#controller.signal;
  }

  #tell(): void {
    if (this.reason !== undefined) this.#controller?.abort(new Error(`job aborted: ${this.reason}`));
  }
}

/** The effects a handler asked for, until its start has ended. */
export class Effects {
  list: Effect[] | undefined = undefined;
  /** Jobs that come into being with the end. */
  jobs: Plan[] | undefined = undefined;
  /** How many jobs were asked for. */
  asked = 0;
  /** Of commands and jobs alike: what they take of the one call that carries them. */
  words = 0;
  /** From when the delay of the last one was counted. */
  nowMs = 0;
  isClosed = false;

  /** @throws DuestreamError `bad-input` where the call would have too many arguments */
  take(effects: readonly Effect[], what: string): void {
    let { words } = this;
    for (const { args } of effects) words += args.length + WORDS_AROUND;
    if (words > WORDS_MAX) {
      throw new DuestreamError(
        'bad-input',
        `${what} makes ${words} words that are to be committed; allowed: ${WORDS_MAX}, all commands and jobs of one job together`,
      );
    }
    this.words = words;
  }

  close(): readonly Effect[] {
    this.isClosed = true;
    return this.list ?? NONE;
  }
}

const NONE: readonly Effect[] = [];

export interface ContextParts {
  readonly job: Job<unknown>;
  readonly ref: PartitionRef;
  /** That the job is a member of. */
  readonly set: string | undefined;
  readonly lazyAbort: LazyAbort;
  readonly token: string;
  /** Monotonic ms at which the time is up. */
  readonly deadlineMs: number;
  readonly clock: Clock;
  readonly log: Log;
  /** Of the worker, for all its jobs. */
  readonly calls: () => HandlerCalls;
  /** What is said of the data of jobs that are committed, and the clock by which they are due. */
  readonly queue: Content;
  readonly serverOf: (ref: PartitionRef) => { readonly nowMs: () => number };
  /** Where `commit` collects; undefined where a job cannot commit. */
  readonly effects: Effects | undefined;
  /** Hears of progress, log lines and turns of a rate; undefined where the job is over before its handler runs. */
  readonly reporter: Reporter | undefined;
}

export interface Reporter {
  readonly report: (progress: JobProgress) => void;
  readonly say: (text: string, fields: LogFields | undefined) => void;
  /** Whether it counts. */
  readonly spend: (turns: number) => Promise<boolean>;
}

/** A class, unlike most of ours: one is made for each job, and what few handlers look at costs nothing until they do. */
export class JobContext implements HandlerContext {
  readonly token: string;
  readonly attempt: number;
  readonly #parts: ContextParts;

  constructor(parts: ContextParts) {
    this.token = parts.token;
    this.attempt = parts.job.attempt;
    this.#parts = parts;
  }

  get tag(): string {
    const { ref } = this.#parts;
    return `{${ref.queue}:${ref.partition}}`;
  }

  get signal(): AbortSignal {
    return this.#parts.lazyAbort.signal;
  }

  get deadlineMs(): number {
    const { clock, deadlineMs } = this.#parts;
    return clock.wallMs() + deadlineMs - clock.monotonicMs();
  }

  get log(): HandlerLog {
    const { job, log, reporter } = this.#parts;
    const say = (given: string, said?: LogFields): void => {
      const { text, fields } = parseLogLine(given, said);
      reporter?.say(text, fields);
    };
    return Object.assign(say, log.child({ job: job.id, name: job.name, attempt: job.attempt }));
  }

  get progress(): HandlerContext['progress'] {
    const { reporter, ref, serverOf } = this.#parts;
    return (given, said) => {
      const { fraction, text } = parseProgress(given, said);
      reporter?.report({ fraction, text, atMs: Math.round(serverOf(ref).nowMs()) });
    };
  }

  get spent(): HandlerContext['spent'] {
    const { reporter } = this.#parts;
    return async (given) => {
      const turns = parseSpent(given);
      return (await reporter?.spend(turns)) ?? false;
    };
  }

  get schedule(): HandlerCalls['schedule'] {
    return this.#parts.calls().schedule;
  }

  get reschedule(): HandlerCalls['reschedule'] {
    return this.#parts.calls().reschedule;
  }

  get cancel(): HandlerCalls['cancel'] {
    return this.#parts.calls().cancel;
  }

  get commit(): HandlerContext['commit'] {
    return (command, key, ...args) => collect(this.#parts.effects, { command, key, args }, this.tag);
  }

  get commitJob(): HandlerContext['commitJob'] {
    return async (data, options = {}) => {
      const { job, token, queue, ref, set, serverOf } = this.#parts;
      const effects = openIn(this.#parts.effects, 'commitJob');
      const nth = effects.asked;
      if (nth === JOBS_MAX) throw tooManyJobs();
      effects.asked += 1;
      // Never behind the job before it, whatever the clock does.
      effects.nowMs = Math.max(effects.nowMs, Math.round(serverOf(ref).nowMs()));
      const { nowMs } = effects;
      const plan = await planCommitted(data, options, { job, token, nth, queue, ref, set, nowMs });
      // The handler may have ended while a codec or a schema took its time.
      openIn(effects, 'commitJob').take(effectsOf(ref.keys, [plan]), 'commitJob');
      effects.jobs = [...(effects.jobs ?? []), plan];
      return { id: plan.id, dueMs: plan.dueMs };
    };
  }
}

function collect(given: Effects | undefined, effect: Effect, tag: string): void {
  const effects = openIn(given, 'commit');
  effects.list ??= [];
  if (effects.list.length >= EFFECTS_MAX) {
    throw new DuestreamError(
      'bad-input',
      `commit was called more than ${EFFECTS_MAX} times; allowed: ${EFFECTS_MAX} commands per job`,
    );
  }
  const checked = effectOf(effect, tag);
  effects.take([checked], 'commit');
  effects.list.push(checked);
}

/** @throws DuestreamError `bad-input` where nothing more can be committed */
function openIn(effects: Effects | undefined, what: 'commit' | 'commitJob'): Effects {
  if (!effects) {
    throw new DuestreamError(
      'bad-input',
      `${what} cannot be used in a queue that delivers at most once: its jobs are over before the handler runs`,
    );
  }
  if (effects.isClosed) throw new DuestreamError('bad-input', `${what} was called after the handler had ended`);
  return effects;
}

const tooManyJobs = () =>
  new DuestreamError(
    'bad-input',
    `commitJob was called more than ${JOBS_MAX} times; allowed: ${JOBS_MAX} jobs per job`,
  );

/** Most commands of one job, and most arguments of one command: they run inside one script, which blocks all others. */
const EFFECTS_MAX = 100;
const ARGS_MAX = 1000;
/** Most words of all that one job commits: all are in one call, and 100 are left for what else is in it. */
const WORDS_MAX = ARGUMENTS_MAX - 100;
/** A command is sent as its size, its name, its key and its arguments. */
const WORDS_AROUND = 3;
/** Most jobs that come into being with the end of one. */
const JOBS_MAX = 100;
const EFFECTS_KEY = /^[^{]*\{([^}]+)\}/;

function effectOf(effect: Effect, tag: string): Effect {
  if (!/^[A-Za-z]{2,20}(\.[A-Za-z]{2,20})?$/.test(effect.command)) {
    throw new DuestreamError(
      'bad-input',
      `commit's command is ${show(effect.command)}; allowed: the name of a Redis command`,
    );
  }
  if (`{${EFFECTS_KEY.exec(effect.key)?.[1] ?? ''}}` !== tag) {
    throw new DuestreamError(
      'bad-input',
      `commit's key is ${show(effect.key)}; allowed: a key whose first braces are context.tag, here ${tag}, so that it lives on the job's slot`,
    );
  }
  if (effect.args.length > ARGS_MAX) {
    throw new DuestreamError(
      'bad-input',
      `commit's command has ${effect.args.length} arguments; allowed: ${ARGS_MAX} after the key`,
    );
  }
  const wrong = effect.args.find((arg) => typeof arg !== 'string' && !Number.isFinite(arg));
  if (wrong === undefined) return effect;
  throw new DuestreamError('bad-input', `commit's argument is ${show(wrong)}; allowed: texts and finite numbers`);
}

const RETRY_BUDGET_MS = 10_000;

/**
 * What a handler can ask of Redis beside its own job: the calls of a client, on the worker's connection. They are made when a
 * handler first asks for them; a worker whose handlers never do has nothing of them.
 */
export function createHandlerCalls(
  commands: Redis,
  settings: {
    readonly redis: RedisInput;
    readonly namespace: string;
    readonly windowMs: number;
    readonly clock: Clock;
  },
  { chain, giveUp }: { readonly chain: ScheduleChain; readonly giveUp: AbortSignal },
): () => HandlerCalls {
  const { redis, namespace, windowMs, clock } = settings;
  let made: HandlerCalls | undefined;
  function make(): HandlerCalls {
    // A repeated call is recognised within the window only.
    const retryBudget = windowMs === 0 ? RETRY_BUDGET_MS : Math.min(RETRY_BUDGET_MS, windowMs / 2);
    const own = { ...settingsOf({ redis, namespace, clock, retryBudget, name: 'handlers' }), windowMs };
    return jobsOver(own, createCallsOn(commands, own, giveUp), chain);
  }
  return () => (made ??= make());
}
