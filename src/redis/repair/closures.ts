/** I20: a tag is closed in every partition of its queue until one end, and each partition knows that there are closed tags. */
import type { Redis } from '../connection/connect.ts';
import type { PartitionRef } from '../keys.ts';
import { createJobs } from '../scripts/jobs.ts';
import { type Flaw, flawOf } from './flaws.ts';

/** What closed tags of one partition are compared with: all partitions of its queue. */
export interface Closures {
  readonly ref: PartitionRef;
  readonly all: readonly PartitionRef[];
  /** What has ended by then opens in each partition at a time of its own. */
  readonly nowMs: number;
}

interface Closure {
  readonly tag: string;
  readonly untilMs: number;
  readonly text: string;
}

const PAGE = 500;
/** As many are told; a repair goes on until there are none. */
const CLOSURES_MAX = 10_000;
/** A repair refuses none: whoever closed it was told that it is closed. */
const MOST = 1_000_000_000;

export async function closureFlaws(redis: Redis, closures: Closures): Promise<readonly Flaw[]> {
  const { keys } = closures.ref;
  const [isMarked, count] = await Promise.all([redis.hget(keys.meta, 'closed'), redis.zcard(keys.closed)]);
  const lacking = await lackingIn(redis, closures);
  return [
    ...(count > 0 && isMarked === null ? [flawOf('unmarked', '', `${count} tags are closed`)] : []),
    ...lacking.map(({ tag, untilMs }) => flawOf('unclosed', tag, `until ${new Date(untilMs).toISOString()}`)),
  ];
}

/** Closes what is closed elsewhere, until the latest end, and marks the partition. */
export async function mendClosures(redis: Redis, closures: Closures): Promise<void> {
  const { ref } = closures;
  const jobs = createJobs(redis);
  const close = ({ tag, untilMs, text }: Closure) =>
    jobs.closeTags(ref, [tag], { mode: 'close', untilMs, text, most: MOST });
  for (const one of await lackingIn(redis, closures)) await close(one);
  // A call about a tag that is closed already writes the mark alone.
  const [first] = await pageOf(redis, ref, 0);
  if (first && (await redis.hget(ref.keys.meta, 'closed')) === null) await close({ ...first, text: '{}' });
}

/** Tags that are closed in another partition, and here not or for less long. */
async function lackingIn(redis: Redis, closures: Closures): Promise<readonly Closure[]> {
  const lacking = new Map<string, Closure>();
  for (const other of closures.all.filter(({ partition }) => partition !== closures.ref.partition)) {
    let from = 0;
    for (let page = await pageOf(redis, other, from); page.length > 0; page = await pageOf(redis, other, from)) {
      from += page.length;
      for (const one of await shortOf(redis, closures, { other, page })) {
        if (one.untilMs > (lacking.get(one.tag)?.untilMs ?? 0)) lacking.set(one.tag, one);
      }
      if (lacking.size >= CLOSURES_MAX) return [...lacking.values()];
    }
  }
  return [...lacking.values()];
}

/** Of a page of another partition. */
async function shortOf(
  redis: Redis,
  { ref, nowMs }: Closures,
  { other, page }: { readonly other: PartitionRef; readonly page: readonly Pick<Closure, 'tag' | 'untilMs'>[] },
): Promise<readonly Closure[]> {
  const here = await redis.zmscore(ref.keys.closed, ...page.map(({ tag }) => tag));
  const short = page.filter(({ untilMs }, at) => untilMs > nowMs && untilMs > Number(here[at] ?? 0));
  if (short.length === 0) return [];
  const texts = await redis.hmget(other.keys.why, ...short.map(({ tag }) => tag));
  return short.map((one, at) => ({ ...one, text: texts[at] ?? '{}' }));
}

async function pageOf(
  redis: Redis,
  { keys }: PartitionRef,
  from: number,
): Promise<readonly Pick<Closure, 'tag' | 'untilMs'>[]> {
  const flat = await redis.zrange(keys.closed, String(from), String(from + PAGE - 1), 'WITHSCORES');
  return Array.from({ length: flat.length / 2 }, (_, nth) => ({
    tag: flat[2 * nth] ?? '',
    untilMs: Number(flat[2 * nth + 1]),
  }));
}
