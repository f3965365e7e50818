/**
 * The dead letters of all queues by what they died of: which kinds are new, when they died, what they share; of one queue also
 * one by one. What is chosen stands in the address; replay and purge act on what is chosen.
 */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { Schemas } from '../../api-types.ts';
import { queryOf } from '../../call.ts';
import * as calls from '../../calls.ts';
import { useEvery, useLive } from '../../live.ts';
import { useAsked } from '../../parts/asked.ts';
import { ProblemNote, Unread } from '../../parts/problem.tsx';
import { momentText } from '../../parts/when.ts';
import { numberText } from '../../parts/words.ts';
import { go, type Route } from '../../router.ts';
import { words } from '../../words/words.ts';
import { choiceFrom, type DeadChoice } from './choice.ts';
import { isNew, Kinds } from './kinds.tsx';
import { Letters } from './letters.tsx';
import '../../css/dead.css';

const say = words.dead;

/** How often the page may ask again while jobs die. */
const AGAIN_MS = 10_000;

export function Dead({ path: [queue], query }: Route) {
  const choice = choiceFrom(query);
  const { value, problem, isBusy, reload } = useAsked(calls.deadOverview, { ...choice, queue });
  useEvery(AGAIN_MS, useReloadOnDeath(reload));
  const [told, setTold] = useState('');
  const [round, setRound] = useState(0);
  const done = (text: string) => {
    setTold(text);
    setRound(round + 1);
    reload();
  };
  return (
    <>
      <Sentence queue={queue} overview={value} />
      <Filter queue={queue} choice={choice} search={query.get('search') ?? ''} />
      <ProblemNote problem={problem} />
      <Unread unread={value?.unread} />
      <p role="status" aria-busy={isBusy && value === undefined}>
        {told}
      </p>
      {value === undefined ? null : (
        <Kinds overview={value} queue={queue} choice={choice} search={query.get('search') ?? ''} done={done} />
      )}
      {queue === undefined ? null : (
        <Letters key={JSON.stringify([queue, choice, round])} queue={queue} choice={choice} done={done} />
      )}
    </>
  );
}

/**
 * Asks again when the live view counts other dead letters than at the last time, and once more after that: several who look
 * share an answer for some seconds, so the first one may be from before.
 */
function useReloadOnDeath(reload: () => void): () => void {
  const dead = useLive().now?.queues.reduce((sum, one) => sum + one.dead, 0);
  const [now, last, before] = [useRef(dead), useRef(dead), useRef(dead)];
  useEffect(() => {
    now.current = dead;
    last.current ??= dead;
    before.current ??= dead;
  }, [dead]);
  return useCallback(() => {
    const isCalm = now.current === before.current && now.current === last.current;
    [before.current, last.current] = [last.current, now.current];
    if (!isCalm) reload();
  }, [reload]);
}

interface Said {
  readonly queue: string | undefined;
  readonly overview: Schemas['DeadLetterOverview'] | undefined;
}

function Sentence({ queue, overview }: Said) {
  const nowMs = Date.now();
  const kinds = overview?.kinds ?? [];
  const total = kinds.reduce((sum, { count }) => sum + count, overview?.others ?? 0);
  const lastMs = Math.max(...kinds.map((kind) => kind.lastMs));
  const until = overview?.untilMs;
  // Where not all dead letters were looked at, an older one of any kind may be there.
  const fresh = until === undefined ? kinds.filter((kind) => isNew(kind, nowMs)).length : 0;
  return (
    <section class="say">
      <h1>
        {queue === undefined ? null : (
          <>
            {say.of} <a href={`#/queue/${encodeURIComponent(queue)}`}>{queue}</a>:{' '}
          </>
        )}
        {overview === undefined ? say.looking : total === 0 ? say.none : say.sum(total, kinds.length)}
        {fresh === 0 || total === 0 ? null : ` ${say.fresh(fresh, kinds.length)}`}
      </h1>
      {total === 0 ? null : <p>{say.last(momentText(lastMs, nowMs))}</p>}
      {until === undefined ? null : <p>{say.until(numberText(overview?.scanned ?? 0), momentText(until, nowMs))}</p>}
    </section>
  );
}

interface Filtered {
  readonly queue: string | undefined;
  readonly choice: DeadChoice;
  readonly search: string;
}

const AGES = ['', '1h', '24h', '7d'] as const;

function Filter({ queue, choice, search }: Filtered) {
  const queues = useLive().now?.queues.filter(({ dead }) => dead > 0) ?? [];
  const names = [...new Set([...queues.map((one) => one.queue), ...(queue === undefined ? [] : [queue])])].sort();
  const to = (next: { readonly queue?: string | undefined } & DeadChoice & { readonly search?: string }) => {
    const { queue: other = queue ?? '', ...rest } = next;
    go(`dead${other === '' ? '' : `/${encodeURIComponent(other)}`}${queryOf({ ...choice, search, ...rest })}`);
  };
  return (
    <form class="filter" aria-label={say.filter} onSubmit={(event) => event.preventDefault()}>
      <label class="chip open">
        {say.queue}
        <select value={queue ?? ''} onChange={({ currentTarget }) => to({ queue: currentTarget.value })}>
          <option value="">{say.any}</option>
          {names.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <label class="chip open">
        {say.died}
        <select value={choice.newerThan ?? ''} onChange={({ currentTarget }) => to({ newerThan: currentTarget.value })}>
          {AGES.map((age) => (
            <option key={age} value={age}>
              {age === '' ? say.anyTime : say.ages[age]}
            </option>
          ))}
        </select>
      </label>
      {(['reason', 'error', 'name', 'tag', 'id'] as const).map((field) =>
        choice[field] === undefined ? null : (
          <span key={field} class="chip">
            {say.fields[field]} <b>{choice[field]}</b>
            <button type="button" aria-label={say.without(say.fields[field])} onClick={() => to({ [field]: '' })}>
              ×
            </button>
          </span>
        ),
      )}
      <label class="grow">
        <span class="away">{say.search}</span>
        <input
          key={search}
          defaultValue={search}
          placeholder={say.searchFor}
          onChange={({ currentTarget }) => to(typed(currentTarget.value.trim()))}
        />
      </label>
    </form>
  );
}

/** `tag:user:42`, `name:welcome` and `id:…` go to the API; other text is looked for in the kinds that are shown. */
function typed(text: string): DeadChoice & { readonly search?: string } {
  const [, field, value] = /^(tag|name|id):(.+)$/s.exec(text) ?? [];
  return field === undefined ? { search: text } : { [field]: value?.trim(), search: '' };
}
