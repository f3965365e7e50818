/** One schedule: its rule, what comes, what was, and what can be done. */

import { useState } from 'preact/hooks';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { useAsked, useList } from '../../parts/asked.ts';
import { May } from '../../parts/may.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { Instant, ListActions, Table } from '../../parts/table.tsx';
import { Tree } from '../../parts/tree.tsx';
import { durationText, numberText } from '../../parts/words.ts';
import type { Route } from '../../router.ts';
import { words } from '../../words/words.ts';
import { ScheduleActions } from './actions.tsx';
import { ruleText } from './rule.ts';
import { decisionOf, ruleOf, type Schedule, whatClocksDid } from './schedule-words.ts';
import '../../css/schedules.css';

const say = words.schedules;

const NEXT = 20;

export function SchedulePage({ path: [name = ''] }: Route) {
  const { value, problem, reload } = useAsked(calls.schedulesGet, { name });
  const preview = useAsked(calls.schedulesPreview, { name, next: NEXT });
  const [told, setTold] = useState('');
  const done = (text: string) => {
    setTold(text);
    reload();
    preview.reload();
  };
  return (
    <>
      <h1>
        {say.schedule} <span class="id">{name}</span>
      </h1>
      <ProblemNote problem={problem} />
      <p role="status">{told}</p>
      {value === undefined ? null : (
        <>
          <May scope="write" queue={value.queue}>
            <ScheduleActions schedule={value} done={done} />
            <p>
              <a class="btn" href={`#/schedules/edit/${encodeURIComponent(name)}`}>
                {say.edit}
              </a>
            </p>
          </May>
          <Facts schedule={value} />
        </>
      )}
      <ProblemNote problem={preview.problem} />
      {preview.value === undefined ? null : <NextRuns preview={preview.value} />}
      {value === undefined ? null : <PastRuns key={told} schedule={value} />}
      {value === undefined ? null : (
        <section aria-labelledby="definition">
          <h2 id="definition">{say.definition}</h2>
          {value.hidden ? <p class="hidden-data">{say.hiddenData}</p> : null}
          <Tree value={value.input} />
        </section>
      )}
    </>
  );
}

function Facts({ schedule }: { readonly schedule: Schedule }) {
  const { queue, paused, hand, nextMs, lastMs, runs, skipped, source } = schedule;
  return (
    <dl class="facts">
      <div>
        <dt>{say.facts.rule}</dt>
        <dd>
          {ruleText(schedule.input) ?? ''} <code>{ruleOf(schedule)}</code>
        </dd>
      </div>
      <div>
        <dt>{say.facts.queue}</dt>
        <dd>
          <a href={`#/jobs/${encodeURIComponent(queue)}`}>{queue}</a>
        </dd>
      </div>
      <div>
        <dt>{say.facts.state}</dt>
        <dd>{paused === undefined ? say.fires : say.isPaused(paused)}</dd>
      </div>
      {hand === undefined ? null : (
        <div>
          <dt>{say.facts.pausedBy}</dt>
          <dd>
            {hand.by}, <Instant atMs={hand.atMs} isLong />
          </dd>
        </div>
      )}
      <div>
        <dt>{say.facts.next}</dt>
        <dd>
          <Instant atMs={nextMs} isLong />
        </dd>
      </div>
      <div>
        <dt>{say.facts.last}</dt>
        <dd>
          <Instant atMs={lastMs} isLong />
        </dd>
      </div>
      <div>
        <dt>{say.facts.runs}</dt>
        <dd>{say.ranAndSkipped(numberText(runs), numberText(skipped))}</dd>
      </div>
      <div>
        <dt>{say.facts.keptBy}</dt>
        <dd>{source === 'file' ? say.ofFile : say.ofCall}</dd>
      </div>
    </dl>
  );
}

function NextRuns({ preview: { rows } }: { readonly preview: Schemas['Preview'] }) {
  return (
    <section aria-labelledby="next">
      <h2 id="next">{say.nextRuns}</h2>
      {rows.length === 0 ? <p>{say.noRuns}</p> : null}
      <Table of={say.nextRunsTable} columns={[say.inItsZone, say.forYou, say.decision]}>
        {rows.map((row) => (
          <tr key={`${row.atMs} ${row.local}`}>
            <td>
              {row.local.replace('T', ' ')} {row.offset}
            </td>
            <td>
              <Instant atMs={row.atMs} isLong />
            </td>
            <td>
              <em class="decision">{decisionOf(row)}</em>
            </td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

// What became of the past instants of a schedule: a late start shows, and so does an instant without a job.

type Run = Schemas['PastRun'];

const SHOWN = 20;

function PastRuns({ schedule: { name, queue } }: { readonly schedule: Schedule }) {
  const { rows, cursor, problem, isBusy, more, reload } = useList(
    calls.schedulesRuns,
    { name, limit: SHOWN },
    { rowsOf: ({ runs }) => runs, keyOf },
  );
  return (
    <section aria-labelledby="past-runs" aria-busy={isBusy}>
      <h2 id="past-runs">{say.pastRuns}</h2>
      <ProblemNote problem={problem} />
      {rows.length === 0 && !isBusy ? <p>{say.noPastRuns}</p> : null}
      <Table
        of={say.pastRunsTable}
        columns={[say.instant, say.became, say.started, say.lateBy, { number: say.attempts }]}
      >
        {rows.map((run) => (
          <Row key={keyOf(run)} run={run} queue={queue} />
        ))}
      </Table>
      <ListActions {...{ cursor, isBusy, more, reload }} />
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
        {job === undefined ? fateText(run) : <a href={address}>{words.states[job.state]}</a>}
      </td>
      <td>
        <Instant atMs={job?.startedMs} />
      </td>
      <td>{job?.latenessMs === undefined ? '–' : durationText(job.latenessMs)}</td>
      <td class="number">{job === undefined ? '' : numberText(job.attempts)}</td>
    </tr>
  );
}

/** What became of an instant, in words. */
export const fateText = ({ fate, dropped, dst }: Run): string =>
  fate === 'dropped' ? say.noJob(whatClocksDid(dst) ?? dropped ?? '') : say.fates[fate];
