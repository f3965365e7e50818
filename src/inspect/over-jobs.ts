/**
 * A page of jobs that are over, the latest end first: from the history of their queue; without one, from what is remembered
 * of them within the done window, which knows little.
 */
import { listPast, listRemembered } from '../client/query/past.ts';
import type { PastJob } from '../job/past.ts';
import type { OverState } from '../job/state.ts';
import { systemClock } from '../kernel/clock.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { keepsHistory } from '../redis/keys.ts';
import { type Namespaced, refsOfQueue } from './refs.ts';

/** What may be asked of a queue that keeps a history. */
export interface OverFilter {
  readonly tag?: string | undefined;
  readonly name?: string | undefined;
  readonly idPrefix?: string | undefined;
  readonly endedFromMs?: number | undefined;
  readonly endedToMs?: number | undefined;
}

interface Asked {
  readonly state: OverState;
  readonly filter: OverFilter;
  readonly limit: number;
  /** That of the page before. */
  readonly cursor?: string | undefined;
}

/** A job that is over, as far as it is known. */
export interface OverJob extends Partial<Omit<PastJob, 'outcome' | 'askedDueMs'>> {
  readonly id: string;
  readonly bare: boolean;
  readonly partition: number;
  readonly state: OverState;
  /** The due time that was asked for. */
  readonly dueMs: number | undefined;
  readonly attempts: number;
  readonly overMs: number;
}

export interface OverPage {
  readonly jobs: readonly OverJob[];
  /** How many places were looked at. */
  readonly scanned: number;
  /** For the next page; undefined when there is none. A page may be short, or empty, and still have one. */
  readonly cursor: string | undefined;
}

/** Places that one page looks at: a record of a history is larger than a tombstone. */
const PAST_SCAN_MAX = 5000;
const REMEMBERED_SCAN_MAX = 20_000;
/** As long as somebody waits for an outage to pass. */
const RETRY_MS = 3000;

/** @throws DuestreamError `not-found`; `bad-input` for what is not known without a history, and for the cursor of another list */
export async function overJobs(place: Namespaced, queue: string, asked: Asked): Promise<OverPage> {
  const { state: outcome, filter, limit, cursor } = asked;
  const refs = await refsOfQueue(place, queue);
  const [first] = refs;
  const reading = { redis: place.redis, policy: { clock: systemClock, budgetMs: RETRY_MS } };
  const page =
    first && keepsHistory(first)
      ? await listPast(reading, refs, { ...filter, outcome, limit, cursor, scanMax: PAST_SCAN_MAX })
      : await listRemembered(reading, refs, unfiltered(queue, asked));
  const jobs = page.jobs.map(({ outcome: state, askedDueMs: dueMs, ...job }) => ({ ...job, state, dueMs }));
  return { jobs, scanned: page.scanned, cursor: page.cursor };
}

function unfiltered(queue: string, { state: outcome, filter, limit, cursor }: Asked) {
  const given = Object.entries(filter).find(([, value]) => value !== undefined);
  if (!given) return { outcome, limit, cursor, scanMax: REMEMBERED_SCAN_MAX };
  const name = given[0].replace(/Ms$/, '');
  const where = `duestream dead ls and /v1/queues/${queue}/dead find dead letters by name, tag and error`;
  throw new DuestreamError(
    'bad-input',
    `${name} is given, and ${queue} keeps no history of jobs that are over; allowed: limit and cursor${outcome === 'dead' ? `; ${where}` : ''}`,
  );
}
