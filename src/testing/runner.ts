/**
 * What happens to a job in virtual time when it comes due: started, and its handler called. `core/judge.ts` decides, as in
 * the worker. What is not played: several workers, crashes and lost replies; there is one worker, and it has a slot for
 * every job.
 */
import type { Clock } from '../core/clock.ts';
import type { Job } from '../core/job.ts';
import { type Ending, judgeEnd, judgeStart, type Rules, type StartVerdict, timedOut } from '../core/judge.ts';
import { silentLog } from '../core/log.ts';
import { partitionRef } from '../redis/keys.ts';
import type { Effect } from '../redis/transitions/replies.ts';
import { type Cord, createContext, createCord } from '../worker/context.ts';
import type { Handler } from '../worker/handlers.ts';
import type { Agenda } from './agenda.ts';
import { type Begun, createEnds, type Put } from './ends.ts';
import { type Kept, lifeOf, type Run, viewOf } from './kept.ts';
import type { Served } from './served.ts';

export interface RunnerParts {
  readonly agenda: Agenda;
  readonly clock: Clock;
  /** Undefined where no worker serves the queue. */
  readonly servedBy: (queue: string) => Served | undefined;
  /** How long the run of a job lasts in virtual time. */
  readonly lastsMs: (job: Job<unknown>) => number;
  readonly random: () => number;
  readonly runs: Run[];
  readonly inline: boolean;
}

type Running = Extract<StartVerdict<Handler<never>>, { kind: 'run' }>;

export function createRunner(parts: RunnerParts, put: Put) {
  const { agenda, clock, servedBy, random, runs, inline } = parts;
  const ends = createEnds({ agenda, runs, inline, put, begin });
  let tokens = 0;

  /** At its due; inline at once. */
  async function begin(job: Kept, dueMs: number): Promise<void> {
    job.dueMs = dueMs;
    job.state = 'scheduled';
    if (inline) await start(job);
    else job.strike = agenda.at(dueMs, () => start(job));
  }

  async function start(job: Kept): Promise<void> {
    const served = servedBy(job.queue.name);
    if (!served) {
      job.state = 'ready';
      return;
    }
    if (!inline && ends.isLate(job)) return ends.expire(job, served.compensations);
    job.state = 'running';
    job.attempts += 1;
    tokens += 1;
    job.token = String(tokens);
    const begun = { job, atMs: agenda.nowMs(), effects: [] };
    const rules = { ...served, queue: job.queue };
    const verdict = judgeStart(lifeOf(job), rules, agenda.nowMs());
    if (verdict.kind === 'refused') return ends.settle(begun, { kind: 'settled', outcome: verdict.outcome });
    // Delivered at most once: in Redis it is over before its handler begins.
    if (verdict.isOver) job.state = 'done';
    await run(begun, verdict, rules);
  }

  /** The handler is called at once, in real time; its end is that of the virtual time which its run lasts. */
  async function run(begun: Begun, verdict: Running, rules: Rules<Handler<never>>): Promise<void> {
    const { job, effects } = begun;
    const { handler, timeoutMs, record } = verdict;
    const view = viewOf(job, record);
    const cord = createCord();
    job.abort = cord.pull;
    const startedMs = agenda.nowMs();
    const lastsMs = inline ? 0 : parts.lastsMs(view);
    const handled = ended(() => handler(view, contextOf(view, { begun, verdict, cord })));
    const end = (ending: Ending) => {
      Object.freeze(effects);
      return ends.settle(begun, judgeEnd(ending, { life: lifeOf(job), record, rules, nowMs: agenda.nowMs(), random }));
    };
    if (lastsMs > timeoutMs) {
      // Nobody waits for a handler whose time is up. One that looks at its signal has a turn to end before others go on.
      await Promise.race([handled, turn()]);
      agenda.at(startedMs + timeoutMs, async () => {
        cord.pull('timeout');
        await Promise.race([handled, turn()]);
        await end({ kind: 'threw', thrown: timedOut(timeoutMs), aborted: cord.pulled() });
      });
      return;
    }
    const thrown = await handled;
    Object.freeze(effects);
    const finish = () => end(thrown ? { kind: 'threw', ...thrown, aborted: cord.pulled() } : { kind: 'returned' });
    if (startedMs + lastsMs <= agenda.nowMs()) await finish();
    else agenda.at(startedMs + lastsMs, finish);
  }

  function contextOf(
    view: Job<never>,
    { begun: { job, effects }, verdict, cord }: { begun: Begun; verdict: Running; cord: Cord },
  ) {
    const collected: Effect[] | undefined = verdict.isOver ? undefined : effects;
    return createContext({
      ...{ job: view, cord, clock, log: silentLog, token: job.token, effects: collected },
      ref: partitionRef('test', { queue: job.queue.name, partition: 0, generation: 0 }),
      deadlineMs: clock.monotonicMs() + verdict.timeoutMs,
    });
  }

  return { begin };
}

/** Resolves when the handler has ended: with what it threw, or with nothing. */
async function ended(run: () => unknown): Promise<{ readonly thrown: unknown } | undefined> {
  try {
    await run();
    return undefined;
  } catch (thrown) {
    return { thrown };
  }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
