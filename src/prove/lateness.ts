/** Whether jobs start on time: a daemon and a worker in processes of their own, and a producer in this one. */
import { createClient } from '../client/client.ts';
import { memberOf } from '../redis/connection/cluster/members.ts';
import { partitionKeys } from '../redis/keys.ts';
import type { Actor } from './cast.ts';
import { type Outcome, rounded, share, until } from './row.ts';
import { enter, type Stage, up } from './stage.ts';

const QUEUE = 'late';
/** The first job is due when all have been scheduled, and the last one so much later. */
const FIRST_MS = 1000;
const SPREAD_MS = 4000;
/** A leader that no nudge reached looks every 5 s; the rest is for the machine. */
const LATE_MAX_MS = 6000;

export async function lateness(stage: Stage): Promise<Outcome> {
  const { address, namespace, jobs, signal } = stage;
  const worker = enter(stage, { role: 'worker', queue: QUEUE });
  await up(stage, worker, enter(stage, { role: 'daemon', queue: QUEUE }));
  const client = createClient({ redis: address, namespace, name: 'prove' });
  try {
    const delays = Array.from({ length: jobs }, (_, at) => FIRST_MS + Math.floor((SPREAD_MS * at) / jobs));
    await client.scheduleMany(
      QUEUE,
      delays.map((delay, at) => ({ id: `late-${at}`, data: { at }, delay })),
    );
    const ended = () => new Set(worker.said.flatMap((said) => (said.kind === 'done' ? [said.id] : [])));
    await until(() => ended().size === jobs || worker.isOver, { boundMs: FIRST_MS + SPREAD_MS + LATE_MAX_MS, signal });
    const { errorMs } = offsetAt(stage, QUEUE);
    const ran = worker.said.flatMap((said) => (said.kind === 'ran' ? [said.id] : []));
    return judged(lateIn(stage, worker, QUEUE), {
      jobs,
      ended: ended().size,
      twice: ran.length - new Set(ran).size,
      errorMs,
    });
  } finally {
    await client.close();
  }
}

const offsetAt = ({ redis, namespace, clock }: Stage, queue: string) =>
  clock.offsetOf(memberOf(redis, partitionKeys({ namespace, queue, partition: 0 }).meta));

/** How late each start of a worker was, by the clock of Redis; below 0 it was early. */
export function lateIn(stage: Stage, worker: Actor, queue: string): readonly number[] {
  const { offsetMs } = offsetAt(stage, queue);
  return worker.said.flatMap((said) => (said.kind === 'ran' ? [said.atMs + offsetMs - said.dueMs] : []));
}

export interface LateSeen {
  readonly jobs: number;
  readonly ended: number;
  /** Starts of jobs that had one before. */
  readonly twice: number;
  /** By so much the times may be wrong. */
  readonly errorMs: number;
}

/** Of how late each start was. */
export function judged(late: readonly number[], { jobs, ended, twice, errorMs }: LateSeen): Outcome {
  // The wall clock of this machine is read in whole ms.
  const early = late.filter((ms) => ms < -(errorMs + 1)).length;
  const lateMs = late.map((ms) => Math.max(0, ms));
  const [p50, p99, max] = [share(lateMs, 0.5), share(lateMs, 0.99), Math.max(0, ...lateMs)].map(rounded);
  const figures = {
    jobs,
    done: ended,
    twice,
    early,
    p50Ms: p50 ?? 0,
    p99Ms: p99 ?? 0,
    maxMs: max ?? 0,
  };
  const saw = `${ended} of ${jobs} jobs done, started late by p50 ${p50} ms, p99 ${p99} ms, at most ${max} ms; ${early} early, ${twice} started twice`;
  const isHeld = ended === jobs && early === 0 && twice === 0 && figures.maxMs <= LATE_MAX_MS;
  if (isHeld) return { status: 'held', saw, figures };
  const advice =
    'look at the rows of the round trip, the scripts and the clock; then run this again with nothing else on this machine';
  return { status: 'failed', saw: `${saw}; bound ${LATE_MAX_MS} ms`, advice, figures };
}
