/**
 * Jobs of all queues in one order: those that are not over by their due time, and behind them those that are over, the latest end
 * first.
 *
 *   each partition has its jobs in an order ──▶ one line for each place ──▶ the next of all lines ──▶ looked at ──▶ rows
 *
 * The order is that of due time, queue, partition and member, so a cursor is one place in it, whatever comes and goes meanwhile,
 * and however many queues there are. A job that stays where it is, is met once. What is scheduled or in line has this order in
 * Redis; what is ready or runs is read as a whole, and so are the jobs of a tag that few have. A page ends when it has enough
 * rows, or has looked at so many places or bytes.
 *
 * A queue that does not answer is named, and the others go on.
 */
import { isLiveState, type JobState } from '../../job/state.ts';
import type { Clock } from '../../kernel/clock.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { reasonOf } from '../../kernel/reason.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { queuesIn, type UnreadQueue } from '../../redis/read/each-queue.ts';
import type { EndPlace, JobEnd } from '../../redis/read/ends.ts';
import { partitionsOf } from '../../redis/scripts/queues.ts';
import { type Layout, movedAway } from '../calls/layouts.ts';
import { isMoved } from '../calls/partition-calls.ts';
import { withReadRetry } from '../calls/retry.ts';
import { otherCursor, packCursor, unpackCursor } from './cursor.ts';
import { type Behind, type DueLine, type DuePlace, dueLinesOf, ENTRIES_MAX, earliestOf } from './due-lines.ts';
import { EndLine, indexesOf, mergeEnds } from './ends.ts';
import { filterKey, isFailedAs, isOverState, isWithin, type SearchFilter } from './filter.ts';
import { type JobPage, viewIn } from './list.ts';
import type { Reader } from './reader.ts';
import { findReport, type JobView, viewOfEnd } from './report.ts';
import { BYTES_MAX, isMeant, isPrefixed, PAST_SCANNED_MAX, SCANNED_MAX } from './walk.ts';

/** A page of jobs of several queues. */
export interface FoundJobs<Data = unknown> extends JobPage<Data> {
  /** Queues that could not be looked through, and why. What the page has of them is not all. */
  readonly unread: readonly UnreadQueue[];
}

export interface SearchAsk {
  readonly filter: SearchFilter;
  /** The names of the queues; undefined: all. */
  readonly wanted: readonly string[] | undefined;
  readonly limit: number;
  readonly cursor: string | undefined;
}

export interface SearchParts {
  readonly reader: Reader;
  readonly redis: Redis;
  readonly namespace: string;
  readonly clock: Clock;
  readonly budgetMs: number;
}

/** How long one queue may keep the others waiting: its node may be down. */
const QUEUE_BUDGET_MS = 1000;
/** How many lines are read at the same time. */
const AT_ONCE = 64;
/** Places that are looked at together. */
const LOOK_MAX = 100;

/** A place in the order of all: of a job by its due time, or of an end. */
interface Spot {
  readonly phase: 'due' | 'over';
  /** Undefined: where the phase begins. */
  readonly at: SpotPlace | undefined;
}

interface SpotPlace {
  /** The due time, or when the job was over. */
  readonly ms: number;
  readonly queue: string;
  readonly partition: number;
  /** Which of the places of its partition where ends are read. */
  readonly index: number;
  /** Tells it from others of that ms. */
  readonly field: string;
}

/** A page in the making. */
interface Searching {
  readonly reader: Reader;
  readonly policy: RetryPolicy;
  readonly ask: SearchAsk;
  readonly jobs: JobView[];
  readonly failed: Map<string, unknown>;
  scanned: number;
  bytes: number;
  /** Behind it the next page begins; undefined: there is none. */
  spot: Spot | undefined;
}

/** @throws DuestreamError `bad-input` for the cursor of another call; the error of the first queue where none answers */
export async function findJobs(parts: SearchParts, ask: SearchAsk): Promise<FoundJobs> {
  const { redis, namespace, clock, budgetMs } = parts;
  const { wanted, filter, cursor } = ask;
  const key = filterKey(filter, wanted ?? 'all');
  const begin = cursor === undefined ? undefined : parseSpot(cursor, key);
  const isWanted = (queue: string) => wanted === undefined || wanted.includes(queue);
  const listed = await withReadRetry('find', () => queuesIn(redis, namespace, isWanted), { clock, budgetMs });
  const layouts = listed.all.map((layout) => partitionsOf(namespace, layout));
  const policy = { clock, budgetMs: Math.min(budgetMs, QUEUE_BUDGET_MS) };
  const searching = searchingOf(parts.reader, { policy, ask, begin });
  if (filter.id === undefined) await walkAll(searching, layouts);
  else await lookFor(searching, { redis, layouts, id: filter.id });
  const { jobs, scanned, spot, failed } = searching;
  const [first] = failed.values();
  if (first && failed.size === layouts.length && jobs.length === 0 && !isOfFilter(first)) throw first;
  const unread = [...failed].map(([queue, error]) => ({ queue, why: reasonOf(error) }));
  return { jobs, scanned, cursor: spot && packSpot(spot, key), unread: [...listed.unread, ...unread] };
}

/** A queue without a history answers too: what a filter asks for is not kept there. */
const isOfFilter = (error: unknown): boolean => error instanceof DuestreamError && error.code === 'bad-input';

/** The same of one queue, whose layout is known. @throws DuestreamError where it does not answer */
export async function findIn(
  reader: Reader,
  { layout, policy, ask }: { readonly layout: Layout; readonly policy: RetryPolicy; readonly ask: SearchAsk },
): Promise<JobPage> {
  const key = filterKey(ask.filter, 'due');
  const begin = ask.cursor === undefined ? undefined : parseSpot(ask.cursor, key);
  const searching = searchingOf(reader, { policy, ask, begin });
  await walkAll(searching, [layout]);
  const { jobs, scanned, spot, failed } = searching;
  const [error] = failed.values();
  if (failed.size > 0) throw error;
  return { jobs, scanned, cursor: spot && packSpot(spot, key) };
}

const searchingOf = (
  reader: Reader,
  { policy, ask, begin }: { readonly policy: RetryPolicy; readonly ask: SearchAsk; readonly begin: Spot | undefined },
): Searching => {
  const spot = begin ?? { phase: 'due', at: undefined };
  return { reader, policy, ask, jobs: [], failed: new Map(), scanned: 0, bytes: 0, spot };
};

async function walkAll(searching: Searching, layouts: readonly Layout[]): Promise<void> {
  const { states } = searching.ask.filter;
  if (searching.spot?.phase === 'due') {
    const isAll = !states.some(isLiveState) || (await walkDues(searching, layouts.flat()));
    if (isAll) searching.spot = { phase: 'over', at: undefined };
  }
  if (searching.spot?.phase !== 'over') return;
  if (!states.some(isOverState) || (!isFull(searching) && (await walkEnds(searching, layouts)))) {
    searching.spot = undefined;
  }
}

const isFull = ({ jobs, scanned, bytes, ask }: Searching, scannedMax = SCANNED_MAX): boolean =>
  jobs.length >= ask.limit || scanned >= scannedMax || bytes >= BYTES_MAX;

/** Does it for each, some at the same time. Who fails is noted by its queue, and has no answer. */
async function forEach<Of, Answer>(
  { failed }: Searching,
  { all, queueOf }: { readonly all: readonly Of[]; readonly queueOf: (one: Of) => string },
  act: (one: Of) => Promise<Answer>,
): Promise<readonly Answer[]> {
  const answers: Answer[] = [];
  for (let from = 0; from < all.length; from += AT_ONCE) {
    const some = all.slice(from, from + AT_ONCE);
    const ended = await Promise.allSettled(some.map(act));
    for (const [at, one] of some.entries()) {
      const end = ended[at];
      if (end?.status === 'fulfilled') answers.push(end.value);
      else if (!failed.has(queueOf(one))) failed.set(queueOf(one), end?.reason);
    }
  }
  return answers;
}

const queueOfRef = ({ queue }: PartitionRef): string => queue;
const queueOfLine = ({ ref }: { readonly ref: PartitionRef }): string => ref.queue;

// Jobs that are not over, by their due time.

/** @returns whether all were met */
async function walkDues(searching: Searching, refs: readonly PartitionRef[]): Promise<boolean> {
  const { reader, policy, ask } = searching;
  const at = searching.spot?.at;
  const reading = { reader, policy, filter: ask.filter, left: { entries: ENTRIES_MAX } };
  const made = await forEach(searching, { all: refs, queueOf: queueOfRef }, (ref) => dueLinesOf(reading, ref));
  const all = made.flat();
  const slice = Math.min(LOOK_MAX, Math.max(10, Math.ceil((2 * ask.limit) / Math.max(1, all.length))));
  const begun = await forEach(searching, { all, queueOf: queueOfLine }, async (line) => {
    await line.begin(at && behindOf(at, line.ref), slice);
    return line;
  });
  for (const { ref, isCut } of begun) if (isCut) noteCut(searching, ref);
  while (!isFull(searching)) {
    const batch = await nextPlaces(searching, begun);
    if (batch.length === 0) return true;
    await takePlaces(searching, batch);
  }
  return false;
}

function noteCut({ failed }: Searching, { queue }: PartitionRef): void {
  if (failed.has(queue)) return;
  const text = `more jobs of ${queue} are ready or run than a list by due time reads; allowed: state scheduled and waiting, or the list of the queue without sort`;
  failed.set(queue, new DuestreamError('failed', text));
}

/** Where a partition begins behind a place in the order of all. */
function behindOf({ ms, queue, partition, field }: SpotPlace, ref: PartitionRef): Behind {
  const order = orderOf(ref, { queue, partition });
  return { dueMs: ms, member: order === 0 ? field : undefined, isIncluded: order > 0 };
}

type Partition = Pick<PartitionRef, 'queue' | 'partition'>;

function orderOf(one: Partition, other: Partition): number {
  if (one.queue !== other.queue) return one.queue < other.queue ? -1 : 1;
  return one.partition - other.partition;
}

interface Placed {
  readonly line: DueLine;
  readonly place: DuePlace;
}

/** The next places of all lines, as many as are looked at together. */
async function nextPlaces(searching: Searching, lines: readonly DueLine[]): Promise<readonly Placed[]> {
  const { jobs, ask, failed } = searching;
  const { filter } = ask;
  const asked = [filter.tag, filter.set, filter.name, filter.idPrefix, filter.failed, filter.ran];
  const looksThrough = asked.some((one) => one !== undefined);
  const most = Math.min(LOOK_MAX, looksThrough ? LOOK_MAX : ask.limit - jobs.length);
  const batch: Placed[] = [];
  for (let line = earliestOf(lines, orderOf); line && batch.length < most; line = earliestOf(lines, orderOf)) {
    const { head } = line;
    if (!head) break;
    batch.push({ line, place: head });
    try {
      await line.next();
    } catch (error) {
      failed.set(line.ref.queue, error);
      line.end();
    }
  }
  return batch;
}

/** Looks at the jobs of some places, and takes those that are meant, in their order, until there are enough. */
async function takePlaces(searching: Searching, batch: readonly Placed[]): Promise<void> {
  const { reader, policy, ask, jobs } = searching;
  const meant = batch.filter(({ place }) => isPrefixed(place, ask.filter));
  const refs = [...new Set(meant.map(({ line }) => line.ref))];
  const looked = await forEach(searching, { all: refs, queueOf: queueOfRef }, async (ref) => {
    const here = meant.filter(({ line }) => line.ref === ref).map(({ place }) => place);
    const { jobs: found, sizes } = await withReadRetry('find', () => reader.look(ref, here), policy);
    searching.bytes += sizes.reduce((sum, size) => sum + size, 0);
    return { ref, found: here.map((place, at) => [place, found[at]] as const) };
  });
  const seen = new Map(looked.flatMap(({ found }) => found));
  const answered = new Set(looked.map(({ ref }) => ref));
  for (const { line } of meant) if (!answered.has(line.ref)) line.end();
  const met = new Set<string>();
  for (const { line, place } of batch) {
    searching.scanned += 1;
    const { queue, partition } = line.ref;
    searching.spot = { phase: 'due', at: { ms: place.dueMs, queue, partition, index: 0, field: place.member } };
    const job = seen.get(place);
    const own = `${queue} ${partition} ${place.member}`;
    if (!job || met.has(own) || !isMeant(job, ask.filter, { source: line.source })) continue;
    met.add(own);
    const view = viewIn(job);
    if (hasRun(view, ask.filter)) jobs.push(view);
    if (jobs.length >= ask.limit) return;
  }
}

/** Whether the job ran at some time of the range that is asked for: its last run, which is the one that is known. */
function hasRun({ startedMs, dueMs, overMs, state }: JobView, { ran }: SearchFilter): boolean {
  if (ran === undefined) return true;
  const { fromMs = Number.NEGATIVE_INFINITY, toMs = Number.POSITIVE_INFINITY } = ran;
  if (startedMs === undefined || startedMs > toMs) return false;
  // A worker holds it until it is due.
  if (state === 'running' && dueMs !== undefined && dueMs > toMs) return false;
  // When a run ended that is to be made again, nobody knows here: it counts when it began.
  const untilMs = overMs ?? (state === 'running' ? Number.POSITIVE_INFINITY : startedMs);
  return untilMs >= fromMs;
}

// Jobs that are over, the latest end first.

interface Indexed {
  readonly line: EndLine;
  readonly index: number;
}

/** @returns whether all were met */
async function walkEnds(searching: Searching, layouts: readonly Layout[]): Promise<boolean> {
  const { reader, policy, ask, spot, failed, jobs } = searching;
  const { fromMs, toMs } = ask.filter.ended;
  const queueOf = ([ref]: Layout) => ref?.queue ?? '';
  const made = await forEach(searching, { all: layouts, queueOf }, async (layout): Promise<readonly Indexed[]> => {
    const [first] = layout;
    if (!first) return [];
    const indexes = await indexesOf(reader, { ref: first, filter: ask.filter, policy });
    return layout.flatMap((ref) =>
      indexes.map((indexed, index) => ({ index, line: new EndLine(reader, { ref, policy, ...indexed }) })),
    );
  });
  const all = made.flat().sort((one, other) => orderOf(one.line.ref, other.line.ref) || one.index - other.index);
  const indexOf = new Map(all.map(({ line, index }) => [line, index]));
  const begun = await forEach(searching, { all, queueOf: ({ line }) => line.ref.queue }, async ({ line, index }) => {
    const reply = await line.begin(startOf(spot?.at, { ref: line.ref, index, toMs }));
    if (reply) throw movedAway(line.ref.queue);
    return line;
  });
  const take = (line: EndLine, end: JobEnd) => {
    searching.scanned += 1;
    searching.bytes += end.size;
    const view = end.ended && line.isMeant(end.ended) ? viewOfEnd(line.ref, end.ended) : undefined;
    if (view && hasRun(view, ask.filter)) jobs.push(view);
    return !isFull(searching, PAST_SCANNED_MAX);
  };
  const note = (line: EndLine, error: unknown) => failed.set(line.ref.queue, error);
  const last = await mergeEnds(begun, { fromMs, take, failed: note });
  if (last === undefined || isMoved(last)) return true;
  const { queue, partition } = last.line.ref;
  const index = indexOf.get(last.line) ?? 0;
  searching.spot = { phase: 'over', at: { ms: last.end.atMs, queue, partition, index, field: last.end.field } };
  return false;
}

/** Where a line begins; `at` is where the page before has ended. */
function startOf(
  at: SpotPlace | undefined,
  { ref, index, toMs }: { readonly ref: PartitionRef; readonly index: number; readonly toMs: number | undefined },
): EndPlace | undefined {
  if (at === undefined) return toMs === undefined ? undefined : { atMs: toMs, field: undefined };
  const order = orderOf(ref, at) || index - at.index;
  if (order === 0) return { atMs: at.ms, field: at.field };
  return { atMs: order < 0 ? at.ms - 1 : at.ms, field: undefined };
}

// One id, in each queue.

async function lookFor(
  searching: Searching,
  { redis, layouts, id }: { readonly redis: Redis; readonly layouts: readonly Layout[]; readonly id: string },
): Promise<void> {
  const { policy, ask, jobs } = searching;
  const queueOf = ([ref]: Layout) => ref?.queue ?? '';
  const found = await forEach(searching, { all: layouts, queueOf }, async (layout) => {
    const report = async (bare: boolean) => {
      const reply = await findReport({ redis, policy }, layout, { id, bare });
      if (isMoved(reply)) throw movedAway(queueOf(layout));
      return reply;
    };
    return (await report(false)) ?? (await report(true));
  });
  searching.scanned = layouts.length;
  searching.spot = undefined;
  const all = found.filter((one) => one !== undefined).filter((one) => isAsked(one, ask.filter));
  const placeOf = ({ dueMs, overMs }: JobView) =>
    overMs === undefined ? (dueMs ?? 0) : Number.MAX_SAFE_INTEGER - overMs;
  jobs.push(...all.toSorted((one, other) => placeOf(one) - placeOf(other)).slice(0, ask.limit));
}

function isAsked(job: JobView, filter: SearchFilter): boolean {
  const { states, tag, name, idPrefix = '', failed, due, ended } = filter;
  const { state, dueMs, overMs } = job;
  const isHere = (states as readonly JobState[]).includes(state) && job.id.startsWith(idPrefix);
  const isThen = overMs === undefined ? dueMs === undefined || isWithin(due, dueMs) : isEnded(ended, overMs);
  const isLike = (tag === undefined || job.tags?.includes(tag)) && (name === undefined || job.name === name);
  return isHere && isThen && isLike === true && isFailedAs(job, failed) && hasRun(job, filter);
}

const isEnded = ({ fromMs, toMs }: SearchFilter['ended'], overMs: number): boolean =>
  overMs >= (fromMs ?? Number.NEGATIVE_INFINITY) && overMs <= (toMs ?? Number.POSITIVE_INFINITY);

// Where the next page begins, as a text for callers.

type SpotParts = readonly [
  ...[version: 4, key: string, phase: Spot['phase'], ms: number | null],
  ...[queue: string, partition: number, index: number, field: string],
];

function packSpot({ phase, at }: Spot, key: string): string {
  const { ms = null, queue = '', partition = 0, index = 0, field = '' } = at ?? {};
  return packCursor([4, key, phase, ms, queue, partition, index, field] satisfies SpotParts);
}

function parseSpot(input: unknown, key: string): Spot {
  const [, of, phase, ms, queue, partition, index, field] = unpackCursor(input, isSpot);
  if (of !== key) throw otherCursor('filter or order', 'filter, queues and order');
  return { phase, at: ms === null ? undefined : { ms, queue, partition, index, field } };
}

function isSpot(parts: readonly unknown[]): parts is SpotParts {
  const [version, key, phase, ms, queue, partition, index, field] = parts;
  const areTexts = [key, queue, field].every((one) => typeof one === 'string');
  const areCounts = [partition, index].every((one) => Number.isSafeInteger(one) && Number(one) >= 0);
  const isTime = ms === null || (typeof ms === 'number' && Number.isFinite(ms));
  return (
    version === 4 && parts.length === 8 && (phase === 'due' || phase === 'over') && areTexts && areCounts && isTime
  );
}
