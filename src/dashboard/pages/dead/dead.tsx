/**
 * The dead letters of a queue, grouped by error, so that one cause with thousands of jobs is one row. What is chosen
 * stands in the address; replay and purge act on what is chosen.
 */

import type { Schemas } from '../../api-types.ts';
import { useAsked, useList } from '../../parts/asked.ts';
import { at, queryOf } from '../../parts/at.ts';
import { Instant } from '../../parts/instant.tsx';
import { JobLink } from '../../parts/job-link.tsx';
import { ListActions } from '../../parts/list-actions.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { Stack } from '../../parts/stack.tsx';
import { Table } from '../../parts/table.tsx';
import { countText, numberText } from '../../parts/words.ts';
import type { Route } from '../../router.ts';
import { type Choice, DeadActions } from './dead-actions.tsx';

type Letter = Schemas['ListedDeadLetter'];
type Groups = Schemas['DeadLettersPage'];

const LIMIT = 50;
const FIELDS = ['reason', 'error', 'name'] as const;

export function Dead({ path: [queue = ''], query }: Route) {
  const choice: Choice = Object.fromEntries(
    FIELDS.flatMap((field) => (query.has(field) ? [[field, query.get(field) ?? '']] : [])),
  );
  const groups = useAsked<Groups>(`${at`queues/${queue}/dead`}?group=error`);
  const list = useList<Letter>({
    path: `${at`queues/${queue}/dead`}${queryOf({ ...choice, limit: LIMIT })}`,
    rowsOf: (page) => (page as Schemas['DeadLettersPage']).deadLetters ?? [],
    keyOf: ({ deadLetter }) => deadLetter,
  });
  const reload = () => {
    groups.reload();
    list.reload();
  };
  return (
    <>
      <h1>
        Dead letters of <a href={`#/queue/${encodeURIComponent(queue)}`}>{queue}</a>
      </h1>
      <ProblemNote problem={groups.problem} />
      {groups.value === undefined ? null : <GroupTable queue={queue} groups={groups.value} />}
      <section aria-labelledby="letters">
        <h2 id="letters">{choiceText(choice)}</h2>
        <DeadActions key={JSON.stringify([queue, choice])} queue={queue} choice={choice} done={reload} />
        <Letters queue={queue} letters={list.rows} />
        <ProblemNote problem={list.problem} />
        <p role="status">{list.isBusy ? 'Looking …' : `${countText(list.rows.length, 'dead letter')} shown`}</p>
        <ListActions {...list} reload={reload} />
      </section>
    </>
  );
}

const choiceText = (choice: Choice): string => {
  const parts = FIELDS.flatMap((field) => (choice[field] === undefined ? [] : [`${field} ${choice[field]}`]));
  return parts.length === 0 ? 'All dead letters' : `Dead letters with ${parts.join(', ')}`;
};

function GroupTable({
  queue,
  groups: { groups = [], others = 0, scanned, next },
}: {
  readonly queue: string;
  readonly groups: Groups;
}) {
  const base = `#/dead/${encodeURIComponent(queue)}`;
  return (
    <section aria-labelledby="groups">
      <h2 id="groups">By error</h2>
      <Table of="errors" columns={['Error', 'Reason', 'Name', { number: 'Jobs' }, 'First', 'Last']}>
        {groups.map(({ reason, error, name, count, firstMs, lastMs }) => (
          <tr key={JSON.stringify([reason, error, name])}>
            <th scope="row">
              <a href={`${base}${queryOf({ reason, error, name })}`}>{error ?? reason ?? 'any reason'}</a>
            </th>
            <td>{reason ?? ''}</td>
            <td>{name ?? ''}</td>
            <td class="number">{numberText(count)}</td>
            <td>
              <Instant atMs={firstMs} />
            </td>
            <td>
              <Instant atMs={lastMs} />
            </td>
          </tr>
        ))}
      </Table>
      <p>
        {countText(scanned, 'dead letter')} looked at{next === undefined ? '' : ', the newest; there are more'}
        {others === 0 ? '.' : `; ${numberText(others)} with rarer errors are not listed.`} <a href={base}>Show all</a>
      </p>
    </section>
  );
}

function Letters({ queue, letters }: { readonly queue: string; readonly letters: readonly Letter[] }) {
  return (
    <Table of="dead letters" columns={['Job', 'Name', 'Died', { number: 'Attempts' }, 'Reason', 'Error']}>
      {letters.map(({ deadLetter, id, bare, name, atMs, attempts, reason, history }) => (
        <tr key={deadLetter}>
          <th scope="row">
            <JobLink queue={queue} id={id} bare={bare} />
          </th>
          <td>{name ?? ''}</td>
          <td>
            <Instant atMs={atMs} />
          </td>
          <td class="number">{attempts}</td>
          <td>{reason ?? ''}</td>
          <td>
            {history.at(-1)?.message ?? ''}
            <Stack text={history.findLast(({ stack }) => stack !== undefined)?.stack} />
          </td>
        </tr>
      ))}
    </Table>
  );
}
