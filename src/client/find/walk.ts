/**
 * A page of the jobs that a filter means: through its sources, in each through the partitions, a slice at a time.
 *
 *   spot ──▶ places behind it ──▶ what is stored of them ──▶ those that the filter means ──▶ rows, and the next spot
 *
 * A page ends when it has enough rows, or has looked at so many places or bytes; then it says where to go on. A job that
 * stays where it is, is met once; one that goes on from state to state meanwhile may be met again, or not at all.
 */
import { memberOf } from '../../core/codec.ts';
import type { Queue } from '../../core/queue.ts';
import { decodeHeader } from '../../core/record-header.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import { type Found, lookAt } from '../../redis/find/look.ts';
import {
  type Ask,
  countScheduled,
  type DueRange,
  type Place,
  placesOf,
  type Slice,
  type Source,
} from '../../redis/find/places.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { createStep } from '../../redis/transitions/bytes.ts';
import type { Moved } from '../../redis/transitions/replies.ts';
import type { Layout } from '../layouts.ts';
import { type CallPartitions, isMoved } from '../partition-calls.ts';
import { withReadRetry } from '../read-retry.ts';
import { BEGINNING, checkLayout, cursorOf, type Spot } from './cursor.ts';
import { type Filter, filterKey, isWithin, sourcesOf } from './filter.ts';
import { nameIn } from './name-in.ts';

/** Where jobs are read: in Redis, or in the virtual time of the test kit. */
export interface Reader {
  readonly places: (ref: PartitionRef, ask: Ask & { readonly source: Source }) => Promise<Slice | Moved>;
  readonly look: (ref: PartitionRef, places: readonly Place[]) => ReturnType<typeof lookAt>;
  readonly countScheduled: (ref: PartitionRef, due: DueRange) => Promise<number>;
}

export const readerOf = (redis: Redis): Reader => ({
  places: (ref, ask) => placesOf(redis, ref, ask),
  look: (ref, places) => lookAt(redis, ref, places),
  countScheduled: (ref, due) => countScheduled(redis, ref, due),
});

export interface WalkParts {
  readonly reader: Reader;
  readonly callPartitions: CallPartitions;
}

export interface PageAsk {
  readonly queue: Queue;
  readonly filter: Filter;
  /** Rows, the most. */
  readonly limit: number;
  readonly from: { readonly spot: Spot; readonly layoutGeneration: number } | undefined;
}

export interface Page {
  readonly rows: readonly Found[];
  /** Places that were looked at. */
  readonly scanned: number;
  /** Undefined at the end. */
  readonly next: { readonly spot: Spot; readonly layoutGeneration: number } | undefined;
  readonly cursor: string | undefined;
}

/** Of one page. */
const SCANNED_MAX = 10_000;
const BYTES_MAX = 16 * 1024 * 1024;
const SLICE = 100;

/** @throws DuestreamError `moved` for a place of another layout, `unavailable`, `refused` */
export function pageOf(parts: WalkParts, ask: PageAsk): Promise<Page> {
  return parts.callPartitions(ask.queue, async (layout, policy) => {
    const layoutGeneration = layout[0]?.layoutGeneration ?? 0;
    checkLayout(ask.from?.layoutGeneration, layoutGeneration, ask.queue.name);
    const found = await walk(parts.reader, { ask, layout, policy });
    if (isMoved(found)) return found;
    const { rows, scanned, spot } = found;
    if (!spot) return { rows, scanned, next: undefined, cursor: undefined };
    const cursor = cursorOf(spot, { key: filterKey(ask.filter), layoutGeneration });
    return { rows, scanned, next: { spot, layoutGeneration }, cursor };
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
    const slice = await withReadRetry(
      'list',
      () => reader.places(ref, { source, after: spot.at, limit: step.next() }),
      policy,
    );
    if (isMoved(slice)) return slice;
    const meant = slice.places.filter((place) => isPrefixed(place, ask.filter));
    const looked = await withReadRetry('list', () => reader.look(ref, meant), policy);
    step.saw(looked.sizes);
    bytes += looked.sizes.reduce((sum, size) => sum + size, 0);
    const jobs = new Map(meant.map((place, at) => [place, looked.jobs[at]]));
    take(walked, { slice, jobs, ask, source });
    if (walked.spot === spot) walked.spot = next(spot, { sources, layout });
  }
  return walked;
}

/** The rows of a slice, in their order, until there are enough; and how far that has come. */
function take(
  walked: Walked,
  {
    slice,
    jobs,
    ask,
    source,
  }: {
    readonly slice: Slice;
    readonly jobs: ReadonlyMap<Place, Found | undefined>;
    readonly ask: PageAsk;
    readonly source: Source;
  },
): void {
  const spot = walked.spot ?? BEGINNING;
  const met = new Set<string>();
  for (const place of slice.places) {
    walked.scanned += 1;
    const job = jobs.get(place);
    if (job && !met.has(job.member) && isMeant(job, ask.filter, source)) {
      met.add(job.member);
      walked.rows.push(job);
    }
    if (walked.rows.length < ask.limit) continue;
    walked.spot = { ...spot, at: place.at };
    return;
  }
  if (slice.next !== undefined) walked.spot = { ...spot, at: slice.next };
}

function next(
  { source, partition }: Spot,
  { sources, layout }: { readonly sources: readonly Source[]; readonly layout: Layout },
): Spot | undefined {
  if (partition + 1 < layout.length) return { source, partition: partition + 1, at: undefined };
  return source + 1 < sources.length ? { source: source + 1, partition: 0, at: undefined } : undefined;
}

/** Ids are judged before anything is read of their jobs. */
function isPrefixed({ member }: Place, { idPrefix }: Filter): boolean {
  return idPrefix === undefined || member.startsWith(memberOf(idPrefix)) || member.startsWith(idPrefix);
}

/** A job that has gone on to another state is met there. What the index of tags says counts only with the header. */
function isMeant(job: Found, { states, tag, name, idPrefix, due }: Filter, source: Source): boolean {
  const isHere = source.kind === 'tag' ? states.includes(job.state) : job.state === source.kind;
  if (!isHere || !isWithin(due, job.dueMs)) return false;
  if (idPrefix !== undefined && !job.id.startsWith(idPrefix)) return false;
  if (tag !== undefined && !decodeHeader(job.record ?? '')?.tags?.includes(tag)) return false;
  return name === undefined || nameIn(job.record) === name;
}
