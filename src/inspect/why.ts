/** Why nothing moves in a queue, if nothing does: each reason as a code for programs and a sentence for people. */
import { counted, span } from '../kernel/humanize.ts';
import { isFull } from '../redis/connection/memory.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { type PartitionStats, stats } from '../redis/read/inspect.ts';
import { leaderOf, type ProcessesById, processesOf, workersOf } from './processes.ts';
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
    'not-due',
    'empty',
  ] as const),
];

export interface Obstacle {
  readonly code: (typeof OBSTACLES)[number];
  readonly text: string;
  /** Undefined: all of them. */
  readonly partitions?: readonly number[] | undefined;
  /** Of `not-due`: when the next job is due. Of `waiting`: when the rate allows the next start. */
  readonly nextMs?: number | undefined;
}

export interface Why {
  /** Jobs move, or will as soon as one is due. */
  readonly moves: boolean;
  readonly reasons: readonly Obstacle[];
  readonly nowMs: number;
}

interface Seen {
  readonly queue: string;
  readonly all: readonly PartitionStats[];
  readonly processes: ProcessesById;
  readonly readyMax: number;
}

/** @param readyMax at how many undelivered entries leaders stop to promote @throws DuestreamError `not-found` */
export async function whyNothingMoves(place: Namespaced, queue: string, readyMax: number): Promise<Why> {
  const refs = await refsOfQueue(place, queue);
  const processes = await processesOf(place.redis, place.namespace);
  const all = await Promise.all(refs.map((ref) => stats(place.redis, ref)));
  const seen = { queue, all, processes, readyMax };
  const nowMs = Math.max(...all.map((one) => one.nowMs));
  const full = await fullOf(place, refs);
  const held = sum(all, (one) => one.scheduled + one.waiting + one.ready + one.running);
  const own = held === 0 ? pausedOf(seen) : obstaclesOf(seen);
  const reasons = [...full, ...own.map((one) => ({ ...one, text: `${queue}: ${one.text}` }))];
  if (reasons.length > 0) return { moves: false, reasons, nowMs };
  if (held === 0) return { moves: false, reasons: [{ code: 'empty', text: `${queue} holds no job` }], nowMs };
  return { ...standing(seen, nowMs), nowMs };
}

async function fullOf({ redis }: Namespaced, [first]: readonly PartitionRef[]): Promise<readonly Obstacle[]> {
  if (!first || !(await isFull(redis, first.keys))) return [];
  const text = 'Redis is at its memory limit: jobs can end, and none can be scheduled; raise maxmemory';
  return [{ code: 'redis-full', text }];
}

function obstaclesOf(seen: Seen): readonly Obstacle[] {
  const { queue, all, processes } = seen;
  const isWorked = workersOf(queue, processes) > 0 || sum(all, ({ running }) => running) > 0;
  const workers = 'no worker that lives serves it: start one, or add the role worker to a daemon';
  return [
    ...ofThose(all, (one) => leaderOf(one, processes) === undefined && one.scheduled > 0, {
      code: 'no-leader',
      text: 'no daemon leads it, so nothing that comes due is promoted: start one with the role mover',
    }),
    ...pausedOf(seen),
    ...(isWorked ? [] : [{ code: 'no-worker' as const, text: workers }]),
    ...cappedOf(seen, isWorked),
  ];
}

function pausedOf({ all }: Seen): readonly Obstacle[] {
  const first = all.find(({ paused }) => paused);
  if (!first) return [];
  const { sinceMs, reason = '' } = first.pause ?? {};
  const since = sinceMs === undefined ? '' : ` for ${span(first.nowMs - sinceMs)}`;
  const why = reason === '' ? 'without a reason' : reason;
  return ofThose(all, ({ paused }) => paused, { code: 'paused', text: `it has been paused${since}: ${why}` });
}

/** While workers take entries the cap is no obstacle: it is there so that they have enough and not too many. */
function cappedOf({ all, readyMax }: Seen, isWorked: boolean): readonly Obstacle[] {
  const isDue = ({ headDueMs = Number.POSITIVE_INFINITY, nowMs }: PartitionStats) => headDueMs <= nowMs;
  if (isWorked) return [];
  return ofThose(all, (one) => one.ready >= readyMax && isDue(one), {
    code: 'ready-capped',
    text: `${readyMax} jobs are ready and nobody has taken them, so no more are promoted (mover.readyMax)`,
  });
}

/** Nothing stands in the way. */
function standing({ queue, all }: Seen, nowMs: number): Omit<Why, 'nowMs'> {
  const [ready, running] = [sum(all, (one) => one.ready), sum(all, (one) => one.running)];
  const nextMs = Math.min(...all.map(({ headDueMs = Number.POSITIVE_INFINITY }) => headDueMs));
  if (ready > 0 && running > 0) {
    const text = `${queue}: ${counted(ready, 'job')} wait for a free slot, while workers hold ${running}`;
    return { moves: true, reasons: [{ code: 'busy', text }] };
  }
  const inLine = waitingOf(queue, all, nowMs);
  if (inLine) return { moves: true, reasons: [inLine] };
  if (ready > 0 || running > 0 || nextMs <= nowMs || !Number.isFinite(nextMs)) return { moves: true, reasons: [] };
  const text = `${queue}: every job waits for its due time; the next is due in ${span(nextMs - nowMs)}`;
  return { moves: false, reasons: [{ code: 'not-due', text, nextMs: Math.ceil(nextMs) }] };
}

/** What the jobs in line wait for. */
function waitingOf(queue: string, all: readonly PartitionStats[], nowMs: number): Obstacle | undefined {
  const some = all.filter(({ waiting }) => waiting > 0);
  const [first] = some;
  if (!first) return undefined;
  const waiting = sum(some, (one) => one.waiting);
  const sinceMs = Math.min(...some.map(({ waitingSinceMs = nowMs }) => waitingSinceMs));
  const held = `${queue}: ${counted(waiting, 'job')} wait in line, the first for ${span(Math.max(0, nowMs - sinceMs))}`;
  const full = some.filter(
    ({ gate, ready, running }) => (gate?.concurrency ?? 0) > 0 && ready + running >= (gate?.concurrency ?? 0),
  );
  if (full.length === some.length) {
    return { code: 'waiting', text: `${held}: as many run as its concurrency allows` };
  }
  const nextMs = Math.min(...some.map(({ gate }) => gate?.nextTurnMs ?? 0));
  if (nextMs > nowMs)
    return { code: 'waiting', text: `${held}: its rate allows the next start in ${span(nextMs - nowMs)}`, nextMs };
  const isGroup = some.some(({ gate }) => (gate?.perGroup ?? 0) > 0);
  return {
    code: 'waiting',
    text: `${held}: ${isGroup ? 'their groups run as many as they may, or ' : ''}no worker has a free slot`,
  };
}

function ofThose(
  all: readonly PartitionStats[],
  isOne: (one: PartitionStats) => boolean,
  obstacle: Obstacle,
): readonly Obstacle[] {
  const partitions = all.flatMap((one, at) => (isOne(one) ? [at] : []));
  if (partitions.length === 0) return [];
  return [partitions.length === all.length ? obstacle : { ...obstacle, partitions }];
}

const sum = (all: readonly PartitionStats[], of: (one: PartitionStats) => number): number =>
  all.reduce((total, one) => total + of(one), 0);
