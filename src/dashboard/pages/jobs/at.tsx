/** What ran at a moment of the past: how many started around it, queue by queue, and the jobs of its minute, those that went wrong first. */
import { useEffect, useState } from 'preact/hooks';
import { ask } from '../../api.ts';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { useLive } from '../../live.ts';
import { useList } from '../../parts/asked.ts';
import { secondText, timeText } from '../../parts/clock.ts';
import { Icon } from '../../parts/icon.tsx';
import { Axis } from '../../parts/plot.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { State } from '../../parts/state.tsx';
import { Id, JobLink } from '../../parts/table.tsx';
import { durationText, numberText } from '../../parts/words.ts';
import { go, type Route } from '../../router.ts';
import { words } from '../../words/words.ts';
import { instantOf, localOf } from './filters.ts';
import { type Lane, type Lanes as LanesOf, lanesIn, sentenceOf, sum } from './lanes.ts';
import { keyOf, type Row } from './list.tsx';
import { Missed } from './missed.tsx';
import { momentText } from './times.ts';
import '../../css/jobs.css';
import '../../css/at.css';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** What is asked for without a time: not so near that its jobs still run. */
const BACK_MS = 5 * MINUTE_MS;
/** More queues than these are nobody's picture. */
const QUEUES_MAX = 30;
const LIMIT = 50;

/** How the counts are kept: the older, the coarser. */
interface Grain {
  readonly stepMs: number;
  /** Around the moment, before and behind it. */
  readonly aroundMs: number;
  readonly tickMs: number;
  readonly given: { readonly hours?: '1' | '24'; readonly days?: number; readonly by?: 'hour' };
}

function grainOf(ageMs: number): Grain {
  if (ageMs < 50 * MINUTE_MS) {
    return { stepMs: MINUTE_MS, aroundMs: 18 * MINUTE_MS, tickMs: 5 * MINUTE_MS, given: { hours: '1' } };
  }
  if (ageMs < 23 * HOUR_MS) {
    return { stepMs: 10 * MINUTE_MS, aroundMs: 2 * HOUR_MS, tickMs: 30 * MINUTE_MS, given: { hours: '24' } };
  }
  const days = Math.min(90, Math.ceil(ageMs / DAY_MS) + 1);
  return { stepMs: HOUR_MS, aroundMs: 12 * HOUR_MS, tickMs: 3 * HOUR_MS, given: { days, by: 'hour' } };
}

/** Where the moment of an address is, on a whole minute. */
function momentOf(query: URLSearchParams): number {
  const given = Date.parse(query.get('t') ?? '');
  const ms = Number.isNaN(given) ? Date.now() - BACK_MS : given;
  return Math.floor(ms / MINUTE_MS) * MINUTE_MS;
}

export const whereAt = (ms: number): string => `at?t=${new Date(ms).toISOString()}`;

export function At({ query }: Route) {
  // Without a time in the address it stays the one of the first look.
  const [first] = useState(() => momentOf(query));
  const atMs = query.has('t') ? momentOf(query) : first;
  return <Moment key={atMs} atMs={atMs} />;
}

function Moment({ atMs }: { readonly atMs: number }) {
  const [nowMs] = useState(() => Date.now());
  const grain = grainOf(nowMs - atMs);
  const [fromMs, toMs] = [atMs - grain.aroundMs, atMs + grain.aroundMs];
  const { found, problem } = useLanes({ fromMs, toMs, grain });
  const lanes = found?.lanes ?? [];
  return (
    <>
      <Say found={found} atMs={atMs} fromMs={fromMs} toMs={Math.min(toMs, nowMs)} />
      <Times atMs={atMs} byMs={grain.aroundMs} />
      <ProblemNote problem={problem} />
      {lanes.length === 0 ? null : <Lanes {...{ lanes, atMs, fromMs, toMs, grain }} />}
      <Ran atMs={atMs} nowMs={nowMs} />
    </>
  );
}

interface Around {
  readonly fromMs: number;
  readonly toMs: number;
  readonly grain: Grain;
}

/** Undefined: not asked yet. */
function useLanes({ fromMs, toMs, grain }: Around) {
  const { now } = useLive();
  const [found, setFound] = useState<LanesOf>();
  const [problem, setProblem] = useState<unknown>();
  const isKnown = now !== undefined;
  useEffect(() => {
    if (now === undefined) return undefined;
    let isGone = false;
    const queues = now.queues.slice(0, QUEUES_MAX).map(({ queue }) => queue);
    const asked = queues.map((queue) => ask(calls.queuesMinutes, { queue, ...grain.given }));
    void Promise.all(asked).then(
      (answers) => isGone || setFound(lanesIn(answers, { fromMs, toMs }, now.queues.length)),
      (error: unknown) => isGone || setProblem(error),
    );
    return () => {
      isGone = true;
    };
  }, [isKnown]);
  return { found, problem };
}

interface SayOf {
  readonly found: LanesOf | undefined;
  readonly atMs: number;
  readonly fromMs: number;
  readonly toMs: number;
}

function Say({ found, atMs, fromMs, toMs }: SayOf) {
  const time = momentText(atMs, Date.now());
  if (found === undefined)
    return (
      <section class="say">
        <h1>{words.moment.at(time)}</h1>
      </section>
    );
  const { lanes, counted, all } = found;
  const starts = sum(lanes.map((lane) => sum(lane.starts)));
  const span = `${timeText(fromMs)} – ${timeText(toMs)}`;
  return (
    <section class="say">
      <h1>{sentenceOf(found, time)}</h1>
      {counted === 0 ? null : (
        <p>
          {words.moment.started(span, numberText(starts), lanes.length)}
          {counted < all ? ` ${words.moment.uncounted(all - counted)}` : ''}
        </p>
      )}
    </section>
  );
}

function Times({ atMs, byMs }: { readonly atMs: number; readonly byMs: number }) {
  const local = localOf(new Date(atMs).toISOString());
  const [draft, setDraft] = useState(local);
  const length = durationText(byMs);
  return (
    <form
      class="filter"
      aria-label={words.moment.when}
      onSubmit={(event) => {
        event.preventDefault();
        const ms = Date.parse(instantOf(draft));
        if (!Number.isNaN(ms)) go(whereAt(ms));
      }}
    >
      <span class="seg">
        <a href={`#/${whereAt(atMs - byMs)}`} aria-label={words.moment.before(length)} class="flip">
          <Icon name="chevron" />
        </a>
        <a href={`#/${whereAt(atMs)}`} aria-current="true">
          {momentText(atMs, Date.now())}
        </a>
        <a href={`#/${whereAt(atMs + byMs)}`} aria-label={words.moment.behind(length)}>
          <Icon name="chevron" />
        </a>
      </span>
      <label class="time">
        <span class="away">{words.moment.when}</span>
        <input type="datetime-local" value={draft} onInput={({ currentTarget }) => setDraft(currentTarget.value)} />
      </label>
      <button type="submit">{words.jobs.show}</button>
    </form>
  );
}

function Lanes({
  lanes,
  atMs,
  fromMs,
  toMs,
  grain,
}: Around & { readonly lanes: readonly Lane[]; readonly atMs: number }) {
  const leftOf = (ms: number) => ((ms - fromMs) / (toMs - fromMs)) * 100;
  const ticks = Array.from({ length: Math.ceil((toMs - fromMs) / grain.tickMs) }, (_, nth) => {
    const ms = Math.ceil(fromMs / grain.tickMs) * grain.tickMs + nth * grain.tickMs;
    return { left: leftOf(ms), text: timeText(ms) };
  }).filter(({ left }) => left < 100);
  return (
    <section class="lanes" aria-label={words.moment.lanes}>
      <div class="marks">
        <i class="brush" style={{ left: `${leftOf(atMs)}%`, width: `${(MINUTE_MS / (toMs - fromMs)) * 100}%` }} />
      </div>
      {lanes.map((lane) => (
        <div key={lane.queue} class="row">
          <a href={`#/queue/${encodeURIComponent(lane.queue)}`}>{lane.queue}</a>
          <LaneBars lane={lane} steps={Math.round((toMs - fromMs) / grain.stepMs)} />
          <b>
            {numberText(sum(lane.starts))}
            {sum(lane.dead) > 0 ? (
              <span class="bad-text">{words.moment.diedOf(numberText(sum(lane.dead)))}</span>
            ) : null}
          </b>
        </div>
      ))}
      <div class="row axis-row">
        <span />
        <Axis ticks={ticks} />
        <b />
      </div>
    </section>
  );
}

const WIDE = 10;
const HIGH = 30;

function LaneBars({ lane: { queue, starts, dead }, steps }: { readonly lane: Lane; readonly steps: number }) {
  const max = Math.max(1, ...starts, ...dead);
  const bars = (values: readonly number[]) =>
    values
      .map((value, at) => (value > 0 ? `M${at * WIDE + 1} ${HIGH}v${-heightOf(value, max)}h8V${HIGH}z` : ''))
      .join('');
  return (
    <svg
      class="lane"
      viewBox={`0 0 ${steps * WIDE} ${HIGH}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={words.moment.lane(queue, numberText(sum(starts)), numberText(sum(dead)))}
    >
      <path d={bars(starts)} />
      <path class="bad" d={bars(dead)} />
    </svg>
  );
}

const heightOf = (value: number, max: number): string => Math.max(1.5, (value / max) * (HIGH - 1)).toFixed(1);

/** The jobs whose last run touched the minute. */
function Ran({ atMs, nowMs }: { readonly atMs: number; readonly nowMs: number }) {
  const [unread, setUnread] = useState<readonly Schemas['UnreadQueue'][]>([]);
  const [ranFrom, ranTo] = [atMs, atMs + MINUTE_MS].map((ms) => new Date(ms).toISOString());
  const { rows, cursor, problem, isBusy, more } = useList(
    calls.jobsFind,
    { ranFrom, ranTo, limit: LIMIT },
    {
      rowsOf(page) {
        setUnread(page.unread);
        return page.jobs;
      },
      keyOf,
    },
  );
  const [begin, end] = [timeText(atMs), timeText(atMs + MINUTE_MS)];
  return (
    <section aria-label={words.moment.ran(begin, end)} aria-busy={isBusy} class="found">
      <header class="sec">
        <h2>{words.moment.ran(begin, end)}</h2>
        <p role="status">
          {isBusy ? words.jobs.looking : words.jobs.shown(numberText(rows.length), rows.length)}
          {isBusy || cursor === undefined ? '' : words.jobs.andMore}
        </p>
      </header>
      <ProblemNote problem={problem} />
      <RanTable rows={rows.toSorted(wrongFirst)} nowMs={nowMs} />
      <Missed unread={unread} />
      {cursor === undefined ? null : (
        <button type="button" onClick={more} disabled={isBusy}>
          {words.jobs.more}
        </button>
      )}
    </section>
  );
}

const isWrong = ({ state, failures, crashes }: Row): boolean => state === 'dead' || failures + crashes > 0;
const wrongFirst = (one: Row, other: Row): number =>
  Number(isWrong(other)) - Number(isWrong(one)) || (one.startedMs ?? 0) - (other.startedMs ?? 0);

function RanTable({ rows, nowMs }: { readonly rows: readonly Row[]; readonly nowMs: number }) {
  if (rows.length === 0) return null;
  const { startedAt, ended, error, ranOn, took } = words.moment;
  const heads = [startedAt, words.jobs.job, words.jobs.queue, ended, error, ranOn];
  return (
    <table class="list jobs at" aria-label={words.jobs.name}>
      <thead>
        <tr>
          {heads.map((head) => (
            <th key={head} scope="col">
              {head}
            </th>
          ))}
          <th scope="col" class="n">
            {took}
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)} class="job">
            <td class="when">
              <b>
                {row.startedMs === undefined
                  ? '–'
                  : `${secondText(row.startedMs)}.${String(row.startedMs % 1000).padStart(3, '0')}`}
              </b>
            </td>
            <th scope="row">
              <JobLink queue={row.queue} id={row.id} bare={row.bare} />
            </th>
            <td class="in">{row.queue}</td>
            <td class="st">
              <State of={row.state} />
            </td>
            <td class="note">{row.error ?? ''}</td>
            <td class="quiet">{row.owner === undefined ? '' : <Id text={row.owner} />}</td>
            <td class="n tries">{tookText(row, nowMs)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function tookText({ tookMs, startedMs, overMs, state }: Row, nowMs: number): string {
  if (tookMs !== undefined) return durationText(tookMs);
  if (startedMs === undefined) return '';
  if (state === 'running') return words.moment.stillRuns(durationText(Math.max(0, nowMs - startedMs)));
  return overMs === undefined ? '' : durationText(Math.max(0, overMs - startedMs));
}
