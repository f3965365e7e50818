/**
 * Where schedules are: each is armed in one partition of its queue, which its name decides, and how far it was fired
 * stands there.
 */
import { type Queue, queueOf } from '../../job/queue.ts';
import { hintOf } from '../../kernel/checks.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { type Listed, queuesIn, type UnreadQueue } from '../../redis/read/each-queue.ts';
import { declarationOf, declareQueue, findQueue, type QueueLayout } from '../../redis/scripts/queues.ts';
import { arm, firedOf, partitionNumber, partitionOfSchedule } from '../../redis/scripts/schedules.ts';
import type { Fired } from '../../schedule/progress.ts';
import type { Schedule } from '../../schedule/schedule.ts';
import type { Definition } from '../../schedule/text.ts';
import type { Repeating } from '../calls/retry.ts';

/** Where the definitions are. */
export interface Store {
  readonly redis: Redis;
  readonly namespace: string;
  readonly steps: Pick<Repeating, 'read' | 'write'>;
}

/** Names and texts of stored schedules, page by page. */
export type Definitions = () => AsyncIterable<readonly (readonly [name: string, content: string])[]>;

export interface StoredSchedule {
  readonly definition: Definition;
  /** Undefined before its first look. */
  readonly fired: Fired | undefined;
  readonly ref: PartitionRef;
}

/** The queue of a schedule as somebody defines it; of one that only names its queue, with the defaults. */
export const definedAs = (name: string, definition: Queue | undefined): Queue =>
  definition?.name === name ? definition : queueOf(name);

export interface Place {
  readonly ref: PartitionRef;
  readonly fired: Fired | undefined;
}

const MOVES_MAX = 5;
const CHUNK = 1000;
const FEW_QUEUES = 20;

async function refOf({ namespace, redis }: Store, queue: Queue, name: string): Promise<PartitionRef> {
  return partitionOfSchedule(namespace, await declareQueue(redis, declarationOf(namespace, queue)), name);
}

/** Where schedules are, as far as the registry says it. */
interface KnownRefs {
  readonly refOf: (schedule: Schedule) => PartitionRef;
  /** Of a queue whose entry in the registry nobody can read: why. */
  readonly unread: ReadonlyMap<string, string>;
}

/** For reading many: layouts are asked for once, and each partition is named once. */
export async function knownRefs(store: Store, all: readonly Definition[]): Promise<KnownRefs> {
  const { redis, namespace } = store;
  const queues = [...new Set(all.map(({ schedule }) => schedule.queue))];
  const known =
    queues.length > FEW_QUEUES ? await queuesIn(redis, namespace) : await queuesNamed(redis, namespace, queues);
  const layouts = new Map(known.all.map((layout) => [layout.queue, layout]));
  const refs = new Map<string, PartitionRef>();
  const unread = new Map(known.unread.map(({ queue, why }) => [queue, why]));
  const refOf = ({ queue, name }: Schedule) => {
    const layout = layouts.get(queue) ?? { queue, partitions: 1, layoutGeneration: 0 };
    const place = `${queue} ${partitionNumber(layout, name)}`;
    const ref = refs.get(place) ?? partitionOfSchedule(namespace, layout, name);
    refs.set(place, ref);
    return ref;
  };
  return { refOf, unread };
}

/** The queues of these names that are declared. */
async function queuesNamed(redis: Redis, namespace: string, names: readonly string[]): Promise<Listed<QueueLayout>> {
  const unread: UnreadQueue[] = [];
  const found = await Promise.all(
    names.map((queue) =>
      findQueue(redis, namespace, queue).catch((error: unknown) => {
        if (!(error instanceof DuestreamError && error.code === 'refused')) throw error;
        unread.push({ queue, why: error.message });
        return undefined;
      }),
    ),
  );
  return { all: found.flatMap((layout) => layout ?? []), unread };
}

export async function firedIn(
  store: Store,
  ref: PartitionRef,
  all: readonly Definition[],
): Promise<readonly StoredSchedule[]> {
  const { redis } = store;
  const found: StoredSchedule[] = [];
  for (let from = 0; from < all.length; from += CHUNK) {
    const slice = all.slice(from, from + CHUNK);
    const states = await firedOf(
      redis,
      ref,
      slice.map(({ schedule }) => schedule.name),
    );
    found.push(...slice.map((definition, at) => ({ definition, ref, fired: states[at] })));
  }
  return found;
}

/** @param queue as it is defined: it is declared with what its definition says */
export async function armIn(store: Store, name: string, queue: Queue): Promise<void> {
  const { redis, steps } = store;
  // A look for a schedule that does not come does no harm.
  const armed = () => steps.read(async () => arm(redis, await refOf(store, queue, name), name));
  for (let tries = 0; tries < MOVES_MAX; tries += 1) {
    if ((await armed()) !== 'moved') return;
  }
  throw new DuestreamError('moved', `schedule ${name}: queue ${queue.name} is being resized; try again in a moment`);
}

/** Where a schedule is armed, and how far it was fired there. */
export async function placeOf(
  store: Store,
  { queue, name }: Pick<Schedule, 'queue' | 'name'>,
): Promise<Place | undefined> {
  const { redis, namespace, steps } = store;
  const layout = await steps.read(() => findQueue(redis, namespace, queue));
  if (!layout) return undefined;
  const ref = partitionOfSchedule(namespace, layout, name);
  const [fired] = await steps.read(() => firedOf(redis, ref, [name]));
  return { ref, fired };
}

// What is said of a schedule that is not there: its name was misspelt more often than it was removed.

/** Of so many the names are compared: a guess is worth no more. */
const NAMES_MAX = 5000;

export async function unknownSchedule(definitions: Definitions, name: string): Promise<DuestreamError> {
  const known: string[] = [];
  for await (const page of definitions()) {
    for (const [one] of page) known.push(one);
    if (known.length >= NAMES_MAX) break;
  }
  const hint = hintOf(name, known) || ';';
  return new DuestreamError(
    'not-found',
    `there is no schedule ${show(name)}${hint} "duestream schedules ls" lists those that are`,
  );
}
