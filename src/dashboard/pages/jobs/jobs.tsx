/**
 * The jobs of a queue: filtered by what stands in the address, page by page. The list does not change under the eyes of
 * whoever reads it: `Look again` does that.
 */

import { useState } from 'preact/hooks';
import type { Schemas } from '../../api-types.ts';
import { queryOf } from '../../call.ts';
import * as calls from '../../calls.ts';
import { type Listed, useList } from '../../parts/asked.ts';
import { Fold } from '../../parts/fold.tsx';
import { May } from '../../parts/may.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { Id, Instant, JobLink, ListActions, Table } from '../../parts/table.tsx';
import { countText } from '../../parts/words.ts';
import { go, type Route } from '../../router.ts';
import { Bulk } from './bulk.tsx';
import { filterFrom, instantOf, isLive, type JobFilter, localOf, STATES } from './filters.ts';

type ListedJob = Schemas['ListedJob'];

const LIMIT = 50;
const keyOf = ({ partition, bare, id, state, overMs }: ListedJob) =>
  JSON.stringify([partition, bare, id, state === 'dead' ? overMs : 0]);

export function Jobs({ path: [queue = ''], query }: Route) {
  const filter = filterFrom(query);
  const list = useList(calls.jobsList, { queue, ...filter, limit: LIMIT }, { rowsOf: ({ jobs }) => jobs, keyOf });
  return (
    <>
      <h1>
        Jobs of <a href={`#/queue/${encodeURIComponent(queue)}`}>{queue}</a>
      </h1>
      <Fold name={`Filter: ${Object.values(filter).filter(Boolean).join(', ')}`} closesOn={JSON.stringify(filter)}>
        <FilterForm
          key={JSON.stringify([queue, filter])}
          filter={filter}
          apply={(wanted) => go(`jobs/${encodeURIComponent(queue)}${queryOf({ ...wanted })}`)}
        />
      </Fold>
      {isLive(filter) ? (
        <May scope="write" queue={queue}>
          <Bulk queue={queue} filter={filter} done={list.reload} />
        </May>
      ) : null}
      <JobTable queue={queue} list={list} />
    </>
  );
}

function JobTable({ queue, list }: { readonly queue: string; readonly list: Listed<ListedJob> }) {
  const { rows, cursor, problem, isBusy, more, reload } = list;
  const end = cursor === undefined ? '' : ', and there may be more';
  return (
    <section aria-label="Jobs" aria-busy={isBusy}>
      <p role="status">{isBusy ? 'Looking …' : `${countText(rows.length, 'job')} shown${end}`}</p>
      <Table of="jobs" columns={['Id', 'Name', 'State', 'Due or over', { number: 'Attempts' }, 'Tags', 'Worker']}>
        {rows.map((job) => (
          <Row key={keyOf(job)} queue={queue} job={job} />
        ))}
      </Table>
      <ProblemNote problem={problem} />
      <ListActions {...{ cursor, isBusy, more, reload }} />
    </section>
  );
}

function Row({ queue, job }: { readonly queue: string; readonly job: ListedJob }) {
  return (
    <tr>
      <th scope="row">
        <JobLink queue={queue} id={job.id} bare={job.bare} />
      </th>
      <td>{job.name ?? ''}</td>
      <td>{job.state}</td>
      <td>
        <Instant atMs={job.overMs ?? job.dueMs} />
      </td>
      <td class="number">{job.attempts ?? ''}</td>
      <td>{job.tags?.join(', ') ?? ''}</td>
      <td>{job.owner === undefined ? '' : <Id text={job.owner} />}</td>
    </tr>
  );
}

// What is shown of a queue. It goes into the address when somebody presses Enter or the button.

interface Form {
  readonly filter: JobFilter;
  readonly apply: (filter: JobFilter) => void;
}

const TEXTS = [
  { field: 'idPrefix', label: 'Id begins with' },
  { field: 'name', label: 'Name' },
  { field: 'tag', label: 'Tag' },
  { field: 'set', label: 'Set' },
] as const;
const DUES = [
  { field: 'dueFrom', label: 'Due from' },
  { field: 'dueTo', label: 'Due before' },
] as const;

/** Give it the filter of the address as `key`: another address, another form. */
function FilterForm({ filter, apply }: Form) {
  const [draft, setDraft] = useState(filter);
  const set = (field: keyof JobFilter, value: string) => setDraft({ ...draft, [field]: value });
  return (
    <form
      class="filters"
      aria-label="Filter"
      onSubmit={(event) => {
        event.preventDefault();
        apply(draft);
      }}
    >
      <label>
        State
        <select value={draft.state} onChange={(event) => apply({ ...draft, state: event.currentTarget.value })}>
          {STATES.map((state) => (
            <option key={state} value={state}>
              {state}
            </option>
          ))}
          <option value="scheduled,ready,running">all that live</option>
        </select>
      </label>
      {TEXTS.map(({ field, label }) => (
        <label key={field}>
          {label}
          <input value={draft[field]} onInput={(event) => set(field, event.currentTarget.value)} />
        </label>
      ))}
      {DUES.map(({ field, label }) => (
        <label key={field}>
          {label}
          <input
            type="datetime-local"
            value={localOf(draft[field])}
            onInput={(event) => set(field, instantOf(event.currentTarget.value))}
          />
        </label>
      ))}
      <button type="submit" class="primary">
        Show
      </button>
    </form>
  );
}
