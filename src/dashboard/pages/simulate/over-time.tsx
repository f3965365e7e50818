/** How late the jobs of each time would start: as a picture over the time that was played, and as a table for whoever cannot see it. */
import { useState } from 'preact/hooks';
import type { Schemas } from '../../api-types.ts';
import { weekTimeText } from '../../parts/clock.ts';
import { dayTicks, durationGrid, hourTicks, type Layer, minuteTicks, Plot, type Tick } from '../../parts/plot.tsx';
import { Table } from '../../parts/table.tsx';
import { durationText, latenessText, numberText } from '../../parts/words.ts';
import { words } from '../../words/words.ts';

const said = words.simulate;

type Simulation = Schemas['Simulation'];
type Steps = Simulation['steps'];

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export function OverTime({ simulation }: { readonly simulation: Simulation }) {
  const { steps, asItIs, asAsked } = simulation;
  const shown = asAsked ?? asItIs;
  const most = Math.max(0, asItIs.maxMs, asAsked?.maxMs ?? 0);
  const toMs = steps.fromMs + steps.stepMs * steps.due.length;
  const say = said.sayOverTime(durationText(steps.stepMs));
  return (
    <>
      <Plot
        title={said.overTime}
        say={say}
        label={`${said.overTime}: ${say}`}
        fromMs={steps.fromMs}
        toMs={toMs}
        ticks={ticksOf(steps.fromMs, toMs)}
        grid={durationGrid(most)}
        text={(ms) => (ms === 0 ? '0' : latenessText(ms))}
        heightPx={180}
        layers={[
          { kind: 'bars', points: pointsOf(steps, shown.latestMs, 0.1), stepMs: steps.stepMs, colour: 'now' },
          ...(asAsked === undefined
            ? []
            : [{ kind: 'dots', points: pointsOf(steps, asItIs.latestMs, 0.5), colour: 'was' } as const]),
        ]}
        aside={
          asAsked === undefined
            ? undefined
            : [<i key="was" class="k was" />, said.columns.asItIs, <i key="now" class="k now" />, said.columns.asAsked]
        }
      />
      <Numbers simulation={simulation} />
    </>
  );
}

const pointsOf = ({ fromMs, stepMs }: Steps, values: readonly (number | null)[], within: number): Layer['points'] =>
  values.map((value, step) => [fromMs + (step + within) * stepMs, value] as const);

function ticksOf(fromMs: number, toMs: number): readonly Tick[] {
  const lengthMs = toMs - fromMs;
  if (lengthMs <= 2 * HOUR_MS) return minuteTicks(fromMs, toMs, 15);
  if (lengthMs <= 8 * HOUR_MS) return hourTicks(fromMs, toMs, 2);
  if (lengthMs <= 2 * DAY_MS) return hourTicks(fromMs, toMs, 6);
  return dayTicks(fromMs, toMs, lengthMs > 10 * DAY_MS ? 7 : 1);
}

const lateText = (ms: number | null): string => (ms === null ? '–' : durationText(ms));

function Numbers({ simulation: { steps, asItIs, asAsked } }: { readonly simulation: Simulation }) {
  const [isOpen, setOpen] = useState(false);
  const { rows, columns } = said;
  const heads = [said.comeDue, `${rows.latest}, ${columns.asItIs}`];
  const shown = steps.due.map((_, step) => step).filter((step) => steps.due[step] !== 0);
  const late = ({ latestMs }: Simulation['asItIs'], step: number) => lateText(latestMs[step] ?? null);
  return (
    <details class="sim-numbers" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{words.queue.charts.table}</summary>
      {isOpen ? (
        <Table
          of={said.overTime}
          look="list"
          columns={[
            words.queue.charts.from,
            ...[...heads, ...(asAsked === undefined ? [] : [`${rows.latest}, ${columns.asAsked}`])].map((number) => ({
              number,
            })),
          ]}
        >
          {shown.map((step) => (
            <tr key={step}>
              <th scope="row">{weekTimeText(steps.fromMs + step * steps.stepMs)}</th>
              <td class="n">{numberText(steps.due[step] ?? 0)}</td>
              <td class="n">{late(asItIs, step)}</td>
              {asAsked === undefined ? null : <td class="n">{late(asAsked, step)}</td>}
            </tr>
          ))}
        </Table>
      ) : null}
    </details>
  );
}
