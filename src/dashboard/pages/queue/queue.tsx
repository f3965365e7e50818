/** One queue: why it holds in one sentence, the way of its jobs, its limits, who waits, what happened, and its settings. */
import { useCallback, useEffect, useState } from 'preact/hooks';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { type LiveQueue, useEvery, useLive } from '../../live.ts';
import { type Asked, useAsked } from '../../parts/asked.ts';
import { ProblemNote } from '../../parts/problem.tsx';
import type { Route } from '../../router.ts';
import { words } from '../../words/words.ts';
import { Tools } from './act.tsx';
import { Charts } from './charts.tsx';
import { Diary } from './diary.tsx';
import { Flow } from './flow.tsx';
import { WhoWaits } from './groups.tsx';
import { Limits, type LimitsSeen } from './limits.tsx';
import { NextRuns } from './next.tsx';
import { OfQueue } from './of-queue.tsx';
import { isHindered, Say } from './say.tsx';
import type { Why } from './seen.ts';
import { Settings } from './settings.tsx';
import { Target } from './target.tsx';
import { WhyList } from './why.tsx';

const WHY_EVERY_MS = 5000;
const DIARY_EVERY_MS = 60_000;
const MINUTES_EVERY_MS = 30_000;

export function Queue({ path: [queue = ''] }: Route) {
  const { now, state, why } = useLive();
  const found = now?.queues.find((one) => one.queue === queue);
  const isAway = state === 'away' || state === 'ended';
  return (
    <OfQueue queue={queue} here="queue">
      {now === undefined ? (
        <section class="say">
          <h1>{queue}</h1>
          <p role="status" aria-busy={!isAway}>
            {isAway ? '' : words.queue.looking}
          </p>
        </section>
      ) : null}
      {isAway ? (
        <p class="problem" role="alert">
          {why}
        </p>
      ) : null}
      {now !== undefined && found === undefined ? <Never queue={queue} /> : null}
      {found === undefined ? null : <Known key={queue} found={found} redis={now?.redis} />}
    </OfQueue>
  );
}

function Never({ queue }: { readonly queue: string }) {
  const { never } = words.queue;
  return (
    <section class="say">
      <h1>{never.title}</h1>
      <p>{never.text}</p>
      <pre tabIndex={0}>
        <code>duestream schedule {queue} --delay 1m</code>
      </pre>
    </section>
  );
}

/** What is asked for one part of the page alone is asked there. */
function useAgain<Value>(asked: Asked<Value>, everyMs: number): Asked<Value> {
  useEvery(everyMs, useCallback(asked.reload, [asked.reload]));
  return asked;
}

const DAY_MS = 86_400_000;

function Known({ found, redis }: { readonly found: LiveQueue; readonly redis: Schemas['LiveNow']['redis'] }) {
  const { queue } = found;
  const why = useAgain(useAsked(calls.queuesWhy, { queue }), WHY_EVERY_MS);
  const settings = useAsked(calls.queuesSettings, { queue });
  const hour = useAgain(useAsked(calls.queuesMinutes, { queue, hours: '1' }), MINUTES_EVERY_MS);
  // The day of the diary begins when the page opens: another address would be another answer.
  const [from] = useState(() => new Date(Date.now() - DAY_MS + 60_000).toISOString());
  const day = useAgain(useAsked(calls.queuesLate, { queue, from }), DIARY_EVERY_MS);
  useEffect(() => {
    // Somebody else may have paused it: who, the diary tells.
    for (const { reload } of [why, day]) reload();
  }, [found.paused]);
  const [told, setTold] = useState('');
  const changed = (text: string) => {
    setTold(text);
    for (const { reload } of [why, settings, day]) reload();
  };
  const code = why.value?.reasons[0]?.code;
  return (
    <>
      <Say {...{ found, why: why.value, diary: day.value?.diary }}>
        <Tools
          {...{ found, changed }}
          isClosed={isClosed(day.value, why.value)}
          promises={typeof settings.value?.settings.lateness === 'object'}
        />
      </Say>
      <p role="status">{told}</p>
      <ProblemNote problem={why.problem ?? settings.problem} />
      <Flow {...{ found, why: why.value, hour: hour.value }} />
      {why.value !== undefined && isHindered(why.value) ? <WhyList {...{ found, redis, why: why.value }} /> : null}
      {found.limits === undefined ? (
        <Limits {...{ found, why: why.value, settings: settings.value }} />
      ) : (
        <Gated {...{ found, why: why.value, settings: settings.value, diary: day.value?.diary, changed }} />
      )}
      <Target {...{ queue, settings: settings.value }} />
      {code === 'not-due' || code === 'empty' ? <NextRuns queue={queue} /> : null}
      <Charts {...{ found, hour, settings: settings.value }} />
      {settings.value === undefined ? null : <Settings {...{ queue, settings: settings.value, changed }} />}
      <Diary {...{ queue, asked: day }} />
    </>
  );
}

interface Limited extends LimitsSeen {
  readonly diary: Schemas['QueueLate']['diary'] | undefined;
  readonly changed: (told: string) => void;
}

/** In a queue with limits jobs wait in line, each group for itself. */
function Gated({ diary, changed, ...seen }: Limited) {
  const { queue } = seen.found;
  const asked = useAgain(useAsked(calls.groupsList, { queue, top: 'true', limit: 10 }), WHY_EVERY_MS);
  return (
    <>
      <Limits {...seen} groups={asked.value?.groups} />
      <WhoWaits {...{ queue, asked, diary, settings: seen.settings, changed }} />
    </>
  );
}

/** The queue as a whole: by the reason that is told, or by its diary where nothing waits. */
function isClosed(day: Schemas['QueueLate'] | undefined, why: Why | undefined): boolean {
  if (why?.reasons.some(({ heldBy }) => heldBy === 'queue-closed')) return true;
  return (
    day?.diary.intervals.some(
      ({ what, group, toMs }) => what === 'closed' && group === undefined && toMs !== undefined && toMs > Date.now(),
    ) ?? false
  );
}
