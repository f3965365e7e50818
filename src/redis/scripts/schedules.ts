/**
 * Schedules in Redis: definitions in the control slot, and in the partition that all jobs of a schedule live in, when it
 * is looked at next and how far it was fired. The partition is armed before the definition is written, and disarmed
 * after it is gone, so that a process that dies in between leaves a look for nothing and never a forgotten schedule.
 */
import { isUtf8 } from 'node:buffer';
import { partitionOf } from '../../job/job-id.ts';
import { decodeFired, type Fired } from '../../schedule/progress.ts';
import { type OverlapPolicy, routingOf } from '../../schedule/schedule.ts';
import { decodeDefinition } from '../../schedule/text.ts';
import { memberOf } from '../connection/cluster/members.ts';
import type { Redis } from '../connection/connect.ts';
import { timeAt } from '../connection/server-clock.ts';
import { controlKeys, type PartitionRef, partitionRef } from '../keys.ts';
import { inParts } from './bytes.ts';
import type { QueueLayout } from './queues.ts';
import { scripts } from './script-table.ts';
import { list, type Reply, run, text } from './scripts.ts';

export type FireOutcome = 'ok' | 'already' | 'skipped' | 'waiting' | 'ended';

/** What became of one schedule of a call. */
export type ScheduleFired =
  | { readonly kind: 'fired'; readonly fired: Fired; readonly outcomes: readonly FireOutcome[] }
  | { readonly kind: 'passed' | 'early' | 'postponed' };

export type FireReply =
  | { readonly kind: 'fired'; readonly nowMs: number; readonly schedules: readonly ScheduleFired[] }
  | { readonly kind: 'fenced' };

export type ArmReply = 'armed' | 'again' | 'unreadable' | 'moved';

/** A job of one instant, ready to be sent. */
export interface FireItem {
  readonly member: string;
  readonly record: string;
  readonly dueMs: number;
}

/** One schedule of a call. */
export interface ScheduleFire {
  readonly name: string;
  readonly state: string;
  /** undefined: only the next look is set, also of a state that nobody can read. */
  readonly reachedMs: number | undefined;
  /** When to look again; undefined: never. */
  readonly lookMs: number | undefined;
  readonly overlap: OverlapPolicy;
  readonly maxRuns?: number | undefined;
  /** So many instants passed that make no job; they count as skipped. */
  readonly missed?: number | undefined;
  readonly items: readonly FireItem[];
}

export interface FireCall {
  readonly term: string;
  readonly schedules: readonly ScheduleFire[];
  readonly nowMs?: number | undefined;
}

/** The partition that a schedule's jobs live in. */
export function partitionOfSchedule(namespace: string, layout: QueueLayout, name: string): PartitionRef {
  const { queue, layoutGeneration } = layout;
  return partitionRef(namespace, { queue, partition: partitionNumber(layout, name), layoutGeneration });
}

export function partitionNumber({ partitions }: Pick<QueueLayout, 'partitions'>, name: string): number {
  return partitionOf(`{${routingOf(name)}}`, partitions);
}

/** The texts of definitions; undefined for a name that has none. */
export async function definitions(
  redis: Redis,
  namespace: string,
  names: readonly string[],
): Promise<readonly (string | undefined)[]> {
  const texts = await inParts(names, (some) => redis.hmget(controlKeys(namespace).schedules, ...some));
  return texts.map((found) => found ?? undefined);
}

/** All definitions, a page at a time; a page may be empty, and a name may come twice while others are written. */
export async function* allDefinitions(
  redis: Redis,
  namespace: string,
): AsyncGenerator<readonly (readonly [name: string, text: string])[], void, undefined> {
  let cursor = '0';
  do {
    const [next, flat] = await redis.hscan(controlKeys(namespace).schedules, cursor, 'COUNT', 500);
    cursor = next;
    yield flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1] ?? ''] as const] : []));
  } while (cursor !== '0');
}

/** Writes a definition, or without `after` deletes it, if it still is what was read; undefined: there was none. */
export async function define(
  redis: Redis,
  namespace: string,
  { name, before, after }: { readonly name: string; readonly before: string | undefined; readonly after?: string },
): Promise<'ok' | 'changed'> {
  const args = { name, before: before ?? '', after: after ?? '' };
  return text(await run(redis, scripts.define, { keys: controlKeys(namespace), args })) as 'ok' | 'changed';
}

/** Has a schedule looked at, now and from now on; `unreadable`: its state is, and stays as it is. */
export async function arm(redis: Redis, ref: PartitionRef, name: string): Promise<ArmReply> {
  const reply = await run(redis, scripts.arm, { keys: ref.keys, args: { generation: ref.layoutGeneration, name } });
  return Array.isArray(reply) ? 'moved' : (text(reply) as ArmReply);
}

/** Forgets a schedule; with `state`, only if it was neither fired nor armed since that was read. */
export async function disarm(
  redis: Redis,
  ref: PartitionRef,
  name: string,
  state = '',
): Promise<'ok' | 'unknown' | 'changed'> {
  const reply = await run(redis, scripts.disarm, { keys: ref.keys, args: { name, state } });
  return text(reply) as 'ok' | 'unknown' | 'changed';
}

/**
 * The schedules that are to be looked at, when the next ones are, and the server's time. What is no text can be no name;
 * it is dropped, because nobody could ever say when to look at it again. `crowded`: more than `limit` come next, together.
 */
export async function lookedAt(
  redis: Redis,
  ref: PartitionRef,
  { limit, nowMs }: { readonly limit: number; readonly nowMs?: number | undefined },
): Promise<{ names: readonly string[]; nowMs: number; nextMs: number | undefined; crowded: boolean }> {
  const [time, heads] = await Promise.all([
    nowMs ?? timeAt(memberOf(redis, ref.keys.fires)).then(Math.floor),
    redis.zrangeBuffer(ref.keys.fires, '0', String(limit), 'WITHSCORES'),
  ]);
  const members = heads.flatMap((name, at) => (at % 2 === 0 ? [{ name, atMs: Number(heads[at + 1]) }] : []));
  const foreign = members.filter(({ name }) => !isUtf8(name)).map(({ name }) => name);
  if (foreign.length > 0) await redis.zrem(ref.keys.fires, ...foreign);
  const all = members.flatMap(({ name, atMs }) => (isUtf8(name) ? [{ name: name.toString(), atMs }] : []));
  const due = all.filter(({ atMs }) => atMs <= time).slice(0, limit);
  const nextMs = all[due.length]?.atMs;
  const crowded = due.length === 0 && all.length > limit && all.at(-1)?.atMs === nextMs;
  return { names: due.map(({ name }) => name), nowMs: time, nextMs, crowded };
}

/** Some of the schedules that are looked at next, all at just this moment; found by rank, since there may be thousands. */
export async function lookedAtThen(
  redis: Redis,
  ref: PartitionRef,
  { atMs, from, limit }: { readonly atMs: number; readonly from: number; readonly limit: number },
): Promise<readonly string[]> {
  const found = await redis.zrange(ref.keys.fires, String(from), String(from + limit - 1), 'WITHSCORES');
  return found.filter((_, at) => at % 2 === 0 && Number(found[at + 1]) === atMs);
}

/** How far schedules were fired; undefined for one that is not armed. */
export async function firedOf(
  redis: Redis,
  ref: PartitionRef,
  names: readonly string[],
): Promise<readonly (Fired | undefined)[]> {
  const texts = await inParts(names, (some) => redis.hmget(ref.keys.fired, ...some));
  return texts.map((found) => (found === null ? undefined : decodeFired(found)));
}

/** Definitions that are read at once, since one may hold 256 KiB of data. */
const READ_AT_ONCE = 10;

/** A schedule of which a partition knows how far it was fired, and that is defined no more, or for another queue. */
export interface GoneSchedule {
  readonly name: string;
  readonly state: string;
}

/**
 * A page of what a partition has fired, and those of it that are gone. `among`: all, or only those that the leader does not look
 * at, as it forgets the others. `next` undefined: that was the last page.
 */
export async function goneSchedules(
  redis: Redis,
  ref: PartitionRef,
  of: {
    readonly namespace: string;
    readonly among: 'all' | 'not looked at';
    readonly cursor: string;
    readonly limit: number;
  },
): Promise<{ readonly next: string | undefined; readonly looked: number; readonly gone: readonly GoneSchedule[] }> {
  const [next, flat] = await redis.hscan(ref.keys.fired, of.cursor, 'COUNT', of.limit);
  const all = flat.flatMap((name, at) => (at % 2 === 0 ? [{ name, state: flat[at + 1] ?? '' }] : []));
  const suspects = of.among === 'all' ? all : await notLookedAt(redis, ref, all);
  const gone: GoneSchedule[] = [];
  for (let from = 0; from < suspects.length; from += READ_AT_ONCE) {
    const some = suspects.slice(from, from + READ_AT_ONCE);
    const names = some.map(({ name }) => name);
    const texts = await definitions(redis, of.namespace, names);
    gone.push(...some.filter(({ name }, at) => isGone(ref, name, texts[at])));
  }
  return { next: next === '0' ? undefined : next, looked: all.length, gone };
}

async function notLookedAt<T extends { readonly name: string }>(
  redis: Redis,
  { keys }: PartitionRef,
  all: readonly T[],
): Promise<readonly T[]> {
  if (all.length === 0) return [];
  const places = await redis.zmscore(keys.fires, ...all.map(({ name }) => name));
  return all.filter((_, at) => places[at] === null);
}

/** What nobody can read is not gone. */
function isGone({ queue }: PartitionRef, name: string, text: string | undefined): boolean {
  if (text === undefined) return true;
  try {
    return decodeDefinition(name, text).schedule.queue !== queue;
  } catch {
    return false;
  }
}

/** Schedules the jobs of instants and says when to look again, for as many schedules as the caller packs into a call. */
export async function fire(redis: Redis, ref: PartitionRef, { term, schedules, nowMs }: FireCall): Promise<FireReply> {
  const each: (string | number)[] = [];
  for (const { name, state, reachedMs, lookMs, overlap, maxRuns, missed, items } of schedules) {
    each.push(name, state, reachedMs ?? '', lookMs ?? '', overlap, maxRuns ?? 0, missed ?? 0, items.length);
    for (const { member, record, dueMs } of items) each.push(member, record, dueMs);
  }
  const reply = await run(redis, scripts.fire, { keys: ref.keys, args: { now: nowMs ?? '', term }, each });
  const [kind, now, ...states] = list(reply);
  if (kind === 'fenced') return { kind };
  return { kind: 'fired', nowMs: Number(now), schedules: states.map(scheduleFired) };
}

function scheduleFired(reply: Reply): ScheduleFired {
  const [kind, stored, ...outcomes] = list(reply);
  if (kind !== 'fired') return { kind: text(kind) as 'passed' | 'early' | 'postponed' };
  return { kind, fired: decodeFired(text(stored)), outcomes: outcomes as readonly FireOutcome[] };
}
