/** Pause, resume, trigger and backfill of a schedule: from its own page, and from the list. */
import { useState } from 'preact/hooks';
import { ask } from '../../api.ts';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { localText } from '../../parts/clock.ts';
import { Confirm, Which } from '../../parts/confirm.tsx';
import { words } from '../../words/words.ts';
import { instantOf } from '../jobs/filters.ts';
import type { Schedule } from './schedule-words.ts';

const say = words.schedules;

interface Actions {
  readonly schedule: Schedule;
  readonly done: (told: string) => void;
}

type Action = 'pause' | 'resume' | 'trigger' | 'backfill';

/** @param isShort only what a list has room for */
export function ScheduleActions({ schedule, done, isShort = false }: Actions & { readonly isShort?: boolean }) {
  const [action, setAction] = useState<Action>();
  const close = () => setAction(undefined);
  const finish = (told: string) => {
    close();
    done(told);
  };
  const props = { schedule, finish, close };
  const first = schedule.paused === undefined ? 'pause' : 'resume';
  const rest = isShort ? (['trigger'] as const) : (['trigger', 'backfill'] as const);
  return (
    <div class={isShort ? 'acts' : 'actions'}>
      {[first, ...rest].map((one) => (
        <button key={one} type="button" class={isShort ? 'ghost' : undefined} onClick={() => setAction(one as Action)}>
          {say.actions[one as Action]}
          {isShort ? <span class="away"> {schedule.name}</span> : null}
        </button>
      ))}
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
      title={say.pauseTitle}
      yes={say.pauseYes}
      close={close}
      act={async () => {
        await ask(calls.schedulesPause, { name }, reason === '' ? {} : { reason });
        finish(say.paused);
      }}
    >
      <p>
        {name}: {say.pauseMeans}
      </p>
      <div class="fields">
        <label>
          {say.reason}
          <input value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
        </label>
      </div>
    </Confirm>
  );
}

function Resume({ schedule: { name }, finish, close }: Question) {
  return (
    <Confirm
      title={say.resumeTitle}
      yes={say.resumeYes}
      close={close}
      act={async () => {
        await ask(calls.schedulesResume, { name });
        finish(say.resumed);
      }}
    >
      <p>
        {name}: {say.resumeMeans}
      </p>
    </Confirm>
  );
}

function Trigger({ schedule: { name }, finish, close }: Question) {
  // The same question twice, after a lost answer, makes one job.
  const [id] = useState(() => `page-${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`);
  return (
    <Confirm
      title={say.triggerTitle}
      yes={say.triggerYes}
      close={close}
      act={async () => {
        const job = await ask(calls.schedulesTrigger, { name }, { id });
        finish(say.triggered(job.id, job.status));
      }}
    >
      <p>
        {name}: {say.triggerMeans}
      </p>
    </Confirm>
  );
}

type FiredJob = Schemas['FiredJob'];

/** A dry run knows the instants only; which of them have a job already shows when it is done. */
function filledText(jobs: readonly FiredJob[]): string {
  const of = (wanted: string) => jobs.filter(({ status }) => status === wanted).length;
  const left = [
    of('exists') > 0 ? say.leftExists(of('exists')) : '',
    of('over') > 0 ? say.leftOver(of('over')) : '',
  ].filter((part) => part !== '');
  return `${say.filled(of('scheduled'))}${left.length === 0 ? '' : `; ${say.leftAlone} ${left.join(', ')}`}.`;
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
      title={say.backfillTitle}
      yes={would === undefined ? say.showWhich : say.backfillYes(would.length)}
      canConfirm={range.from !== '' && range.to !== '' && would?.length !== 0}
      act={act}
      close={close}
    >
      <div class="fields">
        <label>
          {say.from}
          <input type="datetime-local" onInput={(event) => set('from', event.currentTarget.value)} />
        </label>
        <label>
          {say.to}
          <input type="datetime-local" onInput={(event) => set('to', event.currentTarget.value)} />
        </label>
      </div>
      {dry === undefined ? (
        <p>{say.changesNothing}</p>
      ) : (
        <>
          <p>{say.instants(dry.length, would?.length ?? 0)}</p>
          <Which of={say.instantsName}>
            {dry.slice(0, 20).map(({ id, atMs, status }) => (
              <li key={id}>
                {atMs === undefined ? id : localText(atMs)}: {status === 'would' ? say.would : status}
              </li>
            ))}
          </Which>
        </>
      )}
    </Confirm>
  );
}
