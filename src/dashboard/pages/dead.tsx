/**
 * The dead letters of a queue, grouped by error, so that one cause with thousands of jobs is one row. What is chosen
 * stands in the address; replay and purge act on what is chosen.
 */

import { useEffect, useRef, useState } from 'preact/hooks';
import { ask } from '../api.ts';
import type { Schemas } from '../api-types.ts';
import { queryOf } from '../call.ts';
import * as calls from '../calls.ts';
import { useAsked, useList } from '../parts/asked.ts';
import { Confirm } from '../parts/confirm.tsx';
import { May } from '../parts/may.tsx';
import { ProblemNote, Stack } from '../parts/problem.tsx';
import { Instant, JobLink, ListActions, Table } from '../parts/table.tsx';
import { countText, numberText } from '../parts/words.ts';
import type { Route } from '../router.ts';

type Letter = Schemas['ListedDeadLetter'];
type Groups = Schemas['DeadLettersPage'];

const LIMIT = 50;
const FIELDS = ['reason', 'error', 'name'] as const;

export function Dead({ path: [queue = ''], query }: Route) {
  const choice: Choice = Object.fromEntries(
    FIELDS.flatMap((field) => (query.has(field) ? [[field, query.get(field) ?? '']] : [])),
  );
  const groups = useAsked(calls.deadList, { queue, group: 'error' });
  const list = useList(
    calls.deadList,
    { queue, ...choice, limit: LIMIT },
    { rowsOf: ({ deadLetters = [] }) => deadLetters, keyOf: ({ deadLetter }) => deadLetter },
  );
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
        <May scope="write" queue={queue}>
          <DeadActions key={JSON.stringify([queue, choice])} queue={queue} choice={choice} done={reload} />
        </May>
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
  groups: { groups = [], others = 0, scanned, cursor },
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
        {countText(scanned, 'dead letter')} looked at{cursor === undefined ? '' : ', the newest; there are more'}
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

// Replays or purges the chosen dead letters: a dry run first, then a button that names the number.

/** Which dead letters; empty: all. */
type Choice = Readonly<Partial<Record<'reason' | 'error' | 'name', string>>>;

interface Actions {
  readonly queue: string;
  readonly choice: Choice;
  readonly done: () => void;
}

function DeadActions({ queue, choice, done }: Actions) {
  const [action, setAction] = useState<'replay' | 'purge'>();
  const [told, setTold] = useState('');
  const finish = (text: string) => {
    setAction(undefined);
    setTold(text);
    done();
  };
  return (
    <section aria-label="All of these dead letters" class="bulk">
      <p class="actions">
        <button type="button" onClick={() => setAction('replay')}>
          Replay them …
        </button>
        <May scope="admin" queue={queue}>
          <button type="button" onClick={() => setAction('purge')}>
            Purge them …
          </button>
        </May>
      </p>
      <p role="status">{told}</p>
      {action === undefined ? null : (
        <Question {...{ queue, choice, action, finish }} close={() => setAction(undefined)} />
      )}
    </section>
  );
}

interface Questions extends Omit<Actions, 'done'> {
  readonly action: 'replay' | 'purge';
  readonly finish: (told: string) => void;
  readonly close: () => void;
}

function Question({ queue, choice, action, finish, close }: Questions) {
  const [spread, setSpread] = useState('');
  const [matched, setMatched] = useState<number>();
  const left = useRef(new AbortController());
  useEffect(() => () => left.current.abort(), []);
  const which = Object.keys(choice).length === 0 ? { all: true as const } : choice;

  async function act(): Promise<void> {
    const body = { ...which, dryRun: matched === undefined };
    const slice = (cursor: string | undefined): Promise<Slice> =>
      action === 'replay'
        ? ask(calls.deadReplayMany, { queue }, { ...body, spread: spread === '' ? undefined : spread, cursor })
        : ask(calls.deadPurge, { queue }, { ...body, cursor });
    const sum = await eachSlice(slice, left.current.signal);
    if (matched === undefined) setMatched(sum.matched);
    else finish(action === 'replay' ? replayedText(sum) : `${countText(sum.removed, 'dead letter')} removed for ever.`);
  }

  const verb = action === 'replay' ? 'Replay' : 'Purge';
  return (
    <Confirm
      title={action === 'replay' ? 'Replay dead letters' : 'Remove dead letters for ever'}
      yes={matched === undefined ? 'Count them' : `${verb} ${countText(matched, 'dead letter')}`}
      isDangerous={action === 'purge' && matched !== undefined}
      canConfirm={matched !== 0}
      act={act}
      close={close}
    >
      {action === 'replay' ? (
        <div class="fields">
          <label>
            Spread over, such as 1h; empty: all at once
            <input
              value={spread}
              onInput={(event) => {
                setSpread(event.currentTarget.value.trim());
                setMatched(undefined);
              }}
            />
          </label>
        </div>
      ) : null}
      <p>
        {matched === undefined
          ? 'The next step changes nothing. It counts the dead letters that are meant.'
          : `${countText(matched, 'dead letter')} ${action === 'purge' ? 'will be gone; nobody can bring them back.' : 'will run again.'}`}
      </p>
    </Confirm>
  );
}

interface Sum {
  readonly matched: number;
  readonly replayed: number;
  readonly live: number;
  readonly empty: number;
  readonly gone: number;
  readonly removed: number;
}

type Slice = Partial<Sum> & { readonly cursor?: string };

/** Slices of a bounded size, until there is no more. */
async function eachSlice(ask: (cursor: string | undefined) => Promise<Slice>, signal: AbortSignal): Promise<Sum> {
  let sum: Sum = { matched: 0, replayed: 0, live: 0, empty: 0, gone: 0, removed: 0 };
  let cursor: string | undefined;
  do {
    const slice: Slice = await ask(cursor);
    const added = Object.entries(sum).map(([name, count]) => [name, count + (slice[name as keyof Sum] ?? 0)]);
    sum = Object.fromEntries(added);
    cursor = slice.cursor;
  } while (cursor !== undefined && !signal.aborted);
  return sum;
}

function replayedText({ replayed, live, empty, gone }: Sum): string {
  const left = [
    live > 0 ? `${live} live already` : '',
    empty > 0 ? `${empty} hold no record` : '',
    gone > 0 ? `${gone} are gone` : '',
  ].filter((part) => part !== '');
  return `${countText(replayed, 'dead letter')} replayed${left.length === 0 ? '' : `; left alone: ${left.join(', ')}`}.`;
}
