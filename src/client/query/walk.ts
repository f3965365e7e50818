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
import type { History } from '../../job/queue-settings.ts';
import { decodeHeader } from '../../job/record-header.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { type ClosedAsk, type ClosedSlice, closedTags } from '../../redis/read/closed.ts';
import { type CountAsk, type Counted, countPage, membersOf } from '../../redis/read/counted.ts';
import { type Ended, type EndIndex, type EndPlace, type EndsAsk, endsOf, type JobEnd } from '../../redis/read/ends.ts';
import { type GroupsAsk, groupsOf, type Holder, holdersOf, type SeenGroups } from '../../redis/read/groups.ts';
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
import { type SetsAsk, type SetsSlice, setsOf } from '../../redis/read/sets.ts';
import { createStep, type Step } from '../../redis/scripts/bytes.ts';
import { isGatedNow } from '../../redis/scripts/gates.ts';
import { historyOf } from '../../redis/scripts/queues.ts';
import type { Moved } from '../../redis/scripts/replies.ts';
import type { Layout } from '../calls/layouts.ts';
import { type CallPartitions, isMoved } from '../calls/partition-calls.ts';
import { withReadRetry } from '../calls/retry.ts';
import { BEGINNING, checkLayout, cursorOf, type End, type From, type Spot } from './cursor.ts';
import { type ContentFilter, type Filter, isOverState, isWithin, type ListFilter, sourcesOf } from './filter.ts';

/** Where jobs are read: in Redis, or in the virtual time of the test kit. */
export interface Reader {
  readonly places: (ref: PartitionRef, ask: Ask & { readonly source: Source }) => Promise<Slice | Moved>;
  readonly recorded: (ref: PartitionRef, ask: Pick<Ask, 'after' | 'limit'>) => Promise<Slice | Moved>;
  readonly look: (ref: PartitionRef, places: readonly Place[]) => ReturnType<typeof lookAt>;
  readonly extent: (ref: PartitionRef, source: Source) => Promise<Extent>;
  readonly countScheduled: (ref: PartitionRef, source: Parameters<typeof countScheduled>[2]) => Promise<number>;
  readonly countPage: (ref: PartitionRef, ask: CountAsk) => Promise<Counted | Moved>;
  readonly members: (ref: PartitionRef, due: DueRange) => ReturnType<typeof membersOf>;
  readonly ends: (ref: PartitionRef, ask: EndsAsk) => Promise<readonly JobEnd[] | Moved>;
  /** What the queue keeps of jobs that are over. Undefined: it never kept any. */
  readonly history: (ref: PartitionRef) => Promise<Pick<History, 'isOn'> | undefined>;
  /** One job, by its member. */
  readonly peek: (ref: PartitionRef, member: string) => ReturnType<typeof peek>;
  /** The tokens of the last starts of jobs, `0` for a job that was never started. */
  readonly lastTokens: (ref: PartitionRef, members: readonly string[]) => Promise<readonly string[]>;
  readonly closed: (ref: PartitionRef, ask: ClosedAsk) => Promise<ClosedSlice>;
  readonly sets: (ref: PartitionRef, ask: SetsAsk) => Promise<SetsSlice>;
  readonly groups: (ref: PartitionRef, ask: GroupsAsk) => Promise<SeenGroups | Moved>;
  readonly holders: (
    ref: PartitionRef,
    of: { readonly group: string; readonly limit: number },
  ) => Promise<readonly Holder[]>;
  /** Whether the partition is gated by now: the layout may be older. */
  readonly isGated: (ref: PartitionRef) => Promise<boolean>;
}

/** @param namespace where a setting is read that is newer than the layout may be; undefined: the layout is new */
export const readerOf = (redis: Redis, namespace?: string): Reader => ({
  places: (ref, ask) => placesOf(redis, ref, ask),
  recorded: (ref, ask) => recorded(redis, ref, ask),
  look: (ref, places) => lookAt(redis, ref, places),
  closed: (ref, ask) => closedTags(redis, ref, ask),
  sets: (ref, ask) => setsOf(redis, ref, ask),
  extent: (ref, source) => extentOf(redis, ref, source),
  countScheduled: (ref, source) => countScheduled(redis, ref, source),
  countPage: (ref, ask) => countPage(redis, ref, ask),
  members: (ref, due) => membersOf(redis, ref, due),
  ends: (ref, ask) => endsOf(redis, ref, ask),
  history: async (ref) => (namespace === undefined ? ref.history : historyOf(redis, namespace, ref.queue)),
  peek: (ref, member) => peek(redis, ref, member),
  lastTokens: (ref, members) => lastTokens(redis, ref, members),
  groups: (ref, ask) => groupsOf(redis, ref, ask),
  holders: (ref, of) => holdersOf(redis, ref, of),
  isGated: (ref) => isGatedNow(redis, ref),
});

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
const SCANNED_MAX = 10_000;
const PAST_SCANNED_MAX = 5000;
const REMEMBERED_SCANNED_MAX = 20_000;
/** Of one page. */
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
  const sources = sourcesOf(ask.filter);
  const walked: Walked = { rows: [], over: [], scanned: 0, bytes: 0, spot: ask.from?.spot ?? BEGINNING };
  const indexes = await indexesOf(reader, walking);
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
function isMeant(job: Found, { states, due, ...content }: ListFilter, source: Source): boolean {
  const isHere = source.kind === 'tag' ? states.includes(job.state) : job.state === source.kind;
  return isHere && isWithin(due, job.dueMs) && isLike(job, content);
}

/** Whether the content of a job is what a filter says. */
export function isLike(job: Found, { tag, set, name, idPrefix }: ContentFilter): boolean {
  if (idPrefix !== undefined && !job.id.startsWith(idPrefix)) return false;
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

/** What is read of jobs that are over, and of which of them. */
interface Indexed {
  readonly index: EndIndex;
  readonly isMeant: (ended: Ended) => boolean;
}

/**
 * Where ends are read: none if the filter means no job that is over. What a history kept is found by a filter until it goes, also
 * when the history was switched off.
 *
 * @throws DuestreamError `bad-input` for a filter in a queue that never kept a history
 */
async function indexesOf(reader: Reader, { ask, layout, policy }: Walking): Promise<readonly Indexed[]> {
  const { states, tag, set, name, idPrefix, ended } = ask.filter;
  const over = states.filter(isOverState);
  const [ref] = layout;
  if (over.length === 0 || !ref) return [];
  const isIn = ({ state }: Ended) => over.includes(state);
  const given = Object.entries({ tag, set, name, idPrefix, ended: ended?.fromMs ?? ended?.toMs });
  const [named] = given.find(([, value]) => value !== undefined) ?? [];
  const history = await withReadRetry('list', () => reader.history(ref), policy);
  if (history?.isOn || (history && named !== undefined)) {
    return [{ index: 'history', isMeant: (one) => isIn(one) && isPastLike(one, ask.filter) }];
  }
  if (named !== undefined) throw unknownHere(ask.queue.name, named, over.includes('dead'));
  return [
    // A dead job has a tombstone too.
    ...(over.some((state) => state !== 'dead')
      ? [{ index: 'tombstones' as const, isMeant: (one: Ended) => isIn(one) && one.state !== 'dead' }]
      : []),
    ...(over.includes('dead') ? [{ index: 'dead' as const, isMeant: isIn }] : []),
  ];
}

function unknownHere(queue: string, named: string, hasDead: boolean): DuestreamError {
  const where = `client.deadLetters, duestream dead ls and /v1/queues/${queue}/dead find dead letters by name, tag, set and error`;
  return new DuestreamError(
    'bad-input',
    `${named} is given, and ${queue} keeps no history of jobs that are over; allowed: state, limit and cursor${hasDead ? `; ${where}` : ''}`,
  );
}

function isPastLike({ id, past }: Ended, { name, tag, set, idPrefix = '' }: ListFilter): boolean {
  if (!past || (set !== undefined && past.set !== set) || (name !== undefined && past.name !== name)) return false;
  return (tag === undefined || past.tags.includes(tag)) && id.startsWith(idPrefix);
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
  const { fromMs = Number.NEGATIVE_INFINITY, toMs } = ask.filter.ended ?? {};
  const scannedMax = indexes[0]?.index === 'history' ? PAST_SCANNED_MAX : REMEMBERED_SCANNED_MAX;
  const lines = indexes.flatMap((indexed) => layout.map((ref) => new EndLine(reader, { ref, policy, ...indexed })));
  const moved = await Promise.all(lines.map((line, at) => line.begin(startOf(spot, at, toMs))));
  for (let reply = moved.find(isMoved); ; ) {
    if (reply) return reply;
    const line = latestOf(lines);
    const end = line?.head;
    if (!line || !end || end.atMs < fromMs) return { ...walked, spot: undefined };
    walked.scanned += 1;
    walked.bytes += end.size;
    if (end.ended && line.isMeant(end.ended)) walked.over.push({ ref: line.ref, ended: end.ended });
    if (isFull(walked, ask, scannedMax)) {
      return { ...walked, spot: { ...spot, partition: lines.indexOf(line), at: `${end.atMs} ${end.field}` } };
    }
    reply = await line.next();
  }
}

/** Where a line begins; `spot` is where the page before has ended. */
function startOf({ partition, at }: Spot, line: number, toMs: number | undefined): EndPlace | undefined {
  const [, ms, field] = /^(\S+) (.*)$/s.exec(at ?? '') ?? [];
  if (ms === undefined) return toMs === undefined ? undefined : { atMs: toMs, field: undefined };
  const atMs = Number(ms);
  if (line === partition) return { atMs, field };
  return { atMs: line < partition ? atMs - 1 : atMs, field: undefined };
}

function latestOf(lines: readonly EndLine[]): EndLine | undefined {
  let latest: EndLine | undefined;
  for (const line of lines) if (line.head && (!latest?.head || line.head.atMs > latest.head.atMs)) latest = line;
  return latest;
}

/** Ends that a line reads at once: a record may be of 256 KiB, a tombstone is short. */
const ENDS_SLICE: Readonly<Record<EndIndex, number>> = { history: 50, tombstones: 500, dead: 50 };

interface LineParts extends Indexed {
  readonly ref: PartitionRef;
  readonly policy: RetryPolicy;
}

/** The ends in one index of one partition, the latest first. */
class EndLine {
  readonly #reader: Reader;
  readonly #parts: LineParts;
  readonly #step: Step;
  #slice: readonly JobEnd[] = [];
  #at = 0;

  constructor(reader: Reader, parts: LineParts) {
    this.#reader = reader;
    this.#parts = parts;
    this.#step = createStep(ENDS_SLICE[parts.index]);
  }

  /** The next end; undefined behind the last. */
  get head(): JobEnd | undefined {
    return this.#slice[this.#at];
  }

  get ref(): PartitionRef {
    return this.#parts.ref;
  }

  isMeant(ended: Ended): boolean {
    return this.#parts.isMeant(ended);
  }

  next(): Promise<Moved | undefined> | undefined {
    this.#at += 1;
    return this.head ? undefined : this.begin(this.#slice.at(-1));
  }

  async begin(after: EndPlace | undefined): Promise<Moved | undefined> {
    const { ref, index, policy } = this.#parts;
    const ask = { index, after, limit: this.#step.next() };
    const slice = await withReadRetry('list', () => this.#reader.ends(ref, ask), policy);
    if (isMoved(slice)) return slice;
    this.#step.saw(slice.map(({ size }) => size));
    this.#slice = slice;
    this.#at = 0;
    return undefined;
  }
}
