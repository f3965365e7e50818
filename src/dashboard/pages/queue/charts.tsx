/** Throughput, lateness and run time of the last hour or day. */
import { useCallback, useState } from 'preact/hooks';
import type { Schemas } from '../../api-types.ts';
import { useAsked } from '../../parts/asked.ts';
import { at } from '../../parts/at.ts';
import { type Line, TimeChart } from '../../parts/chart.tsx';
import { useEvery } from '../../parts/every.ts';
import { latenessText } from '../../parts/lateness-text.ts';
import { ProblemNote } from '../../parts/problem.tsx';
import { numberText } from '../../parts/words.ts';

const EVERY_MS = 30_000;

export function Charts({ queue }: { readonly queue: string }) {
  const [hours, setHours] = useState<1 | 24>(1);
  const { value, problem, reload } = useAsked<Schemas['QueueMinutes']>(`${at`queues/${queue}/minutes`}?hours=${hours}`);
  useEvery(EVERY_MS, useCallback(reload, [reload]));
  return (
    <section aria-label="Charts">
      <h2>{hours === 1 ? 'The last hour' : 'The last day'}</h2>
      <p class="actions">
        {([1, 24] as const).map((choice) => (
          <button key={choice} type="button" aria-pressed={hours === choice} onClick={() => setHours(choice)}>
            {choice === 1 ? 'Hour' : 'Day'}
          </button>
        ))}
      </p>
      <ProblemNote problem={problem} />
      {value === undefined ? null : value.on ? (
        <Drawn minutes={value} />
      ) : (
        <p>
          There are no counts by the minute yet. The first come within two minutes, unless <code>http.minutes</code> is
          off or nobody leads the queue.
        </p>
      )}
    </section>
  );
}

function Drawn({ minutes }: { readonly minutes: Schemas['QueueMinutes'] }) {
  const { startMs, stepMs, counts, known } = minutes;
  const atMs = known.map((_, step) => startMs + step * stepMs);
  const rate = (values: readonly number[]) =>
    values.map((count, step) => (known[step] === true ? Math.round((count / stepMs) * 10_000) / 10 : null));
  return (
    <div class="charts">
      <TimeChart
        title="Jobs per second"
        atMs={atMs}
        lines={[
          { name: 'scheduled', values: rate(counts.scheduled), colour: 2 },
          { name: 'completed', values: rate(counts.done), colour: 1 },
          { name: 'retried', values: rate(counts.retried), colour: 3 },
          { name: 'dead', values: rate(counts.dead), colour: 4 },
        ]}
        text={numberText}
      />
      <TimeChart title="Lateness of starts" atMs={atMs} lines={spread(minutes.start)} text={latenessText} />
      <TimeChart title="Lateness of promotions" atMs={atMs} lines={spread(minutes.promotion)} text={latenessText} />
      <TimeChart title="Run time" atMs={atMs} lines={spread(minutes.run)} text={latenessText} />
    </div>
  );
}

const spread = ({ p50Ms, p99Ms }: Schemas['SpreadSteps']): readonly Line[] => [
  { name: 'p50', values: p50Ms, colour: 1 },
  { name: 'p99', values: p99Ms, colour: 2 },
];
