/**
 * Small charts without a library: paths that stretch, and words beside them that do not. Lines and bars of a row, a row of a
 * heat map, and a plot over time with its axis. Who cannot see a chart is told its `label`.
 */
import type { ComponentChildren } from 'preact';
import { dayMonthText, timeText } from './clock.ts';

const HOUR_MS = 3_600_000;
const WIDTH = 96;
const HEIGHT = 22;
const tenth = (value: number): number => Math.round(value * 10) / 10;

interface Small {
  /** In the order of time, one for each step. Null where nothing is known: the line has a gap. */
  readonly values: readonly (number | null)[];
  /** The largest value if that is left out. */
  readonly max?: number;
  readonly label: string;
}

/** A line without axes: the shape of a day. Above `bad` it is red. A value between two that are not known is a dot. */
export function Spark({ values, max, bad, label }: Small & { readonly bad?: number }) {
  const top = max ?? Math.max(1, ...values.map((value) => value ?? 0));
  const points = values.map((value, at): Point | undefined =>
    value === null
      ? undefined
      : {
          x: tenth((at / Math.max(1, values.length - 1)) * WIDTH),
          y: yOf(value, top),
          isBad: value > (bad ?? top + 1),
        },
  );
  const runs = runsOf(points);
  const lines = (some: readonly (readonly Point[])[]) => some.map((run) => lineOf(run, LONE)).join('');
  return (
    <svg class="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <path class="area" d={runs.map((run) => areaOf(run, HEIGHT)).join('')} />
      <path d={lines(runs)} />
      <path class="bad" d={lines(runsOf(points.map(isNearBad)))} />
    </svg>
  );
}

interface Point {
  readonly x: number;
  readonly y: number;
  readonly isBad?: boolean;
}

/** A red line begins at the point before, and ends at the point behind it. */
const isNearBad = (point: Point | undefined, at: number, all: readonly (Point | undefined)[]): Point | undefined =>
  [all[at - 1], point, all[at + 1]].some((one) => one?.isBad) ? point : undefined;

const yOf = (value: number, top: number): number => tenth(HEIGHT - 1 - (Math.min(value, top) / top) * (HEIGHT - 3));

function runsOf(points: readonly (Point | undefined)[]): readonly (readonly Point[])[] {
  const runs: Point[][] = [[]];
  for (const point of points) {
    if (point) runs.at(-1)?.push(point);
    else if (runs.at(-1)?.length !== 0) runs.push([]);
  }
  return runs.filter((run) => run.length > 0);
}

/** In the thin line of a row a dot is not seen: there it has a length. */
const LONE = 3;

/** A lone point is a line of no length: with round ends it is a dot. */
const lineOf = (run: readonly Point[], lone = 0): string =>
  run.length === 1
    ? `M${tenth((run[0]?.x ?? 0) - lone / 2)} ${run[0]?.y}h${lone}`
    : run.map(({ x, y }, at) => `${at === 0 ? 'M' : 'L'}${x} ${y}`).join('');

const areaOf = (run: readonly Point[], bottom: number): string =>
  run.length < 2 ? '' : `${lineOf(run)}L${run.at(-1)?.x} ${bottom}L${run[0]?.x} ${bottom}Z`;

export function Bars({ values, max, label }: Small) {
  const top = max ?? Math.max(1, ...values.map((value) => value ?? 0));
  const step = WIDTH / Math.max(1, values.length);
  const bar = (value: number | null, at: number): string => {
    if (value === null || value <= 0) return '';
    const height = Math.max(1, (Math.min(value, top) / top) * (HEIGHT - 1));
    return `M${tenth(step * (at + 0.1))} ${HEIGHT}v${-tenth(height)}h${tenth(step * 0.8)}V${HEIGHT}z`;
  };
  return (
    <svg class="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <path class="bars" d={values.map(bar).join('')} />
    </svg>
  );
}

const LEVELS = [0, 1, 2, 3, 4, 5] as const;

/** A row of a heat map. @param levels 0 to 5 for each step */
export function Cells({ levels, label }: { readonly levels: readonly number[]; readonly label: string }) {
  return (
    <svg class="cells" viewBox={`0 0 ${levels.length} 1`} preserveAspectRatio="none" role="img" aria-label={label}>
      {LEVELS.map((level) => (
        <path
          key={level}
          class={`l${level}`}
          d={levels.map((one, at) => (one === level ? `M${at + 0.06} 0h.88v1h-.88z` : '')).join('')}
        />
      ))}
    </svg>
  );
}

export interface Tick {
  /** In per cent from the left. */
  readonly left: number;
  readonly text: string;
  readonly isDay?: boolean;
}

/** Marks at each `every`th hour of the clock of whoever looks; midnights carry the day. */
export function hourTicks(fromMs: number, toMs: number, every: number): readonly Tick[] {
  const ticks: Tick[] = [];
  for (let ms = Math.ceil(fromMs / HOUR_MS) * HOUR_MS; ms <= toMs; ms += HOUR_MS) {
    const hour = new Date(ms).getHours();
    if (hour % every !== 0) continue;
    const left = tenth(((ms - fromMs) / (toMs - fromMs)) * 100);
    ticks.push(hour === 0 ? { left, text: dayMonthText(ms), isDay: true } : { left, text: timeText(ms) });
  }
  return ticks;
}

const MINUTE_MS = 60_000;

/** Marks at each `every`th minute of an hour. */
export function minuteTicks(fromMs: number, toMs: number, every: number): readonly Tick[] {
  const stepMs = every * MINUTE_MS;
  const first = Math.ceil(fromMs / stepMs) * stepMs;
  return Array.from({ length: Math.max(0, Math.floor((toMs - first) / stepMs) + 1) }, (_, nth) => {
    const ms = first + nth * stepMs;
    return { left: tenth(((ms - fromMs) / (toMs - fromMs)) * 100), text: timeText(ms) };
  });
}

/** Marks of days at their midnights, each `every`th. */
export function dayTicks(fromMs: number, toMs: number, every: number): readonly Tick[] {
  const ticks: Tick[] = [];
  const day = new Date(fromMs);
  day.setHours(0, 0, 0, 0);
  for (let nth = 0; day.getTime() <= toMs; nth += 1, day.setDate(day.getDate() + 1)) {
    const ms = day.getTime();
    if (ms < fromMs || nth % every !== 0) continue;
    ticks.push({ left: tenth(((ms - fromMs) / (toMs - fromMs)) * 100), text: dayMonthText(ms) });
  }
  return ticks;
}

/** Where the text of a mark would leave the axis, the mark stands alone: the style sheet knows how wide it is. */
export function Axis({ ticks }: { readonly ticks: readonly Tick[] }) {
  return (
    <div class="axis" aria-hidden="true">
      {ticks.map(({ left, text, isDay }) => (
        <span key={left} class={isDay ? 'day' : undefined} style={{ '--at': `${left}%` }}>
          {text}
        </span>
      ))}
    </div>
  );
}

/** Times that have a name, at which there are lines across. */
const GRID_MS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * 1000),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE_MS),
  ...[1, 2, 3, 6, 12, 24].map((hours) => hours * HOUR_MS),
];
const LINES_MAX = 4;

/** Lines at round durations, the last above the longest. */
export function durationGrid(mostMs: number): readonly number[] {
  const dayMs = 24 * HOUR_MS;
  const stepMs = GRID_MS.find((ms) => mostMs / ms <= LINES_MAX) ?? Math.ceil(mostMs / LINES_MAX / dayMs) * dayMs;
  return Array.from({ length: Math.max(1, Math.ceil(mostMs / stepMs)) + 1 }, (_, nth) => nth * stepMs);
}

export interface Layer {
  readonly kind: 'line' | 'area' | 'bars' | 'dots';
  /** `[ms, value]` in the order of time; null makes a gap. */
  readonly points: readonly (readonly [number, number | null])[];
  /** A colour of css/parts.css: `now`, `was`, `p99`, `bad`, `gate`. */
  readonly colour?: string;
  /** Of bars: how long a step is. */
  readonly stepMs?: number;
}

export interface PlotMark {
  readonly atMs: number;
  readonly text: string;
  readonly side?: 'low' | 'left';
}

export interface PlotOf {
  readonly title: string;
  /** What it says, in words beside the title. */
  readonly say?: ComponentChildren;
  /** What a screen reader hears in place of the drawing. */
  readonly label: string;
  readonly fromMs: number;
  readonly toMs: number;
  /** The values at which there are lines across; the last one is the top. */
  readonly grid: readonly number[];
  readonly text: (value: number) => string;
  readonly layers: readonly Layer[];
  readonly ticks: readonly Tick[];
  readonly marks?: readonly PlotMark[];
  readonly limit?: { readonly value: number; readonly text: string };
  /** Each step up is a multiple: for lateness of ms and of minutes. `grid` begins with its smallest value then. */
  readonly isLog?: boolean;
  readonly heightPx?: number;
  /** What stands at the right of the title, such as the names of the lines. */
  readonly aside?: ComponentChildren;
}

const WIDE = 1000;
/** Above a line that is higher stand the names of the lines. */
const TOP_PERCENT = 15;

export function Plot(plot: PlotOf) {
  const { title, say, label, fromMs, toMs, grid, text, layers, ticks, marks = [], limit, heightPx = 120, aside } = plot;
  const x = (ms: number) => tenth(((ms - fromMs) / (toMs - fromMs)) * WIDE);
  const y = heightOf(plot);
  return (
    <figure class="plot">
      <figcaption>
        <b>{title}</b>
        {say === undefined ? null : <span>{say}</span>}
        {aside === undefined ? null : <span class="key">{aside}</span>}
      </figcaption>
      <div class="area" style={{ height: `${heightPx}px` }} role="img" aria-label={label}>
        {grid.map((value) => (
          <i key={value} class="grid" style={{ top: `${y(value)}%` }}>
            <span>{text(value)}</span>
          </i>
        ))}
        <svg viewBox={`0 0 ${WIDE} 100`} preserveAspectRatio="none" aria-hidden="true">
          {layers.map((layer, at) => (
            <path key={at} {...pathOf(layer, { x, y })} />
          ))}
          {limit === undefined ? null : <path class="limit" d={`M0 ${y(limit.value)}H${WIDE}`} />}
        </svg>
        {limit === undefined ? null : (
          <i
            class={y(limit.value) < TOP_PERCENT ? 'limit-name below' : 'limit-name'}
            style={{ top: `${y(limit.value)}%` }}
          >
            {limit.text}
          </i>
        )}
        {marks.map(({ atMs, text: name, side }) => (
          <i key={atMs} class="mark" style={{ left: `${tenth(x(atMs) / 10)}%` }}>
            <span class={side}>{name}</span>
          </i>
        ))}
      </div>
      <Axis ticks={ticks} />
    </figure>
  );
}

/** A value → how far from the top, in per cent. */
function heightOf({ grid, isLog }: PlotOf): (value: number) => number {
  const [min = 1, max = 1] = [grid[0], grid.at(-1)];
  if (isLog !== true) return (value) => tenth(100 - (Math.min(value, max) / Math.max(max, Number.MIN_VALUE)) * 100);
  return (value) => tenth(100 - (Math.log(Math.min(Math.max(value, min), max) / min) / Math.log(max / min)) * 100);
}

interface Scales {
  readonly x: (ms: number) => number;
  readonly y: (value: number) => number;
}

function pathOf({ kind, points, colour = 'now', stepMs = 0 }: Layer, { x, y }: Scales): { class: string; d: string } {
  if (kind === 'bars') {
    const width = Math.max(1, tenth((x(stepMs) - x(0)) * 0.8));
    const bars = points.map(([ms, value]) =>
      value === null || value <= 0 ? '' : `M${x(ms)} 100V${y(value)}h${width}V100z`,
    );
    return { class: `solid ${colour}`, d: bars.join('') };
  }
  const runs = runsOf(points.map(([ms, value]) => (value === null ? undefined : { x: x(ms), y: y(value) })));
  if (kind === 'area') return { class: `fill ${colour}`, d: runs.map((run) => areaOf(run, 100)).join('') };
  if (kind === 'line') return { class: colour, d: runs.map((run) => lineOf(run)).join('') };
  return {
    class: `dots ${colour}`,
    d: runs
      .flat()
      .map(({ x: left, y: top }) => `M${left} ${top}h0`)
      .join(''),
  };
}
