/** Queues of which not all is there: they did not answer, or they keep nothing of jobs that are over. */
import type { Schemas } from '../../api-types.ts';
import { Unread } from '../../parts/problem.tsx';
import { words } from '../../words/words.ts';

const NAMES_MAX = 5;
/** As the API says it. */
const NO_HISTORY = /keeps no history/;

/** It has answered, and keeps nothing that could be found. */
export const isForgetful = ({ why }: Schemas['UnreadQueue']): boolean => NO_HISTORY.test(why);

export function Missed({ unread }: { readonly unread: readonly Schemas['UnreadQueue'][] }) {
  const forgetful = unread.filter(isForgetful).map(({ queue }) => queue);
  const names = forgetful.slice(0, NAMES_MAX).join(', ');
  return (
    <>
      {forgetful.length === 0 ? null : <p class="quiet">{words.jobs.noHistory(names, forgetful.length - NAMES_MAX)}</p>}
      <Unread unread={unread.filter((one) => !isForgetful(one))} />
    </>
  );
}
