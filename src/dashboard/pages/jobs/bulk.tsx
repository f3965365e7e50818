/**
 * Cancel, reschedule or run all jobs that the filter finds. First a dry run says how many and which; only then there is
 * a button that does it, and it names the number.
 */

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ask } from '../../api.ts';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { Confirm, Which } from '../../parts/confirm.tsx';
import { countText } from '../../parts/words.ts';
import { bodyOf, instantOf, type JobFilter } from './filters.ts';

const ACTIONS = {
  cancel: { label: 'Cancel', done: 'cancelled' },
  run: { label: 'Run now', done: 'due now' },
  reschedule: { label: 'Reschedule', done: 'rescheduled' },
} as const;
type Action = keyof typeof ACTIONS;

interface Bulks {
  readonly queue: string;
  readonly filter: JobFilter;
  readonly done: () => void;
}

export function Bulk({ queue, filter, done }: Bulks) {
  const [action, setAction] = useState<Action>();
  const [told, setTold] = useState('');
  const finish = (text: string) => {
    setAction(undefined);
    setTold(text);
    done();
  };
  return (
    <section aria-label="All jobs of this filter" class="bulk">
      <p class="actions">
        <span>All of them:</span>
        {(Object.keys(ACTIONS) as Action[]).map((one) => (
          <button key={one} type="button" onClick={() => setAction(one)}>
            {ACTIONS[one].label} …
          </button>
        ))}
      </p>
      <p role="status">{told}</p>
      {action === undefined ? null : (
        <Question {...{ queue, filter, action, finish }} close={() => setAction(undefined)} />
      )}
    </section>
  );
}

interface Questions extends Omit<Bulks, 'done'> {
  readonly action: Action;
  readonly finish: (told: string) => void;
  readonly close: () => void;
}

function Question({ queue, filter, action, finish, close }: Questions) {
  const [due, setDue] = useState<NewDue>({});
  const [dry, setDry] = useState<Sum>();
  const [reached, setReached] = useState(BEGINNING);
  const left = useRef(new AbortController());
  useEffect(() => () => left.current.abort(), []);
  const { signal } = left.current;
  const sliceOf = (dryRun: boolean) => (cursor: string | undefined) => {
    const body = { filter: bodyOf(filter), dryRun, cursor };
    if (action === 'cancel') return ask(calls.jobsCancelMany, { queue }, body);
    if (action === 'run') return ask(calls.jobsRunMany, { queue }, body);
    return ask(calls.jobsRescheduleMany, { queue }, { ...body, due });
  };

  async function act(): Promise<void> {
    if (dry === undefined) {
      const of = { slice: sliceOf(true), signal, from: BEGINNING, onSlice: setReached };
      setDry(await eachSlice(of));
      setReached(BEGINNING);
      return;
    }
    // After an error it goes on where it stopped: a shift that began anew would move jobs twice.
    const of = { slice: sliceOf(false), signal, from: reached, onSlice: setReached };
    finish(resultText(action, await eachSlice(of)));
  }

  return (
    <Confirm
      title={`${ACTIONS[action].label}: all jobs of the filter`}
      yes={dry === undefined ? 'Show which' : `${ACTIONS[action].label}: ${countText(dry.matched, 'job')}`}
      isDangerous={dry !== undefined && action === 'cancel'}
      canConfirm={(action !== 'reschedule' || isDue(due)) && dry?.matched !== 0}
      act={act}
      close={close}
    >
      {action === 'reschedule' ? (
        <DueField
          due={due}
          setDue={(given) => {
            setDue(given);
            setDry(undefined);
            setReached(BEGINNING);
          }}
          canShift={filter.tag !== '' || filter.set !== ''}
        />
      ) : null}
      {dry === undefined ? <p>The next step changes nothing. It shows which jobs are meant.</p> : <DryRun sum={dry} />}
      <p role="status">{reached.sum.matched > 0 ? `${countText(reached.sum.matched, 'job')} looked at` : ''}</p>
    </Confirm>
  );
}

/** A due time for a body of the API: at most one of them. */
export type NewDue = Readonly<Partial<Record<'delay' | 'at' | 'shift', string>>>;

interface Due {
  readonly due: NewDue;
  readonly setDue: (due: NewDue) => void;
  /** Many jobs: each may move from the due time that it has. The API asks for a tag or a set then. */
  readonly canShift?: boolean;
}

/** A delay from now, or a local time, or so much from the due time of each. What is typed last counts, and empties the others. */
export function DueField({ due, setDue, canShift }: Due) {
  const time = useRef<HTMLInputElement>(null);
  const isOther = due.delay !== undefined || due.shift !== undefined;
  useLayoutEffect(() => {
    if (isOther && time.current) time.current.value = '';
  }, [isOther]);
  const text = (name: keyof NewDue) => (event: { readonly currentTarget: HTMLInputElement }) =>
    setDue(given(name, event.currentTarget.value.trim()));
  return (
    <>
      <div class="fields">
        <label>
          Delay from now, such as 2h
          <input value={due.delay ?? ''} onInput={text('delay')} />
        </label>
        <label>
          or at
          <input
            ref={time}
            type="datetime-local"
            onInput={(event) => setDue(given('at', instantOf(event.currentTarget.value)))}
          />
        </label>
        {canShift ? (
          <label>
            or each later by, such as 1d, or earlier by, such as -1h
            <input value={due.shift ?? ''} onInput={text('shift')} />
          </label>
        ) : null}
      </div>
      {canShift === false ? <p>To move each job from its own due time, filter by a tag or a set.</p> : null}
      {due.shift === undefined ? null : (
        <p>Where a request fails, look at its jobs before you go on: they may have been moved.</p>
      )}
    </>
  );
}

const given = (name: keyof NewDue, text: string): NewDue => (text === '' ? {} : { [name]: text });

export const isDue = (due: NewDue): boolean => Object.keys(due).length > 0;

function DryRun({ sum }: { readonly sum: Sum }) {
  return (
    <>
      <p>
        <strong>{countText(sum.matched, 'job')}</strong>
        {sum.matched > sum.ids.length ? `, of them the first ${sum.ids.length}:` : ':'}
      </p>
      <Which of="jobs">
        {sum.ids.map((id) => (
          <li key={id} class="id">
            {id}
          </li>
        ))}
      </Which>
      <Skipped skipped={sum.skipped} />
    </>
  );
}

function Skipped({ skipped }: { readonly skipped: Sum['skipped'] }) {
  const text = skippedText(skipped);
  return text === '' ? null : <p>Left alone: {text}.</p>;
}

const skippedText = (skipped: Sum['skipped']): string =>
  Object.entries(skipped)
    .filter(([, count]) => count > 0)
    .map(([reason, count]) => `${count} ${reason}`)
    .join(', ');

function resultText(action: Action, { changed, requested, skipped }: Sum): string {
  const parts = [`${countText(changed, 'job')} ${ACTIONS[action].done}`];
  if (requested > 0) parts.push(`${countText(requested, 'running job')} asked to stop`);
  const left = skippedText(skipped);
  if (left !== '') parts.push(`left alone: ${left}`);
  return `${parts.join('; ')}.`;
}

// A change of all jobs that a filter finds. The API does a bounded slice per request and says where to go on: so the
// slices are asked for one after the other, and their numbers added up.

type Slice = Schemas['ChangedJobs'];

interface Sum {
  readonly matched: number;
  readonly changed: number;
  readonly requested: number;
  readonly skipped: Readonly<Record<string, number>>;
  /** The first of them. */
  readonly ids: readonly string[];
}

const NOTHING: Sum = { matched: 0, changed: 0, requested: 0, skipped: {}, ids: [] };
const IDS_SHOWN = 20;

/** How far a change has come. */
interface Reached {
  readonly sum: Sum;
  readonly cursor: string | undefined;
}

const BEGINNING: Reached = { sum: NOTHING, cursor: undefined };

interface Slices {
  /** Asks for one. */
  readonly slice: (cursor: string | undefined) => Promise<Slice | object>;
  readonly signal: AbortSignal;
  readonly from: Reached;
  readonly onSlice: (reached: Reached) => void;
}

/** Until there is no more, or it is aborted: what was changed by then stays changed. */
async function eachSlice({ slice: ask, signal, from, onSlice }: Slices): Promise<Sum> {
  let { sum, cursor } = from;
  do {
    const slice = await ask(cursor);
    if (!('matched' in slice)) throw new Error('The answer is that of a list, and a filter was given.');
    sum = add(sum, slice);
    cursor = slice.cursor;
    onSlice({ sum, cursor });
  } while (cursor !== undefined && !signal.aborted);
  return sum;
}

function add(sum: Sum, slice: Slice): Sum {
  const skipped: Record<string, number> = { ...sum.skipped };
  for (const [reason, count] of Object.entries(slice.skipped)) skipped[reason] = (skipped[reason] ?? 0) + count;
  return {
    matched: sum.matched + slice.matched,
    changed: sum.changed + slice.changed,
    requested: sum.requested + (slice.requested ?? 0),
    skipped,
    ids: [...sum.ids, ...(slice.ids ?? [])].slice(0, IDS_SHOWN),
  };
}
