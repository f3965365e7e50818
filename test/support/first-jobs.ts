/** The first jobs of a partition in one state, as a list has them. */

import { parseListFilter } from '../../src/client/query/filter.ts';
import { firstJobs } from '../../src/client/query/list.ts';
import { defineQueue } from '../../src/job/queue.ts';
import type { JobState } from '../../src/job/state.ts';
import type { Redis } from '../../src/redis/connection/connect.ts';
import type { PartitionRef } from '../../src/redis/keys.ts';

export async function page(
  redis: Redis,
  ref: PartitionRef,
  { state, limit }: { readonly state: JobState; readonly limit: number },
) {
  const filter = parseListFilter({ state }, { owner: 'page' });
  return (await firstJobs(redis, [ref], { queue: defineQueue(ref.queue), filter, limit })).jobs;
}
