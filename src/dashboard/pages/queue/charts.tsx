/** What happened in the last hour, day or 90 days: starts, lateness, ends, run time. A few runs are dots, and no line lies between them. */
import { useCallback, useState } from 'preact/hooks';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { type LiveQueue, useEvery } from '../../live.ts';
import { type Asked, useAsked } from '../../parts/asked.ts';
import { localText } from '../../parts/clock.ts';
import {
  dayTicks,
  durationGrid,
  hourTicks,
  type Layer,
  minuteTicks,
  Plot,
  type PlotOf,
  type Tick,
} from '../../parts/plot.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { mostIn, ratesText } from '../../parts/rates.ts';
import { Table } from '../../parts/table.tsx';
import { durationText, latenessText, numberText } from '../../parts/words.ts';
import { words } from '../../words/words.ts';
import type { Minutes } from './seen.ts';
import { msOf } from './values.ts';

const { charts: said } = words.queue;
const EVERY_MS = 30_000;

/** How far back, and what it is asked by. */
const SPANS = {
  hour: { hours: '1' },
  day: { hours: '24' },
  quarter: { days: 90 },
} as const;
type Span = keyof typeof SPANS;
const spans = Object.keys(SPANS) as readonly Span[];

interface Charted {
  readonly found: LiveQueue;
  /** The page has asked for the last hour already. */
  readonly hour: Asked<Minutes>;
  readonly settings: Schemas['SettingsView'] | undefined;
}

export function Charts({ found, hour, settings }: Charted) {
  const [chosen, setSpan] = useState<Span>();
  const { value, problem } = hour;
  // An hour in which nothing happened says nothing: until somebody chooses, the day is shown then.
  const span = chosen ?? (value !== undefined && isEmpty(value) && value.on ? 'day' : 'hour');
  const scales = scalesOf(found, settings);
  return (
    <section aria-labelledby="charts">
      <header class="sec">
        <h2 id="charts">{said.titles[span]}</h2>
        <p>{said.by[span]}</p>
        <span class="seg">
          {spans.map((one) => (
            <button key={one} type="button" aria-pressed={one === span} onClick={() => setSpan(one)}>
              {said[one]}
            </button>
          ))}
        </span>
      </header>
      {span === 'hour' ? (
        <>
          <ProblemNote problem={problem} />
          {value === undefined ? null : <Drawn minutes={value} span={span} {...scales} />}
        </>
      ) : (
        <Longer key={span} queue={found.queue} span={span} {...scales} />
      )}
    </section>
  );
}

interface Scales {
  /** How many may start in a time, and in words. */
  readonly rate: { readonly mostIn: (ms: number) => number | undefined; readonly text: string };
  /** What was promised of lateness. */
  readonly withinMs: number | undefined;
}

function scalesOf({ limits }: LiveQueue, settings: Charted['settings']): Scales {
  const rate = { mostIn: (ms: number) => mostIn(limits, ms), text: ratesText(limits) };
  const promise = settings?.settings.lateness;
  const within = typeof promise === 'object' ? promise.within : undefined;
  return { rate, withinMs: msOf(within) };
}

interface LongerOf extends Scales {
  readonly queue: string;
  readonly span: Exclude<Span, 'hour'>;
}

function Longer({ queue, span, ...scales }: LongerOf) {
  const { value, problem, reload } = useAsked(calls.queuesMinutes, { queue, ...SPANS[span] });
  useEvery(EVERY_MS, useCallback(reload, [reload]));
  return (
    <>
      <ProblemNote problem={problem} />
      {value === undefined ? (
        <p role="status">{words.queue.looking}</p>
      ) : (
        <Drawn minutes={value} span={span} {...scales} />
      )}
    </>
  );
}

interface DrawnOf extends Scales {
  readonly minutes: Minutes;
  readonly span: Span;
}

const sumOf = (values: readonly number[]): number => values.reduce((sum, one) => sum + one, 0);

const isEmpty = ({ counts, start }: Minutes): boolean =>
  [counts.promoted, counts.done, counts.retried, counts.dead, start.count].every((one) => sumOf(one) === 0);

function Drawn({ minutes, span, rate, withinMs }: DrawnOf) {
  const { on, known } = minutes;
  if (!on && !known.some((one) => one)) return <p>{said.off}</p>;
  if (isEmpty(minutes)) return <p>{said.nothing}</p>;
  const axis = axisOf(minutes, span);
  return (
    <>
      <div class="plots">
        <Plot {...axis} {...startsPlot(minutes, span, rate)} />
        <Plot {...axis} {...timesPlot(minutes, 'start', withinMs)} />
        <Plot {...axis} {...endsPlot(minutes, span)} />
        <Plot {...axis} {...timesPlot(minutes, 'run', undefined)} />
      </div>
      <Numbers minutes={minutes} />
    </>
  );
}

type Axis = Pick<PlotOf, 'fromMs' | 'toMs' | 'ticks'>;

function axisOf({ startMs, stepMs, known }: Minutes, span: Span): Axis {
  const toMs = startMs + stepMs * known.length;
  const ticks: Readonly<Record<Span, () => readonly Tick[]>> = {
    hour: () => minuteTicks(startMs, toMs, 15),
    day: () => hourTicks(startMs, toMs, 6),
    quarter: () => dayTicks(startMs, toMs, 14),
  };
  return { fromMs: startMs, toMs, ticks: ticks[span]() };
}

type Drawing = Omit<PlotOf, keyof Axis>;

/** In the middle of its step; null where no leader has kept it. */
const pointsOf = ({ startMs, stepMs, known }: Minutes, values: readonly (number | null)[]): Layer['points'] =>
  values.map((value, step) => [startMs + (step + 0.5) * stepMs, known[step] === true ? value : null] as const);

/** Lines at round values, the last above the largest. */
function gridOf(most: number): readonly number[] {
  const rough = Math.max(1, most) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, ([1, 2, 2.5, 5, 10].find((one) => one * power >= rough) ?? 10) * power);
  return Array.from({ length: Math.max(1, Math.ceil(most / step)) + 1 }, (_, nth) => nth * step);
}

function startsPlot(minutes: Minutes, span: Span, rate: Scales['rate']): Drawing {
  const { counts, start, stepMs } = minutes;
  const most = Math.max(...counts.promoted, ...start.count);
  const allowed = rate.mostIn(stepMs);
  // A limit far above what happens would press it to the ground.
  const limit = allowed !== undefined && allowed <= 4 * most ? allowed : undefined;
  const all = sumOf(start.count);
  const isFew = all <= FEW;
  const say = said.sayStarts(numberText(all));
  return {
    title: said.starts[span],
    say,
    label: `${said.starts[span]}: ${say}`,
    grid: gridOf(Math.max(most, limit ?? 0)),
    text: numberText,
    layers: isFew
      ? [{ kind: 'dots', points: dotsOf(minutes, start.count), colour: 'now' }]
      : [
          { kind: 'area', points: pointsOf(minutes, counts.promoted), colour: 'was' },
          { kind: 'line', points: pointsOf(minutes, start.count), colour: 'now' },
        ],
    ...(limit !== undefined && { limit: { value: limit, text: said.limit(rate.text) } }),
    aside: keyOf([...(isFew ? [] : [['was', said.cameDue] as const]), ['now', said.started]]),
  };
}

/** A step in which nothing happened has no dot. */
const dotsOf = (minutes: Minutes, values: readonly number[]): Layer['points'] =>
  pointsOf(
    minutes,
    values.map((value) => (value === 0 ? null : value)),
  );

const keyOf = (names: readonly (readonly [colour: string, name: string])[]) =>
  names.map(([colour, name]) => [<i key={colour} class={`k ${colour}`} />, name]);

/** So few runs have no percentiles. */
const FEW = 60;

function timesPlot(minutes: Minutes, name: 'start' | 'run', withinMs: number | undefined): Drawing {
  const { p50Ms, p99Ms, maxMs, count } = minutes[name];
  const total = minutes.total[name];
  const longest = maxMs.map((max, step) => max ?? p99Ms[step] ?? null);
  const isFew = sumOf(count) <= FEW;
  const title = name === 'start' ? said.late : said.run;
  const say =
    total.count === 0
      ? said.none
      : isFew
        ? said.few(numberText(total.count))
        : `${said.sayTimes(latenessText(total.p99Ms))}${total.maxMs === null ? '' : said.sayLongest(latenessText(total.maxMs))}`;
  const all = [...p50Ms, ...longest, withinMs ?? null].flatMap((one) => one ?? []);
  const [least, most] = [Math.max(1, Math.min(...all)), Math.max(1, ...all)];
  const isLog = most / least > 30;
  return {
    title,
    say,
    label: `${title}: ${say}`,
    isLog,
    grid: isLog ? powersOf(least, most) : durationGrid(most),
    text: (ms) => (ms === 0 ? '0' : latenessText(ms)),
    layers: isFew
      ? [{ kind: 'dots', points: pointsOf(minutes, longest), colour: 'now' }]
      : [
          { kind: 'line', points: pointsOf(minutes, p50Ms), colour: 'now' },
          { kind: 'line', points: pointsOf(minutes, p99Ms), colour: 'p99' },
          ...(withinMs === undefined ? [] : [lateLine(minutes, p99Ms, withinMs)]),
        ],
    ...(withinMs !== undefined && { limit: { value: withinMs, text: said.promise(durationText(withinMs)) } }),
    aside: keyOf(
      isFew
        ? [['now', said.longest]]
        : [
            ['now', said.p50],
            ['p99', said.p99],
          ],
    ),
  };
}

/** What was later than promised is red. */
const lateLine = (minutes: Minutes, p99Ms: readonly (number | null)[], withinMs: number): Layer => ({
  kind: 'line',
  points: pointsOf(
    minutes,
    p99Ms.map((ms) => (ms !== null && ms > withinMs ? ms : null)),
  ),
  colour: 'bad',
});

/** Each step up is about ten times as much, in times that have a name. */
const LADDER_MS = [1, 10, 100, 1000, 10_000, 60_000, 600_000, 3_600_000, 36_000_000, 259_200_000, 2_592_000_000];

function powersOf(least: number, most: number): readonly number[] {
  const first = LADDER_MS.findLastIndex((ms) => ms <= least);
  const last = LADDER_MS.findIndex((ms) => ms >= most);
  return LADDER_MS.slice(Math.max(0, first), last < 0 ? undefined : last + 1);
}

function endsPlot(minutes: Minutes, span: Span): Drawing {
  const { done, retried, dead } = minutes.counts;
  const sums = [sumOf(done), sumOf(retried), sumOf(dead)] as const;
  const isFew = sums[0] + sums[1] + sums[2] <= FEW;
  const [doneText, retriedText, deadText] = sums.map(numberText) as [string, string, string];
  const say = said.sayEnds(doneText, retriedText, deadText);
  const layer = (values: readonly number[], colour: string): Layer =>
    isFew
      ? { kind: 'dots', points: dotsOf(minutes, values), colour }
      : { kind: 'line', points: pointsOf(minutes, values), colour };
  return {
    title: said.ends[span],
    say,
    label: `${said.ends[span]}: ${say}`,
    grid: gridOf(Math.max(...done, ...retried, ...dead)),
    text: numberText,
    layers: [
      layer(done, 'now'),
      ...(sums[1] === 0 ? [] : [layer(retried, 'was')]),
      ...(sums[2] === 0 ? [] : [layer(dead, 'bad')]),
    ],
    aside: keyOf([
      ['now', said.done],
      ['was', said.retried],
      ['bad', said.died],
    ]),
  };
}

/** A table of more rows is nobody's help. */
const ROWS_MAX = 200;

/** The same numbers for whoever cannot see them drawn or wants to copy them. */
function Numbers({ minutes }: { readonly minutes: Minutes }) {
  const [isOpen, setOpen] = useState(false);
  const { startMs, stepMs, known, counts, promotion, start, run } = minutes;
  const heads = [
    said.cameDue,
    `${said.promoted} ${said.p99}`,
    said.started,
    `${said.late} ${said.p50}`,
    `${said.late} ${said.p99}`,
    said.done,
    said.retried,
    said.died,
    `${said.run} ${said.p50}`,
    `${said.run} ${said.p99}`,
  ];
  const rows = known.map((_, step) => step).slice(-ROWS_MAX);
  const counted = (values: readonly number[], step: number) =>
    known[step] === true ? numberText(values[step] ?? 0) : '–';
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{said.table}</summary>
      {isOpen ? (
        <Table of={said.tableOf} look="list" columns={[said.from, ...heads.map((number) => ({ number }))]}>
          {rows.map((step) => (
            <tr key={step}>
              <th scope="row">{localText(startMs + step * stepMs)}</th>
              <td class="n">{counted(counts.promoted, step)}</td>
              <td class="n">{latenessText(promotion.p99Ms[step])}</td>
              <td class="n">{counted(start.count, step)}</td>
              <td class="n">{latenessText(start.p50Ms[step])}</td>
              <td class="n">{latenessText(start.p99Ms[step])}</td>
              <td class="n">{counted(counts.done, step)}</td>
              <td class="n">{counted(counts.retried, step)}</td>
              <td class="n">{counted(counts.dead, step)}</td>
              <td class="n">{latenessText(run.p50Ms[step])}</td>
              <td class="n">{latenessText(run.p99Ms[step])}</td>
            </tr>
          ))}
        </Table>
      ) : null}
    </details>
  );
}
