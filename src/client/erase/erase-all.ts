/** A person is removed from several queues, one after the other by their names. */
import { defineQueue } from '../../job/queue.ts';
import { listQueues } from '../../redis/scripts/queues.ts';
import { withReadRetry } from '../calls/read-retry.ts';
import { BEGINNING, type QueueSpot, queueCursorOf } from './cursor.ts';
import { type EraseAsk, type Erased, type ErasingParts, eraseTag, erasingAsOne } from './erase.ts';

/** What was removed from one of the queues. */
export type ErasedQueue = Omit<Erased, 'cursor'> & { readonly queue: string };

/** What was removed from all of them. */
export interface ErasedEverywhere {
  readonly dryRun: boolean;
  /** Those that were looked at, by name. */
  readonly queues: readonly ErasedQueue[];
  /** How many jobs run, were asked to stop, or are there still. With 0 and no `cursor` nothing is left. */
  readonly left: number;
  /** Where to go on if this is not the end. */
  readonly cursor: string | undefined;
}

export interface EraseAllAsk extends Omit<EraseAsk, 'queue' | 'from' | 'onProgress'> {
  readonly from: QueueSpot | undefined;
  /** Which queues; undefined: all. */
  readonly wanted: readonly string[] | undefined;
  readonly onProgress: ((progress: ErasedQueue) => void) | undefined;
  readonly policy: Parameters<typeof withReadRetry>[2];
}

export async function eraseEverywhere(given: ErasingParts, ask: EraseAllAsk): Promise<ErasedEverywhere> {
  const parts = erasingAsOne(given);
  const { from, wanted, onProgress, policy, dryRun, tag, signal, note } = ask;
  const layouts = await withReadRetry('list queues', () => listQueues(parts.redis, parts.namespace), policy);
  const names = layouts.map(({ queue }) => queue);
  const queues: ErasedQueue[] = [];
  const told = (spot: QueueSpot | undefined): ErasedEverywhere => ({
    dryRun,
    queues,
    cursor: spot && queueCursorOf(spot, { tag, wanted }),
    left: queues.reduce((sum, { running, left }) => sum + Math.max(running, left), 0),
  });
  let scanMax = ask.scanMax;
  for (const queue of names) {
    if ((wanted && !wanted.includes(queue)) || (from && queue < from.queue)) continue;
    const begin = from?.queue === queue ? from.spot : BEGINNING;
    if (scanMax <= 0 || signal?.aborted) return told({ queue, spot: begin });
    const { erased, spot } = await eraseTag(parts, {
      tag,
      dryRun,
      signal,
      note,
      scanMax,
      from: begin,
      queue: defineQueue(queue),
      onProgress: onProgress && (({ cursor: _, ...progress }) => onProgress({ queue, ...progress })),
    });
    queues.push({ queue, ...erased });
    scanMax -= erased.scanned;
    if (spot) return told({ queue, spot });
  }
  return told(undefined);
}
