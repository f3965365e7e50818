/**
 * When a job that waits is going to start, as far as that can be told: how many come before it, and how fast they start. It is told
 * only where the answer will be about right, and else it is said why not. Pure; what is known of a queue is read elsewhere, and
 * only when somebody looks.
 *
 *     jobs before it  ÷  the least of its rate, slots ÷ run time, concurrency ÷ run time;  and the same of its group: the later one
 *
 * Lanes of one class come in turns, so of each other lane as many come before a job as of its own, where there are so many.
 * Classes come in turns of 16 : 4 : 1. Nobody knows how many jobs of other lanes will come: where it matters much, nothing is told.
 */
import { span } from '../kernel/humanize.ts';
import { TURN_STEPS } from './gate.ts';

/** Jobs of a group and priority that wait. */
export interface WaitingLane {
  /** '': the jobs have none. */
  readonly group: string;
  /** 0 = high, 1 = normal, 2 = low. */
  readonly priority: number;
  readonly waiting: number;
  /** So many turns it has where another lane has one. */
  readonly weight: number;
}

/** What lets jobs start, of a queue or of a group. */
export interface Pacing {
  /** How many may run at a time, 0: any number; and how many do. */
  readonly most: number;
  readonly running: number;
  /** Microseconds per job of its rate, 0: no rate; and when it allows the next start. */
  readonly intervalUs: number;
  readonly nextTurnMs: number;
  /** Of two rates the slower one, and how many it lets start at once. */
  readonly second?: { readonly intervalUs: number; readonly nextTurnMs: number; readonly free: number } | undefined;
  /** Until when it is closed. */
  readonly closedMs: number;
}

/** What is known of a job that waits, and of its queue. */
export interface WaitFacts {
  readonly nowMs: number;
  /** How many jobs its workers run at a time; undefined: one of them does not say. */
  readonly slots: number | undefined;
  /** Runs of the last hour, and how long they lasted on average. */
  readonly runs: number;
  readonly runMs: number;
  readonly lane: Pick<WaitingLane, 'group' | 'priority'>;
  /** Jobs of its lane that come before it. */
  readonly ahead: number;
  /** All lanes of its partition in which somebody waits; undefined: more than are looked at. */
  readonly lanes: readonly WaitingLane[] | undefined;
  readonly queue: Pacing;
  /** By name, those in which somebody waits or runs. */
  readonly groups: ReadonlyMap<string, Pacing>;
  /** Jobs that came due in a second of the last minutes; undefined: nobody knows. */
  readonly arrivalsPerSecond: number | undefined;
  /** Starts in a second of the last minutes in which jobs waited all the time; undefined: nobody knows. */
  readonly startsPerSecond: number | undefined;
}

/** Why nothing is told. */
export const UNTOLD = {
  paused: 'the queue is paused',
  'no-leader': 'no daemon leads its partition',
  'no-worker': 'no worker that lives serves the queue',
  'slots-unknown': 'a worker does not say how many jobs it runs at a time',
  'few-runs': 'fewer than 20 jobs ran in the last hour, so nobody knows how long they run',
  'group-kept': 'another job, or a dead letter, has its group, and nobody knows until when',
  shared: 'it shares a limit with other queues, and nobody knows how much of it these will take',
  'many-lanes': 'jobs of more than 1,000 groups wait or run',
  'others-first': 'jobs of other groups or priorities come first, and nobody knows how many will come',
  costs: 'a job of the queue may cost more than one turn of its rate, and nobody adds up what those before it cost',
  unsteady: 'jobs start at another pace than the limits and the run times say',
} as const;
export type Untold = keyof typeof UNTOLD;

const PACES = {
  rate: 'the rate',
  concurrency: 'the concurrency of the queue',
  slots: 'the slots of workers',
  group: 'the limit of its group',
  'group-rate': 'the rate of its group',
} as const;

/** When a job is going to start. */
export interface StartEstimate {
  /** `about`: the job starts about then · `not-before`: something is closed until then · `untold`: nobody can tell */
  readonly kind: 'about' | 'not-before' | 'untold';
  /** Epoch ms; the time from now to it has two digits. */
  readonly startMs?: number | undefined;
  /** Jobs that start before it; those of its group, where the limits of the group make it wait longest. */
  readonly before?: number | undefined;
  /** So many of these start in a second, in two digits. */
  readonly perSecond?: number | undefined;
  /** What makes it wait longest. */
  readonly pacedBy?: keyof typeof PACES | undefined;
  /** Why nothing is told. */
  readonly untold?: Untold | undefined;
  /** All of it as a sentence. */
  readonly text: string;
}

/** Fewer runs in an hour say nothing. */
const RUNS_MIN = 20;
/** How far apart two answers may be that are both true enough. */
const APART_MAX = 2;

/** @example estimateOf(facts).text // 'in about 4 s: 37 jobs before it, at 10/s by the rate' */
export function estimateOf(facts: WaitFacts): StartEstimate {
  const untold = untoldOf(facts);
  if (untold) return notTold(untold);
  const closed = closedOf(facts);
  if (closed) return closed;
  const before = beforeIt(facts);
  if (!before) return notTold('others-first');
  const waits = pacesOf(facts).map((pace) => ({
    ...pace,
    ...waitOf(pace, pace.isOfGroup ? before.group : before.all),
  }));
  const [first, ...others] = waits;
  if (!first) return { kind: 'about', startMs: facts.nowMs, before: before.all, text: 'in a moment' };
  const last = others.reduce((one, other) => (other.waitMs > one.waitMs ? other : one), first);
  const waitMs = twoDigits(last.waitMs);
  const perSecond = twoDigits(last.perMs * 1000);
  const count = `${last.before} ${last.before === 1 ? 'job' : 'jobs'}${last.isOfGroup ? ' of its group' : ''} before it`;
  const text = `in about ${span(waitMs)}: ${count}, at ${paceText(perSecond)} by ${PACES[last.pacedBy]}`;
  return {
    kind: 'about',
    startMs: Math.round(facts.nowMs + waitMs),
    ...{ before: last.before, perSecond, pacedBy: last.pacedBy, text },
  };
}

export const notTold = (untold: Untold): StartEstimate => ({
  kind: 'untold',
  untold,
  text: `nobody can tell: ${UNTOLD[untold]}`,
});

function untoldOf(facts: WaitFacts): Untold | undefined {
  const { lanes, slots, runs } = facts;
  if (closedOf(facts)) return undefined;
  if (slots === undefined) return 'slots-unknown';
  if (runs < RUNS_MIN) return 'few-runs';
  if (!lanes) return 'many-lanes';
  return isUnsteady(facts) ? 'unsteady' : undefined;
}

function closedOf({ nowMs, queue, groups, lane }: WaitFacts): StartEstimate | undefined {
  const ofGroupMs = groups.get(lane.group)?.closedMs ?? 0;
  const startMs = Math.max(queue.closedMs, ofGroupMs);
  if (startMs <= nowMs) return undefined;
  const what = queue.closedMs >= ofGroupMs ? 'the queue' : 'its group';
  return { kind: 'not-before', startMs, text: `not within ${span(startMs - nowMs)}: ${what} is closed until then` };
}

interface Before {
  readonly all: number;
  /** Those of its group. */
  readonly group: number;
}

/** Rounds in which the jobs before it, and how long it waits for them, are worked out from each other. */
const ROUNDS = 6;

/**
 * Between two bounds, as far from the one as from the other: that no job comes any more; and that jobs of higher classes come all
 * the time, and others as often as in the last minutes, to all lanes alike. Undefined: the bounds are too far apart.
 */
function beforeIt(facts: WaitFacts): Before | undefined {
  const least = turnsBefore(facts, { more: 0, higher: 'some' });
  const perMs = leastOf(pacesOf(facts).filter(({ isOfGroup }) => !isOfGroup));
  const perLaneMs = (facts.arrivalsPerSecond ?? 0) / 1000 / Math.max(1, facts.lanes?.length ?? 0);
  let most = turnsBefore(facts, { more: 0, higher: 'most' });
  for (let round = 0; round < ROUNDS && perLaneMs > 0; round += 1) {
    most = turnsBefore(facts, { more: (perLaneMs * most.all) / perMs, higher: 'most' });
  }
  if (most.all + 1 > APART_MAX ** 2 * (least.all + 1)) return undefined;
  const between = (one: number, other: number) => Math.round(Math.sqrt((one + 1) * (other + 1)) - 1);
  return { all: between(least.all, most.all), group: between(least.group, most.group) };
}

/** @param of.more so many will have come to each other lane */
function turnsBefore(
  { lane, lanes = [], ahead }: WaitFacts,
  { more, higher }: { readonly more: number; readonly higher: 'some' | 'most' },
): Before {
  const isOwn = (one: WaitingLane) => one.group === lane.group && one.priority === lane.priority;
  const rounds = Math.ceil((ahead + 1) / (lanes.find(isOwn)?.weight ?? 1));
  const others = lanes
    .filter((one) => one.priority === lane.priority && !isOwn(one))
    .map((one) => ({ group: one.group, count: Math.min(one.waiting + more, rounds * one.weight) }));
  const own = [{ group: lane.group, count: ahead }, ...others];
  const turns = sum(own.map(({ count }) => count)) + 1;
  const classes = TURN_STEPS.flatMap((step, priority) => {
    const all = lanes.filter((one) => one.priority === priority);
    const waiting = sum(all.map((one) => one.waiting));
    if (priority === lane.priority || waiting === 0) return [];
    const share = Math.ceil((turns * (TURN_STEPS[lane.priority] ?? 1)) / step);
    const count = higher === 'most' && priority < lane.priority ? share : Math.min(waiting + more * all.length, share);
    return all.map((one) => ({ group: one.group, count: (count * one.waiting) / waiting }));
  });
  const every = [...own, ...classes];
  return {
    all: sum(every.map(({ count }) => count)),
    group: sum(every.filter(({ group }) => group === lane.group).map(({ count }) => count)),
  };
}

interface Pace {
  readonly pacedBy: keyof typeof PACES;
  readonly perMs: number;
  readonly isOfGroup: boolean;
  /** So many may start at once. */
  readonly free: number;
  /** For how long the first has to wait that does not start at once. */
  readonly firstMs: number;
}

const waitOf = ({ perMs, free, firstMs }: Pace, before: number) => ({
  before,
  waitMs: before < free ? 0 : firstMs + (before - free) / perMs,
});

/** All that paces a job. */
function pacesOf({ queue, slots = 0, groups, lane, nowMs, runMs }: WaitFacts): readonly Pace[] {
  const runs = { nowMs, runMs };
  const group = groups.get(lane.group);
  const ofSlots = { ...queue, most: slots, intervalUs: 0, second: undefined };
  return [
    ...pacing(queue, runs, { most: 'concurrency', rate: 'rate', isOfGroup: false }),
    ...pacing(ofSlots, runs, { most: 'slots', rate: 'rate', isOfGroup: false }),
    ...(group ? pacing(group, runs, { most: 'group', rate: 'group-rate', isOfGroup: true }) : []),
  ];
}

function pacing(
  { most, running, intervalUs, nextTurnMs, second }: Pacing,
  { nowMs, runMs }: Pick<WaitFacts, 'nowMs' | 'runMs'>,
  of: { readonly most: Pace['pacedBy']; readonly rate: Pace['pacedBy']; readonly isOfGroup: boolean },
): readonly Pace[] {
  const { isOfGroup } = of;
  const perMs = most / Math.max(1, runMs);
  // The first of those that run ends sooner than after a whole run.
  const firstEndMs = runMs / (most + 1);
  const untilMs = (turnMs: number) => Math.max(0, turnMs - nowMs);
  const firstMs = untilMs(nextTurnMs);
  return [
    ...(most > 0
      ? [{ pacedBy: of.most, perMs, isOfGroup, free: Math.max(0, most - running), firstMs: firstEndMs }]
      : []),
    ...(intervalUs > 0 ? [{ pacedBy: of.rate, perMs: 1000 / intervalUs, isOfGroup, free: 0, firstMs }] : []),
    ...(second ? [ofSecond(second, { pacedBy: of.rate, isOfGroup, firstMs: untilMs(second.nextTurnMs) })] : []),
  ];
}

/** After those that start at once the next one has its turn an interval later. */
function ofSecond(
  { intervalUs, free }: NonNullable<Pacing['second']>,
  { firstMs, ...of }: Pick<Pace, 'pacedBy' | 'isOfGroup' | 'firstMs'>,
): Pace {
  return { ...of, perMs: 1000 / intervalUs, free, firstMs: free > 0 ? intervalUs / 1000 : firstMs };
}

/** Whether jobs start at another pace than what is known of the queue says. */
function isUnsteady(facts: WaitFacts): boolean {
  const { startsPerSecond, lanes = [], groups, nowMs, runMs } = facts;
  if (startsPerSecond === undefined) return false;
  const paces = pacesOf(facts);
  // A second rate that lets some start at once has not held them.
  const isFree = ({ pacedBy, free }: Pace) => pacedBy === 'rate' && free > 0;
  const ofQueue = leastOf(paces.filter((pace) => !(pace.isOfGroup || isFree(pace))));
  const names = { most: 'group', rate: 'group-rate', isOfGroup: true } as const;
  const ofGroups = [...new Set(lanes.map(({ group }) => group))].map((group) => {
    const own = groups.get(group);
    return leastOf(own ? pacing(own, { nowMs, runMs }, names) : []);
  });
  // Where groups hold their jobs, others that have nobody in line start too, and nobody counts the starts of a group.
  if (sum(ofGroups) < ofQueue) return false;
  const apart = startsPerSecond / 1000 / ofQueue;
  return apart > APART_MAX || apart < 1 / APART_MAX;
}

const leastOf = (paces: readonly Pace[]): number =>
  Math.min(Number.POSITIVE_INFINITY, ...paces.map(({ perMs }) => perMs));

const sum = (all: readonly number[]): number => all.reduce((total, one) => total + one, 0);

const twoDigits = (value: number): number => Number(value.toPrecision(2));

/** `10/s`, `12/min`, `3/h` */
function paceText(perSecond: number): string {
  const [unit, seconds] = (perSecond >= 1 ? UNITS[0] : perSecond * 60 >= 1 ? UNITS[1] : UNITS[2]) ?? ['s', 1];
  return `${Number((perSecond * seconds).toPrecision(2))}/${unit}`;
}

const UNITS = [
  ['s', 1],
  ['min', 60],
  ['h', 3600],
] as const;
