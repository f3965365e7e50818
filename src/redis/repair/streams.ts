/**
 * What can be wrong with a whole stream.
 *
 * Hollow: a node of the stream has no live entry. Redis deletes a node together with its last entry, but for one case: XTRIM by
 * MINID passes entries that XDEL has marked, and its bound lies behind the last of them. Newer servers refuse to load such a
 * stream (redis/redis#15808): at a restart, from a replica, by RESTORE. Hollow nodes are before the first live entry, since a
 * trim takes everything up to its bound.
 *
 * Exhausted: somebody else has added an entry with the last id that there is. Redis refuses every later one, so in ready no job
 * runs any more, and in dead none dies.
 */
import type { Redis } from '../connection/connect.ts';
import { type PartitionKeys, storedKeys } from '../keys.ts';
import { list, type Reply, text } from '../scripts/scripts.ts';

const LAST_ID = '18446744073709551615-18446744073709551615';

/** The streams of a partition that have more nodes than entries, so that one of the nodes must be hollow. */
export const hollowStreams = (redis: Redis, keys: PartitionKeys): Promise<readonly string[]> =>
  streamsThat(redis, keys, ({ nodes, length }) => nodes > length);

/** The streams of a partition to which nothing can be added. */
export const exhaustedStreams = (redis: Redis, keys: PartitionKeys): Promise<readonly string[]> =>
  streamsThat(redis, keys, ({ last }) => last === LAST_ID);

/** Takes the hollow nodes off every stream of a partition. No live entry is before the bound, and none can come there. */
export async function mendHollow(redis: Redis, keys: PartitionKeys): Promise<void> {
  for (const key of streamsOf(keys)) {
    const state = await stateOf(redis, key);
    if (!state) continue;
    const [ms = '0', sequence = '0'] = state.last.split('-');
    const [first] = await redis.xrange(key, '-', '+', 'COUNT', 1);
    // Without an entry the bound is the id behind the last one that was ever given.
    await redis.call('XTRIM', key, 'MINID', first?.[0] ?? `${ms}-${BigInt(sequence) + 1n}`);
  }
}

/**
 * Ids go on from the last entry but that one, which gets a new id. Groups first: one that has read that entry would take all that
 * comes for read. Each step may be made again, and nothing can be added before the last but one.
 */
export async function mendExhausted(redis: Redis, keys: PartitionKeys): Promise<void> {
  for (const key of await exhaustedStreams(redis, keys)) {
    const [odd] = await redis.xrange(key, LAST_ID, LAST_ID);
    const [top] = await redis.xrevrange(key, `(${LAST_ID}`, '-', 'COUNT', 1);
    const groups = await groupsOf(redis, key);
    const read = groups.map(({ delivered }) => delivered).filter((delivered) => delivered !== LAST_ID);
    const id = read.reduce(later, top?.[0] ?? '0-1');
    for (const { name, delivered } of groups) {
      if (delivered === LAST_ID) await redis.call('XGROUP', 'SETID', key, name, id);
      await redis.xack(key, name, LAST_ID);
    }
    if (odd) await redis.xdel(key, LAST_ID);
    await redis.call('XSETID', key, id);
    if (odd) await redis.call('XADD', key, '*', ...odd[1]);
  }
}

async function groupsOf(redis: Redis, key: string) {
  const groups = list((await redis.call('XINFO', 'GROUPS', key)) as Reply);
  return groups.map((group) => {
    const words = list(group).map(text);
    const of = (field: string) => words[words.indexOf(field) + 1] ?? '';
    return { name: of('name'), delivered: of('last-delivered-id') };
  });
}

const later = (one: string, other: string): string => (inDigits(one) > inDigits(other) ? one : other);

const inDigits = (id: string): string =>
  id
    .split('-')
    .map((part) => part.padStart(20, '0'))
    .join('-');

const streamsOf = (keys: PartitionKeys): readonly string[] =>
  storedKeys(keys).flatMap(({ key, type }) => (type === 'stream' ? [key] : []));

async function streamsThat(
  redis: Redis,
  keys: PartitionKeys,
  areMeant: (state: NonNullable<Awaited<ReturnType<typeof stateOf>>>) => boolean,
): Promise<readonly string[]> {
  const streams = streamsOf(keys);
  const states = await Promise.all(streams.map((key) => stateOf(redis, key)));
  return streams.filter((_, at) => {
    const state = states[at];
    return state !== undefined && areMeant(state);
  });
}

/** Undefined where there is no such stream. */
async function stateOf(redis: Redis, key: string) {
  if ((await redis.exists(key)) === 0) return undefined;
  const flat = list((await redis.call('XINFO', 'STREAM', key)) as Reply);
  const of = (name: string) => flat[flat.indexOf(name) + 1];
  return { length: Number(of('length')), nodes: Number(of('radix-tree-keys')), last: String(of('last-generated-id')) };
}
