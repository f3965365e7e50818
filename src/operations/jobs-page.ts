/** A page of jobs in one state, all partitions merged: earliest due time first, or latest end first if they are over. */
import { decodeRecord, memberOf } from '../core/codec.ts';
import { DEFAULT_NAME } from '../core/job.ts';
import { decodeHeader } from '../core/record-header.ts';
import type { JobState } from '../core/state.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { type DeadLetter, peek } from '../redis/inspect.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { everyDeadLetter, page, type Row } from '../redis/pages.ts';
import { type Place, refsOfQueue } from './refs.ts';

export const JOB_STATES = ['scheduled', 'ready', 'running', 'done', 'cancelled', 'expired', 'dead'] as const;

/** Deeper nobody pages: what comes before is read as well. */
export const JOBS_OFFSET_MAX = 10_000;

interface Page {
  readonly state: JobState;
  readonly limit: number;
  readonly offset: number;
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

interface Found {
  readonly ref: PartitionRef;
  readonly job: ListedJob;
}

/** A reply may hold a whole record. */
const PEEKS_AT_ONCE = 16;

/** @throws DuestreamError `not-found` */
export async function jobsPage(place: Place, queue: string, asked: Page): Promise<readonly ListedJob[]> {
  const refs = await refsOfQueue(place, queue);
  return detailed(place.redis, await pageOf(place.redis, refs, asked));
}

/** One partition is entered at the offset; of several each may hold the whole page, and all that comes before it. */
async function pageOf(redis: Redis, refs: readonly PartitionRef[], asked: Page): Promise<readonly Found[]> {
  const { state, limit, offset } = asked;
  const [only, ...others] = refs;
  if (only !== undefined && others.length === 0) return listOf(redis, only, asked);
  let merged: readonly Found[] = [];
  for (const ref of refs) {
    const own = await listOf(redis, ref, { state, limit: offset + limit, offset: 0 });
    merged = [...merged, ...own].sort(orderOf(state)).slice(0, offset + limit);
  }
  return merged.slice(offset);
}

async function listOf(redis: Redis, ref: PartitionRef, { state, limit, offset }: Page): Promise<readonly Found[]> {
  if (state !== 'dead') return (await page(redis, ref, { state, limit, offset })).map((row) => listed(ref, row));
  const found: Found[] = [];
  let skip = offset;
  for await (const deadLetter of everyDeadLetter(redis, ref, offset + limit)) {
    if (skip > 0) skip -= 1;
    else found.push({ ref, job: buried(ref, deadLetter) });
  }
  return found;
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

function listed(ref: PartitionRef, { id, bare, state, name, dueMs, overMs }: Row): Found {
  const known = state === 'scheduled' ? (name ?? DEFAULT_NAME) : name;
  const { partition } = ref;
  return {
    ref,
    job: { id, bare, partition, state, name: known, dueMs, attempts: undefined, owner: undefined, overMs },
  };
}

function buried({ partition }: PartitionRef, { id, bare, record, attempts, atMs }: DeadLetter): ListedJob {
  return {
    id,
    bare,
    partition,
    state: 'dead',
    name: nameOf(record),
    dueMs: decodeHeader(record)?.askedDueMs,
    attempts,
    owner: undefined,
    overMs: atMs,
  };
}

function nameOf(record: string | undefined): string | undefined {
  if (record === undefined) return undefined;
  try {
    return decodeRecord(record).name;
  } catch {
    return undefined;
  }
}

/** Live jobs by due time, earliest first; jobs that are over by their end, latest first. */
function orderOf(state: JobState): (a: Found, b: Found) => number {
  const live = state === 'scheduled' || state === 'ready' || state === 'running';
  return ({ job: a }, { job: b }) => (live ? (a.dueMs ?? 0) - (b.dueMs ?? 0) : (b.overMs ?? 0) - (a.overMs ?? 0));
}
