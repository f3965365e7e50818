/** Why jobs of a queue started late, over a time and by the minute: what its workers have summed of the accounts of starts. */
import { type Namespaced, refsOfQueue } from '../client/queues/refs.ts';
import { CAUSES, type Cause } from '../job/account.ts';
import { MINUTE_MS } from '../job/minutes.ts';
import { type CauseSums, GROUPS_TOLD, longest, readCauses } from '../redis/read/causes.ts';

/** By how much jobs were late together, for one cause. */
export interface CauseSum {
  readonly cause: Cause;
  readonly ms: number;
}

/** How long jobs of a group waited together, of jobs that were late by a second or more. */
export interface GroupWait {
  readonly group: string;
  readonly ms: number;
}

interface Sums {
  /** Jobs that were started. */
  readonly starts: number;
  /** Those of them that were late by a second or more. */
  readonly late: number;
  /** The most first. They add up to the lateness of all these starts. */
  readonly causes: readonly CauseSum[];
  /** Ten at the most, the longest wait first. */
  readonly groups: readonly GroupWait[];
}

export interface CausesMinute extends Sums {
  /** When the minute began. */
  readonly atMs: number;
}

/** Jobs are told where they were started: what waits still is not in it. */
export interface QueueCauses extends Sums {
  readonly queue: string;
  /** Whole minutes around what was asked for. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Minutes in which jobs were started, in their order. */
  readonly minutes: readonly CausesMinute[];
}

/** Of a day at most: that much is kept. @throws DuestreamError `not-found` */
export async function queueCauses(
  place: Namespaced,
  queue: string,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): Promise<QueueCauses> {
  const [ref] = await refsOfQueue(place, queue);
  const found = ref ? await readCauses(place.redis, ref, { fromMs, toMs }) : new Map<number, CauseSums>();
  return {
    queue,
    fromMs: Math.floor(fromMs / MINUTE_MS) * MINUTE_MS,
    toMs: Math.ceil(toMs / MINUTE_MS) * MINUTE_MS,
    ...shown([...found.values()]),
    minutes: [...found].map(([minute, sums]) => ({ atMs: minute * MINUTE_MS, ...shown([sums]) })),
  };
}

function shown(all: readonly CauseSums[]): Sums {
  const groups = new Map<string, number>();
  for (const sums of all) for (const [group, ms] of sums.groups) groups.set(group, (groups.get(group) ?? 0) + ms);
  const causes = CAUSES.map((cause) => ({ cause, ms: all.reduce((sum, { ms }) => sum + (ms.get(cause) ?? 0), 0) }));
  return {
    starts: all.reduce((sum, { starts }) => sum + starts, 0),
    late: all.reduce((sum, { late }) => sum + late, 0),
    causes: causes.filter(({ ms }) => ms > 0).sort((one, other) => other.ms - one.ms),
    groups: longest(groups, GROUPS_TOLD).map(([group, ms]) => ({ group, ms })),
  };
}
