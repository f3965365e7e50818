/**
 * A person is removed from a queue: from its jobs, its dead letters and its history, by a tag.
 *
 *   jobs ──▶ dead letters ──▶ history ──▶ what is left
 *
 * In this order, because a job that is cancelled leaves a record in the history. Each step is bounded and says where the
 * next one begins; what is gone is gone, so a call that was cut short may also begin again.
 */
import type { Queue } from '../../core/queue.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { withRetry } from '../../redis/connection/outage.ts';
import { erase } from '../../redis/transitions/upkeep.ts';
import { parseFilter as parseDeadFilter } from '../dead/filter.ts';
import type { createLetters } from '../dead/letters.ts';
import { parseCursor as parseDeadCursor } from '../dead/walk.ts';
import { cancelling } from '../find/acts.ts';
import { countJobs } from '../find/count.ts';
import { parseFilter } from '../find/filter.ts';
import { changeWhere, type FindingParts } from '../find/where.ts';
import type { CallPartitions } from '../partition-calls.ts';
import { cursorOf, type Spot } from './cursor.ts';

/** What was removed, or of a dry run, what would be; or how far that has come. */
export interface Erased {
  readonly dryRun: boolean;
  /** Jobs that waited and are cancelled now; of a dry run, all that are not over. */
  readonly jobs: number;
  /** Jobs that run and were asked to stop. Erase again when they have ended: their end leaves a record. */
  readonly running: number;
  readonly deadLetters: number;
  /** Records of jobs that are over, with their results and errors. */
  readonly history: number;
  /** Jobs with the tag that are there still, at the end: they run, or somebody has scheduled them meanwhile. */
  readonly left: number;
  /** How many jobs, dead letters and records were looked at. */
  readonly scanned: number;
  /** Where to go on if this is not the end. */
  readonly cursor: string | undefined;
}

export interface ErasingParts {
  readonly redis: Redis;
  readonly namespace: string;
  readonly finding: FindingParts;
  readonly letters: Pick<ReturnType<typeof createLetters>, 'purge'>;
  readonly callPartitions: CallPartitions;
  readonly windowMs: number;
}

export interface EraseAsk {
  readonly queue: Queue;
  readonly tag: string;
  readonly dryRun: boolean;
  readonly scanMax: number;
  readonly from: Spot;
  readonly onProgress: ((progress: Erased) => void) | undefined;
  readonly signal: AbortSignal | undefined;
  /** Is told how much went from a queue; undefined: whoever asks writes that down. */
  readonly note: Note | undefined;
}

export type Note = (
  place: Pick<ErasingParts, 'redis' | 'namespace'>,
  gone: { readonly queue: string; readonly count: number },
) => Promise<void>;

interface Tally {
  jobs: number;
  running: number;
  deadLetters: number;
  history: number;
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
  readonly erased: Omit<Erased, 'cursor'>;
  readonly spot: Spot | undefined;
}

export async function eraseTag(parts: ErasingParts, ask: EraseAsk): Promise<Walked> {
  const tally: Tally = { jobs: 0, running: 0, deadLetters: 0, history: 0, scanned: 0 };
  const { dryRun, tag, scanMax, signal, onProgress } = ask;
  const told = (left: number) => ({ dryRun, ...tally, left });
  const { queue } = ask;
  let spot: Spot | undefined = ask.from;
  try {
    while (spot && tally.scanned < scanMax && !signal?.aborted) {
      const before = tally.scanned;
      const most = Math.min(STEP_MAX, scanMax - before);
      spot = await STEPS[spot.place](parts, ask, { spot, tally, most });
      if (tally.scanned > before) onProgress?.(withCursor({ erased: told(0), spot }, tag));
    }
  } finally {
    // Also what went before it failed.
    const { jobs, running, deadLetters, history } = tally;
    const count = jobs + running + deadLetters + history;
    if (!dryRun && count > 0) await ask.note?.(parts, { queue: queue.name, count });
  }
  const filter = parseFilter({ tag }, { owner: 'erase' });
  const left = async () => (await countJobs(parts.finding, { queue, filter })).count;
  return { erased: told(spot || dryRun ? 0 : await left()), spot };
}

export const withCursor = ({ erased, spot }: Walked, tag: string): Erased => ({
  ...erased,
  cursor: spot && cursorOf(spot, tag),
});

type Take = (parts: ErasingParts, ask: EraseAsk, step: Step) => Promise<Spot | undefined>;

const STEPS: Readonly<Record<Spot['place'], Take>> = { jobs: takeJobs, dead: takeDead, history: takeHistory };

async function takeJobs(
  { finding, windowMs }: ErasingParts,
  ask: EraseAsk,
  { spot, tally, most }: Step,
): Promise<Spot> {
  const { queue, tag, dryRun, signal } = ask;
  const done = await changeWhere(finding, {
    ...{ queue, dryRun, signal, limit: most, cursor: spot.at, onProgress: undefined },
    filter: parseFilter({ tag }, { owner: 'erase' }),
    act: cancelling(finding.jobs, windowMs),
    means: 'erase',
  });
  tally.jobs += dryRun ? done.matched : done.changed;
  tally.running += done.requested;
  tally.scanned += done.scanned;
  return done.cursor === undefined ? { place: 'dead', at: undefined } : { place: 'jobs', at: done.cursor };
}

async function takeDead({ letters }: ErasingParts, ask: EraseAsk, { spot, tally, most }: Step): Promise<Spot> {
  const { queue, tag, dryRun } = ask;
  const search = {
    filter: parseDeadFilter({ tag }, 'erase'),
    from: parseDeadCursor(spot.at),
    ...{ limit: most, scanMax: most },
    // Of any age.
    nowMs: Number.MAX_SAFE_INTEGER,
  };
  const done = await letters.purge(queue, search, { dryRun, onProgress: undefined });
  tally.deadLetters += dryRun ? done.matched : done.removed;
  tally.scanned += done.scanned;
  return done.cursor === undefined ? { place: 'history', at: undefined } : { place: 'dead', at: done.cursor };
}

async function takeHistory(parts: ErasingParts, ask: EraseAsk, { spot, tally, most }: Step): Promise<Spot | undefined> {
  const { redis, callPartitions } = parts;
  const { queue, tag, dryRun } = ask;
  const [, partition = '0', after] = /^(\d+)(?: (.*))?$/s.exec(spot.at ?? '') ?? [];
  return callPartitions(queue, async (layout, policy): Promise<Spot | undefined> => {
    const ref = layout[Number(partition)];
    if (!ref) return undefined;
    const which = { tag, mode: dryRun ? 'count' : 'remove', limit: Math.min(most, RECORDS_MAX), after } as const;
    const batch = await withRetry('erase', () => erase(redis, ref, which), policy);
    tally.history += batch.matched;
    tally.scanned += batch.looked;
    const next = batch.next === undefined ? `${ref.partition + 1}` : `${ref.partition} ${batch.next}`;
    return { place: 'history', at: next };
  });
}
