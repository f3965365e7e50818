/** Who changed what, newest first. */

import * as calls from '../calls.ts';
import { useList } from '../parts/asked.ts';
import { ProblemNote } from '../parts/problem.tsx';
import { Id, Instant, ListActions, Table } from '../parts/table.tsx';
import { countText, numberText } from '../parts/words.ts';

export function Audit() {
  const { rows, cursor, problem, isBusy, more, reload } = useList(
    calls.audit,
    { limit: 100 },
    { rowsOf: ({ entries }) => entries, keyOf: ({ entry }) => entry },
  );
  return (
    <>
      <h1>Audit</h1>
      <p>Who changed what, by the API, a page or the command line. Redis keeps the newest 10,000 changes.</p>
      <ProblemNote problem={problem} />
      <Table of="changes" columns={['When', 'Who', 'Way', 'What', 'Queue', 'Of', { number: 'How many' }, 'Why']}>
        {rows.map(({ entry, atMs, who, way, verb, queue, target, count, reason }) => (
          <tr key={entry}>
            <td>
              <Instant atMs={atMs} isLong />
            </td>
            <td>{who}</td>
            <td>{way}</td>
            <td>{verb}</td>
            <td>{queue ?? ''}</td>
            <td>{target === undefined ? '' : <Id text={target} />}</td>
            <td class="number">{numberText(count)}</td>
            <td>{reason ?? ''}</td>
          </tr>
        ))}
      </Table>
      <p role="status">{isBusy ? 'Looking …' : `${countText(rows.length, 'change')} shown`}</p>
      <ListActions {...{ cursor, isBusy, more, reload }} />
    </>
  );
}
