/** How much a partition may do at once: it gets its share, and its line, lanes and holds are checked, a slice at a time. */

import { type PartitionGates, readShare } from '../../job/gate.ts';
import { serverNowMs } from '../connection/call-end.ts';
import type { Redis } from '../connection/connect.ts';
import type { PartitionRef } from '../keys.ts';
import { scripts } from './script-table.ts';
import { list, run, text } from './scripts.ts';
import { leastVersionIn } from './upkeep.ts';

/** Entries or groups of one slice, so that no call takes Redis long. */
const SLICE = 200;

/**
 * Gives a partition its share, in as many calls as it takes.
 *
 * @param of.share as `gateShare` in `job/gate.ts` makes it
 * @param of.term of the leader that calls; undefined: whoever sets the limits
 */
export async function limit(
  redis: Redis,
  { keys }: PartitionRef,
  of: {
    readonly share: PartitionGates;
    readonly term?: string | undefined;
    readonly slice?: number;
    readonly nowMs?: number;
  },
): Promise<'ok' | 'same' | 'fenced'> {
  const { share, term = '', slice = SLICE, nowMs = '' } = of;
  for (;;) {
    const args = { now: nowMs, term, share: share.share, limit: slice };
    const reply = text(await run(redis, scripts.limit, { keys, args, each: share.groups.flat() }));
    if (reply !== 'more') return reply as 'ok' | 'same' | 'fenced';
  }
}

/** What a partition has in the place of its share of the limits of its queue; undefined where it has that, or none yet, or is getting it. */
export async function otherShare(redis: Redis, { keys, gates, quota }: PartitionRef): Promise<string | undefined> {
  const [share, allotted] = await redis.hmget(keys.meta, 'gates', 'quota');
  const isMoving = share?.startsWith('- ') || share?.startsWith(`${gates?.share} > `);
  if (gates !== undefined && share && share !== gates.share && !isMoving) {
    return `the limits ${share} instead of ${gates.share}`;
  }
  const wanted = quota && `${quota.pending} ${quota.bytes}`;
  if (!wanted || !allotted || allotted === wanted) return undefined;
  return `maxPending and maxBytes ${allotted} instead of ${wanted}`;
}

/** The limits that queues share and that a partition keeps to, by what `gates` of its meta says. */
export const namesIn = (gates: string | null): readonly string[] => readShare(gates ?? '').shared ?? [];

/** Whether an older process has written over a share that it does not know, or over its mark. */
export async function isWrittenOver(
  redis: Redis,
  { keys }: PartitionRef,
  { share, isMarked = false }: PartitionGates,
): Promise<boolean> {
  if (!isMarked) return false;
  const [gates, paused] = await redis.hmget(keys.meta, 'gates', 'paused');
  return gates !== share || leastVersionIn(paused) === undefined;
}

/** Lanes of the fourth band wait for a time; nobody in them may have a turn before it. */
const TIMED_FROM = 3 * 2 ** 50;

/** Lanes in which somebody may have a turn: their groups are not full. */
export const openLanes = (redis: Redis, { keys }: PartitionRef): Promise<number> =>
  redis.zcount(keys.lanes, '-inf', `(${TIMED_FROM}`);

/** When the first lane opens that waits for a time, a turn of the rate of its group or the end of its closing, epoch ms. */
export async function nextLaneMs(redis: Redis, { keys }: PartitionRef): Promise<number | undefined> {
  const [, score] = await redis.zrangebyscore(keys.lanes, TIMED_FROM, '+inf', 'WITHSCORES', 'LIMIT', 0, 1);
  return score === undefined ? undefined : Number(score) - TIMED_FROM;
}

/** How many jobs of a group have a slot; not more than `limit` are counted. */
export async function holdsOf(
  redis: Redis,
  { keys }: PartitionRef,
  { group, limit: most }: { readonly group: string; readonly limit: number },
): Promise<number> {
  return (await redis.zrange(keys.holds, ...rangeOf(group), 'BYLEX', 'LIMIT', 0, most)).length;
}

/** Whether a job of a group waits in line. */
export const hasWaiting = async (redis: Redis, { keys }: PartitionRef, group: string): Promise<boolean> =>
  (await redis.zrange(keys.line, ...rangeOf(group), 'BYLEX', 'LIMIT', 0, 1)).length > 0;

/** All places or holds of a group: they begin with its name and a zero byte. */
const rangeOf = (group: string) => [`[${group}\0`, `(${group}\x01`] as const;

/**
 * Lets nobody of a group, or of the whole partition, through until a time.
 *
 * @param of.group '' = the whole partition
 * @param of.until epoch ms, or so many ms from when it was called (monotonic), or from now; 0: it opens at once
 * @returns `same`: it is closed for as long or longer, or was open; `ungated`: it has no line in which jobs could wait
 */
export async function close(
  redis: Redis,
  { keys }: PartitionRef,
  of: {
    readonly group: string;
    readonly until: number | { readonly forMs: number; readonly calledMs?: number };
    readonly why?: string;
    readonly by?: string;
    readonly nowMs?: number;
  },
): Promise<'ok' | 'same' | 'ungated'> {
  const { group, until, why = '', by = '', nowMs = '' } = of;
  const args = {
    now: nowMs,
    group,
    until: typeof until === 'number' ? until : untilText(redis, keys.meta, until),
    why,
    by,
  };
  return text(await run(redis, scripts.close, { keys, args })) as 'ok' | 'same' | 'ungated';
}

/** What is compared with what. */
export const GATE_PARTS = ['holds', 'entries', 'waiting', 'places', 'lanes'] as const;
/**
 * `groups`: what is left of groups whose rate is unused and that are closed no longer; `order`: what is left in strict order of
 * groups that nobody has.
 */
export type GatePart = (typeof GATE_PARTS)[number] | 'groups' | 'order';

/**
 * What may be wrong: an entry of a group without its hold, a hold without its entry, a job that waits and is not in line, a
 * place in which nobody waits, a lane that is shut although its first job may have its turn. `vacant` and `spent` are left behind
 * by what is over, and do no harm.
 */
export interface GateFlaw {
  readonly kind: 'unheld' | 'loose' | 'unlined' | 'stale' | 'shut' | 'unused' | 'vacant' | 'spent';
  /** An entry, a hold, a member, a place, a lane or a group. */
  readonly name: string;
}

/** One slice; `cursor` undefined: that was the last. */
export async function checkGates(
  redis: Redis,
  { keys }: PartitionRef,
  {
    part,
    cursor = '',
    slice = SLICE,
  }: { readonly part: GatePart; readonly cursor?: string; readonly slice?: number | undefined },
): Promise<{ readonly cursor: string | undefined; readonly looked: number; readonly flaws: readonly GateFlaw[] }> {
  const args = { part, cursor, limit: slice };
  const [next, looked, ...words] = list(await run(redis, scripts.checkGates, { keys, args })).map(text);
  const flaws = Array.from({ length: words.length / 2 }, (_, nth) => ({
    kind: words[2 * nth] as GateFlaw['kind'],
    name: words[2 * nth + 1] ?? '',
  }));
  return { cursor: next === '' ? undefined : next, looked: Number(looked), flaws };
}

/** Mends what still is as it was seen. */
export async function mendGates(
  redis: Redis,
  { keys }: PartitionRef,
  flaws: readonly GateFlaw[],
  nowMs?: number,
): Promise<readonly ('repaired' | 'sound')[]> {
  const each = flaws.flatMap(({ kind, name }) => [kind, name]);
  const reply = list(await run(redis, scripts.mendGates, { keys, args: { now: nowMs ?? '' }, each }));
  return reply.map((item) => text(item) as 'repaired' | 'sound');
}

/** An instant where the clock of the server is known, so that a call that is sent again closes for no longer than the first. */
function untilText(
  redis: Redis,
  key: string,
  { forMs, calledMs }: { readonly forMs: number; readonly calledMs?: number },
) {
  const fromMs = calledMs === undefined ? undefined : serverNowMs(redis, key, calledMs);
  return fromMs === undefined ? `+${forMs}` : Math.round(fromMs + forMs);
}
