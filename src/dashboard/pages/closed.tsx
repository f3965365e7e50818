/** The closed tags of a queue: until when no job with them starts, who closed them and why; and to open one before its end. */

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
import { countText } from '../parts/words.ts';
import { go, type Route } from '../router.ts';

type Tag = Schemas['ClosedTag'];

const LIMIT = 50;
const COLUMNS = ['Tag', 'Opens', 'Closed', 'By', 'Why'];
const keyOf = ({ tag }: Tag) => tag;

export function Closed({ path: [queue = ''], query }: Route) {
  const search = query.get('search') ?? '';
  const list = useList(calls.tagsClosed, { queue, limit: LIMIT, search }, { rowsOf: ({ tags }) => tags, keyOf });
  const { rows, cursor, problem, isBusy, more, reload } = list;
  const [chosen, setChosen] = useState<Tag>();
  const [told, setTold] = useState('');
  const end = cursor === undefined ? '' : ', and there are more';
  const mayOpen = useMay({ scope: 'write', queue });
  const open = async ({ tag }: Tag) => {
    await ask(calls.tagsOpen, { queue, tag });
    setTold(`${tag} is open.`);
    setChosen(undefined);
    reload();
  };
  return (
    <>
      <h1>
        Closed tags of <a href={`#/queue/${encodeURIComponent(queue)}`}>{queue}</a>
      </h1>
      <p>No job with one of these tags starts. The leader opens a tag at its end, or up to a minute later.</p>
      <Search key={search} queue={queue} search={search} />
      <section aria-label="Closed tags" aria-busy={isBusy}>
        <p role="status">{isBusy ? 'Looking …' : `${countText(rows.length, 'tag')} shown${end}. ${told}`}</p>
        <Table of="closed tags" columns={mayOpen ? [...COLUMNS, 'Action'] : COLUMNS}>
          {rows.map((row) => (
            <Row key={row.tag} queue={queue} row={row} choose={mayOpen ? setChosen : undefined} />
          ))}
        </Table>
        <ProblemNote problem={problem} />
        <ListActions {...{ cursor, isBusy, more, reload }} />
      </section>
      {chosen === undefined ? null : (
        <Confirm
          title={`Open ${chosen.tag}`}
          yes="Open the tag"
          act={() => open(chosen)}
          close={() => setChosen(undefined)}
        >
          <p>Jobs with this tag start again. What was cancelled stays cancelled.</p>
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
  readonly row: Tag;
  /** Left out where the caller may not open it. */
  readonly choose: ((row: Tag) => void) | undefined;
}) {
  const { tag, untilMs, atMs, by, reason } = row;
  return (
    <tr>
      <th scope="row">
        <a href={`#/jobs/${encodeURIComponent(queue)}${queryOf({ tag })}`}>
          <Id text={tag} />
        </a>
      </th>
      <td>
        <Instant atMs={untilMs} isLong />
      </td>
      <td>
        <Instant atMs={atMs} />
      </td>
      <td>{by}</td>
      <td>{reason}</td>
      {choose === undefined ? null : (
        <td>
          <button type="button" onClick={() => choose(row)} aria-label={`Open ${tag} …`}>
            Open …
          </button>
        </td>
      )}
    </tr>
  );
}

function Search({ queue, search }: { readonly queue: string; readonly search: string }) {
  const [text, setText] = useState(search);
  return (
    <form
      class="actions"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        go(`closed/${encodeURIComponent(queue)}${queryOf({ search: text })}`);
      }}
    >
      <label>
        Search
        <input
          type="search"
          maxLength={64}
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </label>
      <button type="submit">Search</button>
    </form>
  );
}
