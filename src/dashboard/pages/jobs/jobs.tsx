/**
 * Jobs of all queues or of one, by due time: filtered by what stands in the address, page by page. The list does not change under
 * the eyes of whoever reads it: `Look again` does that.
 */
import { useEffect, useState } from 'preact/hooks';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { type Listed, useList } from '../../parts/asked.ts';
import { ProblemNote } from '../../parts/problem.tsx';
import { numberText } from '../../parts/words.ts';
import { go, type Route } from '../../router.ts';
import { words } from '../../words/words.ts';
import { VERBS, type Verb } from './batches.ts';
import { Picked } from './change.tsx';
import { type Columns, ColumnsMenu, keptColumns } from './columns.tsx';
import { FilterBar } from './filter-bar.tsx';
import { askedOf, filterFrom, isLive, isOneQueue, type JobFilter, OVER, whereOf, withState } from './filters.ts';
import { isLiveRow, JobTable, keyOf, type Row } from './list.tsx';
import { Missed } from './missed.tsx';
import { Strip } from './strip.tsx';
import '../../css/jobs.css';

const LIMIT = 50;

export function Jobs(route: Route) {
  const filter = filterFrom(route);
  const [columns, setColumns] = useState<Columns>(keptColumns);
  const [unread, setUnread] = useState<readonly Schemas['UnreadQueue'][]>([]);
  const { idPrefix, id } = filter;
  const preview = columns.includes('data') ? 'data' : undefined;
  const asked = { ...askedOf(filter), idPrefix: id === '' ? idPrefix : '', preview, limit: LIMIT } as const;
  const list = useList(calls.jobsFind, asked, {
    rowsOf(page) {
      setUnread(page.unread);
      return page.jobs;
    },
    keyOf,
  });
  const set = (changed: JobFilter) => go(whereOf(changed));
  const deed = deedOf(route.query.get('do'));
  return (
    <>
      <section class="head">
        <Title filter={filter} list={list} />
      </section>
      <FilterBar filter={filter} set={set}>
        <ColumnsMenu columns={columns} set={setColumns} />
      </FilterBar>
      <ProblemNote problem={list.problem} />
      <Missed unread={list.isBusy && list.rows.length === 0 ? [] : unread} />
      <Body key={`${deed} ${whereOf(filter)}`} filter={filter} list={list} columns={columns} deed={deed} />
    </>
  );
}

/** What is there, in one sentence. */
function Title({ filter, list }: { readonly filter: JobFilter; readonly list: Listed<Row> }) {
  const { rows, cursor, isBusy, problem } = list;
  const queues = new Set(rows.map(({ queue }) => queue));
  const of = [filter.tag, filter.set, filter.name, filter.id, filter.idPrefix].filter((word) => word !== '');
  if (isBusy && rows.length === 0) return <h1>{words.jobs.looking}</h1>;
  // Nobody knows whether there are any.
  if (problem !== undefined && rows.length === 0) return <h1>{words.jobs.name}</h1>;
  const count = cursor === undefined ? words.jobs.count(rows.length) : words.jobs.first(rows.length);
  return (
    <h1>
      {count}
      {of.length === 0 ? null : (
        <>
          {' '}
          {words.jobs.of} <code>{of.join(' ')}</code>
        </>
      )}{' '}
      {filter.state === 'retry'
        ? words.jobs.areRetried(rows.length)
        : words.jobs.are(
            filter.state === '' ? '' : filter.state.split(',').map(stateText).join(', '),
            rows.length,
          )}{' '}
      {filter.queue === '' ? (
        <span class="quiet">{words.jobs.inQueues(queues.size)}</span>
      ) : (
        <span class="quiet">
          {words.jobs.inQueue}{' '}
          {filter.queue.split(',').map((queue) => (
            <a key={queue} href={`#/queue/${encodeURIComponent(queue)}`}>
              {queue}
            </a>
          ))}
        </span>
      )}
    </h1>
  );
}

const deedOf = (text: string | null): Verb | undefined => VERBS.find((verb) => verb === text);

const stateText = (state: string): string =>
  Object.hasOwn(words.states, state) ? words.states[state as keyof typeof words.states] : state;

interface Shown {
  readonly filter: JobFilter;
  readonly list: Listed<Row>;
  readonly columns: Columns;
  /** What the address wants to be done with all of them: its dialog is open at first. */
  readonly deed: Verb | undefined;
}

function Body({ filter, list, columns, deed }: Shown) {
  const { rows, isBusy, cursor, problem } = list;
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const [isAll, setAll] = useState(false);
  // Its name stands above a list of one queue.
  const shown = isOneQueue(filter) ? columns.filter((column) => column !== 'queue') : columns;
  const chosen = rows.filter((row) => picked.has(keyOf(row)));
  const pick = (keys: ReadonlySet<string>) => {
    setPicked(keys);
    setAll(false);
  };
  const done = () => {
    pick(new Set());
    list.reload();
  };
  // Once: who has answered the dialog, or taken jobs out of the selection, selects by hand from then on.
  const [isAsked, setAsked] = useState(deed !== undefined);
  useEffect(() => {
    if (!isAsked || isBusy) return;
    setAsked(false);
    setPicked(new Set(rows.filter(isLiveRow).map(keyOf)));
    setAll(cursor !== undefined);
  }, [isAsked, isBusy]);
  return (
    <section aria-label={words.jobs.name} aria-busy={isBusy} class="found">
      <Strip rows={rows} />
      {rows.length === 0 && !isBusy && problem === undefined ? <Nothing filter={filter} /> : null}
      <JobTable rows={rows} columns={shown} picked={picked} pick={pick} />
      <End filter={filter} list={list} />
      <Picked
        rows={chosen}
        all={isAll ? filter : undefined}
        takeAll={list.cursor !== undefined && chosen.length > 0 && isLive(filter) ? () => setAll(true) : undefined}
        none={() => pick(new Set())}
        done={done}
        first={deed}
      />
    </section>
  );
}

function Nothing({ filter }: { readonly filter: JobFilter }) {
  const isAny = Object.values(filter).every((value) => value === '');
  return (
    <div class="empty">
      <h3>{isAny ? words.jobs.empty : words.jobs.nothing}</h3>
      <p>{isAny ? words.jobs.emptyWhy : words.jobs.nothingWhy}</p>
    </div>
  );
}

function End({ filter, list }: Pick<Shown, 'filter' | 'list'>) {
  const { rows, cursor, isBusy, problem, more, reload } = list;
  const count =
    problem !== undefined && rows.length === 0 ? '' : words.jobs.shown(numberText(rows.length), rows.length);
  const shown = isBusy ? words.jobs.looking : count;
  return (
    <div class="end quiet">
      <span role="status">
        {shown}
        {isBusy || cursor === undefined ? '' : words.jobs.andMore}
      </span>
      {cursor === undefined ? null : (
        <button type="button" onClick={more} disabled={isBusy}>
          {words.jobs.more}
        </button>
      )}
      <button type="button" class="ghost" onClick={reload}>
        {words.jobs.again}
      </button>
      {isLive(filter) ? (
        <a href={`#/${whereOf(withState(filter, OVER.join(',')))}`}>{words.jobs.alsoOver}</a>
      ) : (
        <a href={`#/${whereOf(withState(filter, ''))}`}>{words.jobs.notOverInstead}</a>
      )}
    </div>
  );
}
