/** What is done with the dead letters of a queue: looked at, page by page or in groups, replayed and removed. */
import type { Queue } from '../../job/queue.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import type { Moved } from '../../redis/scripts/replies.ts';
import type { Confirming } from '../calls/durability.ts';
import type { Layout } from '../calls/layouts.ts';
import type { CallPartitions } from '../calls/partition-calls.ts';
import { withReadRetry } from '../calls/retry.ts';
import { checkLayout } from '../query/cursor.ts';
import { type DeadLetterGroups, groupsOf } from './groups.ts';
import { locate, type Named } from './locate.ts';
import { type DeadLetterOverview, type OverviewAsk, type OverviewParts, overviewIn } from './overview.ts';
import { type Removed, type RemovedLetters, type RemovePlan, removeAll, removeNamed } from './remove.ts';
import { createReplay, type ReplayedLetters, type ReplayPlan, replayAll } from './replay.ts';
import { type DeadLetterRow, type DeadLetterView, rowOf, viewOf } from './view.ts';
import { each, generationOf, type LetterStore, newest, type Reading, type Scan, type Search } from './walk.ts';

/** A page of dead letters. */
export interface DeadLetterPage extends Scan {
  readonly deadLetters: readonly DeadLetterRow[];
}

interface LettersParts extends Confirming {
  readonly store: LetterStore;
  readonly callPartitions: CallPartitions;
}

type At = <T>(
  queue: Queue,
  search: Search,
  call: (layout: Layout, policy: RetryPolicy) => Promise<T | Moved>,
) => Promise<T>;

export type Letters = ReturnType<typeof createLetters>;

export function createLetters(parts: LettersParts) {
  const { callPartitions, store } = parts;
  /** As the layout is that the cursor was given for. */
  const callAt: At = (queue, { from }, call) =>
    callPartitions(queue, (layout, policy) => {
      checkLayout(from?.layoutGeneration, generationOf(layout), queue.name);
      return call(layout, policy);
    });
  return {
    page: (queue: Queue, search: Search): Promise<DeadLetterPage> =>
      callAt(queue, search, (layout, policy) => pageOf({ store, policy }, layout, search)),
    one: <Data>(queue: Queue, named: Named): Promise<DeadLetterView<Data> | undefined> =>
      callPartitions(queue, async (layout, policy) => {
        const found = await locate({ store, policy }, layout, named);
        return found && viewOf<Data>(found, await withReadRetry('get dead letter', () => store.log(found), policy));
      }),
    groups: (queue: Queue, search: Search): Promise<DeadLetterGroups> =>
      callAt(queue, search, (layout, policy) => groupsOf({ store, policy }, layout, search)),
    overview: (place: OverviewParts, ask: OverviewAsk): Promise<DeadLetterOverview> => overviewIn(store, place, ask),
    replayNamed: createReplay(parts),
    async replayAll(queue: Queue, search: Search, plan: ReplayPlan): Promise<ReplayedLetters> {
      const replay = (layout: Layout, policy: RetryPolicy) => replayAll({ store, policy }, layout, { search, plan });
      const replayed = await callAt(queue, search, replay);
      // What an earlier call has replayed is not met any more.
      if (!plan.dryRun) await parts.confirm?.(queue);
      return replayed;
    },
    removeNamed: (queue: Queue, all: readonly Named[]): Promise<readonly Removed[]> => removeNamed(parts, queue, all),
    removeAll: (queue: Queue, search: Search, plan: RemovePlan): Promise<RemovedLetters> =>
      callAt(queue, search, (layout, policy) => removeAll({ store, policy }, layout, { search, plan })),
  };
}

async function pageOf(reading: Reading, layout: Layout, search: Search): Promise<DeadLetterPage> {
  const rows: DeadLetterRow[] = [];
  const scan = await each(newest(reading, layout, { from: search.from?.spot }), { search, layout }, async (placed) => {
    rows.push(rowOf(placed));
    return rows.length < search.limit;
  });
  return { deadLetters: rows, ...scan };
}
