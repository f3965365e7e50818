/**
 * The registry of queues: name → partitions and generation, one hash in the control slot. A queue comes into being by
 * its first use; whoever is first decides the number of partitions, everybody else takes what is there. Whoever reads it
 * reads the schema of the namespace with it, and goes no further if it is another one.
 */
import { DuestreamError } from '../../core/errors.ts';
import { decodeHistory, encodeHistory, type History, shareOf } from '../../core/history.ts';
import { parseName } from '../../core/job.ts';
import type { Redis } from '../connection/connect.ts';
import { naming } from '../connection/wrong-type.ts';
import { controlKeys, type PartitionRef, partitionRef } from '../keys.ts';
import { refuseOther, SCHEMA, SCHEMA_FIELD } from '../schema.ts';
import { list, run, text } from './scripts.ts';

export interface QueueLayout {
  readonly queue: string;
  readonly partitions: number;
  readonly layoutGeneration: number;
  /** What it keeps of jobs that are over; undefined: nothing, and it never did. */
  readonly history?: History | undefined;
}

/** The layout of a queue, declaring it with `partitions` when it is new. */
export async function declareQueue(
  redis: Redis,
  {
    namespace,
    queue,
    partitions,
    history: wanted,
  }: {
    readonly namespace: string;
    readonly queue: string;
    readonly partitions: number;
    /** Is stored, unless it is stored already. Undefined: what is stored stays. */
    readonly history?: History | undefined;
  },
): Promise<QueueLayout> {
  const { known, schema, history } = await look(redis, namespace, queue);
  const holds =
    known !== null && schema !== null
      ? known
      : await declare(redis, namespace, { queue, layout: JSON.stringify({ partitions, generation: 0 }) });
  const text = wanted === undefined ? history : encodeHistory(wanted);
  if (wanted !== undefined && text !== history) await setHistory(redis, { namespace, queue, history: wanted });
  return decode(queue, holds, text);
}

/** What a queue keeps from now on. Every process follows within half a minute. */
export async function setHistory(
  redis: Redis,
  { namespace, queue, history }: { readonly namespace: string; readonly queue: string; readonly history: History },
): Promise<void> {
  const keys = controlKeys(namespace);
  await naming(redis, [keys], redis.hset(keys.queues, historyField(queue), encodeHistory(history)));
}

/** No queue can have a name with a colon, so an earlier release passes it over. */
const HISTORY = ':history';
const historyField = (queue: string): string => `${queue}${HISTORY}`;

/** The namespace says from now on which schema it has, unless it does already. @throws DuestreamError `wrong-schema` */
export async function claimNamespace(redis: Redis, namespace: string): Promise<void> {
  await declare(redis, namespace, { queue: '', layout: '' });
}

/** Takes a queue out of the registry and tells the movers, which let its partitions go. */
export async function undeclareQueue(redis: Redis, namespace: string, queue: string): Promise<void> {
  const keys = controlKeys(namespace);
  await redis.hdel(keys.queues, queue, historyField(queue));
  await redis.spublish(keys.wake, `gone ${queue}`);
}

/** All declared queues, by name. An entry that nobody can read is left out: it must not stop the others. */
export async function listQueues(redis: Redis, namespace: string): Promise<readonly QueueLayout[]> {
  const keys = controlKeys(namespace);
  const { [SCHEMA_FIELD]: schema, ...all } = await naming(redis, [keys], redis.hgetall(keys.queues));
  refuseOther(`namespace ${namespace}`, schema);
  return Object.entries(all)
    .flatMap(([queue, value]) =>
      queue.endsWith(HISTORY) ? [] : (readable(queue, value, all[historyField(queue)]) ?? []),
    )
    .sort((a, b) => (a.queue < b.queue ? -1 : 1));
}

/** The layout of a queue if it was declared. */
export async function findQueue(redis: Redis, namespace: string, queue: string): Promise<QueueLayout | undefined> {
  const { known, history } = await look(redis, namespace, queue);
  return known === null ? undefined : decode(queue, known, history);
}

export function partitionsOf(namespace: string, layout: QueueLayout): readonly PartitionRef[] {
  const { queue, partitions, layoutGeneration } = layout;
  const history = layout.history && shareOf(layout.history, partitions);
  return Array.from({ length: partitions }, (_, partition) =>
    partitionRef(namespace, { queue, partition, layoutGeneration, ...(history && { history }) }),
  );
}

async function look(redis: Redis, namespace: string, queue: string) {
  const keys = controlKeys(namespace);
  const asked = redis.hmget(keys.queues, queue, SCHEMA_FIELD, historyField(queue));
  const [known = null, schema = null, history = null] = await naming(redis, [keys], asked);
  refuseOther(`namespace ${namespace}`, schema);
  return { known, schema, history };
}

/** @returns the layout that holds */
async function declare(
  redis: Redis,
  namespace: string,
  what: { readonly queue: string; readonly layout: string },
): Promise<string> {
  const args = { ...what, schema: SCHEMA };
  const [holds, schema] = list(await run(redis, 'declare', { keys: controlKeys(namespace), args }));
  refuseOther(`namespace ${namespace}`, text(schema));
  return text(holds);
}

function decode(queue: string, value: string, history: string | null): QueueLayout {
  const layout = readable(queue, value, history);
  if (layout) return layout;
  throw new DuestreamError(
    'refused',
    `the registry's entry of queue ${queue} cannot be read: ${JSON.stringify(value.slice(0, 80))}; allowed: {"partitions":1 to ${PARTITIONS_MAX},"generation":0 or more}`,
  );
}

function readable(queue: string, value: string, kept: string | null | undefined): QueueLayout | undefined {
  try {
    const { partitions, generation } = JSON.parse(value) as { partitions: unknown; generation: unknown };
    const history = decodeHistory(kept);
    const layout = {
      queue: parseName(queue, 'queue'),
      partitions: Number(partitions),
      layoutGeneration: Number(generation),
      ...(history && { history }),
    };
    const sane = Number.isInteger(partitions) && layout.partitions >= 1 && layout.partitions <= PARTITIONS_MAX;
    return sane && Number.isInteger(generation) && layout.layoutGeneration >= 0 ? layout : undefined;
  } catch {
    return undefined;
  }
}

const PARTITIONS_MAX = 1024;
