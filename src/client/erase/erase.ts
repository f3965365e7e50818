/**
 * A person is removed from a queue: from its jobs, its dead letters, its history and the log lines of its jobs, by a tag.
 *
 *   jobs ──▶ dead letters ──▶ history ──▶ log lines ──▶ what is left
 *
 * In this order, because a job that is cancelled leaves a record in the history. Each step is bounded and says where the
 * next one begins; what is gone is gone, so a call that was cut short may also begin again. In each partition a step ends at
 * the last place that there was when it entered the partition, so an erase ends also where jobs with the tag keep coming.
 */
import type { Queue } from '../../job/queue.ts';
import { withRetry } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { EraseAsk as EndsAsk, PurgeReply } from '../../redis/scripts/upkeep.ts';
import { asOne } from '../calls/partition-calls.ts';
import { withReadRetry } from '../calls/retry.ts';
import { parseFilter as parseDeadFilter } from '../dead/filter.ts';
import { createLetters } from '../dead/letters.ts';
import { begin, generationOf, type LetterStore } from '../dead/walk.ts';
import type { ActParts } from '../jobs/act.ts';
import { onFilter } from '../jobs/by-filter.ts';
import { cancelling, foundToCancel } from '../jobs/cancel.ts';
import { countJobs } from '../query/count.ts';
import * as walks from '../query/cursor.ts';
import { filterKey, parseFilter } from '../query/filter.ts';
import type { Spot } from './cursor.ts';

/** What was removed from one queue, or of a dry run, what would be; or how far that has come. */
export interface ErasedQueue {
  readonly queue: string;
  readonly dryRun: boolean;
  /** Jobs that waited and are cancelled now; of a dry run, all that are not over. */
  readonly jobs: number;
  /** Jobs that run and were asked to stop. Erase again when they have ended: their end leaves a record. */
  readonly running: number;
  readonly deadLetters: number;
  /** Records of jobs that are over, with their results and errors. */
  readonly history: number;
  /** Jobs that are over, and whose log lines were removed; of a dry run, all that have log lines. Those of others go with them. */
  readonly logs: number;
  /** Jobs with the tag that are there still, at the end: they run, or somebody has scheduled them meanwhile. */
  readonly left: number;
  /** How many jobs, dead letters and records were looked at. */
  readonly scanned: number;
}

/** What an erase stands on: parts over a connection, or those of the test kit. */
export interface ErasingParts {
  readonly finding: ActParts;
  readonly store: LetterStore;
  /** The queues of the namespace, by their names, and why one cannot be looked through at all. */
  readonly queues: () => Promise<readonly { readonly queue: string; readonly why?: string | undefined }[]>;
  /** Records of the history, see `upkeep.ts`. */
  readonly erase: (ref: PartitionRef, ask: EndsAsk) => Promise<PurgeReply>;
  readonly lastEnd: (ref: PartitionRef) => Promise<string | undefined>;
  /** Log lines, see `upkeep.ts`. */
  readonly eraseLines: (ref: PartitionRef, ask: EndsAsk) => Promise<PurgeReply>;
}

export interface EraseAsk {
  readonly queue: Queue;
  readonly tag: string;
  readonly dryRun: boolean;
  readonly scanMax: number;
  readonly from: Spot;
  readonly onProgress: ((progress: ErasedQueue) => void) | undefined;
  readonly signal: AbortSignal | undefined;
}

interface Tally {
  jobs: number;
  running: number;
  deadLetters: number;
  history: number;
  logs: number;
  scanned: number;
}

interface Step {
  readonly spot: Spot;
  readonly tally: Tally;
  /** What may be looked at. */
  readonly most: number;
}

/** What one step looks at, at most. */
const STEP_MAX = 1000;
/** As the script has it. */
const RECORDS_MAX = 200;

/** How far it came, and where it goes on. */
interface Walked {
  readonly erased: ErasedQueue;
  readonly spot: Spot | undefined;
}

/** Its calls are parts of one. */
export function erasingAsOne(parts: ErasingParts): ErasingParts {
  const { finding } = parts;
  return { ...parts, finding: { ...finding, callPartitions: asOne(finding.callPartitions) } };
}

export async function eraseTag(given: ErasingParts, ask: EraseAsk): Promise<Walked> {
  const parts = erasingAsOne(given);
  const tally: Tally = { jobs: 0, running: 0, deadLetters: 0, history: 0, logs: 0, scanned: 0 };
  const { dryRun, tag, scanMax, signal, onProgress } = ask;
  const { queue } = ask;
  const told = (left: number) => ({ queue: queue.name, dryRun, ...tally, left });
  let spot: Spot | undefined = ask.from;
  try {
    while (spot && tally.scanned < scanMax && !signal?.aborted) {
      const before = tally.scanned;
      const most = Math.min(STEP_MAX, scanMax - before);
      spot = await STEPS[spot.place](parts, ask, { spot, tally, most });
      if (tally.scanned > before) onProgress?.(told(0));
    }
  } catch (error) {
    // What went before it failed.
    onProgress?.(told(0));
    throw error;
  }
  const filter = parseFilter({ tag }, { owner: 'erase' });
  const left = async () => (await countJobs(parts.finding, { queue, filter })).count;
  return { erased: told(spot || dryRun ? 0 : await left()), spot };
}

type Take = (parts: ErasingParts, ask: EraseAsk, step: Step) => Promise<Spot | undefined>;

const STEPS: Readonly<Record<Spot['place'], Take>> = {
  jobs: takeJobs,
  dead: takeDead,
  history: takeHistory,
  logs: takeLogs,
};

async function takeJobs({ finding }: ErasingParts, ask: EraseAsk, { spot, tally, most }: Step): Promise<Spot> {
  const { queue, tag, dryRun, signal } = ask;
  const done = await onFilter(finding, {
    queue,
    dryRun,
    signal,
    limit: most,
    cursor: spot.at,
    onProgress: undefined,
    filter: parseFilter({ tag }, { owner: 'erase' }),
    act: cancelling(finding),
    itemOf: foundToCancel,
    means: 'erase',
  });
  tally.jobs += dryRun ? done.matched : done.changed;
  tally.running += done.requested;
  tally.scanned += done.scanned;
  return done.cursor === undefined ? { place: 'dead', at: undefined } : { place: 'jobs', at: done.cursor };
}

async function takeDead({ store, finding }: ErasingParts, ask: EraseAsk, { spot, tally, most }: Step): Promise<Spot> {
  const { queue, tag, dryRun } = ask;
  const asked = { filter: parseDeadFilter({ tag }, 'erase'), cursor: spot.at, limit: most, scanMax: most };
  // No age is asked for.
  const search = begin(asked, { means: 'erase', nowMs: 0 });
  const done = await createLetters({ store, callPartitions: finding.callPartitions }).removeAll(queue, search, {
    dryRun,
    onProgress: undefined,
  });
  tally.deadLetters += dryRun ? done.matched : done.changed;
  tally.scanned += done.scanned;
  return done.cursor === undefined ? { place: 'history', at: undefined } : { place: 'dead', at: done.cursor };
}

async function takeHistory(parts: ErasingParts, ask: EraseAsk, { spot, tally, most }: Step): Promise<Spot> {
  const { queue, tag, dryRun } = ask;
  const key = filterKey({ tag }, 'erase history');
  const from = spot.at === undefined ? undefined : walks.parseCursor(spot.at, key);
  return parts.finding.callPartitions(queue, async (layout, policy): Promise<Spot> => {
    const layoutGeneration = generationOf(layout);
    walks.checkLayout(from?.layoutGeneration, layoutGeneration, queue.name);
    const { partition, at: after, ...begun } = from?.spot ?? walks.BEGINNING;
    const ref = layout[partition];
    if (!ref) return { place: 'logs', at: undefined };
    const end = begun.end ?? {
      last: await withReadRetry('erase', () => parts.lastEnd(ref), policy),
      left: walks.UNBOUNDED,
    };
    const which = { tag, mode: dryRun ? 'count' : 'remove', limit: Math.min(most, RECORDS_MAX), after } as const;
    const retry = dryRun ? withReadRetry : withRetry;
    const batch = await retry('erase', () => parts.erase(ref, which), policy);
    tally.history += batch.matched;
    tally.scanned += batch.looked;
    const isEnd = batch.next === undefined || endMs(batch.next) > endMs(end.last);
    const next = isEnd ? walks.spotAt(partition + 1) : walks.spotAt(partition, batch.next, end);
    return { place: 'history', at: walks.cursorOf({ spot: next, layoutGeneration }, key) };
  });
}

/** Of jobs that are over: those of the others went with them. In no order, so a walk ends when Redis says so. */
async function takeLogs(parts: ErasingParts, ask: EraseAsk, { spot, tally, most }: Step): Promise<Spot | undefined> {
  const { queue, tag, dryRun } = ask;
  const key = filterKey({ tag }, 'erase logs');
  const from = spot.at === undefined ? undefined : walks.parseCursor(spot.at, key);
  return parts.finding.callPartitions(queue, async (layout, policy): Promise<Spot | undefined> => {
    const layoutGeneration = generationOf(layout);
    walks.checkLayout(from?.layoutGeneration, layoutGeneration, queue.name);
    const { partition, at: after } = from?.spot ?? walks.BEGINNING;
    const ref = layout[partition];
    if (!ref) return undefined;
    const which = { tag, mode: dryRun ? 'count' : 'remove', limit: most, after } as const;
    const retry = dryRun ? withReadRetry : withRetry;
    const batch = await retry('erase', () => parts.eraseLines(ref, which), policy);
    tally.logs += batch.matched;
    tally.scanned += batch.looked;
    const next = batch.next === undefined ? walks.spotAt(partition + 1) : walks.spotAt(partition, batch.next);
    return { place: 'logs', at: walks.cursorOf({ spot: next, layoutGeneration }, key) };
  });
}

/** When the job of a place has ended. */
const endMs = (place: string | undefined): number => Number.parseFloat(place ?? '-Infinity');
