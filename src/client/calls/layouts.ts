/**
 * Over how many partitions each queue is split, remembered. The first use of a queue declares it. A layout that is
 * remembered may be wrong at any time (the queue was resized or removed, or a server without persistence lost everything):
 * the scripts then answer `moved`, and the layout is read again. It is also read again beside the work every 30 s and after
 * every reconnection. That declares a queue anew that is not in the registry, and the daemons see its jobs.
 */

import { partitionOf } from '../../job/job-id.ts';
import type { Queue } from '../../job/queue.ts';
import type { Clock } from '../../kernel/clock.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { declareQueue, partitionsOf, settingsOf } from '../../redis/scripts/queues.ts';
import { withReadRetry } from './retry.ts';

/** The partitions of a queue, in order. */
export type Layout = readonly PartitionRef[];

interface Entry {
  readonly queue: Queue;
  layout: Layout | undefined;
  reading: Promise<Layout> | undefined;
  readMs: number;
}

const FRESH_MS = 30_000;
const QUEUES_MAX = 10_000;
/** The layout of a queue changes only when the queue is removed and used again: more moves in one call mean a registry at odds with itself. */
export const MOVES_MAX = 5;
export const MOVE_PAUSE_MS = 50;

interface LayoutsParts {
  readonly redis: Redis;
  readonly namespace: string;
  readonly clock: Clock;
  readonly budgetMs: number;
  /** Ends what goes on beside the work. */
  readonly signal: AbortSignal;
}

export class Layouts {
  readonly #parts: LayoutsParts;
  readonly #entries = new Map<string, Entry>();

  constructor(parts: LayoutsParts) {
    this.#parts = parts;
  }

  /** The layout that is remembered, without waiting. */
  known(queue: Queue): Layout | undefined {
    const entry = this.#entries.get(queue.name);
    if (!entry?.layout) return undefined;
    if (this.#parts.clock.monotonicMs() - entry.readMs > FRESH_MS) this.#refresh(entry);
    return entry.layout;
  }

  /** The layout that is remembered, or else the one that Redis says. @throws DuestreamError `unavailable` or `refused` */
  async load(queue: Queue): Promise<Layout> {
    const entry = this.#entryOf(queue);
    return entry.layout ?? this.#read(entry);
  }

  /** Reads again unless another call has since `seen`. */
  async reload(queue: Queue, seen: PartitionRef): Promise<Layout> {
    const entry = this.#entryOf(queue);
    const current = entry.layout?.[0];
    return entry.layout && current?.layoutGeneration !== seen.layoutGeneration ? entry.layout : this.#read(entry);
  }

  /** Another server may answer now: every queue that is remembered is declared and read again, beside the work. */
  doubt(): void {
    for (const entry of this.#entries.values()) this.#refresh(entry);
  }

  #entryOf(queue: Queue): Entry {
    const found = this.#entries.get(queue.name);
    if (found) return found;
    if (this.#entries.size >= QUEUES_MAX) this.#entries.clear();
    const made: Entry = { queue, layout: undefined, reading: undefined, readMs: 0 };
    this.#entries.set(queue.name, made);
    return made;
  }

  #read(entry: Entry): Promise<Layout> {
    entry.readMs = this.#parts.clock.monotonicMs();
    // Only the first call gives the settings: a later one must not undo a setting that somebody made since, for all
    // processes.
    entry.reading ??= this.#declare(entry.queue, entry.layout !== undefined)
      .then((layout) => {
        entry.layout = layout;
        return layout;
      })
      .finally(() => {
        entry.reading = undefined;
      });
    return entry.reading;
  }

  /** Beside the work. The work itself tells of a failure; where the schema is another, it has to ask again. */
  #refresh(entry: Entry): void {
    this.#read(entry).catch((error: unknown) => {
      if (error instanceof DuestreamError && error.code === 'wrong-schema') entry.layout = undefined;
    });
  }

  async #declare(queue: Queue, isRepeated: boolean): Promise<Layout> {
    const { name, partitions } = queue;
    const { redis, namespace, clock, budgetMs, signal } = this.#parts;
    // Whether a lost call has declared the queue does not matter: the next one finds it, and no job was sent yet.
    const settings = { ...settingsOf(queue), isRepeated };
    const call = () => declareQueue(redis, { namespace, queue: name, partitions, ...settings });
    return partitionsOf(namespace, await withReadRetry(`look up queue ${name}`, call, { clock, budgetMs, signal }));
  }
}

/** The partition an id of ours lives in. */
export function homeOf(layout: Layout, id: string): PartitionRef {
  const home = layout[partitionOf(id, layout.length)];
  if (!home) throw new Error(`a layout of ${layout.length} partitions has no place for ${id}`);
  return home;
}

/** The error of a queue whose registry and partitions do not agree. */
export const movedAway = (queue: string) =>
  new DuestreamError('moved', `queue ${queue} was resized ${MOVES_MAX} times during one call; repeat the call`);
