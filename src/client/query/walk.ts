/**
 * A page of the jobs that a filter means: through its sources, in each through the partitions, a slice at a time.
 *
 *   spot ──▶ places behind it ──▶ what is stored of them ──▶ those that the filter means ──▶ rows, and the next spot
 *
 * A page ends when it has enough rows, or has looked at so many places or bytes; then it says where to go on. A job that
 * stays where it is, is met once; one that goes on from state to state meanwhile may be met again, or not at all.
 *
 * A walk ends, whatever others do meanwhile: it goes to the last place that there was when it entered the partition, and
 * looks at no more than twice as many places as there were then, and 1,000.
 */
import { decodeRecord, memberOf } from '../../job/codec.ts';
import { DEFAULT_NAME } from '../../job/job.ts';
import type { Queue } from '../../job/queue.ts';
import { decodeHeader } from '../../job/record-header.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { type CountAsk, type Counted, countPage, membersOf } from '../../redis/read/counted.ts';
import { lastTokens, peek } from '../../redis/read/inspect.ts';
import { type Found, lookAt } from '../../redis/read/look.ts';
import {
  type Ask,
  countScheduled,
  type DueRange,
  type Extent,
  extentOf,
  type Place,
  placesOf,
  recorded,
  type Slice,
  type Source,
} from '../../redis/read/places.ts';
import { createStep } from '../../redis/scripts/bytes.ts';
import type { Moved } from '../../redis/scripts/replies.ts';
import type { Layout } from '../calls/layouts.ts';
import { type CallPartitions, isMoved } from '../calls/partition-calls.ts';
import { withReadRetry } from '../calls/retry.ts';
import { BEGINNING, checkLayout, cursorOf, type End, type From, type Spot } from './cursor.ts';
import { type Filter, isWithin, sourcesOf } from './filter.ts';

/** Where jobs are read: in Redis, or in the virtual time of the test kit. */
export interface Reader {
  readonly places: (ref: PartitionRef, ask: Ask & { readonly source: Source }) => Promise<Slice | Moved>;
  readonly recorded: (ref: PartitionRef, ask: Pick<Ask, 'after' | 'limit'>) => Promise<Slice | Moved>;
  readonly look: (ref: PartitionRef, places: readonly Place[]) => ReturnType<typeof lookAt>;
  readonly extent: (ref: PartitionRef, source: Source) => Promise<Extent>;
  readonly countScheduled: (ref: PartitionRef, source: Parameters<typeof countScheduled>[2]) => Promise<number>;
  readonly countPage: (ref: PartitionRef, ask: CountAsk) => Promise<Counted | Moved>;
  readonly members: (ref: PartitionRef, due: DueRange) => ReturnType<typeof membersOf>;
  /** One job, by its member. */
  readonly peek: (ref: PartitionRef, member: string) => ReturnType<typeof peek>;
  /** The tokens of the last starts of jobs, `0` for a job that was never started. */
  readonly lastTokens: (ref: PartitionRef, members: readonly string[]) => Promise<readonly string[]>;
}

export const readerOf = (redis: Redis): Reader => ({
  places: (ref, ask) => placesOf(redis, ref, ask),
  recorded: (ref, ask) => recorded(redis, ref, ask),
  look: (ref, places) => lookAt(redis, ref, places),
  extent: (ref, source) => extentOf(redis, ref, source),
  countScheduled: (ref, source) => countScheduled(redis, ref, source),
  countPage: (ref, ask) => countPage(redis, ref, ask),
  members: (ref, due) => membersOf(redis, ref, due),
  peek: (ref, member) => peek(redis, ref, member),
  lastTokens: (ref, members) => lastTokens(redis, ref, members),
});

export interface WalkParts {
  readonly reader: Reader;
  readonly callPartitions: CallPartitions;
}

export interface PageAsk {
  readonly queue: Queue;
  readonly filter: Filter;
  /** Of the cursor: see `filterKey`. */
  readonly key: string;
  /** Of a change: what the cursor keeps. */
  readonly dueMs?: number | undefined;
  /** Rows, the most. */
  readonly limit: number;
  readonly from: From | undefined;
}

export interface Page {
  readonly rows: readonly Found[];
  /** Places that were looked at. */
  readonly scanned: number;
  /** Undefined at the end. */
  readonly next: From | undefined;
  readonly cursor: string | undefined;
}

/** Of one page. */
const SCANNED_MAX = 10_000;
const BYTES_MAX = 16 * 1024 * 1024;
const SLICE = 100;
/** How many places a walk looks at in a partition beyond twice those that there were. */
const MORE_PLACES = 1000;

/** @throws DuestreamError `moved` for a place of another layout, `unavailable`, `refused` */
export function pageOf(parts: WalkParts, ask: PageAsk): Promise<Page> {
  return parts.callPartitions(ask.queue, async (layout, policy) => {
    const layoutGeneration = layout[0]?.layoutGeneration ?? 0;
    checkLayout(ask.from?.layoutGeneration, layoutGeneration, ask.queue.name);
    const found = await walk(parts.reader, { ask, layout, policy });
    if (isMoved(found)) return found;
    const { rows, scanned, spot } = found;
    if (!spot) return { rows, scanned, next: undefined, cursor: undefined };
    const next = { spot, layoutGeneration, dueMs: ask.dueMs };
    return { rows, scanned, next, cursor: cursorOf(next, ask.key) };
  });
}

interface Walking {
  readonly ask: PageAsk;
  readonly layout: Layout;
  readonly policy: RetryPolicy;
}

interface Walked {
  readonly rows: Found[];
  scanned: number;
  spot: Spot | undefined;
}

async function walk(reader: Reader, { ask, layout, policy }: Walking): Promise<Walked | Moved> {
  const sources = sourcesOf(ask.filter);
  const walked: Walked = { rows: [], scanned: 0, spot: ask.from?.spot ?? BEGINNING };
  const step = createStep(SLICE);
  let bytes = 0;
  while (walked.spot && walked.rows.length < ask.limit && walked.scanned < SCANNED_MAX && bytes < BYTES_MAX) {
    const { spot } = walked;
    const [source, ref] = [sources[spot.source], layout[spot.partition]];
    if (!source || !ref) {
      walked.spot = undefined;
      break;
    }
    const limit = step.next();
    const read = () =>
      Promise.all([
        spot.end ?? reader.extent(ref, source).then(endOf),
        reader.places(ref, { source, after: spot.at, last: spot.end?.last, limit }),
      ]);
    const [end, slice] = await withReadRetry('list', read, policy);
    if (isMoved(slice)) return slice;
    const meant = slice.places.filter((place) => isPrefixed(place, ask.filter));
    const looked = await withReadRetry('list', () => reader.look(ref, meant), policy);
    step.saw(looked.sizes);
    bytes += looked.sizes.reduce((sum, size) => sum + size, 0);
    const jobs = new Map(meant.map((place, at) => [place, looked.jobs[at]]));
    walked.spot = take(walked, { slice, jobs, ask, source, spot: { ...spot, end } });
    walked.spot ??= next(spot, { sources, layout });
  }
  return walked;
}

const endOf = ({ last, count }: Extent): End => ({ last, left: 2 * count + MORE_PLACES });

interface Taking {
  readonly slice: Slice;
  readonly jobs: ReadonlyMap<Place, Found | undefined>;
  readonly ask: PageAsk;
  readonly source: Source;
  readonly spot: Spot & { readonly end: End };
}

/** The rows of a slice, in their order, until there are enough. @returns where it goes on, undefined at the end of the partition */
function take(walked: Walked, { slice, jobs, ask, source, spot }: Taking): Spot | undefined {
  const { end } = spot;
  const met = new Set<string>();
  let looked = 0;
  for (const place of slice.places) {
    if (looked === end.left) return undefined;
    looked += 1;
    walked.scanned += 1;
    const job = jobs.get(place);
    if (job && !met.has(job.member) && isMeant(job, ask.filter, source)) {
      met.add(job.member);
      walked.rows.push(job);
    }
    if (walked.rows.length < ask.limit) continue;
    return { ...spot, at: place.at, end: { ...end, left: end.left - looked } };
  }
  if (slice.next === undefined || end.last === undefined) return undefined;
  return { ...spot, at: slice.next, end: { ...end, left: end.left - looked } };
}

function next(
  { source, partition }: Spot,
  { sources, layout }: { readonly sources: readonly Source[]; readonly layout: Layout },
): Spot | undefined {
  if (partition + 1 < layout.length) return { source, partition: partition + 1, at: undefined };
  return source + 1 < sources.length ? { source: source + 1, partition: 0, at: undefined } : undefined;
}

/** Ids are judged before anything is read of their jobs. */
export function isPrefixed({ member }: Pick<Place, 'member'>, { idPrefix }: Filter): boolean {
  return idPrefix === undefined || member.startsWith(memberOf(idPrefix)) || member.startsWith(idPrefix);
}

/** A job that has gone on to another state is met there. What the index of tags says counts only with the header. */
function isMeant(job: Found, { states, tag, name, idPrefix, due }: Filter, source: Source): boolean {
  const isHere = source.kind === 'tag' ? states.includes(job.state) : job.state === source.kind;
  return isHere && isWithin(due, job.dueMs) && isLike(job, { tag, name, idPrefix });
}

/** Whether the content of a job is what a filter says. */
export function isLike(job: Found, { tag, name, idPrefix }: Pick<Filter, 'tag' | 'name' | 'idPrefix'>): boolean {
  if (idPrefix !== undefined && !job.id.startsWith(idPrefix)) return false;
  if (tag !== undefined && !decodeHeader(job.record ?? '')?.tags?.includes(tag)) return false;
  return name === undefined || nameIn(job.record) === name;
}

/** The name comes first nearly always, and then nothing has to be parsed. */
const FIRST = /^[^|]*\|\{"n":"([^"\\]*)"/;

/** The name in a record, undefined where it cannot be read. */
export function nameIn(record: string | undefined): string | undefined {
  // A bare job that was not promoted yet.
  if (record === undefined) return DEFAULT_NAME;
  const first = FIRST.exec(record)?.[1];
  if (first !== undefined) return first;
  try {
    return decodeRecord(record).name;
  } catch {
    return undefined;
  }
}
