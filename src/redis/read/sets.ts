/** The sets of a partition: how far each is, and what it leads to. */
import type { SetEnds } from '../../job/job.ts';
import { setTag } from '../../job/labels.ts';
import type { Redis } from '../connection/connect.ts';
import type { PartitionRef } from '../keys.ts';
import { callbackOf, type SetCallback } from '../scripts/sets.ts';

/** A set whose callback was not made yet. */
export interface SeenSet extends SetEnds {
  readonly isSealed: boolean;
  /** Epoch ms by the clock of Redis when it began. */
  readonly madeMs: number;
  /** How many members are not over. */
  readonly open: number;
  readonly callback: SetCallback;
}

/** A page of all, by their names; or those that are named. */
export type SetsAsk =
  | { readonly after: string | undefined; readonly limit: number }
  | { readonly named: readonly string[] };

export interface SetsSlice {
  readonly sets: readonly SeenSet[];
  /** The name behind which the next page begins. */
  readonly next: string | undefined;
}

const LISTED = '=sets';

export async function setsOf(redis: Redis, { keys }: PartitionRef, ask: SetsAsk): Promise<SetsSlice> {
  const names = 'named' in ask ? ask.named : await namesIn(redis, keys.tags, ask);
  if (names.length === 0) return { sets: [], next: undefined };
  const [states, callbacks, open] = await Promise.all([
    redis.hmget(keys.jobs, ...names.map((name) => `\0set\0${name}`)),
    redis.hmget(keys.jobs, ...names.map((name) => `\0then\0${name}`)),
    Promise.all(names.map((name) => countOpen(redis, keys.tags, name))),
  ]);
  const sets = names.flatMap((name, at) => {
    const state = stateOf(states[at] ?? '');
    const callback = callbackOf(callbacks[at] ?? '');
    return state && callback ? [{ name, ...state, open: open[at] ?? 0, callback }] : [];
  });
  const isAll = 'named' in ask || names.length < ask.limit;
  return { sets, next: isAll ? undefined : names.at(-1) };
}

async function namesIn(
  redis: Redis,
  tags: string,
  { after, limit }: { readonly after: string | undefined; readonly limit: number },
): Promise<readonly string[]> {
  const from = after === undefined ? `[${LISTED}\0` : `(${LISTED}\0${after}`;
  const entries = await redis.zrange(tags, from, `(${LISTED}\u0001`, 'BYLEX', 'LIMIT', 0, limit);
  return entries.map((entry) => entry.slice(LISTED.length + 1));
}

const countOpen = (redis: Redis, tags: string, name: string): Promise<number> =>
  redis.zlexcount(tags, `[${setTag(name)}\0`, `(${setTag(name)}\u0001`);

function stateOf(text: string): Omit<SeenSet, 'name' | 'open' | 'callback'> | undefined {
  const [, sealed, made, ...ends] = /^\.(\d) (\d+) (\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(text) ?? [];
  if (sealed === undefined) return undefined;
  const [done = 0, dead = 0, cancelled = 0, expired = 0] = ends.map(Number);
  return { isSealed: sealed !== '0', madeMs: Number(made), done, dead, cancelled, expired };
}
