/** What is done with the dead letters of a queue: a page of them, one, groups, and many that are replayed or removed. */
import type { Queue } from '../../job/queue.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import { deadLetter as deadLetterAt } from '../../redis/read/inspect.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import type { Moved } from '../../redis/scripts/replies.ts';
import type { Confirming } from '../calls/durability.ts';
import type { Layout } from '../calls/layouts.ts';
import type { CallPartitions } from '../calls/partition-calls.ts';
import { withReadRetry } from '../calls/read-retry.ts';
import { onlyPlace } from '../jobs/replay.ts';
import { checkLayout } from '../query/cursor.ts';
import { type DeadLetterGroups, groupsOf } from './groups.ts';
import { type ManyPurged, type PurgePlan, purgeAll } from './purge-many.ts';
import { type ManyReplayed, type ReplayPlan, replayAll } from './replay-many.ts';
import { each, generationOf, type Reading, type Scan, type Search } from './scan.ts';
import { type DeadLetterRow, type DeadLetterView, rowOf, viewOf } from './view.ts';
import { newest, type Placed } from './walk.ts';

/** A page of dead letters. */
export interface DeadLetterPage extends Scan {
  readonly deadLetters: readonly DeadLetterRow[];
}

interface LettersParts extends Confirming {
  readonly redis: Redis;
  readonly jobs: Pick<Jobs, 'replay'>;
  readonly callPartitions: CallPartitions;
}

type At = <T>(
  queue: Queue,
  search: Search,
  call: (layout: Layout, policy: RetryPolicy) => Promise<T | Moved>,
) => Promise<T>;

export function createLetters(parts: LettersParts) {
  const { callPartitions, redis } = parts;
  /** As the layout is that the cursor was given for. */
  const callAt: At = (queue, { from }, call) =>
    callPartitions(queue, (layout, policy) => {
      checkLayout(from?.layoutGeneration, generationOf(layout), queue.name);
      return call(layout, policy);
    });
  return {
    page: (queue: Queue, search: Search): Promise<DeadLetterPage> =>
      callAt(queue, search, (layout, policy) => pageOf({ redis, policy }, layout, search)),
    one: <Data>(queue: Queue, id: string, partition: number | undefined): Promise<DeadLetterView<Data> | undefined> =>
      callPartitions(queue, (layout, policy) => oneOf<Data>({ redis, policy }, layout, { id, partition })),
    groups: (queue: Queue, search: Search): Promise<DeadLetterGroups> =>
      callAt(queue, search, (layout, policy) => groupsOf({ redis, policy }, layout, search)),
    async replay(queue: Queue, search: Search, plan: ReplayPlan): Promise<ManyReplayed> {
      const replay = (layout: Layout, policy: RetryPolicy) => replayAll({ ...parts, policy }, layout, { search, plan });
      const replayed = await callAt(queue, search, replay);
      // What an earlier call has replayed is not met any more.
      if (!plan.dryRun) await parts.confirm?.(queue);
      return replayed;
    },
    purge: (queue: Queue, search: Search, plan: PurgePlan): Promise<ManyPurged> =>
      callAt(queue, search, (layout, policy) => purgeAll({ redis, policy }, layout, { search, plan })),
  };
}

async function oneOf<Data>(
  { redis, policy }: Reading,
  layout: Layout,
  { id, partition }: { readonly id: string; readonly partition: number | undefined },
): Promise<DeadLetterView<Data> | undefined> {
  const found: Placed[] = [];
  for (const ref of layout) {
    if (partition !== undefined && ref.partition !== partition) continue;
    const letter = await withReadRetry('read a dead letter', () => deadLetterAt(redis, ref, id), policy);
    if (letter) found.push({ ref, letter });
  }
  const only = onlyPlace(id, found);
  return only && viewOf<Data>(only);
}

async function pageOf(reading: Reading, layout: Layout, search: Search): Promise<DeadLetterPage> {
  const rows: DeadLetterRow[] = [];
  const scan = await each(newest(reading, layout, search.from?.spot), { search, layout }, async (placed) => {
    rows.push(rowOf(placed));
    return rows.length < search.limit;
  });
  return { deadLetters: rows, ...scan };
}
