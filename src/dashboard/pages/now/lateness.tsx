/** How late jobs started in the last hour: all queues together, and queue by queue. */

import { useCallback } from 'preact/hooks';
import { useAsked } from '../../parts/asked.ts';
import { useEvery } from '../../parts/every.ts';
import { ProblemNote } from '../../parts/problem.tsx';
import { Table } from '../../parts/table.tsx';
import { numberText } from '../../parts/words.ts';
import { percentileText, type SpreadTotal } from '../queue/minutes-shape.ts';

const QUEUES_MAX = 20;
const EVERY_MS = 60_000;

interface LastHour {
  /** False: nobody keeps them. */
  readonly on: boolean;
  readonly start: SpreadTotal;
  readonly queues: readonly { readonly queue: string; readonly start: SpreadTotal }[];
}

export function Lateness() {
  const { value, problem, reload } = useAsked<LastHour>('lateness');
  useEvery(EVERY_MS, useCallback(reload, [reload]));
  if (value?.queues.length === 0) return null;
  return (
    <section aria-label="Lateness of the last hour">
      <h2>Lateness of the last hour</h2>
      <ProblemNote problem={problem} />
      {value === undefined ? null : value.on ? (
        <>
          <All start={value.start} />
          <Each queues={value.queues} />
        </>
      ) : (
        <p>
          There is no lateness by the minute yet. The first comes within two minutes, unless <code>http.minutes</code>{' '}
          is off or nobody leads a queue.
        </p>
      )}
    </section>
  );
}

function All({ start: { count, p50Ms, p99Ms } }: Pick<LastHour, 'start'>) {
  return (
    <dl class="tiles">
      <div class="tile">
        <dt>Lateness p50</dt>
        <dd>{percentileText(p50Ms)}</dd>
      </div>
      <div class="tile">
        <dt>Lateness p99</dt>
        <dd>{percentileText(p99Ms)}</dd>
      </div>
      <div class="tile">
        <dt>Started in the last hour</dt>
        <dd>{numberText(count)}</dd>
      </div>
    </dl>
  );
}

function Each({ queues }: Pick<LastHour, 'queues'>) {
  const shown = queues.slice(0, QUEUES_MAX);
  return (
    <>
      <Table of="lateness" columns={['Queue', { number: 'Started' }, { number: 'p50' }, { number: 'p99' }]}>
        {shown.map(({ queue, start: { count, p50Ms, p99Ms } }) => (
          <tr key={queue}>
            <th scope="row">
              <a href={`#/queue/${encodeURIComponent(queue)}`}>{queue}</a>
            </th>
            <td class="number">{numberText(count)}</td>
            <td class="number">{percentileText(p50Ms)}</td>
            <td class="number">{percentileText(p99Ms)}</td>
          </tr>
        ))}
      </Table>
      {queues.length > shown.length ? <p class="quiet">The other queues have it on their own pages.</p> : null}
    </>
  );
}
