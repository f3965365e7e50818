/** How handlers are played: one after the other in real time, for as long in virtual time as their runs last; and what is told of each start. */
import type { Codec, StandardSchema } from '../job/content.ts';
import { parseSpent } from '../job/cost.ts';
import type { EventSource } from '../job/events.ts';
import type { Job } from '../job/job.ts';
import { parseLogLine } from '../job/log-lines.ts';
import { parseProgress } from '../job/outcome.ts';
import { type Queue, queueFrom } from '../job/queue.ts';
import { isPromise } from '../kernel/checks.ts';
import { turn } from '../kernel/clock.ts';
import { DuestreamError } from '../kernel/errors.ts';
import type { Effect } from '../redis/scripts/replies.ts';
import type { BatchCall } from '../worker/run/gathering.ts';
import type { Handler, HandlerContext } from '../worker/run/handlers.ts';
import type { VirtualTime } from './time.ts';

/** One start of one job. */
export interface Run {
  readonly id: string;
  readonly queue: string;
  readonly name: string;
  readonly data: unknown;
  /** Epoch ms of the start. */
  readonly atMs: number;
  readonly attempt: number;
  /** How the start ended. `failed`: delivered at most once, so the job is done all the same and not tried again. */
  readonly outcome: 'done' | 'failed' | 'retry' | 'defer' | 'dead' | 'cancelled';
  /** With `retry`, `failed` and `dead`: the message of what was thrown. */
  readonly error: string | undefined;
  /** What the handler asked to be committed. */
  readonly commits: readonly Effect[];
}

type Begun = Omit<Run, 'outcome' | 'error' | 'commits'> & { commits: Effect[] };

/** What a handler was told of its time. */
type Told = Pick<HandlerContext, 'signal' | 'deadlineMs'>;

/** What a handler has looked at, and whether it has ended. */
interface Seen {
  signal: AbortSignal | undefined;
  hasEnded: boolean;
}

const ended = (what: string) => new DuestreamError('bad-input', `${what} was called after the handler had ended`);

export class Stage {
  readonly runs: Run[] = [];
  readonly #time: VirtualTime;
  readonly #lastsMs: (job: Job<unknown>) => number;
  readonly #isInline: boolean;
  readonly #kept: (queue: string, id: string) => Pick<Run, 'data' | 'attempt'>;
  /** By queue and id: the starts that have not ended. */
  readonly #begun = new Map<string, Begun[]>();
  /** The handler that is called now, in real time. */
  #before: Promise<unknown> = Promise.resolve();

  /**
   * @param lastsMs undefined: handlers run in the calls of others
   * @param kept what the record of a job says
   */
  constructor(
    time: VirtualTime,
    lastsMs: ((job: Job<unknown>) => number) | undefined,
    kept: (queue: string, id: string) => Pick<Run, 'data' | 'attempt'>,
  ) {
    this.#kept = kept;
    this.#time = time;
    this.#lastsMs = lastsMs ?? (() => 0);
    this.#isInline = lastsMs === undefined;
  }

  /** Around everything that is called for a job. */
  around(handler: Handler<never>): Handler<never> {
    return (job: Job<never>, context: HandlerContext) => this.play((shown) => handler(job, shown), job, context);
  }

  /** What a worker tells of its jobs. */
  hear(events: EventSource): void {
    events.on('job.completed', (told) => this.#ended(told, 'done', undefined));
    events.on('job.failed', (told) => this.#ended(told, 'failed', told.error.message));
    events.on('job.retried', (told) => this.#ended(told, 'retry', told.error.message));
    events.on('job.deferred', (told) => this.#ended(told, 'defer', undefined));
    events.on('job.cancelled', (told) => this.#ended(told, 'cancelled', undefined));
    events.on('job.dead', (told) => this.#ended(told, 'dead', told.error.message));
  }

  #ended(
    { queue, id, name }: { queue: string; id: string; name: string },
    outcome: Run['outcome'],
    error: string | undefined,
  ) {
    const begun = this.#begun.get(`${queue} ${id}`);
    const run = begun?.shift();
    if (begun?.length === 0) this.#begun.delete(`${queue} ${id}`);
    if (!run) {
      // No handler was called for it.
      if (outcome !== 'dead' && outcome !== 'failed') return;
      const kept = this.#kept(queue, id);
      this.runs.push({ id, queue, name, atMs: this.#time.nowMs, ...kept, outcome, error, commits: [] });
      return;
    }
    this.runs.push({ ...run, outcome, error, commits: outcome === 'done' ? run.commits : [] });
  }

  async play(run: (context: HandlerContext) => unknown, job: Job<never>, context: HandlerContext): Promise<unknown> {
    const begun = this.#begins(job);
    const seen: Seen = { signal: undefined, hasEnded: false };
    const shown = shownContext(context, { begun, seen });
    return this.#inTurn(() => run(shown), { context, seen, lastsMs: this.#lastsMs(job) });
  }

  /** Around the handler of a batch, which is played once for all its jobs, for as long as the longest of them lasts. */
  aroundBatch(call: BatchCall): BatchCall {
    return (batch) => {
      for (const job of batch.jobs) this.#begins(job);
      const seen: Seen = { signal: undefined, hasEnded: false };
      const shown = new Proxy(batch, {
        get(target, part) {
          if (part === 'signal') seen.signal = target.signal;
          return Reflect.get(target, part, target);
        },
      });
      const lastsMs = Math.max(...batch.jobs.map((job) => this.#lastsMs(job)));
      return this.#inTurn(() => call(shown), { context: batch, seen, lastsMs });
    };
  }

  #begins(job: Job<never>): Begun {
    const { id, queue, name, attempt } = job;
    const { data } = this.#kept(queue, id);
    const begun: Begun = { id, queue, name, data, atMs: this.#time.nowMs, attempt, commits: [] };
    const key = `${queue} ${id}`;
    this.#begun.set(key, [...(this.#begun.get(key) ?? []), begun]);
    return begun;
  }

  /** Calls a handler when those before it have ended in real time, and lasts in virtual time. */
  async #inTurn(
    run: () => unknown,
    { context, seen, lastsMs }: { readonly context: Told; readonly seen: Seen; readonly lastsMs: number },
  ): Promise<unknown> {
    const time = this.#time;
    const startedMs = time.nowMs;
    const isTooLong = startedMs + lastsMs > context.deadlineMs;
    const before = this.#before;
    const handled = (async () => {
      if (!this.#isInline) await before.catch(() => undefined);
      return run();
    })();
    const over = () => {
      seen.hasEnded = true;
      return true;
    };
    const isOver = handled.then(over, over);
    const inReal = isTooLong ? before.then(() => Promise.race([isOver, turn()])) : isOver;
    this.#before = inReal;
    time.busy(inReal);
    await inReal;
    if (startedMs + lastsMs > time.nowMs)
      await this.#last(startedMs + lastsMs, { isOver, signalOf: () => seen.signal, context });
    return handled;
  }

  /** Until its time is over, or it has ended because it was told to. */
  #last(
    untilMs: number,
    { isOver, signalOf, context }: { isOver: Promise<boolean>; signalOf: () => AbortSignal | undefined; context: Told },
  ): Promise<void> {
    const time = this.#time;
    return new Promise((resolve) => {
      const watched = signalOf();
      // Whoever does not look at the signal does not hear of it.
      const signal = context.signal;
      const onAbort = () => {
        if (!watched && !signalOf()) return;
        const looked = Promise.race([isOver, turn().then(() => false)]);
        time.busy(looked);
        void looked.then((isIt) => isIt && done());
      };
      const callOff = time.at(untilMs, () => done());
      const done = () => {
        callOff();
        signal.removeEventListener('abort', onAbort);
        resolve();
      };
      signal.addEventListener('abort', onAbort);
      if (signal.aborted) onAbort();
    });
  }
}

/** The context as the handler sees it, which notes what the handler looks at and commits. */
function shownContext(
  context: HandlerContext,
  { begun, seen }: { readonly begun: Begun; readonly seen: Seen },
): HandlerContext {
  return new Proxy(context, {
    get(target, part) {
      if (part === 'signal') seen.signal = target.signal;
      if (part === 'commit') {
        const commit = target.commit;
        return (command: string, effectKey: string, ...args: (string | number)[]) => {
          if (seen.hasEnded) throw ended('commit');
          commit(command, effectKey, ...args);
          begun.commits.push({ command, key: effectKey, args });
        };
      }
      if (part === 'commitJob') {
        const commitJob = target.commitJob;
        return async (...given: Parameters<typeof commitJob>) => {
          if (seen.hasEnded) throw ended('commitJob');
          return commitJob(...given);
        };
      }
      if (part === 'progress') {
        const progress = target.progress;
        return (...given: Parameters<typeof progress>) => {
          if (seen.hasEnded) parseProgress(...given);
          else progress(...given);
        };
      }
      if (part === 'spent') {
        const { spent } = target;
        return async (...given: Parameters<typeof spent>) => {
          if (!seen.hasEnded) return spent(...given);
          parseSpent(...given);
          return false;
        };
      }
      if (part === 'log') {
        const { log } = target;
        const say = (...given: Parameters<typeof log>) => {
          if (seen.hasEnded) parseLogLine(...given);
          else log(...given);
        };
        return Object.assign(say, log);
      }
      return Reflect.get(target, part, target);
    },
  });
}

/** The same queue, whose codec and schemas take their time as handlers do: in real time, and virtual time stands still. */
export function waitedFor<Data>(queue: Queue<Data>, time: VirtualTime): Queue<Data> {
  const { name, codec, jobs } = queue;
  const waited = <Made>(made: Made): Made => {
    if (isPromise(made)) time.busy(made);
    return made;
  };
  const waitedSchema = ({ '~standard': standard }: StandardSchema): StandardSchema => ({
    '~standard': { version: 1, vendor: standard.vendor, validate: (value) => waited(standard.validate(value)) },
  });
  const decode: Codec['decode'] = (text, context) => waited(codec?.decode(text, context) ?? text);
  const content = {
    ...(codec && { codec: { ...codec, decode } }),
    ...(jobs && { jobs: Object.fromEntries(Object.entries(jobs).map(([job, schema]) => [job, waitedSchema(schema)])) }),
  };
  return queueFrom(name, content, queue);
}
