/**
 * Reading without touching: counts of a partition, all that is stored of one job, and dead letters. `places.ts` has where
 * jobs are looked for that are not over, `ends.ts` the ends of jobs.
 */
import {
  decodeDeferred,
  decodeHistory,
  decodeRun,
  decodeTombstone,
  idOf,
  isTombstone,
  type Run,
  type Tombstone,
} from '../../job/codec.ts';
import { type GateState, gateState } from '../../job/gate.ts';
import type { EntryId } from '../../job/job.ts';
import type { Attempted, Deferred } from '../../job/outcome.ts';
import { type QuotaUse, quotaUse } from '../../job/quota.ts';
import type { JobState } from '../../job/state.ts';
import type { Redis } from '../connection/connect.ts';
import type { PartitionRef } from '../keys.ts';
import { seenIn } from '../scripts/edits.ts';
import { type ConsumerInfo, consumers, ownPending, readEntries } from '../scripts/ready.ts';
import type { Delivery, Moved } from '../scripts/replies.ts';
import { scripts } from '../scripts/script-table.ts';
import { dueOf, fieldsOf, list, type Reply, run, score, scoresOf, text } from '../scripts/scripts.ts';
import { type Pause, pauseIn } from '../scripts/upkeep.ts';
import { stateAt } from './look.ts';

export interface PartitionStats {
  readonly nowMs: number;
  readonly scheduled: number;
  readonly headDueMs: number | undefined;
  /** Jobs of a gated queue that are due and in line. */
  readonly waiting: number;
  /** The due time of the one that has waited longest. */
  readonly waitingSinceMs: number | undefined;
  /** Entries nobody has read yet. */
  readonly ready: number;
  /** Entries some worker holds: running, or about to start. */
  readonly running: number;
  readonly dead: number;
  readonly done: number;
  readonly term: string | undefined;
  readonly leaseTtlMs: number;
  readonly paused: boolean;
  /** Since when and why, while it is paused. */
  readonly pause?: Pause;
  readonly wakeMs: number | undefined;
  /** When a job was started last; undefined: none ever was. */
  readonly startedMs?: number;
  /** The youngest tombstone that went because of their number, within about the last done window, and when that was. */
  readonly evicted?: { readonly ageMs: number; readonly atMs: number };
  /** How much may run at once; undefined: the queue is not gated. */
  readonly gate?: GateState | undefined;
  /** How much there may be, and is; undefined without limits. */
  readonly quota?: QuotaUse | undefined;
  /** Durable counters: scheduled, promoted, done, retried, deferred, dead, cancelled, replayed, adopted, reclaimed, … */
  readonly counters: Readonly<Record<string, number>>;
  /** Sets whose callbacks were not made yet; undefined: none. */
  readonly sets?: number;
}

/** What is known about one job, at one moment. */
export interface Peek {
  readonly nowMs: number;
  readonly state: JobState;
  readonly member: string;
  readonly record: string | undefined;
  readonly tombstone: Tombstone | undefined;
  readonly dueMs: number | undefined;
  readonly run: Run | undefined;
  readonly overMs: number | undefined;
  /** All that is seen of a job that is not over, for a change that holds only if it is still so. */
  readonly seen: string | undefined;
}

export interface DeadLetter {
  /** The id of its entry in the stream of dead letters. */
  readonly entry: string;
  readonly id: string;
  readonly bare: boolean;
  readonly record: string;
  readonly reason: string;
  readonly history: readonly Attempted[];
  readonly deferred: Deferred | undefined;
  readonly attempts: number;
  readonly failures: number;
  readonly crashes: number;
  readonly generation: number;
  readonly atMs: number;
}

export async function stats(redis: Redis, ref: PartitionRef): Promise<PartitionStats> {
  const reply = list(await run(redis, scripts.stats, { keys: ref.keys, args: {} })).map(text);
  const [now, scheduled, head, entries, pending, dead, done, , , term, ttl, stale, waiting, since, sets, ...flat] =
    reply;
  const meta = fieldsOf(flat);
  const pause = pauseIn(meta.get('paused'));
  const counters = [...meta]
    .filter(([field]) => field.startsWith('n.'))
    .map(([field, value]) => [field.slice(2), Number(value)]);
  return {
    nowMs: Number(now),
    scheduled: Number(scheduled),
    headDueMs: head === undefined || head === '' ? undefined : score(head),
    waiting: Number(waiting),
    waitingSinceMs: since === undefined || since === '' ? undefined : Number(since),
    ready: Math.max(0, Number(entries) - Number(pending)),
    running: Number(pending),
    ...(Number(sets) > 0 && { sets: Number(sets) }),
    dead: Number(dead),
    done: Number(done),
    term: term === '' ? undefined : term,
    leaseTtlMs: Number(ttl),
    paused: pause !== undefined,
    ...(pause && { pause }),
    ...gateOf(meta, Number(now)),
    ...evictedOf(meta.get('evicted')),
    ...quotaOf(meta, Number(scheduled) + Number(waiting) + Math.max(0, Number(entries) - Number(stale))),
    wakeMs: meta.has('wake') ? Number(meta.get('wake')) : undefined,
    ...(meta.has('token') && { startedMs: startOf(meta.get('token') ?? '') }),
    counters: Object.fromEntries(counters) as Record<string, number>,
  };
}

/** Tokens grow with the clock of Redis in µs, so that of a start says when it was. */
export const startOf = (token: string): number => Math.floor(Number(token) / 1000);

const OLDEST_PAGE = 100;
const OLDEST_PAGES_MAX = 50;

/** The job that is due and has waited longest for its start. */
export interface OldestDue {
  /** For how many ms it has waited, by the clock of Redis; 0: no job waits. */
  readonly ageMs: number;
  /** It is in line: a limit of its queue, or the number of workers, has let it not through yet. */
  readonly inLine: boolean;
}

export const oldestDueAge = async (redis: Redis, ref: PartitionRef): Promise<number> =>
  (await oldestDue(redis, ref)).ageMs;

/**
 * The oldest job that is due and has not started, wherever it waits: in scheduled, in line, in ready or at a worker. Paused
 * partitions count too. Jobs in scheduled and those that workers hold are compared with each other (of the latter the
 * 5,000 oldest); of those that nobody has read yet the first 100 stand for the rest. What comes later into ready was put
 * or handed back later than that, whatever its due time: so the answer is never less than the longest time for which a job has
 * been due and in Redis, except for one that a worker handed back unstarted.
 */
export async function oldestDue(redis: Redis, ref: PartitionRef): Promise<OldestDue> {
  let ageMs = 0;
  let lineMs = 0;
  let after = '';
  for (let pages = 0; pages < OLDEST_PAGES_MAX; pages += 1) {
    const args = { after, limit: OLDEST_PAGE };
    const reply = list(await run(redis, scripts.oldest, { keys: ref.keys, args })).map(text);
    const [now = '', since = '', next = '', lined = ''] = reply;
    if (since !== '') ageMs = Math.max(ageMs, Number(now) - Number(since));
    if (lined !== '') lineMs = Math.max(lineMs, Number(now) - Number(lined));
    if (next === '') break;
    after = next;
  }
  return { ageMs: Math.max(ageMs, lineMs), inLine: lineMs > ageMs };
}

/** Jobs of one slice, and bytes of their records. */
const LAPSED_MAX = 200;
const LAPSED_BYTES_MAX = 256 * 1024;

/**
 * Jobs past their expiry that no worker has and that were never started, of one slice of those that are due.
 *
 * @returns where the next slice begins, undefined: that was the last
 */
export async function lapsed(
  redis: Redis,
  { keys }: PartitionRef,
  {
    cursor = '',
    nowMs,
    limit = LAPSED_MAX,
  }: { readonly cursor?: string; readonly nowMs?: number; readonly limit?: number },
): Promise<{ readonly cursor: string | undefined; readonly looked: number; readonly jobs: readonly Delivery[] }> {
  const args = { now: nowMs ?? '', cursor, limit, bytes: LAPSED_BYTES_MAX };
  const [next, looked, ...words] = list(await run(redis, scripts.lapsed, { keys, args })).map(text);
  const jobs = Array.from({ length: words.length / 3 }, (_, nth): Delivery => {
    const [entry = '', member = '', due] = words.slice(3 * nth, 3 * nth + 3);
    return { entry: entry as EntryId, member, dueMs: Number(due) };
  });
  return { cursor: next === '' ? undefined : next, looked: Number(looked), jobs };
}

/** `evicted` in the meta hash: `<age ms> <when ms>`. */
function evictedOf(value = ''): Pick<PartitionStats, 'evicted'> {
  const [, age, at] = /^(\d+) (\d+)$/.exec(value) ?? [];
  return age === undefined || at === undefined ? {} : { evicted: { ageMs: Number(age), atMs: Number(at) } };
}

function gateOf(meta: ReadonlyMap<string, string>, nowMs: number): Pick<PartitionStats, 'gate'> {
  const [gates, used, gate2, lent = null] = ['gates', 'gate', 'gate2', 'lent'].map((field) => meta.get(field));
  const gate = gateState({ gates, gate: used, gate2, lent }, nowMs);
  return gate ? { gate } : {};
}

/** The limits of the partition in the meta hash, and what is used of them. */
function quotaOf(meta: ReadonlyMap<string, string>, pending: number): Pick<PartitionStats, 'quota'> {
  const quota = quotaUse({ quota: meta.get('quota'), held: meta.get('held') }, pending);
  return quota ? { quota } : {};
}

/** The story of one member, or undefined when nothing is known about it. */
export async function peek(redis: Redis, ref: PartitionRef, member: string): Promise<Peek | Moved | undefined> {
  const args = { generation: ref.layoutGeneration, member };
  const reply = list(await run(redis, scripts.peek, { keys: ref.keys, args })).map(text);
  if (reply[0] === 'moved') return { kind: 'moved', layoutGeneration: Number(reply[1]) };
  const [now, value = '', due = '', runText = '', over = ''] = reply;
  if (value === '' && due === '') return undefined;
  const tombstone = isTombstone(value) ? decodeTombstone(value) : undefined;
  const started = decodeRun(runText);
  const record = value === '' || tombstone ? undefined : value;
  const isLive = record !== undefined || due !== '';
  return {
    nowMs: Number(now),
    state: stateOf({ tombstone, due, run: started }),
    member,
    record,
    tombstone,
    dueMs: due === '' ? heldUntil(started) : dueOf(due).dueMs,
    run: started,
    overMs: over === '' ? undefined : Number(over),
    seen: isLive
      ? seenIn({ record, run: record === undefined ? undefined : started, due: due || undefined })
      : undefined,
  };
}

/** A run with an owner has a due time where its job was started before it. */
const heldUntil = (started: Run | undefined) => (started?.owner === undefined ? undefined : started.nextDueMs);

/** The token of the last start of each member, `0` for one that was never started. */
export async function lastTokens(
  redis: Redis,
  ref: PartitionRef,
  members: readonly string[],
): Promise<readonly string[]> {
  const runs = await redis.hmget(ref.keys.runs, ...members);
  return runs.map((run) => /^\d+/.exec(run ?? '')?.[0] ?? '0');
}

export interface NewestAsk {
  readonly limit: number;
  readonly before?: string | undefined;
}

/** Dead letters, newest first, from `before` (exclusive) backwards. */
export async function deadLetters(
  redis: Redis,
  ref: PartitionRef,
  { limit, before = '+' }: NewestAsk,
): Promise<readonly DeadLetter[]> {
  const reply = await redis.call('XREVRANGE', ref.keys.dead, before === '+' ? '+' : `(${before}`, '-', 'COUNT', limit);
  return list(reply as Reply).map(deadLetterOf);
}

export interface OldestAsk {
  readonly limit: number;
  readonly after?: string | undefined;
  readonly last?: string | undefined;
}

/** Dead letters, oldest first, from `after` (exclusive) on, up to `last`. */
export async function oldestDeadLetters(
  redis: Redis,
  ref: PartitionRef,
  { limit, after = '', last = '+' }: OldestAsk,
): Promise<readonly DeadLetter[]> {
  const reply = await redis.call('XRANGE', ref.keys.dead, after === '' ? '-' : `(${after}`, last, 'COUNT', limit);
  return list(reply as Reply).map(deadLetterOf);
}

/** One dead letter, or undefined. */
export async function deadLetter(redis: Redis, ref: PartitionRef, entry: string): Promise<DeadLetter | undefined> {
  const found = list((await redis.call('XRANGE', ref.keys.dead, entry, entry)) as Reply);
  return found[0] === undefined ? undefined : deadLetterOf(found[0]);
}

export function stateOf({
  tombstone,
  due,
  run: started,
}: {
  tombstone: Tombstone | undefined;
  due: string;
  run: Run | undefined;
}): JobState {
  if (tombstone) return tombstone.outcome;
  if (started?.owner !== undefined) return 'running';
  return stateAt(due === '' ? undefined : due);
}

function deadLetterOf(reply: Reply): DeadLetter {
  const [entry, flat] = list(reply);
  const fields = fieldsOf(flat);
  const field = (name: string) => fields.get(name) ?? '';
  return {
    entry: text(entry),
    ...idOf(field('member')),
    record: field('record'),
    reason: field('reason'),
    history: decodeHistory(field('history').split('\n')),
    deferred: decodeDeferred(field('history').split('\n')),
    attempts: Number(field('attempts')),
    failures: Number(field('failures')),
    crashes: Number(field('crashes')),
    generation: Number(field('generation')),
    atMs: Number(field('at')),
  };
}

// When jobs of a partition come due: how many in each span, and the due time of the first job. Each span costs one
// ZCOUNT, whatever the number of jobs.

/** Ends of the spans, ms from now; the last span is open. The jobs that are due by now come before them. */
export const DUE_SPANS_MS = [60_000, 300_000, 3_600_000, 21_600_000, 86_400_000, 604_800_000] as const;

/** How many jobs are due by now, how many in each span, and how many later. */
export async function dueNext(redis: Redis, { keys }: PartitionRef, nowMs: number): Promise<readonly number[]> {
  const ends = [nowMs, ...DUE_SPANS_MS.map((ms) => nowMs + ms)];
  const bounds = ends.map((end, at) => [at === 0 ? '-inf' : `(${ends[at - 1]}`, String(end)] as const);
  const spans = [...bounds, [`(${ends.at(-1)}`, `(${scoresOf('scheduled').to}`] as const];
  return Promise.all(spans.map(([from, to]) => redis.zcount(keys.scheduled, from, to)));
}

const AT_ONCE = 500;

/** How many jobs are due by the first edge, then how many each bucket holds: from its edge to before the next. */
export async function dueCounts(
  redis: Redis,
  { keys }: PartitionRef,
  edges: readonly number[],
): Promise<readonly number[]> {
  const bounds = edges.map((edge, at) => {
    if (at === 0) return ['-inf', String(edge)] as const;
    return [`${at === 1 ? '(' : ''}${edges[at - 1]}`, `(${edge}`] as const;
  });
  if ((await redis.zcard(keys.scheduled)) === 0) return bounds.map(() => 0);
  const counts: number[] = [];
  for (let from = 0; from < bounds.length; from += AT_ONCE) {
    const slice = bounds.slice(from, from + AT_ONCE);
    counts.push(...(await Promise.all(slice.map(([low, high]) => redis.zcount(keys.scheduled, low, high)))));
  }
  return counts;
}

// What each consumer of a partition holds, and what it runs. For people: bounded, and not one moment in time.

/** A job that a consumer holds. */
export interface Held {
  readonly id: string;
  readonly bare: boolean;
  /** Undefined: delivered, and not started by this consumer yet. */
  readonly attempt: number | undefined;
  readonly startedMs: number | undefined;
  /** Where it was started before this time, its handler begins then. */
  readonly dueMs: number;
}

export interface Holding extends ConsumerInfo {
  /** The oldest jobs it holds, at most as many as were asked for. */
  readonly jobs: readonly Held[];
}

/** Every consumer of the group with its oldest entries. */
export async function holdings(redis: Redis, ref: PartitionRef, limit: number): Promise<readonly Holding[]> {
  if ((await redis.exists(ref.keys.ready)) === 0) return [];
  const all: Holding[] = [];
  for (const consumer of await consumers(redis, ref.keys)) {
    const jobs = consumer.pending === 0 ? [] : await heldBy(redis, ref, { consumer: consumer.name, limit });
    all.push({ ...consumer, jobs });
  }
  return all;
}

async function heldBy(
  redis: Redis,
  { keys }: PartitionRef,
  of: { readonly consumer: string; readonly limit: number },
): Promise<readonly Held[]> {
  const entries = await readEntries(redis, keys, await ownPending(redis, keys, { ...of, idleMs: 0 }));
  if (entries.length === 0) return [];
  const runs = await redis.hmget(keys.runs, ...entries.map(({ member }) => member));
  return entries.map(({ entry, member, dueMs }, at) => {
    const run = decodeRun(runs[at] ?? '');
    const own = run?.owner === of.consumer && run.entry === entry ? run : undefined;
    const startedMs = own === undefined ? undefined : startOf(own.token);
    return { ...idOf(member), attempt: own?.attempts, startedMs, dueMs };
  });
}
