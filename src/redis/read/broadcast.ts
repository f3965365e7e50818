/**
 * What a broadcast queue has sent, as its subscribers read it: without a group, from a place that each of them remembers.
 * Plain ranges, so a read never waits and is one partition's: the same alone, behind Sentinels and in a cluster.
 */
import type { Redis } from '../connection/connect.ts';
import { naming } from '../connection/wrong-type.ts';
import type { PartitionRef } from '../keys.ts';
import { fieldsOf, list, type Reply, text } from '../scripts/scripts.ts';

/** One job that was sent. */
export interface CastEntry {
  /** Of its entry: epoch ms of Redis, and a number. */
  readonly entry: string;
  /** Grows by one with each job of the partition, for ever. */
  readonly count: number;
  readonly member: string;
  readonly dueMs: number;
  readonly record: string;
}

/** Before every entry. */
export const BEGINNING = '0-0';

/** Entries after a place, oldest first. */
export async function castAfter(
  redis: Redis,
  ref: PartitionRef,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<readonly CastEntry[]> {
  const asked = redis.xrange(ref.keys.cast, `(${after}`, '+', 'COUNT', limit);
  return list((await naming(redis, [ref.keys], asked)) as Reply).map(entryOf);
}

/** The newest entry, if there is any. */
export async function newestCast(redis: Redis, ref: PartitionRef): Promise<CastEntry | undefined> {
  const [newest] = list((await redis.xrevrange(ref.keys.cast, '+', '-', 'COUNT', 1)) as Reply);
  return newest === undefined ? undefined : entryOf(newest);
}

/** How many jobs the partition has sent, ever. */
export async function castCount(redis: Redis, ref: PartitionRef): Promise<number> {
  const totals = await naming(redis, [ref.keys], redis.hget(ref.keys.meta, 'cast'));
  return Number(/^\d+/.exec(totals ?? '')?.[0] ?? 0);
}

/**
 * Whether an entry that was read cannot have been read from these data: a primary that lost writes, or all of them, has
 * taken over. An entry that only left the stream because of its bounds leaves none that are older.
 */
export async function wentBack(
  redis: Redis,
  ref: PartitionRef,
  { after, count }: { readonly after: string; readonly count: number },
): Promise<boolean> {
  const [same, oldest, sent] = await Promise.all([
    redis.xrange(ref.keys.cast, after, after),
    redis.xrange(ref.keys.cast, '-', '+', 'COUNT', 1),
    castCount(redis, ref),
  ]);
  if (sent < count) return true;
  const [first] = oldest;
  return same.length === 0 && first !== undefined && isBefore(first[0], after);
}

/** Of the ids of entries: ms and a number. */
export function isBefore(one: string, other: string): boolean {
  const [ms = 0, nth = 0] = one.split('-').map(Number);
  const [otherMs = 0, otherNth = 0] = other.split('-').map(Number);
  return ms < otherMs || (ms === otherMs && nth < otherNth);
}

function entryOf(reply: Reply): CastEntry {
  const [entry, flat] = list(reply);
  const fields = fieldsOf(flat);
  return {
    entry: text(entry),
    count: Number(fields.get('count')),
    member: fields.get('member') ?? '',
    dueMs: Number(fields.get('due')),
    record: fields.get('record') ?? '',
  };
}
