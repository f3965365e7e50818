/** The tags of a partition that are closed, with their ends and what people said about them. */
import type { Redis } from '../connection/connect.ts';
import type { PartitionRef } from '../keys.ts';

/** A tag that is closed. */
export interface ClosedTag {
  readonly tag: string;
  /** Epoch ms by the clock of Redis. It opens then, or up to a minute later. */
  readonly untilMs: number;
  /** When it was closed, in epoch ms by the clock of Redis; undefined where nobody has said it. */
  readonly atMs: number | undefined;
  /** Who closed it. */
  readonly by: string;
  readonly reason: string;
}

/** A page of all, the soonest end first, from a place on; or those that are named. */
export type ClosedAsk = { readonly from: number; readonly limit: number } | { readonly named: readonly string[] };

export interface ClosedSlice {
  readonly tags: readonly ClosedTag[];
  /** How many there are. */
  readonly count: number;
}

export async function closedTags(redis: Redis, { keys }: PartitionRef, ask: ClosedAsk): Promise<ClosedSlice> {
  const count = await redis.zcard(keys.closed);
  if (count === 0) return { tags: [], count };
  const found = 'named' in ask ? await scoresOf(redis, keys.closed, ask.named) : await pageOf(redis, keys.closed, ask);
  if (found.length === 0) return { tags: [], count };
  const texts = await redis.hmget(keys.why, ...found.map(({ tag }) => tag));
  return { tags: found.map((one, at) => ({ ...one, ...saidIn(texts[at] ?? '') })), count };
}

type End = Pick<ClosedTag, 'tag' | 'untilMs'>;

async function scoresOf(redis: Redis, key: string, tags: readonly string[]): Promise<readonly End[]> {
  const ends = await redis.zmscore(key, ...tags);
  return tags.flatMap((tag, at) => (ends[at] == null ? [] : [{ tag, untilMs: Number(ends[at]) }]));
}

async function pageOf(
  redis: Redis,
  key: string,
  { from, limit }: { readonly from: number; readonly limit: number },
): Promise<readonly End[]> {
  const flat = await redis.zrange(key, String(from), String(from + limit - 1), 'WITHSCORES');
  return Array.from({ length: flat.length / 2 }, (_, nth) => ({
    tag: flat[2 * nth] ?? '',
    untilMs: Number(flat[2 * nth + 1]),
  }));
}

/** Anybody may have written the text. */
export function saidIn(text: string): Omit<ClosedTag, 'tag' | 'untilMs'> {
  let said: { at?: unknown; by?: unknown; reason?: unknown } = {};
  try {
    said = Object(JSON.parse(text));
  } catch {
    // Nothing is known of it.
  }
  const textIn = (value: unknown) => (typeof value === 'string' ? value : '');
  return { atMs: typeof said.at === 'number' ? said.at : undefined, by: textIn(said.by), reason: textIn(said.reason) };
}
