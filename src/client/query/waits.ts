/** What a job in line waits for: how many come before it, and what lets nobody through. */
import { idOf } from '../../job/codec.ts';
import { type Shut, shutBy, spentIn } from '../../job/gate.ts';
import { groupOf, type Priority } from '../../job/labels.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { type Holder, holdersOf, type SeenWait, waitOf } from '../../redis/read/groups.ts';
import { type Keeper, keeperOf } from '../../redis/read/order.ts';

/** What a job in line waits for. */
export interface JobWait {
  /** Undefined: the job has none, and no limit per group holds it. */
  readonly group: string | undefined;
  readonly priority: Priority;
  /** Jobs of its group and priority that have their turns before it. */
  readonly ahead: number;
  /** What lets no job of its group through now. None: it waits for its turn, or for a worker with a free slot. */
  readonly obstacles: readonly WaitObstacle[];
}

/**
 * What keeps a job in line. Of several partitions the limits are the shares of that of the job. `no-worker`, that nobody serves
 * the queue, is told by the command line, the HTTP API and the pages alone: a producer may not read who lives.
 */
export type WaitObstacle =
  | {
      readonly kind: 'paused';
      /** Epoch ms; undefined: nobody knows. */
      readonly sinceMs: number | undefined;
      readonly reason: string;
    }
  | { readonly kind: 'no-worker' }
  | {
      /** As many run as the concurrency of the queue, or the limit of the group, allows. */
      readonly kind: 'queue-full' | 'group-full';
      readonly limit: number;
      readonly running: number;
      /** Who holds it, longest first, at most 10. */
      readonly holders: readonly Holder[];
    }
  | {
      /** In strict order, another job has the group until it is over, or a dead letter holds it. */
      readonly kind: 'group-kept';
      readonly keeper: Keeper;
    }
  | {
      /** The rate of the queue, or of the group. */
      readonly kind: 'rate' | 'group-rate';
      /** When the rate allows the next start, in epoch ms. */
      readonly untilMs: number;
    }
  | {
      /** Limits that its queue shares with others have no turn or no place in its partition now. */
      readonly kind: 'shared';
      readonly limits: readonly string[];
    }
  | {
      /** Somebody has closed the queue, or the group. */
      readonly kind: 'queue-closed' | 'group-closed';
      /** In epoch ms. */
      readonly untilMs: number;
      readonly reason: string;
    };

/** Of each limit that is full. */
const HOLDERS_MAX = 10;

export interface Waiter {
  readonly member: string;
  readonly priority: Priority;
  readonly dueMs: number;
  /** When the job was looked at. */
  readonly nowMs: number;
}

export async function jobWaitOf(redis: Redis, ref: PartitionRef, job: Waiter): Promise<JobWait> {
  const [seen, keeper] = await Promise.all([waitOf(redis, ref, job), keeperOf(redis, ref, groupOf(job.member) ?? '')]);
  return jobWaitIn(seen, (of) => holdersOf(redis, ref, of), { ...job, keeper });
}

/** The same from what was seen, in Redis or in the virtual time of the test kit. */
export async function jobWaitIn(
  seen: SeenWait,
  holdersIn: (of: { readonly group?: string | undefined; readonly limit: number }) => Promise<readonly Holder[]>,
  { nowMs, keeper, ...job }: Waiter & { readonly keeper?: Keeper | undefined },
): Promise<JobWait> {
  const group = groupOf(job.member);
  const { gate, pause, ahead } = seen;
  const shut = gate === undefined ? [] : shutBy(gate, { ...seen, nowMs });
  const [queue, own] = await Promise.all([
    shut.includes('queue-full') ? holdersIn({ limit: HOLDERS_MAX }) : [],
    shut.includes('group-full') ? holdersIn({ group, limit: HOLDERS_MAX }) : [],
  ]);
  const holders = { 'queue-full': queue, 'group-full': own };
  const obstacles = shut.map((kind) =>
    obstacleOf(kind, seen, kind === 'queue-full' || kind === 'group-full' ? holders[kind] : []),
  );
  return {
    group,
    priority: job.priority,
    ahead,
    obstacles: [
      ...(pause ? [{ kind: 'paused' as const, ...pause }] : []),
      ...(keeper && isKeptFrom(job.member, keeper) ? [{ kind: 'group-kept' as const, keeper }] : []),
      ...obstacles,
    ],
  };
}

/** Who runs holds the limit of the group, which is told by that. */
const isKeptFrom = (member: string, { id, bare, owner }: Keeper): boolean => {
  const own = idOf(member);
  return owner === undefined && (own.id !== id || own.bare !== bare);
};

function obstacleOf(kind: Shut, seen: SeenWait, holders: readonly Holder[]): WaitObstacle {
  const { gate, group, entries, held, closing } = seen;
  switch (kind) {
    case 'rate':
      return { kind, untilMs: gate?.nextTurnMs ?? 0 };
    case 'group-rate':
      return { kind, untilMs: group?.nextTurnMs ?? 0 };
    case 'queue-closed':
      return { kind, untilMs: gate?.closedMs ?? 0, reason: closing };
    case 'group-closed':
      return { kind, untilMs: group?.closedMs ?? 0, reason: group?.reason ?? '' };
    case 'shared':
      return { kind, limits: spentIn(gate ?? {}, entries) };
    case 'queue-full':
      return { kind, limit: gate?.concurrency ?? 0, running: entries, holders };
    case 'group-full':
      return { kind, limit: group?.most ?? 0, running: held, holders };
  }
}
