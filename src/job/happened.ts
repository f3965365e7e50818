/**
 * What happened in some time, told from states: minutes from the states of partitions, hours from minutes, days from hours. All
 * of it can be told again, with the same result, for as long as the states are there.
 */
import { type Cause, sumsTogether } from './account.ts';
import {
  type Buckets,
  between,
  bucketsIn,
  MINUTE_COUNTERS,
  type MinuteMark,
  type MinuteState,
  NO_FINE,
  noBuckets,
  readState,
  SPREADS,
  type Spread,
  stateText,
  sumOf,
  type Times,
  timesSum,
} from './minutes.ts';
import { type Promised, promisedSum, type Terms } from './promise.ts';

export const HOUR_MINUTES = 60;
export const DAY_HOURS = 24;
export const HOUR_MS = 3_600_000;
export const DAY_MS = 86_400_000;

/** What happened in a minute, an hour or a day. */
export interface Happened {
  /** Minutes in which leaders looked, of each partition. */
  readonly isKnown: boolean;
  readonly counters: Buckets;
  readonly spreads: Readonly<Record<Spread, Times>>;
  /** Of the promise of that time; undefined: nothing was promised, or no job counts. */
  readonly promised?: Promised | undefined;
  /** Starts that were later than promised, by the cause that held each longest, as far as workers have told it. */
  readonly lateBy?: ReadonlyMap<Cause, number> | undefined;
}

/** The states of a partition that were read, and when its leader has looked last. */
export interface MinuteStates {
  readonly at: MinuteMark | undefined;
  readonly states: readonly (MinuteMark & MinuteState)[];
}

/** Of one partition: minute n is what happened between the states with which it and the next began. */
export function minutesOf(
  { at, states }: MinuteStates,
  { first, ends }: { readonly first: number; readonly ends: number },
): readonly Happened[] {
  const byMinute = new Map(states.map((state) => [state.minute, state]));
  const marks = at ? [...states, at] : states;
  const isLooked = (minute: number) => marks.some((one) => one.since <= minute && minute + 1 <= one.minute);
  let before = states.findLast(({ minute }) => minute <= first);
  let promise = before?.promised;
  const minutes: Happened[] = [];
  for (let minute = first; minute < ends; minute += 1) {
    before ??= byMinute.get(minute);
    promise ??= before?.promised;
    const after = byMinute.get(minute + 1);
    const promised = after?.promised && promisedBetween(promise, after.promised);
    minutes.push({ ...happened(before, after), isKnown: isLooked(minute), ...(promised && { promised }) });
    before = after ?? before;
    promise = after?.promised ?? promise;
  }
  return minutes;
}

/** A promise begins with a state in which nothing was counted yet. Where the state before is of another one, or of none, nothing is told. */
function promisedBetween(before: Promised | undefined, after: Promised): Promised {
  const from = before?.since === after.since ? before : after;
  const [kept = 0, late = 0] = between([from.kept, from.late], [after.kept, after.late]);
  return { ...after, kept, late };
}

function happened(before: MinuteState | undefined, after: MinuteState | undefined): Omit<Happened, 'isKnown'> {
  const isTold = before !== undefined && after !== undefined;
  return {
    counters: isTold ? between(before.counters, after.counters) : [],
    spreads: spreadsOf((name) => {
      if (!isTold) return { buckets: noBuckets(), fine: NO_FINE };
      return { buckets: between(before[name], after[name]), fine: after.fine?.[name] ?? NO_FINE };
    }),
  };
}

/** Of several partitions at one time, or of several times one after the other. */
export function together(some: readonly (Happened | undefined)[]): Happened {
  const all = some.flatMap((one) => (one ? [one] : []));
  return {
    isKnown: all.every(({ isKnown }) => isKnown),
    counters: sumOf(
      all.map(({ counters }) => counters),
      MINUTE_COUNTERS.length,
    ),
    spreads: spreadsOf((name) => timesSum(all.map(({ spreads }) => spreads[name]))),
    promised: promisedSum(all.map(({ promised }) => promised)),
    lateBy: lateTogether(all),
  };
}

function lateTogether(all: readonly Happened[]): Happened['lateBy'] {
  const sums = sumsTogether(all.map(({ lateBy }) => lateBy));
  return sums.size === 0 ? undefined : sums;
}

/**
 * Minutes of a whole queue together, with the jobs that expired under the promise: each partition counts its own, and only the first one
 * knows of the promise.
 */
export function togetherUnder(promise: Terms | undefined, minutes: readonly Happened[], firstMinute: number): Happened {
  const { promised: _, ...all } = together(minutes);
  if (!promise || firstMinute + minutes.length <= promise.since) return all;
  const own = minutes.filter(({ promised }) => promised?.since === promise.since);
  const under = minutes.filter((_one, at) => firstMinute + at >= promise.since);
  const expired = under.reduce((sum, { counters }) => sum + (counters[EXPIRED] ?? 0), 0);
  const sum = promisedSum(own.map(({ promised }) => promised));
  const { since, withinMs, of, overMs } = promise;
  return { ...all, promised: { since, withinMs, of, overMs, kept: sum?.kept ?? 0, late: sum?.late ?? 0, expired } };
}

const EXPIRED = MINUTE_COUNTERS.indexOf('expired');

export const spreadsOf = <T>(of: (name: Spread) => T): Readonly<Record<Spread, T>> => ({
  promotion: of('promotion'),
  start: of('start'),
  run: of('run'),
});

/** Whether anything happened: an hour in which nothing did takes no room. */
export const isEmpty = ({ counters, spreads }: Happened): boolean =>
  counters.every((count) => count === 0) &&
  SPREADS.every((name) => spreads[name].buckets.every((count) => count === 0));

// An hour or a day in a line: its number since 1970, 1 where leaders have looked all the time, and what happened as a state has it. Where
// every time was counted by octaves, the bounds that version 0.2 knows are told from these.

export const lineOf = (at: number, { isKnown, counters, spreads, promised, lateBy }: Happened): string =>
  `${at} ${isKnown ? 1 : 0} ${stateText({
    counters,
    ...spreadsOf((name) => (isFine(spreads[name]) ? noBuckets() : spreads[name].buckets)),
    fine: spreadsOf((name) => spreads[name].fine),
    promised,
    lateBy,
  })}`;

const isFine = ({ buckets, fine }: Times): boolean => countIn(buckets) === countIn([...fine.counts.values()]);
const countIn = (counts: readonly number[]): number => counts.reduce((sum, one) => sum + one, 0);

/** Undefined for a line that nobody can read. */
export function readLine(line: string): { readonly at: number; readonly happened: Happened } | undefined {
  const state = readState(line);
  if (!state) return undefined;
  const spreads = spreadsOf((name) => {
    const { counts, maxMs } = state.fine?.[name] ?? NO_FINE;
    const buckets = countIn(state[name]) === 0 ? bucketsIn(counts) : state[name];
    return { buckets, fine: { counts, maxMs } };
  });
  const { minute: at, since, counters, promised, lateBy } = state;
  return { at, happened: { isKnown: since === 1, counters, spreads, promised, lateBy } };
}
