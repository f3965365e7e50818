/**
 * Many dead letters go for ever, oldest first. Where reason and age say which, they are matched and removed where they are,
 * and nothing travels; else they are read, and removed by name.
 */
import { withRetry } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { forget, purge } from '../../redis/transitions/upkeep.ts';
import { type Spot, spotAt } from '../find/cursor.ts';
import type { Layout } from '../layouts.ts';
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
  readonly tally: { matched: number; removed: number; scanned: number };
}

export async function purgeAll(
  reading: Reading,
  layout: Layout,
  asked: { readonly search: Search; readonly plan: PurgePlan },
): Promise<ManyPurged> {
  const purging: Purging = { ...reading, ...asked, layout, tally: { matched: 0, removed: 0, scanned: 0 } };
  const cursor = await (asked.search.filter.isPlain ? purgePlain(purging) : purgeNamed(purging));
  return { ...purging.tally, cursor };
}

const tell = ({ plan, tally }: Purging, cursor: string | undefined) => plan.onProgress?.({ ...tally, cursor });

async function purgeNamed(purging: Purging): Promise<string | undefined> {
  const { redis, policy, layout, search, plan, tally } = purging;
  let batch: Placed[] = [];
  const flush = async (cursor: string | undefined) => {
    for (const [ref, entries] of byPartition(batch)) {
      if (!plan.dryRun) tally.removed += await withRetry('purge', () => forget(redis, ref, entries), policy);
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
  const { redis, policy, layout, search, plan, tally } = purging;
  const { filter, limit, scanMax, nowMs } = search;
  const end = spot.end ?? (await endOf(purging, ref));
  if (!end) return undefined;
  const cursorBehind = (at: string | undefined) => cursorAt(search, layout, spotAt(ref.partition, at, end));
  const { olderMs: ageMs, reason } = filter;
  const which = { mode: plan.dryRun ? 'count' : 'remove', nowMs, ageMs, reason, last: end.last } as const;
  let after = spot.at;
  do {
    const most = Math.min(REMOVED_AT_ONCE, limit - tally.matched, scanMax - tally.scanned);
    if (most <= 0) return cursorBehind(after);
    const batch = await withRetry('purge', () => purge(redis, ref, { ...which, limit: most, after }), policy);
    tally.matched += batch.matched;
    tally.removed += plan.dryRun ? 0 : batch.matched;
    tally.scanned += batch.looked;
    after = batch.next;
    tell(purging, after === undefined ? undefined : cursorBehind(after));
  } while (after !== undefined);
  return undefined;
}

function byPartition(batch: readonly Placed[]): ReadonlyMap<PartitionRef, readonly string[]> {
  const groups = new Map<PartitionRef, string[]>();
  for (const { ref, letter } of batch) groups.set(ref, [...(groups.get(ref) ?? []), letter.entry]);
  return groups;
}
