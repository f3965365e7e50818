/**
 * `duestream admin prove`: the harmless part of the fault report, against the Redis that somebody has. One step after the other, each
 * with a row that says what held, in a namespace of its own, bounded in jobs and time. It never changes a setting, and never
 * writes to, or removes, a key of anybody else.
 *
 *  namespace ──▶ steps ──▶ processes end ──▶ all of the namespace goes ──▶ rows
 *                  └─ the time is up, or somebody interrupts: the rest is not tried ─┘
 */

import type { DoneLimits } from '../config/options.ts';
import { examine } from '../inspect/doctor/doctor.ts';
import type { ReadMode } from '../job/worker-options.ts';
import { createAbort } from '../kernel/abort.ts';
import { systemClock } from '../kernel/clock.ts';
import { messageOf } from '../kernel/errors.ts';
import { counted } from '../kernel/humanize.ts';
import { reasonOf } from '../kernel/reason.ts';
import { describe, type Redis, type RedisInput } from '../redis/connection/connect.ts';
import { Cast } from './cast.ts';
import { leaderKilled, lostReplies, workerKilled } from './faults.ts';
import { login } from './login.ts';
import { keepAlive, newNamespace, sweep } from './namespace.ts';
import { type Outcome, outcomeOf, type Row } from './row.ts';
import type { Stage } from './stage.ts';

export interface ProveInput {
  readonly redis: Redis;
  readonly address: RedisInput;
  /** As `worker.read`. */
  readonly read: ReadMode;
  readonly jobs: number;
  /** The whole run ends about then. */
  readonly withinMs: number;
  /** Aborts when somebody interrupts. */
  readonly signal: AbortSignal;
  /** For people: what happens now. */
  readonly onStep: (text: string) => void;
}

export interface Proof {
  /** Nothing failed. What was not tried is in the rows. */
  readonly ok: boolean;
  readonly namespace: string;
  /** Where Redis is, without credentials. */
  readonly redis: string;
  readonly jobs: number;
  readonly tookMs: number;
  /** The time was up before all steps had their turn. */
  readonly timeIsUp: boolean;
  readonly rows: readonly Row[];
}

interface Step {
  readonly row: string;
  /** For people, while it runs. */
  readonly doing: (stage: Stage) => string;
  /** Means nothing where the login lacks rights. */
  readonly needsRights?: boolean;
  readonly act: (stage: Stage) => Promise<Outcome>;
}

const SERVER = ['version', 'role', 'eviction', 'persistence'] as const;

const steps: readonly Step[] = [
  { row: 'login', doing: () => 'what this login may do', act: login },
  ...SERVER.map((name) => ({
    row: name,
    doing: () => `the server: ${name}`,
    act: (stage: Stage) => doctorSays(stage, name),
  })),
  {
    row: 'lost-replies',
    doing: ({ jobs }) => `${counted(jobs, 'job')} while replies are lost`,
    needsRights: true,
    act: lostReplies,
  },
  { row: 'worker-killed', doing: () => 'a worker is killed', needsRights: true, act: workerKilled },
  { row: 'leader-killed', doing: () => 'a leader is killed', needsRights: true, act: leaderKilled },
];

/** Runs every step. It throws nothing that happens in one; when it is over, nothing of the run is left, or a row says so. */
export async function prove({ redis, address, read, jobs, withinMs, signal, onStep }: ProveInput): Promise<Proof> {
  const startedMs = systemClock.monotonicMs();
  const namespace = newNamespace();
  const over = createAbort();
  const callOff = systemClock.timer(withinMs, () =>
    over.abort(new Ended('the time is up: give it more with --seconds')),
  );
  const interrupt = () => over.abort(new Ended('interrupted'));
  signal.addEventListener('abort', interrupt, { once: true });
  if (signal.aborted) interrupt();
  const stage: Stage = {
    redis,
    address,
    read,
    namespace,
    jobs,
    signal: over.signal,
    cast: new Cast(),
  };
  const beside = createAbort();
  const alive = keepAlive(redis, namespace, beside.signal);
  const rows: Row[] = [];
  let sinceMs = startedMs;
  const add = (row: string, outcome: Outcome) => {
    const nowMs = systemClock.monotonicMs();
    rows.push({ row, tookMs: Math.round(nowMs - sinceMs), ...outcome });
    sinceMs = nowMs;
  };
  onStep(`namespace ${namespace}`);
  try {
    for (const step of steps) {
      if (!over.signal.aborted) onStep(`${rows.length + 1} of ${steps.length}: ${step.doing(stage)}`);
      add(step.row, await outcomeOfStep(step, stage, rows));
      await stage.cast.end();
    }
  } finally {
    callOff();
    signal.removeEventListener('abort', interrupt);
    beside.abort();
    await alive;
  }
  onStep('clean up');
  add('left', await leftOf(redis, namespace));
  const timeIsUp = over.signal.aborted && !signal.aborted;
  const ok = rows.every(({ status }) => status !== 'failed');
  return {
    ok,
    namespace,
    redis: describe(redis),
    jobs,
    tookMs: Math.round(systemClock.monotonicMs() - startedMs),
    timeIsUp,
    rows,
  };
}

class Ended extends Error {}

async function outcomeOfStep(
  { needsRights = false, act }: Step,
  stage: Stage,
  before: readonly Row[],
): Promise<Outcome> {
  const { signal } = stage;
  if (signal.aborted) return { status: 'not tried', saw: messageOf(signal.reason) };
  const isRefused = before.some(({ row, status }) => row === 'login' && status === 'failed');
  if (needsRights && isRefused) return { status: 'not tried', saw: 'this login lacks what the row "login" names' };
  try {
    return await act(stage);
  } catch (error) {
    if (error instanceof Ended) return { status: 'not tried', saw: messageOf(error) };
    const advice = 'run this again; if it stays, look at the log of Redis';
    return { status: 'failed', saw: reasonOf(error), advice };
  }
}

/** Limits of the run itself; no check of the server looks at them. */
const NOTHING: DoneLimits = { windowMs: 0, tombstonesMax: 0, floorMs: 0 };

async function doctorSays({ redis, namespace }: Stage, name: string): Promise<Outcome> {
  const place = { namespace, horizonMs: 0, done: NOTHING, closedMax: 0 };
  const [result] = await examine(redis, place, [name]);
  return result === undefined ? { status: 'not tried', saw: 'doctor has no such check' } : outcomeOf(result);
}

const TRIES = 3;
const AGAIN_MS = 300;

/** A command of a process that was killed may still be on its way, so what comes back is removed once more. */
async function leftOf(redis: Redis, namespace: string): Promise<Outcome> {
  try {
    let swept = await sweep(redis, namespace);
    let removed = swept.removed;
    for (let tries = 1; tries < TRIES && swept.left.length > 0; tries += 1) {
      await systemClock.sleep(AGAIN_MS);
      swept = await sweep(redis, namespace);
      removed += swept.removed;
    }
    const { left, seen } = swept;
    const how = {
      all: 'every key of the server was looked at',
      some: 'the server has too many keys to look at all',
      names: 'looked at by name: SCAN is not allowed',
    }[seen];
    const figures = { removed, left: left.length };
    if (left.length === 0)
      return { status: 'held', saw: `0 keys in ${namespace}, ${removed} removed; ${how}`, figures };
    const advice = 'wait 15 s, then run "duestream admin prove --clean"';
    return {
      status: 'failed',
      saw: `${counted(left.length, 'key')} left in ${namespace}, such as ${left[0]}`,
      advice,
      figures,
    };
  } catch (error) {
    if (/^NOPERM/.test(messageOf(error))) {
      return { status: 'not tried', saw: `this login may not touch keys of ${namespace}, so it wrote none` };
    }
    return {
      status: 'failed',
      saw: `cannot clean up ${namespace}: ${reasonOf(error)}`,
      advice: 'run "duestream admin prove --clean" when Redis answers',
    };
  }
}
