/**
 * The diary of a queue: what rarely happened to it within some time, of all its partitions together. A call that concerns a
 * queue makes its change partition by partition, so what is told of several at nearly the same moment is one line here.
 */
import { type Namespaced, refsOfQueue } from '../client/queues/refs.ts';
import { type DiaryEntry, type DiaryInterval, intervalsOf } from '../job/diary.ts';
import { span } from '../kernel/humanize.ts';
import { diaryEntries, pauseNow } from '../redis/diary.ts';

/** Of how many partitions it is told. */
interface OfPartitions {
  readonly partitions: number;
}

/** A change, as the first partition tells it. */
export type QueueDiaryEntry = DiaryEntry & OfPartitions;

/** From the first of its partitions to the last. */
export type QueueDiaryInterval = DiaryInterval & OfPartitions;

export interface QueueDiary {
  /** The oldest first. */
  readonly entries: readonly QueueDiaryEntry[];
  /** What held at any moment of the time, by their beginnings; what began or ended outside of it is told whole. */
  readonly intervals: readonly QueueDiaryInterval[];
  /** How many partitions the queue has. */
  readonly partitions: number;
}

/** Partitions that differ by less tell the same. */
const NEAR_MS = 5000;

/** @throws DuestreamError `not-found` */
export async function queueDiary(place: Namespaced, queue: string, { fromMs, toMs }: Range): Promise<QueueDiary> {
  const refs = await refsOfQueue(place, queue);
  const told = await Promise.all(
    refs.map(async (ref) => {
      const entries = await diaryEntries(place.redis, ref);
      return { entries, intervals: await pauseNow(place.redis, ref, intervalsOf(entries)) };
    }),
  );
  const intervals = told
    .flatMap((one) => one.intervals)
    .filter((one) => (one.toMs ?? toMs) >= fromMs && (one.fromMs ?? fromMs) <= toMs)
    .sort((one, other) => (one.fromMs ?? 0) - (other.fromMs ?? 0));
  const entries = told.flatMap((one) => one.entries);
  return { entries: toldIn(entries, { fromMs, toMs }), intervals: spans(intervals), partitions: refs.length };
}

interface Range {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The changes alone: of older ones nothing is read. The oldest first. @throws DuestreamError `not-found` */
export async function queueChanges(place: Namespaced, queue: string, range: Range): Promise<QueueDiary['entries']> {
  const refs = await refsOfQueue(place, queue);
  const told = await Promise.all(refs.map((ref) => diaryEntries(place.redis, ref, range.fromMs)));
  return toldIn(told.flat(), range);
}

function toldIn(entries: readonly DiaryEntry[], { fromMs, toMs }: Range): QueueDiary['entries'] {
  const within = entries.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs);
  return together(
    within.toSorted((one, other) => one.atMs - other.atMs),
    isSameEntry,
  );
}

function together<T>(all: readonly T[], isSame: (one: T, other: T) => boolean): readonly (T & OfPartitions)[] {
  const found: (T & OfPartitions)[] = [];
  for (const one of all) {
    const at = found.findLastIndex((other) => isSame(other, one));
    const known = found[at];
    if (known) found[at] = { ...known, partitions: known.partitions + 1 };
    else found.push({ ...one, partitions: 1 });
  }
  return found;
}

const isSameEntry = (one: DiaryEntry, other: DiaryEntry): boolean =>
  isAlike(one, other) && other.atMs - one.atMs < NEAR_MS && one.what !== 'set';

const isAlike = <T extends Pick<DiaryInterval, 'by' | 'why' | 'group'> & { readonly what: string }>(one: T, other: T) =>
  one.what === other.what && one.by === other.by && one.why === other.why && one.group === other.group;

function spans(all: readonly DiaryInterval[]): readonly QueueDiaryInterval[] {
  const isNear = (one: number | undefined, other: number | undefined) =>
    one === other || (one !== undefined && other !== undefined && Math.abs(one - other) < NEAR_MS);
  const found: QueueDiaryInterval[] = [];
  for (const one of all) {
    const at = found.findLastIndex(
      (other) => isAlike(other, one) && isNear(other.fromMs, one.fromMs) && isNear(other.toMs, one.toMs),
    );
    const known = found[at];
    if (!known) found.push({ ...one, partitions: 1 });
    else {
      const toMs = known.toMs === undefined || one.toMs === undefined ? undefined : Math.max(known.toMs, one.toMs);
      found[at] = { ...known, toMs, partitions: known.partitions + 1 };
    }
  }
  return found;
}

/** For how long something held a queue as a whole, within the time that was asked about. */
export interface HeldTime {
  readonly what: DiaryInterval['what'];
  readonly ms: number;
  readonly by: string | undefined;
  readonly why: string | undefined;
}

/** Shorter times held nothing. */
const HELD_MIN_MS = 1000;

/** What held a queue longest within a time; undefined: nothing is told. */
export function heldLongest(
  intervals: readonly QueueDiaryInterval[],
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): HeldTime | undefined {
  const lengthOf = (one: QueueDiaryInterval) =>
    Math.min(one.toMs ?? toMs, toMs) - Math.max(one.fromMs ?? one.toMs ?? toMs, fromMs);
  const longest = intervals
    .filter(({ group }) => group === undefined)
    .reduce<QueueDiaryInterval | undefined>(
      (most, one) => (most && lengthOf(most) >= lengthOf(one) ? most : one),
      undefined,
    );
  if (longest === undefined || lengthOf(longest) < HELD_MIN_MS) return undefined;
  const { what, by, why } = longest;
  return { what, ms: lengthOf(longest), by: what === 'leaderless' ? undefined : by, why };
}

const HELD: Readonly<Record<DiaryInterval['what'], string>> = {
  paused: 'it was paused',
  closed: 'it was closed',
  leaderless: 'nobody led it',
  unserved: 'no worker served it',
};

/** @example heldText(held) // it was paused for 2 h by ada (it moves) */
export const heldText = ({ what, ms, by, why }: HeldTime): string =>
  `${HELD[what]} for ${span(ms)}${by === undefined ? '' : ` by ${by}`}${why ? ` (${why})` : ''}`;
