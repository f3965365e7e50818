/**
 * Pages of jobs by state, for people and tools. They are not one moment in time, and whatever is asked for, no step
 * reads more than a bounded part: a record may be of 256 KiB, so few are held at once and none is kept.
 */
import { decodeRun, decodeTombstone, idOf, isTombstone } from '../../job/codec.ts';
import type { EntryId } from '../../job/job.ts';
import { decodeHeader } from '../../job/record-header.ts';
import type { JobState } from '../../job/state.ts';
import type { Redis } from '../connection/connect.ts';
import { GROUP, type PartitionRef } from '../keys.ts';
import { createStep } from '../scripts/bytes.ts';
import { readEntries } from '../scripts/ready.ts';
import { fieldsOf, list, type Reply, text } from '../scripts/scripts.ts';
import { type DeadLetter, deadLetters } from './inspect.ts';
import { placesBehind } from './past.ts';
import { placesOf } from './places.ts';

export interface Row {
  readonly id: string;
  readonly bare: boolean;
  readonly state: JobState;
  readonly dueMs: number | undefined;
  readonly name: string | undefined;
  /** When it was over. */
  readonly overMs?: number;
  /** Of a dead letter. */
  readonly attempts?: number;
}

/** A place that was looked at, and the job that is there in the wanted state. */
export interface Item {
  /** What places are ordered by: the due time, the ms of the entry, or the end. */
  readonly rank: number;
  /** What tells it from others of its rank. */
  readonly at: string;
  readonly row: Row | undefined;
}

/** The place that was looked at last. A place is not an offset: jobs that come and go in front of it do not move it. */
export interface Position extends Pick<Item, 'rank' | 'at'> {
  readonly partition: number;
}

/** How much one page looks through where a filter may leave little of a step. */
export const LOOK_MAX = 20_000;
const TOMBSTONES_STEP = 500;
const RECORDS_STEP = 100;
const DEAD_LETTERS_STEP = 50;
const LAST_OF_MS = '18446744073709551615';

/** Whether the greatest rank comes first. */
export const isLatestFirst = (state: JobState): boolean =>
  state !== 'scheduled' && state !== 'ready' && state !== 'running';

/** A page of jobs in one state: scheduled by due time, ready and running by entry, over by time (newest first). */
export async function page(
  redis: Redis,
  ref: PartitionRef,
  { state, limit }: { readonly state: JobState; readonly limit: number },
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  let looked = 0;
  if (limit <= 0) return rows;
  for await (const { row } of everyPlace(redis, ref, { state })) {
    looked += 1;
    if (row) rows.push(row);
    if (rows.length >= limit || looked >= LOOK_MAX) break;
  }
  return rows;
}

/**
 * Each place of a state in a partition, in its order, from behind a position. Of the same rank the first partition comes first: so
 * in partitions before that of the position nothing of its rank is left, and in those behind it all.
 */
export function everyPlace(
  redis: Redis,
  ref: PartitionRef,
  { state, from }: { readonly state: JobState; readonly from?: Position | undefined },
): AsyncGenerator<Item, undefined> {
  switch (state) {
    case 'scheduled':
      return scheduledItems(redis, ref, from);
    case 'ready':
      return readyItems(redis, ref, from && entryBehind(ref, from));
    case 'running':
      return runningItems(redis, ref, from && entryBehind(ref, from));
    case 'dead':
      return deadItems(redis, ref, from && entryBefore(ref, from));
    case 'done':
    case 'cancelled':
    case 'expired':
      return overItems(redis, ref, { state, from });
  }
}

/** Dead letters backwards, from the newest there was at the beginning or from before one of them, at most `max`. */
export async function* everyDeadLetter(
  redis: Redis,
  ref: PartitionRef,
  max: number,
  from?: string,
): AsyncGenerator<DeadLetter> {
  let before = from;
  const step = createStep(DEAD_LETTERS_STEP);
  for (let seen = 0; seen < max; ) {
    const found = await deadLetters(redis, ref, {
      limit: Math.min(step.next(), max - seen),
      ...(before && { before }),
    });
    step.saw(found.map(({ id, record }) => id.length + record.length));
    yield* found;
    seen += found.length;
    before = found.at(-1)?.entry;
    if (before === undefined) return;
  }
}

/** The entry behind which those of the partition begin. */
function entryBehind({ partition }: PartitionRef, { rank, at, partition: of }: Position): string {
  if (partition === of) return at;
  return `${partition < of ? rank : rank - 1}-${LAST_OF_MS}`;
}

/** The entry before which those of the partition begin. */
function entryBefore({ partition }: PartitionRef, { rank, at, partition: of }: Position): string {
  if (partition === of) return at;
  return partition < of ? `${rank}-0` : `${rank + 1}-0`;
}

const msOf = (entry: string): number => Number.parseInt(entry, 10);

async function* scheduledItems(redis: Redis, ref: PartitionRef, from?: Position): AsyncGenerator<Item, undefined> {
  const isBehind = from !== undefined && ref.partition > from.partition;
  const source = { kind: 'scheduled', due: { fromMs: isBehind ? from.rank : undefined, toMs: undefined } } as const;
  // No text has this byte, so it comes behind all members of a due time.
  const last = '\u00ff';
  let after = from && !isBehind ? `${from.rank} ${ref.partition === from.partition ? from.at : last}` : undefined;
  const step = createStep(RECORDS_STEP);
  for (;;) {
    const limit = step.next();
    const slice = await placesOf(redis, ref, { source, after, last: undefined, limit });
    // Another layout by now: these jobs are elsewhere.
    if ('kind' in slice || slice.places.length === 0) return undefined;
    const members = slice.places.map(({ member }) => Buffer.from(member, 'latin1'));
    const records = await redis.hmget(ref.keys.jobs, ...members);
    step.saw(members.map((member, at) => member.length + (records[at]?.length ?? 0)));
    for (const [at, { member, dueMs = 0 }] of slice.places.entries()) {
      const job = row(String(members[at]), 'scheduled', dueMs, records[at] ?? null);
      yield { rank: dueMs, at: member, row: job };
    }
    if (slice.next === undefined) return undefined;
    after = slice.next;
  }
}

/** Entries, and those whose job neither runs nor is over, in their order. */
async function* readyItems(redis: Redis, { keys }: PartitionRef, after?: string): AsyncGenerator<Item, undefined> {
  let from = after === undefined ? '-' : `(${after}`;
  const step = createStep(RECORDS_STEP);
  for (;;) {
    const reply = await redis.call('XRANGE', keys.ready, from, '+', 'COUNT', step.next());
    const entries = list(reply as Reply).map(list);
    if (entries.length === 0) return undefined;
    from = `(${text(entries.at(-1)?.[0])}`;
    const fields = entries.map(([, flat]) => fieldsOf(flat));
    const members = fields.map((entry) => entry.get('member') ?? '');
    const [records, started] = [await redis.hmget(keys.jobs, ...members), await redis.hmget(keys.runs, ...members)];
    step.saw(members.map((member, at) => member.length + (records[at]?.length ?? 0)));
    for (const [at, member] of members.entries()) {
      const [entry, record] = [text(entries[at]?.[0]), records[at] ?? null];
      const waits = record !== null && !isTombstone(record) && decodeRun(started[at] ?? '')?.owner === undefined;
      const job = waits ? row(member, 'ready', Number(fields[at]?.get('due')), record) : undefined;
      yield { rank: msOf(entry), at: entry, row: job };
    }
  }
}

/** Pending entries, and those whose job was started under them. Names are left out: they would cost a record each. */
async function* runningItems(redis: Redis, { keys }: PartitionRef, after?: string): AsyncGenerator<Item, undefined> {
  if ((await redis.exists(keys.ready)) === 0) return undefined;
  let from = after === undefined ? '-' : `(${after}`;
  for (;;) {
    const reply = list((await redis.call('XPENDING', keys.ready, GROUP, from, '+', RECORDS_STEP)) as Reply);
    const pending = reply.map((item) => text(list(item)[0]) as EntryId);
    if (pending.length === 0) return undefined;
    from = `(${pending.at(-1)}`;
    const entries = await readEntries(redis, keys, pending);
    if (entries.length === 0) continue;
    const started = await redis.hmget(keys.runs, ...entries.map(({ member }) => member));
    for (const [at, { entry, member, dueMs }] of entries.entries()) {
      const run = decodeRun(started[at] ?? '');
      const isHere = run?.owner !== undefined && run.entry === entry;
      yield { rank: msOf(entry), at: entry, row: isHere ? row(member, 'running', dueMs, null) : undefined };
    }
  }
}

/** Tombstones, newest first, and those of jobs that ended in one way. */
async function* overItems(
  redis: Redis,
  ref: PartitionRef,
  { state, from }: { readonly state: JobState; readonly from?: Position | undefined },
): AsyncGenerator<Item, undefined> {
  const { keys, partition } = ref;
  // Of the same ms nothing comes behind an empty name.
  const field = from && (partition === from.partition ? from.at : partition < from.partition ? '' : undefined);
  let place = { atMs: from?.rank ?? Number.POSITIVE_INFINITY, field };
  const step = createStep(TOMBSTONES_STEP);
  for (;;) {
    const over = await placesBehind(redis, ref, { key: 'done', from: place, count: step.next() });
    const last = over.at(-1);
    if (!last) return undefined;
    const values = await redis.hmget(keys.jobs, ...over.map((one) => one.field));
    step.saw(over.map((one, at) => one.field.length + (values[at]?.length ?? 0)));
    for (const [at, { field: member, atMs: overMs }] of over.entries()) {
      const tombstone = decodeTombstone(values[at] ?? '');
      const isMeant = tombstone?.outcome === state;
      const job = isMeant ? { ...row(member, state, tombstone.askedDueMs, null), overMs } : undefined;
      yield { rank: overMs, at: member, row: job };
    }
    place = last;
  }
}

async function* deadItems(redis: Redis, ref: PartitionRef, before?: string): AsyncGenerator<Item, undefined> {
  for await (const { entry, id, bare, record, attempts, atMs } of everyDeadLetter(redis, ref, LOOK_MAX, before)) {
    const job = { id, bare, state: 'dead', ...contentOf(record), attempts, overMs: atMs } as const;
    yield { rank: msOf(entry), at: entry, row: job };
  }
  return undefined;
}

function row(member: string, state: JobState, dueMs: number, record: string | null): Row {
  return { ...idOf(member), state, dueMs, name: contentOf(record ?? '').name };
}

/** The name is copied: a part of a text keeps the whole text in memory. */
function contentOf(record: string): Pick<Row, 'dueMs' | 'name'> {
  const name = /^[^|]*\|\{"n":"([^"]*)"/.exec(record)?.[1];
  return {
    dueMs: decodeHeader(record)?.askedDueMs,
    name: name === undefined ? undefined : Buffer.from(name).toString(),
  };
}
