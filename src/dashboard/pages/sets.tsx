/** The sets of a queue whose callbacks were not made yet: how far each is; to seal one, or to remove it with its members. */

import { useState } from 'preact/hooks';
import { ask } from '../api.ts';
import type { Schemas } from '../api-types.ts';
import { queryOf } from '../call.ts';
import * as calls from '../calls.ts';
import { useList } from '../parts/asked.ts';
import { Confirm } from '../parts/confirm.tsx';
import { useMay } from '../parts/may.tsx';
import { ProblemNote } from '../parts/problem.tsx';
import { Id, Instant, ListActions, Table } from '../parts/table.tsx';
import { countText, numberText } from '../parts/words.ts';
import type { Route } from '../router.ts';

type OneSet = Schemas['Set'];
type Change = 'seal' | 'remove';

const LIMIT = 50;
const COUNTS = ['Open', 'Done', 'Dead', 'Cancelled', 'Expired'].map((number) => ({ number }));
const COLUMNS = ['Set', 'Sealed', ...COUNTS, 'Begun', 'Callback'];
const keyOf = ({ name, group }: OneSet) => `${group ?? ''} ${name}`;

export function Sets({ path: [queue = ''] }: Route) {
  const list = useList(calls.setsList, { queue, limit: LIMIT }, { rowsOf: ({ sets }) => sets, keyOf });
  const { rows, cursor, problem, isBusy, more, reload } = list;
  const [chosen, setChosen] = useState<{ readonly row: OneSet; readonly change: Change }>();
  const [told, setTold] = useState('');
  const end = cursor === undefined ? '' : ', and there are more';
  const mayChange = useMay({ scope: 'write', queue });
  const act = async ({ name, group }: OneSet, change: Change) => {
    if (change === 'seal') await ask(calls.setsSeal, { queue, set: name, group });
    else await ask(calls.setsRemove, { queue, set: name, group });
    setTold(change === 'seal' ? `${name} is sealed.` : `${name} is removed.`);
    setChosen(undefined);
    reload();
  };
  return (
    <>
      <h1>
        Sets of <a href={`#/queue/${encodeURIComponent(queue)}`}>{queue}</a>
      </h1>
      <p>When a set is sealed and its last member is over, its callback is made, and the set is no longer here.</p>
      <section aria-label="Sets" aria-busy={isBusy}>
        <p role="status">{isBusy ? 'Looking …' : `${countText(rows.length, 'set')} shown${end}. ${told}`}</p>
        <Table of="sets" columns={mayChange ? [...COLUMNS, 'Actions'] : COLUMNS}>
          {rows.map((row) => (
            <Row
              key={keyOf(row)}
              queue={queue}
              row={row}
              choose={mayChange ? (change) => setChosen({ row, change }) : undefined}
            />
          ))}
        </Table>
        <ProblemNote problem={problem} />
        <ListActions {...{ cursor, isBusy, more, reload }} />
      </section>
      {chosen === undefined ? null : (
        <Confirm
          title={`${chosen.change === 'seal' ? 'Seal' : 'Remove'} ${chosen.row.name}`}
          yes={chosen.change === 'seal' ? 'Seal the set' : 'Remove the set'}
          act={() => act(chosen.row, chosen.change)}
          close={() => setChosen(undefined)}
        >
          <p>
            {chosen.change === 'seal'
              ? 'Its callback is made when the last member is over, or now if none is open.'
              : 'Its members are cancelled, and no callback is made.'}
          </p>
        </Confirm>
      )}
    </>
  );
}

function Row({
  queue,
  row,
  choose,
}: {
  readonly queue: string;
  readonly row: OneSet;
  /** Left out where the caller may not change it. */
  readonly choose: ((change: Change) => void) | undefined;
}) {
  const { name, sealed, open, done, dead, cancelled, expired, madeMs, callback } = row;
  return (
    <tr>
      <th scope="row">
        <a href={`#/jobs/${encodeURIComponent(queue)}${queryOf({ set: name })}`}>
          <Id text={name} />
        </a>
      </th>
      <td>{sealed ? 'yes' : 'no'}</td>
      <td class="number">{numberText(open)}</td>
      <td class="number">{numberText(done)}</td>
      <td class="number">{numberText(dead)}</td>
      <td class="number">{numberText(cancelled)}</td>
      <td class="number">{numberText(expired)}</td>
      <td>
        <Instant atMs={madeMs} />
      </td>
      <td>{callback.name}</td>
      {choose === undefined ? null : (
        <td>
          {sealed ? null : (
            <button type="button" onClick={() => choose('seal')} aria-label={`Seal ${name} …`}>
              Seal …
            </button>
          )}{' '}
          <button type="button" onClick={() => choose('remove')} aria-label={`Remove ${name} …`}>
            Remove …
          </button>
        </td>
      )}
    </tr>
  );
}
