/**
 * Where jobs are looked for, one source for each question, a slice at a time. A slice begins behind the place where the
 * last one ended. A place is not an offset: jobs that come and go in front of it do not move it, so the walk meets each job
 * that stays exactly once. A walk ends at the last place that there was when it began, so it also ends while others add
 * jobs behind that place.
 *
 *   scheduled   by due time and member   `page.lua`, which finds the place also when its job has left
 *   waiting     by due time and member   the same: jobs in line stand behind the others
 *   tag         by member                the index of tags
 *   ready       by entry                 the stream
 *   running     by entry                 what consumers hold
 */
import { isTombstone } from '../../job/codec.ts';
import type { EntryId } from '../../job/job.ts';
import type { Redis } from '../connection/connect.ts';
import { GROUP, type PartitionRef } from '../keys.ts';
import { readEntries } from '../scripts/ready.ts';
import { type Moved, moved } from '../scripts/replies.ts';
import { scripts } from '../scripts/script-table.ts';
import {
  bytesOf,
  dueOf,
  fieldsOf,
  list,
  type Reply,
  run,
  type Scores,
  score,
  scoresOf,
  text,
} from '../scripts/scripts.ts';

/** A member where it was met. */
export interface Place {
  readonly member: string;
  /** Behind it the next slice begins. */
  readonly at: string;
  /** As its entry says. */
  readonly dueMs?: number;
  /** Of the entry in ready: when it came there. */
  readonly entryMs?: number;
}

export interface Slice {
  readonly places: readonly Place[];
  /** Behind it the next slice begins; undefined at the end. */
  readonly next: string | undefined;
}

/** From `fromMs` to before `toMs`. */
export interface DueRange {
  readonly fromMs: number | undefined;
  readonly toMs: number | undefined;
}

/** What is looked through: a state, or the index of tags. */
export type Source =
  | { readonly kind: 'scheduled' | 'waiting'; readonly due: DueRange }
  | { readonly kind: 'ready' | 'running' }
  | { readonly kind: 'tag'; readonly tag: string };

export interface Ask {
  readonly after: string | undefined;
  /** The last place that is met; undefined: the last that there is. */
  readonly last: string | undefined;
  readonly limit: number;
}

/** What there is to be looked through, when a walk begins. */
export interface Extent {
  /** The last place, as `Ask` takes it; undefined: there is none. */
  readonly last: string | undefined;
  readonly count: number;
}

export function placesOf(
  redis: Redis,
  ref: PartitionRef,
  { source, ...ask }: Ask & { readonly source: Source },
): Promise<Slice | Moved> {
  switch (source.kind) {
    case 'scheduled':
    case 'waiting':
      return scheduled(redis, ref, { ...ask, scores: scoresOf(source.kind, source.due) });
    case 'ready':
      return unmoved(redis, ref, () => ready(redis, ref, ask));
    case 'running':
      return unmoved(redis, ref, () => running(redis, ref, ask));
    case 'tag':
      return unmoved(redis, ref, () => tagged(redis, ref, { ...ask, tag: source.tag }));
  }
}

/** Where a walk that begins now ends. Of scheduled the last place is a due time, with all its jobs. */
export async function extentOf(redis: Redis, { keys }: PartitionRef, source: Source): Promise<Extent> {
  switch (source.kind) {
    case 'scheduled':
    case 'waiting': {
      const { from, to } = scoresOf(source.kind, source.due);
      const range = [`(${to}`, from, 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES'] as const;
      const [count, found] = await Promise.all([
        redis.zcount(keys.scheduled, from, `(${to}`),
        redis.call('ZRANGE', keys.scheduled, ...range),
      ]);
      const [, last] = list(found as Reply).map(text);
      return { last, count };
    }
    case 'ready': {
      const [count, found] = await Promise.all([
        redis.xlen(keys.ready),
        redis.callBuffer('XREVRANGE', keys.ready, '+', '-', 'COUNT', 1),
      ]);
      const [newest] = list(bytesOf(found)).map(list);
      return { last: newest && text(newest[0]), count };
    }
    case 'running': {
      if ((await redis.exists(keys.ready)) === 0) return { last: undefined, count: 0 };
      const [count, , last] = list((await redis.call('XPENDING', keys.ready, GROUP)) as Reply);
      return { last: Number(count) === 0 ? undefined : text(last), count: Number(count) };
    }
    case 'tag': {
      const [from, to] = [`[${source.tag}\0`, `(${source.tag}\u0001`];
      const [count, found] = await Promise.all([
        // Of all tags: it only has to be no less.
        redis.zcard(keys.tags),
        redis.callBuffer('ZRANGE', keys.tags, to, from, 'BYLEX', 'REV', 'LIMIT', 0, 1),
      ]);
      const [last] = list(bytesOf(found)).map(text);
      return { last: last?.slice(source.tag.length + 1), count };
    }
  }
}

/**
 * Members that have a record, in no order and some of them twice. What has a record from the first slice to the last is in
 * one of them, wherever its job goes meanwhile.
 */
export function recorded(
  redis: Redis,
  ref: PartitionRef,
  { after = '0', limit }: Omit<Ask, 'last'>,
): Promise<Slice | Moved> {
  return unmoved(redis, ref, async () => {
    const [next, flat] = list(bytesOf(await redis.callBuffer('HSCAN', ref.keys.jobs, after, 'COUNT', limit)));
    const words = list(flat).map(text);
    const members = words.filter((_, at) => at % 2 === 0 && !isTombstone(words[at + 1] ?? ''));
    const cursor = text(next);
    return { places: members.map((member) => ({ member, at: member })), next: cursor === '0' ? undefined : cursor };
  });
}

/** How many jobs are scheduled, or in line, in a range of due times where there is one. */
export function countScheduled(
  redis: Redis,
  { keys }: PartitionRef,
  source: { readonly kind: 'scheduled' | 'waiting'; readonly due: DueRange },
): Promise<number> {
  const { from, to } = scoresOf(source.kind, source.due);
  return redis.zcount(keys.scheduled, from, `(${to}`);
}

/** The generation is read with the slice: a partition that has another one holds other jobs. */
export async function unmoved<T>(redis: Redis, ref: PartitionRef, read: () => Promise<T>): Promise<T | Moved> {
  const [generation, slice] = await Promise.all([redis.hget(ref.keys.meta, 'generation'), read()]);
  const layoutGeneration = Number(generation ?? 0);
  return layoutGeneration === ref.layoutGeneration ? slice : { kind: 'moved', layoutGeneration };
}

async function scheduled(
  redis: Redis,
  ref: PartitionRef,
  { after, last, limit, scores }: Ask & { readonly scores: Scores },
): Promise<Slice | Moved> {
  const [, from = '', member = ''] = /^(\S+) (.*)$/s.exec(after ?? '') ?? [];
  const each = after === undefined ? [] : [Buffer.from(member, 'latin1')];
  // What is due at the end of the range is not in it.
  const to = last === undefined || score(last) >= scores.to ? `(${scores.to}` : last;
  const bounds = { from: scores.from, to, score: from, limit };
  const args = { generation: ref.layoutGeneration, ...bounds };
  const reply = list(await run(redis, scripts.page, { keys: ref.keys, args, each, bytes: true }));
  const other = moved(reply);
  if (other) return other;
  const words = reply.slice(1).map(text);
  const places = Array.from({ length: words.length / 2 }, (_, nth): Place => {
    const [name = '', at = ''] = [words[2 * nth], words[2 * nth + 1]];
    return { member: name, at: `${at} ${name}`, dueMs: dueOf(at).dueMs };
  });
  return sliceOf(places, limit);
}

async function tagged(
  redis: Redis,
  { keys }: PartitionRef,
  { after, last, limit, tag }: Ask & { readonly tag: string },
): Promise<Slice> {
  const from = after === undefined ? `[${tag}\0` : `(${tag}\0${after}`;
  const to = last === undefined ? `(${tag}\u0001` : `[${tag}\0${last}`;
  const range = [Buffer.from(from, 'latin1'), Buffer.from(to, 'latin1'), 'BYLEX', 'LIMIT', 0, limit] as const;
  const entries = list(bytesOf(await redis.callBuffer('ZRANGE', keys.tags, ...range))).map(text);
  const members = entries.map((entry) => entry.slice(tag.length + 1));
  return sliceOf(
    members.map((member) => ({ member, at: member })),
    limit,
  );
}

async function ready(redis: Redis, { keys }: PartitionRef, { after, last = '+', limit }: Ask): Promise<Slice> {
  const from = after === undefined ? '-' : `(${after}`;
  const reply = list(bytesOf(await redis.callBuffer('XRANGE', keys.ready, from, last, 'COUNT', limit))).map(list);
  const places = reply.map(([id, flat]): Place => {
    const [entry, fields] = [text(id), fieldsOf(flat)];
    return {
      member: fields.get('member') ?? '',
      at: entry,
      dueMs: Number(fields.get('due')),
      entryMs: Number.parseInt(entry, 10),
    };
  });
  return sliceOf(places, limit);
}

async function running(redis: Redis, { keys }: PartitionRef, { after, last = '+', limit }: Ask): Promise<Slice> {
  if ((await redis.exists(keys.ready)) === 0) return { places: [], next: undefined };
  const from = after === undefined ? '-' : `(${after}`;
  const reply = list((await redis.call('XPENDING', keys.ready, GROUP, from, last, limit)) as Reply);
  const pending = reply.map((item) => text(list(item)[0]) as EntryId);
  const entries = pending.length === 0 ? [] : await readEntries(redis, keys, pending);
  return {
    places: entries.map(({ entry, member, dueMs }) => ({ member, at: entry, dueMs })),
    next: pending.length < limit ? undefined : pending.at(-1),
  };
}

const sliceOf = (places: readonly Place[], limit: number): Slice => ({
  places,
  next: places.length < limit ? undefined : places.at(-1)?.at,
});
