/**
 * The jobs of a queue: filtered by what stands in the address, page by page. The list does not change under the eyes of
 * whoever reads it: `Look again` does that.
 */

import { type Listed, useList } from '../../parts/asked.ts';
import { at, queryOf } from '../../parts/at.ts';
import { Instant } from '../../parts/instant.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { countText } from '../../parts/words.ts';
import { go, type Route } from '../../router.ts';
import { Bulk } from './bulk.tsx';
import { FilterForm } from './filter-form.tsx';
import { filterFrom, isLive } from './filters.ts';

export interface ListedJob {
  readonly id: string;
  readonly bare: boolean;
  readonly partition: number;
  readonly state: string;
  readonly name?: string;
  readonly tags?: readonly string[];
  readonly dueMs?: number;
  readonly attempts?: number;
  readonly owner?: string;
  readonly overMs?: number;
}

interface JobsPage {
  readonly jobs: readonly ListedJob[];
  readonly next?: string;
}

const LIMIT = 50;
const rowsOf = (page: { readonly next?: string }) => (page as JobsPage).jobs;
const keyOf = ({ partition, bare, id, state, overMs }: ListedJob) =>
  JSON.stringify([partition, bare, id, state === 'dead' ? overMs : 0]);

export function Jobs({ path: [queue = ''], query }: Route) {
  const filter = filterFrom(query);
  const list = useList<ListedJob>({
    path: `${at`queues/${queue}/jobs`}${queryOf({ ...filter, limit: LIMIT })}`,
    rowsOf,
    keyOf,
  });
  return (
    <>
      <h1>
        Jobs of <a href={`#/queue/${encodeURIComponent(queue)}`}>{queue}</a>
      </h1>
      <FilterForm
        key={JSON.stringify([queue, filter])}
        filter={filter}
        apply={(wanted) => go(`jobs/${encodeURIComponent(queue)}${queryOf({ ...wanted })}`)}
      />
      {isLive(filter) ? <Bulk queue={queue} filter={filter} done={list.reload} /> : null}
      <JobTable queue={queue} list={list} />
    </>
  );
}

function JobTable({ queue, list }: { readonly queue: string; readonly list: Listed<ListedJob> }) {
  const { rows, next, problem, isBusy, more, reload } = list;
  const end = next === undefined ? '' : ', and there may be more';
  return (
    <section aria-label="Jobs" aria-busy={isBusy}>
      <p role="status">{isBusy ? 'Looking …' : `${countText(rows.length, 'job')} shown${end}`}</p>
      <div class="scroll" tabIndex={0} role="region" aria-label="Table of jobs">
        <table>
          <thead>
            <tr>
              <th scope="col">Id</th>
              <th scope="col">Name</th>
              <th scope="col">State</th>
              <th scope="col">Due or over</th>
              <th scope="col" class="number">
                Attempts
              </th>
              <th scope="col">Tags</th>
              <th scope="col">Worker</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((job) => (
              <Row key={keyOf(job)} queue={queue} job={job} />
            ))}
          </tbody>
        </table>
      </div>
      <ProblemNote problem={problem} />
      <p class="actions">
        <button type="button" onClick={reload}>
          Look again
        </button>
        {next === undefined ? null : (
          <button type="button" onClick={more} disabled={isBusy}>
            Show more
          </button>
        )}
      </p>
    </section>
  );
}

function Row({ queue, job }: { readonly queue: string; readonly job: ListedJob }) {
  const address = `#/job/${encodeURIComponent(queue)}/${encodeURIComponent(job.id)}${job.bare ? '?bare=true' : ''}`;
  return (
    <tr>
      <th scope="row">
        <a href={address} class="id">
          {job.id}
        </a>
      </th>
      <td>{job.name ?? ''}</td>
      <td>{job.state}</td>
      <td>
        <Instant atMs={job.overMs ?? job.dueMs} />
      </td>
      <td class="number">{job.attempts ?? ''}</td>
      <td>{job.tags?.join(', ') ?? ''}</td>
      <td>{job.owner ?? ''}</td>
    </tr>
  );
}
