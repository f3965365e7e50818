/**
 * One job that was sent to everybody, in this process: judged as a start is, its handler called, its failure told. It is
 * over already, so nothing is settled and nothing is tried again.
 */

import { idOf } from '../../job/codec.ts';
import type { Emitter } from '../../job/events.ts';
import { DEFAULT_NAME } from '../../job/job.ts';
import {
  endVerdict,
  type Life,
  ownReasonOf,
  type Rules,
  type StartVerdict,
  startVerdict,
  timedOut,
} from '../../job/judge.ts';
import { NO_HEADERS } from '../../job/labels.ts';
import type { Attempted } from '../../job/outcome.ts';
import type { Queue } from '../../job/queue.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/log.ts';
import type { ServerOf } from '../../redis/connection/server-clock.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { CastEntry } from '../../redis/read/broadcast.ts';
import { beginStart, inside, type StartSpan, toldIn } from '../../telemetry/spans.ts';
import { JobContext, LazyAbort, startedJob } from '../run/context.ts';
import { type Handler, type HandlerCalls, handlerFor, type PlainHandlers } from '../run/handlers.ts';
import type { HandleChain } from '../run/middleware.ts';

export interface CastRunParts {
  readonly queue: Queue;
  readonly handlers: PlainHandlers<never>;
  readonly around: HandleChain['around'];
  readonly calls: () => HandlerCalls;
  readonly clock: Clock;
  readonly serverOf: ServerOf;
  readonly events: Emitter;
  readonly log: Log;
}

export interface CastRunner {
  /** Resolves when the handler has ended or its time is up; never rejects. */
  readonly run: (ref: PartitionRef, entry: CastEntry) => Promise<void>;
  /** Handlers that run now. */
  readonly running: () => number;
  /** Tells those that run to stop. */
  readonly abort: () => void;
}

type Running = Extract<StartVerdict<Handler<never>>, { kind: 'run' }>;

interface Casting extends CastRunParts {
  readonly rules: Rules<Handler<never>>;
  readonly open: Set<LazyAbort>;
}

export function createCastRunner(parts: CastRunParts): CastRunner {
  const { queue, handlers, around } = parts;
  const rules: Rules<Handler<never>> = {
    // What is over before its handler begins is judged as what is delivered at most once.
    queue: { ...queue, delivery: 'at-most-once' },
    handlerOf: (name) => handlerFor({ handlers, onAbandoned: undefined, around }, name),
    compensations: false,
  };
  const casting: Casting = { ...parts, rules, open: new Set() };
  return {
    run: (ref, entry) => run(casting, ref, entry).catch((thrown: unknown) => fail(casting, ref, { entry, thrown })),
    running: () => casting.open.size,
    abort() {
      for (const one of casting.open) one.abort('shutdown');
    },
  };
}

async function run(casting: Casting, ref: PartitionRef, entry: CastEntry): Promise<void> {
  const { clock, serverOf, rules, events, queue } = casting;
  const sinceMs = clock.monotonicMs();
  const { member, record, count } = entry;
  const started = { token: String(count), attempts: 1, failures: 0, crashes: 0, history: [], record };
  const life: Life = { member, started };
  const nowMs = serverOf(ref).nowMs();
  const verdict = startVerdict(life, rules, Math.round(nowMs));
  const named = { queue: queue.name, id: idOf(member).id };
  if (verdict.kind === 'refused') {
    events.emit('job.failed', { ...named, name: verdict.name, tookMs: 0, error: verdict.outcome.error });
    return;
  }
  const { name, headers = NO_HEADERS } = verdict.record;
  const { attempts: attempt } = started;
  const lateMs = Math.max(0, nowMs - entry.dueMs);
  const span = beginStart({ ...named, name, attempt, dueMs: entry.dueMs, headers }, lateMs);
  const told = toldIn(span, events);
  try {
    told.emit('job.started', { ...named, name, attempt, lateMs });
    const error = await failureOf(casting, { ref, entry, life, verdict, span });
    const tookMs = clock.monotonicMs() - sinceMs;
    if (error) told.emit('job.failed', { ...named, name, tookMs, error });
    else told.emit('job.completed', { ...named, name, tookMs });
  } finally {
    span?.end();
  }
}

/** Our own code threw. The job is over already, and the next one has its turn. */
function fail(
  { queue, clock, events, log }: Casting,
  ref: PartitionRef,
  { entry: { member }, thrown }: { readonly entry: CastEntry; readonly thrown: unknown },
): void {
  const message = `duestream failed at this job: ${ownReasonOf(thrown, ref)}`;
  const error = { atMs: clock.wallMs(), attempt: 1, kind: 'refused' as const, message };
  log.error({ job: member, error: error.message }, 'duestream failed at a job that is sent to everybody');
  events.emit('job.failed', { queue: queue.name, id: idOf(member).id, name: DEFAULT_NAME, tookMs: 0, error });
}

interface Called {
  readonly ref: PartitionRef;
  readonly entry: CastEntry;
  readonly life: Life;
  readonly verdict: Running;
  readonly span: StartSpan | undefined;
}

/** What went wrong, if anything did. A handler that ignores its signal goes on, and is not waited for. */
async function failureOf(casting: Casting, called: Called): Promise<Attempted | undefined> {
  const { rules, serverOf, clock, open } = casting;
  const { ref, life, verdict } = called;
  const { timeoutMs, record } = verdict;
  const lazyAbort = new LazyAbort();
  let callOff: (() => void) | undefined;
  const timeIsUp = new Promise<never>((_, reject) => {
    callOff = clock.timer(timeoutMs, () => {
      lazyAbort.abort('timeout');
      reject(timedOut(timeoutMs));
    });
  });
  open.add(lazyAbort);
  const ending = await Promise.race([handled(casting, called, lazyAbort), timeIsUp])
    .then(
      () => ({ kind: 'returned' as const }),
      (thrown: unknown) => ({ kind: 'threw' as const, thrown, aborted: lazyAbort.reason }),
    )
    .finally(() => open.delete(lazyAbort));
  callOff?.();
  const nowMs = Math.round(serverOf(ref).nowMs());
  const judged = endVerdict(ending, {
    life,
    record,
    rules: ref.redact ? { ...rules, redact: ref.redact } : rules,
    nowMs,
    random: Math.random,
  });
  return judged.kind === 'told' ? judged.error : undefined;
}

async function handled(
  casting: Casting,
  { ref, entry, life, verdict, span }: Called,
  lazyAbort: LazyAbort,
): Promise<void> {
  const { queue, clock, log, calls, serverOf } = casting;
  const record = (await verdict.opening) ?? verdict.record;
  const { token } = life.started;
  const job = startedJob(queue.name, { life, record, dueMs: entry.dueMs });
  const deadlineMs = clock.monotonicMs() + verdict.timeoutMs;
  const parts = {
    job,
    ref,
    set: undefined,
    lazyAbort,
    token,
    deadlineMs,
    clock,
    log,
    calls,
    queue,
    serverOf,
    effects: undefined,
    reporter: undefined,
  };
  await inside(span, () => verdict.handler(job, new JobContext(parts)));
}
