/**
 * Schedules in Redis: definitions in the control slot, and in the partition that all jobs of a schedule live in, when it
 * is looked at next and how far it was fired. The partition is armed before the definition is written, and disarmed
 * after it is gone, so that a process that dies in between leaves a look for nothing and never a forgotten schedule.
 */
import { partitionOf } from '../core/routing.ts';
import { type OverlapPolicy, routingOf } from '../core/schedule.ts';
import type { Redis } from './connect.ts';
import { controlKeys, type PartitionRef, partitionRef } from './keys.ts';
import type { QueueLayout } from './queues.ts';
import { list, run, text } from './scripts.ts';

/** How far a schedule was fired. */
export interface Fired {
  /** As it is stored; a call that fires must name it. */
  readonly text: string;
  /** The last instant that was handled, ms. */
  readonly reachedMs: number;
  readonly runs: number;
  readonly skipped: number;
  /** The member that waits until the one before is over. */
  readonly waiting: string | undefined;
  /** The member that was scheduled last. */
  readonly last: string | undefined;
}

export type FireOutcome = 'ok' | 'already' | 'skipped' | 'waiting' | 'ended';

export type FireReply =
  | { readonly kind: 'fired'; readonly nowMs: number; readonly fired: Fired; readonly outcomes: readonly FireOutcome[] }
  | { readonly kind: 'passed' | 'early'; readonly nowMs: number }
  | { readonly kind: 'fenced' };

/** A job of one instant, ready to be sent. */
export interface FireItem {
  readonly member: string;
  readonly record: string;
  readonly dueMs: number;
}

export interface FireCall {
  readonly term: string;
  readonly name: string;
  readonly state: string;
  readonly reachedMs: number;
  /** When to look again; undefined: never. */
  readonly lookMs: number | undefined;
  readonly overlap: OverlapPolicy;
  readonly maxRuns?: number | undefined;
  readonly items: readonly FireItem[];
  readonly nowMs?: number | undefined;
}

/** The partition that a schedule's jobs live in. */
export function partitionOfSchedule(namespace: string, layout: QueueLayout, name: string): PartitionRef {
  const { queue, partitions, generation } = layout;
  return partitionRef(namespace, { queue, partition: partitionOf(`{${routingOf(name)}}`, partitions), generation });
}

/** The texts of definitions; undefined for a name that has none. */
export async function definitions(
  redis: Redis,
  namespace: string,
  names: readonly string[],
): Promise<readonly (string | undefined)[]> {
  if (names.length === 0) return [];
  const texts = await redis.hmget(controlKeys(namespace).schedules, ...names);
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
  return text(await run(redis, 'define', { keys: controlKeys(namespace), args })) as 'ok' | 'changed';
}

/** Has a schedule looked at, now and from now on. */
export async function arm(redis: Redis, ref: PartitionRef, name: string): Promise<'armed' | 'again' | 'moved'> {
  const reply = await run(redis, 'arm', { keys: ref.keys, args: { generation: ref.generation, name } });
  return Array.isArray(reply) ? 'moved' : (text(reply) as 'armed' | 'again');
}

/** Forgets a schedule; with `state`, only if it was neither fired nor armed since that was read. */
export async function disarm(
  redis: Redis,
  ref: PartitionRef,
  name: string,
  state = '',
): Promise<'ok' | 'unknown' | 'changed'> {
  const reply = await run(redis, 'disarm', { keys: ref.keys, args: { name, state } });
  return text(reply) as 'ok' | 'unknown' | 'changed';
}

/** The schedules that are to be looked at, when the next ones are, and the server's time. */
export async function lookedAt(
  redis: Redis,
  ref: PartitionRef,
  { limit, nowMs }: { readonly limit: number; readonly nowMs?: number | undefined },
): Promise<{ readonly names: readonly string[]; readonly nowMs: number; readonly nextMs: number | undefined }> {
  const [time, heads] = await Promise.all([
    nowMs ?? redis.time().then(([seconds, micros]) => Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)),
    redis.zrange(ref.keys.fires, '0', String(limit), 'WITHSCORES'),
  ]);
  const all = heads.flatMap((name, at) => (at % 2 === 0 ? [{ name, atMs: Number(heads[at + 1]) }] : []));
  const due = all.filter(({ atMs }) => atMs <= time).slice(0, limit);
  return { names: due.map(({ name }) => name), nowMs: time, nextMs: all[due.length]?.atMs };
}

/** How far schedules were fired; undefined for one that is not armed. */
export async function firedOf(
  redis: Redis,
  ref: PartitionRef,
  names: readonly string[],
): Promise<readonly (Fired | undefined)[]> {
  if (names.length === 0) return [];
  const texts = await redis.hmget(ref.keys.fired, ...names);
  return texts.map((found) => (found === null ? undefined : decodeFired(found)));
}

/** Schedules the jobs of instants and says when to look again. */
export async function fire(redis: Redis, ref: PartitionRef, call: FireCall): Promise<FireReply> {
  const { term, name, state, overlap, items } = call;
  const args = {
    ...{ now: call.nowMs ?? '', term, name, state, reached: call.reachedMs },
    ...{ look: call.lookMs ?? '', overlap, most: call.maxRuns ?? 0 },
  };
  const each = items.flatMap(({ member, record, dueMs }) => [member, record, dueMs]);
  const [kind, now, stored, ...outcomes] = list(await run(redis, 'fire', { keys: ref.keys, args, each }));
  if (kind === 'fenced') return { kind };
  if (kind === 'passed' || kind === 'early') return { kind, nowMs: Number(now) };
  return {
    ...{ kind: 'fired', nowMs: Number(now), fired: decodeFired(text(stored)) },
    outcomes: outcomes.map((outcome) => text(outcome) as FireOutcome),
  };
}

function decodeFired(stored: string): Fired {
  const [reached, runs, skipped, waiting = '-', last = '-'] = stored.split(' ');
  return {
    ...{ text: stored, reachedMs: Number(reached), runs: Number(runs), skipped: Number(skipped) },
    waiting: waiting === '-' ? undefined : waiting,
    last: last === '-' ? undefined : last,
  };
}
