/** A page of jobs in one state, all partitions merged: earliest due time first, or latest end first if they are over. */
import { decodeRecord, memberOf } from '../job/codec.ts';
import { DEFAULT_NAME } from '../job/job.ts';
import type { JobState } from '../job/state.ts';
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import type { Redis } from '../redis/connection/connect.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { peek } from '../redis/read/inspect.ts';
import { everyPlace, type Item, isLatestFirst, LOOK_MAX, type Position, type Row } from '../redis/read/pages.ts';
import { score } from '../redis/scripts/scripts.ts';
import { type Namespaced, refsOfQueue } from './refs.ts';

export const JOB_STATES = ['scheduled', 'ready', 'running', 'done', 'cancelled', 'expired', 'dead'] as const;

interface Asked {
  readonly state: JobState;
  readonly limit: number;
  /** That of the page before. */
  readonly cursor?: string | undefined;
}

export interface ListedJob {
  readonly id: string;
  readonly bare: boolean;
  readonly partition: number;
  readonly state: JobState;
  readonly name: string | undefined;
  readonly dueMs: number | undefined;
  readonly attempts: number | undefined;
  readonly owner: string | undefined;
  readonly overMs: number | undefined;
}

export interface ListedJobs {
  readonly jobs: readonly ListedJob[];
  /** How many places were looked at. */
  readonly scanned: number;
  /** For the next page; undefined when there is none. A page may be short, or empty, and still have one. */
  readonly cursor: string | undefined;
}

interface Found {
  readonly ref: PartitionRef;
  readonly job: ListedJob;
}

/** A reply may hold a whole record. */
const PEEKS_AT_ONCE = 16;

/**
 * What stays where it is while somebody goes from page to page is in exactly one of them.
 *
 * @throws DuestreamError `not-found`; `bad-input` for a cursor of another state
 */
export async function jobsPage(place: Namespaced, queue: string, { state, limit, cursor }: Asked): Promise<ListedJobs> {
  const refs = await refsOfQueue(place, queue);
  const from = cursor === undefined ? undefined : parseCursor(cursor, state);
  const found: Found[] = [];
  let scanned = 0;
  let last: Position | undefined;
  for await (const { ref, item } of merged(place.redis, refs, { state, from })) {
    // There is more: it comes with the next page.
    if (found.length >= limit || scanned >= LOOK_MAX) {
      return { jobs: await detailed(place.redis, found), scanned, cursor: last && cursorOf(state, last) };
    }
    scanned += 1;
    last = { rank: item.rank, at: item.at, partition: ref.partition };
    if (item.row) found.push(listed(ref, item.row));
  }
  return { jobs: await detailed(place.redis, found), scanned, cursor: undefined };
}

interface Head {
  readonly ref: PartitionRef;
  readonly item: Item;
}

/** The places of all partitions in one order; of the same rank, those of the first partition come first. */
async function* merged(
  redis: Redis,
  refs: readonly PartitionRef[],
  of: { readonly state: JobState; readonly from: Position | undefined },
): AsyncGenerator<Head, undefined> {
  const sign = isLatestFirst(of.state) ? -1 : 1;
  const lines = refs.map((ref) => everyPlace(redis, ref, of));
  const next = async (at: number) => (await lines[at]?.next())?.value;
  const heads = await Promise.all(refs.map((_, at) => next(at)));
  for (;;) {
    let best = -1;
    for (const [at, head] of heads.entries()) {
      const leader = heads[best];
      if (head && (!leader || sign * (head.rank - leader.rank) < 0)) best = at;
    }
    const [item, ref] = [heads[best], refs[best]];
    if (!item || !ref) return undefined;
    yield { ref, item };
    heads[best] = await next(best);
  }
}

function cursorOf(state: JobState, { rank, partition, at }: Position): string {
  return Buffer.from(JSON.stringify([state, String(rank), partition, at])).toString('base64url');
}

/** @throws DuestreamError `bad-input` */
function parseCursor(cursor: string, state: JobState): Position {
  const [of, rank, partition, at] = partsOf(cursor);
  const isPlace = typeof rank === 'string' && typeof partition === 'number' && typeof at === 'string';
  if (isPlace && of === state && !Number.isNaN(score(rank))) return { rank: score(rank), partition, at };
  const allowed = `the cursor that the page before of ${state} jobs said`;
  throw new DuestreamError('bad-input', `cursor is ${show(cursor)}; allowed: ${allowed}`);
}

function partsOf(cursor: string): readonly unknown[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    return Array.isArray(parts) ? parts : [];
  } catch {
    return [];
  }
}

/** What the page does not say is asked per job, a few at a time; a job may have moved on meanwhile. */
async function detailed(redis: Redis, found: readonly Found[]): Promise<readonly ListedJob[]> {
  const jobs: ListedJob[] = [];
  for (let from = 0; from < found.length; from += PEEKS_AT_ONCE) {
    const some = found.slice(from, from + PEEKS_AT_ONCE);
    jobs.push(...(await Promise.all(some.map((one) => withStory(redis, one)))));
  }
  return jobs;
}

async function withStory(redis: Redis, { ref, job }: Found): Promise<ListedJob> {
  if (job.state === 'scheduled' || job.state === 'dead') return job;
  const seen = await peek(redis, ref, memberOf(job.id, job));
  const story = seen === undefined || 'kind' in seen ? undefined : seen;
  return {
    ...job,
    name: job.name ?? nameOf(story?.record),
    attempts: story?.run?.attempts ?? story?.tombstone?.attempts,
    owner: story?.run?.owner,
  };
}

function listed(ref: PartitionRef, { id, bare, state, name, dueMs, attempts, overMs }: Row): Found {
  const known = state === 'scheduled' ? (name ?? DEFAULT_NAME) : name;
  const { partition } = ref;
  return { ref, job: { id, bare, partition, state, name: known, dueMs, attempts, owner: undefined, overMs } };
}

function nameOf(record: string | undefined): string | undefined {
  if (record === undefined) return undefined;
  try {
    return decodeRecord(record).name;
  } catch {
    return undefined;
  }
}
