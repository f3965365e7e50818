/** One job: where it stands, what happened, what it carries, and what can be done with it. */

import { useState } from 'preact/hooks';
import { ApiError, ask, askJson } from '../api.ts';
import type { Schemas } from '../api-types.ts';
import * as calls from '../calls.ts';
import { useAsked } from '../parts/asked.ts';
import { Confirm } from '../parts/confirm.tsx';
import { May } from '../parts/may.tsx';
import { ProblemNote, Stack } from '../parts/problem.tsx';
import { Instant } from '../parts/table.tsx';
import { Tree } from '../parts/tree.tsx';
import { changeText, countText, durationText, percentText, relativeText } from '../parts/words.ts';
import type { Route } from '../router.ts';
import { Holders } from './groups.tsx';
import { DueField, isDue, type NewDue } from './jobs/bulk.tsx';
import { LIVE } from './jobs/filters.ts';

export function Job({ path: [queue = '', id = ''], query }: Route) {
  const bare = query.get('bare') === 'true' ? 'true' : undefined;
  const { value: job, problem, reload } = useAsked(calls.jobsGet, { queue, id, bare });
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
          <May scope="write" queue={queue}>
            <JobActions
              job={job}
              done={(text) => {
                setTold(text);
                reload();
              }}
            />
          </May>
          <Facts job={job} />
          {job.waitsFor === undefined ? null : <WaitsFor queue={queue} wait={job.waitsFor} />}
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
    ['Progress', job.progress && progressText(job.progress, job.nowMs)],
    ['Newer data', job.nextLifeMs === undefined ? undefined : nextLifeText(job.nextLifeMs, job.nowMs)],
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

/** Where it stands in line, and what lets nobody through. */
function WaitsFor({ queue, wait }: { readonly queue: string; readonly wait: Schemas['JobWait'] }) {
  const { group, text, obstacles } = wait;
  return (
    <section aria-label="Why it waits">
      <h2>Why it waits</h2>
      <p>{text}</p>
      <ul class="findings">
        {obstacles.map((one) => (
          <li key={one.kind} class="warn">
            {one.text}
            {one.holders === undefined ? null : <Holders queue={queue} holders={one.holders} />}
          </li>
        ))}
      </ul>
      {group === undefined ? null : (
        <p>
          <a href={`#/groups/${encodeURIComponent(queue)}/${encodeURIComponent(group)}`}>Its group</a>
        </p>
      )}
    </section>
  );
}

const progressText = ({ fraction, text = '', atMs }: Schemas['JobProgress'], nowMs: number): string =>
  [percentText(fraction), text, relativeText(Math.min(atMs, nowMs), nowMs)].filter((part) => part !== '').join(', ');

const nextLifeText = (dueMs: number, nowMs: number): string =>
  `came while it runs, and are shown below. They start when this run has ended, and not before they are due: ${relativeText(dueMs, nowMs)}`;

const asideText = ({ times, reason }: NonNullable<Schemas['Deferred']>): string =>
  `${countText(times, 'time')}${reason === undefined ? '' : `, last because: ${reason}`}`;

type Moment = Schemas['Moment'];

const NAMES: Readonly<Record<Moment['kind'], string>> = {
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
        {job.timeline.filter(isNews).map((event, index) => (
          // An event has no name of its own, and what has happened keeps its place.
          <li key={`${index} ${event.kind}`} class={event.kind}>
            <span class="kind">{NAMES[event.kind]}</span> <Instant atMs={event.atMs} isLong={event.kind !== 'due'} />
            <Details event={event} />
          </li>
        ))}
      </ol>
      <Unlisted job={job} />
      <p>{nextOf(job)}</p>
    </section>
  );
}

/** Starts of which nothing is kept: a handler put the job aside, or a worker handed it back. */
function Unlisted({ job: { attempts, failures, crashes, history, timeline } }: { readonly job: Report }) {
  const listed = timeline.flatMap(({ kind, attempt }) => (STARTS.has(kind) && attempt !== undefined ? [attempt] : []));
  const missing = attempts - new Set(listed).size - Math.max(0, failures + crashes - history.length);
  if (missing <= 0) return null;
  return (
    <p class="quiet">
      {countText(missing, 'start')} {missing === 1 ? 'is' : 'are'} not kept. A start that a handler put aside, or a
      worker handed back, uses no attempt.
    </p>
  );
}

const STARTS: ReadonlySet<Moment['kind']> = new Set(['started', 'failure', 'timeout', 'crash', 'refused']);

/** A job that is due when it was asked for says so once; on which day and at which hour stands above. */
const isNews = ({ kind, atMs }: Moment, _: number, all: readonly Moment[]): boolean =>
  kind !== 'asked-due' || !all.some((one) => one.kind === 'due' && one.atMs === atMs);

function Details({ event: { attempt, owner, tookMs, message, stack } }: { readonly event: Moment }) {
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

function nextOf(job: Report): string {
  if (job.state === 'running') return job.cancelRequested ? 'It runs, and was asked to stop.' : 'It runs now.';
  if (!isWaiting(job)) return 'It is over.';
  if (job.state === 'ready') return 'Its time has come: it waits for a worker.';
  if (job.state === 'waiting') return 'Its time has come: it waits in line.';
  return job.attempts > 0 ? 'It waits for its next try.' : 'It waits for its due time.';
}

function Data({ job }: { readonly job: Report }) {
  return (
    <section aria-labelledby="data">
      <h2 id="data">Data</h2>
      {job.hidden ? (
        <p class="hidden-data">The data and headers are hidden: your token does not have the scope data.</p>
      ) : (
        <DataOf job={job} />
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
      {job.result === undefined || job.state !== 'done' ? null : (
        <>
          <h3>Result</h3>
          <ResultOf result={job.result} hidden={job.hidden} />
        </>
      )}
    </section>
  );
}

/** Of a job that is over nobody keeps the data, but for a dead letter. */
function DataOf({ job }: { readonly job: Report }) {
  const isKept = job.data !== undefined || !isOver(job) || job.deadLetter !== undefined;
  return isKept ? <Tree value={job.data ?? null} /> : <p>Not kept: the job is over.</p>;
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
            {result === undefined || outcome !== 'done' ? null : <ResultOf result={result} hidden={hidden} />}
          </li>
        ))}
      </ol>
    </section>
  );
}

// What can be done with one job, as its state allows.

type Report = Schemas['Job'];

const isOver = ({ state }: Report): boolean => !LIVE.some((live) => live === state);
const isWaiting = ({ state }: Report): boolean => ['scheduled', 'waiting', 'ready'].includes(state);

interface Actions {
  readonly job: Report;
  readonly done: (told: string) => void;
}

type Action = 'edit' | 'reschedule' | 'run' | 'cancel' | 'replay';

function JobActions({ job, done }: Actions) {
  const [action, setAction] = useState<Action>();
  const close = () => setAction(undefined);
  const finish = (told: string) => {
    close();
    done(told);
  };
  const open = (one: Action, label: string) => (
    <button key={one} type="button" onClick={() => setAction(one)}>
      {label} …
    </button>
  );
  const canEdit = isWaiting(job) && !job.bare && job.readable;
  return (
    <div class="actions">
      {canEdit ? open('edit', 'Edit') : null}
      {isWaiting(job) && !job.bare ? [open('reschedule', 'Reschedule'), open('run', 'Run now')] : null}
      {isOver(job) ? null : open('cancel', 'Cancel')}
      {job.state === 'dead' && job.deadLetter !== undefined ? open('replay', 'Replay') : null}
      {action === 'edit' ? <EditJob {...{ job, finish, close }} /> : null}
      {action === undefined || action === 'edit' ? null : <Question {...{ job, action, finish, close }} />}
    </div>
  );
}

interface Questions {
  readonly job: Report;
  readonly action: Exclude<Action, 'edit'>;
  readonly finish: (told: string) => void;
  readonly close: () => void;
}

function Question({ job, action, finish, close }: Questions) {
  const [due, setDue] = useState<NewDue>({});
  const asksDue = action === 'reschedule' || action === 'replay';
  const { title, yes, told, change } = wordsOf(action, job);
  return (
    <Confirm
      title={title}
      yes={yes}
      no={action === 'cancel' ? 'Keep it' : 'Back'}
      isDangerous={action === 'cancel'}
      canConfirm={action !== 'reschedule' || isDue(due)}
      close={close}
      act={async () => {
        await change(due);
        finish(told);
      }}
    >
      <p class="id">{job.id}</p>
      {action === 'cancel' && job.state === 'running' ? <p>It runs: its handler is asked to stop.</p> : null}
      {action === 'replay' ? <p>Without a delay it is due at once.</p> : null}
      {asksDue ? <DueField due={due} setDue={setDue} /> : null}
    </Confirm>
  );
}

function wordsOf(action: Questions['action'], { queue, id, bare, deadLetter = '' }: Report) {
  const one = { queue, id };
  switch (action) {
    case 'reschedule':
      return {
        title: 'Give it another due time',
        yes: 'Reschedule',
        told: 'Rescheduled.',
        change: (due: NewDue) => ask(calls.jobsReschedule, one, due),
      };
    case 'run':
      return {
        title: 'Run it now?',
        yes: 'Run now',
        told: 'It is due now.',
        change: () => ask(calls.jobsRun, one),
      };
    case 'cancel':
      return {
        title: 'Cancel this job?',
        yes: 'Cancel the job',
        told: 'Cancelled, or asked to stop.',
        change: () => ask(calls.jobsCancel, { ...one, bare: bare ? 'true' : undefined }),
      };
    case 'replay':
      return {
        title: 'Replay this dead letter?',
        yes: 'Replay',
        told: 'It is scheduled again.',
        change: (due: NewDue) => ask(calls.deadReplay, { queue, deadLetter }, due),
      };
  }
}

interface Edit {
  readonly job: Report;
  readonly finish: (told: string) => void;
  readonly close: () => void;
}

/** Changes name, attempts, data and due time of a job that waits, in one step: only if it still is what was shown. */
function EditJob({ job, finish, close }: Edit) {
  const before = job.data === undefined ? '' : JSON.stringify(job.data, undefined, 2);
  const [data, setData] = useState(before);
  const [attempts, setAttempts] = useState(String(job.options.attempts ?? ''));
  const [name, setName] = useState(job.name ?? '');
  const [due, setDue] = useState<NewDue>({});

  async function act(): Promise<void> {
    const change = changeText(
      { ...changeOf(job, { name, attempts }), ...due },
      data === before || job.hidden ? undefined : data,
    );
    if (change === '{}') {
      finish('Nothing was changed.');
      return;
    }
    const { queue, id, etag } = job;
    await askJson(calls.jobsEdit, { queue, id }, { json: change, etag }).catch(inWords);
    finish('Changed.');
  }

  return (
    <Confirm title="Edit the job" yes="Save" act={act} close={close}>
      <div class="fields">
        <label>
          Name
          <input value={name} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        <label>
          Attempts, empty: as the queue says
          <input
            inputMode="numeric"
            value={attempts}
            onInput={(event) => setAttempts(event.currentTarget.value.trim())}
          />
        </label>
        {job.hidden ? (
          <p>Your token may not see the data, so they stay as they are.</p>
        ) : (
          <label>
            Data (JSON)
            <textarea
              rows={10}
              spellcheck={false}
              value={data}
              onInput={(event) => setData(event.currentTarget.value)}
            />
          </label>
        )}
      </div>
      <p>
        Due <Instant atMs={job.dueMs} isLong />. Leave this empty to keep the due time.
      </p>
      <DueField due={due} setDue={setDue} />
    </Confirm>
  );
}

/** The API speaks of a header; whoever edits wants to know what to do. */
function inWords(error: unknown): never {
  if (!(error instanceof ApiError) || error.code !== 'changed') throw error;
  throw new Error(
    'Somebody has changed this job since you opened it, so nothing was saved. Go back, press "Look again", and edit it anew.',
    { cause: error },
  );
}

/** What differs from the job as it was shown. */
function changeOf(
  job: Report,
  { name, attempts }: { readonly name: string; readonly attempts: string },
): Readonly<Record<string, unknown>> {
  const isRenamed = name !== '' && name !== (job.name ?? '');
  const isSame = attempts === String(job.options.attempts ?? '');
  return {
    ...(isRenamed ? { name } : {}),
    ...(isSame ? {} : { attempts: attempts === '' ? null : Number(attempts) }),
  };
}
