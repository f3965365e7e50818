/** How late jobs started in the last hour, queue by queue. */

import { useCallback } from 'preact/hooks';
import { useAsked } from '../../parts/asked.ts';
import { at } from '../../parts/at.ts';
import { useEvery } from '../../parts/every.ts';
import { Table } from '../../parts/table.tsx';
import { numberText } from '../../parts/words.ts';
import { latenessText, type Minutes } from '../queue/minutes-shape.ts';

const QUEUES_MAX = 20;
const EVERY_MS = 60_000;

export function Lateness({ queues }: { readonly queues: readonly string[] }) {
  if (queues.length === 0) return null;
  const shown = queues.slice(0, QUEUES_MAX);
  return (
    <section aria-label="Lateness of the last hour">
      <h2>Lateness of the last hour</h2>
      <Table of="lateness" columns={['Queue', { number: 'Started' }, { number: 'p50' }, { number: 'p99' }]}>
        {shown.map((queue) => (
          <Row key={queue} queue={queue} />
        ))}
      </Table>
      {queues.length > shown.length ? <p class="quiet">The other queues have it on their own pages.</p> : null}
    </section>
  );
}

function Row({ queue }: { readonly queue: string }) {
  const { value, reload } = useAsked<Minutes>(`${at`queues/${queue}/minutes`}?hours=1`);
  useEvery(EVERY_MS, useCallback(reload, [reload]));
  const start = value?.total.start;
  return (
    <tr>
      <th scope="row">
        <a href={`#/queue/${encodeURIComponent(queue)}`}>{queue}</a>
      </th>
      <td class="number">{start === undefined ? '…' : numberText(start.count)}</td>
      <td class="number">{latenessText(start?.p50Ms)}</td>
      <td class="number">{latenessText(start?.p99Ms)}</td>
    </tr>
  );
}
