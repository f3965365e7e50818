/**
 * Dead letters of a queue in pages that are bounded by bytes, and a search through them that is bounded by what is looked at
 * and by what is found, says where it ended, and goes on from there. A walk goes through one partition after the other, newest or
 * oldest first, and may begin where an earlier one ended: what stays put meanwhile comes exactly once. `newest` merges
 * the partitions instead, for people who look.
 *
 * A job that dies meanwhile has the newest dead letter of its partition. A walk from the newest on leaves it behind; one
 * from the oldest on ends at the newest that there was when it entered the partition. So every walk ends, and none meets a
 * letter of a job that it has replayed.
 */
import { memberOf } from '../../job/codec.ts';
import type { JobLog } from '../../job/log-lines.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import {
  type DeadLetter,
  deadLetter,
  deadLetters,
  type NewestAsk,
  type OldestAsk,
  oldestDeadLetters,
  peek,
} from '../../redis/read/inspect.ts';
import { readLog } from '../../redis/read/log-lines.ts';
import { createStep } from '../../redis/scripts/bytes.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import { forget, type PurgeAsk, type PurgeReply, purge } from '../../redis/scripts/upkeep.ts';
import type { Layout } from '../calls/layouts.ts';
import { withReadRetry } from '../calls/retry.ts';
import { cursorOf, type End, type From, parseCursor, type Spot, spotAt, UNBOUNDED } from '../query/cursor.ts';
import { filterKey } from '../query/filter.ts';
import { type Filter, matches } from './filter.ts';

/** Where dead letters are: in Redis, or in the virtual time of the test kit. */
export interface LetterStore extends Pick<Jobs, 'replay'> {
  readonly newest: (ref: PartitionRef, ask: NewestAsk) => Promise<readonly DeadLetter[]>;
  readonly oldest: (ref: PartitionRef, ask: OldestAsk) => Promise<readonly DeadLetter[]>;
  readonly find: (ref: PartitionRef, entry: string) => Promise<DeadLetter | undefined>;
  /** What the handlers of its job said. */
  readonly log: (placed: Placed) => Promise<JobLog | undefined>;
  /** The job of a dead letter, by its member. */
  readonly peek: (ref: PartitionRef, member: string) => ReturnType<typeof peek>;
  readonly purge: (ref: PartitionRef, ask: PurgeAsk) => Promise<PurgeReply>;
  /** Removes those that are named. @returns how many of them were there */
  readonly forget: (ref: PartitionRef, entries: readonly string[]) => Promise<number>;
}

export const lettersIn = (redis: Redis, { replay }: Pick<Jobs, 'replay'>): LetterStore => ({
  newest: (ref, ask) => deadLetters(redis, ref, ask),
  oldest: (ref, ask) => oldestDeadLetters(redis, ref, ask),
  find: (ref, entry) => deadLetter(redis, ref, entry),
  log: ({ ref, letter }) => {
    const { id, bare } = letter;
    return readLog(redis, ref, { member: memberOf(id, { bare }), deadLetter: letter });
  },
  peek: (ref, member) => peek(redis, ref, member),
  purge: (ref, ask) => purge(redis, ref, ask),
  forget: (ref, entries) => forget(redis, ref, entries),
  replay,
});

/** One dead letter, and where it is. */
export interface Placed {
  readonly ref: PartitionRef;
  readonly letter: DeadLetter;
}

/** A dead letter on a walk, and where the walk goes on behind it. */
export interface Met extends Placed {
  readonly spot: Spot;
}

const PAGE = 50;

/** Where a walk goes on in a partition; undefined: that was looked through. */
export function spotIn(from: Spot | undefined, { partition }: PartitionRef): Spot | undefined {
  if (!from || partition > from.partition) return spotAt(partition);
  return partition === from.partition ? from : undefined;
}

/** How far a walk from the oldest on goes in a partition; undefined: there is nothing in it. */
export async function endOf({ store, policy }: Reading, ref: PartitionRef): Promise<End | undefined> {
  const [last] = await withReadRetry('read dead letters', () => store.newest(ref, { limit: 1 }), policy);
  return last && { last: last.entry, left: UNBOUNDED };
}

/** What a walk needs. */
export interface Reading {
  readonly store: LetterStore;
  readonly policy: RetryPolicy;
}

/** One partition after the other, from behind the place. */
export async function* walk(
  reading: Reading,
  layout: Layout,
  { from, order }: { readonly from: Spot | undefined; readonly order: 'newest' | 'oldest' },
): AsyncGenerator<Met> {
  for (const ref of layout) {
    const spot = spotIn(from, ref);
    if (!spot) continue;
    const end = order === 'newest' ? undefined : (spot.end ?? (await endOf(reading, ref)));
    if (order === 'newest' || end) yield* lettersOf(reading, ref, { after: spot.at, order, end });
  }
}

interface NewestWalk {
  readonly from?: Spot | undefined;
  /** Where one partition stops no other: notes why it ends. */
  readonly failed?: (ref: PartitionRef, error: unknown) => void;
}

/** All partitions merged, newest first; of the same moment, those of the first partition. */
export async function* newest(reading: Reading, layout: Layout, { from, failed }: NewestWalk): AsyncGenerator<Met> {
  const lines = layout.map((ref) => {
    const line = lettersOf(reading, ref, { after: from && startIn(ref, from), order: 'newest' });
    const refused = (error: unknown) => {
      if (!failed) throw error;
      failed(ref, error);
      return undefined;
    };
    return async () => (await line.next().catch(refused))?.value;
  });
  const heads = await Promise.all(lines.map((next) => next()));
  for (;;) {
    let best = -1;
    for (const [at, head] of heads.entries()) {
      const leader = heads[best];
      if (head && (!leader || compareEntries(head.letter.entry, leader.letter.entry) > 0)) best = at;
    }
    const found = heads[best];
    if (!found) return;
    yield found;
    heads[best] = await lines[best]?.();
  }
}

/** In later partitions the entry of the same number is still to come. */
function startIn(ref: PartitionRef, { partition, at = '' }: Spot): string {
  if (ref.partition <= partition) return at;
  const [ms = '', nth = ''] = at.split('-');
  return `${ms}-${BigInt(nth) + 1n}`;
}

/** Whether an entry is newer (above 0) or older (below 0) than another one of its partition. */
export function compareEntries(one: string, other: string): number {
  const [ms = 0, nth = 0] = one.split('-').map(Number);
  const [otherMs = 0, otherNth = 0] = other.split('-').map(Number);
  return ms - otherMs || nth - otherNth;
}

async function* lettersOf(
  { store, policy }: Reading,
  ref: PartitionRef,
  {
    after,
    order,
    end,
  }: { readonly after: string | undefined; readonly order: 'newest' | 'oldest'; readonly end?: End | undefined },
): AsyncGenerator<Met, undefined> {
  let last = after;
  const step = createStep(PAGE);
  const page = () => {
    const limit = step.next();
    if (order === 'oldest') return store.oldest(ref, { limit, after: last, last: end?.last });
    return store.newest(ref, { limit, before: last });
  };
  for (;;) {
    const found = await withReadRetry('read dead letters', page, policy);
    if (found.length === 0) return undefined;
    step.saw(found.map(({ id, record }) => id.length + record.length));
    last = found.at(-1)?.entry;
    for (const letter of found) yield { ref, letter, spot: spotAt(ref.partition, letter.entry, end) };
  }
}

/** What is looked for, checked, and within which bounds. */
export interface SearchAsk {
  readonly filter: Filter;
  readonly cursor: string | undefined;
  /** Dead letters that may match. */
  readonly limit: number;
  /** Dead letters that may be looked at. */
  readonly scanMax: number;
}

/** A look that begins, or goes on as its cursor says. */
export interface Search extends Omit<SearchAsk, 'cursor'> {
  readonly from: From | undefined;
  /** Of the cursor: see `filterKey`. */
  readonly key: string;
  /** When the call began: ages count from then. */
  readonly nowMs: number;
  /** The due time that a replay gives, fixed when it began. */
  readonly dueMs?: number | undefined;
}

interface Begin {
  /** What the call does, and with what: a cursor holds for that alone. */
  readonly means: unknown;
  readonly nowMs: number;
  readonly dueMs?: number | undefined;
}

/** @throws DuestreamError `bad-input` for the cursor of another call */
export function begin({ cursor, ...ask }: SearchAsk, { means, nowMs, dueMs }: Begin): Search {
  const key = filterKey(ask.filter, means);
  const from = cursor === undefined ? undefined : parseCursor(cursor, key);
  return { ...ask, key, from, nowMs: from?.nowMs ?? Math.ceil(nowMs), dueMs: from?.dueMs ?? dueMs };
}

/** The cursor that goes on behind a spot. */
export function cursorAt({ filter, key, dueMs, ...search }: Search, layout: Layout, spot: Spot): string {
  const hasAge = filter.olderMs !== undefined || filter.newerMs !== undefined;
  const nowMs = hasAge ? search.nowMs : undefined;
  return cursorOf({ spot, layoutGeneration: generationOf(layout), nowMs, dueMs }, key);
}

export const generationOf = (layout: Layout): number => layout[0]?.layoutGeneration ?? 0;

/** How far a call came. */
export interface Scan {
  /** How many dead letters were looked at. */
  readonly scanned: number;
  /** Where the next call goes on; undefined when all were looked at. */
  readonly cursor: string | undefined;
}

/** Hands on what matches, until the bounds end it or `act` says no. */
export async function each(
  source: AsyncGenerator<Met>,
  { search, layout }: { readonly search: Search; readonly layout: Layout },
  act: (placed: Placed, scan: Scan) => Promise<boolean>,
): Promise<Scan> {
  const { filter, scanMax, nowMs } = search;
  let scanned = 0;
  for await (const met of source) {
    scanned += 1;
    const scan = { scanned, cursor: cursorAt(search, layout, met.spot) };
    const goesOn = !matches(met.letter, filter, nowMs) || (await act(met, scan));
    if (!goesOn || scanned >= scanMax) return scan;
  }
  return { scanned, cursor: undefined };
}
