/** One schedule: its rule, what comes, what was, and what can be done. */

import { useState } from 'preact/hooks';
import type { Schemas } from '../../api-types.ts';
import { useAsked } from '../../parts/asked.ts';
import { at } from '../../parts/at.ts';
import { Instant } from '../../parts/instant.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { Table } from '../../parts/table.tsx';
import { Tree } from '../../parts/tree.tsx';
import { numberText } from '../../parts/words.ts';
import type { Route } from '../../router.ts';
import { PastRuns } from './past-runs.tsx';
import { ScheduleActions } from './schedule-actions.tsx';
import { ruleOf, type Schedule as ScheduleShape } from './schedule-text.ts';
import { Decision } from './schedules.tsx';

const NEXT = 20;

export function Schedule({ path: [name = ''] }: Route) {
  const { value, problem, reload } = useAsked<ScheduleShape>(at`schedules/${name}`);
  const preview = useAsked<Schemas['Preview']>(`${at`schedules/${name}/preview`}?next=${NEXT}`);
  const [told, setTold] = useState('');
  const done = (text: string) => {
    setTold(text);
    reload();
    preview.reload();
  };
  return (
    <>
      <h1>
        Schedule <span class="id">{name}</span>
      </h1>
      <ProblemNote problem={problem} />
      <p role="status">{told}</p>
      {value === undefined ? null : (
        <>
          <ScheduleActions schedule={value} done={done} />
          <Facts schedule={value} />
        </>
      )}
      <ProblemNote problem={preview.problem} />
      {preview.value === undefined ? null : <NextRuns preview={preview.value} />}
      {value === undefined ? null : <PastRuns key={told} schedule={value} />}
      {value === undefined ? null : (
        <section aria-labelledby="definition">
          <h2 id="definition">Definition</h2>
          {value.hidden ? (
            <p class="hidden-data">The data are hidden: your token does not have the scope data.</p>
          ) : null}
          <Tree value={value.input} />
        </section>
      )}
    </>
  );
}

function Facts({ schedule }: { readonly schedule: ScheduleShape }) {
  const { queue, paused, nextMs, lastMs, runs, skipped, source } = schedule;
  return (
    <dl class="facts">
      <div>
        <dt>Rule</dt>
        <dd>
          <code>{ruleOf(schedule)}</code>
        </dd>
      </div>
      <div>
        <dt>Queue</dt>
        <dd>
          <a href={`#/jobs/${encodeURIComponent(queue)}`}>{queue}</a>
        </dd>
      </div>
      <div>
        <dt>State</dt>
        <dd>{paused === undefined ? 'fires' : `paused ${paused}`}</dd>
      </div>
      <div>
        <dt>Next</dt>
        <dd>
          <Instant atMs={nextMs} isLong />
        </dd>
      </div>
      <div>
        <dt>Last</dt>
        <dd>
          <Instant atMs={lastMs} isLong />
        </dd>
      </div>
      <div>
        <dt>Runs</dt>
        <dd>
          {numberText(runs)}, and {numberText(skipped)} missed or skipped
        </dd>
      </div>
      <div>
        <dt>Kept by</dt>
        <dd>{source === 'file' ? 'the configuration file' : 'a call'}</dd>
      </div>
    </dl>
  );
}

function NextRuns({ preview: { rows } }: { readonly preview: Schemas['Preview'] }) {
  return (
    <section aria-labelledby="next">
      <h2 id="next">Next runs</h2>
      {rows.length === 0 ? <p>None.</p> : null}
      <Table of="next runs" columns={['In the zone of the schedule', 'For you', 'Decision']}>
        {rows.map((row) => (
          <tr key={`${row.atMs} ${row.local}`}>
            <td>
              {row.local.replace('T', ' ')} {row.offset}
            </td>
            <td>
              <Instant atMs={row.atMs} isLong />
            </td>
            <td>
              <Decision row={row} />
            </td>
          </tr>
        ))}
      </Table>
    </section>
  );
}
