/**
 * The registry of queues: name → partitions and generation, one hash in the control slot. A queue comes into being by
 * its first use; whoever is first decides the number of partitions, everybody else takes what is there.
 */
import { DuestreamError } from '../../core/errors.ts';
import { parseName } from '../../core/job.ts';
import type { Redis } from '../connection/connect.ts';
import { naming } from '../connection/wrong-type.ts';
import { controlKeys, type PartitionRef, partitionRef } from '../keys.ts';
import { run, text } from './scripts.ts';

export interface QueueLayout {
  readonly queue: string;
  readonly partitions: number;
  readonly layoutGeneration: number;
}

/** The layout of a queue, declaring it with `partitions` when it is new. */
export async function declareQueue(
  redis: Redis,
  { namespace, queue, partitions }: { readonly namespace: string; readonly queue: string; readonly partitions: number },
): Promise<QueueLayout> {
  const keys = controlKeys(namespace);
  const known = await naming(redis, [keys], redis.hget(keys.queues, queue));
  if (known !== null) return decode(queue, known);
  const args = { queue, layout: JSON.stringify({ partitions, generation: 0 }) };
  return decode(queue, text(await run(redis, 'declare', { keys, args })));
}

/** Takes a queue out of the registry and tells the movers, which let its partitions go. */
export async function undeclareQueue(redis: Redis, namespace: string, queue: string): Promise<void> {
  const keys = controlKeys(namespace);
  await redis.hdel(keys.queues, queue);
  await redis.spublish(keys.wake, `gone ${queue}`);
}

/** All declared queues, by name. An entry that nobody can read is left out: it must not stop the others. */
export async function listQueues(redis: Redis, namespace: string): Promise<readonly QueueLayout[]> {
  const keys = controlKeys(namespace);
  const all = await naming(redis, [keys], redis.hgetall(keys.queues));
  return Object.entries(all)
    .flatMap(([queue, value]) => readable(queue, value) ?? [])
    .sort((a, b) => (a.queue < b.queue ? -1 : 1));
}

/** The layout of a queue if it was declared. */
export async function findQueue(redis: Redis, namespace: string, queue: string): Promise<QueueLayout | undefined> {
  const keys = controlKeys(namespace);
  const known = await naming(redis, [keys], redis.hget(keys.queues, queue));
  return known === null ? undefined : decode(queue, known);
}

export function partitionsOf(namespace: string, layout: QueueLayout): readonly PartitionRef[] {
  const { queue, partitions, layoutGeneration } = layout;
  return Array.from({ length: partitions }, (_, partition) =>
    partitionRef(namespace, { queue, partition, layoutGeneration }),
  );
}

function decode(queue: string, value: string): QueueLayout {
  const layout = readable(queue, value);
  if (layout) return layout;
  throw new DuestreamError(
    'refused',
    `the registry's entry of queue ${queue} cannot be read: ${JSON.stringify(value.slice(0, 80))}; allowed: {"partitions":1 to ${PARTITIONS_MAX},"generation":0 or more}`,
  );
}

function readable(queue: string, value: string): QueueLayout | undefined {
  try {
    const { partitions, generation } = JSON.parse(value) as { partitions: unknown; generation: unknown };
    const layout = {
      queue: parseName(queue, 'queue'),
      partitions: Number(partitions),
      layoutGeneration: Number(generation),
    };
    const sane = Number.isInteger(partitions) && layout.partitions >= 1 && layout.partitions <= PARTITIONS_MAX;
    return sane && Number.isInteger(generation) && layout.layoutGeneration >= 0 ? layout : undefined;
  } catch {
    return undefined;
  }
}

const PARTITIONS_MAX = 1024;
