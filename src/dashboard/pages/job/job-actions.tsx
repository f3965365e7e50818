/** What can be done with one job, as its state allows. */
import { useState } from 'preact/hooks';
import { ApiError, ask, askJson } from '../../api.ts';
import type { Schemas } from '../../api-types.ts';
import { at } from '../../parts/at.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { DueField, dueOf } from '../jobs/bulk.tsx';
import { LIVE } from '../jobs/filters.ts';
import { changeText } from './change-text.ts';

type Job = Schemas['Job'];

const isOver = ({ state }: Job): boolean => !LIVE.some((live) => live === state);
export const isWaiting = ({ state }: Job): boolean => ['scheduled', 'waiting', 'ready'].includes(state);

interface Actions {
  readonly job: Job;
  readonly done: (told: string) => void;
}

type Action = 'edit' | 'reschedule' | 'run' | 'cancel' | 'replay';

export function JobActions({ job, done }: Actions) {
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
  readonly job: Job;
  readonly action: Exclude<Action, 'edit'>;
  readonly finish: (told: string) => void;
  readonly close: () => void;
}

function Question({ job, action, finish, close }: Questions) {
  const [due, setDue] = useState('');
  const asksDue = action === 'reschedule' || action === 'replay';
  const { title, yes, told, what } = wordsOf(action, job);
  return (
    <Confirm
      title={title}
      yes={yes}
      no={action === 'cancel' ? 'Keep it' : 'Back'}
      isDangerous={action === 'cancel'}
      canConfirm={action !== 'reschedule' || due !== ''}
      close={close}
      act={async () => {
        await ask(what, bodyOf(action, due));
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

function bodyOf(action: Questions['action'], due: string): object | undefined {
  if (action === 'reschedule') return dueOf(due);
  if (action !== 'replay') return undefined;
  return due === '' ? {} : dueOf(due);
}

function wordsOf(action: Questions['action'], { queue, id, bare, deadLetter = '' }: Job) {
  const path = at`queues/${queue}/jobs/${id}`;
  switch (action) {
    case 'reschedule':
      return {
        title: 'Give it another due time',
        yes: 'Reschedule',
        told: 'Rescheduled.',
        what: `POST ${path}/reschedule`,
      };
    case 'run':
      return { title: 'Run it now?', yes: 'Run now', told: 'It is due now.', what: `POST ${path}/run` };
    case 'cancel':
      return {
        title: 'Cancel this job?',
        yes: 'Cancel the job',
        told: 'Cancelled, or asked to stop.',
        what: `DELETE ${path}${bare ? '?bare=true' : ''}`,
      };
    case 'replay':
      return {
        title: 'Replay this dead letter?',
        yes: 'Replay',
        told: 'It is scheduled again.',
        what: `POST ${at`queues/${queue}/dead/${deadLetter}/replay`}`,
      };
  }
}

interface Edit {
  readonly job: Job;
  readonly finish: (told: string) => void;
  readonly close: () => void;
}

/** Changes name, attempts and data of a job that waits: only if it still is what was shown. */
function EditJob({ job, finish, close }: Edit) {
  const before = job.data === undefined ? '' : JSON.stringify(job.data, undefined, 2);
  const [data, setData] = useState(before);
  const [attempts, setAttempts] = useState(String(job.options.attempts ?? ''));
  const [name, setName] = useState(job.name ?? '');

  async function act(): Promise<void> {
    const change = changeText(changeOf(job, { name, attempts }), data === before || job.hidden ? undefined : data);
    if (change === '{}') {
      finish('Nothing was changed.');
      return;
    }
    const headers: Record<string, string> = job.etag === undefined ? {} : { 'If-Match': `"${job.etag}"` };
    await askJson(`PATCH ${at`queues/${job.queue}/jobs/${job.id}`}`, change, headers).catch(inWords);
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
  job: Job,
  { name, attempts }: { readonly name: string; readonly attempts: string },
): Readonly<Record<string, unknown>> {
  const isRenamed = name !== '' && name !== (job.name ?? '');
  const isSame = attempts === String(job.options.attempts ?? '');
  return {
    ...(isRenamed ? { name } : {}),
    ...(isSame ? {} : { attempts: attempts === '' ? null : Number(attempts) }),
  };
}
