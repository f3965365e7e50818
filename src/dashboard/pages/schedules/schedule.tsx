/** One schedule: its rule, what comes, what was, and what can be done. */

import { useState } from 'preact/hooks';
import { ask } from '../../api.ts';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { useAsked, useList } from '../../parts/asked.ts';
import { Confirm, Which } from '../../parts/confirm.tsx';
import { May } from '../../parts/may.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { Instant, ListActions, Table } from '../../parts/table.tsx';
import { Tree } from '../../parts/tree.tsx';
import { countText, durationText, localText, numberText } from '../../parts/words.ts';
import type { Route } from '../../router.ts';
import { instantOf } from '../jobs/filters.ts';
import { Decision, ruleOf, type Schedule, whatClocksDid } from './schedules.tsx';

const NEXT = 20;

export function SchedulePage({ path: [name = ''] }: Route) {
  const { value, problem, reload } = useAsked(calls.schedulesGet, { name });
  const preview = useAsked(calls.schedulesPreview, { name, next: NEXT });
  const [told, setTold] = useState('');
  const done = (text: string) => {
    setTold(text);
    reload();
    preview.reload();
  };
  return (
    <>
      <h1>
        Schedule <span class="id">{name}</span>
      </h1>
      <ProblemNote problem={problem} />
      <p role="status">{told}</p>
      {value === undefined ? null : (
        <>
          <May scope="write" queue={value.queue}>
            <ScheduleActions schedule={value} done={done} />
          </May>
          <Facts schedule={value} />
        </>
      )}
      <ProblemNote problem={preview.problem} />
      {preview.value === undefined ? null : <NextRuns preview={preview.value} />}
      {value === undefined ? null : <PastRuns key={told} schedule={value} />}
      {value === undefined ? null : (
        <section aria-labelledby="definition">
          <h2 id="definition">Definition</h2>
          {value.hidden ? (
            <p class="hidden-data">The data are hidden: your token does not have the scope data.</p>
          ) : null}
          <Tree value={value.input} />
        </section>
      )}
    </>
  );
}

function Facts({ schedule }: { readonly schedule: Schedule }) {
  const { queue, paused, hand, nextMs, lastMs, runs, skipped, source } = schedule;
  return (
    <dl class="facts">
      <div>
        <dt>Rule</dt>
        <dd>
          <code>{ruleOf(schedule)}</code>
        </dd>
      </div>
      <div>
        <dt>Queue</dt>
        <dd>
          <a href={`#/jobs/${encodeURIComponent(queue)}`}>{queue}</a>
        </dd>
      </div>
      <div>
        <dt>State</dt>
        <dd>{paused === undefined ? 'fires' : `paused ${paused}`}</dd>
      </div>
      {hand === undefined ? null : (
        <div>
          <dt>Paused by</dt>
          <dd>
            {hand.by}, <Instant atMs={hand.atMs} isLong />
          </dd>
        </div>
      )}
      <div>
        <dt>Next</dt>
        <dd>
          <Instant atMs={nextMs} isLong />
        </dd>
      </div>
      <div>
        <dt>Last</dt>
        <dd>
          <Instant atMs={lastMs} isLong />
        </dd>
      </div>
      <div>
        <dt>Runs</dt>
        <dd>
          {numberText(runs)}, and {numberText(skipped)} missed or skipped
        </dd>
      </div>
      <div>
        <dt>Kept by</dt>
        <dd>{source === 'file' ? 'the configuration file' : 'a call'}</dd>
      </div>
    </dl>
  );
}

function NextRuns({ preview: { rows } }: { readonly preview: Schemas['Preview'] }) {
  return (
    <section aria-labelledby="next">
      <h2 id="next">Next runs</h2>
      {rows.length === 0 ? <p>None.</p> : null}
      <Table of="next runs" columns={['In the zone of the schedule', 'For you', 'Decision']}>
        {rows.map((row) => (
          <tr key={`${row.atMs} ${row.local}`}>
            <td>
              {row.local.replace('T', ' ')} {row.offset}
            </td>
            <td>
              <Instant atMs={row.atMs} isLong />
            </td>
            <td>
              <Decision row={row} />
            </td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

// Pause, resume, trigger and backfill of a schedule.

interface Actions {
  readonly schedule: Schedule;
  readonly done: (told: string) => void;
}

type Action = 'pause' | 'resume' | 'trigger' | 'backfill';

function ScheduleActions({ schedule, done }: Actions) {
  const [action, setAction] = useState<Action>();
  const close = () => setAction(undefined);
  const finish = (told: string) => {
    close();
    done(told);
  };
  const props = { schedule, finish, close };
  return (
    <div class="actions">
      {schedule.paused === undefined ? (
        <button type="button" onClick={() => setAction('pause')}>
          Pause …
        </button>
      ) : (
        <button type="button" onClick={() => setAction('resume')}>
          Resume …
        </button>
      )}
      <button type="button" onClick={() => setAction('trigger')}>
        Run one now …
      </button>
      <button type="button" onClick={() => setAction('backfill')}>
        Backfill …
      </button>
      {action === 'pause' ? <Pause {...props} /> : null}
      {action === 'resume' ? <Resume {...props} /> : null}
      {action === 'trigger' ? <Trigger {...props} /> : null}
      {action === 'backfill' ? <Backfill {...props} /> : null}
    </div>
  );
}

interface Question {
  readonly schedule: Schedule;
  readonly finish: (told: string) => void;
  readonly close: () => void;
}

function Pause({ schedule: { name }, finish, close }: Question) {
  const [reason, setReason] = useState('');
  return (
    <Confirm
      title="Pause the schedule"
      yes="Pause"
      close={close}
      act={async () => {
        await ask(calls.schedulesPause, { name }, reason === '' ? {} : { reason });
        finish('Paused. It makes no jobs until somebody resumes it.');
      }}
    >
      <p>It makes no jobs until somebody resumes it. Its jobs go on.</p>
      <div class="fields">
        <label>
          Reason
          <input value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
        </label>
      </div>
    </Confirm>
  );
}

function Resume({ schedule: { name }, finish, close }: Question) {
  return (
    <Confirm
      title="Resume the schedule"
      yes="Resume"
      close={close}
      act={async () => {
        await ask(calls.schedulesResume, { name });
        finish('It fires again.');
      }}
    >
      <p>It fires again, from now on.</p>
    </Confirm>
  );
}

function Trigger({ schedule: { name }, finish, close }: Question) {
  // The same question twice, after a lost answer, makes one job.
  const [id] = useState(() => `page-${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`);
  return (
    <Confirm
      title="Run one extra job now"
      yes="Run one now"
      close={close}
      act={async () => {
        const job = await ask(calls.schedulesTrigger, { name }, { id });
        finish(`Job ${job.id}: ${job.status}.`);
      }}
    >
      <p>The instants of the schedule stay as they are.</p>
    </Confirm>
  );
}

type FiredJob = Schemas['FiredJob'];

/** A dry run knows the instants only; which of them have a job already shows when it is done. */
function filledText(jobs: readonly FiredJob[]): string {
  const of = (wanted: string) => jobs.filter(({ status }) => status === wanted).length;
  const left = [
    of('exists') > 0 ? `${of('exists')} wait or run already` : '',
    of('over') > 0 ? `${of('over')} have run` : '',
  ].filter((part) => part !== '');
  return `${countText(of('scheduled'), 'job')} scheduled${left.length === 0 ? '' : `; left alone: ${left.join(', ')}`}.`;
}

function Backfill({ schedule: { name }, finish, close }: Question) {
  const [range, setRange] = useState({ from: '', to: '' });
  const [dry, setDry] = useState<readonly FiredJob[]>();
  const would = dry?.filter(({ status }) => status === 'would');
  const set = (field: 'from' | 'to', local: string) => {
    setRange({ ...range, [field]: instantOf(local) });
    setDry(undefined);
  };

  async function act(): Promise<void> {
    const dryRun = dry === undefined;
    const { jobs } = await ask(calls.schedulesBackfill, { name }, { ...range, dryRun });
    if (dryRun) setDry(jobs);
    else finish(filledText(jobs));
  }

  return (
    <Confirm
      title="Run the jobs of past instants"
      yes={would === undefined ? 'Show which' : `Schedule ${countText(would.length, 'job')}`}
      canConfirm={range.from !== '' && range.to !== '' && would?.length !== 0}
      act={act}
      close={close}
    >
      <div class="fields">
        <label>
          From
          <input type="datetime-local" onInput={(event) => set('from', event.currentTarget.value)} />
        </label>
        <label>
          To
          <input type="datetime-local" onInput={(event) => set('to', event.currentTarget.value)} />
        </label>
      </div>
      {dry === undefined ? (
        <p>The next step changes nothing. It shows which instants are meant.</p>
      ) : (
        <>
          <p>
            {countText(dry.length, 'instant')}, of them {countText(would?.length ?? 0, 'job')} to be scheduled:
          </p>
          <Which of="instants">
            {dry.slice(0, 20).map(({ id, atMs, status }) => (
              <li key={id}>
                {atMs === undefined ? id : localText(atMs)}: {status === 'would' ? 'will be scheduled' : status}
              </li>
            ))}
          </Which>
        </>
      )}
    </Confirm>
  );
}

// What became of the past instants of a schedule: a late start shows, and so does an instant without a job.

type Run = Schemas['PastRun'];

const SHOWN = 20;

function PastRuns({ schedule: { name, queue } }: { readonly schedule: Schedule }) {
  const { rows, cursor, problem, isBusy, more, reload } = useList(
    calls.schedulesRuns,
    { name, limit: SHOWN },
    { rowsOf: ({ runs }) => runs, keyOf },
  );
  return (
    <section aria-labelledby="past-runs" aria-busy={isBusy}>
      <h2 id="past-runs">Past runs</h2>
      <ProblemNote problem={problem} />
      {rows.length === 0 && !isBusy ? (
        <p>None is known since the rule was changed, or the schedule was paused or resumed.</p>
      ) : null}
      <Table of="past runs" columns={['Instant', 'What became of it', 'Started', 'Late by', { number: 'Attempts' }]}>
        {rows.map((run) => (
          <Row key={keyOf(run)} run={run} queue={queue} />
        ))}
      </Table>
      <ListActions {...{ cursor, isBusy, more, reload }} />
    </section>
  );
}

const keyOf = ({ atMs, local, named = local }: Run): string => `${atMs} ${named}`;

function Row({ run, queue }: { readonly run: Run; readonly queue: string }) {
  const { atMs, id = '', job } = run;
  const address = `#/job/${encodeURIComponent(queue)}/${encodeURIComponent(id)}`;
  return (
    <tr>
      <td>
        <Instant atMs={atMs} isLong />
      </td>
      <td class={run.fate === 'missed' || job?.state === 'dead' ? 'bad' : ''}>
        {job === undefined ? fateText(run) : <a href={address}>{job.state}</a>}
      </td>
      <td>
        <Instant atMs={job?.startedMs} />
      </td>
      <td>{job?.latenessMs === undefined ? '–' : durationText(job.latenessMs)}</td>
      <td class="number">{job === undefined ? '' : numberText(job.attempts)}</td>
    </tr>
  );
}

const FATES: Readonly<Record<Exclude<Run['fate'], 'dropped'>, string>> = {
  made: 'made a job',
  waits: 'waits until the job before it is over',
  due: 'due; no leader has handled it yet',
  missed: 'missed: it made no job',
  unknown: 'no job is known: it was missed, or was over long ago',
};

const fateText = ({ fate, dropped, dst }: Run): string =>
  fate === 'dropped' ? `no job: ${whatClocksDid(dst) ?? dropped ?? 'dropped'}` : FATES[fate];
