/**
 * Completions of one event-loop turn travel in one call per partition: an acknowledgement per job would halve the drain.
 *
 * A job that is delivered at most once is completed before its handler. That call leaves its entry pending, as the proof
 * that this start completed it, so that the same call is recognised however late it is repeated. Once Redis has answered,
 * the entry needs a completion more, which removes it; that one travels while the handler runs.
 */
import type { PartitionRef } from '../redis/keys.ts';
import type { Jobs } from '../redis/transitions/jobs.ts';
import type { SettleReply } from '../redis/transitions/replies.ts';
import { type ConcludeParts, conclude, type Ended, isMine, persist, tellCompleted } from './conclude.ts';
import { claimOf } from './inflight.ts';

export interface CompletionsParts extends ConcludeParts {
  readonly jobs: Pick<Jobs, 'complete'>;
  readonly windowMs: number;
}

export interface Completions {
  readonly complete: (ended: Ended) => void;
  /** `run` is called if this start is the one that completed the job. */
  readonly acknowledge: (ended: Ended, run: () => void) => void;
}

interface Acknowledgement extends Ended {
  readonly run: () => void;
}

/** What waits for the next flush. Acknowledgements hold their entries, and travel in calls of their own. */
interface Batches {
  readonly ends: Ended[];
  readonly acknowledgements: Acknowledgement[];
}

interface Collecting extends CompletionsParts {
  /** What waits, by partition. With the first a flush is under way. */
  waiting: Map<PartitionRef, Batches>;
}

/** Most completions per call: Redis serves nobody else meanwhile, and frees a record for each. */
const BATCH_MAX = 100;

export function createCompletions(parts: CompletionsParts): Completions {
  const collecting: Collecting = { ...parts, waiting: new Map() };
  return {
    complete: (ended) => void batchesOf(collecting, ended).ends.push(ended),
    acknowledge: (ended, run) => void batchesOf(collecting, ended).acknowledgements.push({ ...ended, run }),
  };
}

function batchesOf(collecting: Collecting, { held: { ref } }: Ended): Batches {
  const { waiting } = collecting;
  if (waiting.size === 0) setImmediate(() => flush(collecting));
  const batches = waiting.get(ref) ?? { ends: [], acknowledgements: [] };
  if (!waiting.has(ref)) waiting.set(ref, batches);
  return batches;
}

function flush(collecting: Collecting): void {
  const batches = collecting.waiting;
  collecting.waiting = new Map();
  for (const [ref, { ends, acknowledgements }] of batches) {
    for (let from = 0; from < ends.length; from += BATCH_MAX) {
      void sendEnds(collecting, ref, ends.slice(from, from + BATCH_MAX));
    }
    for (let from = 0; from < acknowledgements.length; from += BATCH_MAX) {
      void sendAcknowledgements(collecting, ref, acknowledgements.slice(from, from + BATCH_MAX));
    }
  }
}

async function sendEnds(collecting: Collecting, ref: PartitionRef, batch: readonly Ended[]): Promise<void> {
  const replies = await send(collecting, ref, { batch, hold: false });
  for (const [index, ended] of batch.entries()) {
    const reply = replies?.[index];
    const { state } = ended.held;
    if ('acknowledged' in state && state.acknowledged) {
      // Its entry is gone from Redis, or is left there for others to drop.
      collecting.inflight.answered(ended.held);
      continue;
    }
    if (isMine(reply)) tellCompleted(collecting, ended);
    conclude(collecting, ended, 'complete', reply);
  }
}

async function sendAcknowledgements(
  collecting: Collecting,
  ref: PartitionRef,
  batch: readonly Acknowledgement[],
): Promise<void> {
  const replies = await send(collecting, ref, { batch, hold: true });
  for (const [index, { run, held, name }] of batch.entries()) {
    const reply = replies?.[index];
    const ended = { held, name, tookMs: 0 };
    if (!isMine(reply)) {
      conclude(collecting, ended, 'complete', reply);
      continue;
    }
    collecting.inflight.acknowledged(held);
    batchesOf(collecting, ended).ends.push(ended);
    run();
  }
}

function send(
  collecting: Collecting,
  ref: PartitionRef,
  { batch, hold }: { readonly batch: readonly Ended[]; readonly hold: boolean },
): Promise<readonly SettleReply[] | undefined> {
  const { jobs, windowMs } = collecting;
  const claims = batch.map(({ held }) => claimOf(held));
  return persist(collecting, 'complete', () => jobs.complete(ref, claims, { windowMs, hold }));
}
