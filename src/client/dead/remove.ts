/**
 * Dead letters go for ever: those that a caller names, or all that a filter means, oldest first. Where reason and age say which,
 * they are matched and removed where they are, and nothing travels; else they are read, and removed by name.
 */
import type { Queue } from '../../job/queue.ts';
import { Indeterminate } from '../../kernel/errors.ts';
import { type Outage, withRetry } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { etagOfDeadLetter, isMatch } from '../calls/etag.ts';
import type { Layout } from '../calls/layouts.ts';
import { asOne, type CallPartitions } from '../calls/partition-calls.ts';
import { withReadRetry } from '../calls/retry.ts';
import type { Progress } from '../jobs/by-filter.ts';
import { type Spot, spotAt } from '../query/cursor.ts';
import { locate, type Named } from './locate.ts';
import { cursorAt, each, endOf, type Placed, type Reading, type Search, spotIn, walk } from './walk.ts';

/** What became of a request to remove a dead letter. */
export interface Removed {
  /** Undefined where a job was named and has none. */
  readonly deadLetter: string | undefined;
  /** `removed` · `gone`: there is no such dead letter · `changed`: it is another one than `ifMatch` says, and stays. */
  readonly status: 'removed' | 'gone' | 'changed';
}

/** What became of a removal of all that a filter means, or how far it has come. `changed`: how many are gone. */
export interface RemovedLetters extends Progress<never> {
  readonly dryRun: boolean;
}

export interface RemovePlan {
  readonly dryRun: boolean;
  readonly onProgress: ((progress: RemovedLetters) => void) | undefined;
}

/** Dead letters that one call removes. */
const REMOVED_AT_ONCE = 100;

interface Removing extends Reading {
  readonly layout: Layout;
  readonly search: Search;
  readonly plan: RemovePlan;
  /** `lost`: what calls may have removed whose replies were lost. It counts against the limit. */
  readonly tally: { matched: number; changed: number; scanned: number; lost: number };
}

/** Removes one after the other, each by its name. */
export async function removeNamed(
  { store, callPartitions }: Pick<Reading, 'store'> & { readonly callPartitions: CallPartitions },
  queue: Queue,
  all: readonly Named[],
): Promise<readonly Removed[]> {
  const calls = asOne(callPartitions);
  const results: Removed[] = [];
  for (const named of all) {
    results.push(await calls(queue, (layout, policy) => removeOne({ store, policy }, layout, named)));
  }
  return results;
}

async function removeOne(reading: Reading, layout: Layout, named: Named): Promise<Removed> {
  const found = await locate(reading, layout, named);
  if (!found) return { deadLetter: named.target.deadLetterId, status: 'gone' };
  const { entry: deadLetter } = found.letter;
  if (!isMatch(named.ifMatch, etagOfDeadLetter(found.letter))) return { deadLetter, status: 'changed' };
  const count = await forgetThese(reading, found.ref, [deadLetter]);
  return { deadLetter, status: count > 0 ? 'removed' : 'gone' };
}

/** What is gone after a lost reply, the call before has removed. */
function forgetThese({ store, policy }: Reading, ref: PartitionRef, entries: readonly string[]): Promise<number> {
  const call = async (isRepeated: boolean) => {
    const removed = await store.forget(ref, entries);
    return isRepeated ? entries.length : removed;
  };
  return withRetry('remove', call, policy);
}

export async function removeAll(
  reading: Reading,
  layout: Layout,
  asked: { readonly search: Search; readonly plan: RemovePlan },
): Promise<RemovedLetters> {
  const tally = { matched: 0, changed: 0, scanned: 0, lost: 0 };
  const removing: Removing = { ...reading, ...asked, layout, tally };
  const cursor = await (asked.search.filter.isPlain ? removePlain(removing) : removeRead(removing));
  return told(removing, cursor);
}

function told({ plan: { dryRun }, tally: { lost: _, ...counts } }: Removing, cursor: string | undefined) {
  return { ...counts, skipped: {}, dryRun, cursor };
}

const tell = (removing: Removing, cursor: string | undefined): void =>
  removing.plan.onProgress?.(told(removing, cursor));

async function removeRead(removing: Removing): Promise<string | undefined> {
  const { layout, search, plan, tally } = removing;
  let batch: Placed[] = [];
  const flush = async (cursor: string | undefined) => {
    for (const [ref, entries] of byPartition(batch)) {
      if (!plan.dryRun) tally.changed += await forgetThese(removing, ref, entries);
    }
    batch = [];
    tell(removing, cursor);
  };
  const source = walk(removing, layout, { from: search.from?.spot, order: 'oldest' });
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

async function removePlain(removing: Removing): Promise<string | undefined> {
  for (const ref of removing.layout) {
    const spot = spotIn(removing.search.from?.spot, ref);
    const cursor = spot && (await removePartition(removing, ref, spot));
    if (cursor !== undefined) return cursor;
  }
  return undefined;
}

/** @returns where the bounds ended it */
async function removePartition(removing: Removing, ref: PartitionRef, spot: Spot): Promise<string | undefined> {
  const { store, layout, search, plan, tally } = removing;
  const { filter, limit, scanMax, nowMs } = search;
  const end = spot.end ?? (await endOf(removing, ref));
  if (!end) return undefined;
  const cursorBehind = (at: string | undefined) => cursorAt(search, layout, spotAt(ref.partition, at, end));
  const { olderMs: ageMs, reason } = filter;
  const which = { mode: plan.dryRun ? 'count' : 'remove', nowMs, ageMs, reason, last: end.last } as const;
  let after = spot.at;
  do {
    const at = after;
    const most = () => Math.min(REMOVED_AT_ONCE, limit - tally.matched - tally.lost, scanMax - tally.scanned);
    if (most() <= 0) return cursorBehind(after);
    const batch = await bounded(removing, most, (atMost) => store.purge(ref, { ...which, limit: atMost, after: at }));
    tally.matched += batch.matched;
    tally.changed += plan.dryRun ? 0 : batch.matched;
    tally.scanned += batch.looked;
    after = batch.next;
    tell(removing, after === undefined ? undefined : cursorBehind(after));
  } while (after !== undefined);
  return undefined;
}

/** A call whose reply was lost may have removed all that it was allowed: what is left of the limit is for the next. */
function bounded<T>({ plan, policy, tally }: Removing, most: () => number, call: (atMost: number) => Promise<T>) {
  if (plan.dryRun) return withReadRetry('remove', () => call(most()), policy);
  let asked = 0;
  const within = () => {
    asked = most();
    if (asked > 0) return call(asked);
    throw new Indeterminate(
      'remove: a reply of Redis was lost, so as many as the limit may be gone: look at what is left',
    );
  };
  const onFailure = (outage: Outage, error: unknown) => {
    if (outage === 'lost' || outage === 'unknown') tally.lost += asked;
    return policy.onFailure?.(outage, error);
  };
  return withRetry('remove', within, { ...policy, onFailure });
}

function byPartition(batch: readonly Placed[]): ReadonlyMap<PartitionRef, readonly string[]> {
  const groups = new Map<PartitionRef, string[]>();
  for (const { ref, letter } of batch) groups.set(ref, [...(groups.get(ref) ?? []), letter.entry]);
  return groups;
}
