/** Who changed what, newest first: from what to what, and which jobs. The filter stands in the address. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { askJson } from '../../api.ts';
import { queryOf } from '../../call.ts';
import * as calls from '../../calls.ts';
import { useLive } from '../../live.ts';
import { useList } from '../../parts/asked.ts';
import { localText, secondText, utcText } from '../../parts/clock.ts';
import type { Cell } from '../../parts/csv.ts';
import { Export } from '../../parts/export.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { Id, ListActions } from '../../parts/table.tsx';
import { longDayText, midnightMs } from '../../parts/when.ts';
import { go, type Route } from '../../router.ts';
import { words } from '../../words/words.ts';
import { aboutOf, type Entry, Undo } from './undo.tsx';
import '../../css/audit.css';

const say = words.audit;

const FIELDS = ['who', 'verb', 'queue', 'target', 'from', 'to'] as const;
type Filter = Readonly<Partial<Record<(typeof FIELDS)[number], string>>>;

const filterFrom = (query: URLSearchParams): Filter =>
  Object.fromEntries(FIELDS.flatMap((field) => (query.get(field) ? [[field, query.get(field) ?? '']] : [])));

export function Audit({ query }: Route) {
  const filter = filterFrom(query);
  const { rows, cursor, problem, isBusy, more, reload } = useList(
    calls.audit,
    { ...filter, limit: 100 },
    { rowsOf: ({ entries }) => entries, keyOf: ({ entry }) => entry },
  );
  const [told, setTold] = useState('');
  const done = (text: string) => {
    setTold(text);
    reload();
  };
  const newest = new Set([...Map.groupBy(rows, aboutOf).values()].flatMap(([first]) => first?.entry ?? []));
  const days = [...Map.groupBy(rows, ({ atMs }) => midnightMs(atMs))];
  const isAll = Object.keys(filter).length === 0;
  return (
    <>
      <section class="head changes">
        <h1>
          {say.title} <span class="quiet">{say.keeps}</span>
        </h1>
      </section>
      <FilterRow filter={filter} known={rows} />
      <p role="status">{told}</p>
      <ProblemNote problem={problem} />
      {rows.length > 0 || isBusy || problem !== undefined ? null : (
        <section class="empty">
          <h2>{isAll ? say.none : say.noneSuch}</h2>
          <p>{isAll ? say.noneWhy : say.noneSuchWhy}</p>
        </section>
      )}
      {rows.length === 0 ? null : (
        <table class="list audit texts">
          <thead>
            <tr>
              {[say.when, say.who, say.did, say.what, say.why].map((text) => (
                <th key={text} scope="col">
                  {text}
                </th>
              ))}
              <th scope="col">
                <span class="away">{say.undo.column}</span>
              </th>
            </tr>
          </thead>
          {days.map(([day, ofDay]) => (
            <tbody key={day}>
              <tr class="group">
                <th colSpan={6} scope="rowgroup">
                  {longDayText(day, Date.now())} <span>{ofDay.length}</span>
                </th>
              </tr>
              {ofDay.map((entry) => (
                <Row key={entry.entry} entry={entry} isNewest={newest.has(entry.entry)} done={done} />
              ))}
            </tbody>
          ))}
        </table>
      )}
      <p role="status" aria-busy={isBusy}>
        {isBusy ? say.looking : say.shown(rows.length)}
      </p>
      <ListActions {...{ cursor, isBusy, more, reload }} />
    </>
  );
}

/** An hour, a day, a week ago; the address has the instant, so that it means the same to whoever is sent it. */
const AGES = { '': 0, hour: 3_600_000, day: 86_400_000, week: 604_800_000 } as const;

function FilterRow({ filter, known }: { readonly filter: Filter; readonly known: readonly Entry[] }) {
  const queues = useLive().now?.queues.map(({ queue }) => queue) ?? [];
  const to = (change: Filter) => go(`audit${queryOf({ ...filter, ...change })}`);
  const people = valuesOf(
    known.map(({ who }) => who),
    filter.who,
  );
  const verbs = valuesOf(
    known.flatMap(({ verb }) => [verb.split('.')[0] ?? verb, verb]),
    filter.verb,
  );
  return (
    <form class="filter" aria-label={say.filter} onSubmit={(event) => event.preventDefault()}>
      <Chip name={say.whoChip} any={say.anybody} value={filter.who} values={people} set={(who) => to({ who })} />
      <Chip name={say.didChip} any={say.anything} value={filter.verb} values={verbs} set={(verb) => to({ verb })} />
      <Chip
        name={say.toChip}
        any={say.anyQueue}
        value={filter.queue}
        values={valuesOf(queues, filter.queue)}
        set={(queue) => to({ queue })}
      />
      <label class="chip open">
        {say.whenChip}
        <select
          value={filter.from === undefined ? '' : 'from'}
          onChange={({ currentTarget: { value } }) => to({ from: fromOf(value), to: '' })}
        >
          <option value="">{say.anyTime}</option>
          {filter.from === undefined ? null : (
            <option value="from" disabled>
              {say.since(localText(Date.parse(filter.from)))}
            </option>
          )}
          {(['hour', 'day', 'week'] as const).map((age) => (
            <option key={age} value={age}>
              {say.ages[age]}
            </option>
          ))}
        </select>
      </label>
      <label class="grow">
        <span class="away">{say.target}</span>
        <input
          key={filter.target ?? ''}
          defaultValue={filter.target ?? ''}
          placeholder={say.targetOf}
          onChange={({ currentTarget }) => to({ target: currentTarget.value.trim() })}
        />
      </label>
      <Export name="audit" rows={() => rowsOf(filter)} />
    </form>
  );
}

const fromOf = (age: string): string =>
  age === 'hour' || age === 'day' || age === 'week' ? new Date(Date.now() - AGES[age]).toISOString() : '';

const valuesOf = (known: readonly string[], chosen: string | undefined): readonly string[] =>
  [...new Set(chosen === undefined ? known : [...known, chosen])].sort();

interface ChipOf {
  readonly name: string;
  readonly any: string;
  readonly value: string | undefined;
  readonly values: readonly string[];
  readonly set: (value: string) => void;
}

function Chip({ name, any, value = '', values, set }: ChipOf) {
  return (
    <label class="chip open">
      {name}
      <select value={value} onChange={({ currentTarget }) => set(currentTarget.value)}>
        <option value="">{any}</option>
        {values.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    </label>
  );
}

/** So many are asked for at once. */
const PAGE = 1000;

/** All changes of the filter, not only those that are shown: every page of the answer. */
async function rowsOf(filter: Filter): Promise<readonly (readonly Cell[])[]> {
  const rows: (readonly Cell[])[] = [say.csv];
  let cursor: string | undefined;
  do {
    const page = await askJson(calls.audit, { ...filter, limit: PAGE, cursor });
    for (const { atMs, who, way, verb, queue, target, count, ids = [], before, after, reason } of page.entries) {
      const said = [before, after].map((one) => (one === undefined ? undefined : JSON.stringify(one)));
      rows.push([utcText(atMs), who, way, verb, queue, target, count, ids.join(' '), ...said, reason]);
    }
    cursor = page.cursor;
  } while (cursor !== undefined);
  return rows;
}

interface RowOf {
  readonly entry: Entry;
  /** Nothing was changed there since: it can be taken back. */
  readonly isNewest: boolean;
  readonly done: (told: string) => void;
}

function Row({ entry, isNewest, done }: RowOf) {
  const { atMs, who, way, verb, reason } = entry;
  return (
    <tr>
      <td class="quiet t">
        <time dateTime={utcText(atMs)} title={localText(atMs)}>
          {secondText(atMs)}
        </time>
      </td>
      <th scope="row">
        {who}
        <span class="tagged">{say.ways[way]}</span>
      </th>
      <td>
        <span title={verb}>{say.verbs[verb as keyof typeof say.verbs] ?? verb}</span>
      </td>
      <td class="what-how">
        <What entry={entry} />
      </td>
      <td class="why-said">{reason === undefined ? <span class="none">{say.noReason}</span> : `“${reason}”`}</td>
      <td class="n back">{isNewest ? <Undo entry={entry} done={done} /> : null}</td>
    </tr>
  );
}

function What({ entry }: { readonly entry: Entry }) {
  const { verb, queue, target, count, ids = [], before, after } = entry;
  const isJob = verb.startsWith('jobs.');
  const ofQueue = queue === undefined || target === undefined || target === queue ? '' : ` ${say.of} ${queue}`;
  return (
    <>
      <b>
        <Target {...{ verb, queue, target, count }} isFilter={ids.length > 0} />
      </b>
      <span>{ofQueue}</span>
      {(isJob || verb.startsWith('dead.')) && ids.length > 0 && queue !== undefined ? (
        <Which queue={queue} ids={ids} count={count} />
      ) : null}
      <Changed before={before} after={after} />
    </>
  );
}

interface TargetOf extends Pick<Entry, 'verb' | 'count'> {
  readonly queue: string | undefined;
  readonly target: string | undefined;
  /** The jobs are named beside it. */
  readonly isFilter: boolean;
}

/** What was changed, as a link where a page is about it. */
function Target({ verb, queue, target, count, isFilter }: TargetOf) {
  const [kind] = verb.split('.');
  const many = count === 1 ? '' : ` (${say.jobs(count)})`;
  if (target === undefined || (target === queue && verb.startsWith('queues.'))) {
    if (queue === undefined) return <>{say.jobs(count)}</>;
    return (
      <>
        {kind === 'queues' ? '' : `${say.jobs(count)} ${say.of} `}
        <a href={`#/queue/${encodeURIComponent(queue)}`}>{queue}</a>
      </>
    );
  }
  const href = isFilter ? undefined : hrefOf({ verb, queue, target, count });
  const text = <Id text={target} />;
  return (
    <>
      {href === undefined ? text : <a href={href}>{text}</a>}
      {many}
    </>
  );
}

/** One job and one schedule have a page; a filter of many has none. */
function hrefOf({ verb, queue, target = '', count }: Omit<TargetOf, 'isFilter'>): string | undefined {
  const [kind] = verb.split('.');
  if (kind === 'schedules') return `#/schedule/${encodeURIComponent(target)}`;
  if (kind !== 'jobs' || queue === undefined || count !== 1 || target === 'all') {
    return undefined;
  }
  return `#/job/${encodeURIComponent(queue)}/${encodeURIComponent(target)}`;
}

/** The jobs of a change of many, the first 100. */
function Which({
  queue,
  ids,
  count,
}: {
  readonly queue: string;
  readonly ids: readonly string[];
  readonly count: number;
}) {
  return (
    <details class="which">
      <summary>{say.which(ids.length, count)}</summary>
      <ul>
        {ids.map((id) => (
          <li key={id}>
            <a href={`#/job/${encodeURIComponent(queue)}/${encodeURIComponent(id)}`}>
              <Id text={id} />
            </a>
          </li>
        ))}
      </ul>
    </details>
  );
}

interface ChangedOf {
  readonly before: Entry['before'] | undefined;
  readonly after: Entry['after'] | undefined;
}

/** From what to what, field by field; of times, as whoever looks reads them. */
function Changed({ before = {}, after = {} }: ChangedOf) {
  const fields = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const parts: ComponentChildren[] = fields.map((field) => (
    <span key={field} class="changed">
      {field} {field in before ? <s>{valueText(field, before[field])}</s> : null} →{' '}
      <b>{field in after ? valueText(field, after[field]) : say.nothing}</b>
    </span>
  ));
  return <>{parts}</>;
}

const LONGEST = 120;

function valueText(field: string, value: unknown): string {
  if (value === undefined || value === null) return say.nothing;
  if (field.endsWith('Ms') && typeof value === 'number' && value > 1e12) return localText(value);
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}
