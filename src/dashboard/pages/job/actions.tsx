/** What can be done with one job, as its state allows. Each dialog says what will be, and asks why. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { isLiveState } from '../../../job/state.ts';
import { ApiError, askJson } from '../../api.ts';
import * as calls from '../../calls.ts';
import { ownZone } from '../../parts/clock.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { DueField, dueMsOf, isDue, type NewDue } from '../../parts/due.tsx';
import { changeText, relativeText } from '../../parts/words.ts';
import { words } from '../../words/words.ts';
import type { Report } from './life.ts';
import { When } from './when.tsx';

const { acts, ask: said, told } = words.job;

type Action = keyof typeof acts;

interface Actions {
  readonly job: Report;
  readonly done: (told: string) => void;
}

export function JobActions({ job, done }: Actions) {
  // The page looks again while a dialog is open: the dialog is about the job as somebody saw it.
  const [open, setOpen] = useState<{ readonly action: Action; readonly seen: Report }>();
  const close = () => setOpen(undefined);
  const finish = (text: string) => {
    close();
    done(text);
  };
  return (
    <>
      {actionsOf(job).map((action) => (
        <button key={action} type="button" onClick={() => setOpen({ action, seen: job })}>
          {acts[action]} …
        </button>
      ))}
      {job.bare ? null : (
        <a class="btn" href={`#/create/${encodeURIComponent(job.queue)}?like=${encodeURIComponent(job.id)}`}>
          {isLiveState(job.state) ? words.job.another : words.job.anew}
        </a>
      )}
      {open === undefined ? null : <Dialog job={open.seen} action={open.action} finish={finish} close={close} />}
    </>
  );
}

/** What the state of a job allows. */
function actionsOf({ state, bare, readable, deadLetter }: Report): readonly Action[] {
  if (state === 'dead') return deadLetter === undefined ? [] : ['replay'];
  if (!isLiveState(state)) return [];
  if (bare || state === 'running') return ['cancel'];
  return readable ? ['edit', 'reschedule', 'run', 'cancel'] : ['reschedule', 'run', 'cancel'];
}

interface Asking {
  readonly job: Report;
  readonly finish: (told: string) => void;
  readonly close: () => void;
}

function Dialog({ action, ...asking }: Asking & { readonly action: Action }) {
  switch (action) {
    case 'edit':
      return <EditJob {...asking} />;
    case 'reschedule':
      return <Reschedule {...asking} />;
    case 'run':
      return <RunNow {...asking} />;
    case 'cancel':
      return <Cancel {...asking} />;
    case 'replay':
      return <Replay {...asking} />;
  }
}

function Reschedule({ job, finish, close }: Asking) {
  const { queue, id } = job;
  const [due, setDue] = useState<NewDue>({});
  const act = async (reason: string) => {
    await askJson(calls.jobsReschedule, { queue, id }, { json: JSON.stringify(due), reason });
    finish(told.rescheduled);
  };
  return (
    <Confirm title={said.reschedule} yes={acts.reschedule} canConfirm={isDue(due)} asksWhy act={act} close={close}>
      <IdOf job={job} />
      <DueField due={due} setDue={setDue} />
      <NewDueSaid job={job} due={due} />
    </Confirm>
  );
}

function RunNow({ job, finish, close }: Asking) {
  const { queue, id } = job;
  const act = async (reason: string) => {
    await askJson(calls.jobsRun, { queue, id }, { reason });
    finish(told.run);
  };
  return (
    <Confirm title={said.run} yes={acts.run} asksWhy act={act} close={close}>
      <IdOf job={job} />
      <p>
        <Is job={job} /> {said.runSay}
      </p>
    </Confirm>
  );
}

function Cancel({ job, finish, close }: Asking) {
  const { queue, id, bare, state } = job;
  const act = async (reason: string) => {
    await askJson(calls.jobsCancel, { queue, id, bare: bare ? 'true' : undefined }, { reason });
    finish(told.cancelled);
  };
  return (
    <Confirm title={said.cancel} yes={said.cancelYes} no={said.keep} isDangerous asksWhy act={act} close={close}>
      <IdOf job={job} />
      <p>
        <Is job={job} /> {state === 'running' ? said.cancelRuns : said.cancelWaits}
      </p>
    </Confirm>
  );
}

function Replay({ job, finish, close }: Asking) {
  const { queue, deadLetter = '' } = job;
  const [due, setDue] = useState<NewDue>({});
  const act = async (reason: string) => {
    await askJson(calls.deadReplay, { queue, deadLetter }, { json: JSON.stringify(due), reason });
    finish(told.replayed);
  };
  return (
    <Confirm title={said.replay} yes={acts.replay} asksWhy act={act} close={close}>
      <IdOf job={job} />
      <p>{said.replaySay}</p>
      <DueField due={due} setDue={setDue} />
      <NewDueSaid job={job} due={due} />
    </Confirm>
  );
}

const IdOf = ({ job }: { readonly job: Report }) => <p class="id">{job.id}</p>;

/** `It is due Fri 27 Nov 09:00:00, in 16 h 18 min.` */
function Is({ job: { dueMs, nowMs } }: { readonly job: Report }) {
  return dueMs === undefined ? null : <DueSaid text={said.is} atMs={dueMs} nowMs={nowMs} />;
}

function NewDueSaid({ job, due }: { readonly job: Report; readonly due: NewDue }) {
  const atMs = dueMsOf(due, job.nowMs);
  return (
    <p>
      <Is job={job} /> {atMs === undefined ? null : <DueSaid text={said.becomes} atMs={atMs} nowMs={job.nowMs} />}
      <span class="quiet"> {said.inZone(ownZone())}</span>
    </p>
  );
}

interface Due {
  readonly text: ComponentChildren;
  readonly atMs: number;
  readonly nowMs: number;
}

const DueSaid = ({ text, atMs, nowMs }: Due) => (
  <>
    {text} <When atMs={atMs} />, {relativeText(atMs, nowMs)}.
  </>
);

/** Changes name, attempts, data and due time of a job that waits, in one step: only if it still is what was shown. */
function EditJob({ job, finish, close }: Asking) {
  const before = job.data === undefined ? '' : JSON.stringify(job.data, undefined, 2);
  const [data, setData] = useState(before);
  const [attempts, setAttempts] = useState(String(job.options.attempts ?? ''));
  const [name, setName] = useState(job.name ?? '');
  const [due, setDue] = useState<NewDue>({});

  async function act(reason: string): Promise<void> {
    const change = changeText(
      { ...changeOf(job, { name, attempts }), ...due },
      data === before || job.hidden ? undefined : data,
    );
    if (change === '{}') return finish(told.same);
    const { queue, id, etag } = job;
    await askJson(calls.jobsEdit, { queue, id }, { json: change, etag, reason }).catch(inWords);
    finish(told.edited);
  }

  return (
    <Confirm title={said.edit} yes={said.save} asksWhy act={act} close={close}>
      <div class="two-fields">
        <label class="field">
          {said.editName}
          <input value={name} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        <label class="field">
          {said.editAttempts}
          <input
            inputMode="numeric"
            value={attempts}
            onInput={(event) => setAttempts(event.currentTarget.value.trim())}
          />
        </label>
      </div>
      {job.hidden ? (
        <p>{said.editHidden}</p>
      ) : (
        <label class="field">
          {said.editData}
          <textarea rows={8} spellcheck={false} value={data} onInput={(event) => setData(event.currentTarget.value)} />
        </label>
      )}
      <DueField due={due} setDue={setDue} />
      <p>
        {said.editDue} <Is job={job} />{' '}
        {dueMsOf(due, job.nowMs) === undefined ? null : (
          <DueSaid text={said.becomes} atMs={dueMsOf(due, job.nowMs) ?? 0} nowMs={job.nowMs} />
        )}
      </p>
    </Confirm>
  );
}

/** The API speaks of a header; whoever edits wants to know what to do. */
function inWords(error: unknown): never {
  if (!(error instanceof ApiError) || error.code !== 'changed') throw error;
  throw new Error(said.stale, { cause: error });
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
