/**
 * What became of the last instants of a schedule. The API knows which instants there were and, while Redis remembers it,
 * what became of the job of each: so a late start shows, and so does an instant without a job.
 */

import { useEffect, useState } from 'preact/hooks';
import { ApiError, ask } from '../../api.ts';
import { at } from '../../parts/at.ts';
import { Instant } from '../../parts/instant.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { Table } from '../../parts/table.tsx';
import { durationText } from '../../parts/words.ts';
import type { Job } from '../job/job-shape.ts';
import type { Preview, PreviewRow, Schedule } from './schedule-shape.ts';

const SHOWN = 20;
/** Looked back so far, until there are enough. */
const SPANS_MS = [3_600_000, 86_400_000, 31 * 86_400_000, 366 * 86_400_000];
/** Most rows of a preview. */
const ROWS_MAX = 10_000;

interface Run {
  readonly row: PreviewRow;
  /** Undefined: Redis knows no job of this instant. */
  readonly job: Job | undefined;
}

export function PastRuns({ schedule }: { readonly schedule: Schedule }) {
  const [runs, setRuns] = useState<readonly Run[]>();
  const [problem, setProblem] = useState<unknown>();
  useEffect(() => {
    let isGone = false;
    runsOf(schedule).then(
      (found) => isGone || setRuns(found),
      (error: unknown) => isGone || setProblem(error),
    );
    return () => {
      isGone = true;
    };
  }, [schedule]);
  return (
    <section aria-labelledby="past-runs" aria-busy={runs === undefined}>
      <h2 id="past-runs">Past runs</h2>
      <ProblemNote problem={problem} />
      {runs?.length === 0 ? <p>None yet.</p> : null}
      <Table of="past runs" columns={['Instant', 'What became of it', 'Started late by']}>
        {runs?.map((run) => (
          <Row key={`${run.row.atMs} ${run.row.local}`} run={run} queue={schedule.queue} />
        ))}
      </Table>
    </section>
  );
}

function Row({ run: { row, job }, queue }: { readonly run: Run; readonly queue: string }) {
  const address = `#/job/${encodeURIComponent(queue)}/${encodeURIComponent(row.id ?? '')}`;
  return (
    <tr>
      <td>
        <Instant atMs={row.atMs} isLong />
      </td>
      <td>{job === undefined ? fateOf(row) : <a href={address}>{job.state}</a>}</td>
      <td>{latenessOf(row, job)}</td>
    </tr>
  );
}

const fateOf = ({ dropped }: PreviewRow): string =>
  dropped === undefined ? 'no job is known: it was missed, or was over long ago' : `no job: ${dropped}`;

function latenessOf({ dueMs, atMs }: PreviewRow, job: Job | undefined): string {
  const startedMs = job?.timeline?.find(({ kind }) => kind === 'started')?.atMs ?? job?.startedMs;
  return startedMs === undefined ? '' : durationText(Math.max(0, startedMs - (dueMs ?? atMs)));
}

async function runsOf({ name, queue, reachedMs, lastMs }: Schedule): Promise<readonly Run[]> {
  const untilMs = Math.max(reachedMs ?? 0, lastMs ?? 0);
  if (untilMs === 0) return [];
  const rows = await rowsBefore(name, untilMs);
  const newest = rows.slice(-SHOWN).reverse();
  return Promise.all(newest.map(async (row) => ({ row, job: await jobOf(queue, row.id) })));
}

async function rowsBefore(name: string, untilMs: number): Promise<readonly PreviewRow[]> {
  const until = new Date(untilMs).toISOString();
  let rows: readonly PreviewRow[] = [];
  for (const spanMs of SPANS_MS) {
    const from = new Date(untilMs - spanMs).toISOString();
    const path = `${at`schedules/${name}/preview`}?next=${ROWS_MAX}&from=${from}&until=${until}`;
    rows = (await ask<Preview>(`GET ${path}`)).rows;
    if (rows.length >= SHOWN) return rows;
  }
  return rows;
}

async function jobOf(queue: string, id: string | undefined): Promise<Job | undefined> {
  if (id === undefined) return undefined;
  try {
    return await ask<Job>(`GET ${at`queues/${queue}/jobs/${id}`}`);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}
