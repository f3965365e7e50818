/** Where a walk through jobs reads: every look of a list, a count and a change by a filter goes through one of these. */
import type { History } from '../../job/queue-settings.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { type ClosedAsk, type ClosedSlice, closedTags } from '../../redis/read/closed.ts';
import { type CountAsk, type Counted, countPage, membersOf } from '../../redis/read/counted.ts';
import { type EndsAsk, endsOf, type JobEnd } from '../../redis/read/ends.ts';
import { type GroupsAsk, groupsOf, type Holder, holdersOf, type SeenGroups } from '../../redis/read/groups.ts';
import { lastTokens, peek } from '../../redis/read/inspect.ts';
import { lookAt } from '../../redis/read/look.ts';
import { type Keeper, keeperOf, waitingBehind } from '../../redis/read/order.ts';
import {
  type Ask,
  countScheduled,
  type DueRange,
  type Extent,
  extentOf,
  type Place,
  placesOf,
  recorded,
  type Slice,
  type Source,
} from '../../redis/read/places.ts';
import { type SetsAsk, type SetsSlice, setsOf } from '../../redis/read/sets.ts';
import { findQueue, historyOf, partitionsOf } from '../../redis/scripts/queues.ts';
import type { Moved } from '../../redis/scripts/replies.ts';

/** Where jobs are read: in Redis, or in the virtual time of the test kit. */
export interface Reader {
  readonly places: (ref: PartitionRef, ask: Ask & { readonly source: Source }) => Promise<Slice | Moved>;
  readonly recorded: (ref: PartitionRef, ask: Pick<Ask, 'after' | 'limit'>) => Promise<Slice | Moved>;
  readonly look: (ref: PartitionRef, places: readonly Place[]) => ReturnType<typeof lookAt>;
  readonly extent: (ref: PartitionRef, source: Source) => Promise<Extent>;
  readonly countScheduled: (ref: PartitionRef, source: Parameters<typeof countScheduled>[2]) => Promise<number>;
  readonly countPage: (ref: PartitionRef, ask: CountAsk) => Promise<Counted | Moved>;
  readonly members: (ref: PartitionRef, due: DueRange) => ReturnType<typeof membersOf>;
  readonly ends: (ref: PartitionRef, ask: EndsAsk) => Promise<readonly JobEnd[] | Moved>;
  /** What the queue keeps of jobs that are over. Undefined: it never kept any. */
  readonly history: (ref: PartitionRef) => Promise<Pick<History, 'isOn'> | undefined>;
  /** One job, by its member. */
  readonly peek: (ref: PartitionRef, member: string) => ReturnType<typeof peek>;
  /** The tokens of the last starts of jobs, `0` for a job that was never started. */
  readonly lastTokens: (ref: PartitionRef, members: readonly string[]) => Promise<readonly string[]>;
  readonly closed: (ref: PartitionRef, ask: ClosedAsk) => Promise<ClosedSlice>;
  readonly sets: (ref: PartitionRef, ask: SetsAsk) => Promise<SetsSlice>;
  readonly groups: (ref: PartitionRef, ask: GroupsAsk) => Promise<SeenGroups | Moved>;
  readonly holders: (
    ref: PartitionRef,
    of: { readonly group: string; readonly limit: number },
  ) => Promise<readonly Holder[]>;
  /** Who has a group in strict order. */
  readonly keeper: (ref: PartitionRef, group: string) => Promise<Keeper | undefined>;
  /** How many wait in line for a job that has its group. */
  readonly behind: (ref: PartitionRef, member: string) => Promise<number | undefined>;
  /** With the settings that its queue has by now. */
  readonly renewed: (ref: PartitionRef) => Promise<PartitionRef>;
}

/** @param namespace where a setting is read that is newer than the layout may be; undefined: the layout is new */
export const readerOf = (redis: Redis, namespace?: string): Reader => ({
  places: (ref, ask) => placesOf(redis, ref, ask),
  recorded: (ref, ask) => recorded(redis, ref, ask),
  look: (ref, places) => lookAt(redis, ref, places),
  closed: (ref, ask) => closedTags(redis, ref, ask),
  sets: (ref, ask) => setsOf(redis, ref, ask),
  extent: (ref, source) => extentOf(redis, ref, source),
  countScheduled: (ref, source) => countScheduled(redis, ref, source),
  countPage: (ref, ask) => countPage(redis, ref, ask),
  members: (ref, due) => membersOf(redis, ref, due),
  ends: (ref, ask) => endsOf(redis, ref, ask),
  history: async (ref) => (namespace === undefined ? ref.history : historyOf(redis, namespace, ref.queue)),
  peek: (ref, member) => peek(redis, ref, member),
  lastTokens: (ref, members) => lastTokens(redis, ref, members),
  groups: (ref, ask) => groupsOf(redis, ref, ask),
  holders: (ref, of) => holdersOf(redis, ref, of),
  keeper: (ref, group) => keeperOf(redis, ref, group),
  behind: (ref, member) => waitingBehind(redis, ref, member),
  async renewed(ref) {
    if (namespace === undefined) return ref;
    const layout = await findQueue(redis, namespace, ref.queue);
    return (layout && partitionsOf(namespace, layout)[ref.partition]) ?? ref;
  },
});
