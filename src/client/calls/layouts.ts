/**
 * Over how many partitions each queue is split, remembered. What makes jobs, or is to hold for jobs that come, declares its
 * queue; a look and a change declare none: a queue that nobody has used is an empty one to them. A layout that is
 * remembered may be wrong at any time (the queue was resized or removed, or a server without persistence lost everything):
 * the scripts then answer `moved`, and the layout is read again. It is also read again beside the work every 30 s and after
 * every reconnection. That only looks: a queue that is gone stays gone until the next job declares it anew.
 */

import { partitionOf } from '../../job/job-id.ts';
import type { Queue } from '../../job/queue.ts';
import type { Clock } from '../../kernel/clock.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import {
  declarationOf,
  declareQueue,
  findQueue,
  otherPartitions,
  partitionsOf,
  type QueueLayout,
} from '../../redis/scripts/queues.ts';
import { differingText, otherVersions } from '../../redis/versions.ts';
import { withReadRetry } from './retry.ts';

/** The partitions of a queue, in order. */
export type Layout = readonly PartitionRef[];

interface Entry {
  queue: Queue;
  layout: Layout | undefined;
  /** This client has said what the definition says: it says so again only where the queue is gone. */
  isDeclared: boolean;
  reading: Promise<Layout> | undefined;
  finding: Promise<Layout> | undefined;
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

  /** The layout that is remembered of a queue that was declared, without waiting. */
  known(queue: Queue): Layout | undefined {
    return this.#entries.get(queue.name)?.isDeclared ? this.seen(queue) : undefined;
  }

  /** The layout that is remembered, whoever has declared the queue. */
  seen(queue: Queue): Layout | undefined {
    const entry = this.#entries.get(queue.name);
    if (!entry?.layout) return undefined;
    if (this.#parts.clock.monotonicMs() - entry.readMs > FRESH_MS) this.#refresh(entry);
    return entry.layout;
  }

  /** The queue is declared, if this client has not done so yet. @throws DuestreamError `unavailable` or `refused` */
  async load(queue: Queue): Promise<Layout> {
    const entry = this.#entryOf(queue);
    if (entry.isDeclared && entry.layout) return entry.layout;
    // The definition of this call counts, and not that of a look before it.
    entry.queue = queue;
    return this.#read(entry);
  }

  /** The layout that is remembered, or else the one that Redis says; of a queue that nobody has used, the one that it would get. */
  async find(queue: Queue): Promise<Layout> {
    const entry = this.#entryOf(queue);
    return entry.layout ?? this.#find(entry);
  }

  /** Reads again unless another call has since `seen`. A call that `declares` makes a queue that is gone. */
  async reload(queue: Queue, seen: PartitionRef, use?: 'declares'): Promise<Layout> {
    const entry = this.#entryOf(queue);
    const current = entry.layout?.[0];
    if (entry.layout && current?.layoutGeneration !== seen.layoutGeneration) return entry.layout;
    return use === 'declares' ? this.#read(entry) : this.#find(entry);
  }

  /** Another server may answer now: the layout of every queue that is remembered is read again, beside the work. */
  doubt(): void {
    for (const entry of this.#entries.values()) this.#refresh(entry);
  }

  #entryOf(queue: Queue): Entry {
    const found = this.#entries.get(queue.name);
    if (found) return found;
    if (this.#entries.size >= QUEUES_MAX) this.#entries.clear();
    const made: Entry = {
      queue,
      layout: undefined,
      isDeclared: false,
      reading: undefined,
      finding: undefined,
      readMs: 0,
    };
    this.#entries.set(queue.name, made);
    return made;
  }

  #read(entry: Entry): Promise<Layout> {
    entry.readMs = this.#parts.clock.monotonicMs();
    // Only the first call gives the settings: a later one must not undo a setting that somebody made since, for all
    // processes.
    entry.reading ??= this.#declare(entry.queue, entry.isDeclared)
      .then((layout) => {
        entry.layout = layout;
        entry.isDeclared = true;
        return layout;
      })
      .finally(() => {
        entry.reading = undefined;
      });
    return entry.reading;
  }

  /** Beside the work. The work itself tells of a failure; where the schema is another, it has to ask again. */
  #refresh(entry: Entry): void {
    this.#find(entry).catch((error: unknown) => {
      if (error instanceof DuestreamError && error.code === 'wrong-schema') entry.layout = undefined;
    });
  }

  /** Only looks. What is not there is not remembered: it may be there with the next call. */
  #find(entry: Entry): Promise<Layout> {
    const { redis, namespace, clock, budgetMs, signal } = this.#parts;
    const { name, partitions } = entry.queue;
    entry.readMs = clock.monotonicMs();
    const look = () => findQueue(redis, namespace, name);
    entry.finding ??= withReadRetry(`look up queue ${name}`, look, { clock, budgetMs, signal })
      .then((found) => {
        warnOfVersions(found);
        const layout = partitionsOf(namespace, found ?? { queue: name, partitions, layoutGeneration: 0 });
        entry.layout = found && layout;
        return layout;
      })
      .finally(() => {
        entry.finding = undefined;
      });
    return entry.finding;
  }

  async #declare(queue: Queue, isRepeated: boolean): Promise<Layout> {
    const { redis, namespace, clock, budgetMs, signal } = this.#parts;
    // Whether a lost call has declared the queue does not matter: the next one finds it, and no job was sent yet.
    const call = () => declareQueue(redis, { ...declarationOf(namespace, queue), isRepeated });
    const layout = await withReadRetry(`look up queue ${queue.name}`, call, { clock, budgetMs, signal });
    warnOfVersions(layout);
    if (!isRepeated) warnOfOthers(layout, queue);
    return partitionsOf(namespace, layout);
  }
}

const warned = new Set<string>();
const WARNED_MAX = 1000;

// A client has no log: what it finds odd is told once in a process, as Node tells warnings.

function warn(text: string): void {
  if (warned.has(text) || warned.size >= WARNED_MAX) return;
  warned.add(text);
  process.emitWarning(text, 'DuestreamWarning');
}

/** What its definition says and the queue has not. */
function warnOfOthers(layout: QueueLayout, queue: Queue): void {
  const text = otherPartitions(layout, queue);
  if (text !== undefined) warn(`queue ${queue.name} is not as its definition says: ${text}`);
}

/** Daemons and workers of another minor version. */
function warnOfVersions(layout: QueueLayout | undefined): void {
  const others = otherVersions(layout?.versions);
  if (others.length > 0) warn(differingText(others));
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
