/**
 * Many dead letters go for ever, oldest first. Where reason and age say which, they are matched and removed where they are,
 * and nothing travels; else they are read, and removed by name.
 */
import { Indeterminate } from '../../kernel/errors.ts';
import { type Outage, withRetry } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { forget, purge } from '../../redis/scripts/upkeep.ts';
import type { Layout } from '../calls/layouts.ts';
import { withReadRetry } from '../calls/read-retry.ts';
import { type Spot, spotAt } from '../query/cursor.ts';
import { cursorAt, each, type Reading, type Scan, type Search, type Tell } from './scan.ts';
import { endOf, type Placed, spotIn, walk } from './walk.ts';

/** What became of a purge of many, or how far it has come. */
export interface ManyPurged extends Scan {
  readonly matched: number;
  /** How many are gone; of a dry run 0. */
  readonly removed: number;
}

export interface PurgePlan {
  readonly dryRun: boolean;
  readonly onProgress: Tell<ManyPurged>;
}

/** Dead letters that one call removes. */
const REMOVED_AT_ONCE = 100;

interface Purging extends Reading {
  readonly layout: Layout;
  readonly search: Search;
  readonly plan: PurgePlan;
  /** `lost`: what calls may have removed whose replies were lost. It counts against the limit. */
  readonly tally: { matched: number; removed: number; scanned: number; lost: number };
}

export async function purgeAll(
  reading: Reading,
  layout: Layout,
  asked: { readonly search: Search; readonly plan: PurgePlan },
): Promise<ManyPurged> {
  const purging: Purging = { ...reading, ...asked, layout, tally: { matched: 0, removed: 0, scanned: 0, lost: 0 } };
  const cursor = await (asked.search.filter.isPlain ? purgePlain(purging) : purgeNamed(purging));
  const { lost: _, ...counts } = purging.tally;
  return { ...counts, cursor };
}

const tell = ({ plan, tally: { lost: _, ...counts } }: Purging, cursor: string | undefined) =>
  plan.onProgress?.({ ...counts, cursor });

async function purgeNamed(purging: Purging): Promise<string | undefined> {
  const { redis, policy, layout, search, plan, tally } = purging;
  let batch: Placed[] = [];
  const flush = async (cursor: string | undefined) => {
    for (const [ref, entries] of byPartition(batch)) {
      // What is gone after a lost reply, the call before has removed.
      const call = async (mayHaveRun: boolean) => {
        const removed = await forget(redis, ref, entries);
        return mayHaveRun ? entries.length : removed;
      };
      if (!plan.dryRun) tally.removed += await withRetry('purge', call, policy);
    }
    batch = [];
    tell(purging, cursor);
  };
  const source = walk({ redis, policy }, layout, { from: search.from?.spot, order: 'oldest' });
  const scan = await each(source, { search, layout }, async (placed, { scanned, cursor }) => {
    tally.matched += 1;
    tally.scanned = scanned;
    batch.push(placed);
    if (batch.length === REMOVED_AT_ONCE) await flush(cursor);
    return tally.matched < search.limit;
  });
  tally.scanned = scan.scanned;
  if (batch.length > 0) await flush(scan.cursor);
  return scan.cursor;
}

async function purgePlain(purging: Purging): Promise<string | undefined> {
  for (const ref of purging.layout) {
    const spot = spotIn(purging.search.from?.spot, ref);
    const cursor = spot && (await purgePartition(purging, ref, spot));
    if (cursor !== undefined) return cursor;
  }
  return undefined;
}

/** @returns where the bounds ended it */
async function purgePartition(purging: Purging, ref: PartitionRef, spot: Spot): Promise<string | undefined> {
  const { redis, layout, search, plan, tally } = purging;
  const { filter, limit, scanMax, nowMs } = search;
  const end = spot.end ?? (await endOf(purging, ref));
  if (!end) return undefined;
  const cursorBehind = (at: string | undefined) => cursorAt(search, layout, spotAt(ref.partition, at, end));
  const { olderMs: ageMs, reason } = filter;
  const which = { mode: plan.dryRun ? 'count' : 'remove', nowMs, ageMs, reason, last: end.last } as const;
  let after = spot.at;
  do {
    const at = after;
    const most = () => Math.min(REMOVED_AT_ONCE, limit - tally.matched - tally.lost, scanMax - tally.scanned);
    if (most() <= 0) return cursorBehind(after);
    const batch = await bounded(purging, most, (atMost) => purge(redis, ref, { ...which, limit: atMost, after: at }));
    tally.matched += batch.matched;
    tally.removed += plan.dryRun ? 0 : batch.matched;
    tally.scanned += batch.looked;
    after = batch.next;
    tell(purging, after === undefined ? undefined : cursorBehind(after));
  } while (after !== undefined);
  return undefined;
}

/** A call whose reply was lost may have removed all that it was allowed: what is left of the limit is for the next. */
function bounded<T>({ plan, policy, tally }: Purging, most: () => number, call: (atMost: number) => Promise<T>) {
  if (plan.dryRun) return withReadRetry('purge', () => call(most()), policy);
  let asked = 0;
  const within = () => {
    asked = most();
    if (asked > 0) return call(asked);
    throw new Indeterminate(
      'purge: a reply of Redis was lost, so as many as the limit may be gone: look at what is left',
    );
  };
  const onFailure = (outage: Outage) => {
    if (outage === 'lost' || outage === 'unknown') tally.lost += asked;
  };
  return withRetry('purge', within, { ...policy, onFailure });
}

function byPartition(batch: readonly Placed[]): ReadonlyMap<PartitionRef, readonly string[]> {
  const groups = new Map<PartitionRef, string[]>();
  for (const { ref, letter } of batch) groups.set(ref, [...(groups.get(ref) ?? []), letter.entry]);
  return groups;
}
