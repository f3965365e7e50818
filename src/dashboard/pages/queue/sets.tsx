/** The sets of a queue whose callbacks were not made yet: how far each is; to seal one, or to remove it with its members. */

import { useState } from 'preact/hooks';
import { ask } from '../../api.ts';
import type { Schemas } from '../../api-types.ts';
import { queryOf } from '../../call.ts';
import * as calls from '../../calls.ts';
import { useList } from '../../parts/asked.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { useMay } from '../../parts/may.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { Id, Instant, ListActions, Table } from '../../parts/table.tsx';
import { numberText } from '../../parts/words.ts';
import type { Route } from '../../router.ts';
import { words } from '../../words/words.ts';
import { addressOf } from './addresses.ts';
import { OfQueue } from './of-queue.tsx';

type OneSet = Schemas['Set'];
type Change = 'seal' | 'remove';

const { sets: said, tables } = words.queue;
const { columns } = said;
const COUNTS = (['open', 'done', 'dead', 'cancelled', 'expired'] as const).map((name) => ({ number: columns[name] }));
const COLUMNS = [columns.set, columns.sealed, ...COUNTS, columns.begun, columns.callback];
const LIMIT = 50;
const keyOf = ({ name, group }: OneSet) => `${group ?? ''} ${name}`;

export function Sets({ path: [queue = ''] }: Route) {
  const list = useList(calls.setsList, { queue, limit: LIMIT }, { rowsOf: ({ sets }) => sets, keyOf });
  const { rows, cursor, problem, isBusy, reload } = list;
  const [chosen, setChosen] = useState<{ readonly row: OneSet; readonly change: Change }>();
  const [told, setTold] = useState('');
  const mayChange = useMay({ scope: 'write', queue });
  const act = async ({ name, group }: OneSet, change: Change) => {
    if (change === 'seal') await ask(calls.setsSeal, { queue, set: name, group });
    else await ask(calls.setsRemove, { queue, set: name, group });
    setTold(change === 'seal' ? said.sealed(name) : said.removed(name));
    setChosen(undefined);
    reload();
  };
  return (
    <OfQueue queue={queue} here="sets">
      <section class="say">
        <h1>{said.title(queue)}</h1>
        <p>{said.text}</p>
      </section>
      <section aria-label={words.queue.tabs.sets} aria-busy={isBusy}>
        <p role="status">
          {isBusy ? words.queue.looking : said.shown(rows.length, cursor !== undefined)} {told}
        </p>
        <Table of={tables.sets} look="list texts" columns={mayChange ? [...COLUMNS, columns.act] : COLUMNS}>
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
        <ListActions {...list} />
      </section>
      {chosen === undefined ? null : (
        <Confirm
          title={chosen.change === 'seal' ? said.sealTitle(chosen.row.name) : said.removeTitle(chosen.row.name)}
          yes={chosen.change === 'seal' ? said.sealYes : said.removeYes}
          act={() => act(chosen.row, chosen.change)}
          close={() => setChosen(undefined)}
        >
          <p>{chosen.change === 'seal' ? said.sealText : said.removeText}</p>
        </Confirm>
      )}
    </OfQueue>
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
        <a href={`${addressOf('jobs', queue)}${queryOf({ set: name })}`}>
          <Id text={name} />
        </a>
      </th>
      <td>{sealed ? said.yes : said.no}</td>
      <td class="n">{numberText(open)}</td>
      <td class="n">{numberText(done)}</td>
      <td class="n">{numberText(dead)}</td>
      <td class="n">{numberText(cancelled)}</td>
      <td class="n">{numberText(expired)}</td>
      <td>
        <Instant atMs={madeMs} />
      </td>
      <td>{callback.name}</td>
      {choose === undefined ? null : (
        <td class="acts">
          {sealed ? null : (
            <button type="button" class="ghost" onClick={() => choose('seal')} aria-label={said.sealOne(name)}>
              {said.seal}
            </button>
          )}
          <button type="button" class="ghost" onClick={() => choose('remove')} aria-label={said.removeOne(name)}>
            {said.remove}
          </button>
        </td>
      )}
    </tr>
  );
}
