/** When a job was started last, and how its last life ended, from what a look at it has found. */
import type { JobView } from '../client/client.ts';
import { isEndOf, type PastJob } from '../job/past.ts';

/** How the last life of the job ended, if that is over and its queue keeps a history. */
export function endOf({ state, token, attempts, past: [last] }: JobView): PastJob | undefined {
  return isEndOf(last, { outcome: state, token, attempts }) ? last : undefined;
}

/** Its last start in epoch ms. Tokens grow with the clock of Redis in µs, so the token of a start says when it was. */
export function startedMsOf(job: JobView): number | undefined {
  const end = endOf(job);
  if (end) return end.startedMs;
  return job.token === undefined ? undefined : Math.floor(Number(job.token) / 1000);
}
