/**
 * Dead letters → scheduled jobs with fresh budgets: those that a caller names, or all that a filter means, at once or spread
 * over a time. A dead letter is read first, so that a call whose reply was lost recognises its own work when it is repeated
 * and the dead letter is gone. A replayed dead letter is gone, so a call that was cut short or repeated replays nothing twice.
 */
import { memberOf, type Tombstone } from '../../job/codec.ts';
import type { ScheduleOptions } from '../../job/options.ts';
import type { Queue } from '../../job/queue.ts';
import { spreadMs } from '../../kernel/spread.ts';
import { withRetry } from '../../redis/connection/outage.ts';
import type { DeadLetter } from '../../redis/read/inspect.ts';
import type { Moved, ReplayReply } from '../../redis/scripts/replies.ts';
import type { Confirming, DurabilityOption } from '../calls/durability.ts';
import { etagOfDeadLetter, isMatch } from '../calls/etag.ts';
import type { Layout } from '../calls/layouts.ts';
import { asOne, type CallPartitions, isMoved } from '../calls/partition-calls.ts';
import { withReadRetry } from '../calls/retry.ts';
import type { Progress } from '../jobs/by-filter.ts';
import { locate, type Named, type OneLetterOptions } from './locate.ts';
import { each, type Placed, type Reading, type Scan, type Search, walk } from './walk.ts';

/** What became of a request to replay a dead letter. */
export interface Replayed {
  /** Undefined where a job was named and has none. */
  readonly deadLetter: string | undefined;
  /**
   * `scheduled`: the job lives again, and the dead letter is gone · `live`: a job of this id lives, and the dead letter
   * stays · `closed`: a tag of the job is closed, and the dead letter stays · `empty`: the dead letter has no record to
   * replay · `gone`: there is no such dead letter · `changed`: it is another one than `ifMatch` says, and stays · `indeterminate`: the reply was lost and the dead letter is gone since, but
   * nothing is known of its job, so nobody knows what became of both.
   */
  readonly status: 'scheduled' | 'live' | 'closed' | 'empty' | 'gone' | 'changed' | 'indeterminate';
  /** The job that was named, else whose dead letter it is, unless that is gone. */
  readonly id: string | undefined;
  /** With `scheduled`: epoch ms from which the job may run. */
  readonly dueMs: number | undefined;
  /**
   * With `scheduled`, in strict order: `first`: the job has its group again, which waited for it · `last`: its group has gone on, and
   * the job is a new one behind others.
   */
  readonly place?: 'first' | 'last' | undefined;
}

/** When dead letters run again. Default: now. */
export type ReplayDue = Pick<ScheduleOptions, 'delay' | 'at'> & DurabilityOption;

/** When one dead letter runs again, and which one is meant. */
export type ReplayOptions = ReplayDue & OneLetterOptions;

/**
 * Why a dead letter that the filter meant was not replayed: `live`: a job of its id lives · `closed`: a tag of it is closed ·
 * `empty`: it has no record to replay · `gone`: somebody else replayed or removed it meanwhile; or this call, whose reply was lost, and nothing is known of
 * the job.
 */
export type ReplaySkipReason = 'live' | 'closed' | 'empty' | 'gone';

/** What became of a replay of all that a filter means, or how far it has come. `changed`: how many of their jobs live again. */
export interface ReplayedLetters extends Progress<ReplaySkipReason> {
  readonly dryRun: boolean;
  /** The first 100 whose jobs were not scheduled, and why. */
  readonly refused: readonly RefusedReplay[];
}

/** A dead letter that stays, and why. */
export interface RefusedReplay {
  readonly deadLetter: string;
  readonly partition: number;
  /** The id of the job. */
  readonly id: string;
  readonly status: ReplaySkipReason;
}

export interface ReplayRequest extends Named {
  readonly dueMs: number;
}

/** What becomes of dead letters that a caller names, in their order. */
export type ReplayNamed = (queue: Queue, requests: readonly ReplayRequest[]) => Promise<readonly Replayed[]>;

export interface ReplayPlan {
  readonly dueMs: number;
  /** They become due within so many ms after that, spread by their ids. */
  readonly overMs: number;
  readonly dryRun: boolean;
  readonly onProgress: ((progress: ReplayedLetters) => void) | undefined;
}

/** How many are under way at once. */
const AT_ONCE = 50;
const REFUSED_MAX = 100;

interface ReplayParts extends Confirming, Pick<Reading, 'store'> {
  readonly callPartitions: CallPartitions;
}

export function createReplay(parts: ReplayParts): ReplayNamed {
  return async (queue, requests) => {
    const callPartitions = requests.length === 1 ? parts.callPartitions : asOne(parts.callPartitions);
    const replay = (request: ReplayRequest) =>
      callPartitions(queue, (layout, policy) => replayOne({ store: parts.store, policy }, layout, request));
    const results: Replayed[] = [];
    for (let from = 0; from < requests.length; from += AT_ONCE) {
      results.push(...(await Promise.all(requests.slice(from, from + AT_ONCE).map(replay))));
    }
    // An earlier call of the same kind may have replayed it.
    if (results.some(({ status }) => status === 'gone')) await parts.confirm?.(queue);
    return results;
  };
}

async function replayOne(reading: Reading, layout: Layout, request: ReplayRequest): Promise<Replayed | Moved> {
  const { target, dueMs, ifMatch } = request;
  const found = await locate(reading, layout, request);
  if (!found) {
    const id = target.deadLetterId === undefined ? target.id : undefined;
    return { deadLetter: target.deadLetterId, status: 'gone', id, dueMs: undefined };
  }
  const { id, entry: deadLetter } = found.letter;
  // A dead letter never changes: the script replays what was read here, or finds it gone.
  if (!isMatch(ifMatch, etagOfDeadLetter(found.letter))) return { deadLetter, status: 'changed', id, dueMs: undefined };
  const reply = await replayPlaced(reading, found, dueMs);
  if (isMoved(reply)) return reply;
  if (reply.kind === 'ok') {
    const { dueMs: madeMs, place } = reply;
    return { deadLetter, status: 'scheduled', id, dueMs: madeMs, ...(place !== undefined && { place }) };
  }
  return { deadLetter, status: reply.kind, id, dueMs: undefined };
}

/** `indeterminate`: an earlier call may have replayed it, and what it left has gone since. */
type Placing = ReplayReply | { readonly kind: 'indeterminate' };

/**
 * A dead letter that is gone may have been replayed by a call whose reply was lost: then its job lives, one generation on,
 * or has ended since, with more attempts than the dead letter had, or cancelled before its next start.
 */
async function replayPlaced({ store, policy }: Reading, { ref, letter }: Placed, dueMs: number): Promise<Placing> {
  const call = async (isRepeated: boolean) => ({ isRepeated, reply: await store.replay(ref, letter.entry, { dueMs }) });
  const { reply, isRepeated } = await withRetry('replay', call, policy);
  if (reply.kind !== 'gone' || !isRepeated) return reply;
  const member = memberOf(letter.id, letter);
  const job = await withReadRetry('replay', () => store.peek(ref, member), policy);
  if (!job || 'kind' in job) return { kind: 'indeterminate' };
  if (job.run?.generation === letter.generation + 1) return { kind: 'ok', dueMs: job.dueMs ?? dueMs, member };
  return job.tombstone && endedAfter(job.tombstone, letter) ? { kind: 'ok', dueMs, member } : { kind: 'indeterminate' };
}

/** Attempts go on in a replayed life, and begin anew in every other one. */
const endedAfter = ({ outcome, attempts }: Tombstone, letter: DeadLetter): boolean =>
  attempts > letter.attempts || (outcome !== 'dead' && attempts > 0 && attempts === letter.attempts);

interface Replaying extends Reading {
  readonly plan: ReplayPlan;
  readonly tally: { matched: number; changed: number; readonly skipped: Partial<Record<ReplaySkipReason, number>> };
  readonly refused: RefusedReplay[];
}

export async function replayAll(
  reading: Reading,
  layout: Layout,
  { search, plan }: { readonly search: Search; readonly plan: ReplayPlan },
): Promise<ReplayedLetters | Moved> {
  const tally = { matched: 0, changed: 0, skipped: {} };
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

function told({ plan, tally, refused }: Replaying, scan: Scan): ReplayedLetters {
  return { ...tally, skipped: { ...tally.skipped }, dryRun: plan.dryRun, refused, ...scan };
}

async function replayBatch(replaying: Replaying, batch: readonly Placed[]): Promise<Moved | undefined> {
  const { plan, tally, refused } = replaying;
  if (plan.dryRun) return undefined;
  const one = (placed: Placed) =>
    replayPlaced(replaying, placed, plan.dueMs + spreadMs(placed.letter.entry, plan.overMs));
  let moved: Moved | undefined;
  for (const [at, reply] of (await Promise.all(batch.map(one))).entries()) {
    if (isMoved(reply)) {
      moved = reply;
      continue;
    }
    if (reply.kind === 'ok') {
      tally.changed += 1;
      continue;
    }
    const status = reply.kind === 'indeterminate' ? 'gone' : reply.kind;
    tally.skipped[status] = (tally.skipped[status] ?? 0) + 1;
    const placed = batch[at];
    if (!placed || refused.length >= REFUSED_MAX) continue;
    const { entry: deadLetter, id } = placed.letter;
    refused.push({ deadLetter, partition: placed.ref.partition, id, status });
  }
  return moved;
}
