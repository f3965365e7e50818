/**
 * What became of jobs, from the history of their queue: what one job returned, and pages of those that are over. Nothing
 * here waits for a job to end.
 */
import { memberOf } from '../../job/codec.ts';
import type { Attempted } from '../../job/outcome.ts';
import type { KeptResult, PastJob } from '../../job/past.ts';
import type { Queue } from '../../job/queue.ts';
import type { JobState, OverState } from '../../job/state.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { deadLetter, type Peek, peek } from '../../redis/read/inspect.ts';
import { type EndPlace, everyRemembered, type Remembered } from '../../redis/read/over.ts';
import { everyPast, type KeptPast, pastOf } from '../../redis/read/past.ts';
import type { Moved } from '../../redis/scripts/replies.ts';
import type { Layout } from '../calls/layouts.ts';
import { type CallPartitions, placesOf } from '../calls/partition-calls.ts';
import { withReadRetry } from '../calls/retry.ts';
import { checkLayout, cursorOf, parseCursor, type Spot, spotAt } from './cursor.ts';
import { filterKey } from './filter.ts';

/** What is stored about the end of a job, at this moment. */
export type JobResult<Result = unknown> =
  /** Nothing is known of the id: it never existed, or its end was too long ago. */
  | { readonly status: 'unknown' }
  | { readonly status: 'pending'; readonly state: Exclude<JobState, OverState>; readonly dueMs: number | undefined }
  /** `result`: what the handler returned, where the queue keeps it. */
  | { readonly status: 'done'; readonly overMs: number | undefined; readonly result: KeptResult<Result> }
  /** `reason` is there as long as the dead letter is. */
  | {
      readonly status: 'dead';
      readonly overMs: number | undefined;
      readonly reason: string | undefined;
      readonly error: Attempted | undefined;
      readonly deadLetter: string | undefined;
    }
  | { readonly status: 'cancelled' | 'expired'; readonly overMs: number | undefined };

interface PastParts {
  readonly redis: Redis;
  readonly callPartitions: CallPartitions;
}

/** Which jobs that are over are listed. */
export interface PastSearch {
  readonly outcome?: OverState | undefined;
  readonly name?: string | undefined;
  readonly tag?: string | undefined;
  readonly idPrefix?: string | undefined;
  /** Ended within this time, epoch ms, both ends included. */
  readonly endedFromMs?: number | undefined;
  readonly endedToMs?: number | undefined;
  /** Ended at most so long before now, which is the moment of the first page. */
  readonly newer?: { readonly ageMs: number; readonly nowMs: number } | undefined;
  readonly limit: number;
  readonly scanMax: number;
  /** What the last page returned, for the same filter. */
  readonly cursor?: string | undefined;
}

export type PastPage = EndsPage<PastJob>;

interface EndsPage<Ended> {
  /** The latest end first. */
  readonly jobs: readonly (Ended & { readonly partition: number })[];
  /** How many records were looked at. */
  readonly scanned: number;
  readonly cursor: string | undefined;
}

export interface Past {
  readonly result: (queue: Queue, id: string, how: { readonly bare: boolean }) => Promise<JobResult>;
}

export function createPast({ redis, callPartitions }: PastParts): Past {
  return {
    result: (queue, id, { bare }) =>
      callPartitions(queue, async (layout, policy) => {
        for (const ref of placesOf(layout, id, bare)) {
          const found = await resultIn(redis, ref, { member: memberOf(id, { bare }), policy });
          if (!('status' in found) || found.status !== 'unknown') return found;
        }
        return { status: 'unknown' };
      }),
  };
}

async function resultIn(
  redis: Redis,
  ref: PartitionRef,
  { member, policy }: { readonly member: string; readonly policy: RetryPolicy },
): Promise<JobResult | Moved> {
  const seen = await withReadRetry('result', () => peek(redis, ref, member), policy);
  if (seen && 'kind' in seen) return seen;
  if (seen && !seen.tombstone) return pending(seen);
  const read = async () => (ref.history ? pastOf(redis, ref, { member, max: 1 }) : []);
  const [past] = await withReadRetry('result', read, policy);
  const status = seen?.tombstone?.outcome ?? past?.outcome;
  if (status === undefined) return { status: 'unknown' };
  const overMs = seen?.overMs ?? past?.overMs;
  if (status === 'done') return { status, overMs, result: past?.result ?? { kind: 'none' } };
  if (status !== 'dead') return { status, overMs };
  const entry = seen?.tombstone?.deadLetter ?? past?.deadLetter;
  const find = async () => (entry === undefined ? undefined : deadLetter(redis, ref, entry));
  const letter = await withReadRetry('result', find, policy);
  const error = (past?.history ?? letter?.history ?? []).at(-1);
  return { status, overMs, reason: letter?.reason, error, deadLetter: entry };
}

const pending = ({ state, dueMs }: Peek): JobResult => ({
  status: 'pending',
  state: state as Exclude<JobState, OverState>,
  dueMs,
});

interface Reading {
  readonly redis: Redis;
  readonly policy: RetryPolicy;
}

/** A page of the history of a queue, over all partitions, in the order of the ends. What is there stays, or is swept. */
export const listPast = ({ redis, policy }: Reading, layout: Layout, search: PastSearch): Promise<PastPage> =>
  pageOfEnds(policy, layout, { search, every: (ref, from) => everyPast(redis, ref, from) });

/** A page of what is remembered of jobs that ended in one way, in a queue without a history. */
export const listRemembered = (
  { redis, policy }: Reading,
  layout: Layout,
  search: Pick<PastSearch, 'limit' | 'scanMax' | 'cursor'> & { readonly outcome: OverState },
): Promise<EndsPage<Remembered>> =>
  pageOfEnds(policy, layout, {
    search,
    every: (ref, from) => everyRemembered(redis, ref, { outcome: search.outcome, from }),
  });

interface End<Ended> extends Pick<KeptPast, 'ref' | 'field' | 'atMs'> {
  /** Undefined: what is there is not looked for. */
  readonly past: Ended | undefined;
}

interface EndsAsk<Ended> {
  readonly search: PastSearch;
  /** The ends of a partition, the latest first, from behind a place. */
  readonly every: (ref: PartitionRef, from: EndPlace | undefined) => AsyncGenerator<End<Ended>, undefined>;
}

/** All partitions merged, the latest end first. */
async function pageOfEnds<Ended extends Remembered>(
  policy: RetryPolicy,
  layout: Layout,
  { search, every }: EndsAsk<Ended>,
): Promise<EndsPage<Ended>> {
  const { key, from, endedFromMs, ...begun } = begin(layout, search);
  const lines = layout.map((ref) => every(ref, startIn(ref, from)));
  const next = (at: number) => withReadRetry('list', async () => (await lines[at]?.next())?.value, policy);
  const heads = await Promise.all(layout.map((_, at) => next(at)));
  const jobs: (Ended & { readonly partition: number })[] = [];
  for (let scanned = 0; ; ) {
    const best = latestOf(heads);
    const found = heads[best];
    if (!found || found.atMs < endedFromMs) return { jobs, scanned, cursor: undefined };
    scanned += 1;
    const { past, ref } = found;
    if (past && isMeant(past, search)) jobs.push({ ...past, partition: ref.partition });
    if (jobs.length >= search.limit || scanned >= search.scanMax) {
      const cursor = cursorOf({ ...begun, spot: spotOf(found) }, key);
      return { jobs, scanned, cursor };
    }
    heads[best] = await next(best);
  }
}

/** What the search means is fixed when it begins. @throws DuestreamError `bad-input` for the cursor of another one, `moved` */
function begin([first]: Layout, search: PastSearch) {
  const { cursor, newer, endedFromMs = 0 } = search;
  const key = keyOf(search);
  const begun = cursor === undefined ? undefined : parseCursor(cursor, key);
  const layoutGeneration = first?.layoutGeneration ?? 0;
  checkLayout(begun?.layoutGeneration, layoutGeneration, first?.queue ?? '');
  const nowMs = begun?.nowMs ?? newer?.nowMs;
  const newerMs = newer === undefined ? 0 : (nowMs ?? 0) - newer.ageMs;
  const from = begun ? positionOf(begun.spot) : startOf(search);
  return { key, layoutGeneration, nowMs, from, endedFromMs: Math.max(endedFromMs, newerMs) };
}

function latestOf(heads: readonly (Pick<KeptPast, 'atMs'> | undefined)[]): number {
  let best = -1;
  for (const [at, head] of heads.entries()) {
    const leader = heads[best];
    if (head && (!leader || head.atMs > leader.atMs)) best = at;
  }
  return best;
}

function isMeant(past: Remembered, { outcome, name, tag, idPrefix = '' }: PastSearch): boolean {
  if (outcome !== undefined && past.outcome !== outcome) return false;
  if (name !== undefined && past.name !== name) return false;
  return (tag === undefined || past.tags.includes(tag)) && past.id.startsWith(idPrefix);
}

interface Position {
  readonly atMs: number;
  readonly partition: number;
  readonly field: string | undefined;
}

const startOf = ({ endedToMs }: PastSearch): Position | undefined =>
  endedToMs === undefined ? undefined : { atMs: endedToMs, partition: -1, field: undefined };

/** Of the same millisecond the first partition comes first. */
function startIn({ partition }: PartitionRef, from: Position | undefined) {
  if (!from || from.field === undefined || partition === from.partition) return from;
  return { atMs: partition < from.partition ? from.atMs - 1 : from.atMs, field: undefined };
}

/** Of an age what was asked for: the instant travels in the cursor. */
function keyOf({ outcome, name, tag, idPrefix, endedFromMs, endedToMs, newer }: PastSearch): string {
  return filterKey({ outcome, name, tag, idPrefix, endedFromMs, endedToMs, ageMs: newer?.ageMs }, 'history');
}

const spotOf = ({ atMs, ref, field }: Pick<KeptPast, 'atMs' | 'ref' | 'field'>): Spot =>
  spotAt(ref.partition, `${atMs} ${field}`);

function positionOf({ partition, at = '' }: Spot): Position {
  const [, atMs, field] = /^(\S+) (.*)$/s.exec(at) ?? [];
  return { atMs: Number(atMs), partition, field };
}
