/** In a queue in strict order, who has a group until it is over: a job that runs or waits, or a dead letter that holds the group. */
import { useState } from 'preact/hooks';
import { ask } from '../../api.ts';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { May } from '../../parts/may.tsx';
import { Instant, JobLink } from '../../parts/table.tsx';
import { words } from '../../words/words.ts';
import { jobsText } from './say.tsx';

const { keeper: said } = words.queue.groups;

interface Kept {
  readonly queue: string;
  readonly group: Schemas['GroupReport'];
  readonly done: (told: string) => void;
}

export function Keeper({ queue, group: { group, keeper, waiting, nowMs }, done }: Kept) {
  if (keeper === undefined) return null;
  const { id, bare, attempt, owner, dueMs, deadLetter } = keeper;
  // It is in line itself where it is due and has not started.
  const isInLine = deadLetter === undefined && owner === undefined && (dueMs ?? nowMs) <= nowMs;
  const behind = Math.max(0, waiting - (isInLine ? 1 : 0));
  return (
    <section aria-labelledby="keeper">
      <header class="sec">
        <h2 id="keeper">{said.title}</h2>
      </header>
      <p>
        <JobLink {...{ queue, id, bare }} />{' '}
        {deadLetter !== undefined ? said.dead : owner !== undefined ? said.runs(attempt, owner) : said.waits(attempt)}
        {deadLetter === undefined && owner === undefined && !isInLine ? (
          <>
            {' '}
            <Instant atMs={dueMs} isLong />
          </>
        ) : null}
        . {behind === 0 ? said.nobody : said.behind(jobsText(behind))}
      </p>
      {deadLetter === undefined ? null : <OpenByHand {...{ queue, group, id, done }} />}
    </section>
  );
}

/** To replay or remove the dead letter is on the page of its job, and of all dead letters. */
function OpenByHand({ queue, group, id, done }: Pick<Kept, 'queue' | 'done'> & Record<'group' | 'id', string>) {
  const [isAsked, setAsked] = useState(false);
  async function act(): Promise<void> {
    await ask(calls.groupsOpen, { queue, group });
    setAsked(false);
    done(said.opened(group));
  }
  return (
    <p class="actions">
      <May scope="write" queue={queue}>
        <button type="button" class="ghost" onClick={() => setAsked(true)}>
          {said.open}
        </button>
      </May>
      <a href={`#/dead/${encodeURIComponent(queue)}`}>{said.letters}</a>
      {isAsked ? (
        <Confirm title={said.openTitle(group)} yes={said.openYes} isDangerous act={act} close={() => setAsked(false)}>
          <p>{said.openText(id)}</p>
        </Confirm>
      ) : null}
    </p>
  );
}
