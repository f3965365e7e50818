/**
 * Many dead letters → scheduled jobs, at once or spread over a time. A replayed dead letter is gone, so a call that was cut
 * short or repeated replays nothing twice.
 */
import { spreadMs } from '../../kernel/spread.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import type { Moved } from '../../redis/scripts/replies.ts';
import type { Layout } from '../calls/layouts.ts';
import { isMoved } from '../calls/partition-calls.ts';
import { replayPlaced } from '../jobs/replay.ts';
import { each, type Reading, type Scan, type Search, type Tell } from './scan.ts';
import { type Placed, walk } from './walk.ts';

/** What became of a replay of many, or how far it has come. */
export interface ManyReplayed extends Scan {
  /** How many dead letters were meant. */
  readonly matched: number;
  /** How many of their jobs live again; of a dry run 0. */
  readonly scheduled: number;
  /** How many stay because a job of their id is live. */
  readonly live: number;
  /** How many have no record to replay. */
  readonly empty: number;
  /** How many somebody else replayed or removed meanwhile; or this call, whose reply was lost, and nothing is known of the job. */
  readonly gone: number;
  /** The first 100 whose jobs were not scheduled, and why. */
  readonly refused: readonly RefusedReplay[];
}

/** A dead letter that stays, and why: a job of its id lives, it has no record, or somebody was faster. */
export interface RefusedReplay {
  readonly deadLetter: string;
  readonly partition: number;
  /** The id of the job. */
  readonly id: string;
  readonly status: 'live' | 'empty' | 'gone';
}

export interface ReplayPlan {
  readonly dueMs: number;
  /** They become due within so many ms after that, spread by their ids. */
  readonly overMs: number;
  readonly dryRun: boolean;
  readonly onProgress: Tell<ManyReplayed>;
}

/** How many are under way at once. */
const AT_ONCE = 50;
const REFUSED_MAX = 100;

interface Replaying extends Reading {
  readonly jobs: Pick<Jobs, 'replay'>;
  readonly plan: ReplayPlan;
  readonly tally: { matched: number; ok: number; live: number; empty: number; gone: number };
  readonly refused: RefusedReplay[];
}

export async function replayAll(
  reading: Reading & Pick<Replaying, 'jobs'>,
  layout: Layout,
  { search, plan }: { readonly search: Search; readonly plan: ReplayPlan },
): Promise<ManyReplayed | Moved> {
  const tally = { matched: 0, ok: 0, live: 0, empty: 0, gone: 0 };
  const replaying: Replaying = { ...reading, plan, tally, refused: [] };
  let batch: Placed[] = [];
  let moved: Moved | undefined;
  const source = walk(reading, layout, { from: search.from?.spot, order: 'newest' });
  const scan = await each(source, { search, layout }, async (placed, soFar) => {
    tally.matched += 1;
    batch.push(placed);
    if (batch.length === AT_ONCE) {
      moved = await replayBatch(replaying, batch);
      batch = [];
      plan.onProgress?.(told(replaying, soFar));
    }
    return tally.matched < search.limit && moved === undefined;
  });
  moved ??= await replayBatch(replaying, batch);
  return moved ?? told(replaying, scan);
}

function told({ tally, refused }: Replaying, scan: Scan): ManyReplayed {
  const { ok: scheduled, ...counts } = tally;
  return { ...counts, scheduled, refused, ...scan };
}

async function replayBatch(replaying: Replaying, batch: readonly Placed[]): Promise<Moved | undefined> {
  const { plan, tally, refused } = replaying;
  if (plan.dryRun) return undefined;
  const one = ({ ref, letter }: Placed) =>
    replayPlaced(replaying, { ref, deadLetter: letter }, plan.dueMs + spreadMs(letter.entry, plan.overMs));
  let moved: Moved | undefined;
  for (const [at, reply] of (await Promise.all(batch.map(one))).entries()) {
    if (isMoved(reply)) {
      moved = reply;
      continue;
    }
    const kind = reply.kind === 'indeterminate' ? 'gone' : reply.kind;
    tally[kind] += 1;
    const placed = batch[at];
    if (kind === 'ok' || !placed || refused.length >= REFUSED_MAX) continue;
    const { entry: deadLetter, id } = placed.letter;
    refused.push({ deadLetter, partition: placed.ref.partition, id, status: kind });
  }
  return moved;
}
