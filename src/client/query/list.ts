/** A page of the jobs that a filter means, in every state. Reading only: nothing is changed, no script blocks. */
import type { Queue } from '../../job/queue.ts';
import { systemClock } from '../../kernel/clock.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { Found } from '../../redis/read/look.ts';
import { type Layout, movedAway } from '../calls/layouts.ts';
import { type CallPartitions, isMoved } from '../calls/partition-calls.ts';
import { parseCursor } from './cursor.ts';
import { filterKey, type JobListFilter, type ListFilter } from './filter.ts';
import { readerOf } from './reader.ts';
import { type JobView, viewOf, viewOfEnd } from './report.ts';
import { pageOf, type WalkParts } from './walk.ts';

/** A page of jobs. */
export interface JobPage<Data = unknown> {
  readonly jobs: readonly JobView<Data>[];
  /** How many places were looked at for them: more than there are jobs where names, ids or times decide. */
  readonly scanned: number;
  /** For the next page; undefined when there is none. A page may be short, or empty, and still have one. */
  readonly cursor: string | undefined;
}

/** How a list goes on. */
export interface PageOptions {
  /** Jobs of one page, 1 to 1000. Default 100. */
  readonly limit?: number | undefined;
  /** That of the page before. */
  readonly cursor?: string | undefined;
}

/** Which jobs of a queue a list means, and how it goes on. */
export interface JobListOptions extends JobListFilter, PageOptions {
  /** By due time, also jobs of a tag, and over all partitions. Default: as their index has them. */
  readonly sort?: 'due' | undefined;
}

export interface ListAsk {
  readonly queue: Queue;
  readonly filter: ListFilter;
  readonly limit: number;
  readonly cursor: string | undefined;
}

export async function listJobs(parts: WalkParts, { cursor, ...ask }: ListAsk): Promise<JobPage> {
  const key = filterKey(ask.filter);
  const from = cursor === undefined ? undefined : parseCursor(cursor, key);
  const page = await pageOf(parts, { ...ask, key, from });
  const over = page.over.map(({ ref, ended }) => viewOfEnd(ref, ended));
  return { jobs: [...page.rows.map(viewIn), ...over], scanned: page.scanned, cursor: page.cursor };
}

/** The first jobs of some partitions, for who looks over a connection of its own. */
export function firstJobs(
  redis: Redis,
  layout: Layout,
  { queue, filter, limit }: Omit<ListAsk, 'cursor'>,
): Promise<JobPage> {
  const callPartitions: CallPartitions = async (_, call) => {
    const reply = await call(layout, { clock: systemClock, budgetMs: RETRY_MS });
    if (isMoved(reply)) throw movedAway(queue.name);
    return reply;
  };
  return listJobs({ reader: readerOf(redis), callPartitions }, { queue, filter, limit, cursor: undefined });
}

const RETRY_MS = 10_000;

export function viewIn({ ref, id, bare, state, record, run, dueMs, seen }: Found): JobView {
  const peek = { state, record, run, dueMs, tombstone: undefined, overMs: undefined, seen };
  return viewOf(ref, { id, bare, past: [] }, peek);
}
