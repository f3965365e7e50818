/** Who works and who leads: what each holds since when. */

import { useCallback } from 'preact/hooks';
import type { Schemas } from '../api-types.ts';
import * as calls from '../calls.ts';
import { useEvery } from '../live.ts';
import { useAsked } from '../parts/asked.ts';
import { ProblemNote, Unread } from '../parts/problem.tsx';
import { Id, Instant, JobLink, Table } from '../parts/table.tsx';
import { countText, durationText, numberText } from '../parts/words.ts';

type Worker = Schemas['Worker'];
type Led = Schemas['Led'];

const EVERY_MS = 5000;

export function Workers() {
  const workers = useAsked(calls.workers, {});
  const leaders = useAsked(calls.leaders, {});
  useEvery(
    EVERY_MS,
    useCallback(() => {
      workers.reload();
      leaders.reload();
    }, [workers.reload, leaders.reload]),
  );
  return (
    <>
      <h1>Workers and leaders</h1>
      <ProblemNote problem={workers.problem ?? leaders.problem} />
      <Unread unread={leaders.value?.unread} />
      <Versions versions={workers.value?.versions ?? []} />
      <WorkerTable workers={workers.value?.workers ?? []} />
      <Held workers={workers.value?.workers ?? []} />
      <LeaderTable partitions={leaders.value?.partitions ?? []} />
    </>
  );
}

const where = ({ host, pid }: { readonly host?: string; readonly pid?: number }): string =>
  host === undefined ? '' : `${host}:${pid}`;

/** Daemons and subscribers too: while a fleet is updated, it is seen how far that is. */
function Versions({ versions }: { readonly versions: Schemas['Workers']['versions'] }) {
  if (versions.length === 0) return null;
  const texts = versions.map(
    ({ version = 'an unknown version', processes }) => `${version} (${countText(processes, 'process', 'processes')})`,
  );
  return (
    <p class={versions.length > 1 ? 'headline bad' : 'quiet'}>
      {versions.length > 1 ? `${versions.length} versions of duestream run: ` : 'Version of duestream: '}
      {texts.join(', ')}
    </p>
  );
}

function WorkerTable({ workers }: { readonly workers: readonly Worker[] }) {
  return (
    <section aria-label="Workers">
      <h2>Workers</h2>
      {workers.length === 0 ? (
        <p>
          No worker is alive. Start one with <code>duestream worker handlers.mjs</code>
        </p>
      ) : (
        <Table
          of="workers"
          columns={['Worker', 'State', 'Where', 'Version', 'Since', 'Last heartbeat', 'Queues', { number: 'Holds' }]}
        >
          {workers.map((worker) => (
            <tr key={worker.id}>
              <th scope="row">
                <Id text={worker.id} />
              </th>
              <td class={worker.state === 'alive' ? '' : 'bad'}>{worker.state}</td>
              <td>{where(worker)}</td>
              <td>{worker.version ?? '–'}</td>
              <td>
                <Instant atMs={worker.startedMs} />
              </td>
              <td>{worker.beatAgoMs === undefined ? '–' : `${durationText(worker.beatAgoMs)} ago`}</td>
              <td>{worker.queues.join(', ')}</td>
              <td class="number">{numberText(worker.pending)}</td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}

function Held({ workers }: { readonly workers: readonly Worker[] }) {
  const jobs = workers.flatMap((worker) => worker.jobs.map((job) => ({ worker: worker.id, ...job })));
  if (jobs.length === 0) return null;
  const others = workers.reduce((sum, { pending }) => sum + pending, 0) - jobs.length;
  return (
    <section aria-label="Jobs that run">
      <h2>Jobs that run</h2>
      <Table of="jobs that run" columns={['Job', 'Queue', 'Worker', 'Started', { number: 'Attempt' }]}>
        {jobs.map(({ worker, queue, partition, id, bare, attempt, startedMs }) => (
          <tr key={`${queue}/${partition}/${bare}/${id}`}>
            <th scope="row">
              <JobLink queue={queue} id={id} bare={bare} />
            </th>
            <td>{queue}</td>
            <td>
              <Id text={worker} />
            </td>
            <td>{startedMs === undefined ? 'about to start' : <Instant atMs={startedMs} />}</td>
            <td class="number">{attempt ?? ''}</td>
          </tr>
        ))}
      </Table>
      {others > 0 ? (
        <p class="quiet">
          {countText(others, 'more job')} held by workers {others === 1 ? 'is' : 'are'} not listed. The list has the ten
          oldest of each worker.
        </p>
      ) : null}
    </section>
  );
}

function LeaderTable({ partitions }: { readonly partitions: readonly Led[] }) {
  return (
    <section aria-label="Leaders">
      <h2>Leaders</h2>
      {partitions.length === 0 ? <p>No queue was used yet, so there is nothing to lead.</p> : null}
      <Table
        of="leaders"
        columns={[
          'Queue',
          { number: 'Partition' },
          'Leader',
          'Version',
          'Process',
          'Since',
          'Last pass',
          { number: 'Backlog' },
        ]}
      >
        {partitions.map(({ queue, partition, leader, backlog }) => (
          <tr key={`${queue}/${partition}`}>
            <th scope="row">
              <a href={`#/queue/${encodeURIComponent(queue)}`}>{queue}</a>
            </th>
            <td class="number">{partition}</td>
            <td class={leader === undefined ? 'bad' : ''}>{leader === undefined ? 'none' : where(leader)}</td>
            <td>{leader?.version ?? '–'}</td>
            <td>{leader === undefined ? '' : <Id text={leader.process} />}</td>
            <td>
              <Instant atMs={leader?.sinceMs} />
            </td>
            <td>{leader?.lastPassAgoMs === undefined ? '–' : `${durationText(leader.lastPassAgoMs)} ago`}</td>
            <td class="number">{numberText(backlog)}</td>
          </tr>
        ))}
      </Table>
    </section>
  );
}
