/**
 * The ledger of claims (`K:claims`), which the script `hand` writes: what each worker over HTTP was handed last, in each of its
 * lanes. So a claim whose answer was lost has the same answer at any daemon.
 */
import type { Redis } from '../connection/connect.ts';
import { naming } from '../connection/wrong-type.ts';
import type { PartitionKeys } from '../keys.ts';
import { inParts } from './bytes.ts';

/** A worker claims in so many lines of its own, each with numbers of its own. */
export const LANES = 8;
/** The number of no claim: a worker with it has left, and every claim of it is too old. */
export const LEFT = Number.MAX_SAFE_INTEGER;
const REMOTE = /^h-[a-z0-9][a-z0-9._-]{0,31}-[0-9a-f]{32}$/;

/** Whether it is the name of a worker over HTTP. Its random part is made anew by every process, so no two have one name. */
export const isRemote = (consumer: string): boolean => REMOTE.test(consumer);

/** In the place of entries: they are in the ledger of another partition. */
const ELSEWHERE = '-';

const fieldOf = (worker: string, lane: number): string => `${worker} ${lane}`;

/** Whether the claim of this number was handed entries in each of the partitions. */
export async function wasHanded(
  redis: Redis,
  all: readonly PartitionKeys[],
  { worker, lane, seq }: { readonly worker: string; readonly lane: number; readonly seq: number },
): Promise<readonly boolean[]> {
  const known = await Promise.all(
    all.map((keys) => naming(redis, [keys], redis.hget(keys.claims, fieldOf(worker, lane)))),
  );
  return known.map((text) => text?.startsWith(`${seq} `) === true && text !== `${seq} ${ELSEWHERE}`);
}

/** Whether a worker over HTTP has claimed in one of the partitions, or has left something there. */
export async function haveClaims(redis: Redis, refs: readonly { readonly keys: PartitionKeys }[]): Promise<boolean> {
  const found = await Promise.all(refs.map(({ keys }) => redis.exists(keys.claims)));
  return found.includes(1);
}

/** The lanes in which a worker has claimed. */
export async function lanesOf(redis: Redis, keys: PartitionKeys, worker: string): Promise<readonly number[]> {
  const lanes = Array.from({ length: LANES }, (_, lane) => lane);
  const known = await naming(redis, [keys], redis.hmget(keys.claims, ...lanes.map((lane) => fieldOf(worker, lane))));
  return lanes.filter((lane) => typeof known[lane] === 'string');
}

/** Workers that have claimed, some of many, and where the next look goes on. */
export async function claimants(
  redis: Redis,
  keys: PartitionKeys,
  cursor: string,
): Promise<{ readonly workers: readonly string[]; readonly next: string }> {
  const [next, found] = await naming(redis, [keys], redis.hscan(keys.claims, cursor, 'COUNT', SCAN));
  const fields = found.filter((_, at) => at % 2 === 0);
  return { workers: [...new Set(fields.map((field) => field.split(' ')[0] ?? ''))], next };
}

const SCAN = 500;

/** Takes the claims of workers out of the ledger. */
export async function forgetClaims(redis: Redis, keys: PartitionKeys, workers: readonly string[]): Promise<void> {
  const fields = workers.flatMap((worker) => Array.from({ length: LANES }, (_, lane) => fieldOf(worker, lane)));
  await inParts(fields, async (some) => [await naming(redis, [keys], redis.hdel(keys.claims, ...some))]);
}
