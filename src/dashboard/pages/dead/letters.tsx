/** The dead letters of one queue one by one, newest first: replay or purge of all that are chosen, and of one with other data. */
import { useState } from 'preact/hooks';
import { askJson } from '../../api.ts';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { useAsked, useList } from '../../parts/asked.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { May } from '../../parts/may.tsx';
import { ProblemNote, Stack } from '../../parts/problem.tsx';
import { Instant, JobLink, ListActions, Table } from '../../parts/table.tsx';
import { changeText } from '../../parts/words.ts';
import { words } from '../../words/words.ts';
import type { DeadChoice } from './choice.ts';
import { Question } from './question.tsx';

const say = words.dead;

type Letter = Schemas['ListedDeadLetter'];

const LIMIT = 50;

interface LettersOf {
  readonly queue: string;
  readonly choice: DeadChoice;
  readonly done: (told: string) => void;
}

export function Letters({ queue, choice, done }: LettersOf) {
  const list = useList(
    calls.deadList,
    { queue, ...choice, limit: LIMIT },
    { rowsOf: ({ deadLetters = [] }) => deadLetters, keyOf: ({ deadLetter }) => deadLetter },
  );
  return (
    <section aria-labelledby="letters">
      <header class="sec">
        <h2 id="letters">{Object.keys(choice).length === 0 ? say.oneByOne : say.oneByOneChosen}</h2>
        <p role="status">{list.isBusy ? say.looking : say.shown(list.rows.length)}</p>
      </header>
      <May scope="write" queue={queue}>
        <AllOfThem {...{ queue, choice, done }} />
      </May>
      <LetterTable {...{ queue, done }} letters={list.rows} />
      <ProblemNote problem={list.problem} />
      <ListActions {...list} />
    </section>
  );
}

function AllOfThem({ queue, choice, done }: LettersOf) {
  const [action, setAction] = useState<'replay' | 'purge'>();
  const what = Object.values(choice).join(' · ');
  return (
    <section aria-label={say.allOfThese} class="bulk">
      <p class="actions">
        <button type="button" onClick={() => setAction('replay')}>
          {say.replayThem}
        </button>
        <May scope="admin" queue={queue}>
          <button type="button" class="danger" onClick={() => setAction('purge')}>
            {say.purgeThem}
          </button>
        </May>
      </p>
      {action === undefined ? null : (
        <Question
          {...{ action, choice, queues: [queue], what: what === '' ? say.allOfThem : what }}
          finish={done}
          close={() => setAction(undefined)}
        />
      )}
    </section>
  );
}

interface TableOf extends Omit<LettersOf, 'choice'> {
  readonly letters: readonly Letter[];
}

function LetterTable({ queue, letters, done }: TableOf) {
  const [edited, setEdited] = useState<Letter>();
  const { columns } = say;
  return (
    <>
      <Table
        of={say.letters}
        columns={[
          columns.job,
          columns.name,
          columns.died,
          { number: columns.attempts },
          columns.reason,
          columns.error,
          columns.toDo,
        ]}
      >
        {letters.map((letter) => (
          <tr key={letter.deadLetter}>
            <th scope="row">
              <JobLink queue={queue} id={letter.id} bare={letter.bare} />
            </th>
            <td>{letter.name ?? ''}</td>
            <td>
              <Instant atMs={letter.atMs} />
            </td>
            <td class="number">{letter.attempts}</td>
            <td>{letter.reason ?? ''}</td>
            <td class="error-said">
              {letter.history.at(-1)?.message ?? ''}
              <Stack text={letter.history.findLast(({ stack }) => stack !== undefined)?.stack} />
            </td>
            <td>
              {letter.bare ? null : (
                <May scope="write" queue={queue}>
                  <May scope="data" queue={queue}>
                    <button type="button" class="ghost" onClick={() => setEdited(letter)}>
                      {say.edit}
                      <span class="away"> {letter.id}</span>
                    </button>
                  </May>
                </May>
              )}
            </td>
          </tr>
        ))}
      </Table>
      {edited === undefined ? null : (
        <Edit
          {...{ queue, letter: edited }}
          finish={(told) => {
            setEdited(undefined);
            done(told);
          }}
          close={() => setEdited(undefined)}
        />
      )}
    </>
  );
}

/** So long the job would wait, where it was replayed and its edit was refused. */
const HELD_FOR = '1d';

interface EditOf {
  readonly queue: string;
  readonly letter: Letter;
  readonly finish: (told: string) => void;
  readonly close: () => void;
}

/**
 * Two calls: replayed for tomorrow, then edited and due at once. Whatever comes between them, no try runs with the old data;
 * the job is where its page can edit it.
 */
function Edit({ queue, letter: { deadLetter, id, etag }, finish, close }: EditOf) {
  const { value, problem, isBusy } = useAsked(calls.deadGet, { queue, deadLetter });
  const [typed, setTyped] = useState<string>();
  const [isReplayed, setReplayed] = useState(false);
  const text = typed ?? JSON.stringify(value?.data, null, 2) ?? '';

  async function act(reason: string): Promise<void> {
    const json = changeText({ delay: 0 }, text);
    if (!isReplayed) {
      await askJson(
        calls.deadReplay,
        { queue, deadLetter },
        { json: JSON.stringify({ delay: HELD_FOR }), etag, reason },
      );
      setReplayed(true);
    }
    await askJson(calls.jobsEdit, { queue, id }, { json, reason });
    finish(say.editedAndReplayed(id));
  }

  return (
    <Confirm
      title={say.editTitle}
      yes={say.editYes}
      canConfirm={value !== undefined && !value.hidden && text.trim() !== ''}
      asksWhy
      act={act}
      close={isReplayed ? () => finish(say.replayedUnedited(id)) : close}
    >
      <ProblemNote problem={problem} />
      <p class="quiet">{id}</p>
      <label aria-busy={isBusy}>
        {say.data}
        <textarea value={text} onInput={({ currentTarget }) => setTyped(currentTarget.value)} />
      </label>
      <p>{isReplayed ? say.replayedUnedited(id) : say.editMeans}</p>
    </Confirm>
  );
}
