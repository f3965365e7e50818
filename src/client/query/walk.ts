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
 *
 * Jobs that are over come behind the others, and not partition after partition: their ends are merged, the latest first. They
 * come from the history of the queue; without one, from what is remembered of them within the done window, which knows little.
 */
import { decodeRecord, memberOf } from '../../job/codec.ts';
import { DEFAULT_NAME } from '../../job/job.ts';
import type { Queue } from '../../job/queue.ts';
import { decodeHeader } from '../../job/record-header.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { Ended, EndPlace, JobEnd } from '../../redis/read/ends.ts';
import type { Found } from '../../redis/read/look.ts';
import type { Extent, Place, Slice, Source } from '../../redis/read/places.ts';
import { createStep } from '../../redis/scripts/bytes.ts';
import type { Moved } from '../../redis/scripts/replies.ts';
import type { Layout } from '../calls/layouts.ts';
import { type CallPartitions, isMoved } from '../calls/partition-calls.ts';
import { withReadRetry } from '../calls/retry.ts';
import { BEGINNING, checkLayout, cursorOf, type End, type From, type Spot } from './cursor.ts';
import { EndLine, type Indexed, indexesOf, mergeEnds } from './ends.ts';
import { type ContentFilter, type Filter, isFailedAs, isWithin, type ListFilter, sourcesOf } from './filter.ts';
import type { Reader } from './reader.ts';

export interface WalkParts {
  readonly reader: Reader;
  readonly callPartitions: CallPartitions;
}

export interface PageAsk {
  readonly queue: Queue;
  readonly filter: ListFilter;
  /** Of the cursor: see `filterKey`. */
  readonly key: string;
  /** Of a change: what the cursor keeps. */
  readonly dueMs?: number | undefined;
  /** Of a change: a job that a worker holds until it is due counts as scheduled, because its worker lets it go. */
  readonly meansHeld?: boolean | undefined;
  /** Rows, the most. */
  readonly limit: number;
  readonly from: From | undefined;
}

export interface Page {
  readonly rows: readonly Found[];
  /** Jobs that are over: they come behind the others. */
  readonly over: readonly FoundOver[];
  /** Places that were looked at. */
  readonly scanned: number;
  /** Undefined at the end. */
  readonly next: From | undefined;
  readonly cursor: string | undefined;
}

/** A job that is over, as it was found. */
export interface FoundOver {
  readonly ref: PartitionRef;
  readonly ended: Ended;
}

/** Of one page: places, by what is read of each. A record of a history is larger than a tombstone. */
export const SCANNED_MAX = 10_000;
export const PAST_SCANNED_MAX = 5000;
const REMEMBERED_SCANNED_MAX = 20_000;
/** Of one page. */
export const BYTES_MAX = 16 * 1024 * 1024;
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
    const { rows, over, scanned, spot } = found;
    if (!spot) return { rows, over, scanned, next: undefined, cursor: undefined };
    const next = { spot, layoutGeneration, dueMs: ask.dueMs };
    return { rows, over, scanned, next, cursor: cursorOf(next, ask.key) };
  });
}

interface Walking {
  readonly ask: PageAsk;
  readonly layout: Layout;
  readonly policy: RetryPolicy;
}

interface Walked {
  readonly rows: Found[];
  readonly over: FoundOver[];
  scanned: number;
  bytes: number;
  spot: Spot | undefined;
}

const isFull = ({ rows, over, scanned, bytes }: Walked, { limit }: PageAsk, scannedMax: number): boolean =>
  rows.length + over.length >= limit || scanned >= scannedMax || bytes >= BYTES_MAX;

async function walk(reader: Reader, walking: Walking): Promise<Walked | Moved> {
  const { ask, layout, policy } = walking;
  const sources = sourcesOf(ask.filter, ask.meansHeld);
  const walked: Walked = { rows: [], over: [], scanned: 0, bytes: 0, spot: ask.from?.spot ?? BEGINNING };
  const [first] = layout;
  const indexes = first ? await indexesOf(reader, { ref: first, filter: ask.filter, policy }) : [];
  const step = createStep(SLICE);
  while (walked.spot && !isFull(walked, ask, SCANNED_MAX)) {
    const { spot } = walked;
    const [source, ref] = [sources[spot.source], layout[spot.partition]];
    if (source?.kind === 'over') return walkEnds(reader, walking, { walked, spot, indexes });
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
    walked.bytes += looked.sizes.reduce((sum, size) => sum + size, 0);
    const jobs = new Map(meant.map((place, at) => [place, looked.jobs[at]]));
    walked.spot = take(walked, { slice, jobs, ask, source, spot: { ...spot, end } });
    walked.spot ??= next(spot, { sources: sources.length, layout });
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
    if (job && !met.has(job.member) && isMeant(job, ask.filter, { source, meansHeld: ask.meansHeld })) {
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
  { sources, layout }: { readonly sources: number; readonly layout: Layout },
): Spot | undefined {
  if (partition + 1 < layout.length) return { source, partition: partition + 1, at: undefined };
  return source + 1 < sources ? { source: source + 1, partition: 0, at: undefined } : undefined;
}

/** Ids are judged before anything is read of their jobs. */
export function isPrefixed({ member }: Pick<Place, 'member'>, { idPrefix }: Pick<Filter, 'idPrefix'>): boolean {
  return idPrefix === undefined || member.startsWith(memberOf(idPrefix)) || member.startsWith(idPrefix);
}

/** A job that has gone on to another state is met there. What the index of tags says counts only with the header. */
export function isMeant(
  job: Found,
  { states, due, ...content }: ListFilter,
  { source, meansHeld = false }: { readonly source: Source; readonly meansHeld?: boolean | undefined },
): boolean {
  const isMet = source.kind === 'tag' || job.state === source.kind;
  const isHere = states.includes(job.state) || (meansHeld && job.isHeld && states.includes('scheduled'));
  return isMet && isHere && isWithin(due, job.dueMs) && isLike(job, content);
}

/** Whether the content of a job, and what became of its runs, is what a filter says. */
export function isLike(job: Found, { tag, set, name, idPrefix, failed }: ContentFilter): boolean {
  if (idPrefix !== undefined && !job.id.startsWith(idPrefix)) return false;
  if (!isFailedAs(job.run, failed)) return false;
  const header = tag === undefined && set === undefined ? undefined : decodeHeader(job.record ?? '');
  if (tag !== undefined && header?.tags?.includes(tag) !== true) return false;
  if (set !== undefined && header?.set !== set) return false;
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

interface WalkingEnds {
  readonly walked: Walked;
  readonly spot: Spot;
  readonly indexes: readonly Indexed[];
}

/** The ends of all partitions merged, the latest first; of the same millisecond, those of the first line. A spot counts lines as partitions. */
async function walkEnds(
  reader: Reader,
  { ask, layout, policy }: Walking,
  { walked, spot, indexes }: WalkingEnds,
): Promise<Walked | Moved> {
  const { fromMs, toMs } = ask.filter.ended ?? {};
  const scannedMax = indexes[0]?.index === 'history' ? PAST_SCANNED_MAX : REMEMBERED_SCANNED_MAX;
  const lines = indexes.flatMap((indexed) => layout.map((ref) => new EndLine(reader, { ref, policy, ...indexed })));
  const moved = await Promise.all(lines.map((line, at) => line.begin(startOf(spot, at, toMs))));
  const take = (line: EndLine, end: JobEnd) => {
    walked.scanned += 1;
    walked.bytes += end.size;
    if (end.ended && line.isMeant(end.ended)) walked.over.push({ ref: line.ref, ended: end.ended });
    return !isFull(walked, ask, scannedMax);
  };
  const last = moved.find(isMoved) ?? (await mergeEnds(lines, { fromMs, take }));
  if (isMoved(last)) return last;
  const { line, end } = last ?? {};
  if (!line || !end) return { ...walked, spot: undefined };
  return { ...walked, spot: { ...spot, partition: lines.indexOf(line), at: `${end.atMs} ${end.field}` } };
}

/** Where a line begins; `spot` is where the page before has ended. */
function startOf({ partition, at }: Spot, line: number, toMs: number | undefined): EndPlace | undefined {
  const [, ms, field] = /^(\S+) (.*)$/s.exec(at ?? '') ?? [];
  if (ms === undefined) return toMs === undefined ? undefined : { atMs: toMs, field: undefined };
  const atMs = Number(ms);
  if (line === partition) return { atMs, field };
  return { atMs: line < partition ? atMs - 1 : atMs, field: undefined };
}
