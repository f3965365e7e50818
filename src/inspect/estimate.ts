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
  type Untold,
  type WaitFacts,
  type WaitingLane,
} from '../job/estimate.ts';
import { ratesIn, turnsFree } from '../job/gate.ts';
import { groupOf, PRIORITIES } from '../job/labels.ts';
import { MINUTE_MS, type Times } from '../job/minutes.ts';
import type { Redis } from '../redis/connection/connect.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { groupsOf, type SeenGroup } from '../redis/read/groups.ts';
import { type PartitionStats, stats } from '../redis/read/inspect.ts';
import { heldUntil } from '../redis/read/order.ts';
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
  readonly waitsFor?: Pick<NonNullable<JobReport['waitsFor']>, 'priority' | 'ahead' | 'obstacles'> | undefined;
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
  const refs = await refsOfQueue(place, job.queue);
  const ref = refs[job.partition];
  if (!ref) return undefined;
  const partition = await stats(place.redis, ref);
  if (job.waitsFor?.obstacles.some(({ kind }) => kind === 'group-kept')) return notTold('group-kept');
  if (job.state === 'waiting' && partition.gate?.shared) return notTold('shared');
  const paced = await pacedBy(place, { refs, partition, queue: job.queue });
  if (typeof paced === 'string') return notTold(paced);
  const spot =
    job.state === 'ready'
      ? await spotInReady(place.redis, ref, { job, partition })
      : await spotInLine(place.redis, ref, { job, partition });
  return spot ? paced(spot) : notTold('many-lanes');
}

/**
 * When the last of the jobs that wait in a queue starts, in the partition where most wait. Undefined: none waits, or nothing starts
 * at all (`queues why` has the reason), or something cannot be read.
 *
 * @example (await lastStartOf(place, 'mails'))?.text // 'in about 4 s: 37 jobs before it, at 10/s by the rate'
 */
export async function lastStartOf(place: Namespaced, queue: string): Promise<StartEstimate | undefined> {
  return lastStart(place, queue).catch(() => undefined);
}

async function lastStart(place: Namespaced, queue: string): Promise<StartEstimate | undefined> {
  const { redis } = place;
  const refs = await refsOfQueue(place, queue);
  const all = await Promise.all(refs.map(async (ref) => ({ ref, partition: await stats(redis, ref) })));
  const waitingOf = ({ waiting, ready }: PartitionStats) => waiting + ready;
  const fullest = all.reduce((one, other) => (waitingOf(other.partition) > waitingOf(one.partition) ? other : one));
  const { ref, partition } = fullest;
  if (waitingOf(partition) === 0) return undefined;
  if (partition.waiting > 0 && partition.gate?.shared) return notTold('shared');
  const paced = await pacedBy(place, { refs, partition, queue });
  if (typeof paced === 'string') return undefined;
  if (partition.waiting === 0) return paced(readySpot(partition, partition.ready - 1, partition.nowMs));
  const line = await lineOf(redis, ref, partition);
  if (!line) return notTold('many-lanes');
  if (line.isHeld) return notTold('group-kept');
  const lasts = longestOf(line).map((lane) => paced({ ...line, lane, ahead: lane.waiting - 1 }));
  const untold = lasts.find(({ startMs }) => startMs === undefined);
  return untold ?? lasts.toSorted((one, other) => (other.startMs ?? 0) - (one.startMs ?? 0))[0];
}

/** The lanes of which one ends last: the longest of each priority, and the one whose group takes longest. */
function longestOf({ lanes, groups }: Line): readonly WaitingLane[] {
  const turns = ({ waiting, weight }: WaitingLane) => waiting / weight;
  const longest = PRIORITIES.flatMap(
    (_, nth) =>
      mostOf(
        lanes.filter(({ priority }) => priority === nth),
        turns,
      ) ?? [],
  );
  const slowest = mostOf(lanes, ({ group, waiting }) => {
    const { most = 0, intervalUs = 0 } = groups.get(group) ?? {};
    return Math.max(most === 0 ? 0 : waiting / most, waiting * intervalUs);
  });
  return [...new Set([...longest, ...(slowest ? [slowest] : [])])];
}

const mostOf = (lanes: readonly WaitingLane[], by: (lane: WaitingLane) => number): WaitingLane | undefined =>
  lanes.toSorted((one, other) => by(other) - by(one))[0];

interface Pacings {
  readonly refs: readonly PartitionRef[];
  readonly partition: PartitionStats;
  readonly queue: string;
}

/** What workers of a queue do, as a way from a spot to its estimate; or why nothing starts. */
async function pacedBy(
  place: Namespaced,
  { refs, partition, queue }: Pacings,
): Promise<((spot: Spot) => StartEstimate) | Untold> {
  const processes = await processesOf(place.redis, place.namespace);
  if (partition.paused) return 'paused';
  if (!leaderOf(partition, processes)) return 'no-leader';
  if (workersOf(queue, processes) === 0) return 'no-worker';
  if (partition.gate?.hasCosts) return 'costs';
  const { nowMs } = partition;
  const { minutes, times } = await minutesAndTimes(place, queue, { hours: 1, nowMs });
  const slots = slotsOf(queue, processes);
  return ({ sinceMs, ...seen }) =>
    estimateOf({
      ...seen,
      nowMs,
      // Workers serve all partitions alike.
      slots: slots === undefined ? undefined : slots / refs.length,
      ...runsOf(times.run),
      arrivalsPerSecond: arrivalsIn(minutes, refs.length),
      startsPerSecond: startsIn(minutes, sinceMs, refs.length),
    });
}

/** Who waits in a partition, and what lets them through. */
type Line = Pick<WaitFacts, 'queue' | 'groups'> & {
  /** Those in which somebody may have a turn. */
  readonly lanes: readonly WaitingLane[];
  /** Somebody waits whose group is held in strict order, by a job that is due later or by a dead letter. */
  readonly isHeld: boolean;
  /** Since when jobs have waited without an end. */
  readonly sinceMs: number;
};
type Spot = Line & Pick<WaitFacts, 'lane' | 'ahead'>;

interface Looking {
  readonly job: Waiting;
  readonly partition: PartitionStats;
}

/** Of a job in line. Undefined: there are too many lanes. */
async function spotInLine(redis: Redis, ref: PartitionRef, { job, partition }: Looking): Promise<Spot | undefined> {
  const line = await lineOf(redis, ref, partition);
  const { priority = 'normal', ahead = 0 } = job.waitsFor ?? {};
  return line && { ...line, lane: { group: groupOf(job.id) ?? '', priority: PRIORITIES.indexOf(priority) }, ahead };
}

/** The lanes of a partition. Undefined: there are too many. */
async function lineOf(
  redis: Redis,
  ref: PartitionRef,
  { gate, ready, running, waitingSinceMs, nowMs }: PartitionStats,
): Promise<Line | undefined> {
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
  const waiting = [...lanes, apart].filter((lane) => lane.waiting > 0);
  const held = await heldAt(redis, ref, { waiting, nowMs });
  const { concurrency: most = 0, closedMs = 0 } = gate ?? {};
  const [{ intervalUs, nextTurnMs } = NO_RATE, second] = gate ? ratesIn(gate) : [];
  return {
    lanes: waiting.filter(({ group }) => !held.has(group)),
    isHeld: held.size > 0,
    queue: {
      ...{ most, running: ready + running, intervalUs, nextTurnMs, closedMs },
      ...(second && { second: { ...second, free: turnsFree(second, nowMs) } }),
    },
    groups: new Map(found.map((one) => [one.group, groupPacing(one)])),
    sinceMs: waitingSinceMs ?? nowMs,
  };
}

/** Groups of lanes in which nobody has a turn at this moment, as another job has the group, or a dead letter. */
async function heldAt(
  redis: Redis,
  ref: PartitionRef,
  { waiting, nowMs }: { readonly waiting: readonly WaitingLane[]; readonly nowMs: number },
): Promise<ReadonlySet<string>> {
  const groups = waiting.flatMap(({ group }) => (group === '' ? [] : [group]));
  const until = await heldUntil(redis, ref, [...new Set(groups)]);
  return new Set([...until].flatMap(([group, ms]) => (ms > nowMs ? [group] : [])));
}

const NO_RATE = { intervalUs: 0, nextTurnMs: 0 };

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
  return ahead < 0 ? undefined : readySpot(partition, ahead, untaken[0]?.entryMs ?? partition.nowMs);
}

/** Of a job that waits for a worker alone. */
function readySpot({ ready, running }: PartitionStats, ahead: number, sinceMs: number): Spot {
  const lane = { group: '', priority: 1 };
  return {
    lane,
    ahead,
    lanes: [{ ...lane, waiting: ready, weight: 1 }],
    isHeld: false,
    queue: { most: 0, running, intervalUs: 0, nextTurnMs: 0, closedMs: 0 },
    groups: new Map(),
    sinceMs,
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
