/**
 * How many jobs come due when: those that wait in Redis, counted by their due times, and those that schedules are going to
 * make. Schedules with the same rule are computed once, so 100,000 of them cost little more than reading them.
 *
 * What a forecast cannot know: retries, jobs not scheduled yet, instants that an overlap policy will skip. Jitter is left
 * out: the job of a schedule counts at its instant.
 *
 * Where jobs wait in line for the rate of their queue, it also says when the rate will be through with them. This is the earliest
 * time: a limit of concurrency, groups that are full, and too few workers make it later.
 */
import { type GateState, ratesIn, turnsFree } from '../../job/gate.ts';
import { parseName } from '../../job/job.ts';
import { ratesText } from '../../job/rate.ts';
import { hintOf } from '../../kernel/checks.ts';
import { type InstantInput, show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { inTurns, oneStep, type Steps, within } from '../../kernel/steps.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { naming } from '../../redis/connection/wrong-type.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { askEach, type Listed, queuesIn, type UnreadQueue } from '../../redis/read/each-queue.ts';
import { dueCounts, type PartitionStats, stats } from '../../redis/read/inspect.ts';
import { partitionsOf } from '../../redis/scripts/queues.ts';
import { recurrenceOf } from '../../schedule/schedule.ts';
import { decodeDefinition } from '../../schedule/text.ts';
import { countFires, nextFire, type Recurrence } from '../../time/recurrence.ts';
import { DEFAULT_DST, momentOf, parseZone } from '../../time/zone.ts';
import type { Definitions } from './schedule-places.ts';
import type { ListParts } from './schedule-view.ts';

/** What comes due when: jobs that wait, and those that schedules will make. Times are epoch ms. */
export interface Forecast {
  /** Epoch ms from which it counts, and up to which. */
  readonly atMs: number;
  readonly untilMs: number;
  readonly by: keyof typeof STEPS;
  /** Undefined: all queues. */
  readonly queue: string | undefined;
  readonly buckets: readonly ForecastBucket[];
  /** The same split by queue, the fullest first, without those in which nothing comes due; undefined: nobody asked for it. */
  readonly queues: readonly QueueForecast[] | undefined;
  /** The fullest one; undefined when nothing comes due. */
  readonly busiest: ForecastBucket | undefined;
  /** Due by now, and not promoted yet. */
  readonly overdue: number;
  /** Promoted, and not started yet. */
  readonly ready: number;
  /** Queues that are paused: their jobs come due, and wait. */
  readonly paused: readonly string[];
  /** Queues in which jobs wait in line for a rate; not those that are paused. */
  readonly backlogs: readonly Backlog[];
  /** Queues whose waiting jobs are not counted, because they did not answer, each with the reason. */
  readonly unread: readonly UnreadQueue[];
  readonly schedules: {
    readonly counted: number;
    readonly paused: number;
    readonly unreadable: number;
    /** Whose working times are too many to count. */
    readonly uncounted: number;
    /** Those with `H` that others like them stand for. */
    readonly estimated: number;
  };
}

export interface ForecastBucket {
  /** Epoch ms. */
  readonly fromMs: number;
  readonly jobs: number;
  /** Of them: jobs that wait in Redis already. */
  readonly scheduled: number;
  /** Of them: jobs that schedules are going to make. */
  readonly coming: number;
}

/** What comes due in one queue. */
export interface QueueForecast {
  readonly queue: string;
  /** So many jobs in each bucket. */
  readonly jobs: readonly number[];
}

/** When the rate of a queue will be through with its line. */
export interface Backlog {
  readonly queue: string;
  /** Such as `10/s`. */
  readonly rate: string;
  /** So many jobs may start in a second. */
  readonly perSecond: number;
  /** Jobs that are due and wait. */
  readonly waiting: number;
  /** Epoch ms by which these have started. */
  readonly waitingThroughMs: number;
  /** Epoch ms by which the line is empty, with what becomes due meanwhile; undefined: not before the end of the forecast. */
  readonly throughMs: number | undefined;
  /** So many jobs wait at the end of the forecast, where the line is not empty before. */
  readonly left: number;
}

/** How far `schedules.forecast` looks, and how finely. */
export interface ForecastOptions {
  /** Default 24 hours from now. A text without offset is UTC; a date means the end of that day. */
  readonly until?: InstantInput | undefined;
  /** `auto`, the default: by minute up to two hours, else by hour. */
  readonly by?: 'minute' | 'half-hour' | 'hour' | 'auto' | undefined;
  /** Only one queue. */
  readonly queue?: string | undefined;
  /** Also split by queue. Default false. */
  readonly perQueue?: boolean | undefined;
}

interface ForecastRange {
  readonly untilMs: number;
  readonly by: keyof typeof STEPS | 'auto';
  readonly queue: string | undefined;
  readonly perQueue: boolean;
}

const STEPS = { minute: 60_000, 'half-hour': 1_800_000, hour: 3_600_000 } as const;
const MINUTES_UP_TO_MS = 2 * STEPS.hour;
const BUCKETS_MAX = 1500;
const COUNTS_MAX = 500_000;
/** Steps that counting the instants of one rule takes, and of all. A rule takes some for each bucket at most. */
const STEPS_EACH_MAX = 200_000;
const STEPS_MAX = 1_000_000;

/** @throws DuestreamError `bad-input` */
export function forecastRange(
  { until, by = 'auto', queue, perQueue = false }: ForecastOptions,
  nowMs: number,
): ForecastRange {
  if (by !== 'auto' && !Object.hasOwn(STEPS, by)) {
    throw new DuestreamError('bad-input', `by is ${show(by)}; allowed: ${Object.keys(STEPS).join(', ')}, auto`);
  }
  const place = { what: 'until', zone: parseZone('UTC'), dst: DEFAULT_DST, date: 'next' } as const;
  return {
    untilMs: momentOf(until, place) ?? nowMs + 24 * STEPS.hour,
    by,
    queue: queue === undefined ? undefined : parseName(queue, 'queue'),
    perQueue,
  };
}

/** @throws DuestreamError `bad-input` for a range that has too many buckets, `not-found` for a queue that is not there */
export async function forecastOf(
  { store, definitions, waiting }: ForecastParts,
  { untilMs, by, queue, perQueue }: ForecastRange,
): Promise<Forecast> {
  const atMs = await store.nowMs();
  const unit = by !== 'auto' ? by : untilMs - atMs <= MINUTES_UP_TO_MS ? 'minute' : 'hour';
  checkRange(untilMs - atMs, unit);
  const buckets = bucketsOf({ fromMs: atMs, untilMs, stepMs: STEPS[unit] });
  const { due, ready, paused, rated = new Map(), dueIn = new Map(), unread = [] } = await waiting(queue, buckets.edges);
  const wanted = { queue, apart: new Set(rated.keys()), isAllApart: perQueue };
  const { counts, own, ...schedules } = await coming({ store, definitions }, buckets, wanted);
  const all = buckets.edges.slice(0, -1).map((from, at) => {
    const [scheduled, made] = [due[at + 1] ?? 0, counts[at] ?? 0];
    return { fromMs: from, jobs: scheduled + made, scheduled, coming: made };
  });
  const most = Math.max(...all.map(({ jobs }) => jobs));
  return {
    atMs,
    untilMs,
    by: unit,
    queue,
    buckets: all,
    queues: perQueue ? queuesOf(dueIn, own) : undefined,
    overdue: due[0] ?? 0,
    ready,
    paused,
    backlogs: [...rated].map(([name, parts]) => backlogOf(name, parts, { ...buckets, coming: own.get(name) ?? [] })),
    unread,
    schedules,
    busiest: most === 0 ? undefined : all.find(({ jobs }) => jobs === most),
  };
}

/** @param dueIn with what is overdue in front @param coming what schedules will make */
function queuesOf(
  dueIn: NonNullable<Waiting['dueIn']>,
  coming: ReadonlyMap<string, readonly number[]>,
): readonly QueueForecast[] {
  const names = new Set([...dueIn.keys(), ...coming.keys()]);
  return [...names]
    .map((queue) => {
      const [due, made] = [dueIn.get(queue)?.slice(1) ?? [], coming.get(queue) ?? []];
      const jobs = (due.length > 0 ? due : made).map((_, at) => (due[at] ?? 0) + Math.round(made[at] ?? 0));
      return { queue, jobs, sum: jobs.reduce((sum, one) => sum + one, 0) };
    })
    .filter(({ sum }) => sum > 0)
    .sort((a, b) => b.sum - a.sum)
    .map(({ queue, jobs }) => ({ queue, jobs }));
}

export interface ForecastParts extends ListParts {
  /** The jobs of a queue, or of all, that wait. */
  readonly waiting: (queue: string | undefined, edges: readonly number[]) => Promise<Waiting>;
}

export interface Waiting {
  /** So many jobs are due up to each edge, counted from the edge before. */
  readonly due: readonly number[];
  /** The same of each queue. Default: not told. */
  readonly dueIn?: ReadonlyMap<string, readonly number[]> | undefined;
  readonly ready: number;
  /** Queues that are paused. */
  readonly paused: readonly string[];
  /** The partitions of each queue in which jobs wait in line for a rate. */
  readonly rated?: ReadonlyMap<string, readonly RatedPartition[]> | undefined;
  /** Those that did not answer. Default: all did. */
  readonly unread?: readonly UnreadQueue[] | undefined;
}

interface RatedPartition {
  /** Of its queue. */
  readonly rate: string;
  /** Its share of that. */
  readonly perSecond: number;
  /** So many it lets start at once, of two rates. */
  readonly free: number;
  /** Jobs that are due. */
  readonly waiting: number;
  /** So many jobs become due in each bucket. */
  readonly due: readonly number[];
}

function checkRange(spanMs: number, unit: keyof typeof STEPS): void {
  if (spanMs <= 0) throw new DuestreamError('bad-input', 'until is not after now; allowed: an instant in the future');
  if (spanMs / STEPS[unit] <= BUCKETS_MAX) return;
  const instead = unit === 'hour' ? '' : ', or by hour';
  throw new DuestreamError('bad-input', `the range is too long; allowed: ${BUCKETS_MAX} ${unit}s${instead}`);
}

function checkCost(counts: number): void {
  if (counts <= COUNTS_MAX) return;
  const allowed = 'allowed: by hour, a shorter range, or one queue';
  throw new DuestreamError(
    'bad-input',
    `this forecast needs ${counts} counts from Redis; at most ${COUNTS_MAX} are allowed; ${allowed}`,
  );
}

async function refsOf(redis: Redis, namespace: string, queue: string | undefined): Promise<Listed<RatedRef>> {
  const { all, unread } = await queuesIn(redis, namespace);
  checkUsed(
    queue,
    [...all, ...unread].map((one) => one.queue),
  );
  const isWanted = (one: { readonly queue: string }) => queue === undefined || one.queue === queue;
  const refs = all.filter(isWanted).flatMap((layout) => {
    const rate = layout.rate ? ratesText(layout.rate) : undefined;
    return partitionsOf(namespace, layout).map((ref) => ({ queue: ref.queue, partition: ref.partition, ref, rate }));
  });
  return { all: refs, unread: unread.filter(isWanted) };
}

interface RatedRef {
  readonly queue: string;
  readonly partition: number;
  readonly ref: PartitionRef;
  /** Of its queue. */
  readonly rate: string | undefined;
}

/** @throws DuestreamError `not-found` */
export function checkUsed(queue: string | undefined, names: readonly string[]): void {
  if (queue === undefined || names.includes(queue)) return;
  const hint = hintOf(queue, names) || ';';
  throw new DuestreamError(
    'not-found',
    `queue ${queue} was never used${hint} "duestream queues ls" lists those that were`,
  );
}

/** The jobs that wait in Redis. */
export async function waitingIn(
  { redis, namespace }: { readonly redis: Redis; readonly namespace: string },
  queue: string | undefined,
  edges: readonly number[],
): Promise<Waiting> {
  const refs = await refsOf(redis, namespace, queue);
  checkCost(refs.all.length * edges.length);
  // One after the other: a partition is asked for many counts.
  const { found: seen, unread } = await askEach(refs, (one) => seenIn(redis, one, edges), 1);
  const dueOf = (some: readonly SeenPartition[]) =>
    edges.map((_, at) => some.reduce((sum, { counts }) => sum + (counts[at] ?? 0), 0));
  const names = [...new Set(seen.map((one) => one.queue))];
  const dueIn = new Map(names.map((name) => [name, dueOf(seen.filter((one) => one.queue === name))]));
  const paused = new Set(seen.filter(({ found }) => found.paused).map((one) => one.queue));
  const ready = seen.reduce((sum, { found }) => sum + found.ready, 0);
  return { due: dueOf(seen), dueIn, ready, paused: [...paused], rated: ratedIn(seen, paused), unread };
}

async function seenIn(redis: Redis, { queue, rate, ref }: RatedRef, edges: readonly number[]): Promise<SeenPartition> {
  const both = Promise.all([stats(redis, ref), dueCounts(redis, ref, edges)]);
  const [found, counts] = await naming(redis, [ref.keys], both);
  return { queue, rate, counts, found };
}

interface SeenPartition extends Pick<RatedRef, 'rate'> {
  readonly queue: string;
  /** So many jobs are due up to each edge, counted from the edge before. */
  readonly counts: readonly number[];
  readonly found: PartitionStats;
}

/** The partitions of queues that have a rate, somebody in line, and no pause. */
function ratedIn(seen: readonly SeenPartition[], paused: ReadonlySet<string>): Map<string, readonly RatedPartition[]> {
  const inLine = new Set(seen.filter(({ found }) => found.waiting > 0).map(({ queue }) => queue));
  const rated = new Map<string, readonly RatedPartition[]>();
  for (const { queue, rate, counts, found } of seen) {
    const [overdue = 0, ...due] = counts;
    const waiting = found.waiting + overdue;
    const pace = found.gate && slowestFor(waiting, found.gate, found.nowMs);
    if (rate === undefined || !pace || paused.has(queue) || !inLine.has(queue)) continue;
    const one = { rate, ...pace, waiting, due };
    rated.set(queue, [...(rated.get(queue) ?? []), one]);
  }
  return rated;
}

/** Of the rates of a partition the one that takes longest for what waits. Of two, each lets some start at once. */
function slowestFor(
  waiting: number,
  gate: GateState,
  nowMs: number,
): Pick<RatedPartition, 'perSecond' | 'free'> | undefined {
  const rates = ratesIn(gate);
  const paces = rates.map((rate) => ({
    perSecond: 1_000_000 / rate.intervalUs,
    free: rates.length > 1 ? turnsFree(rate, nowMs) : 0,
  }));
  const seconds = ({ perSecond, free }: (typeof paces)[number]) => Math.max(0, waiting - free) / perSecond;
  return paces.toSorted((one, other) => seconds(other) - seconds(one))[0];
}

/** Each partition has its share of the rate; the queue is through when the last of them is. */
function backlogOf(
  queue: string,
  partitions: readonly RatedPartition[],
  { edges, coming }: Pick<Buckets, 'edges'> & { readonly coming: readonly number[] },
): Backlog {
  const [atMs = 0] = edges;
  const lines = partitions.map((one) =>
    emptied({ ...one, due: one.due.map((count, at) => count + (coming[at] ?? 0) / partitions.length) }, edges),
  );
  const left = lines.reduce((sum, one) => sum + one.left, 0);
  const startedMs = Math.max(
    ...partitions.map(({ waiting, free, perSecond }) => (Math.max(0, waiting - free) / perSecond) * 1000),
  );
  return {
    queue,
    rate: partitions[0]?.rate ?? '',
    perSecond: Number(partitions.reduce((sum, one) => sum + one.perSecond, 0).toPrecision(6)),
    waiting: partitions.reduce((sum, one) => sum + one.waiting, 0),
    waitingThroughMs: Math.ceil(atMs + startedMs),
    throughMs: left > 0 ? undefined : Math.ceil(Math.max(...lines.map(({ throughMs }) => throughMs))),
    left: Math.ceil(left),
  };
}

/** When a line is empty for the first time, as if the jobs of a bucket became due evenly over it; else what is left of it. */
function emptied(
  { perSecond, waiting, free, due }: Omit<RatedPartition, 'rate'>,
  edges: readonly number[],
): { readonly throughMs: number; readonly left: number } {
  let left = Math.max(0, waiting - free);
  for (const [at, fromMs] of edges.slice(0, -1).entries()) {
    const spanMs = (edges[at + 1] ?? fromMs) - fromMs;
    const netPerMs = perSecond / 1000 - (due[at] ?? 0) / spanMs;
    if (left === 0) return { throughMs: fromMs, left };
    if (left <= netPerMs * spanMs) return { throughMs: fromMs + left / netPerMs, left: 0 };
    left -= netPerMs * spanMs;
  }
  return { throughMs: Number.POSITIVE_INFINITY, left };
}

/** Schedules of `wanted.apart` are also counted by their queue. */
async function coming({ store, definitions }: ListParts, buckets: Buckets, wanted: Wanted) {
  const groups = await groupsOf(definitions, wanted);
  const none = () => buckets.edges.slice(1).map(() => 0);
  const counts = none();
  const own = new Map([...wanted.apart].map((queue) => [queue, none()]));
  const { paused, unreadable, estimated } = groups;
  const told = { counted: 0, paused, unreadable, uncounted: 0, estimated };
  let left = STEPS_MAX;
  for (const group of groups.alike) {
    const rule = await ruleOf(store, group);
    if (rule === undefined) {
      told.unreadable += group.count;
      continue;
    }
    const most = Math.min(STEPS_EACH_MAX, left);
    const budget = { left: most };
    const found = await inTurns(within(instantsIn(rule.recurrence, buckets, rule.most), budget));
    left -= most - budget.left;
    if (found === undefined) told.uncounted += group.count;
    else told.counted += group.count;
    if (group.queue !== undefined && !own.has(group.queue)) own.set(group.queue, none());
    addCounts([counts, own.get(group.queue ?? '')], found ?? [], group.count);
  }
  const { counted: known, uncounted } = told;
  return { ...told, own, counts: counts.map(Math.round), counted: Math.round(known), uncounted: Math.round(uncounted) };
}

function addCounts(all: readonly (number[] | undefined)[], found: readonly number[], times: number): void {
  for (const sums of all) {
    for (const [bucket, count] of found.entries()) if (sums) sums[bucket] = (sums[bucket] ?? 0) + count * times;
  }
}

/** @returns undefined for a schedule that nobody can read */
async function ruleOf(store: ForecastParts['store'], { name, content }: Alike) {
  try {
    const definition = await inTurns(oneStep(() => decodeDefinition(name, content)));
    const { maxRuns } = definition.schedule;
    // Of a queue that does not answer nobody knows how often it has fired. Its jobs that wait are in `unread`.
    const found = maxRuns === undefined ? [] : await store.findAll([definition]).catch(() => undefined);
    const fired = found?.[0]?.fired;
    if (!found || fired?.unreadable !== undefined) return undefined;
    const most = maxRuns === undefined ? Number.POSITIVE_INFINITY : Math.max(0, maxRuns - (fired?.runs ?? 0));
    return { recurrence: recurrenceOf(definition.schedule), most };
  } catch (error) {
    if (error instanceof DuestreamError && error.code === 'bad-input') return undefined;
    throw error;
  }
}

// Time cut into buckets that begin at full minutes or hours, and how many instants fall into each. Pure.

interface Buckets {
  /** Where each begins, and where the last one ends: one more than there are buckets. */
  readonly edges: readonly number[];
  readonly stepMs: number;
}

/**
 * The first bucket begins after `fromMs` and the last one ends before `untilMs`, so both may be shorter. What is at an
 * edge belongs to the bucket that begins there.
 */
export function bucketsOf(range: {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly stepMs: number;
}): Buckets {
  const { fromMs, untilMs, stepMs } = range;
  const edges = [fromMs];
  for (let at = (Math.floor(fromMs / stepMs) + 1) * stepMs; at < untilMs; at += stepMs) edges.push(at);
  return { edges: [...edges, untilMs], stepMs };
}

/**
 * How many instants of a rule fall into each bucket. Buckets without any are leapt over, and those within one are counted,
 * so a rule of seconds costs no more than one of minutes.
 *
 * @param most so many fire at most, the first ones
 */
export function* instantsIn(
  recurrence: Recurrence,
  { edges, stepMs }: Buckets,
  most: number,
): Steps<readonly number[]> {
  const [fromMs = 0, firstMs = 0] = edges;
  const lastMs = (edges.at(-1) ?? 0) - 1;
  const counts = edges.slice(1).map(() => 0);
  let left = most;
  for (let atMs = fromMs; left > 0; ) {
    yield;
    const nextMs = yield* nextFire(recurrence, atMs, lastMs);
    if (nextMs === undefined || nextMs > lastMs) break;
    const bucket = nextMs < firstMs ? 0 : 1 + Math.floor((nextMs - firstMs) / stepMs);
    atMs = (edges[bucket + 1] ?? 0) - 1;
    const count = Math.min(left, 1 + (yield* countFires(recurrence, nextMs, atMs)));
    counts[bucket] = count;
    left -= count;
  }
  return counts;
}

// Schedules that fire at the same instants, found by what is written in them and without computing anything: the rule
// with its zone, policies, calendar and bounds. Those with `maxRuns` stand alone. Those with `H` differ by their names
// only, which spreads them evenly: of very many, the first stand for all.

interface Wanted {
  /** Undefined: all. */
  readonly queue: string | undefined;
  /** Schedules of these queues are alike only among themselves. */
  readonly apart: ReadonlySet<string>;
  /** Those of every queue are. */
  readonly isAllApart: boolean;
}

interface Alike {
  /** One of them. */
  readonly name: string;
  readonly content: string;
  /** Where it is one of those that are kept apart. */
  readonly queue: string | undefined;
  /** How many they are; not a whole number where some stand for others. */
  readonly count: number;
}

interface Groups {
  readonly alike: readonly Alike[];
  readonly paused: number;
  readonly unreadable: number;
  /** Schedules that are in `alike` only by others that stand for them. */
  readonly estimated: number;
}

type Written = Readonly<Record<string, unknown>>;

/** Of schedules that differ by `H` only, so many are computed; where each queue is counted apart, so many of each. */
const SPREAD_MAX = 2000;
const SPREAD_EACH_MAX = 200;

interface Found {
  readonly queue: string | undefined;
  readonly spread: boolean;
  readonly some: { readonly name: string; readonly content: string }[];
  count: number;
}

/** The groups among the schedules of a queue, or of all. */
async function groupsOf(definitions: Definitions, wanted: Wanted): Promise<Groups> {
  const found = new Map<string, Found>();
  const seen = new Set<string>();
  const told = { paused: 0, unreadable: 0 };
  for await (const page of definitions()) {
    for (const [name, content] of page.filter(([one]) => !seen.has(one))) {
      seen.add(name);
      const kind = kindOf(name, content, wanted);
      if (kind === 'other') continue;
      if (kind === 'paused' || kind === 'unreadable') told[kind] += 1;
      else addTo(found, { ...kind, most: wanted.isAllApart ? SPREAD_EACH_MAX : SPREAD_MAX }, { name, content });
    }
  }
  const groups = [...found.values()];
  const estimated = groups.reduce((sum, { spread, some, count }) => sum + (spread ? count - some.length : 0), 0);
  const alike = groups.flatMap(({ some, count, queue }) =>
    some.map((one) => ({ ...one, queue, count: count / some.length })),
  );
  return { alike, estimated, ...told };
}

function addTo(
  found: Map<string, Found>,
  {
    key,
    spread,
    own,
    most,
  }: { readonly key: string; readonly spread: boolean; readonly own: string | undefined; readonly most: number },
  one: Found['some'][number],
): void {
  const group = found.get(key) ?? { queue: own, spread, some: [], count: 0 };
  group.count += 1;
  if (group.some.length < (spread ? most : 1)) group.some.push(one);
  found.set(key, group);
}

function kindOf(name: string, content: string, { queue, apart, isAllApart }: Wanted) {
  const { since, anchor: pinned, schedule } = read(content);
  if (schedule === undefined) return 'unreadable';
  if (queue !== undefined && schedule.queue !== queue) return 'other';
  if (isPaused(schedule.paused)) return 'paused';
  const { cron, every, align, zone, dst, start, end, calendar, maxRuns } = schedule;
  const spread = maxRuns === undefined && typeof cron === 'string' && /(^|[\s,])H/.test(cron);
  const anchor = align === 'start' && start === undefined ? (pinned ?? since) : undefined;
  const alone = maxRuns === undefined ? '' : name;
  const isApart = typeof schedule.queue === 'string' && (isAllApart || apart.has(schedule.queue));
  const own = isApart ? String(schedule.queue) : undefined;
  return {
    key: JSON.stringify([cron, every, align, zone, dst, start, end, calendar, anchor, alone, own]),
    spread,
    own,
  };
}

const isPaused = (paused: unknown): boolean => paused !== undefined && paused !== false;

function read(content: string): { readonly since?: unknown; readonly anchor?: unknown; readonly schedule?: Written } {
  try {
    const value: unknown = JSON.parse(content);
    if (!isWritten(value)) return {};
    return {
      since: value.since,
      anchor: value.anchor,
      ...(isWritten(value.schedule) ? { schedule: value.schedule } : {}),
    };
  } catch {
    return {};
  }
}

const isWritten = (value: unknown): value is Written => typeof value === 'object' && value !== null;
