/** All schedules, and the calendar of what they make in the next days. */

import { useEffect, useState } from 'preact/hooks';
import { ask } from '../../api.ts';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { useAsked } from '../../parts/asked.ts';
import { ProblemNote } from '../../parts/problem.tsx';
import { Instant, Table } from '../../parts/table.tsx';
import { numberText } from '../../parts/words.ts';

/** A calendar of more would be no calendar. */
const CALENDAR_SCHEDULES = 25;
const RUNS_EACH = 10;

export function Schedules() {
  const { value, problem, reload } = useAsked(calls.schedulesList, {});
  return (
    <>
      <h1>Schedules</h1>
      <ProblemNote problem={problem} />
      {value === undefined ? null : (
        <>
          <List page={value} />
          <Calendar schedules={value.schedules} />
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

function List({ page: { schedules, more, unreadable } }: { readonly page: Schemas['SchedulesPage'] }) {
  return (
    <section aria-label="All schedules">
      {schedules.length + unreadable.length === 0 ? (
        <p>
          There is no schedule. <code>duestream schedules put nightly --queue emails --cron '30 2 * * *'</code> makes
          one.
        </p>
      ) : null}
      <Table
        of="schedules"
        columns={[
          'Name',
          'Queue',
          'Rule',
          'Next',
          'Last',
          { number: 'Runs' },
          { number: 'Missed or skipped' },
          'State',
        ]}
      >
        {schedules.map((schedule) => (
          <tr key={schedule.name}>
            <th scope="row">
              <a href={`#/schedule/${encodeURIComponent(schedule.name)}`}>{schedule.name}</a>
            </th>
            <td>{schedule.queue}</td>
            <td>
              <code>{ruleOf(schedule)}</code>
            </td>
            <td>
              <Instant atMs={schedule.nextMs} />
            </td>
            <td>
              <Instant atMs={schedule.lastMs} />
            </td>
            <td class="number">{numberText(schedule.runs)}</td>
            <td class="number">{numberText(schedule.skipped)}</td>
            <td class={schedule.unreadable === undefined ? '' : 'bad'}>{stateText(schedule)}</td>
          </tr>
        ))}
      </Table>
      {more > 0 ? <p>{numberText(more)} more are not listed.</p> : null}
      {unreadable.map(({ name, why }) => (
        <p key={name} class="problem">
          {name}: {why}
        </p>
      ))}
    </section>
  );
}

function stateText({ paused, unreadable }: Schedule): string {
  if (unreadable !== undefined) return `does not fire: ${unreadable}`;
  return paused === undefined ? 'fires' : `paused ${paused}`;
}

interface Run extends PreviewRow {
  readonly name: string;
}

function Calendar({ schedules }: { readonly schedules: readonly Schedule[] }) {
  const [runs, setRuns] = useState<readonly Run[]>([]);
  const [problem, setProblem] = useState<unknown>();
  useEffect(() => {
    let isGone = false;
    runsOf(schedules).then(
      (found) => isGone || setRuns(found),
      (error: unknown) => isGone || setProblem(error),
    );
    return () => {
      isGone = true;
    };
  }, [schedules]);
  const days = Map.groupBy(runs, ({ atMs }) => new Date(atMs).toLocaleDateString('en-CA'));
  return (
    <section aria-labelledby="calendar">
      <h2 id="calendar">Next runs</h2>
      <p>The next {RUNS_EACH} of each schedule, in your zone.</p>
      <ProblemNote problem={problem} />
      {[...days].map(([day, ofDay]) => (
        <section key={day} aria-label={day}>
          <h3>{day}</h3>
          <ul class="calendar">
            {ofDay.map((run) => (
              <li key={`${run.name} ${run.atMs} ${run.local}`}>
                <Instant atMs={run.atMs} isLong /> <a href={`#/schedule/${encodeURIComponent(run.name)}`}>{run.name}</a>
                <Decision row={run} />
              </li>
            ))}
          </ul>
        </section>
      ))}
    </section>
  );
}

export function Decision({ row }: { readonly row: PreviewRow }) {
  const text = decisionOf(row);
  return text === '' ? null : <em class="decision"> {text}</em>;
}

async function runsOf(schedules: readonly Schedule[]): Promise<readonly Run[]> {
  const asked = schedules.slice(0, CALENDAR_SCHEDULES).map(async ({ name }) => {
    const { rows } = await ask(calls.schedulesPreview, { name, next: RUNS_EACH });
    return rows.map((row) => ({ ...row, name }));
  });
  return (await Promise.all(asked)).flat().sort((a, b) => a.atMs - b.atMs);
}

// Schedules and their instants in words.

export type Schedule = Schemas['Schedule'];
type PreviewRow = Schemas['PreviewRow'];

/** `30 2 * * * Europe/Berlin`, `every 15m` */
export function ruleOf({ input: { cron, every, zone } }: Schedule): string {
  const rule = cron === undefined ? `every ${String(every ?? '?')}` : String(cron);
  return zone === undefined ? rule : `${rule} ${String(zone)}`;
}

const DST: Readonly<Record<string, string>> = {
  shifted: 'moved: the clock skips the named time',
  first: 'the first of two: the clock goes back',
  second: 'the second of two: the clock goes back',
  gap: 'lost: the clock skips the named time',
};

/** What a clock change did, in words. */
export const whatClocksDid = (dst: string | undefined): string | undefined => (dst === undefined ? dst : DST[dst]);

/** What was decided for an instant, in words; empty: nothing special. */
function decisionOf({ dst, calendar, dropped, named, leftOut }: PreviewRow): string {
  const parts = [
    dst === undefined ? '' : (DST[dst] ?? dst),
    named === undefined ? '' : `named ${named}`,
    calendar === undefined ? '' : `calendar: ${calendar}`,
    dropped === undefined || dropped === dst ? '' : `makes no job: ${dropped}`,
    leftOut === undefined ? '' : `and ${leftOut} more`,
  ];
  return parts.filter((part) => part !== '').join('; ');
}
