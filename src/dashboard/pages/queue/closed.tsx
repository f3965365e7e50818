/** The closed tags of a queue: until when no job with them starts, who closed them and why; to close one, and to open one before its end. */
import { useState } from 'preact/hooks';
import { ask } from '../../api.ts';
import type { Schemas } from '../../api-types.ts';
import { queryOf } from '../../call.ts';
import * as calls from '../../calls.ts';
import { useList } from '../../parts/asked.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { May, useMay } from '../../parts/may.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { Id, Instant, ListActions, Table } from '../../parts/table.tsx';
import { go, type Route } from '../../router.ts';
import { words } from '../../words/words.ts';
import { addressOf } from './addresses.ts';
import { Field, For, Reason } from './fields.tsx';
import { OfQueue } from './of-queue.tsx';
import { jobsText } from './say.tsx';

type Tag = Schemas['ClosedTag'];
/** A tag to open, or that another one is to be closed. */
type Chosen = Tag | 'new';

const { closedTags: said, tables } = words.queue;
const { columns } = said;
const LIMIT = 50;
const keyOf = ({ tag }: Tag) => tag;

export function Closed({ path: [queue = ''], query }: Route) {
  const search = query.get('search') ?? '';
  const list = useList(calls.tagsClosed, { queue, limit: LIMIT, search }, { rowsOf: ({ tags }) => tags, keyOf });
  const { rows, cursor, problem, isBusy, reload } = list;
  const [chosen, setChosen] = useState<Chosen>();
  const [told, setTold] = useState('');
  const mayOpen = useMay({ scope: 'write', queue });
  const finish = (text: string) => {
    setTold(text);
    setChosen(undefined);
    reload();
  };
  const { tag, opens, closed, by, why, act } = columns;
  return (
    <OfQueue queue={queue} here="closed">
      <section class="say">
        <h1>{said.title(queue)}</h1>
        <p>{said.text}</p>
        <div class="tools">
          <May scope="write" queue={queue}>
            <button type="button" onClick={() => setChosen('new')}>
              {said.close}
            </button>
          </May>
        </div>
      </section>
      <Search key={search} queue={queue} search={search} />
      <section aria-label={words.queue.tabs.closed} aria-busy={isBusy}>
        <p role="status">
          {isBusy ? words.queue.looking : said.shown(rows.length, cursor !== undefined)} {told}
        </p>
        <Table
          of={tables.closedTags}
          look="list texts"
          columns={mayOpen ? [tag, opens, closed, by, why, act] : [tag, opens, closed, by, why]}
        >
          {rows.map((row) => (
            <Row key={row.tag} queue={queue} row={row} choose={mayOpen ? setChosen : undefined} />
          ))}
        </Table>
        <ProblemNote problem={problem} />
        <ListActions {...list} />
      </section>
      {chosen === undefined ? null : <Dialog {...{ queue, chosen, finish }} close={() => setChosen(undefined)} />}
    </OfQueue>
  );
}

interface RowOf {
  readonly queue: string;
  readonly row: Tag;
  /** Left out where the caller may not open it. */
  readonly choose: ((row: Tag) => void) | undefined;
}

function Row({ queue, row, choose }: RowOf) {
  const { tag, untilMs, atMs, by, reason } = row;
  return (
    <tr>
      <th scope="row">
        <a href={`${addressOf('jobs', queue)}${queryOf({ tag })}`}>
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
        <td class="acts">
          <button type="button" class="ghost" onClick={() => choose(row)} aria-label={said.openOne(tag)}>
            {said.open}
          </button>
        </td>
      )}
    </tr>
  );
}

interface DialogOf {
  readonly queue: string;
  readonly finish: (told: string) => void;
  readonly close: () => void;
}

function Dialog({ chosen, ...dialog }: DialogOf & { readonly chosen: Chosen }) {
  if (chosen === 'new') return <CloseTag {...dialog} />;
  const { queue, finish, close } = dialog;
  const { tag } = chosen;
  const act = async () => {
    await ask(calls.tagsOpen, { queue, tag });
    finish(said.opened(tag));
  };
  return (
    <Confirm title={said.openTitle(tag)} yes={said.openYes} {...{ act, close }}>
      <p>{said.openText}</p>
    </Confirm>
  );
}

function CloseTag({ queue, finish, close }: DialogOf) {
  const [tag, setTag] = useState('');
  const [wait, setWait] = useState('1d');
  const [reason, setReason] = useState('');
  const act = async () => {
    const body = { for: wait, ...(reason === '' ? {} : { reason }) };
    const { cancelled, full } = await ask(calls.tagsClose, { queue, tag }, body);
    finish(full === undefined ? said.closed(tag, jobsText(cancelled)) : said.full(tag));
  };
  return (
    <Confirm
      title={said.closeTitle}
      yes={said.closeYes}
      isDangerous
      canConfirm={tag !== '' && wait !== ''}
      {...{ act, close }}
    >
      <div class="fields">
        <p>{said.closeText}</p>
        <Field name={said.tag} value={tag} set={setTag} maxLength={64} />
        <For value={wait} set={setWait} />
        <Reason value={reason} set={setReason} />
      </div>
    </Confirm>
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
        go(`${addressOf('closed', queue).slice(2)}${queryOf({ search: text })}`);
      }}
    >
      <label>
        {said.search}
        <input
          type="search"
          maxLength={64}
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </label>
      <button type="submit">{said.search}</button>
    </form>
  );
}
