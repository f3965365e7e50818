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
import { list, type Reply } from '../scripts/scripts.ts';

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
 * The same stream anew, in one step: a stream never takes an id below its last one again, also after that entry was deleted. The
 * entry of the last id comes behind all others, with an id of now. Groups keep what they have read, and what is under way.
 */
const ANEW = `
local key, odd = KEYS[1], ARGV[1]
local function of(flat, name)
  for at = 1, #flat, 2 do if flat[at] == name then return flat[at + 1] end end
end
local function ms(id) return tonumber(string.match(id, '^%d+')) end
local kept = redis.call('XRANGE', key, '-', '(' .. odd)
local last = redis.call('XRANGE', key, odd, odd)[1]
local top = kept[#kept] and kept[#kept][1] or '0-0'
local newest = math.max(tonumber(ARGV[2]), ms(top) + 1)
local groups = {}
for nth, group in ipairs(redis.call('XINFO', 'GROUPS', key)) do
  local name, read = of(group, 'name'), of(group, 'last-delivered-id')
  if read == odd then read = top end
  newest = math.max(newest, ms(read) + 1)
  groups[nth] = { name, read, redis.call('XPENDING', key, name, '-', '(' .. odd, 1000000) }
end
redis.call('DEL', key)
for _, entry in ipairs(kept) do redis.call('XADD', key, entry[1], unpack(entry[2])) end
for _, group in ipairs(groups) do
  redis.call('XGROUP', 'CREATE', key, group[1], group[2], 'MKSTREAM')
  for _, run in ipairs(group[3]) do
    redis.call('XCLAIM', key, group[1], run[2], 0, run[1], 'IDLE', run[3], 'RETRYCOUNT', run[4], 'FORCE', 'JUSTID')
  end
end
if last then redis.call('XADD', key, string.format('%.0f-*', newest), unpack(last[2])) end`;

/** Makes each such stream anew. @param nowMs about now: the id of an entry is no due time */
export async function mendExhausted(redis: Redis, keys: PartitionKeys, nowMs: number): Promise<void> {
  for (const key of await exhaustedStreams(redis, keys))
    await redis.call('EVAL', ANEW, 1, key, LAST_ID, Math.floor(nowMs));
}

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
