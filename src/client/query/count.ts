/**
 * How many jobs a filter means. A job that goes from state to state while it is counted must neither be missed nor counted
 * twice, so each partition is counted at one moment:
 *
 *   by state and due time   one script: scheduled by its index, each entry of ready by a look. Jobs never go to another
 *                           partition, so the sum is right up to what happens meanwhile. With many entries it takes several
 *                           pages, which hold if nothing has moved in between
 *   by all else             of a small partition one script says which jobs there are, and then they are looked at. Of a
 *                           large one the index is walked through, which holds if nothing has moved meanwhile
 *
 * Where something moves each time, the largest count of three says how many there are at least. A job may be somewhere else at
 * each of the three; so before 0 is said of jobs that move, each record is looked at. A job has its record from its first
 * moment to its end, wherever it goes: 0 then means that no job lives which lived when the count began.
 */

import type { Queue } from '../../job/queue.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { createStep } from '../../redis/scripts/bytes.ts';
import type { Moved } from '../../redis/scripts/replies.ts';
import { isMoved } from '../calls/partition-calls.ts';
import { withReadRetry } from '../calls/retry.ts';
import { type Filter, isWithin, sourcesOf } from './filter.ts';
import type { Reader } from './reader.ts';
import { isLike, isPrefixed, type Page, pageOf, type WalkParts } from './walk.ts';

/** How many jobs there are. */
export interface JobCount {
  readonly count: number;
  /** There may be more: jobs moved while they were counted. False: so many there were at one moment in each partition. */
  readonly atLeast: boolean;
}

interface CountAsk {
  readonly queue: Queue;
  readonly filter: Filter;
}

/** How often jobs are counted that move meanwhile. */
const LOOKS_MAX = 3;
/** A walk through more than this is not made again. */
const AGAIN_MAX = 10_000;
const WALK_ROWS = 1000;
const LOOKED_AT_ONCE = 100;
/** Of records in one partition, 100 each but for large ones. */
const SLICES_MAX = 10_000_000;

export async function countJobs(parts: WalkParts, ask: CountAsk): Promise<JobCount> {
  const counted = await countMoving(parts, ask);
  return counted.count === 0 && counted.atLeast ? countRecords(parts, ask) : counted;
}

async function countMoving(parts: WalkParts, { queue, filter }: CountAsk): Promise<JobCount> {
  const small = await parts.callPartitions(queue, async (layout, policy) => {
    const counts = await Promise.all(layout.map((ref) => countIn(parts.reader, { ref, filter, policy })));
    return counts.find(isMoved) ?? counts.flatMap((count) => (isMoved(count) ? [] : [count]));
  });
  const known = small.flatMap((count) => count ?? []);
  if (known.length === small.length) return sumOf(known);
  return countByWalk(parts, { queue, filter });
}

const sumOf = (counts: readonly JobCount[]): JobCount => ({
  count: counts.reduce((sum, { count }) => sum + count, 0),
  atLeast: counts.some(({ atLeast }) => atLeast),
});

interface Counting {
  readonly ref: PartitionRef;
  readonly filter: Filter;
  readonly policy: RetryPolicy;
}

/** Undefined: there are too many for one moment. */
async function countIn(reader: Reader, counting: Counting): Promise<JobCount | Moved | undefined> {
  const { tag, set, name, idPrefix, failed, states, due } = counting.filter;
  if ([tag, set, name, idPrefix, failed].some((one) => one !== undefined)) return countSmall(reader, counting);
  const { ref, policy } = counting;
  const [kind, ...others] = states;
  const isOne = (kind === 'scheduled' || kind === 'waiting') && others.length === 0;
  if (!isOne) return countPages(reader, counting);
  const count = await withReadRetry('count', () => reader.countScheduled(ref, { kind, due }), policy);
  return { count, atLeast: false };
}

/** Each look is a lower bound: what an entry of the first page's time still holds, it held then. */
async function countPages(reader: Reader, counting: Counting): Promise<JobCount | Moved> {
  let most = 0;
  for (let looks = 0; looks < LOOKS_MAX; looks += 1) {
    const look = await lookThrough(reader, counting);
    if (isMoved(look)) return look;
    most = Math.max(most, look.count);
    if (!look.atLeast) return look;
  }
  return { count: most, atLeast: true };
}

async function lookThrough(reader: Reader, { ref, filter, policy }: Counting): Promise<JobCount | Moved> {
  const { due, states } = filter;
  const page = (at: { readonly after?: string; readonly last?: string }) =>
    withReadRetry('count', () => reader.countPage(ref, { due, ...at }), policy);
  const first = await page({});
  if (isMoved(first)) return first;
  let [count, newest] = [0, first];
  for (;;) {
    count += states.reduce((sum, state) => sum + newest.counts[state], 0);
    if (newest.next === undefined) return { count, atLeast: newest.mark !== first.mark };
    const found = await page({ after: newest.next, last: first.last });
    if (isMoved(found)) return found;
    newest = found;
  }
}

/** Where each job was is known of one moment. What its record says is read then: a job that has ended since is left out. */
async function countSmall(reader: Reader, { ref, filter, policy }: Counting): Promise<JobCount | Moved | undefined> {
  const members = await withReadRetry('count', () => reader.members(ref, filter.due), policy);
  if (members === undefined || isMoved(members)) return members;
  const meant = members.filter((one) => filter.states.includes(one.state) && isPrefixed(one, filter));
  const step = createStep(LOOKED_AT_ONCE);
  let count = 0;
  for (let from = 0; from < meant.length; ) {
    const some = meant.slice(from, from + step.next());
    const { jobs, sizes } = await withReadRetry('count', () => reader.look(ref, some), policy);
    step.saw(sizes);
    count += jobs.filter((job) => job && isLike(job, filter)).length;
    from += some.length;
  }
  return { count, atLeast: false };
}

async function countByWalk(parts: WalkParts, ask: CountAsk): Promise<JobCount> {
  let most = 0;
  for (let looks = 0; looks < LOOKS_MAX; looks += 1) {
    const before = await marksOf(parts, ask);
    const { count, scanned } = await walked(parts, ask);
    most = Math.max(most, count);
    if (before === (await marksOf(parts, ask))) return { count, atLeast: false };
    if (scanned > AGAIN_MAX) break;
  }
  return { count: most, atLeast: true };
}

/** Each job that lives all the while is met. One that comes meanwhile, or gets into one of the states, may be missing. */
async function countRecords(parts: WalkParts, { queue, filter }: CountAsk): Promise<JobCount> {
  const counts = await parts.callPartitions(queue, async (layout, policy) => {
    // What a server says of a slice holds for that server: after an outage a partition is looked at anew.
    const count = (ref: PartitionRef) =>
      withReadRetry('count', () => countRecordsIn(parts.reader, ref, filter), policy);
    const found = await Promise.all(layout.map(count));
    return found.find(isMoved) ?? found.flatMap((one) => (isMoved(one) ? [] : [one]));
  });
  return { count: counts.reduce((sum, count) => sum + count, 0), atLeast: true };
}

async function countRecordsIn(reader: Reader, ref: PartitionRef, filter: Filter): Promise<number | Moved> {
  const met = new Set<string>();
  const step = createStep(LOOKED_AT_ONCE);
  let after: string | undefined;
  for (let slices = 0; slices < SLICES_MAX; slices += 1) {
    const slice = await reader.recorded(ref, { after, limit: step.next() });
    if (isMoved(slice)) return slice;
    const places = slice.places.filter((place) => isPrefixed(place, filter));
    const { jobs, sizes } = await reader.look(ref, places);
    step.saw(sizes);
    for (const job of jobs) {
      if (job && filter.states.includes(job.state) && isWithin(filter.due, job.dueMs) && isLike(job, filter)) {
        met.add(job.member);
      }
    }
    after = slice.next;
    if (after === undefined) return met.size;
  }
  throw new DuestreamError('unavailable', `jobs of ${ref.queue} come faster than they are counted; try again`);
}

/** The same twice: nothing has moved in between. */
function marksOf({ callPartitions, reader }: WalkParts, { queue, filter }: CountAsk): Promise<string> {
  return callPartitions(queue, async (layout, policy) => {
    const mark = (ref: PartitionRef) => reader.countPage(ref, { due: filter.due, after: '0-0', last: '0-0' });
    const pages = await withReadRetry('count', () => Promise.all(layout.map(mark)), policy);
    return pages.find(isMoved) ?? pages.map((page) => (isMoved(page) ? '' : page.mark)).join();
  });
}

/** A job that goes on meanwhile may be met in two states, and is counted once. */
async function walked(parts: WalkParts, { queue, filter }: CountAsk) {
  const isOneIndex = sourcesOf(filter).length === 1;
  const met = new Set<string>();
  let [rows, scanned] = [0, 0];
  let page: Page | undefined;
  do {
    page = await pageOf(parts, { queue, filter, key: '', limit: WALK_ROWS, from: page?.next });
    scanned += page.scanned;
    rows += page.rows.length;
    if (!isOneIndex) for (const { ref, member } of page.rows) met.add(`${ref.partition} ${member}`);
  } while (page.next !== undefined);
  return { count: isOneIndex ? rows : met.size, scanned };
}
