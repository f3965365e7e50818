/** One field for all: jobs of all queues, queues, schedules, processes, errors, a time of day, and what can be done. `/` opens it. */
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { ask } from '../../api.ts';
import * as calls from '../../calls.ts';
import { useLive } from '../../live.ts';
import { Icon } from '../../parts/icon.tsx';
import { useWhatMay } from '../../parts/may.tsx';
import { ProblemNote, Unread } from '../../parts/problem.tsx';
import { State } from '../../parts/state.tsx';
import { words } from '../../words/words.ts';
import { type FoundJobs, type Group, type Hit, jobsFor, type Known, moments, near } from './found.ts';
import '../../css/search.css';

/** Who types is not asked for each letter. */
const CALM_MS = 150;
/** Fewer letters stand in nearly every error. */
const ERROR_CHARS_MIN = 2;
/** Dead letters are read one by one, so errors of a day are enough. */
const ERRORS_OF = '1d';

export function Palette({ close }: { readonly close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState('');
  const [at, setAt] = useState(0);
  const { groups, unread, problem, isBusy } = useFound(typed);
  const list = useId();
  useEffect(() => {
    const { current } = dialog;
    current?.showModal();
    return () => current?.close();
  }, []);
  const hits = groups.flatMap((group) => group.hits);
  const chosen = Math.min(at, hits.length - 1);
  // Whoever presses Enter before the answer is there means what the answer puts first.
  const [isMeant, setMeant] = useState(false);
  useEffect(() => {
    if (!isMeant || isBusy) return;
    setMeant(false);
    document.getElementById(`${list}-${chosen}`)?.click();
  }, [isMeant, isBusy]);
  const pressed = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key] ?? 0;
    if (step !== 0 && hits.length > 0) setAt((chosen + step + hits.length) % hits.length);
    else if (event.key === 'Enter') setMeant(true);
    else return;
    event.preventDefault();
  };
  useEffect(() => document.getElementById(`${list}-${chosen}`)?.scrollIntoView({ block: 'nearest' }), [chosen]);
  return (
    <dialog ref={dialog} class="palette" aria-label={words.places.search} onClose={close}>
      <label class="ask">
        <Icon name="search" />
        <span class="away">{words.places.search}</span>
        <input
          role="combobox"
          aria-expanded="true"
          aria-controls={list}
          aria-activedescendant={chosen < 0 ? undefined : `${list}-${chosen}`}
          placeholder={words.search.such}
          value={typed}
          onInput={({ currentTarget }) => {
            setTyped(currentTarget.value);
            setAt(0);
            setMeant(false);
          }}
          onKeyDown={pressed}
        />
        <button type="button" class="ghost shut" onClick={close}>
          {words.search.close}
        </button>
      </label>
      <div role="listbox" id={list} aria-label={words.search.found} aria-busy={isBusy}>
        {groups.map((group, nth) => (
          <Section
            key={group.name}
            group={group}
            list={list}
            from={before(groups, nth)}
            chosen={chosen}
            close={close}
          />
        ))}
      </div>
      <p role="status" class={hits.length === 0 && !isBusy ? 'none-found' : 'away'}>
        {isBusy ? words.search.looking : words.search.count(hits.length)}
      </p>
      <ProblemNote problem={problem} />
      <Unread unread={unread} />
      <footer>
        <span>
          <kbd>↑</kbd> <kbd>↓</kbd> {words.search.choose}
        </span>
        <span>
          <kbd>↵</kbd> {words.search.open}
        </span>
        <span class="right">{words.search.also}</span>
      </footer>
    </dialog>
  );
}

const before = (groups: readonly Group[], nth: number): number =>
  groups.slice(0, nth).reduce((sum, { hits }) => sum + hits.length, 0);

interface SectionOf {
  readonly group: Group;
  readonly list: string;
  /** How many hits stand before it. */
  readonly from: number;
  readonly chosen: number;
  readonly close: () => void;
}

function Section({ group: { name, hits }, list, from, chosen, close }: SectionOf) {
  return (
    <div role="group" aria-label={name} class="section">
      <div class="h" aria-hidden="true">
        {name}
      </div>
      {hits.map((hit, at) => (
        <Option
          key={`${hit.href} ${hit.main}`}
          id={`${list}-${from + at}`}
          hit={hit}
          isChosen={from + at === chosen}
          close={close}
        />
      ))}
    </div>
  );
}

interface OptionOf {
  readonly id: string;
  readonly hit: Hit;
  readonly isChosen: boolean;
  readonly close: () => void;
}

/** The field keeps the focus; what is chosen is told by it. */
function Option({ id, hit: { href, icon, state, main, note = '', right = '' }, isChosen, close }: OptionOf) {
  return (
    <a id={id} href={href} role="option" aria-selected={isChosen} tabIndex={-1} onClick={close}>
      {state === undefined ? <Icon name={icon} /> : <State of={state} text="" />}
      <span class={state === undefined ? 'main' : 'main id'}>{main}</span>
      <small>{note}</small>
      <em>{right}</em>
    </a>
  );
}

const NOTHING: Omit<Known, 'queues' | 'may'> = { schedules: [], workers: [], kinds: [] };
const NO_JOBS: FoundJobs = { groups: [], unread: [] };

/** The answer to what was typed. */
interface Found {
  readonly typed: string;
  readonly jobs: FoundJobs;
  readonly problem?: unknown;
}

/** Schedules, workers and errors are asked for once, and looked through here. */
function useKnown(typed: string): typeof NOTHING {
  const [known, setKnown] = useState(NOTHING);
  const isTyped = typed.trim() !== '';
  useEffect(() => {
    if (!isTyped) return;
    // What the caller may not see is not there, and nothing is said of it.
    void ask(calls.schedulesList, {}).then(
      (page) => setKnown((before) => ({ ...before, schedules: page.schedules.map(({ name }) => name) })),
      () => undefined,
    );
    void ask(calls.workers, {}).then(
      ({ workers }) => setKnown((before) => ({ ...before, workers })),
      () => undefined,
    );
  }, [isTyped]);
  const isError = typed.trim().length >= ERROR_CHARS_MIN;
  useEffect(() => {
    if (!isError) return;
    void ask(calls.deadOverview, { newerThan: ERRORS_OF }).then(
      ({ kinds }) => setKnown((before) => ({ ...before, kinds })),
      () => undefined,
    );
  }, [isError]);
  return known;
}

function useFound(typed: string) {
  const { now } = useLive();
  const may = useWhatMay();
  const known = useKnown(typed);
  const [found, setFound] = useState<Found>({ typed: '', jobs: NO_JOBS });
  const isAsked = typed.trim().length >= 2;
  useEffect(() => {
    if (!isAsked) return setFound({ typed, jobs: NO_JOBS });
    let isGone = false;
    const timer = setTimeout(() => {
      void jobsFor(typed, { nowMs: Date.now(), may }).then(
        (jobs) => isGone || setFound({ typed, jobs }),
        (problem: unknown) => isGone || setFound({ typed, jobs: NO_JOBS, problem }),
      );
    }, CALM_MS);
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [typed]);
  const nowMs = Date.now();
  const groups = [
    ...moments(typed, nowMs),
    ...found.jobs.groups,
    ...near(typed, { ...known, queues: now?.queues ?? [], may }, nowMs),
  ];
  const isBusy = isAsked && found.typed !== typed;
  return { groups, unread: found.jobs.unread, problem: isBusy ? undefined : found.problem, isBusy };
}
