/** All schedules: the rule in words, what comes and what became of the last run, pause beside each; and their week. */
import { useContext, useEffect, useState } from 'preact/hooks';
import { ask } from '../../api.ts';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { useAsked } from '../../parts/asked.ts';
import { Icon } from '../../parts/icon.tsx';
import { Caller, May } from '../../parts/may.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { capital, momentText } from '../../parts/when.ts';
import { durationText, numberText, relativeText } from '../../parts/words.ts';
import type { Route } from '../../router.ts';
import { words } from '../../words/words.ts';
import { ScheduleActions } from './actions.tsx';
import { addressOf, Calendar } from './calendar.tsx';
import { ScheduleForm } from './form.tsx';
import { ruleText } from './rule.ts';
import { fateText } from './schedule.tsx';
import { ruleOf, type Schedule } from './schedule-words.ts';
import '../../css/schedules.css';

const say = words.schedules;

type Run = Schemas['PastRun'];

/** `#/schedules`, `#/schedules/new`, `#/schedules/edit/nightly` */
export function Schedules({ path: [action, name] }: Route) {
  if (action === 'new') return <ScheduleForm />;
  if (action === 'edit' && name !== undefined) return <ScheduleForm name={name} />;
  return <List />;
}

function List() {
  const { value, problem, isBusy, reload } = useAsked(calls.schedulesList, {});
  const [told, setTold] = useState('');
  const mayMake = useContext(Caller)?.scopes.includes('write') ?? false;
  const last = useLastRuns(value?.schedules ?? NONE);
  const done = (text: string) => {
    setTold(text);
    reload();
  };
  return (
    <>
      <Sentence page={value} last={last} />
      <ProblemNote problem={problem} />
      <p role="status" aria-busy={isBusy}>
        {told}
      </p>
      <p class="actions">
        {mayMake ? (
          <a class="btn" href="#/schedules/new">
            <Icon name="plus" />
            {say.make}
          </a>
        ) : null}
        <button type="button" onClick={reload}>
          {words.parts.lookAgain}
        </button>
      </p>
      {value === undefined ? null : <Rows page={value} last={last} done={done} />}
      {value === undefined || value.schedules.length === 0 ? null : <Calendar schedules={value.schedules} />}
    </>
  );
}

const NONE: readonly Schedule[] = [];
/** Of so many the last run is asked for. */
const LAST_MAX = 25;
/** The newest may be due and not handled yet. */
const RUNS_ASKED = 2;

/** By name. It is asked when the list is: a run changes seldom. */
function useLastRuns(schedules: readonly Schedule[]): ReadonlyMap<string, Run> {
  const [last, setLast] = useState<ReadonlyMap<string, Run>>(new Map());
  useEffect(() => {
    let isGone = false;
    const asked = schedules.slice(0, LAST_MAX).map(async ({ name }) => {
      const { runs } = await ask(calls.schedulesRuns, { name, limit: RUNS_ASKED });
      const run = runs.find(({ fate }) => fate !== 'due') ?? runs[0];
      return run === undefined ? [] : [[name, run] as const];
    });
    // Of a schedule that is gone meanwhile nothing is known.
    void Promise.allSettled(asked).then((all) => {
      const known = all.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
      if (!isGone) setLast(new Map(known));
    });
    return () => {
      isGone = true;
    };
  }, [schedules]);
  return last;
}

interface PageOf {
  readonly page: Schemas['SchedulesPage'];
  readonly last: ReadonlyMap<string, Run>;
}

/** It made a job that may be over for long, or none: nobody knows any more. */
const isUnknown = (run: Run | undefined): boolean =>
  run !== undefined && run.job === undefined && run.fate === 'unknown';
const isBad = (run: Run | undefined): boolean => run?.fate === 'missed' || run?.job?.state === 'dead';

function Sentence({ page, last }: Pick<PageOf, 'last'> & { readonly page: PageOf['page'] | undefined }) {
  const schedules = page?.schedules ?? [];
  const paused = schedules.filter(({ paused }) => paused !== undefined).length;
  const bad = schedules.filter(({ name, unreadable }) => unreadable !== undefined || isBad(last.get(name)));
  const broken = page?.unreadable.length ?? 0;
  const count = schedules.length + broken + (page?.more ?? 0);
  const asked = Math.min(schedules.length, LAST_MAX);
  const unknown = schedules.filter(({ name }) => isUnknown(last.get(name))).length;
  return (
    <section class="say">
      <h1>
        {page === undefined ? words.places.schedules : say.sum(count)}{' '}
        {count === 0 || (last.size === 0 && bad.length + broken === 0)
          ? null
          : fatesText({ bad: bad.length + broken, unknown, count, asked })}
        {paused === 0 ? null : ` ${say.somePaused(paused)}`}
      </h1>
      {bad.slice(0, 3).map(({ name, unreadable }) => {
        const run = last.get(name);
        return (
          <p key={name}>
            <a href={addressOf(name)}>{name}</a>:{' '}
            {unreadable ?? (run === undefined ? '' : `${momentText(run.atMs, Date.now())}, ${resultText(run)}`)}
          </p>
        );
      })}
    </section>
  );
}

interface Fates {
  readonly bad: number;
  readonly unknown: number;
  readonly count: number;
  readonly asked: number;
}

function fatesText({ bad, unknown, count, asked }: Fates): string {
  if (bad > 0) return say.someBad(bad);
  if (unknown > 0) return say.someUnknown(unknown);
  return count > asked ? say.firstWell(asked) : say.allWell;
}

const resultText = (run: Run): string =>
  run.job === undefined ? fateText(run) : (words.states[run.job.state as keyof typeof words.states] ?? run.job.state);

interface RowsOf extends PageOf {
  readonly done: (told: string) => void;
}

function Rows({ page: { schedules, more, unreadable }, last, done }: RowsOf) {
  if (schedules.length + unreadable.length === 0) {
    return (
      <section class="empty">
        <h2>{say.none}</h2>
        <p>{say.noneWhy}</p>
        <pre>duestream schedules put nightly --queue emails --cron '30 2 * * *'</pre>
      </section>
    );
  }
  const { columns } = say;
  return (
    <section aria-label={say.all}>
      {schedules.length === 0 ? null : (
        <table class="list texts sched">
          <thead>
            <tr>
              {[columns.name, columns.when, columns.zone, columns.queue, columns.next, columns.last].map((text) => (
                <th key={text} scope="col">
                  {text}
                </th>
              ))}
              <th scope="col" class="n">
                {columns.lateBy}
              </th>
              <th scope="col">
                <span class="away">{columns.toDo}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {schedules.map((schedule) => (
              <Row key={schedule.name} schedule={schedule} run={last.get(schedule.name)} done={done} />
            ))}
          </tbody>
        </table>
      )}
      {more > 0 ? <p class="quiet">{say.more(numberText(more))}</p> : null}
      {unreadable.map(({ name, why }) => (
        <p key={name} class="problem">
          {name}: {why}
        </p>
      ))}
    </section>
  );
}

interface RowOf extends Pick<RowsOf, 'done'> {
  readonly schedule: Schedule;
  readonly run: Run | undefined;
}

function Row({ schedule, run, done }: RowOf) {
  const { name, queue, input, nextMs, paused, unreadable } = schedule;
  const nowMs = Date.now();
  const inWords = ruleText(input);
  const trouble = unreadable !== undefined || isBad(run) || paused !== undefined;
  return (
    <tr>
      <th scope="row">
        <i class={`lamp ${trouble ? 'warn' : ''}`} aria-hidden="true" />
        <a href={addressOf(name)}>{name}</a>
      </th>
      <td>
        {inWords === undefined ? '' : capital(inWords)}{' '}
        <code class="quiet rule">
          {input.cron === undefined && inWords ? '' : ruleOf({ ...schedule, input: { ...input, zone: undefined } })}
        </code>
      </td>
      <td class="quiet">{input.zone === undefined ? '' : String(input.zone)}</td>
      <td class="quiet">{queue}</td>
      <td>
        {unreadable !== undefined ? (
          <span class="warn-text">{say.doesNotFire(unreadable)}</span>
        ) : paused !== undefined ? (
          <span class="warn-text">{say.isPaused(paused)}</span>
        ) : nextMs === undefined ? (
          <span class="none">–</span>
        ) : (
          <>
            {momentText(nextMs, nowMs)} <span class="quiet">{relativeText(nextMs, nowMs)}</span>
          </>
        )}
      </td>
      <td class={isBad(run) ? 'last bad' : 'last quiet'}>
        {run === undefined ? <span class="none">–</span> : `${momentText(run.atMs, nowMs)}, ${resultText(run)}`}
      </td>
      <td class="n lt">
        {run?.job?.latenessMs === undefined ? <span class="none">–</span> : durationText(run.job.latenessMs)}
      </td>
      <td class="n">
        <May scope="write" queue={queue}>
          <ScheduleActions schedule={schedule} done={done} isShort />
        </May>
      </td>
    </tr>
  );
}
