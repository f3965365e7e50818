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
 * A list of times has one part more, which older versions pass over: what came since the state before, by bounds that are so
 * near to each other that a time between them is known to within 5 %, and the longest of these times.
 *
 *     <longest>~<bound>.<count>+<bound>.<count>…
 *
 * Where it is missing, or has fewer times, because an older version has counted or a leader has just begun, the bounds that
 * all versions know have the rest.
 */

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

/** Where the bounds between the bounds end: a day. Times above are not told apart, but for the longest. */
const FINEST_ENDS_MS = [...BOUNDS_MS, 3_600_000, 86_400_000];
/** The middle of two bounds is less than 5 % away from both. */
const FINEST_RATIO = 1.1;

/** The bounds that all versions know, and so many between them that each is at most a tenth above the one before. */
export const FINE_BOUNDS_MS: readonly number[] = FINEST_ENDS_MS.flatMap((to, at) => {
  const from = FINEST_ENDS_MS[at - 1];
  if (from === undefined) return [to];
  const steps = Math.ceil(Math.log(to / from) / Math.log(FINEST_RATIO));
  return Array.from({ length: steps }, (_, step) =>
    step + 1 === steps ? to : from * (to / from) ** ((step + 1) / steps),
  );
});

/** Times by the fine bounds: the number of a bound, and how many there were. */
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
  const [at, fine] = [bucketOf(ms), indexIn(FINE_BOUNDS_MS, ms)];
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

export const bucketOf = (ms: number): number => indexIn(BOUNDS_MS, ms);

/** The first bound that is not less, by halving; behind the last: their number. */
function indexIn(bounds: readonly number[], ms: number): number {
  let [low, high] = [0, bounds.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ms > (bounds[middle] ?? 0)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** What is counted, as it was at one moment. */
export interface MinuteState extends Readonly<Record<Spread, Buckets>> {
  readonly counters: Buckets;
  /** What came since the state before it. */
  readonly fine?: Readonly<Record<Spread, Fine>>;
}

/** A state and when it was. */
export interface MinuteMark {
  readonly minute: number;
  readonly since: number;
}

export const stateText = ({ counters, fine, ...spreads }: MinuteState): string =>
  [listText(counters), ...SPREADS.map((name) => timesText(spreads[name], fine?.[name]))].join(' ');

/** The fine part stands behind all that older versions read. */
function timesText(buckets: Buckets, fine: Fine = NO_FINE): string {
  const text = listText(buckets);
  if (fine.counts.size === 0) return text;
  const missing = BOUNDS_MS.length + 1 - text.split(',').length;
  return `${text}${','.repeat(missing + 1)}${fineText(fine)}`;
}

function fineText({ counts, maxMs }: Fine): string {
  const parts = [...counts].sort(([one], [other]) => one - other);
  return `${Math.ceil(maxMs).toString(36)}~${parts.map(([at, times]) => `${at.toString(36)}.${times.toString(36)}`).join('+')}`;
}

function fineOf(list: string): Fine {
  const [, max = '', parts = ''] =
    /^([0-9a-z]+)~([0-9a-z.+]+)$/.exec(list.split(',')[BOUNDS_MS.length + 1] ?? '') ?? [];
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
  return {
    ...mark,
    counters: listOf(counters, MINUTE_COUNTERS.length),
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

/** The longest of some times, where what workers wrote may be of another minute: it lies between the last two bounds. */
export function longestIn(counts: ReadonlyMap<number, number>, maxMs: number): number {
  if (counts.size === 0) return 0;
  const last = Math.max(...counts.keys());
  const [from = 0, to = Number.POSITIVE_INFINITY] = [FINE_BOUNDS_MS[last - 1], FINE_BOUNDS_MS[last]];
  if (maxMs >= from) return Math.min(maxMs, to);
  return Number.isFinite(to) ? to : from;
}

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

/** Times between two bounds. */
interface Piece {
  readonly fromMs: number;
  /** Undefined: above all bounds. */
  readonly toMs: number | undefined;
  readonly times: number;
  readonly isFine: boolean;
}

/**
 * The time within which a share of the times are, to within 5 %: the middle of the two bounds around it. Where only the bounds
 * that all versions know have counted, as if the times lay evenly between two of them; and above the last of them nobody knows:
 * then it is that bound, which no other share has. Undefined where there is none.
 */
export function quantileOf({ buckets, fine }: Times, share: number): number | undefined {
  const pieces = buckets.flatMap((times, at) => piecesIn(at, times, fine));
  const most = pieces.reduce((sum, { times }) => sum + times, 0);
  let before = 0;
  for (const piece of pieces) {
    const nth = share * most - before;
    if (piece.times > 0 && nth <= piece.times * (1 + Number.EPSILON)) return timeIn(piece, nth, fine.maxMs);
    before += piece.times;
  }
  const last = pieces.findLast(({ times }) => times > 0);
  return last && timeIn(last, last.times, fine.maxMs);
}

/** The times of a bucket by the fine bounds in it, of which each stands for as many of those that were not counted finely. */
function piecesIn(at: number, times: number, fine: Fine): readonly Piece[] {
  if (times === 0) return [];
  const [from = 0, to] = [BOUNDS_MS[at - 1], BOUNDS_MS[at]];
  const first = at === 0 ? 0 : FINE_BOUNDS_MS.indexOf(from) + 1;
  const last = to === undefined ? FINE_BOUNDS_MS.length : FINE_BOUNDS_MS.indexOf(to);
  const inside = [...fine.counts].filter(([index]) => index >= first && index <= last).sort(([a], [b]) => a - b);
  const known = inside.reduce((sum, [, count]) => sum + count, 0);
  if (known === 0) return [{ fromMs: from, toMs: to, times, isFine: false }];
  return inside.map(([index, count]) => ({
    fromMs: FINE_BOUNDS_MS[index - 1] ?? 0,
    toMs: FINE_BOUNDS_MS[index],
    times: (count * times) / known,
    isFine: true,
  }));
}

function timeIn({ fromMs, toMs, times, isFine }: Piece, nth: number, maxMs: number): number {
  if (!isFine && toMs === undefined) return LONGEST_MS;
  if (!isFine) return Math.min(LONGEST_MS - 1, rounded(fromMs + (((toMs ?? 0) - fromMs) * nth) / times));
  const ms = toMs === undefined ? maxMs : rounded(fromMs === 0 ? toMs / 2 : Math.sqrt(fromMs * toMs));
  // The longest is known, and a piece begins where the one before it ends.
  const exact = maxMs > fromMs ? Math.min(ms, maxMs) : ms;
  return exact === LONGEST_MS ? LONGEST_MS - 1 : exact;
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
