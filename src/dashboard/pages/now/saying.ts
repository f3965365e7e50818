/** What the page Now concludes from numbers: which queues its sentence names, which hour ahead is the worst, what came to be today. Pure. */
import type { Schemas } from '../../api-types.ts';
import { isUnserved, type LiveQueue } from '../../live.ts';
import { byTrouble, LATE_MS, troubleOf } from '../../trouble.ts';

/** A queue that the sentence names, and why. */
export interface Named {
  readonly queue: string;
  readonly what: 'late' | 'leaderless' | 'unserved' | 'paused';
  /** How late its oldest job is by now. */
  readonly lateMs: number;
  /** Somebody wants it so, or nothing waits there yet. */
  readonly isCalm: boolean;
}

const NAMED_MAX = 3;

/** The queues in trouble, the worst first, and how many more there are. Dead letters make no queue late. */
export function namedIn(queues: readonly LiveQueue[]): { readonly named: readonly Named[]; readonly more: number } {
  const all = byTrouble(queues).flatMap((one) => namedOf(one) ?? []);
  return { named: all.slice(0, NAMED_MAX), more: Math.max(0, all.length - NAMED_MAX) };
}

/** What is said of the queues that are not named. One that could not be read may be in any trouble. */
export function restOf(seen: {
  readonly named: number;
  readonly more: number;
  readonly failures: number;
  readonly unread: number;
}): 'all-well' | 'unread' | 'rest-well' | undefined {
  const { named, more, failures, unread } = seen;
  if (named + failures === 0) return unread > 0 ? 'unread' : 'all-well';
  return more + failures + unread === 0 ? 'rest-well' : undefined;
}

function namedOf(one: LiveQueue): Named | undefined {
  const { queue, paused, oldestDueAgeMs: lateMs } = one;
  if (paused) return { queue, what: 'paused', lateMs, isCalm: true };
  if (lateMs > LATE_MS) return { queue, what: 'late', lateMs, isCalm: false };
  const isCalm = troubleOf(one).level !== 'bad';
  if (isUnserved(one)) return { queue, what: 'unserved', lateMs, isCalm };
  return isCalm ? undefined : { queue, what: 'leaderless', lateMs, isCalm };
}

// What comes due, as a map of half hours.

type Forecast = Schemas['Forecast'];

export interface Step {
  readonly fromMs: number;
  readonly jobs: number;
  /** The queue with the most of them. */
  readonly queue: string | undefined;
  /** How many are of that queue. */
  readonly ofQueue: number;
}

export function stepsOf({ buckets, queues = [] }: Pick<Forecast, 'buckets' | 'queues'>): readonly Step[] {
  return buckets.map(({ fromMs, jobs }, at) => {
    const [first, ...rest] = queues;
    const most = rest.reduce((best, one) => ((one.jobs[at] ?? 0) > (best?.jobs[at] ?? 0) ? one : best), first);
    return { fromMs, jobs, queue: most?.queue, ofQueue: most?.jobs[at] ?? 0 };
  });
}

export const HALF_MS = 1_800_000;
const HOUR_MS = 3_600_000;

/** The hour of the clock in which most comes due; undefined where nothing does. */
export function worstHour(steps: readonly Pick<Step, 'fromMs' | 'jobs'>[]): Pick<Step, 'fromMs' | 'jobs'> | undefined {
  const hours = new Map<number, number>();
  for (const { fromMs, jobs } of steps) {
    const hour = Math.floor(fromMs / HOUR_MS) * HOUR_MS;
    hours.set(hour, (hours.get(hour) ?? 0) + jobs);
  }
  const [fromMs = 0, jobs = 0] = [...hours].reduce((most, one) => (one[1] > most[1] ? one : most), [0, 0]);
  return jobs === 0 ? undefined : { fromMs, jobs };
}

const HERDS_MAX = 4;
/** Fewer are no herd, however little comes due around them. */
const HERD_MIN = 20;
const HERD_TIMES = 3;
/** Their names need so many columns. */
const APART = 6;

/** Half hours in which several times as much comes due as in most: the largest first, as far as their names have room. */
export function herdsIn(steps: readonly Step[]): readonly (Step & { readonly at: number })[] {
  const sorted = steps.map(({ jobs }) => jobs).sort((a, b) => a - b);
  const usual = sorted[Math.floor(sorted.length / 2)] ?? 0;
  const least = Math.max(HERD_MIN, HERD_TIMES * usual);
  const found: (Step & { readonly at: number })[] = [];
  const large = steps.map((step, at) => ({ ...step, at })).filter(({ jobs }) => jobs >= least);
  for (const one of large.sort((a, b) => b.jobs - a.jobs)) {
    if (found.length < HERDS_MAX && found.every(({ at }) => Math.abs(at - one.at) >= APART)) found.push(one);
  }
  return found;
}

/** Five levels between one job and the fullest cell, each a multiple of the one before. */
export function levelOf(jobs: number, most: number): number {
  if (jobs <= 0) return 0;
  if (jobs >= most) return 5;
  return 1 + Math.min(4, Math.floor((5 * Math.log(jobs)) / Math.log(most)));
}

/** Where the first column begins: half an hour may have begun already. */
export const columnsFromMs = (steps: readonly Pick<Step, 'fromMs'>[]): number =>
  Math.floor((steps[0]?.fromMs ?? 0) / HALF_MS) * HALF_MS;
export const columnsToMs = (steps: readonly Pick<Step, 'fromMs'>[]): number =>
  columnsFromMs(steps) + steps.length * HALF_MS;

// What came to be in the last day, told from its hours.

type Day = Schemas['Day'];

export interface Spell {
  readonly queue: string;
  readonly what: 'late' | 'died';
  readonly fromMs: number;
  /** Undefined: it goes on. */
  readonly toMs: number | undefined;
  /** The latest start in ms, or how many died. */
  readonly size: number;
}

/** Hours one after the other in which 99 % of the starts were not in time, or in which jobs died, are one spell. */
export function spellsIn({ startMs, stepMs, queues }: Day): readonly Spell[] {
  return queues.flatMap(({ queue, p99Ms, maxMs, dead }) => {
    const late = p99Ms.map((p99, at) => ((p99 ?? 0) > LATE_MS ? Math.max(maxMs[at] ?? 0, p99 ?? 0) : 0));
    const of = (values: readonly number[], join: (a: number, b: number) => number) =>
      runsOf(values, join).map(({ from, to, size }) => ({
        queue,
        size,
        fromMs: startMs + from * stepMs,
        toMs: to >= values.length ? undefined : startMs + to * stepMs,
      }));
    return [
      ...of(late, Math.max).map((one) => ({ ...one, what: 'late' as const })),
      ...of(dead, (a, b) => a + b).map((one) => ({ ...one, what: 'died' as const })),
    ];
  });
}

interface Run {
  readonly from: number;
  readonly to: number;
  readonly size: number;
}

function runsOf(values: readonly number[], join: (a: number, b: number) => number): readonly Run[] {
  const runs: Run[] = [];
  for (const [at, value] of values.entries()) {
    if (value === 0) continue;
    const last = runs.at(-1);
    if (last?.to === at) runs[runs.length - 1] = { ...last, to: at + 1, size: join(last.size, value) };
    else runs.push({ from: at, to: at + 1, size: value });
  }
  return runs;
}
