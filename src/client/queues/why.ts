/**
 * Why jobs of a queue wait, if any do: each reason as a code for programs, a sentence for people, and the next step. The
 * command line, the HTTP API and the pages say the same words.
 */

import { type HeldBy, holdersOfLine } from '../../job/gate.ts';
import { counted, span } from '../../kernel/humanize.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { isFull } from '../../redis/connection/memory.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { type PartitionStats, stats } from '../../redis/read/inspect.ts';
import type { Keeper } from '../../redis/read/order.ts';
import { nextLaneMs, openLanes } from '../../redis/scripts/gates.ts';
import type { JobReport } from '../query/report.ts';
import type { JobWait, WaitObstacle } from '../query/waits.ts';
import {
  areRemote,
  leaderOf,
  type ProcessesById,
  pausedWorkersOf,
  processesOf,
  slotsOf,
  workersOf,
} from './processes.ts';
import { type Namespaced, refsOfQueue } from './refs.ts';

/** What stands in the way, the worst first; then what is no obstacle, and explains a queue that stands still. */
export const OBSTACLES = [
  ...([
    'redis-full',
    'no-leader',
    'paused',
    'no-worker',
    'ready-capped',
    'busy',
    'waiting',
    'lingering',
    'not-due',
    'empty',
  ] as const),
];

export interface Obstacle {
  readonly code: (typeof OBSTACLES)[number];
  readonly text: string;
  /** What to do about it. */
  readonly advice: string;
  /** Undefined: all of them. */
  readonly partitions?: readonly number[] | undefined;
  /** Of `waiting`: the limit that holds the jobs; undefined: none, they wait for a worker. */
  readonly heldBy?: HeldBy | undefined;
  /** Of `not-due`: when the next job is due. Of `waiting`: when the rate allows the next start, or when the queue or a group opens. */
  readonly nextMs?: number | undefined;
}

/** Why jobs of a queue wait. */
export interface Why {
  /** Jobs move, or will as soon as one is due. */
  readonly moves: boolean;
  readonly reasons: readonly Obstacle[];
  readonly nowMs: number;
}

export type SeenPartition = PartitionStats & {
  /** In so many of its lanes somebody may have a turn. */
  readonly openLanes: number;
  /** Where none is open: when the first one opens that waits for a time, epoch ms. */
  readonly nextLaneMs?: number | undefined;
  readonly lingerMs?: number | undefined;
  /** Its jobs call a URL, so only dispatchers run them. */
  readonly hasTarget?: true | undefined;
};

interface Seen {
  readonly queue: string;
  readonly all: readonly SeenPartition[];
  readonly processes: ProcessesById;
  readonly readyMax: number;
}

/** @param readyMax at how many undelivered entries leaders stop to promote @throws DuestreamError `not-found` */
export async function whyNothingMoves(place: Namespaced, queue: string, readyMax: number): Promise<Why> {
  const refs = await refsOfQueue(place, queue);
  const processes = await processesOf(place.redis, place.namespace);
  const all = await Promise.all(refs.map((ref) => partitionSeen(place.redis, ref)));
  const seen = { queue, all, processes, readyMax };
  const nowMs = Math.max(...all.map((one) => one.nowMs));
  const full = await fullOf(place, refs);
  const held = sum(all, (one) => one.scheduled + one.waiting + one.ready + one.running);
  const hard = held === 0 ? pausedOf(seen) : obstaclesOf(seen);
  // Whoever takes these away sees what holds the jobs then.
  const own = hard.length === 0 ? [] : [...hard, ...heldOf(queue, all)];
  const reasons = [...full, ...own.map((one) => ({ ...one, text: `${queue}: ${one.text}` }))];
  if (reasons.length > 0) return { moves: false, reasons, nowMs };
  if (held > 0) return { ...standing(seen, nowMs), nowMs };
  const advice = `schedule one: duestream schedule ${queue} --delay 1m`;
  return { moves: false, reasons: [{ code: 'empty', text: `${queue} holds no job`, advice }], nowMs };
}

export async function partitionSeen(redis: Redis, ref: PartitionRef): Promise<SeenPartition> {
  const one = await stats(redis, ref);
  return { ...one, ...(await lanesOf(redis, ref, one)), lingerMs: ref.lingerMs, hasTarget: ref.target && true };
}

async function lanesOf(redis: Redis, ref: PartitionRef, { waiting }: PartitionStats) {
  if (waiting === 0) return { openLanes: 0 };
  const open = await openLanes(redis, ref);
  return open > 0 ? { openLanes: open } : { openLanes: 0, nextLaneMs: await nextLaneMs(redis, ref) };
}

async function fullOf({ redis }: Namespaced, [first]: readonly PartitionRef[]): Promise<readonly Obstacle[]> {
  if (!first || !(await isFull(redis, first.keys))) return [];
  const text = 'Redis is at its memory limit: jobs can end, and none can be scheduled';
  return [{ code: 'redis-full', text, advice: 'raise maxmemory of Redis' }];
}

function obstaclesOf(seen: Seen): readonly Obstacle[] {
  const { queue, all, processes } = seen;
  const paused = pausedWorkersOf(queue, processes);
  const isWorked = workersOf(queue, processes) > paused.length || sum(all, ({ running }) => running) > 0;
  const [first] = paused;
  const [idle, start] = all.some(({ hasTarget }) => hasTarget)
    ? ['its jobs call a URL, and no dispatcher lives', 'add the role dispatcher to a daemon']
    : [
        'no worker that lives serves it',
        'start one with "duestream worker <module>", or add the role worker to a daemon',
      ];
  const text = first === undefined ? idle : 'each worker that serves it is paused';
  const advice = first === undefined ? start : `let one go on: duestream workers resume ${first.id}`;
  return [
    ...ofThose(all, (one) => leaderOf(one, processes) === undefined && one.scheduled > 0, {
      code: 'no-leader',
      text: 'no daemon leads it, so nothing that comes due is promoted',
      advice: 'start a daemon with the role mover: duestream start',
    }),
    ...pausedOf(seen),
    ...(isWorked ? [] : [{ code: 'no-worker' as const, text, advice }]),
    ...unpolledOf(seen),
    ...cappedOf(seen, isWorked),
  ];
}

/** A worker over HTTP that lives claims what is ready at once, unless it is full. */
function unpolledOf({ queue, all, processes }: Seen): readonly Obstacle[] {
  const [ready, running] = [sum(all, (one) => one.ready), sum(all, (one) => one.running)];
  if (ready === 0 || running > 0 || !areRemote(queue, processes)) return [];
  const text = `its workers come over HTTP, and nobody polls: ${counted(ready, 'job')} are ready, and no claim waits`;
  const advice = 'look whether the worker still runs, and what its last call was answered; a new one needs a new name';
  return [{ code: 'no-worker', text, advice }];
}

function pausedOf({ queue, all }: Seen): readonly Obstacle[] {
  const first = all.find(({ paused }) => paused);
  if (!first) return [];
  const { sinceMs, reason = '' } = first.pause ?? {};
  const since = sinceMs === undefined ? '' : ` for ${span(first.nowMs - sinceMs)}`;
  const text = `it has been paused${since}: ${reason === '' ? 'without a reason' : reason}`;
  const advice = `when the reason is gone: duestream queues resume ${queue}`;
  return ofThose(all, ({ paused }) => paused, { code: 'paused', text, advice });
}

/** While workers take entries the cap is no obstacle: it is there so that they have enough and not too many. */
function cappedOf({ all, readyMax }: Seen, isWorked: boolean): readonly Obstacle[] {
  const isDue = ({ headDueMs = Number.POSITIVE_INFINITY, nowMs }: PartitionStats) => headDueMs <= nowMs;
  if (isWorked) return [];
  return ofThose(all, (one) => one.ready >= readyMax && isDue(one), {
    code: 'ready-capped',
    text: `${readyMax} jobs are ready and nobody has taken them, so no more are promoted (mover.readyMax)`,
    advice: 'start workers: they take the ready jobs, and then more are promoted',
  });
}

/** Nothing stands in the way but limits, the number of workers and time. */
function standing({ queue, all, processes }: Seen, nowMs: number): Omit<Why, 'nowMs'> {
  const [ready, running] = [sum(all, (one) => one.ready), sum(all, (one) => one.running)];
  const held = heldOf(queue, all).map((one) => ({ ...one, text: `${queue}: ${one.text}` }));
  if (held.length > 0) return { moves: true, reasons: held };
  const wait = ready + sum(all, (one) => one.waiting);
  // An older worker does not say how many slots it has.
  const slots = slotsOf(queue, processes) ?? running;
  if (wait > 0 && running > 0 && running >= slots) {
    const text = `${queue}: ${counted(wait, 'job')} wait for a free slot, while workers hold ${running}`;
    const advice = 'to start more at a time: more workers, or a higher concurrency of each';
    return { moves: true, reasons: [{ code: 'busy', text, advice }] };
  }
  const nextMs = Math.min(...all.map(({ headDueMs = Number.POSITIVE_INFINITY }) => headDueMs));
  const lingering = lingeringOf(queue, all);
  if (lingering.length > 0) return { moves: true, reasons: lingering };
  if (wait > 0 || running > 0 || nextMs <= nowMs || !Number.isFinite(nextMs)) return { moves: true, reasons: [] };
  const text = `${queue}: every job waits for its due time; the next is due in ${span(nextMs - nowMs)}`;
  const advice = `to start a job now: duestream reschedule ${queue} <id> --now`;
  return { moves: false, reasons: [{ code: 'not-due', text, advice, nextMs: Math.ceil(nextMs) }] };
}

/** Partitions whose first job is due, and waits for the next pass. */
function lingeringOf(queue: string, all: readonly SeenPartition[]): readonly Obstacle[] {
  const waitMs = ({ lingerMs, headDueMs, nowMs }: SeenPartition) => lingerLeftMs({ lingerMs, dueMs: headDueMs, nowMs });
  const waits = all.flatMap((one) => waitMs(one) ?? []);
  return ofThose(all, (one) => waitMs(one) !== undefined, {
    code: 'lingering',
    text: `${queue}: ${lingerText(Math.max(...waits))}`,
    advice: `to start each job on time: duestream queues set ${queue} --linger 0`,
  });
}

/**
 * How long a due job can have to wait for the next pass of its leader, which is made one linger after the last at the latest.
 * Undefined: it is not due, does not linger, or has waited for longer than that, so that something else is the reason.
 */
export function lingerLeftMs(job: {
  readonly lingerMs?: number | undefined;
  readonly dueMs: number | undefined;
  readonly nowMs: number;
}): number | undefined {
  const { lingerMs = 0, dueMs = Number.POSITIVE_INFINITY, nowMs } = job;
  const leftMs = dueMs + lingerMs - nowMs;
  return dueMs <= nowMs && leftMs > 0 ? leftMs : undefined;
}

export const lingerText = (leftMs: number): string =>
  `due jobs linger for company; the next pass is in ${Math.ceil(leftMs)} ms at most`;

/** The limits that hold jobs in line, the one that counts first; each with the partitions in which it does. */
function heldOf(queue: string, all: readonly SeenPartition[]): readonly Obstacle[] {
  const held = new Map(all.map((one) => [one, limitsHolding(one)]));
  // By their rank in each partition: what counts first somewhere comes before what counts nowhere first.
  const kinds = [...held.values()].flatMap((kinds) => kinds.map((kind, rank) => ({ kind, rank })));
  const order = [...new Set(kinds.sort((one, other) => one.rank - other.rank).map(({ kind }) => kind))];
  return order.flatMap((kind) => {
    const those = all.filter((one) => held.get(one)?.includes(kind));
    return ofThose(all, (one) => those.includes(one), obstacleOf(queue, kind, those));
  });
}

function obstacleOf(queue: string, heldBy: HeldBy, those: readonly SeenPartition[]): Obstacle {
  const waiting = sum(those, (one) => one.waiting);
  const sinceMs = Math.max(...those.map(({ nowMs, waitingSinceMs = nowMs }) => nowMs - waitingSinceMs));
  const text = `${counted(waiting, 'job')} ${waiting === 1 ? 'waits' : 'wait'} in line, the first for ${span(Math.max(0, sinceMs))}`;
  const next = those.flatMap((one) => {
    const nextMs = nextOf(one, heldBy);
    return nextMs === undefined ? [] : [{ nextMs, inMs: Math.max(0, nextMs - one.nowMs) }];
  });
  const first = next.sort((one, other) => one.inMs - other.inMs)[0];
  const who = heldBy === 'group-full' ? `; to see who holds them: duestream groups ls ${queue} --top` : '';
  // In strict order more than one at a time is refused.
  const isFixed = heldBy === 'group-full' && those.every(({ gate }) => gate?.isStrict);
  const more = isFixed ? '' : `; to let more start: duestream queues ${HOLDS[heldBy].advice(queue)}`;
  const why = isFixed ? GROUPS_KEPT : HOLDS[heldBy].text(span(first?.inMs ?? 0));
  return {
    code: 'waiting',
    text: `${text}: ${why}`,
    advice: `each starts when its turn comes${who}${more}`,
    heldBy,
    ...(first && { nextMs: first.nextMs }),
  };
}

/** When a limit lets the next job through by itself; undefined: when a handler ends. */
function nextOf({ gate, nextLaneMs: laneMs, nowMs }: SeenPartition, heldBy: HeldBy): number | undefined {
  switch (heldBy) {
    case 'queue-closed':
      return gate?.closedMs;
    case 'rate':
      return Math.max(nowMs, gate?.nextTurnMs ?? nowMs);
    case 'group-full':
      return laneMs;
    case 'queue-full':
    case 'shared':
      return undefined;
  }
}

/**
 * When limits that end by themselves, a rate or a closing, allow the next start, if they allow none now. Undefined: no job
 * waits in line, or none of these holds them.
 */
export function nextStartMs(one: SeenPartition): number | undefined {
  const { waiting, gate, openLanes: open, nextLaneMs: laneMs = 0, nowMs } = one;
  if (waiting === 0 || !gate) return undefined;
  const turnMs = gate.intervalUs > 0 ? gate.nextTurnMs : 0;
  const nextMs = Math.max(gate.closedMs, turnMs, open === 0 ? laneMs : 0);
  return nextMs > nowMs ? nextMs : undefined;
}

const HOLDS = {
  'queue-closed': {
    text: (next: string) => `it is closed for ${next} more`,
    advice: (queue: string) => `open ${queue}`,
  },
  'queue-full': {
    text: () => 'as many run as its concurrency allows',
    advice: (queue: string) => `set ${queue} --concurrency <n>`,
  },
  'group-full': {
    text: () => 'each of their groups is full or closed, or has no turn of its rate now',
    advice: (queue: string) => `set ${queue} --per-group <n>`,
  },
  shared: {
    text: () =>
      'a limit that other queues share has no turn or no place for them now; to see who has: duestream limits ls',
    advice: (queue: string) => `set ${queue} --limits none`,
  },
  rate: {
    text: (next: string) => `its rate allows the next start in ${next}`,
    advice: (queue: string) => `set ${queue} --rate <rate>`,
  },
} as const;

/** In strict order whoever has a group keeps it, also while it waits for its next attempt. */
const GROUPS_KEPT =
  'each of their groups is held by a job that is not over yet or by its dead letter, or is closed, or has no turn of its rate now';

/** The limits that hold the jobs in line of a partition, the one that counts first. */
export const limitsHolding = (one: SeenPartition): readonly HeldBy[] =>
  holdersOfLine({ ...one, gate: one.gate, entries: one.ready + one.running, startedMs: one.startedMs });

function ofThose(
  all: readonly SeenPartition[],
  isOne: (one: SeenPartition) => boolean,
  obstacle: Obstacle,
): readonly Obstacle[] {
  const partitions = all.flatMap((one, at) => (isOne(one) ? [at] : []));
  if (partitions.length === 0) return [];
  return [partitions.length === all.length ? obstacle : { ...obstacle, partitions }];
}

const sum = (all: readonly PartitionStats[], of: (one: PartitionStats) => number): number =>
  all.reduce((total, one) => total + of(one), 0);

// Why one job waits.

type Closed = Extract<WaitObstacle, { readonly kind: 'queue-closed' | 'group-closed' }>;

/** An obstacle as a viewer sees it: who may not read what handlers say sees no reason of what is closed. */
export type SeenObstacle = Exclude<WaitObstacle, Closed> | (Omit<Closed, 'reason'> & { readonly reason?: string });

/** An obstacle of a job in line with its sentence. */
type ShownObstacle = SeenObstacle & { readonly text: string };

/** What a job in line waits for, as a viewer sees it. */
export interface SeenWait extends Omit<JobWait, 'obstacles'> {
  readonly obstacles: readonly SeenObstacle[];
}

/** What a job in line waits for, with a sentence for each. */
export interface ShownWait extends Omit<JobWait, 'obstacles'> {
  readonly obstacles: readonly ShownObstacle[];
  /** Where it stands. */
  readonly text: string;
}

/** The same as the library says it, and whether anybody serves the queue. */
export async function whyJobWaits(
  { redis, namespace }: Namespaced,
  { queue, waitsFor, nowMs }: Pick<JobReport, 'queue' | 'nowMs'> & { readonly waitsFor: SeenWait | undefined },
): Promise<ShownWait | undefined> {
  if (!waitsFor) return undefined;
  const isServed = workersOf(queue, await processesOf(redis, namespace)) > 0;
  const { obstacles: own } = waitsFor;
  const paused = own.filter(({ kind }) => kind === 'paused');
  const all = isServed ? own : [...paused, { kind: 'no-worker' as const }, ...own.slice(paused.length)];
  const obstacles = all.map((one) => ({ ...one, text: obstacleText(one, waitsFor.group, nowMs) }));
  return { ...waitsFor, obstacles, text: placeText(waitsFor) };
}

function placeText({ group, priority, ahead, obstacles }: SeenWait): string {
  const lane = `of ${group === undefined ? 'those without a group' : `group ${group}`}, ${priority} priority`;
  if (ahead > 0) return `${counted(ahead, 'job')} ${lane}, ${ahead === 1 ? 'comes' : 'come'} before it`;
  const next = `it is the first in line ${lane}`;
  return obstacles.length > 0 ? next : `${next}, and waits for its turn and a worker with a free slot`;
}

function obstacleText(one: SeenObstacle, group: string | undefined, nowMs: number): string {
  switch (one.kind) {
    case 'paused': {
      const since = one.sinceMs === undefined ? '' : ` for ${span(Math.max(0, nowMs - one.sinceMs))}`;
      return `the queue has been paused${since}: ${one.reason === '' ? 'without a reason' : one.reason}`;
    }
    case 'no-worker':
      return 'no worker that lives serves the queue';
    case 'queue-full':
      return `the queue is full: ${one.running} of ${one.limit} run`;
    case 'shared':
      return `${counted(one.limits.length, 'limit')} that other queues share: ${one.limits.join(', ')}`;
    case 'group-full':
      return `its group ${group} is full: ${one.running} of ${one.limit} run`;
    case 'group-kept':
      return `its group ${group} is held by ${keeperText(one.keeper, nowMs)}`;
    case 'rate':
      return `the rate allows the next start in ${span(Math.max(0, one.untilMs - nowMs))}`;
    case 'group-rate':
      return `the rate of its group ${group} allows the next start in ${span(Math.max(0, one.untilMs - nowMs))}`;
    case 'queue-closed':
    case 'group-closed': {
      const what = one.kind === 'queue-closed' ? 'the queue' : `its group ${group}`;
      const why = one.reason === undefined ? '' : `: ${one.reason || 'without a reason'}`;
      return `${what} is closed for ${span(Math.max(0, one.untilMs - nowMs))} more${why}`;
    }
  }
}

/** Who has a group, and when that one goes on. @example '{acme}a, attempt 3 at 14:05:10 UTC' */
export function keeperText({ id, attempt, owner, dueMs, deadLetter }: Keeper, nowMs: number): string {
  if (deadLetter !== undefined) {
    return `${id}, which is dead: replay or remove dead letter ${deadLetter}, or open the group`;
  }
  if (owner !== undefined) return `${id}, attempt ${attempt} of which runs`;
  if (dueMs === undefined || dueMs <= nowMs) return `${id}, which waits for attempt ${attempt}`;
  return `${id}, attempt ${attempt} at ${momentText(dueMs, nowMs)}`;
}

const DAY_MS = 86_400_000;

/** The time of day of what comes within one, else the date too. */
function momentText(ms: number, nowMs: number): string {
  const [date = '', time = ''] = new Date(ms).toISOString().split('T');
  const ofDay = `${time.slice(0, 8)} UTC`;
  return ms - nowMs < DAY_MS ? ofDay : `${date} ${ofDay}`;
}
