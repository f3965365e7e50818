/** The jobs of a list that are not over on a line of time. Jobs that would cover each other stand upon each other. */
import { Axis, dayTicks, hourTicks, type Tick } from '../../parts/plot.tsx';
import { words } from '../../words/words.ts';
import { type Row, stateOf } from './list.tsx';
import { sectionOf } from './times.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** What is overdue takes at most so much of the line. */
const PAST_SHARE = 0.12;
/** A bin, in per cent of the line: as wide as a dot. */
const BIN = 0.9;
const STACK_MAX = 5;
/** Hours or days between two marks: the first that leaves few enough. */
const STEPS = [1, 2, 3, 6, 12];
const MARKS_MAX = 12;

type Due = Row & { readonly dueMs: number };

export function Strip({ rows }: { readonly rows: readonly Row[] }) {
  const due = rows.filter((row): row is Due => row.dueMs !== undefined && row.overMs === undefined);
  if (due.length === 0) return null;
  const nowMs = Date.now();
  const { fromMs, toMs } = rangeOf(due, nowMs);
  const leftOf = (ms: number) => Math.min(100, Math.max(0, ((ms - fromMs) / (toMs - fromMs)) * 100));
  const here = (section: 'now' | 'today' | 'tomorrow' | 'later') =>
    due.filter(({ dueMs }) => sectionOf(dueMs, nowMs) === section).length;
  return (
    <div
      class="when-strip"
      role="img"
      aria-label={words.jobs.strip(due.length, here('now'), here('today'), here('tomorrow'), here('later'))}
    >
      <i class="now" style={{ left: `${leftOf(nowMs)}%` }}>
        <span>{words.jobs.now}</span>
      </i>
      {stacked(due, leftOf).map(({ row, left, nth }, at) => (
        <i
          key={at}
          class={`dot ${stateOf(row)}`}
          style={{ left: `${left.toFixed(1)}%`, bottom: `${22 + nth * 9}px` }}
        />
      ))}
      <Axis ticks={ticksOf(fromMs, toMs)} />
    </div>
  );
}

function rangeOf(due: readonly Due[], nowMs: number): { readonly fromMs: number; readonly toMs: number } {
  const times = due.map(({ dueMs }) => Math.min(dueMs, nowMs + 3650 * DAY_MS));
  const ahead = Math.max(HOUR_MS, (Math.max(...times) - nowMs) * 1.05);
  const behind = Math.max(0.03 * ahead, Math.min(nowMs - Math.min(...times), PAST_SHARE * ahead));
  return { fromMs: nowMs - behind, toMs: nowMs + ahead };
}

function stacked(due: readonly Due[], leftOf: (ms: number) => number) {
  const heights = new Map<number, number>();
  return due.flatMap((row) => {
    const bin = Math.round(leftOf(row.dueMs) / BIN);
    const nth = heights.get(bin) ?? 0;
    heights.set(bin, nth + 1);
    return nth < STACK_MAX ? [{ row, left: Math.min(100, bin * BIN), nth }] : [];
  });
}

function ticksOf(fromMs: number, toMs: number): readonly Tick[] {
  const hours = (toMs - fromMs) / HOUR_MS;
  if (hours <= 48) return hourTicks(fromMs, toMs, STEPS.find((step) => hours / step <= MARKS_MAX) ?? 12);
  return dayTicks(fromMs, toMs, Math.max(1, Math.ceil(hours / 24 / MARKS_MAX)));
}
