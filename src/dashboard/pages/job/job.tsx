/** One job: where it stands, what happened, what it carries, and what can be done with it. */
import { useState } from 'preact/hooks';
import type { Schemas } from '../../api-types.ts';
import { useAsked } from '../../parts/asked.ts';
import { at } from '../../parts/at.ts';
import { Instant } from '../../parts/instant.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { Stack } from '../../parts/stack.tsx';
import { Tree } from '../../parts/tree.tsx';
import { countText, durationText } from '../../parts/words.ts';
import type { Route } from '../../router.ts';
import { isWaiting, JobActions } from './job-actions.tsx';

type Report = Schemas['Job'];

export function Job({ path: [queue = '', id = ''], query }: Route) {
  const bare = query.get('bare') === 'true' ? '?bare=true' : '';
  const { value: job, problem, reload } = useAsked<Report>(`${at`queues/${queue}/jobs/${id}`}${bare}`);
  const [told, setTold] = useState('');
  return (
    <>
      <h1>
        Job <span class="id">{id}</span>
      </h1>
      <p>
        in <a href={`#/jobs/${encodeURIComponent(queue)}`}>{queue}</a>
      </p>
      <ProblemNote problem={problem} />
      <p role="status">{told}</p>
      {job === undefined ? null : (
        <>
          <JobActions
            job={job}
            done={(text) => {
              setTold(text);
              reload();
            }}
          />
          <Facts job={job} />
          <Timeline job={job} />
          <Data job={job} />
          <Past job={job} />
        </>
      )}
      <p class="actions">
        <button type="button" onClick={reload}>
          Look again
        </button>
      </p>
    </>
  );
}

function Facts({ job }: { readonly job: Report }) {
  const facts = [
    ['Name', job.name],
    ['Tags', job.tags?.join(', ')],
    ['Attempts', `${job.attempts} started, ${job.failures} failed, ${job.crashes} crashed`],
    ['Put aside', job.deferred && asideText(job.deferred)],
    ['Worker', job.owner],
    ['Reason', job.reason],
    ['Partition', String(job.partition)],
  ].filter(([, value]) => value !== undefined && value !== '');
  return (
    <dl class="facts">
      <div>
        <dt>State</dt>
        <dd>{job.state}</dd>
      </div>
      <div>
        <dt>Due</dt>
        <dd>
          <Instant atMs={job.dueMs} isLong />
        </dd>
      </div>
      {facts.map(([term, value]) => (
        <div key={term}>
          <dt>{term}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

const asideText = ({ times, reason }: NonNullable<Schemas['Deferred']>): string =>
  `${countText(times, 'time')}${reason === undefined ? '' : `, last because: ${reason}`}`;

const NAMES: Readonly<Record<Schemas['Moment']['kind'], string>> = {
  'asked-due': 'Due as asked',
  due: 'Due',
  started: 'Started',
  failure: 'Failed',
  timeout: 'Ran too long',
  crash: 'Worker crashed',
  refused: 'Refused by the worker',
  done: 'Done',
  cancelled: 'Cancelled',
  expired: 'Expired',
  dead: 'Dead letter',
  'earlier-end': 'An earlier run ended',
};

function Timeline({ job }: { readonly job: Report }) {
  return (
    <section aria-labelledby="timeline">
      <h2 id="timeline">Timeline</h2>
      <ol class="timeline">
        {job.timeline.map((event, index) => (
          // An event has no name of its own, and what has happened keeps its place.
          <li key={`${index} ${event.kind}`} class={event.kind}>
            <span class="kind">{NAMES[event.kind]}</span> <Instant atMs={event.atMs} isLong />
            <Details event={event} />
          </li>
        ))}
      </ol>
      <p>{nextOf(job)}</p>
    </section>
  );
}

function Details({ event: { attempt, owner, tookMs, message, stack } }: { readonly event: Schemas['Moment'] }) {
  const parts = [
    attempt === undefined ? '' : `attempt ${attempt}`,
    owner === undefined ? '' : `worker ${owner}`,
    tookMs === undefined ? '' : `took ${durationText(tookMs)}`,
  ].filter((part) => part !== '');
  return (
    <>
      {parts.length === 0 ? null : <span class="quiet"> · {parts.join(' · ')}</span>}
      {message === undefined ? null : <pre class="error">{message}</pre>}
      <Stack text={stack} />
    </>
  );
}

function nextOf(job: Report) {
  if (job.state === 'running') return job.cancelRequested ? 'It runs, and was asked to stop.' : 'It runs now.';
  if (!isWaiting(job)) return 'It is over.';
  if (job.state === 'ready') return 'Its time has come: it waits for a worker.';
  return (
    <>
      {job.attempts > 0 ? 'Next try: ' : 'Due: '}
      <Instant atMs={job.dueMs} isLong />
    </>
  );
}

function Data({ job }: { readonly job: Report }) {
  return (
    <section aria-labelledby="data">
      <h2 id="data">Data</h2>
      {job.hidden ? (
        <p class="hidden-data">The data and headers are hidden: your token does not have the scope data.</p>
      ) : (
        <Tree value={job.data ?? null} />
      )}
      {job.headers === undefined ? null : (
        <>
          <h3>Headers</h3>
          <Tree value={job.headers} />
        </>
      )}
      {Object.keys(job.options).length === 0 ? null : (
        <>
          <h3>Options of this job</h3>
          <Tree value={job.options} />
        </>
      )}
      {job.result === undefined ? null : (
        <>
          <h3>Result</h3>
          <ResultOf result={job.result} hidden={job.hidden} />
        </>
      )}
    </section>
  );
}

function ResultOf({ result, hidden }: { readonly result: Schemas['KeptResult']; readonly hidden: boolean }) {
  if (result.kind === 'none') return <p>It returned nothing.</p>;
  if (result.kind === 'too-large') return <p>It was too large to be kept: {result.bytes} bytes.</p>;
  if (hidden) return <p class="hidden-data">The result is hidden: your token does not have the scope data.</p>;
  return result.kind === 'kept' ? <Tree value={result.value} /> : <p>It is no JSON. {result.why}</p>;
}

function Past({ job: { past: ends, result, hidden } }: { readonly job: Report }) {
  // The end of its present life is told above, with its result.
  const past = result === undefined ? ends : ends.slice(1);
  if (past.length === 0) return null;
  return (
    <section aria-labelledby="past">
      <h2 id="past">Earlier ends of this id</h2>
      <ol>
        {past.map(({ outcome, overMs, attempts, owner, tookMs, result }) => (
          <li key={`${overMs} ${outcome}`}>
            {outcome} <Instant atMs={overMs} isLong /> after {attempts} {attempts === 1 ? 'start' : 'starts'}
            {owner === undefined ? '' : `, worker ${owner}`}
            {tookMs === undefined ? '' : `, took ${durationText(tookMs)}`}
            {result === undefined ? null : <ResultOf result={result} hidden={hidden} />}
          </li>
        ))}
      </ol>
    </section>
  );
}
