/**
 * What a person does to a whole partition: let it rest and go on, remove old dead letters, erase a person from its history,
 * remove it. Each is one script, so it may be repeated after a lost reply.
 */
import { isCluster, memberOf } from '../connection/cluster/members.ts';
import type { Redis } from '../connection/connect.ts';
import { timeAt } from '../connection/server-clock.ts';
import type { PartitionRef } from '../keys.ts';
import { scripts } from './script-table.ts';
import { bytesOf, list, run, text } from './scripts.ts';

export interface Pause {
  /** When it began, epoch ms; undefined when somebody else wrote the field. */
  readonly sinceMs: number | undefined;
  readonly reason: string;
}

export interface PauseReply {
  /** `already`: paused before, or not paused when it should resume. */
  readonly kind: 'ok' | 'already';
  /** The pause that holds, or the one that has ended. */
  readonly pause: Pause | undefined;
}

export interface PurgeReply {
  readonly matched: number;
  readonly looked: number;
  /** Where the next batch goes on; undefined when there are no more. */
  readonly next: string | undefined;
}

/** What a partition holds. */
export interface Holds {
  readonly scheduled: number;
  /** Entries of ready: waiting and running. */
  readonly entries: number;
  readonly dead: number;
}

export async function pause(
  redis: Redis,
  ref: PartitionRef,
  { reason, by = '', nowMs }: { readonly reason: string; readonly by?: string; readonly nowMs?: number },
): Promise<PauseReply> {
  const args = { now: nowMs ?? '', reason, by };
  return pauseReply(list(await run(redis, scripts.pause, { keys: ref.keys, args })).map(text));
}

/**
 * Tells the workers of a partition to let go all jobs that they hold until they are due, and says in how many ms the last of
 * these is due. Where none was ever handed out ahead, it is one read.
 */
export async function lettingGo(redis: Redis, { keys }: PartitionRef): Promise<number> {
  const aheadMs = Number((await redis.hget(keys.meta, 'ahead')) ?? 0);
  if (aheadMs === 0) return 0;
  await redis.spublish(keys.stop, 'let-go *').catch(() => undefined);
  const leftMs = aheadMs - (await timeAt(isCluster(redis) ? memberOf(redis, keys.meta) : redis));
  // More than any worker holds one: the clock of Redis went back.
  return leftMs > 0 && leftMs <= 10_000 ? Math.ceil(leftMs) : 0;
}

export async function resume(redis: Redis, ref: PartitionRef, by = ''): Promise<PauseReply> {
  return pauseReply(list(await run(redis, scripts.resume, { keys: ref.keys, args: { by } })).map(text));
}

export interface PurgeAsk {
  readonly mode: 'count' | 'remove';
  /** Undefined: of any age. */
  readonly ageMs?: number | undefined;
  readonly limit: number;
  readonly reason?: string | undefined;
  readonly after?: string | undefined;
  /** The last that is looked at; undefined: the newest. */
  readonly last?: string | undefined;
  readonly nowMs?: number;
}

/** Looks at no more than `limit` dead letters, and at fewer when they are large, from the oldest or after the one named. */
export async function purge(
  redis: Redis,
  ref: PartitionRef,
  { mode, ageMs, limit, reason = '', after = '', last = '', nowMs }: PurgeAsk,
): Promise<PurgeReply> {
  const args = { now: nowMs ?? '', age: ageMs ?? '', reason, after, last, limit, mode };
  const [matched, looked, next] = list(await run(redis, scripts.purge, { keys: ref.keys, args })).map(text);
  return { matched: Number(matched), looked: Number(looked), next: next === '' ? undefined : next };
}

/** Removes the dead letters that are named. @returns how many of them were there */
export async function forget(redis: Redis, ref: PartitionRef, deadLetters: readonly string[]): Promise<number> {
  const args = { now: '', age: '', reason: '', after: '', last: '', limit: 0, mode: 'named' };
  const [gone] = list(await run(redis, scripts.purge, { keys: ref.keys, args, each: deadLetters })).map(text);
  return Number(gone);
}

export interface EraseAsk {
  readonly tag: string;
  readonly mode: 'count' | 'remove';
  readonly limit: number;
  readonly after?: string | undefined;
}

/** Looks at no more than `limit` records of the history, the earliest end first, or from behind the place named. */
export async function erase(
  redis: Redis,
  { keys }: PartitionRef,
  { tag, mode, limit, after }: EraseAsk,
): Promise<PurgeReply> {
  const [, score = '', id = ''] = /^(\S+) (.*)$/s.exec(after ?? '') ?? [];
  const each = after === undefined ? [] : [Buffer.from(id, 'latin1')];
  const reply = await run(redis, scripts.erase, { keys, args: { tag, mode, score, limit }, each, bytes: true });
  const [matched, looked, atScore, atId] = list(reply);
  const next = atId === undefined ? undefined : `${text(atScore)} ${text(atId)}`;
  return { matched: Number(matched), looked: Number(looked), next };
}

/** Looks at about as many jobs and dead letters with log lines as `limit`, 30 at most; `after`: where the call before it ended. */
export async function eraseLines(
  redis: Redis,
  { keys }: PartitionRef,
  { tag, mode, limit, after = '0' }: EraseAsk,
): Promise<PurgeReply> {
  const reply = list(await run(redis, scripts.eraseLines, { keys, args: { tag, mode, cursor: after, limit } }));
  const [matched, looked, next = '0'] = reply.map(text);
  return { matched: Number(matched), looked: Number(looked), next: next === '0' ? undefined : next };
}

/** The place of the record of the latest end, as `erase` says it; undefined: there is none. */
export async function lastEnd(redis: Redis, { keys }: PartitionRef): Promise<string | undefined> {
  const [id, score] = list(bytesOf(await redis.callBuffer('ZRANGE', keys.ended, 0, 0, 'REV', 'WITHSCORES'))).map(text);
  return id === undefined ? undefined : `${score} ${id}`;
}

/** Removes a partition with all its keys. Without `force` only if it holds neither jobs nor dead letters. */
export async function remove(
  redis: Redis,
  ref: PartitionRef,
  { force }: { readonly force: boolean },
): Promise<{ readonly kind: 'ok' | 'holds'; readonly holds: Holds }> {
  const reply = list(await run(redis, scripts.remove, { keys: ref.keys, args: { force: force ? 1 : 0 } }));
  const [scheduled = 0, entries = 0, dead = 0] = reply.slice(1).map(Number);
  return { kind: reply[0] === 'ok' ? 'ok' : 'holds', holds: { scheduled, entries, dead } };
}

/**
 * The pause that `paused` of the meta hash says, if it says one. In strict order a mark and the least version that may let jobs
 * through stand before it: `lua/lib/pausing.lua`.
 */
export function pauseIn(value: string | null | undefined): Pause | undefined {
  const [, marked, said = marked === undefined ? value : undefined] = /^(![^ ]+)(?: (.+))?$/s.exec(value ?? '') ?? [];
  return said == null ? undefined : pauseOf(said);
}

/** The least version in the mark of a partition that only newer processes may serve; undefined: it has no mark. */
export const leastVersionIn = (value: string | null | undefined): string | undefined =>
  /^!([^ ]+)/.exec(value ?? '')?.[1];

/** `<since ms> <reason>`. */
export function pauseOf(value: string): Pause {
  const [, since, reason] = /^(\d{10,16})(?: (.*))?$/s.exec(value) ?? [];
  return since === undefined ? { sinceMs: undefined, reason: value } : { sinceMs: Number(since), reason: reason ?? '' };
}

function pauseReply([kind, value = '']: readonly string[]): PauseReply {
  return { kind: kind === 'ok' ? 'ok' : 'already', pause: value === '' ? undefined : pauseOf(value) };
}
