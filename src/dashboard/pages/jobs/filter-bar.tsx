/** What is asked of the list, as words: each can be taken away, and a field adds one. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { useLive } from '../../live.ts';
import { Icon } from '../../parts/icon.tsx';
import { words } from '../../words/words.ts';
import { instantOf, type JobFilter, localOf, OVER, STATES, WORDS, withState, withTyped } from './filters.ts';
import { dayText } from './times.ts';

interface Bar {
  readonly filter: JobFilter;
  readonly set: (filter: JobFilter) => void;
  readonly children?: ComponentChildren;
}

/** It stays while the address changes: who goes through a chooser by keyboard keeps the focus there. */
export function FilterBar({ filter, set, children }: Bar) {
  const [typed, setTyped] = useState('');
  return (
    <search>
      <form
        class="filter"
        aria-label={words.jobs.filter}
        onSubmit={(event) => {
          event.preventDefault();
          if (typed.trim() !== '') set(withTyped(filter, typed));
          setTyped('');
        }}
      >
        {WORDS.filter((word) => filter[word] !== '').map((word) => (
          <span key={word} class="chip">
            {word === 'tag' ? <Icon name="tag" /> : null}
            {words.jobs.word[word]} <b>{filter[word]}</b>
            <button
              type="button"
              aria-label={words.jobs.without(words.jobs.word[word])}
              onClick={() => set({ ...filter, [word]: '' })}
            >
              <Icon name="close" />
            </button>
          </span>
        ))}
        <QueueChip filter={filter} set={set} />
        <StateChip filter={filter} set={set} />
        <DueChip filter={filter} set={set} />
        <a class="chip open" href="#/at">
          {words.jobs.asOf} <b>{words.jobs.now}</b>
          <Icon name="clock" />
        </a>
        <label class="grow">
          <span class="away">{words.jobs.add}</span>
          <input
            value={typed}
            placeholder={words.jobs.addSuch}
            onInput={({ currentTarget }) => setTyped(currentTarget.value)}
          />
        </label>
        {children}
      </form>
    </search>
  );
}

function QueueChip({ filter, set }: Bar) {
  const { now } = useLive();
  const names = new Set([...(now?.queues.map(({ queue }) => queue) ?? []), filter.queue]);
  names.delete('');
  return (
    <Chooser
      name={words.jobs.queue}
      value={filter.queue}
      choose={(queue) => set({ ...filter, queue })}
      options={[['', words.jobs.any], ...[...names].sort().map((queue) => [queue, queue] as const)]}
    />
  );
}

function StateChip({ filter, set }: Bar) {
  const { state } = filter;
  const known: readonly (readonly [string, string])[] = [
    ['', words.jobs.notOver],
    ...STATES.map((one) => [one, words.states[one]] as const),
    [OVER.join(','), words.jobs.over],
  ];
  const given = known.some(([one]) => one === state) ? [] : [[state, state] as const];
  return (
    <Chooser
      name={words.jobs.state}
      value={state}
      choose={(one) => set(withState(filter, one))}
      options={[...known, ...given]}
    />
  );
}

interface Choice {
  readonly name: string;
  readonly value: string;
  readonly choose: (value: string) => void;
  readonly options: readonly (readonly [value: string, text: string])[];
}

function Chooser({ name, value, choose, options }: Choice) {
  return (
    <label class="chip open choose">
      {name}
      <select aria-label={name} value={value} onChange={({ currentTarget }) => choose(currentTarget.value)}>
        {options.map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
      <Icon name="down" />
    </label>
  );
}

function DueChip({ filter, set }: Bar) {
  const id = useId();
  const { dueFrom, dueTo } = filter;
  const menu = useRef<HTMLDivElement>(null);
  const [draft, setDraft] = useState({ dueFrom, dueTo });
  useEffect(() => setDraft({ dueFrom, dueTo }), [dueFrom, dueTo]);
  const show = (changed: JobFilter) => {
    menu.current?.hidePopover();
    set(changed);
  };
  const field = (name: 'dueFrom' | 'dueTo') => (
    <label class="field">
      {words.jobs[name]}
      <input
        type="datetime-local"
        value={localOf(draft[name])}
        onInput={({ currentTarget }) => setDraft({ ...draft, [name]: instantOf(currentTarget.value) })}
      />
    </label>
  );
  return (
    <>
      <button type="button" class="chip open" {...{ popovertarget: id }}>
        {words.jobs.due} <b>{dueText(filter)}</b>
        <Icon name="down" />
      </button>
      <div ref={menu} id={id} class="menu due" {...{ popover: 'auto' }}>
        {field('dueFrom')}
        {field('dueTo')}
        <p class="row">
          <button type="button" class="ghost" onClick={() => show({ ...filter, dueFrom: '', dueTo: '' })}>
            {words.jobs.anyTime}
          </button>
          <button type="button" class="primary" onClick={() => show(withState({ ...filter, ...draft }, filter.state))}>
            {words.jobs.show}
          </button>
        </p>
      </div>
    </>
  );
}

function dueText({ dueFrom, dueTo }: JobFilter): string {
  const [from, to] = [dueFrom, dueTo].map((text) => (text === '' ? '' : dayText(Date.parse(text), Date.now())));
  return words.jobs.range(from ?? '', to ?? '');
}
