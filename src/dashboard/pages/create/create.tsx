/** A new job: a form at the left, and at the right what will happen to it, before it is there. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { askJson } from '../../api.ts';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { useAsked } from '../../parts/asked.ts';
import { ownZone } from '../../parts/clock.ts';
import { Icon } from '../../parts/icon.tsx';
import { useMay } from '../../parts/may.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { targetText } from '../../parts/words.ts';
import { go, type Route } from '../../router.ts';
import { words } from '../../words/words.ts';
import { bodyOf, type Change, EMPTY, type Filled, type Form, hasDue } from './form.ts';
import { WhatHappens } from './happens.tsx';
import '../../css/create.css';

const said = words.create;

export function Create({ path: [queue = ''], query }: Route) {
  const [form, setForm] = useState<Form>({ ...EMPTY, queue, zone: ownZone() });
  const set: Change = (change) => setForm((before) => ({ ...before, ...change }));
  const like = query.get('like') ?? '';
  const { problem, isDataGone } = useLike({ queue, id: like }, set);
  const { value: queues } = useAsked(calls.queuesList, {});
  const mayWrite = useMay({ scope: 'write', queue: form.queue });
  const [isMaking, setMaking] = useState(false);
  const [refused, setRefused] = useState<unknown>();
  const ownId = useRef(newId());

  async function make(event: Event): Promise<void> {
    event.preventDefault();
    setMaking(true);
    setRefused(undefined);
    try {
      // Its id is made once: the same request that is sent again makes no second job.
      const id = form.id.trim() === '' ? ownId.current : form.id.trim();
      const done = await askJson(calls.jobsSchedule, { queue: form.queue }, { json: bodyOf({ ...form, id }) });
      refuseOther(done, ownId.current);
      go(`job/${encodeURIComponent(done.queue)}/${encodeURIComponent(done.id)}`);
    } catch (error) {
      setRefused(error);
    } finally {
      setMaking(false);
    }
  }

  return (
    <div class="make">
      <form onSubmit={(event) => void make(event)}>
        <section class="head">
          <h1>{said.title}</h1>
        </section>
        <Where form={form} set={set} queues={queues?.queues ?? []} />
        <DueOf form={form} set={set} />
        {isDataGone ? <p class="quiet">{said.likeGone(like)}</p> : null}
        <DataOf form={form} set={set} />
        <Names form={form} set={set} />
        <MoreOptions form={form} set={set} />
        <ProblemNote problem={refused ?? problem} />
        {mayWrite || form.queue === '' ? null : <p class="quiet">{said.mayNot}</p>}
        <footer>
          {mayWrite ? (
            <button type="submit" class="primary" disabled={isMaking || form.queue === '' || !hasDue(form)}>
              {said.make}
            </button>
          ) : null}
          <a class="btn ghost" href={form.queue === '' ? '#/now' : `#/queue/${encodeURIComponent(form.queue)}`}>
            {said.back}
          </a>
        </footer>
      </form>
      <WhatHappens form={form} set={set} queues={queues?.queues ?? []} />
    </div>
  );
}

const ID_BYTES = 12;

/** Also where a page has no secure context, and so no `randomUUID`. */
const newId = (): string =>
  [...crypto.getRandomValues(new Uint8Array(ID_BYTES))].map((byte) => byte.toString(16).padStart(2, '0')).join('');

/** @throws Error in words where another job has the id. Of one with an id of this page it is the job that was asked for. */
function refuseOther({ id, status, closed }: Schemas['Scheduled'], own: string): void {
  if (status === 'closed') throw new Error(said.closed(closed?.tag ?? ''));
  if (id === own || ['scheduled', 'replaced', 'updated'].includes(status)) return;
  throw new Error(said.there(id));
}

interface Like {
  readonly problem: unknown;
  readonly isDataGone: boolean;
}

/** Takes over what another job has, as far as somebody still knows it. */
function useLike({ queue, id }: { readonly queue: string; readonly id: string }, set: Change): Like {
  const [like, setLike] = useState<Like>({ problem: undefined, isDataGone: false });
  useEffect(() => {
    if (id === '') return;
    askJson(calls.jobsGet, { queue, id }).then(
      (job) => {
        set(likeOf(job));
        setLike({ problem: undefined, isDataGone: job.data === undefined });
      },
      (problem: unknown) => setLike({ problem, isDataGone: false }),
    );
  }, [queue, id]);
  return like;
}

function likeOf({ id, name = '', data, tags = [], options }: Schemas['Job']): Partial<Form> {
  const { attempts, timeoutMs, priority = '', cost, target, maxLatenessMs, onLate = '' } = options;
  const ms = (value: number | undefined) => (value === undefined ? '' : `${value}ms`);
  const [, group = ''] = /^\{([^}:]+)\}/.exec(id) ?? [];
  return {
    ...{ name, group, priority, onLate, timeout: ms(timeoutMs), maxLateness: ms(maxLatenessMs) },
    data: data === undefined ? '' : JSON.stringify(data, undefined, 2),
    tags: tags.join(' '),
    cost: cost === undefined ? '' : String(cost),
    target: target === undefined ? '' : targetText(target),
    attempts: attempts === undefined ? '' : String(attempts),
  };
}

/** Jobs of the queue whose names are offered. */
const SEEN_MAX = 50;

function Where({ form, set, queues }: Filled & { readonly queues: readonly Schemas['QueueCounts'][] }) {
  const isKnown = queues.some(({ queue }) => queue === form.queue);
  return (
    <div class="two-fields">
      <label class="field">
        {said.queue}
        <input required list="create-queues" value={form.queue} onInput={typed(set, 'queue')} />
        <datalist id="create-queues">
          {queues.map(({ queue }) => (
            <option key={queue} value={queue} />
          ))}
        </datalist>
        {form.queue === '' || queues.length === 0 || isKnown ? null : <small>{said.newQueue}</small>}
      </label>
      <label class="field">
        {said.name}
        <input list="create-names" value={form.name} onInput={typed(set, 'name')} />
        {isKnown ? <SeenNames queue={form.queue} /> : null}
      </label>
    </div>
  );
}

/** A queue does not say which names its jobs have: those of jobs that wait are offered. */
function SeenNames({ queue }: { readonly queue: string }) {
  const { value } = useAsked(calls.jobsList, { queue, state: 'scheduled', limit: SEEN_MAX });
  const names = new Set((value?.jobs ?? []).flatMap(({ name }) => (name === undefined ? [] : [name])));
  return (
    <datalist id="create-names">
      {[...names].map((name) => (
        <option key={name} value={name} />
      ))}
    </datalist>
  );
}

const typed =
  (set: Change, name: keyof Form) =>
  ({ currentTarget: { value } }: { readonly currentTarget: { readonly value: string } }) =>
    set({ [name]: value });

function DueOf({ form, set }: Filled) {
  const choice = (when: Form['when']) => (
    <button type="button" aria-pressed={form.when === when} onClick={() => set({ when })}>
      {said.when[when]}
    </button>
  );
  return (
    <fieldset class="block">
      <legend>{said.due}</legend>
      <div class="seg wide">
        {choice('now')}
        {choice('delay')}
        {choice('at')}
      </div>
      {form.when === 'delay' ? (
        <label class="field">
          {said.delay}
          <input required value={form.delay} onInput={typed(set, 'delay')} />
        </label>
      ) : null}
      {form.when === 'at' ? (
        <div class="two-fields">
          <label class="field">
            {said.at}
            <input required type="datetime-local" value={form.at} onInput={typed(set, 'at')} />
          </label>
          <label class="field">
            {said.zone}
            <input required list="create-zones" value={form.zone} onInput={typed(set, 'zone')} />
            <datalist id="create-zones">
              {ZONES.map((zone) => (
                <option key={zone} value={zone} />
              ))}
            </datalist>
          </label>
        </div>
      ) : null}
    </fieldset>
  );
}

const ZONES: readonly string[] = ['UTC', ...Intl.supportedValuesOf('timeZone')];

function DataOf({ form, set }: Filled) {
  const problem = faultIn(form.data);
  return (
    <fieldset class="block">
      <legend>
        {said.data}
        {form.data.trim() === '' ? null : (
          <span class={problem === '' ? 'ok' : 'ok bad-text'}>
            {problem === '' ? <Icon name="s-done" /> : <Icon name="s-failed" />}
            {problem === '' ? said.isJson : problem}
          </span>
        )}
      </legend>
      <textarea
        rows={6}
        spellcheck={false}
        aria-label={said.data}
        placeholder="{}"
        value={form.data}
        onInput={typed(set, 'data')}
      />
    </fieldset>
  );
}

/** Empty: it is JSON. */
function faultIn(data: string): string {
  try {
    if (data.trim() !== '') JSON.parse(data);
    return '';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function Names({ form, set }: Filled) {
  return (
    <div class="two-fields">
      <label class="field">
        {said.id}
        <input value={form.id} onInput={typed(set, 'id')} />
        <small>{said.idMeans}</small>
      </label>
      <label class="field">
        {said.tags}
        <input value={form.tags} onInput={typed(set, 'tags')} />
        <small>{said.tagsMean}</small>
      </label>
    </div>
  );
}

function MoreOptions({ form, set }: Filled) {
  const text = (name: 'group' | 'cost' | 'target' | 'attempts' | 'timeout' | 'maxLateness') => (
    <label class="field">
      {said.options[name]}
      <input value={form[name]} onInput={typed(set, name)} />
    </label>
  );
  const choice = (name: 'priority' | 'onLate', values: readonly string[]) => (
    <label class="field">
      {said.options[name]}
      <select value={form[name]} onChange={typed(set, name)}>
        <option value="">{said.asQueue}</option>
        {values.map((value) => (
          <option key={value} value={value}>
            {said.choices[value]}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <details class="more-opts">
      <summary>
        <span class="turn">
          <Icon name="chevron" />
        </span>
        {said.more} <span class="quiet">{said.asQueue}</span>
      </summary>
      <div class="two-fields">
        {text('group')}
        {choice('priority', ['high', 'normal', 'low'])}
        {text('cost')}
        {text('target')}
        {text('attempts')}
        {text('timeout')}
        {text('maxLateness')}
        {choice('onLate', ['drop', 'dead', 'run'])}
      </div>
    </details>
  );
}
