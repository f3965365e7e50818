/** How ends of jobs are heard in virtual time: each as it happens, so nobody has to ask twice. */

import type { ActParts } from '../client/jobs/act.ts';
import type { EndSource } from '../client/jobs/end-watch.ts';
import { idOf, memberOf } from '../job/codec.ts';
import type { Token } from '../job/job.ts';
import { outcomeLetters } from '../job/state.ts';
import type { Clock } from '../kernel/clock.ts';
import type { JobBook } from './jobs.ts';
import { overOf, refOf } from './kept.ts';

const LETTERS = new Map(Object.entries(outcomeLetters).map(([letter, state]) => [state, letter]));

export function endsIn(
  book: JobBook,
  {
    callPartitions,
    clock,
    stopping,
  }: Pick<ActParts, 'callPartitions'> & Pick<EndSource, 'stopping'> & { readonly clock: Clock },
): EndSource {
  return {
    clock: { ...clock, timer: book.timer },
    callPartitions,
    againMs: Number.POSITIVE_INFINITY,
    stopping,
    listen({ queue, partition }, listener) {
      const stop = book.listen((job) => {
        const over = overOf(job.state);
        const isHere = job.queue.name === queue && refOf(job).partition === partition;
        if (over && isHere) listener(`${LETTERS.get(over)} ${job.token} ${memberOf(job.id)}`);
      });
      return { stop, isDeaf: () => false };
    },
    mend: () => undefined,
    ask: async ({ queue }, members) =>
      members.map((member) => {
        const job = book.find(queue, idOf(member).id);
        if (!job) return { kind: 'unknown' };
        const over = overOf(job.state);
        return over ? { kind: 'over', over, token: job.token as Token } : { kind: 'waits' };
      }),
  };
}
