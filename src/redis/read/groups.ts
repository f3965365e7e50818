/**
 * The groups of a partition of a gated queue: how many jobs of each wait and run, which entries hold its limit, and how
 * many are in front of one that waits. Nothing here costs more with more jobs, but for the entries that are asked for.
 */
import { decodeRun, idOf, type Run } from '../../job/codec.ts';
import { type GateState, gateState } from '../../job/gate.ts';
import type { EntryId } from '../../job/job.ts';
import { groupOf, PRIORITIES, type Priority } from '../../job/labels.ts';
import type { Redis } from '../connection/connect.ts';
import type { PartitionKeys, PartitionRef } from '../keys.ts';
import { deliveryOf, readEntries } from '../scripts/ready.ts';
import { type Delivery, type Moved, moved } from '../scripts/replies.ts';
import { scripts } from '../scripts/script-table.ts';
import { list, type Reply, run, text } from '../scripts/scripts.ts';
import { type Pause, pauseIn } from '../scripts/upkeep.ts';
import { startOf } from './inspect.ts';

/** What a group may have in its partition. */
export interface GroupState {
  /** How many of its jobs may run; 0: any number. */
  readonly most: number;
  /** Microseconds per job of its rate; 0: no rate. */
  readonly intervalUs: number;
  readonly burst: number;
  /** So many turns it has where another has one. */
  readonly weight: number;
  /** When its rate allows one job more, epoch ms; 0: now. */
  readonly nextTurnMs: number;
  /** Until when it is closed, epoch ms; 0: it is open. */
  readonly closedMs: number;
  /** How many of its jobs may wait or run; 0: any number. */
  readonly maxPending: number;
  /** How many do; 0 without such a limit, as nobody counts then. */
  readonly pending: number;
  readonly reason: string;
}

/** A group of one partition, at one moment. */
export interface SeenGroup {
  readonly group: string;
  /** Its entries in ready. */
  readonly running: number;
  /** Its places in line, of each priority. */
  readonly places: Readonly<Record<Priority, number>>;
  /** The due time of the first in line. */
  readonly sinceMs: number | undefined;
  /** Undefined: the queue is not gated. */
  readonly state: GroupState | undefined;
}

export interface SeenGroups {
  readonly nowMs: number;
  /** Undefined: the queue is not gated. */
  readonly gate: GateState | undefined;
  /** Why the queue is closed, if it is. */
  readonly closing: string;
  /** Places of jobs without a group. */
  readonly ungrouped: number;
  readonly groups: readonly SeenGroup[];
}

/** Groups by name, from the one after `after` on, or those that are named. */
export type GroupsAsk = { readonly after: string; readonly limit: number } | { readonly named: readonly string[] };

/** Words of the reply about one group. */
const WORDS = 7;

export async function groupsOf(redis: Redis, ref: PartitionRef, ask: GroupsAsk): Promise<SeenGroups | Moved> {
  const { named, after, limit } = 'named' in ask ? { ...ask, after: '', limit: 0 } : { ...ask, named: [] };
  const args = { generation: ref.layoutGeneration, after, limit };
  const reply = list(await run(redis, scripts.groups, { keys: ref.keys, args, each: named }));
  const other = moved(reply);
  if (other) return other;
  const [now, share = '', used = '', closing = '', ungrouped, ...words] = reply.map(text);
  const groups = Array.from({ length: words.length / WORDS }, (_, nth): SeenGroup => {
    const [group = '', running, high, normal, low, since, state = ''] = words.slice(WORDS * nth, WORDS * (nth + 1));
    const places = { high: Number(high), normal: Number(normal), low: Number(low) };
    const sinceMs = since === '' ? undefined : Number(since);
    return { group, running: Number(running), places, sinceMs, state: groupState(state) };
  });
  const gate = gateState({ gates: share, gate: used, gate2: used.split(' ')[6] }, Number(now));
  return { nowMs: Number(now), gate, closing, ungrouped: Number(ungrouped), groups };
}

function groupState(words: string): GroupState | undefined {
  if (words === '') return undefined;
  const all = words.split(' ');
  const [most = 0, intervalUs = 0, burst = 1, weight = 1, nextTurnMs = 0, closedMs = 0, ...counts] = all.map(Number);
  const [maxPending = 0, pending = 0] = counts;
  const limits = { most, intervalUs, burst, weight, nextTurnMs, closedMs, maxPending, pending };
  return { ...limits, reason: all.slice(8).join(' ') };
}

/** A job that was let through: it has a place of the limits of its queue and of its group. */
export interface Holder {
  readonly id: string;
  readonly bare: boolean;
  /** When it was let through. */
  readonly sinceMs: number;
  /** The worker that runs it; undefined: none has started it yet. */
  readonly owner: string | undefined;
  readonly attempt: number | undefined;
  readonly startedMs: number | undefined;
}

/** Who holds a group, or the queue, in the order in which they were let through; `limit` of them at the most. */
export async function holdersOf(
  redis: Redis,
  { keys }: PartitionRef,
  { group, limit }: { readonly group?: string | undefined; readonly limit: number },
): Promise<readonly Holder[]> {
  const entries =
    group === undefined ? await firstEntries(redis, keys, limit) : await holdingGroup(redis, keys, group, limit);
  if (entries.length === 0) return [];
  const runs = await redis.hmget(keys.runs, ...entries.map(({ member }) => member));
  return entries.map((entry, at) => holderOf(entry, decodeRun(runs[at] ?? '')));
}

/** What stands between a job in line and its start, in its partition. */
export interface SeenWait {
  readonly gate: GateState | undefined;
  readonly pause: Pause | undefined;
  /** Entries in ready: what the concurrency is compared with. */
  readonly entries: number;
  /** Those of its group. */
  readonly held: number;
  /** Places in front of it, of its group and priority. */
  readonly ahead: number;
  /** What its group may have; undefined: it has no group. */
  readonly group: GroupState | undefined;
  /** Why the queue is closed, if it is. */
  readonly closing: string;
  /** When a job of the partition was started last; undefined: none ever was. */
  readonly startedMs: number | undefined;
}

export async function waitOf(
  redis: Redis,
  ref: PartitionRef,
  job: {
    readonly member: string;
    readonly priority: Priority;
    readonly dueMs: number;
    readonly nowMs: number;
  },
): Promise<SeenWait> {
  const { keys } = ref;
  const { member, priority, dueMs } = job;
  const group = groupOf(member) ?? '';
  const lane = `${group}\0${PRIORITIES.indexOf(priority)}`;
  const place = `${lane}${dueMs.toString(36).padStart(9, '0')}${member}`;
  const [[gates, gate, gate2, lent, paused, closing, token], entries, held, ahead, seen] = await Promise.all([
    redis.hmget(keys.meta, 'gates', 'gate', 'gate2', 'lent', 'paused', 'closing', 'token'),
    redis.xlen(keys.ready),
    redis.zlexcount(keys.holds, `[${group}\0`, `(${group}\u0001`),
    redis.zlexcount(keys.line, `[${lane}`, `(${place}`),
    group === '' ? undefined : groupsOf(redis, ref, { named: [group] }),
  ]);
  const state = seen && 'groups' in seen ? seen.groups[0]?.state : undefined;
  const pause = pauseIn(paused);
  const startedMs = token == null ? undefined : startOf(token);
  const limits = gateState({ gates, gate, gate2, lent: lent ?? null }, job.nowMs);
  return { gate: limits, pause, entries, held, ahead, group: state, closing: closing ?? '', startedMs };
}

async function holdingGroup(redis: Redis, keys: PartitionKeys, group: string, limit: number) {
  const range = [`[${group}\0`, `(${group}\u0001`, 'BYLEX', 'LIMIT', 0, limit] as const;
  const holds = await redis.zrange(keys.holds, ...range);
  return readEntries(
    redis,
    keys,
    holds.map((hold) => hold.slice(group.length + 1) as EntryId),
  );
}

async function firstEntries(redis: Redis, keys: PartitionKeys, limit: number): Promise<readonly Delivery[]> {
  return list((await redis.call('XRANGE', keys.ready, '-', '+', 'COUNT', limit)) as Reply).map(deliveryOf);
}

function holderOf({ entry, member }: Delivery, last: Run | undefined): Holder {
  const own = last?.owner !== undefined && last.entry === entry ? last : undefined;
  return {
    ...idOf(member),
    sinceMs: Number.parseInt(entry, 10),
    owner: own?.owner,
    attempt: own?.attempts,
    startedMs: own && startOf(own.token),
  };
}
