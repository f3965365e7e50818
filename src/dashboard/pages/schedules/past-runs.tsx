/** What became of the past instants of a schedule: a late start shows, and so does an instant without a job. */

import type { Schemas } from '../../api-types.ts';
import { useList } from '../../parts/asked.ts';
import { at } from '../../parts/at.ts';
import { Instant } from '../../parts/instant.tsx';
import { ListActions } from '../../parts/list-actions.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { Table } from '../../parts/table.tsx';
import { durationText, numberText } from '../../parts/words.ts';
import { type Schedule, whatClocksDid } from './schedule-text.ts';

type Run = Schemas['PastRun'];

const SHOWN = 20;

export function PastRuns({ schedule: { name, queue } }: { readonly schedule: Schedule }) {
  const { rows, next, problem, isBusy, more, reload } = useList<Run>({
    path: `${at`schedules/${name}/runs`}?limit=${SHOWN}`,
    rowsOf: (page) => (page as Schemas['PastRuns']).runs,
    keyOf,
  });
  return (
    <section aria-labelledby="past-runs" aria-busy={isBusy}>
      <h2 id="past-runs">Past runs</h2>
      <ProblemNote problem={problem} />
      {rows.length === 0 && !isBusy ? (
        <p>None is known since the rule was changed, or the schedule was paused or resumed.</p>
      ) : null}
      <Table of="past runs" columns={['Instant', 'What became of it', 'Started', 'Late by', { number: 'Attempts' }]}>
        {rows.map((run) => (
          <Row key={keyOf(run)} run={run} queue={queue} />
        ))}
      </Table>
      <ListActions {...{ next, isBusy, more, reload }} />
    </section>
  );
}

const keyOf = ({ atMs, local, named = local }: Run): string => `${atMs} ${named}`;

function Row({ run, queue }: { readonly run: Run; readonly queue: string }) {
  const { atMs, id = '', job } = run;
  const address = `#/job/${encodeURIComponent(queue)}/${encodeURIComponent(id)}`;
  return (
    <tr>
      <td>
        <Instant atMs={atMs} isLong />
      </td>
      <td class={run.fate === 'missed' || job?.state === 'dead' ? 'bad' : ''}>
        {job === undefined ? fateText(run) : <a href={address}>{job.state}</a>}
      </td>
      <td>
        <Instant atMs={job?.startedMs} />
      </td>
      <td>{job?.latenessMs === undefined ? '–' : durationText(job.latenessMs)}</td>
      <td class="number">{job === undefined ? '' : numberText(job.attempts)}</td>
    </tr>
  );
}

const FATES: Readonly<Record<Exclude<Run['fate'], 'dropped'>, string>> = {
  made: 'made a job',
  waits: 'waits until the job before it is over',
  due: 'due; no leader has handled it yet',
  missed: 'missed: it made no job',
  unknown: 'no job is known: it was missed, or was over long ago',
};

const fateText = ({ fate, dropped, dst }: Run): string =>
  fate === 'dropped' ? `no job: ${whatClocksDid(dst) ?? dropped ?? 'dropped'}` : FATES[fate];
