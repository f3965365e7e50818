/** A chart over time, and the same numbers as a table for whoever cannot see it or wants to copy them. */
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { onColours } from '../theme.ts';
import { Table } from './table.tsx';
import { localText } from './words.ts';

export interface Line {
  readonly name: string;
  /** Aligned with the times; null where nothing is known. */
  readonly values: readonly (number | null)[];
  /** Of `--line-1` to `--line-4` in the style sheet. */
  readonly colour: 1 | 2 | 3 | 4;
}

interface Chart {
  readonly title: string;
  readonly atMs: readonly number[];
  readonly lines: readonly Line[];
  readonly kind?: 'lines' | 'bars';
  /** A value in words. */
  readonly text: (value: number) => string;
}

const HEIGHT = 180;
/** A table of more rows is nobody's help. */
const ROWS_MAX = 200;

export function TimeChart(chart: Chart) {
  const place = useRef<HTMLDivElement>(null);
  const { title, atMs, lines, text } = chart;
  const [colours, setColours] = useState(0);
  useEffect(() => onColours(() => setColours((count) => count + 1)), []);
  useEffect(() => {
    const { current } = place;
    if (!current) return undefined;
    const plot = new uPlot(optionsOf(chart, current), dataOf(chart), current);
    const observer = new ResizeObserver(() => plot.setSize({ width: current.clientWidth, height: HEIGHT }));
    observer.observe(current);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [chart.title, colours, JSON.stringify([atMs, lines])]);
  const first = Math.max(0, atMs.length - ROWS_MAX);
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <ul class="legend" aria-hidden="true">
        {lines.map(({ name, colour }) => (
          <li key={name} class={`line-${colour}`}>
            {name}
          </li>
        ))}
      </ul>
      <div ref={place} aria-hidden="true" />
      <details>
        <summary>{title} as a table</summary>
        <Table of={title} columns={['From', ...lines.map(({ name }) => ({ number: name }))]}>
          {atMs.slice(first).map((ms, at) => (
            <tr key={ms}>
              <th scope="row">{localText(ms)}</th>
              {lines.map(({ name, values }) => (
                <td key={name} class="number">
                  {cell(values[first + at], text)}
                </td>
              ))}
            </tr>
          ))}
        </Table>
      </details>
    </figure>
  );
}

const cell = (value: number | null | undefined, text: (value: number) => string): string =>
  value === null || value === undefined ? '–' : text(value);

const CLOCK = new Intl.DateTimeFormat('en', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const clockText = (seconds: number): string => CLOCK.format(seconds * 1000);

function dataOf({ atMs, lines, kind }: Chart): uPlot.AlignedData {
  const seconds = atMs.map((ms) => ms / 1000);
  return [kind === 'bars' ? evenly(seconds) : seconds, ...lines.map(({ values }) => [...values])];
}

/** The first step may be shorter. As wide as it, all bars would be hairlines, so it stands where a whole step would. */
function evenly([first = 0, second, third, ...rest]: readonly number[]): number[] {
  if (second === undefined || third === undefined) return second === undefined ? [first] : [first, second];
  return [2 * second - third, second, third, ...rest];
}

function optionsOf({ lines, kind = 'lines', text }: Chart, place: HTMLElement): uPlot.Options {
  const style = getComputedStyle(place);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const axis = {
    stroke: colour('--quiet'),
    grid: { stroke: colour('--edge'), width: 1 },
    ticks: { stroke: colour('--edge'), width: 1 },
    font: '12px system-ui, sans-serif',
  };
  const bars = uPlot.paths.bars?.({ size: [0.8, 24] });
  return {
    width: Math.max(200, place.clientWidth),
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: true }, y: { range: (_, __, most) => [0, Math.max(1, (most ?? 1) * 1.05)] } },
    axes: [
      { ...axis, values: (_, ticks) => ticks.map(clockText) },
      { ...axis, size: 64, values: (_, ticks) => ticks.map((value) => text(value)) },
    ],
    series: [
      {},
      ...lines.map(({ name, colour: number }) => ({
        label: name,
        stroke: colour(`--line-${number}`),
        width: 1.5,
        // Where a line is one point long, the point is all that is seen of it. A bar needs none.
        points: { show: kind === 'lines', size: 4, fill: colour(`--line-${number}`) },
        ...(kind === 'bars' && bars ? { paths: bars, fill: colour(`--line-${number}`) } : {}),
      })),
    ],
  };
}
