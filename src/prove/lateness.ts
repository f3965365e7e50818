/** Whether jobs start on time: a daemon and a worker in processes of their own, and a producer in this one. */
import { createClient } from '../client/client.ts';
import { memberOf } from '../redis/connection/cluster/members.ts';
import { partitionKeys } from '../redis/keys.ts';
import { type Outcome, rounded, share, until } from './row.ts';
import type { Said } from './said.ts';
import type { Stage } from './stage.ts';

const QUEUE = 'late';
/** The first job is due when all have been scheduled, and the last one so much later. */
const FIRST_MS = 1000;
const SPREAD_MS = 4000;
/** A leader looks each second without a nudge, and another one takes its lease within its 2 s; the rest is for the machine. */
const LATE_MAX_MS = 6000;

export async function lateness(stage: Stage): Promise<Outcome> {
  const { redis, address, namespace, jobs, signal, cast, clock } = stage;
  const daemon = cast.begin({ role: 'daemon', redis: address, namespace, queue: QUEUE, hangs: false });
  const worker = cast.begin({ role: 'worker', redis: address, namespace, queue: QUEUE, hangs: false });
  await daemon.ready(signal);
  await worker.ready(signal);
  const client = createClient({ redis: address, namespace, name: 'prove' });
  try {
    const delays = Array.from({ length: jobs }, (_, at) => FIRST_MS + Math.floor((SPREAD_MS * at) / jobs));
    await client.scheduleMany(
      QUEUE,
      delays.map((delay, at) => ({ id: `late-${at}`, data: { at }, delay })),
    );
    const ended = () => new Set(worker.said.flatMap((said) => (said.kind === 'done' ? [said.id] : [])));
    await until(() => ended().size === jobs || worker.isOver, { boundMs: FIRST_MS + SPREAD_MS + LATE_MAX_MS, signal });
    const node = memberOf(redis, partitionKeys({ namespace, queue: QUEUE, partition: 0 }).meta);
    return judged(worker.said, { jobs, ended: ended().size, ...clock.offsetOf(node) });
  } finally {
    await client.stop();
    await Promise.all([daemon.kill(), worker.kill()]);
  }
}

/** Of what a worker said. */
export function judged(
  said: readonly Said[],
  {
    jobs,
    ended,
    offsetMs,
    errorMs,
  }: { readonly jobs: number; readonly ended: number; readonly offsetMs: number; readonly errorMs: number },
): Outcome {
  const ran = said.flatMap((one) => (one.kind === 'ran' ? [one] : []));
  const late = ran.map(({ atMs, dueMs }) => atMs + offsetMs - dueMs);
  // The wall clock of this machine is read in whole ms.
  const early = late.filter((ms) => ms < -(errorMs + 1)).length;
  const ids = new Set(ran.map(({ id }) => id));
  const lateMs = late.map((ms) => Math.max(0, ms));
  const [p50, p99, max] = [share(lateMs, 0.5), share(lateMs, 0.99), Math.max(0, ...lateMs)].map(rounded);
  const figures = {
    jobs,
    done: ended,
    twice: ran.length - ids.size,
    early,
    p50Ms: p50 ?? 0,
    p99Ms: p99 ?? 0,
    maxMs: max ?? 0,
  };
  const saw = `${ended} of ${jobs} jobs done, started late by p50 ${p50} ms, p99 ${p99} ms, at most ${max} ms; ${early} early, ${figures.twice} started twice`;
  const isHeld = ended === jobs && figures.early === 0 && figures.twice === 0 && figures.maxMs <= LATE_MAX_MS;
  if (isHeld) return { status: 'held', saw, figures };
  const advice =
    'look at the rows of the round trip, the scripts and the clock; then run this again with nothing else on this machine';
  return { status: 'failed', saw: `${saw}; bound ${LATE_MAX_MS} ms`, advice, figures };
}
