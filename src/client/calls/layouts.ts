/**
 * Over how many partitions each queue is split, remembered. A queue is declared by its first use. What is remembered
 * may be wrong at any time (the queue was resized or removed, everything lost with a server without persistence): the
 * scripts then answer `moved`, and the layout is read again. So it is beside the work every 30 s and after every
 * reconnection. A queue that is not in the registry is declared anew by that, and its jobs are seen by the daemons.
 */

import type { Queue } from '../../job/queue.ts';
import { partitionOf } from '../../job/routing.ts';
import type { Clock } from '../../kernel/clock.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { declareQueue, partitionsOf } from '../../redis/scripts/queues.ts';
import { withReadRetry } from './read-retry.ts';

/** The partitions of a queue, in order. */
export type Layout = readonly PartitionRef[];

export interface Layouts {
  /** What is remembered, without waiting. */
  readonly known: (queue: Queue) => Layout | undefined;
  /** What is remembered, or else what Redis says. @throws DuestreamError `unavailable` or `refused` */
  readonly load: (queue: Queue) => Promise<Layout>;
  /** Reads again unless somebody else has since `seen`. */
  readonly reload: (queue: Queue, seen: PartitionRef) => Promise<Layout>;
  /** Another server may answer now: all that is remembered is declared and read again, beside the work. */
  readonly doubt: () => void;
}

interface Entry {
  readonly queue: Queue;
  layout: Layout | undefined;
  reading: Promise<Layout> | undefined;
  readMs: number;
}

const FRESH_MS = 30_000;
const QUEUES_MAX = 10_000;

interface LayoutsParts {
  readonly redis: Redis;
  readonly namespace: string;
  readonly clock: Clock;
  readonly budgetMs: number;
  /** Ends what goes on beside the work. */
  readonly signal: AbortSignal;
}

interface Remembering extends LayoutsParts {
  readonly entries: Map<string, Entry>;
}

export function createLayouts(parts: LayoutsParts): Layouts {
  const remembering: Remembering = { ...parts, entries: new Map() };
  const { entries, clock } = remembering;
  return {
    known(queue) {
      const entry = entries.get(queue.name);
      if (!entry?.layout) return undefined;
      if (clock.monotonicMs() - entry.readMs > FRESH_MS) refresh(remembering, entry);
      return entry.layout;
    },
    async load(queue) {
      const entry = entryOf(remembering, queue);
      return entry.layout ?? read(remembering, entry);
    },
    async reload(queue, seen) {
      const entry = entryOf(remembering, queue);
      const current = entry.layout?.[0];
      return entry.layout && current?.layoutGeneration !== seen.layoutGeneration
        ? entry.layout
        : read(remembering, entry);
    },
    doubt() {
      for (const entry of entries.values()) refresh(remembering, entry);
    },
  };
}

function entryOf({ entries }: Remembering, queue: Queue): Entry {
  const found = entries.get(queue.name);
  if (found) return found;
  if (entries.size >= QUEUES_MAX) entries.clear();
  const made: Entry = { queue, layout: undefined, reading: undefined, readMs: 0 };
  entries.set(queue.name, made);
  return made;
}

function read(remembering: Remembering, entry: Entry): Promise<Layout> {
  entry.readMs = remembering.clock.monotonicMs();
  // Said once: what somebody sets later, for all processes, must not be undone by the next look.
  entry.reading ??= declare(remembering, entry.queue, entry.layout !== undefined)
    .then((layout) => {
      entry.layout = layout;
      return layout;
    })
    .finally(() => {
      entry.reading = undefined;
    });
  return entry.reading;
}

/** Beside the work: a failure here will be told by the work itself, which has to ask again where the schema is another. */
function refresh(remembering: Remembering, entry: Entry): void {
  read(remembering, entry).catch((error: unknown) => {
    if (error instanceof DuestreamError && error.code === 'wrong-schema') entry.layout = undefined;
  });
}

async function declare(remembering: Remembering, queue: Queue, isRepeated: boolean): Promise<Layout> {
  const { name, partitions, history, redact, broadcast, maxPending, maxBytes } = queue;
  const { redis, namespace, clock, budgetMs, signal } = remembering;
  // Whether a lost call has declared the queue does not matter: the next one finds it, and no job was sent yet.
  const settings = { history, redact, broadcast, maxPending, maxBytes, isRepeated };
  const call = () => declareQueue(redis, { namespace, queue: name, partitions, ...settings });
  return partitionsOf(namespace, await withReadRetry(`look up queue ${name}`, call, { clock, budgetMs, signal }));
}

/** The partition an id of ours lives in. */
export function homeOf(layout: Layout, id: string): PartitionRef {
  const home = layout[partitionOf(id, layout.length)];
  if (!home) throw new Error(`a layout of ${layout.length} partitions has no place for ${id}`);
  return home;
}
