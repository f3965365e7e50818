/**
 * Jobs that are over in Redis, but for the turn that most completions travel with (`turns.ts`): those whose turn had no
 * reply are repeated here, and those of jobs that are delivered at most once.
 *
 * A job that is delivered at most once is completed before its handler. That call leaves its entry pending, as the proof
 * that this start completed it, so that the same call is recognised however late it is repeated. Once Redis has answered,
 * the entry needs a completion more, which removes it; that one travels while the handler runs. The acknowledgements of
 * one event-loop turn travel in one call per partition.
 *
 * What a call says of each job is made before the call is: a job for which that throws is not in it. A call at which our own
 * code throws all the same is sent once more for each job alone, so that only the job ends that it throws at.
 */
import { endMark } from '../../job/record-header.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import type { Claim, SettleReply } from '../../redis/scripts/replies.ts';
import { type ConcludeParts, conclude, type Ended, isMine, persist, tellCompleted } from './conclude.ts';
import type { Faults } from './faults.ts';
import { claimOf, isCompletedEarly } from './in-flight.ts';

export interface CompletionsParts extends ConcludeParts {
  readonly jobs: Pick<Jobs, 'complete' | 'serve'>;
  readonly faults: Faults;
  readonly consumer: string;
  readonly windowMs: number;
}

/** A job that is over, and what Redis is told of it. */
export interface Over {
  readonly ended: Ended;
  readonly claim: Claim & { readonly mark: string };
}

export interface Completions {
  /** `run` is called if this start is the one that completed the job; then the job is over, and `complete` is its end. */
  readonly acknowledge: (ended: Ended, run: () => void, complete: (ended: Ended) => void) => void;
  /** Redis has answered for a completion; undefined when the worker gives up. Never throws. */
  readonly settled: (ended: Ended, reply: SettleReply | undefined) => void;
  /** Completions without a reply: asked for until there is one. */
  readonly repeat: (ref: PartitionRef, over: readonly Over[]) => void;
}

interface Acknowledgement extends Over {
  readonly run: () => void;
  readonly complete: (ended: Ended) => void;
}

interface Collecting extends CompletionsParts {
  /** Acknowledgements that wait, by partition. With the first a flush is under way. */
  waiting: Map<PartitionRef, Acknowledgement[]>;
}

/** Most completions per call: Redis serves nobody else meanwhile, and frees a record for each. */
const BATCH_MAX = 100;

export function createCompletions(parts: CompletionsParts): Completions {
  const collecting: Collecting = { ...parts, waiting: new Map() };
  return {
    acknowledge: (ended, run, complete) => add(collecting, { ...overOf(ended, parts.windowMs), run, complete }),
    settled: (ended, reply) => settled(collecting, ended, reply),
    repeat: (ref, over) => void repeat(collecting, ref, over),
  };
}

/** One reply of many: what our own code throws at it must not cost the others theirs. */
function settled(parts: CompletionsParts, ended: Ended, reply: SettleReply | undefined): void {
  try {
    settle(parts, ended, reply);
  } catch (thrown) {
    parts.faults.caught(ended.held, thrown, ended);
  }
}

function settle(parts: CompletionsParts, ended: Ended, reply: SettleReply | undefined): void {
  // Our own code failed at it while it was on its way.
  if (ended.held.state.phase === 'gone') return;
  if (isCompletedEarly(ended.held)) {
    // Its entry is gone from Redis, or is left there for others to drop.
    parts.inFlight.answered(ended.held);
    return;
  }
  if (isMine(reply)) tellCompleted(parts, ended);
  conclude(parts, ended, 'complete', reply);
}

async function repeat(parts: CompletionsParts, ref: PartitionRef, over: readonly Over[]): Promise<void> {
  if (over.length === 0) return;
  await each(parts, ref, { batch: over, hold: false, answered: ({ ended }, reply) => settled(parts, ended, reply) });
}

interface Batch<O extends Over> {
  readonly batch: readonly O[];
  readonly hold: boolean;
  /** Never throws. */
  readonly answered: (one: O, reply: SettleReply | undefined) => void;
}

/** Never rejects. */
async function each<O extends Over>(parts: CompletionsParts, ref: PartitionRef, call: Batch<O>): Promise<void> {
  const { batch, hold, answered } = call;
  let replies: readonly SettleReply[] | undefined;
  try {
    replies = await send(parts, ref, { batch, hold });
  } catch (thrown) {
    const [first] = batch;
    if (batch.length > 1) await Promise.all(batch.map((one) => each(parts, ref, { ...call, batch: [one] })));
    else if (first) parts.faults.caught(first.ended.held, thrown, first.ended);
    return;
  }
  for (const [index, one] of batch.entries()) answered(one, replies?.[index]);
}

function add(collecting: Collecting, acknowledgement: Acknowledgement): void {
  const { waiting } = collecting;
  const { ref } = acknowledgement.ended.held;
  if (waiting.size === 0) setImmediate(() => flush(collecting));
  const batch = waiting.get(ref) ?? [];
  batch.push(acknowledgement);
  waiting.set(ref, batch);
}

function flush(collecting: Collecting): void {
  const { waiting } = collecting;
  collecting.waiting = new Map();
  for (const [ref, all] of waiting) {
    for (let from = 0; from < all.length; from += BATCH_MAX) {
      void acknowledgeAll(collecting, ref, all.slice(from, from + BATCH_MAX));
    }
  }
}

async function acknowledgeAll(
  parts: CompletionsParts,
  ref: PartitionRef,
  batch: readonly Acknowledgement[],
): Promise<void> {
  await each(parts, ref, { batch, hold: true, answered: (one, reply) => acknowledged(parts, one, reply) });
}

function acknowledged(
  parts: CompletionsParts,
  { ended, run, complete }: Acknowledgement,
  reply: SettleReply | undefined,
): void {
  try {
    if (!isMine(reply)) {
      conclude(parts, ended, 'complete', reply);
      return;
    }
    parts.inFlight.completedEarly(ended.held);
    complete(ended);
    run();
  } catch (thrown) {
    parts.faults.caught(ended.held, thrown, ended);
  }
}

function send(
  parts: CompletionsParts,
  ref: PartitionRef,
  { batch, hold }: { readonly batch: readonly Over[]; readonly hold: boolean },
): Promise<readonly SettleReply[] | undefined> {
  const { jobs, windowMs, consumer } = parts;
  const claims = batch.map(({ claim }) => claim);
  return persist(parts, 'complete', () => jobs.complete(ref, claims, { windowMs, consumer, hold }));
}

/** What a completion addresses, and what its tombstone keeps, if there is to be one. */
export function overOf(ended: Ended, windowMs: number): Over {
  const { held, record, note } = ended;
  const { entry, member, token } = claimOf(held);
  // A history keeps the mark, too, where no tombstone does.
  const mark = endMark(record, note === undefined ? windowMs : Number.POSITIVE_INFINITY);
  return { ended, claim: { entry, member, token, mark: note === undefined ? mark : `${mark}\n${note}` } };
}
