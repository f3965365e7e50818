/**
 * The registry of queues: name → partitions and generation, one hash in the control slot. A queue comes into being by
 * its first use; whoever is first decides the number of partitions, everybody else takes what is there. Whoever reads it
 * reads the schema of the namespace with it, and goes no further if it is another one.
 */
import { DuestreamError } from '../../core/errors.ts';
import { decodeHistory, encodeHistory, type History, shareOf } from '../../core/history.ts';
import { parseName } from '../../core/job.ts';
import { decodeRedact, encodeRedact, type Redaction } from '../../core/redaction.ts';
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
  /** Fields of data that views do not show; undefined: none. */
  readonly redact?: Redaction | undefined;
}

/** What is said once about a queue, for all processes. Undefined: what is stored stays. */
export interface QueueSaid {
  readonly history?: History | undefined;
  /** An empty list: what is stored goes. */
  readonly redact?: Redaction | undefined;
}

/** The layout of a queue, declaring it with `partitions` when it is new. */
export async function declareQueue(
  redis: Redis,
  {
    namespace,
    queue,
    partitions,
    ...said
  }: QueueSaid & { readonly namespace: string; readonly queue: string; readonly partitions: number },
): Promise<QueueLayout> {
  const { known, schema, kept } = await look(redis, namespace, queue);
  const holds =
    known !== null && schema !== null
      ? known
      : await declare(redis, namespace, { queue, layout: JSON.stringify({ partitions, generation: 0 }) });
  const history = said.history ? encodeHistory(said.history) : kept.history;
  const redact = said.redact ? textOf(said.redact) : kept.redact;
  if (said.history && history !== kept.history) await setHistory(redis, { namespace, queue, history: said.history });
  if (said.redact && redact !== kept.redact) await setRedact(redis, { namespace, queue, redact: said.redact });
  return decode(queue, holds, { history, redact });
}

/** No paths are no field. */
const textOf = (redact: Redaction): string | null => (redact.length === 0 ? null : encodeRedact(redact));

/** As it stands in the registry beside the layout of a queue. */
interface Kept {
  readonly history: string | null | undefined;
  readonly redact: string | null | undefined;
}

/** What a queue keeps from now on. Every process follows within half a minute. */
export async function setHistory(
  redis: Redis,
  { namespace, queue, history }: { readonly namespace: string; readonly queue: string; readonly history: History },
): Promise<void> {
  const keys = controlKeys(namespace);
  await naming(redis, [keys], redis.hset(keys.queues, historyField(queue), encodeHistory(history)));
}

/** Which fields of its data a queue hides from now on. Every process follows within half a minute. */
export async function setRedact(
  redis: Redis,
  { namespace, queue, redact }: { readonly namespace: string; readonly queue: string; readonly redact: Redaction },
): Promise<void> {
  const keys = controlKeys(namespace);
  const field = redactField(queue);
  const set =
    redact.length === 0 ? redis.hdel(keys.queues, field) : redis.hset(keys.queues, field, encodeRedact(redact));
  await naming<unknown>(redis, [keys], set);
}

/** No queue can have a name with a colon, so an earlier release passes it over. */
const historyField = (queue: string): string => `${queue}:history`;
const redactField = (queue: string): string => `${queue}:redact`;

/** The namespace says from now on which schema it has, unless it does already. @throws DuestreamError `wrong-schema` */
export async function claimNamespace(redis: Redis, namespace: string): Promise<void> {
  await declare(redis, namespace, { queue: '', layout: '' });
}

/** Takes a queue out of the registry and tells the movers, which let its partitions go. */
export async function undeclareQueue(redis: Redis, namespace: string, queue: string): Promise<void> {
  const keys = controlKeys(namespace);
  await redis.hdel(keys.queues, queue, historyField(queue), redactField(queue));
  await redis.spublish(keys.wake, `gone ${queue}`);
}

/** All declared queues, by name. An entry that nobody can read is left out: it must not stop the others. */
export async function listQueues(redis: Redis, namespace: string): Promise<readonly QueueLayout[]> {
  const keys = controlKeys(namespace);
  const { [SCHEMA_FIELD]: schema, ...all } = await naming(redis, [keys], redis.hgetall(keys.queues));
  refuseOther(`namespace ${namespace}`, schema);
  return Object.entries(all)
    .flatMap(([queue, value]) =>
      queue.includes(':')
        ? []
        : (readable(queue, value, { history: all[historyField(queue)], redact: all[redactField(queue)] }) ?? []),
    )
    .sort((a, b) => (a.queue < b.queue ? -1 : 1));
}

/** The layout of a queue if it was declared. */
export async function findQueue(redis: Redis, namespace: string, queue: string): Promise<QueueLayout | undefined> {
  const { known, kept } = await look(redis, namespace, queue);
  return known === null ? undefined : decode(queue, known, kept);
}

export function partitionsOf(namespace: string, layout: QueueLayout): readonly PartitionRef[] {
  const { queue, partitions, layoutGeneration, redact } = layout;
  const history = layout.history && shareOf(layout.history, partitions);
  return Array.from({ length: partitions }, (_, partition) =>
    partitionRef(namespace, {
      queue,
      partition,
      layoutGeneration,
      ...(history && { history }),
      ...(redact && { redact }),
    }),
  );
}

async function look(redis: Redis, namespace: string, queue: string) {
  const keys = controlKeys(namespace);
  const asked = redis.hmget(keys.queues, queue, SCHEMA_FIELD, historyField(queue), redactField(queue));
  const [known = null, schema = null, history = null, redact = null] = await naming(redis, [keys], asked);
  refuseOther(`namespace ${namespace}`, schema);
  return { known, schema, kept: { history, redact } };
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

function decode(queue: string, value: string, kept: Kept): QueueLayout {
  const layout = readable(queue, value, kept);
  if (layout) return layout;
  throw new DuestreamError(
    'refused',
    `the registry's entry of queue ${queue} cannot be read: ${JSON.stringify(value.slice(0, 80))}; allowed: {"partitions":1 to ${PARTITIONS_MAX},"generation":0 or more}`,
  );
}

function readable(queue: string, value: string, kept: Kept): QueueLayout | undefined {
  try {
    const { partitions, generation } = JSON.parse(value) as { partitions: unknown; generation: unknown };
    const [history, redact] = [decodeHistory(kept.history), decodeRedact(kept.redact)];
    const layout = {
      queue: parseName(queue, 'queue'),
      partitions: Number(partitions),
      layoutGeneration: Number(generation),
      ...(history && { history }),
      ...(redact && { redact }),
    };
    const sane = Number.isInteger(partitions) && layout.partitions >= 1 && layout.partitions <= PARTITIONS_MAX;
    return sane && Number.isInteger(generation) && layout.layoutGeneration >= 0 ? layout : undefined;
  } catch {
    return undefined;
  }
}

const PARTITIONS_MAX = 1024;
