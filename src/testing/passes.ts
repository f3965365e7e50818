/**
 * When the leader of a partition passes in virtual time: at the due time of a job, and where its queue lingers so long after
 * the last pass at least. What is due at one moment is in one pass.
 */
import { partitionOf } from '../job/job-id.ts';
import type { Kept } from './kept.ts';

export class Passes {
  /** How long the queue lingers, as a definition has said it last. */
  readonly #lingers = new Map<string, number>();
  /** Partition → when it had its last pass. */
  readonly #last = new Map<string, number>();

  /** Partition → when it has the pass that jobs wait for. */
  readonly #awaited = new Map<string, number>();

  /** When the pass comes that takes a job which is due; undefined: this is one. */
  nextMs(
    { queue, id }: Pick<Kept, 'queue' | 'id'>,
    { nowMs, hasWaited }: { readonly nowMs: number; readonly hasWaited: boolean },
  ): number | undefined {
    const { name, partitions, lingerMs } = queue;
    if (lingerMs !== undefined) this.#lingers.set(name, lingerMs);
    const place = `${name}:${partitionOf(id, partitions)}`;
    // Those that were due before come before it, in the same pass.
    if (!hasWaited && this.#awaited.get(place) === nowMs) return nowMs;
    const lastMs = this.#last.get(place) ?? Number.NEGATIVE_INFINITY;
    const nextMs = lastMs + (this.#lingers.get(name) ?? 0);
    const isBetween = nowMs > lastMs && nowMs < nextMs;
    (isBetween ? this.#awaited : this.#last).set(place, isBetween ? nextMs : nowMs);
    return isBetween ? nextMs : undefined;
  }
}
