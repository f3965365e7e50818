/** The first jobs of a partition in one state, as a list and a page of those that are over have them. */

import { parseFilter } from '../../src/client/query/filter.ts';
import { firstJobs } from '../../src/client/query/list.ts';
import { listRemembered } from '../../src/client/query/past.ts';
import { defineQueue } from '../../src/job/queue.ts';
import type { JobState } from '../../src/job/state.ts';
import { isLiveState } from '../../src/job/state.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import type { Redis } from '../../src/redis/connection/connect.ts';
import type { PartitionRef } from '../../src/redis/keys.ts';

export async function page(
  redis: Redis,
  ref: PartitionRef,
  { state, limit }: { readonly state: JobState; readonly limit: number },
) {
  if (isLiveState(state)) {
    const filter = parseFilter({ state }, { owner: 'page' });
    return (await firstJobs(redis, [ref], { queue: defineQueue(ref.queue), filter, limit })).jobs;
  }
  const reading = { redis, policy: { clock: systemClock, budgetMs: 1000 } };
  const { jobs } = await listRemembered(reading, [ref], { outcome: state, limit, scanMax: 20_000 });
  return jobs.map(({ outcome, ...job }) => ({ ...job, state: outcome }));
}
