/** What happened to a job, oldest first, and what comes next. */
import { Instant } from '../../parts/instant.tsx';
import { Stack } from '../../parts/stack.tsx';
import { durationText } from '../../parts/words.ts';
import type { Event, Job } from './job-shape.ts';
import { isWaiting } from './job-shape.ts';

const NAMES: Readonly<Record<string, string>> = {
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

export function Timeline({ job }: { readonly job: Job }) {
  return (
    <section aria-labelledby="timeline">
      <h2 id="timeline">Timeline</h2>
      <ol class="timeline">
        {job.timeline.map((event, index) => (
          // An event has no name of its own, and what has happened keeps its place.
          <li key={`${index} ${event.kind}`} class={event.kind}>
            <span class="kind">{NAMES[event.kind] ?? event.kind}</span> <Instant atMs={event.atMs} isLong />
            <Details event={event} />
          </li>
        ))}
      </ol>
      <p>{nextOf(job)}</p>
    </section>
  );
}

function Details({ event: { attempt, owner, tookMs, message, stack } }: { readonly event: Event }) {
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

function nextOf(job: Job) {
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
