/** Who has a group of a queue in strict order, which the scripts keep in `K:order`: `lua/lib/keeping.lua`. */
import { decodeRun, idOf, isTombstone } from '../../job/codec.ts';
import { groupOf } from '../../job/labels.ts';
import type { Redis } from '../connection/connect.ts';
import type { PartitionRef } from '../keys.ts';
import { dueOf } from '../scripts/scripts.ts';

/** The job that has a group until it is over. */
export interface Keeper {
  readonly id: string;
  readonly bare: boolean;
  /** It is this dead letter, which holds the group until it is replayed or removed, or somebody opens the group. */
  readonly deadLetter?: string | undefined;
  /** Its next start, or the one that runs: 1 is the first. */
  readonly attempt: number;
  /** The worker that runs it. */
  readonly owner?: string | undefined;
  /** When it is due again, epoch ms; undefined: it runs, or waits for a worker. */
  readonly dueMs?: number | undefined;
}

/** Undefined: nobody has the group, or the queue is in no strict order. */
export async function keeperOf(
  redis: Redis,
  { keys, gates }: PartitionRef,
  group: string,
): Promise<Keeper | undefined> {
  const value = gates?.isStrict && group !== '' ? await redis.hget(keys.order, group) : null;
  if (value === null) return undefined;
  const [, deadLetter, dead = ''] = /^!(\S+) (.+)$/s.exec(value) ?? [];
  return deadLetter === undefined ? livingKeeper(redis, keys, value) : { ...idOf(dead), deadLetter, attempt: 1 };
}

/** Undefined: its job is over, so it keeps nobody. */
async function livingKeeper(redis: Redis, keys: PartitionRef['keys'], member: string): Promise<Keeper | undefined> {
  const [length, known, due] = await Promise.all([
    redis.hstrlen(keys.jobs, member),
    redis.hget(keys.runs, member),
    redis.zscore(keys.scheduled, member),
  ]);
  const record = length > 0 && length <= TOMBSTONE_BYTES_MAX ? await redis.hget(keys.jobs, member) : '';
  if (length === 0 || isTombstone(record ?? '')) return undefined;
  const last = decodeRun(known ?? '');
  const runs = last?.owner !== undefined;
  return {
    ...idOf(member),
    attempt: (last?.attempts ?? 0) + (runs ? 0 : 1),
    owner: last?.owner,
    dueMs: due === null ? undefined : dueOf(due).dueMs,
  };
}

/** A longer value is no tombstone: `lua/lib/tombstone.lua`. */
const TOMBSTONE_BYTES_MAX = 300;

/** Until when nobody of these groups starts, as who has one is due then; never, where a dead letter holds it. Epoch ms. */
export async function heldUntil(
  redis: Redis,
  { keys, gates }: PartitionRef,
  groups: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  if (!gates?.isStrict || groups.length === 0) return new Map();
  const values = await redis.hmget(keys.order, ...groups);
  const kept = groups.flatMap((group, at) => {
    const value = values[at];
    return value == null ? [] : [{ group, value }];
  });
  if (kept.length === 0) return new Map();
  const scores = await redis.zmscore(keys.scheduled, ...kept.map(({ value }) => value));
  return new Map(
    kept.map(({ group, value }, at) => {
      const score = scores[at];
      if (value.startsWith('!')) return [group, Number.POSITIVE_INFINITY];
      return [group, score == null ? 0 : (dueOf(score).dueMs ?? 0)];
    }),
  );
}

/** How many jobs in line wait for this one, as it has their group; undefined: it has no group. */
export async function waitingBehind(
  redis: Redis,
  { keys, gates }: PartitionRef,
  member: string,
): Promise<number | undefined> {
  const group = groupOf(member);
  if (!gates?.isStrict || group === undefined || (await redis.hget(keys.order, group)) !== member) return undefined;
  return redis.zlexcount(keys.line, `[${group}\0`, `(${group}\u0001`);
}
