/**
 * Hollow streams: a node of the stream has no live entry. Redis deletes a node together with its last entry, but for
 * one case: XTRIM by MINID passes entries that XDEL has marked, and its bound lies behind the last of them. Newer servers
 * refuse to load such a stream (redis/redis#15808): at a restart, from a replica, by RESTORE.
 *
 * Hollow nodes are before the first live entry, since a trim takes everything up to its bound.
 */
import type { Redis } from '../connection/connect.ts';
import { type PartitionKeys, storedKeys } from '../keys.ts';
import { list, type Reply } from '../scripts/scripts.ts';

/** The streams of a partition that have more nodes than entries, so that one of the nodes must be hollow. */
export async function hollowStreams(redis: Redis, keys: PartitionKeys): Promise<readonly string[]> {
  const streams = streamsOf(keys);
  const states = await Promise.all(streams.map((key) => stateOf(redis, key)));
  return streams.filter((_, at) => (states[at]?.nodes ?? 0) > (states[at]?.length ?? 0));
}

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

const streamsOf = (keys: PartitionKeys): readonly string[] =>
  storedKeys(keys).flatMap(({ key, type }) => (type === 'stream' ? [key] : []));

/** Undefined where there is no such stream. */
async function stateOf(redis: Redis, key: string) {
  if ((await redis.exists(key)) === 0) return undefined;
  const flat = list((await redis.call('XINFO', 'STREAM', key)) as Reply);
  const of = (name: string) => flat[flat.indexOf(name) + 1];
  return { length: Number(of('length')), nodes: Number(of('radix-tree-keys')), last: String(of('last-generated-id')) };
}
