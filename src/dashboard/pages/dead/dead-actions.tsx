/** Replays or purges the chosen dead letters: a dry run first, then a button that names the number. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { ask } from '../../api.ts';
import { at } from '../../parts/at.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { countText } from '../../parts/words.ts';

/** Which dead letters; empty: all. */
export type Choice = Readonly<Partial<Record<'reason' | 'error' | 'name', string>>>;

interface Actions {
  readonly queue: string;
  readonly choice: Choice;
  readonly done: () => void;
}

export function DeadActions({ queue, choice, done }: Actions) {
  const [action, setAction] = useState<'replay' | 'purge'>();
  const [told, setTold] = useState('');
  const finish = (text: string) => {
    setAction(undefined);
    setTold(text);
    done();
  };
  return (
    <>
      <p class="actions">
        <button type="button" onClick={() => setAction('replay')}>
          Replay them …
        </button>
        <button type="button" onClick={() => setAction('purge')}>
          Purge them …
        </button>
      </p>
      <p role="status">{told}</p>
      {action === undefined ? null : (
        <Question {...{ queue, choice, action, finish }} close={() => setAction(undefined)} />
      )}
    </>
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
  const which = Object.keys(choice).length === 0 ? { all: true } : choice;
  const body = { ...which, ...(action === 'replay' && spread !== '' ? { spread } : {}) };
  const what = `POST ${at`queues/${queue}/dead/${action}`}`;

  async function act(): Promise<void> {
    const sum = await eachSlice(what, { ...body, dryRun: matched === undefined }, left.current.signal);
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

/** Slices of a bounded size, until there is no more. */
async function eachSlice(what: string, body: object, signal: AbortSignal): Promise<Sum> {
  let sum: Sum = { matched: 0, replayed: 0, live: 0, empty: 0, gone: 0, removed: 0 };
  let cursor: string | undefined;
  do {
    const slice: Partial<Sum> & { readonly next?: string } = await ask(
      what,
      cursor === undefined ? body : { ...body, cursor },
    );
    const added = Object.entries(sum).map(([name, count]) => [name, count + (slice[name as keyof Sum] ?? 0)]);
    sum = Object.fromEntries(added);
    cursor = slice.next;
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
