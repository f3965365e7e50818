/** When a job that waits is going to start: what is read for the answer, when somebody looks at the job. */
import { isMoved } from '../client/calls/partition-calls.ts';
import type { JobReport } from '../client/query/report.ts';
import { leaderOf, processesOf, slotsOf, workersOf } from '../client/queues/processes.ts';
import { type Namespaced, refsOfQueue } from '../client/queues/refs.ts';
import { memberOf } from '../job/codec.ts';
import {
  estimateOf,
  notTold,
  type Pacing,
  type StartEstimate,
  type WaitFacts,
  type WaitingLane,
} from '../job/estimate.ts';
import { groupOf, PRIORITIES } from '../job/labels.ts';
import { MINUTE_MS, type Times } from '../job/minutes.ts';
import type { Redis } from '../redis/connection/connect.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { groupsOf, type SeenGroup } from '../redis/read/groups.ts';
import { type PartitionStats, stats } from '../redis/read/inspect.ts';
import { placesOf } from '../redis/read/places.ts';
import { minutesAndTimes, type QueueMinutes } from './minutes.ts';
import { runTimesOf } from './simulate/usual.ts';

/** Of more groups, or more jobs in front, nothing is told. */
const GROUPS_MAX = 1000;
/** Groups of one call, which takes about 3 ms of Redis. */
const GROUPS_SLICE = 100;
const READY_MAX = 1000;
/** Of so many minutes starts are compared with what was worked out. */
const CHECKED_MINUTES = 5;

type Waiting = Pick<JobReport, 'queue' | 'partition' | 'id' | 'bare' | 'state' | 'nowMs'> & {
  readonly waitsFor?: Pick<NonNullable<JobReport['waitsFor']>, 'priority' | 'ahead'> | undefined;
};

/**
 * Undefined of a job that does not wait for its turn: it is not due, runs, or is over. Also where something cannot be read: who
 * looks at a job of a damaged queue must see the rest.
 */
export async function startEstimateOf(place: Namespaced, job: Waiting): Promise<StartEstimate | undefined> {
  if (job.state !== 'waiting' && job.state !== 'ready') return undefined;
  return estimated(place, job).catch(() => undefined);
}

async function estimated(place: Namespaced, job: Waiting): Promise<StartEstimate | undefined> {
  const { redis, namespace } = place;
  const refs = await refsOfQueue(place, job.queue);
  const ref = refs[job.partition];
  if (!ref) return undefined;
  const [partition, processes] = await Promise.all([stats(redis, ref), processesOf(redis, namespace)]);
  const isServed = workersOf(job.queue, processes) > 0;
  const blocked = partition.paused ? 'paused' : !leaderOf(partition, processes) ? 'no-leader' : 'no-worker';
  if (blocked !== 'no-worker' || !isServed) return notTold(blocked);
  const spot =
    job.state === 'ready'
      ? await spotInReady(redis, ref, { job, partition })
      : await spotInLine(redis, ref, { job, partition });
  if (!spot) return notTold('many-lanes');
  const { minutes, times } = await minutesAndTimes(place, job.queue, { hours: 1, nowMs: partition.nowMs });
  const slots = slotsOf(job.queue, processes);
  const { sinceMs, ...seen } = spot;
  return estimateOf({
    ...seen,
    nowMs: partition.nowMs,
    // Workers serve all partitions alike.
    slots: slots === undefined ? undefined : slots / refs.length,
    ...runsOf(times.run),
    arrivalsPerSecond: arrivalsIn(minutes, refs.length),
    startsPerSecond: startsIn(minutes, sinceMs, refs.length),
  });
}

type Spot = Pick<WaitFacts, 'lane' | 'ahead' | 'lanes' | 'queue' | 'groups'> & {
  /** Since when jobs have waited without an end. */
  readonly sinceMs: number;
};

interface Looking {
  readonly job: Waiting;
  readonly partition: PartitionStats;
}

/** Of a job in line: the lanes of its partition. Undefined: there are too many. */
async function spotInLine(redis: Redis, ref: PartitionRef, { job, partition }: Looking): Promise<Spot | undefined> {
  const { gate, ready, running, waitingSinceMs, nowMs } = partition;
  const { priority = 'normal', ahead = 0 } = job.waitsFor ?? {};
  const found: SeenGroup[] = [];
  let [after, ungrouped] = ['', 0];
  for (let isMore = true; isMore; ) {
    const page = await groupsOf(redis, ref, { after, limit: GROUPS_SLICE });
    if (isMoved(page) || found.length + page.groups.length > GROUPS_MAX) return undefined;
    found.push(...page.groups);
    ungrouped = page.ungrouped;
    isMore = page.groups.length === GROUPS_SLICE;
    after = page.groups.at(-1)?.group ?? '';
  }
  const lanes = found.flatMap(({ group, places, state }) =>
    PRIORITIES.map(
      (name, nth): WaitingLane => ({ group, priority: nth, waiting: places[name], weight: state?.weight ?? 1 }),
    ),
  );
  // Their priorities are not counted apart.
  const apart: WaitingLane = { group: '', priority: 1, waiting: ungrouped, weight: 1 };
  const { concurrency: most = 0, intervalUs = 0, nextTurnMs = 0, closedMs = 0 } = gate ?? {};
  return {
    lane: { group: groupOf(job.id) ?? '', priority: PRIORITIES.indexOf(priority) },
    ahead,
    lanes: [...lanes, apart].filter(({ waiting }) => waiting > 0),
    queue: { most, running: ready + running, intervalUs, nextTurnMs, closedMs },
    groups: new Map(found.map((one) => [one.group, groupPacing(one)])),
    sinceMs: waitingSinceMs ?? nowMs,
  };
}

function groupPacing({ running, state }: SeenGroup): Pacing {
  const { most = 0, intervalUs = 0, nextTurnMs = 0, closedMs = 0 } = state ?? {};
  return { most, running, intervalUs, nextTurnMs, closedMs };
}

/** Of a job that was let through, or has no limits: the entries before it that nobody has taken. Undefined: there are too many. */
async function spotInReady(redis: Redis, ref: PartitionRef, { job, partition }: Looking): Promise<Spot | undefined> {
  const member = memberOf(job.id, { bare: job.bare });
  const held = await placesOf(redis, ref, {
    source: { kind: 'running' },
    after: undefined,
    last: undefined,
    limit: READY_MAX,
  });
  const ask = { source: { kind: 'ready' }, after: undefined, last: undefined, limit: 2 * READY_MAX } as const;
  const entries = await placesOf(redis, ref, ask);
  if (isMoved(held) || isMoved(entries)) return undefined;
  const taken = new Set(held.places.map(({ at }) => at));
  const untaken = entries.places.filter(({ at }) => !taken.has(at));
  const ahead = untaken.findIndex((place) => place.member === member);
  if (ahead < 0) return undefined;
  const lane = { group: '', priority: 1 };
  return {
    lane,
    ahead,
    lanes: [{ ...lane, waiting: partition.ready, weight: 1 }],
    queue: { most: 0, running: partition.running, intervalUs: 0, nextTurnMs: 0, closedMs: 0 },
    groups: new Map(),
    sinceMs: untaken[0]?.entryMs ?? partition.nowMs,
  };
}

/** Of the runs of an hour: how many, and how long they lasted on average. */
function runsOf(times: Times): Pick<WaitFacts, 'runs' | 'runMs'> {
  const found = runTimesOf(times);
  if (!found) return { runs: 0, runMs: 0 };
  const shares = Array.from({ length: SHARES }, (_, at) => found.within((at + 0.5) / SHARES));
  return { runs: found.runs, runMs: shares.reduce((sum, one) => sum + one, 0) / SHARES };
}

const SHARES = 200;

/** Jobs that came due in a second and partition, of the last minutes. */
function arrivalsIn({ counts, known, stepMs }: QueueMinutes, partitions: number): number | undefined {
  const steps = [...known.keys()].slice(-CHECKED_MINUTES).filter((step) => known[step] === true);
  const arrivals = steps.reduce((sum, step) => sum + (counts.promoted[step] ?? 0), 0);
  return steps.length === 0 ? undefined : (arrivals * 1000) / (steps.length * stepMs) / partitions;
}

/** Starts in a second and partition, of the last whole minutes in which jobs waited. */
function startsIn(
  { start, known, startMs, stepMs }: QueueMinutes,
  sinceMs: number,
  partitions: number,
): number | undefined {
  const steps = [...known.keys()].slice(-CHECKED_MINUTES);
  const meant = steps.filter((step) => known[step] === true && startMs + step * stepMs >= sinceMs);
  if (meant.length === 0) return undefined;
  const starts = meant.reduce((sum, step) => sum + (start.count[step] ?? 0), 0);
  return (starts * 1000) / (meant.length * MINUTE_MS) / partitions;
}
