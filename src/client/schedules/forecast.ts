/**
 * How many jobs come due when: those that wait in Redis, counted by their due times, and those that schedules are going to
 * make. Schedules with the same rule are computed once, so 100,000 of them cost little more than reading them.
 *
 * What a forecast cannot know: retries, jobs not scheduled yet, instants that an overlap policy will skip. Jitter is left
 * out: the job of a schedule counts at its instant.
 */
import { parseName } from '../../job/job.ts';
import { hintOf } from '../../kernel/checks.ts';
import { type InstantInput, show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { inTurns, oneStep, type Steps, within } from '../../kernel/steps.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { dueCounts, stats } from '../../redis/read/inspect.ts';
import { listQueues, partitionsOf } from '../../redis/scripts/queues.ts';
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
  readonly by: 'minute' | 'hour';
  /** Undefined: all queues. */
  readonly queue: string | undefined;
  readonly buckets: readonly ForecastBucket[];
  /** The fullest one; undefined when nothing comes due. */
  readonly busiest: ForecastBucket | undefined;
  /** Due by now, and not promoted yet. */
  readonly overdue: number;
  /** Promoted, and not started yet. */
  readonly ready: number;
  /** Queues that are paused: their jobs come due, and wait. */
  readonly paused: readonly string[];
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

/** How far `schedules.forecast` looks, and how finely. */
export interface ForecastOptions {
  /** Default 24 hours from now. A text without offset is UTC; a date means the end of that day. */
  readonly until?: InstantInput | undefined;
  /** `auto`, the default: by minute up to two hours, else by hour. */
  readonly by?: 'minute' | 'hour' | 'auto' | undefined;
  /** Only one queue. */
  readonly queue?: string | undefined;
}

interface ForecastRange {
  readonly untilMs: number;
  readonly by: 'minute' | 'hour' | 'auto';
  readonly queue: string | undefined;
}

const STEPS = { minute: 60_000, hour: 3_600_000 } as const;
const MINUTES_UP_TO_MS = 2 * STEPS.hour;
const BUCKETS_MAX = 1500;
const COUNTS_MAX = 500_000;
/** Steps that counting the instants of one rule takes, and of all. A rule takes some for each bucket at most. */
const STEPS_EACH_MAX = 200_000;
const STEPS_MAX = 1_000_000;

/** @throws DuestreamError `bad-input` */
export function forecastRange({ until, by = 'auto', queue }: ForecastOptions, nowMs: number): ForecastRange {
  if (by !== 'auto' && by !== 'minute' && by !== 'hour') {
    throw new DuestreamError('bad-input', `by is ${show(by)}; allowed: minute, hour, auto`);
  }
  const place = { what: 'until', zone: parseZone('UTC'), dst: DEFAULT_DST, date: 'next' } as const;
  return {
    untilMs: momentOf(until, place) ?? nowMs + 24 * STEPS.hour,
    by,
    queue: queue === undefined ? undefined : parseName(queue, 'queue'),
  };
}

/** @throws DuestreamError `bad-input` for a range that has too many buckets, `not-found` for a queue that is not there */
export async function forecastOf(
  { store, definitions, waiting }: ForecastParts,
  { untilMs, by, queue }: ForecastRange,
): Promise<Forecast> {
  const atMs = await store.nowMs();
  const unit = by !== 'auto' ? by : untilMs - atMs <= MINUTES_UP_TO_MS ? 'minute' : 'hour';
  checkRange(untilMs - atMs, unit);
  const buckets = bucketsOf({ fromMs: atMs, untilMs, stepMs: STEPS[unit] });
  const { due, ready, paused } = await waiting(queue, buckets.edges);
  const { counts, ...schedules } = await coming({ store, definitions }, buckets, queue);
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
    overdue: due[0] ?? 0,
    ready,
    paused,
    schedules,
    busiest: most === 0 ? undefined : all.find(({ jobs }) => jobs === most),
  };
}

export interface ForecastParts extends ListParts {
  /** The jobs of a queue, or of all, that wait. */
  readonly waiting: (queue: string | undefined, edges: readonly number[]) => Promise<Waiting>;
}

export interface Waiting {
  /** So many jobs are due up to each edge, counted from the edge before. */
  readonly due: readonly number[];
  readonly ready: number;
  /** Queues that are paused. */
  readonly paused: readonly string[];
}

function checkRange(spanMs: number, unit: 'minute' | 'hour'): void {
  if (spanMs <= 0) throw new DuestreamError('bad-input', 'until is not after now; allowed: an instant in the future');
  if (spanMs / STEPS[unit] <= BUCKETS_MAX) return;
  const instead = unit === 'minute' ? ', or by hour' : '';
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

async function refsOf(redis: Redis, namespace: string, queue: string | undefined): Promise<readonly PartitionRef[]> {
  const layouts = await listQueues(redis, namespace);
  const wanted = layouts.filter((layout) => queue === undefined || layout.queue === queue);
  const names = layouts.map((layout) => layout.queue);
  checkUsed(queue, names);
  return wanted.flatMap((layout) => partitionsOf(namespace, layout));
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
  checkCost(refs.length * edges.length);
  const due = edges.map(() => 0);
  const paused = new Set<string>();
  let ready = 0;
  for (const ref of refs) {
    const [counts, found] = await Promise.all([dueCounts(redis, ref, edges), stats(redis, ref)]);
    for (const [at, count] of counts.entries()) due[at] = (due[at] ?? 0) + count;
    ready += found.ready;
    if (found.paused) paused.add(ref.queue);
  }
  return { due, ready, paused: [...paused] };
}

async function coming({ store, definitions }: ListParts, buckets: Buckets, queue: string | undefined) {
  const groups = await groupsOf(definitions, queue);
  const counts = buckets.edges.slice(1).map(() => 0);
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
    for (const [bucket, count] of (found ?? []).entries()) counts[bucket] = (counts[bucket] ?? 0) + count * group.count;
  }
  const { counted: known, uncounted } = told;
  return { ...told, counts: counts.map(Math.round), counted: Math.round(known), uncounted: Math.round(uncounted) };
}

/** @returns undefined for a schedule that nobody can read */
async function ruleOf(store: ForecastParts['store'], { name, content }: Alike) {
  try {
    const definition = await inTurns(oneStep(() => decodeDefinition(name, content)));
    const { maxRuns } = definition.schedule;
    const fired = maxRuns === undefined ? undefined : (await store.findAll([definition]))[0]?.fired;
    if (fired?.unreadable !== undefined) return undefined;
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

interface Alike {
  /** One of them. */
  readonly name: string;
  readonly content: string;
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

/** Of schedules that differ by `H` only, so many are computed. */
const SPREAD_MAX = 2000;

interface Found {
  readonly spread: boolean;
  readonly some: { readonly name: string; readonly content: string }[];
  count: number;
}

/** The groups among the schedules of a queue, or of all. */
async function groupsOf(definitions: Definitions, queue: string | undefined): Promise<Groups> {
  const found = new Map<string, Found>();
  const seen = new Set<string>();
  const told = { paused: 0, unreadable: 0 };
  for await (const page of definitions()) {
    for (const [name, content] of page.filter(([one]) => !seen.has(one))) {
      seen.add(name);
      const kind = kindOf(name, content, queue);
      if (kind === 'other') continue;
      if (kind === 'paused' || kind === 'unreadable') told[kind] += 1;
      else addTo(found, kind, { name, content });
    }
  }
  const groups = [...found.values()];
  const estimated = groups.reduce((sum, { spread, some, count }) => sum + (spread ? count - some.length : 0), 0);
  const alike = groups.flatMap(({ some, count }) => some.map((one) => ({ ...one, count: count / some.length })));
  return { alike, estimated, ...told };
}

function addTo(
  found: Map<string, Found>,
  { key, spread }: { readonly key: string; readonly spread: boolean },
  one: Found['some'][number],
): void {
  const group = found.get(key) ?? { spread, some: [], count: 0 };
  group.count += 1;
  if (group.some.length < (spread ? SPREAD_MAX : 1)) group.some.push(one);
  found.set(key, group);
}

function kindOf(name: string, content: string, queue: string | undefined) {
  const { since, anchor: pinned, schedule } = read(content);
  if (schedule === undefined) return 'unreadable';
  if (queue !== undefined && schedule.queue !== queue) return 'other';
  if (isPaused(schedule.paused)) return 'paused';
  const { cron, every, align, zone, dst, start, end, calendar, maxRuns } = schedule;
  const spread = maxRuns === undefined && typeof cron === 'string' && /(^|[\s,])H/.test(cron);
  const anchor = align === 'start' && start === undefined ? (pinned ?? since) : undefined;
  const alone = maxRuns === undefined ? '' : name;
  return { key: JSON.stringify([cron, every, align, zone, dst, start, end, calendar, anchor, alone]), spread };
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
