/** The limits of a queue in its partitions: each gets its share, and its bytes are counted anew, a slice at a time. */
import type { Quota } from '../../job/quota.ts';
import type { Redis } from '../connection/connect.ts';
import type { PartitionRef } from '../keys.ts';
import { scripts } from './script-table.ts';
import { list, run, text } from './scripts.ts';

export type AllotReply = 'ok' | 'same' | 'fenced';

/** @param of.term of the leader that calls; undefined: whoever sets the limits */
export async function allot(
  redis: Redis,
  { keys }: PartitionRef,
  of: { readonly quota: Quota; readonly term?: string | undefined },
): Promise<AllotReply> {
  const { quota, term = '' } = of;
  return text(await run(redis, scripts.allot, { keys, args: { term, ...quota } })) as AllotReply;
}

/** How far a walk has come, and what it has counted. */
export interface Weighing {
  readonly part: string;
  readonly cursor: string;
  readonly bytes: number;
  readonly count: number;
}

/** Where a walk begins. */
export const UNWEIGHED: Weighing = Object.freeze({ part: 'scheduled', cursor: '0', bytes: 0, count: 0 });

export type WeighReply =
  | ({ readonly kind: 'more' } & Weighing)
  /** All is counted. */
  | { readonly kind: 'weighed'; readonly bytes: number; readonly count: number }
  /** The partition has no limits, so nobody counts. */
  | { readonly kind: 'unlimited' };

/** `note`: what was counted holds from the last slice on; `mend`: it mends the sum that all scripts keep; `look`: nothing is changed. */
export type WeighMode = 'note' | 'mend' | 'look';

/** One slice. */
export async function weigh(
  redis: Redis,
  { keys }: PartitionRef,
  { part, cursor, bytes, count }: Weighing,
  { limit, mode }: { readonly limit: number; readonly mode: WeighMode },
): Promise<WeighReply> {
  const args = { part, cursor, limit, bytes, count, mode };
  const [next, at, ...sums] = list(await run(redis, scripts.weigh, { keys, args })).map(text);
  if (next === 'unlimited') return { kind: 'unlimited' };
  const [allBytes = 0, all = 0] = sums.map(Number);
  return next === undefined || next === ''
    ? { kind: 'weighed', bytes: allBytes, count: all }
    : { kind: 'more', part: next, cursor: at ?? '0', bytes: allBytes, count: all };
}

/** Jobs of one slice, so that no call takes Redis long. */
export const WEIGH_MAX = 500;

/** All slices, one after the other. Undefined where there are no limits. */
export async function weighAll(
  redis: Redis,
  ref: PartitionRef,
  mode: WeighMode,
): Promise<{ readonly bytes: number; readonly count: number } | undefined> {
  let spot: Weighing = UNWEIGHED;
  for (;;) {
    const reply = await weigh(redis, ref, spot, { limit: WEIGH_MAX, mode });
    if (reply.kind !== 'more') return reply.kind === 'weighed' ? reply : undefined;
    spot = reply;
  }
}
