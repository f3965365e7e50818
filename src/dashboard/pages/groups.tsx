/** The groups of a queue with limits: who waits and who runs, and of one group who holds its limit. */

import { useCallback } from 'preact/hooks';
import type { Schemas } from '../api-types.ts';
import * as calls from '../calls.ts';
import { useEvery } from '../live.ts';
import { useAsked, useList } from '../parts/asked.ts';
import { ProblemNote } from '../parts/problem.tsx';
import { Id, Instant, JobLink, ListActions, Table } from '../parts/table.tsx';
import { countText, durationText, numberText } from '../parts/words.ts';
import type { Route } from '../router.ts';

type Group = Schemas['Group'];

const EVERY_MS = 5000;
const LIMIT = 50;
const COLUMNS = [
  'Group',
  { number: 'In line' },
  { number: 'The first waits' },
  { number: 'Running' },
  { number: 'Limit' },
  { number: 'Pending' },
];
const keyOf = ({ group }: Group) => group;

/** All of them by name, or one that is named in the address. */
export function Groups({ path: [queue = '', group] }: Route) {
  return group === undefined ? <AllGroups queue={queue} /> : <OneGroup queue={queue} group={group} />;
}

/** Those with most jobs in line, for the page of the queue. */
export function LongestGroups({ queue }: { readonly queue: string }) {
  const { value, problem, reload } = useAsked(calls.groupsList, { queue, top: 'true', limit: 10 });
  useEvery(EVERY_MS, useCallback(reload, [reload]));
  return (
    <section aria-label="Longest groups">
      <h2>Who waits</h2>
      <ProblemNote problem={problem} />
      {value === undefined ? null : (
        <>
          {value.groups.length === 0 ? (
            <p>No job of a group is in line.</p>
          ) : (
            <Rows queue={queue} groups={value.groups} />
          )}
          <Ungrouped count={value.ungrouped} />
        </>
      )}
      <p class="actions">
        <a href={`#/groups/${encodeURIComponent(queue)}`}>All groups</a>
      </p>
    </section>
  );
}

function AllGroups({ queue }: { readonly queue: string }) {
  const list = useList(calls.groupsList, { queue, limit: LIMIT }, { rowsOf: ({ groups }) => groups, keyOf });
  const { rows, cursor, problem, isBusy, more, reload } = list;
  const end = cursor === undefined ? '' : ', and there are more';
  return (
    <>
      <h1>
        Groups of <QueueLink queue={queue} />
      </h1>
      <section aria-label="Groups" aria-busy={isBusy}>
        <p role="status">{isBusy ? 'Looking …' : `${countText(rows.length, 'group')} shown${end}`}</p>
        <Rows queue={queue} groups={rows} />
        <ProblemNote problem={problem} />
        <ListActions {...{ cursor, isBusy, more, reload }} />
      </section>
    </>
  );
}

function Rows({ queue, groups }: { readonly queue: string; readonly groups: readonly Group[] }) {
  return (
    <Table of="groups" columns={COLUMNS}>
      {groups.map((one) => (
        <tr key={one.group}>
          <th scope="row">
            <a href={`#/groups/${encodeURIComponent(queue)}/${encodeURIComponent(one.group)}`}>
              <Id text={one.group} />
            </a>
          </th>
          <td class="number">{numberText(one.waiting)}</td>
          <td class="number">{one.waiting === 0 ? '–' : durationText(one.waitMs)}</td>
          <td class="number">{numberText(one.running)}</td>
          <td class="number">{limitText(one)}</td>
          <td class="number">{pendingText(one)}</td>
        </tr>
      ))}
    </Table>
  );
}

const limitText = ({ perGroup, isFull }: Pick<Group, 'perGroup' | 'isFull'>): string =>
  perGroup === undefined ? '–' : `${numberText(perGroup)}${isFull ? ', full' : ''}`;

const pendingText = ({ pending = 0, maxPending }: Pick<Group, 'pending' | 'maxPending'>): string =>
  maxPending === undefined ? '–' : `${numberText(pending)} of ${numberText(maxPending)}`;

function Ungrouped({ count }: { readonly count: number }) {
  return count === 0 ? null : <p>{countText(count, 'job')} without a group in line.</p>;
}

function OneGroup({ queue, group }: { readonly queue: string; readonly group: string }) {
  const { value, problem, reload } = useAsked(calls.groupsGet, { queue, group });
  const jobs = `#/jobs/${encodeURIComponent(queue)}?state=waiting&idPrefix=${encodeURIComponent(`{${group}}`)}`;
  return (
    <>
      <h1>
        Group <span class="id">{group}</span>
      </h1>
      <p>
        of <QueueLink queue={queue} />
      </p>
      <ProblemNote problem={problem} />
      {value === undefined ? null : (
        <>
          <GroupFacts group={value} jobs={jobs} />
          <h2>Who holds its limit</h2>
          {value.holders.length === 0 ? <p>No job of it runs.</p> : <Holders queue={queue} holders={value.holders} />}
        </>
      )}
      <p class="actions">
        <button type="button" onClick={reload}>
          Look again
        </button>
      </p>
    </>
  );
}

function GroupFacts({ group, jobs }: { readonly group: Schemas['GroupReport']; readonly jobs: string }) {
  const { running, waiting, priorities, waitMs } = group;
  const { high, normal, low } = priorities;
  return (
    <dl class="facts">
      <div>
        <dt>Running</dt>
        <dd>{numberText(running)}</dd>
      </div>
      <div>
        <dt>Limit</dt>
        <dd>{limitText(group)}</dd>
      </div>
      {group.maxPending === undefined ? null : (
        <div>
          <dt>Pending</dt>
          <dd>{pendingText(group)}</dd>
        </div>
      )}
      <div>
        <dt>In line</dt>
        <dd>
          <a href={jobs}>{numberText(waiting)}</a>
          {waiting === 0 ? '' : `: ${high} high, ${normal} normal, ${low} low; the first for ${durationText(waitMs)}`}
        </dd>
      </div>
    </dl>
  );
}

/** The jobs that were let through, and where they run. */
export function Holders({
  queue,
  holders,
}: {
  readonly queue: string;
  readonly holders: readonly Schemas['Holder'][];
}) {
  return (
    <Table of="holders" columns={['Job', 'Since', { number: 'Attempt' }, 'Worker']}>
      {holders.map(({ id, bare, sinceMs, attempt, owner }) => (
        <tr key={`${bare} ${id}`}>
          <th scope="row">
            <JobLink queue={queue} id={id} bare={bare} />
          </th>
          <td>
            <Instant atMs={sinceMs} />
          </td>
          <td class="number">{attempt ?? ''}</td>
          <td>{owner === undefined ? 'not started yet' : <Id text={owner} />}</td>
        </tr>
      ))}
    </Table>
  );
}

const QueueLink = ({ queue }: { readonly queue: string }) => (
  <a href={`#/queue/${encodeURIComponent(queue)}`}>{queue}</a>
);
