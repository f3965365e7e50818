/** Pause, resume, trigger and backfill of a schedule. */
import { useState } from 'preact/hooks';
import { ask } from '../../api.ts';
import type { Schemas } from '../../api-types.ts';
import { at } from '../../parts/at.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { Which } from '../../parts/which.tsx';
import { countText, localText } from '../../parts/words.ts';
import { instantOf } from '../jobs/filters.ts';
import type { Schedule } from './schedule-text.ts';

interface Actions {
  readonly schedule: Schedule;
  readonly done: (told: string) => void;
}

type Action = 'pause' | 'resume' | 'trigger' | 'backfill';

export function ScheduleActions({ schedule, done }: Actions) {
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
        await ask(`POST ${at`schedules/${name}/pause`}`, reason === '' ? {} : { reason });
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
        await ask(`POST ${at`schedules/${name}/resume`}`);
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
        const job = await ask<FiredJob>(`POST ${at`schedules/${name}/trigger`}`, { id });
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
    const { jobs } = await ask<Schemas['Backfilled']>(`POST ${at`schedules/${name}/backfill`}`, {
      ...range,
      dryRun,
    });
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
