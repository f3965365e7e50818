/** Whether queues keep what they promise about lateness in a month of UTC: what was promised, what it may cost, and what it did. */
import { useState } from 'preact/hooks';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { useAsked } from '../../parts/asked.ts';
import { utcDateText, utcMonthText } from '../../parts/clock.ts';
import type { Cell } from '../../parts/csv.ts';
import { Export } from '../../parts/export.tsx';
import { Icon } from '../../parts/icon.tsx';
import { ProblemNote, Unread } from '../../parts/problem.tsx';
import { Table } from '../../parts/table.tsx';
import { durationText, numberText, shareText } from '../../parts/words.ts';
import { words } from '../../words/words.ts';
import { COLOURS } from '../job/life.ts';
import '../../css/slo.css';

const said = words.slo;

type Slo = Schemas['Slo'];

/** `2026-11`, so many months away. @param by 0: of now */
function monthText(by: number): string {
  const now = new Date();
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + by, 1)).toISOString().slice(0, 7);
}

/** As long as days are kept. */
const MONTHS_BACK = 12;
/** More days are not kept. */
const DAYS_MAX = 396;

export function SloReport() {
  const [by, setBy] = useState(0);
  const month = monthText(by);
  const { value, problem, isBusy } = useAsked(calls.slo, { month });
  const name = utcMonthText(Date.parse(`${month}-01T00:00:00Z`));
  return (
    <>
      {value === undefined ? <h1 class="quiet">{said.looking}</h1> : <Sentence queues={value.queues} month={name} />}
      <div class="filter">
        <span class="seg">
          <button type="button" aria-label={said.before} disabled={by <= -MONTHS_BACK} onClick={() => setBy(by - 1)}>
            <span class="flip">
              <Icon name="chevron" />
            </span>
          </button>
          <span aria-live="polite">{name}</span>
          <button type="button" aria-label={said.after} disabled={by >= 0} onClick={() => setBy(by + 1)}>
            <Icon name="chevron" />
          </button>
        </span>
        {value === undefined ? null : <Export name={`slo-${month}`} rows={() => rowsOf(value.queues)} />}
      </div>
      <ProblemNote problem={problem} />
      <Unread unread={value?.unread} />
      <div aria-busy={isBusy}>
        {value === undefined ? null : (
          <>
            <Promises queues={value.queues} month={month} />
            <Worst queues={value.queues} />
          </>
        )}
      </div>
    </>
  );
}

/** Each promise with its numbers: shares as such, lengths of time in ms. */
const rowsOf = (queues: readonly Slo[]): readonly (readonly Cell[])[] => [
  said.csv,
  ...queues.map((one) => [
    ...[one.queue, one.of, one.withinMs, one.jobs, one.share ?? undefined, one.late, one.expired, one.standing],
    ...[one.budget, one.left, String(one.kept)],
  ]),
];

function Sentence({ queues, month }: { readonly queues: readonly Slo[]; readonly month: string }) {
  const broken = queues.filter(({ kept }) => !kept);
  const jobs = sum(queues.map((one) => one.jobs));
  const late = sum(queues.map((one) => one.late + one.expired + one.standing));
  return (
    <section class={broken.length > 0 ? 'say bad' : 'say'}>
      <h1>
        {queues.length === 0 ? said.none(month) : said.kept(queues.length - broken.length, queues.length, month)}
        {broken.length === 0 ? null : (
          <>
            {' '}
            {broken.map(({ queue }, at) => (
              <span key={queue}>
                {at > 0 ? ', ' : ''}
                <a href={`#/queue/${encodeURIComponent(queue)}`}>{queue}</a>
              </span>
            ))}{' '}
            {said.doNot(broken.length)}
          </>
        )}
      </h1>
      <p>
        {queues.length === 0 ? (
          <>
            {said.howTo} <code>duestream queues set emails --lateness 1s</code>
          </>
        ) : null}
        {jobs === 0 ? null : said.inTime(numberText(jobs), shareText((jobs - late) / jobs))}
      </p>
    </section>
  );
}

const sum = (all: readonly number[]): number => all.reduce((total, one) => total + one, 0);
const leftOf = ({ left, budget }: Slo): number => (budget === 0 ? 0 : left / budget);

function Promises({ queues, month }: { readonly queues: readonly Slo[]; readonly month: string }) {
  if (queues.length === 0) return null;
  const { queue, promise, kept, late, expired, standing, left, burn } = said.columns;
  return (
    <section aria-label={said.promises}>
      <table class="list slo">
        <thead>
          <tr>
            <th scope="col">{queue}</th>
            <th scope="col">{promise}</th>
            {[kept, late, expired, standing, burn].map((name) => (
              <th key={name} scope="col" class="n">
                {name}
              </th>
            ))}
            <th scope="col" class="days">
              <span class="away">{said.columns.days}</span>
              <DayNames month={month} />
            </th>
            <th scope="col" colSpan={2}>
              {left}
            </th>
          </tr>
        </thead>
        <tbody>
          {queues
            .toSorted((a, b) => leftOf(a) - leftOf(b))
            .map((one, nth) => (
              <Row key={one.queue} slo={one} month={nth < DAYS_OF_MAX ? month : undefined} />
            ))}
        </tbody>
      </table>
      <p class="legend">
        {LEVELS.map((level, at) => (
          <span key={level}>
            <i class={`d ${level}`} />
            {said.legend[at]}
          </span>
        ))}
      </p>
    </section>
  );
}

const LOW = 0.15;
/** The days of each are a call of their own. */
const DAYS_OF_MAX = 20;
const DAY_MS = 86_400_000;
/** From in time to far from it. */
const LEVELS = ['b0', 'b3', 'b5', 'none'];
const FAR = 10;

/** The numbers of the days that people look for, above their squares. */
function DayNames({ month }: { readonly month: string }) {
  const days = daysIn(Date.parse(`${month}-01T00:00:00Z`));
  return (
    <span class="names" aria-hidden="true">
      {Array.from({ length: days }, (_, nth) => (
        <i key={nth}>{nth === 0 || (nth + 1) % 5 === 0 ? nth + 1 : ''}</i>
      ))}
    </span>
  );
}

/** A square for each day of UTC: how late 99 % of its starts were at most, beside what is promised. */
function Days({ slo: { queue, withinMs }, month }: { readonly slo: Slo; readonly month: string }) {
  const fromMs = Date.parse(`${month}-01T00:00:00Z`);
  const count = Math.ceil((Date.now() - fromMs) / DAY_MS);
  const { value } = useAsked(calls.queuesMinutes, { queue, days: Math.min(DAYS_MAX, Math.max(1, count)), by: 'day' });
  const first = value === undefined ? 0 : Math.round((fromMs - value.startMs) / DAY_MS);
  const days = Array.from({ length: daysIn(fromMs) }, (_, nth) => value?.start.p99Ms[first + nth] ?? undefined);
  const late = days.filter((p99Ms) => p99Ms !== undefined && p99Ms > withinMs).length;
  return (
    <span role="img" aria-label={said.lateDays(queue, late)}>
      {days.map((p99Ms, nth) => (
        <i key={nth} class={`d ${nth >= count ? 'coming' : levelOf(p99Ms, withinMs)}`} />
      ))}
    </span>
  );
}

function daysIn(fromMs: number): number {
  const month = new Date(fromMs);
  return (Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1, 1) - fromMs) / DAY_MS;
}

/** Of a day without a start nothing is told. */
function levelOf(p99Ms: number | undefined, withinMs: number): string {
  if (p99Ms === undefined) return 'none';
  if (p99Ms <= withinMs) return 'b0';
  return p99Ms <= FAR * withinMs ? 'b3' : 'b5';
}

function Row({ slo, month }: { readonly slo: Slo; readonly month: string | undefined }) {
  const { queue, withinMs, of, share, late, expired, standing, burn, kept } = slo;
  const left = leftOf(slo);
  const level = kept ? (left < LOW ? 'warn-text' : '') : 'bad';
  return (
    <tr>
      <th scope="row">
        <a href={`#/queue/${encodeURIComponent(queue)}`}>{queue}</a>
      </th>
      <td class="quiet promise">{said.promised(shareText(of), durationText(withinMs))}</td>
      <td class={`n ${level}`}>{share === null ? '–' : shareText(share)}</td>
      <Count of={said.columns.late} count={late} />
      <Count of={said.columns.expired} count={expired} />
      <Count of={said.columns.standing} count={standing} />
      <td class="n" data-k={said.columns.burn}>
        {burn === null ? '–' : said.times(numberText(burn))}
      </td>
      <td class="days">{month === undefined ? null : <Days slo={slo} month={month} />}</td>
      <td class="budget">
        <meter
          class={kept ? undefined : 'full'}
          min={0}
          max={1}
          value={Math.max(0, left)}
          aria-label={said.leftOf(queue, shareText(Math.max(0, left)))}
        />
      </td>
      <td class={`n ${level}`}>{kept ? shareText(left) : said.overspent}</td>
    </tr>
  );
}

/** So many days of all queues. */
const WORST_MAX = 10;

/** What spent the budgets: the worst days, and what held the jobs that were late. */
function Worst({ queues }: { readonly queues: readonly Slo[] }) {
  const days = queues
    .flatMap(({ queue, worst }) => worst.map((day) => ({ queue, ...day })))
    .toSorted((one, other) => other.share - one.share)
    .slice(0, WORST_MAX);
  if (days.length === 0) return null;
  const { day, queue, late, share, causes } = said.worst.columns;
  return (
    <section aria-labelledby="worst">
      <header class="sec">
        <h2 id="worst">{said.worst.title}</h2>
        <p>{said.worst.text}</p>
      </header>
      <Table
        of={said.worst.title}
        look="list texts slo-worst"
        columns={[day, queue, { number: late }, { number: share }, causes]}
      >
        {days.map((one) => (
          <tr key={`${one.queue} ${one.atMs}`}>
            <th scope="row">{utcDateText(one.atMs)}</th>
            <td>
              <a href={`#/queue/${encodeURIComponent(one.queue)}`}>{one.queue}</a>
            </td>
            <td class="n">{numberText(one.jobs)}</td>
            <td class="n">{`${numberText(Math.round(one.share * 100))} %`}</td>
            <td>
              {one.causes.slice(0, 1).map(({ cause }) => (
                <i key={cause} class={`sw c-${COLOURS[cause]}`} aria-hidden="true" />
              ))}
              {heldText(one)}
            </td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

/** @example heldText(day) // 2,130 until a worker took it, 12 in line: rate; no worker for 2 h */
function heldText({ causes, held }: Slo['worst'][number]): string {
  const told = causes.map(({ cause, jobs }) => `${numberText(jobs)} ${words.job.causes[cause]}`).join(', ');
  const also = held === null ? '' : `; ${said.worst.held(said.worst.what[held.what], durationText(held.ms))}`;
  return `${told === '' ? said.worst.untold : told}${also}`;
}

function Count({ of, count }: { readonly of: string; readonly count: number }) {
  return (
    <td class="n" data-k={of}>
      {count === 0 ? <span class="none">–</span> : numberText(count)}
    </td>
  );
}
