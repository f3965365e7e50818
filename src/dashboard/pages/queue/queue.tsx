/** One queue: its counts, why nothing moves if nothing does, how fast and how late it is; pause and resume. */
import { useCallback, useState } from 'preact/hooks';
import type { Schemas } from '../../api-types.ts';
import { type LiveQueue, useLive } from '../../live.ts';
import { useAsked } from '../../parts/asked.ts';
import { at } from '../../parts/at.ts';
import { useEvery } from '../../parts/every.ts';
import { ProblemNote } from '../../parts/problem.tsx';
import { numberText } from '../../parts/words.ts';
import type { Route } from '../../router.ts';
import { Charts } from './charts.tsx';
import { PauseQueue } from './pause-queue.tsx';

const WHY_EVERY_MS = 5000;

export function Queue({ path: [queue = ''] }: Route) {
  const { now } = useLive();
  const found = now?.queues.find((one) => one.queue === queue);
  const name = encodeURIComponent(queue);
  return (
    <>
      <h1>
        Queue <span class="id">{queue}</span>
        {found?.paused ? <em class="badge">paused</em> : null}
      </h1>
      {now !== undefined && found === undefined ? <p class="problem">This queue was never used.</p> : null}
      {found === undefined ? null : (
        <>
          <Counts {...found} />
          <Reasons queue={queue} />
          <Actions queue={found} />
        </>
      )}
      <p class="actions">
        <a href={`#/jobs/${name}`}>Jobs</a> <a href={`#/dead/${name}`}>Dead letters</a>
      </p>
      <Charts queue={queue} />
    </>
  );
}

function Counts({ queue, scheduled, waiting, ready, running, dead, perSecond, workers, leaders }: LiveQueue) {
  const name = encodeURIComponent(queue);
  const led = leaders.filter((one) => one !== null).length;
  return (
    <dl class="tiles">
      {(
        [
          ['Scheduled', scheduled, `#/jobs/${name}?state=scheduled`],
          ...(waiting > 0 ? [['In line', waiting, `#/jobs/${name}?state=waiting`] as const] : []),
          ['Ready', ready, `#/jobs/${name}?state=ready`],
          ['Running', running, `#/jobs/${name}?state=running`],
          ['Dead letters', dead, `#/dead/${name}`],
        ] as const
      ).map(([text, count, href]) => (
        <div key={text} class="tile">
          <dt>{text}</dt>
          <dd>
            <a href={href}>{numberText(count)}</a>
          </dd>
        </div>
      ))}
      <div class="tile">
        <dt>Starts per second</dt>
        <dd>{numberText(perSecond.started)}</dd>
      </div>
      <div class={workers === 0 ? 'tile bad' : 'tile'}>
        <dt>Workers</dt>
        <dd>
          <a href="#/workers">{numberText(workers)}</a>
        </dd>
      </div>
      <div class={led < leaders.length ? 'tile bad' : 'tile'}>
        <dt>Partitions with a leader</dt>
        <dd>
          {led} of {leaders.length}
        </dd>
      </div>
    </dl>
  );
}

function Reasons({ queue }: { readonly queue: string }) {
  const { value, problem, reload } = useAsked<Schemas['WhyNothingMoves']>(at`queues/${queue}/why`);
  useEvery(WHY_EVERY_MS, useCallback(reload, [reload]));
  return (
    <section aria-label="Why nothing moves" aria-live="polite">
      <ProblemNote problem={problem} />
      {value === undefined ? null : value.reasons.length === 0 ? (
        <p class="good">Nothing hinders this queue.</p>
      ) : (
        <ul class="findings">
          {value.reasons.map(({ code, text }) => (
            <li key={code} class={value.moves ? 'ok' : 'warn'}>
              {text}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Actions({ queue: { queue, paused } }: { readonly queue: LiveQueue }) {
  const [isAsking, setAsking] = useState(false);
  const [told, setTold] = useState('');
  const finish = (text: string) => {
    setTold(text);
    setAsking(false);
  };
  return (
    <div class="actions">
      <button type="button" onClick={() => setAsking(true)}>
        {paused ? 'Resume …' : 'Pause …'}
      </button>
      <span role="status">{told}</span>
      {isAsking ? <PauseQueue queue={queue} paused={paused} finish={finish} close={() => setAsking(false)} /> : null}
    </div>
  );
}
