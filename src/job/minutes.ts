/**
 * Counts and lateness by the minute, for charts. What is kept are no counts of a minute but **states**: the durable counters
 * of a partition, and how many times lateness and run time were within each bound, all of them as they were when a minute
 * began. What happened in a minute is the difference of two states. So a state that is written twice, or by two leaders,
 * counts nothing twice, and one that is missing loses nothing: its minute is told together with the next.
 *
 *     <minute> <since> <counters> <promotion> <start> <run>
 *
 * `minute` is the number of minutes since 1970, by the clock of Redis. From `since` on the leader has looked at the beginning
 * of each minute. Lists are numbers in base 36 with commas; 0 is written as nothing, and so is the end of a list.
 *
 * A list of times has one part more, which 0.2.0 passes over: what came since the state before, by the buckets of
 * `octaves.ts`, and the longest of these times.
 *
 *     <longest>!<octave>.<count>+<octave>.<count>…
 *
 * Where it is missing, or has fewer times, because 0.2.0 has counted or a leader has just begun, the bounds that all versions
 * know have the rest.
 *
 * Behind the counters stand those of a promise (`promise.ts`), and in hours and days, behind both, what held starts that were later than
 * promised: letters of causes and how many starts, `P12Z3`.
 */

import { type Cause, readSums, sumsText } from './account.ts';
import { OCTAVES, octaveFromMs, octaveOf, octaveWidthMs } from './octaves.ts';
import { PROMISED_NUMBERS, type Promised, promisedNumbers, readPromised } from './promise.ts';

export const MINUTE_MS = 60_000;
/** States of so many minutes are kept: a day. */
export const MINUTES_MAX = 1440;

/** The counters that are kept, as `K:meta` names them behind `n.`. */
export const MINUTE_COUNTERS = [
  ...(['scheduled', 'promoted', 'done', 'retried', 'deferred', 'dead', 'cancelled', 'expired'] as const),
];
export type MinuteCounter = (typeof MINUTE_COUNTERS)[number];

/** What is spread over bounds: from due time to promotion, from due time to start, and how long handlers ran. */
export const SPREADS = ['promotion', 'start', 'run'] as const;
export type Spread = (typeof SPREADS)[number];

/** Times above it are not told apart where an older version has counted them. */
export const LONGEST_MS = 300_000;

/** A time is within the first bound that is not less; the last bucket has what is above all. */
export const BOUNDS_MS: readonly number[] = [1, 2, 5, 10, 20, 50, 100, 250, 1000, 5000, 30_000, LONGEST_MS];

/** How many times were within each bound and above the one before. */
export type Buckets = readonly number[];

/** Times by octaves: the number of a bucket, and how many there were. */
export interface Fine {
  readonly counts: ReadonlyMap<number, number>;
  readonly maxMs: number;
}

export const NO_FINE: Fine = { counts: new Map(), maxMs: 0 };

/** Times that happened: by the bounds that all versions know, and finer. */
export interface Times {
  readonly buckets: Buckets;
  readonly fine: Fine;
}

/** Times that are being counted. */
export interface Tally {
  readonly buckets: number[];
  readonly fine: Map<number, number>;
  maxMs: number;
}

export const noTally = (): Tally => ({ buckets: noBuckets(), fine: new Map(), maxMs: 0 });

export function addTime(tally: Tally, ms: number, times = 1): void {
  const [at, fine] = [bucketOf(ms), octaveOf(ms)];
  tally.buckets[at] = (tally.buckets[at] ?? 0) + times;
  tally.fine.set(fine, (tally.fine.get(fine) ?? 0) + times);
  tally.maxMs = Math.max(tally.maxMs, ms);
}

export function clear(tally: Tally): void {
  tally.buckets.fill(0);
  tally.fine.clear();
  tally.maxMs = 0;
}

export const noBuckets = (): number[] => Array.from({ length: BOUNDS_MS.length + 1 }, () => 0);

/** The first bound that is not less; behind the last: their number. */
export function bucketOf(ms: number): number {
  let at = 0;
  while (at < BOUNDS_MS.length && ms > (BOUNDS_MS[at] ?? 0)) at += 1;
  return at;
}

/** What is counted, as it was at one moment. */
export interface MinuteState extends Readonly<Record<Spread, Buckets>> {
  readonly counters: Buckets;
  /** What came since the state before it. */
  readonly fine?: Readonly<Record<Spread, Fine>>;
  /** Where lateness is promised, of the first partition: since the promise began. */
  readonly promised?: Promised | undefined;
  /** Of an hour or a day: starts that were later than promised, by the cause that held each longest. */
  readonly lateBy?: ReadonlyMap<Cause, number> | undefined;
}

/** A state and when it was. */
export interface MinuteMark {
  readonly minute: number;
  readonly since: number;
}

/** What a promise has stands behind the counters that 0.2.0 reads. */
export const stateText = ({ counters, fine, promised, lateBy, ...spreads }: MinuteState): string =>
  [
    behind(listText([...counters, ...(promised ? promisedNumbers(promised) : [])]), {
      size: COUNTED,
      text: sumsText(lateBy ?? new Map()),
    }),
    ...SPREADS.map((name) => timesText(spreads[name], fine?.[name])),
  ].join(' ');

/** Numbers behind which there may be a text. */
const COUNTED = MINUTE_COUNTERS.length + PROMISED_NUMBERS;

/** A text behind all that older versions read of a list. */
function behind(list: string, { size, text }: { readonly size: number; readonly text: string }): string {
  return text === '' ? list : `${list}${','.repeat(size - list.split(',').length + 1)}${text}`;
}

const timesText = (buckets: Buckets, fine: Fine = NO_FINE): string =>
  behind(listText(buckets), { size: BOUNDS_MS.length + 1, text: fine.counts.size === 0 ? '' : fineText(fine) });

function fineText({ counts, maxMs }: Fine): string {
  const parts = [...counts].sort(([one], [other]) => one - other);
  return `${Math.ceil(maxMs).toString(36)}!${parts.map(([at, times]) => `${at.toString(36)}.${times.toString(36)}`).join('+')}`;
}

function fineOf(list: string): Fine {
  const [, max = '', parts = ''] =
    /^([0-9a-z]+)!([0-9a-z.+]+)$/.exec(list.split(',')[BOUNDS_MS.length + 1] ?? '') ?? [];
  const pairs = parts.split('+').map((part) => part.split('.').map((word) => Number.parseInt(word, 36)));
  const known = pairs.flatMap(([at, times]) =>
    Number.isSafeInteger(at) && Number.isSafeInteger(times) ? [[at ?? 0, times ?? 0] as const] : [],
  );
  const maxMs = Number.parseInt(max, 36);
  return known.length === 0 ? NO_FINE : { counts: new Map(known), maxMs: Number.isSafeInteger(maxMs) ? maxMs : 0 };
}

export const markText = ({ minute, since }: MinuteMark): string => `${minute} ${since}`;

/** Undefined for what is none, whoever wrote it. */
export function readMark(text: string | null | undefined): MinuteMark | undefined {
  const [, minute, since] = /^(\d{1,10}) (\d{1,10})(?: |$)/.exec(text ?? '') ?? [];
  return minute === undefined ? undefined : { minute: Number(minute), since: Number(since) };
}

export function readState(text: string | null | undefined): (MinuteMark & MinuteState) | undefined {
  const mark = readMark(text);
  const lists = (text ?? '').split(' ').slice(2);
  if (!mark || lists.length !== 1 + SPREADS.length) return undefined;
  const [counters = '', promotion = '', start = '', run = ''] = lists;
  const size = BOUNDS_MS.length + 1;
  const numbers = listOf(counters, COUNTED);
  const promised = readPromised(numbers.slice(MINUTE_COUNTERS.length));
  const lateBy = readSums(counters.split(',')[COUNTED] ?? '');
  return {
    ...mark,
    ...(promised && { promised }),
    ...(lateBy.size > 0 && { lateBy }),
    counters: numbers.slice(0, MINUTE_COUNTERS.length),
    promotion: listOf(promotion, size),
    start: listOf(start, size),
    run: listOf(run, size),
    fine: { promotion: fineOf(promotion), start: fineOf(start), run: fineOf(run) },
  };
}

/** What happened between two states. A counter that fell has been lost, or the clock was set: then nothing is told. */
export const between = (before: Buckets, after: Buckets): Buckets =>
  after.map((value, at) => Math.max(0, value - (before[at] ?? 0)));

export const sumOf = (all: readonly Buckets[], length: number): Buckets =>
  Array.from({ length }, (_, at) => all.reduce((sum, one) => sum + (one[at] ?? 0), 0));

/** The longest of some times, where what workers wrote may be of another minute: it lies in the last bucket. */
export function longestIn(counts: ReadonlyMap<number, number>, maxMs: number): number {
  if (counts.size === 0) return 0;
  const last = Math.max(...counts.keys());
  if (last === OCTAVES - 1) return Math.max(maxMs, octaveFromMs(last));
  return maxMs < octaveFromMs(last) ? octaveToMs(last) : Math.min(maxMs, octaveToMs(last));
}

const octaveToMs = (octave: number): number => octaveFromMs(octave) + octaveWidthMs(octave) - 1;

/** What happened in several minutes, or in several partitions. */
export function timesSum(all: readonly Times[]): Times {
  const counts = new Map<number, number>();
  for (const { fine } of all) for (const [at, times] of fine.counts) counts.set(at, (counts.get(at) ?? 0) + times);
  const buckets = sumOf(
    all.map((one) => one.buckets),
    BOUNDS_MS.length + 1,
  );
  return { buckets, fine: { counts, maxMs: Math.max(0, ...all.map(({ fine }) => fine.maxMs)) } };
}

/** Times that lie between two. */
interface Piece {
  readonly fromMs: number;
  readonly toMs: number;
  readonly times: number;
  /** Its last time is the longest of all, which is known. */
  readonly isLast?: boolean;
}

/**
 * The time within which a share of the times are: of many to within 2 %, of a few to within an eighth (`octaves.ts`). Where only
 * the bounds that all versions know have counted, as if the times lay evenly between two of them; and above the last of them nobody
 * knows: then it is that bound, which no other share has. Undefined where there is none.
 */
export function quantileOf(times: Times, share: number): number | undefined {
  const pieces = piecesOf(times);
  const most = pieces.reduce((sum, piece) => sum + piece.times, 0);
  let before = 0;
  for (const piece of pieces) {
    const nth = Math.max(1, Math.ceil(share * most * (1 - Number.EPSILON))) - before;
    if (nth <= piece.times || piece === pieces.at(-1)) return timeIn(piece, Math.min(nth, piece.times));
    before += piece.times;
  }
  return undefined;
}

/** The octaves, and what was counted by the bounds that all versions know alone. */
function piecesOf({ buckets, fine }: Times): readonly Piece[] {
  const last = Math.max(...fine.counts.keys());
  const octaves = [...fine.counts].map(([octave, times]) => ({
    fromMs: octaveFromMs(octave),
    toMs: octave === last ? longestIn(fine.counts, fine.maxMs) : octaveToMs(octave),
    times,
    isLast: octave === last,
  }));
  return [...octaves, ...coarsePieces({ buckets, fine })]
    .filter(({ times }) => times > 0)
    .sort((one, other) => one.fromMs - other.fromMs || one.toMs - other.toMs);
}

/** Times of octaves by the bounds that all versions know: about so, because they do not end alike. */
export function bucketsIn(octaves: ReadonlyMap<number, number>): Buckets {
  const buckets = noBuckets();
  for (const [octave, times] of octaves) {
    const at = bucketOf((octaveFromMs(octave) + octaveToMs(octave)) / 2);
    buckets[at] = (buckets[at] ?? 0) + times;
  }
  return buckets;
}

/** As many as the octaves lack, by the bounds in which they lack most. */
function coarsePieces({ buckets, fine }: Times): readonly Piece[] {
  const inOctaves = bucketsIn(fine.counts);
  const sumOfAll = (all: Buckets) => all.reduce((sum, times) => sum + times, 0);
  const missing = sumOfAll(buckets) - sumOfAll(inOctaves);
  const lacking = buckets.map((times, at) => Math.max(0, times - (inOctaves[at] ?? 0)));
  if (missing <= 0) return [];
  const all = sumOfAll(lacking);
  return lacking.map((times, at) => ({
    fromMs: at === BOUNDS_MS.length ? LONGEST_MS : (BOUNDS_MS[at - 1] ?? 0),
    toMs: BOUNDS_MS[at] === LONGEST_MS ? LONGEST_MS - 1 : (BOUNDS_MS[at] ?? LONGEST_MS),
    times: (times * missing) / all,
  }));
}

/** As if the times of a piece lay evenly in it. */
function timeIn({ fromMs, toMs, times, isLast }: Piece, nth: number): number {
  const rank = isLast && nth >= times ? times : Math.max(0, nth - 0.5);
  const ms = rounded(fromMs + ((toMs - fromMs) * rank) / times);
  return ms === LONGEST_MS && fromMs < LONGEST_MS ? LONGEST_MS - 1 : ms;
}

const rounded = (ms: number): number => Number(ms.toPrecision(3));

const listText = (list: Buckets): string =>
  list
    .map((value) => (value === 0 ? '' : value.toString(36)))
    .join(',')
    .replace(/,+$/, '');

function listOf(text: string, length: number): Buckets {
  const parts = text.split(',');
  return Array.from({ length }, (_, at) => {
    const value = Number.parseInt(parts[at] ?? '', 36);
    return Number.isSafeInteger(value) ? value : 0;
  });
}
