/** A week of all schedules, to scale: what runs when for whoever looks, what was, and what a clock change moves. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import { ask } from '../../api.ts';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { longDateText, ownZone, timeText, weekdayText } from '../../parts/clock.ts';
import { Icon } from '../../parts/icon.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { longDayText, midnightMs } from '../../parts/when.ts';
import { numberText } from '../../parts/words.ts';
import { words } from '../../words/words.ts';
import { ruleText } from './rule.ts';
import { ruleOf, type Schedule, whatClocksDid } from './schedule-words.ts';
import { type ClockChange, nextClockChange } from './zones.ts';

const say = words.schedules;

type PreviewRow = Schemas['PreviewRow'];

/** A calendar of more would be no calendar. */
const SCHEDULES_MAX = 25;
/** Of a week: what runs more often is a line above it. */
const RUNS_MAX = 200;
const DAYS = 7;
const MINUTES = 1440;
const MINUTE_MS = 60_000;
/** So many on a day are a band. */
const BAND_MIN = 4;

interface Run extends PreviewRow {
  readonly name: string;
}

interface Planned {
  readonly schedule: Schedule;
  readonly rows: readonly PreviewRow[];
  /** More than there are rows of. */
  readonly later: number;
}

export function Calendar({ schedules }: { readonly schedules: readonly Schedule[] }) {
  const nowMs = Date.now();
  const change = useMemo(() => nextClockChange(zonesOf(schedules), nowMs), [schedules]);
  const [week, setWeek] = useState<'this' | 'next' | 'change'>('this');
  const startMs = startOf(week, change, nowMs);
  const { planned, problem, isBusy } = usePlanned(schedules, startMs);
  const [often, seldom] = partOf(planned);
  const days = daysFrom(startMs);
  return (
    <section class="weeks" aria-labelledby="calendar" aria-busy={isBusy}>
      <header class="sec">
        <h2 id="calendar">{say.week}</h2>
        <p>{say.inYourZone(ownZone())}</p>
        <fieldset class="seg">
          <legend class="away">{say.whichWeek}</legend>
          {(['this', 'next', 'change'] as const).map((one) =>
            one === 'change' && change === undefined ? null : (
              <button key={one} type="button" aria-pressed={week === one} onClick={() => setWeek(one)}>
                {one === 'change' ? say.nextChange(longDateText(change?.atMs ?? nowMs)) : say.weeks[one]}
              </button>
            ),
          )}
        </fieldset>
      </header>
      <ProblemNote problem={problem} />
      <div class="cal">
        <div class="cal-head" aria-hidden="true">
          <span />
          {days.map((day) => (
            <b key={day} class={midnightMs(nowMs) === day ? 'today' : undefined}>
              {weekdayText(day)} {new Date(day).getDate()}
            </b>
          ))}
        </div>
        <Often often={often} />
        <div class="cal-body">
          <div class="cal-hours" aria-hidden="true">
            {[0, 3, 6, 9, 12, 15, 18, 21].map((hour) => (
              <span key={hour} style={{ top: `${(hour / 24) * 100}%` }}>{`${String(hour).padStart(2, '0')}:00`}</span>
            ))}
          </div>
          {days.map((day) => (
            <Day key={day} dayMs={day} nowMs={nowMs} planned={seldom} change={change} />
          ))}
        </div>
      </div>
      <Notes planned={planned} />
      {schedules.length > SCHEDULES_MAX ? <p class="quiet">{say.someInCalendar(SCHEDULES_MAX)}</p> : null}
    </section>
  );
}

const zonesOf = (schedules: readonly Schedule[]): readonly string[] => [
  ...new Set(schedules.flatMap(({ input: { zone } }) => (zone === undefined ? [] : [String(zone)]))),
];

/** The Monday of the week, at midnight of whoever looks. */
function startOf(week: 'this' | 'next' | 'change', change: ClockChange | undefined, nowMs: number): number {
  const monday = new Date(midnightMs(week === 'change' && change ? change.atMs : nowMs));
  monday.setDate(monday.getDate() - ((monday.getDay() + 6) % 7) + (week === 'next' ? DAYS : 0));
  return monday.getTime();
}

/** Midnights; a day may have 23 or 25 hours. */
function daysFrom(startMs: number): readonly number[] {
  return Array.from({ length: DAYS }, (_, nth) => {
    const day = new Date(startMs);
    day.setDate(day.getDate() + nth);
    return day.getTime();
  });
}

const minuteOf = (ms: number): number => new Date(ms).getHours() * 60 + new Date(ms).getMinutes();
const topOf = (minute: number): string => `${(minute / MINUTES) * 100}%`;

/** What schedules do in a week: asked once for a week, since a rule changes seldom. */
function usePlanned(schedules: readonly Schedule[], startMs: number) {
  const [planned, setPlanned] = useState<readonly Planned[]>([]);
  const [problem, setProblem] = useState<unknown>();
  const [isBusy, setBusy] = useState(true);
  useEffect(() => {
    let isGone = false;
    setBusy(true);
    setProblem(undefined);
    weekOf(schedules.slice(0, SCHEDULES_MAX), startMs)
      .then(
        (found) => isGone || setPlanned(found),
        (error: unknown) => isGone || setProblem(error),
      )
      .finally(() => isGone || setBusy(false));
    return () => {
      isGone = true;
    };
  }, [schedules, startMs]);
  return { planned, problem, isBusy };
}

function weekOf(schedules: readonly Schedule[], startMs: number): Promise<readonly Planned[]> {
  const end = new Date(startMs);
  end.setDate(end.getDate() + DAYS);
  const range = { from: new Date(startMs - 1).toISOString(), until: new Date(end.getTime() - 1).toISOString() };
  const asked = schedules.map(async (schedule) => {
    const { rows, leftOut } = await ask(calls.schedulesPreview, { name: schedule.name, next: RUNS_MAX, ...range });
    const fires = rows.filter(({ dropped }) => dropped === undefined).length;
    return { schedule, rows, later: leftOut?.later ?? (fires >= RUNS_MAX ? 1 : 0) };
  });
  return Promise.all(asked);
}

/** Those that run all day long are lines, all others stand at their time. */
function partOf(planned: readonly Planned[]): readonly [often: readonly Planned[], seldom: readonly Planned[]] {
  const isOften = ({ rows, later }: Planned) =>
    later > 0 ||
    (rows.length >= DAYS * BAND_MIN && new Set(rows.map(({ atMs }) => new Date(atMs).getHours())).size >= 20);
  return [planned.filter(isOften), planned.filter((one) => !isOften(one))];
}

function Often({ often }: { readonly often: readonly Planned[] }) {
  if (often.length === 0) return null;
  return (
    <div class="cal-often">
      <span>{say.often}</span>
      <div>
        {often.map(({ schedule, rows, later }) => (
          <a key={schedule.name} href={addressOf(schedule.name)}>
            {schedule.name}, {ruleText(schedule.input) ?? ruleOf(schedule)}
            {later > 0 ? '' : ` · ${say.runs(rows.length)}`}
          </a>
        ))}
      </div>
    </div>
  );
}

export const addressOf = (name: string): string => `#/schedule/${encodeURIComponent(name)}`;

interface DayOf {
  readonly dayMs: number;
  readonly nowMs: number;
  readonly planned: readonly Planned[];
  readonly change: ClockChange | undefined;
}

function Day({ dayMs, nowMs, planned, change }: DayOf) {
  const today = midnightMs(nowMs);
  const { bands, blocks } = marksOf(planned, dayMs);
  const when = dayMs === today ? 'today' : dayMs < today ? 'gone' : '';
  const hasGap = change?.zone === undefined && change !== undefined && midnightMs(change.atMs) === dayMs;
  return (
    <div class={`cal-day ${when}`} data-day={longDayText(dayMs, nowMs)}>
      {hasGap && change.byMs > 0 ? <Gap change={change} /> : null}
      {bands.map((band) => (
        <Band key={band.name} {...band} nowMs={nowMs} />
      ))}
      {blocks.map((runs) => (
        <Block key={runs[0]?.atMs} runs={runs} nowMs={nowMs} />
      ))}
      {dayMs === today ? <i class="nowline" style={{ top: topOf(minuteOf(nowMs)) }} /> : null}
    </div>
  );
}

function Gap({ change: { atMs, byMs } }: { readonly change: ClockChange }) {
  const from = minuteOf(atMs - MINUTE_MS) + 1;
  const minutes = byMs / MINUTE_MS;
  const text = (minute: number) =>
    `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`;
  return (
    <div class="gap" style={{ top: topOf(from), '--length': topOf(minutes) }}>
      <span>{say.notThere(text(from), text(from + minutes))}</span>
    </div>
  );
}

interface BandOf {
  readonly name: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly many: number;
}

/** Of one day: what runs many times in it, and what runs at a time. Runs of the same time are one block. */
function marksOf(planned: readonly Planned[], dayMs: number) {
  const bands: BandOf[] = [];
  const single: Run[] = [];
  for (const { schedule, rows } of planned) {
    const mine = rows.filter(({ atMs, dropped }) => dropped === undefined && midnightMs(atMs) === dayMs);
    const [first, last] = [mine[0], mine.at(-1)];
    if (first && last && mine.length >= BAND_MIN) {
      bands.push({ name: schedule.name, fromMs: first.atMs, toMs: last.atMs, many: mine.length });
    } else single.push(...mine.map((row) => ({ ...row, name: schedule.name })));
  }
  const blocks = [...Map.groupBy(single, ({ atMs }) => Math.floor(atMs / MINUTE_MS)).values()];
  return { bands, blocks: blocks.sort((one, other) => (one[0]?.atMs ?? 0) - (other[0]?.atMs ?? 0)) };
}

function Band({ name, fromMs, toMs, many, nowMs }: BandOf & Pick<DayOf, 'nowMs'>) {
  const length = Math.max(1, minuteOf(toMs) - minuteOf(fromMs));
  return (
    <a
      class={`blk band ${toMs < nowMs ? 'past' : ''}`}
      href={addressOf(name)}
      style={{ top: topOf(minuteOf(fromMs)), '--length': topOf(length) }}
    >
      <span>{name}</span>
      <small>{`${timeText(fromMs)} – ${timeText(toMs)}, ${say.runs(many)}`}</small>
    </a>
  );
}

function Block({ runs, nowMs }: { readonly runs: readonly Run[] } & Pick<DayOf, 'nowMs'>) {
  const [first, ...others] = runs;
  if (!first) return null;
  const isMoved = runs.some(({ dst, calendar }) => dst !== undefined || calendar === 'moved');
  const moved = runs.find(({ named }) => named !== undefined)?.named;
  return (
    <a
      class={`blk ${first.atMs < nowMs ? 'past' : ''} ${isMoved ? 'moved' : ''}`}
      href={addressOf(first.name)}
      title={runs.map(({ name }) => name).join(', ')}
      style={{ top: topOf(minuteOf(first.atMs)) }}
    >
      <span>
        {timeText(first.atMs)} {first.name}
        {others.length === 0 ? '' : ` + ${numberText(others.length)}`}
      </span>
      {moved === undefined ? null : <small>{say.movedFrom(moved.slice(11, 16))}</small>}
    </a>
  );
}

/** What a clock change does to each schedule in the week that is shown. */
function Notes({ planned }: { readonly planned: readonly Planned[] }) {
  const notes = planned.flatMap(({ schedule, rows }) =>
    rows
      .filter(({ dst }) => dst !== undefined)
      .slice(0, 2)
      .map((row) => ({ name: schedule.name, row })),
  );
  if (notes.length === 0) return null;
  return (
    <ul class="notes cal-notes">
      {notes.map(({ name, row }) => (
        <li key={`${name} ${row.atMs} ${row.local}`}>
          <Icon name="clock" />
          <span>
            <a href={addressOf(name)}>{name}</a> {longDayText(row.atMs, Date.now())}, {row.local.slice(11, 16)}:{' '}
            {whatClocksDid(row.dst)}
          </span>
        </li>
      ))}
    </ul>
  );
}
