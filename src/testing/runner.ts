/**
 * What happens to a job in virtual time when it comes due: started, and its handler called. `job/judge.ts` decides, as in
 * the worker; `passes.ts` says when the leader passes, `gates.ts` how long a job waits in line. What is not played: several
 * workers, crashes, lost replies, and that a completion lingers; there
 * is one worker, and it has a slot for every job.
 */

import type { Job } from '../job/job.ts';
import {
  type Ending,
  endVerdict,
  judgeThrown,
  type Rules,
  type StartVerdict,
  startVerdict,
  timedOut,
} from '../job/judge.ts';
import { keptResult } from '../job/past.ts';
import { workerOptions } from '../job/worker-options.ts';
import type { Clock } from '../kernel/clock.ts';
import { silentLog } from '../kernel/log.ts';
import { partitionRef } from '../redis/keys.ts';
import { Effects, JobContext, LazyAbort } from '../worker/run/context.ts';
import type { Handler, HandlerCalls } from '../worker/run/handlers.ts';
import type { Agenda } from './agenda.ts';
import type { ClosedTags } from './closing.ts';
import { type Begun, createEnds, type Ends, type Put } from './ends.ts';
import { Gates } from './gates.ts';
import { endJob, type Kept, type KeptLetter, lifeOf, type Run, viewOf } from './kept.ts';
import { Passes } from './passes.ts';
import type { Served } from './served.ts';

export interface RunnerParts {
  readonly agenda: Agenda;
  readonly clock: Clock;
  /** Undefined where no worker serves the queue. */
  readonly servedBy: (queue: string) => Served | undefined;
  /** Who subscribes to a broadcast queue, in the order of their coming. */
  readonly subscribersOf: (queue: string) => readonly Served[];
  /** How long the run of a job lasts in virtual time. */
  readonly lastsMs: (job: Job<unknown>) => number;
  readonly random: () => number;
  /** What handlers ask for. */
  readonly calls: () => HandlerCalls;
  readonly runs: Run[];
  readonly deadLetters: KeptLetter[];
  readonly closed: ClosedTags;
  readonly inline: boolean;
  /** Whether a job has this life still: none has taken its place. */
  readonly isKept: (job: Kept) => boolean;
}

type Running = Extract<StartVerdict<Handler<never>>, { kind: 'run' }>;

interface Playing extends RunnerParts {
  readonly ends: Ends;
  readonly gates: Gates;
  readonly passes: Passes;
  tokens: number;
  turns: number;
}

export interface Runner {
  readonly gates: Gates;
  /** A job waits for its due time; inline it begins at once. */
  readonly begin: (job: Kept, dueMs: number) => Promise<void>;
}

export function createRunner(parts: RunnerParts, put: Put): Runner {
  const { agenda, runs, inline, deadLetters } = parts;
  const run = (job: Kept, dueMs: number) => begin(playing, job, dueMs);
  const gates = new Gates({
    agenda,
    isServed: (queue) => parts.servedBy(queue) !== undefined,
    start: (job) => start(playing, job),
    putBack: (job) => wait(playing, job),
  });
  const leave = gates.leave.bind(gates);
  const close = gates.closeBy.bind(gates);
  const playing: Playing = {
    ...parts,
    ends: createEnds({ agenda, runs, deadLetters, inline, put, begin: run, leave, close }),
    gates,
    passes: new Passes(),
    tokens: 0,
    turns: 0,
  };
  return { begin: run, gates };
}

/** At its due time; inline at once. */
async function begin(playing: Playing, job: Kept, dueMs: number): Promise<void> {
  job.dueMs = dueMs;
  job.state = 'scheduled';
  if (playing.inline) await start(playing, job);
  else wait(playing, job);
}

function wait(playing: Playing, job: Kept): void {
  const { agenda } = playing;
  job.state = 'scheduled';
  job.strike = agenda.at(job.dueMs, () => pass(playing, job));
}

/** It is due: the leader passes, or the job lingers until the next pass. */
function pass(playing: Playing, job: Kept, hasWaited = false): Promise<void> | undefined {
  const { agenda, gates, passes } = playing;
  const nextMs = passes.nextMs(job, { nowMs: agenda.nowMs(), hasWaited });
  if (nextMs === undefined) {
    if (!gates.takes(job)) return start(playing, job);
    lapse(playing, job);
    return undefined;
  }
  job.strike = agenda.at(nextMs, () => pass(playing, job, true));
  return undefined;
}

/** So long after its expiry the leader finds a job that nobody can start. */
const LAPSE_MS = 30_000;

/** One that had a start before waits for the next: whether a handler takes half-done work back, only a worker knows. */
function lapse({ agenda, ends, isKept, inline }: Playing, job: Kept): void {
  const lateMs = ends.lateFromMs(job);
  if (lateMs === undefined || inline) return;
  agenda.at(Math.max(agenda.nowMs(), lateMs) + LAPSE_MS, async () => {
    const isStuck = job.attempts === 0 && ['scheduled', 'waiting', 'ready'].includes(job.state);
    if (!isStuck || !isKept(job) || job.dueMs > agenda.nowMs() || !ends.isLate(job)) return;
    job.strike();
    await ends.expire(job, false);
  });
}

async function start(playing: Playing, job: Kept): Promise<void> {
  const { servedBy, inline, ends, agenda, gates } = playing;
  playing.turns += 1;
  job.turn = playing.turns;
  if (job.queue.broadcast?.isOn) return cast(playing, job);
  gates.hold(job);
  const served = servedBy(job.queue.name);
  if (!served) {
    job.state = 'ready';
    lapse(playing, job);
    return;
  }
  if (playing.closed.by(job.queue.name, job.record)) return ends.cancel(job);
  if (!inline && ends.isLate(job)) return ends.expire(job, served.compensations);
  job.state = 'running';
  job.attempts += 1;
  job.progress = undefined;
  job.generation ??= 0;
  job.token = nextToken(playing);
  const begun = { job, record: job.record, atMs: agenda.nowMs(), effects: new Effects() };
  const rules = { ...served, queue: job.queue };
  const verdict = startVerdict(lifeOf(job), rules, agenda.nowMs());
  if (verdict.kind === 'refused') return ends.settle(begun, { kind: 'settled', outcome: verdict.outcome });
  // Delivered at most once: in Redis it is over before its handler begins, and its data is opened before that.
  if (!verdict.completesFirst) return run(playing, begun, verdict, rules);
  try {
    const open = { ...verdict, record: (await verdict.opening) ?? verdict.record, opening: undefined };
    endJob(job, 'done', agenda.nowMs());
    await run(playing, begun, open, rules);
  } catch (thrown) {
    const parts = { life: lifeOf(job), record: verdict.record, rules, nowMs: agenda.nowMs(), random: playing.random };
    await ends.settle(begun, { kind: 'settled', outcome: judgeThrown({ thrown }, parts) });
  }
}

/** Each subscriber gets it, and it is over before: what a handler throws is told and not tried again. */
async function cast(playing: Playing, job: Kept): Promise<void> {
  const { subscribersOf, agenda, ends, inline } = playing;
  if (playing.closed.by(job.queue.name, job.record)) return ends.cancel(job);
  if (!inline && ends.isLate(job)) return ends.expire(job, false);
  job.token = nextToken(playing);
  endJob(job, 'done', agenda.nowMs());
  for (const served of subscribersOf(job.queue.name)) {
    const begun = { job: { ...job, attempts: 1 }, record: job.record, atMs: agenda.nowMs(), effects: new Effects() };
    const rules = { ...served, queue: { ...job.queue, delivery: 'at-most-once' as const } };
    const verdict = startVerdict(lifeOf(begun.job), rules, agenda.nowMs());
    if (verdict.kind === 'refused') {
      await ends.settle(begun, { kind: 'told', error: verdict.outcome.error });
      continue;
    }
    await run(playing, begun, verdict, rules);
  }
}

/** The handler is called at once, in real time; its end is that of the virtual time which its run lasts. */
async function run(playing: Playing, begun: Begun, verdict: Running, rules: Rules<Handler<never>>): Promise<void> {
  const { agenda, inline, ends, random } = playing;
  const { job, effects } = begun;
  const { handler, timeoutMs, record, opening } = verdict;
  const view = viewOf(job, record);
  const lazyAbort = new LazyAbort();
  job.abort = (why) => lazyAbort.abort(why);
  const startedMs = agenda.nowMs();
  job.startedMs = startedMs;
  const lastsMs = inline ? 0 : playing.lastsMs(view);
  const context = contextOf(playing, view, { begun, verdict, lazyAbort });
  const handled = ended(() =>
    opening ? opening.then((known) => handler(viewOf(job, known), context)) : handler(view, context),
  );
  const end = (ending: Ending) => {
    effects.close();
    return ends.settle(
      begun,
      endVerdict(ending, { life: lifeOf(job, begun.record), record, rules, nowMs: agenda.nowMs(), random }),
    );
  };
  if (lastsMs > timeoutMs) {
    // One that looks at its signal has a turn to end before others go on, and ends with its time. Any other goes on.
    await Promise.race([handled, turn()]);
    agenda.at(startedMs + timeoutMs, async () => {
      const heeds = lazyAbort.isWatched;
      lazyAbort.abort('timeout');
      effects.close();
      const hasEnded = await Promise.race([handled.then(() => true), turn()]);
      const late = () => end({ kind: 'threw', thrown: timedOut(timeoutMs), aborted: lazyAbort.reason });
      if (verdict.completesFirst || (heeds && hasEnded)) await late();
      else agenda.at(startedMs + Math.min(lastsMs, timeoutMs + workerOptions.abortGrace.fallback), late);
    });
    return;
  }
  const how = await handled;
  effects.close();
  const finish = () => {
    if ('thrown' in how) return end({ kind: 'threw', ...how, aborted: lazyAbort.reason });
    // Delivered at most once: its end was kept before its handler returned anything.
    if (job.queue.history && !verdict.completesFirst) job.result = keptResult(how.value, job.queue.history);
    return end({ kind: 'returned' });
  };
  if (startedMs + lastsMs <= agenda.nowMs()) await finish();
  else agenda.at(startedMs + lastsMs, finish);
}

function contextOf(
  playing: Playing,
  view: Job<never>,
  { begun: { job, effects }, verdict, lazyAbort }: { begun: Begun; verdict: Running; lazyAbort: LazyAbort },
) {
  const { clock, calls, gates } = playing;
  const place = { queue: job.queue.name, partition: 0, layoutGeneration: 0, ...gates.shareOf(job) };
  return new JobContext({
    calls,
    job: view,
    lazyAbort,
    clock,
    log: silentLog,
    token: job.token,
    effects: verdict.completesFirst ? undefined : effects,
    reporter: {
      report(progress) {
        if (!effects.isClosed) job.progress = progress;
      },
    },
    queue: job.queue,
    serverOf: () => ({ nowMs: playing.agenda.nowMs }),
    ref: partitionRef('test', place),
    set: verdict.record.set,
    deadlineMs: clock.monotonicMs() + verdict.timeoutMs,
  });
}

/** Resolves when the handler has ended: with what it threw, or with what it returned. */
async function ended(run: () => unknown): Promise<{ readonly thrown: unknown } | { readonly value: unknown }> {
  try {
    return { value: await run() };
  } catch (thrown) {
    return { thrown };
  }
}

const turn = () => new Promise<false>((resolve) => setImmediate(resolve, false));

/** As in Redis a token says when the start was, in µs, and is larger than the one before. */
function nextToken(playing: Playing): string {
  playing.tokens = Math.max(playing.tokens + 1, Math.floor(playing.agenda.nowMs() * 1000));
  return String(playing.tokens);
}
