/** The rows of a list of jobs, under the headings of their days, with boxes to select some or all. */
import { useLayoutEffect, useRef } from 'preact/hooks';
import { heldText } from '../../../job/state.ts';
import type { Schemas } from '../../api-types.ts';
import { useLive } from '../../live.ts';
import { localText, secondText, utcText } from '../../parts/clock.ts';
import { useMay } from '../../parts/may.tsx';
import { State, type StateName } from '../../parts/state.tsx';
import { Id, JobLink, nameRoles } from '../../parts/table.tsx';
import { durationText, relativeText } from '../../parts/words.ts';
import { words } from '../../words/words.ts';
import type { Column, Columns } from './columns.tsx';
import { LIVE } from './filters.ts';
import { headingOf, type Section, sectionOf, whenText } from './times.ts';

export type Row = Schemas['FoundJob'];

export const keyOf = ({ queue, partition, bare, id, state, overMs }: Row): string =>
  JSON.stringify([queue, partition, bare, id, state === 'dead' ? overMs : 0]);

export const isLiveRow = ({ state }: Row): boolean => LIVE.some((live) => live === state);

/** A job that failed and waits is in a state of its own for whoever looks: the next run is a retry. */
export const stateOf = ({ state, failures, crashes }: Row): StateName =>
  (state === 'scheduled' || state === 'waiting') && failures + crashes > 0 ? 'retry' : state;

const SECTIONS: readonly Section[] = ['now', 'today', 'tomorrow', 'later', 'over'];

interface TableOf {
  readonly rows: readonly Row[];
  readonly columns: Columns;
  readonly picked: ReadonlySet<string>;
  readonly pick: (keys: ReadonlySet<string>) => void;
}

/** A browser may forget that a row is one when it is drawn as a card: so each part says what it is. */
export function JobTable({ rows, columns, picked, pick }: TableOf) {
  const place = useRef<HTMLTableElement>(null);
  useLayoutEffect(() => nameRoles(place.current?.parentElement));
  const canPick = useMay({ scope: 'write', ...(rows[0] && { queue: rows[0].queue }) });
  if (rows.length === 0) return null;
  const nowMs = Date.now();
  const keys = rows.filter(isLiveRow).map(keyOf);
  const hasBoxes = canPick && keys.length > 0;
  const isAll = keys.length > 0 && keys.every((key) => picked.has(key));
  const width = 3 + columns.length + Number(hasBoxes);
  const of = (section: Section) =>
    rows.filter((row) => (isLiveRow(row) ? sectionOf(row.dueMs ?? 0, nowMs) : 'over') === section);
  return (
    <>
      {hasBoxes ? (
        <label class="pick-all">
          {words.jobs.all}
          <input type="checkbox" checked={isAll} onChange={() => pick(new Set(isAll ? [] : keys))} />
        </label>
      ) : null}
      <table ref={place} class="list jobs" aria-label={words.jobs.name}>
        <thead>
          <tr>
            {hasBoxes ? (
              <th class="pick">
                <Box isOn={isAll} text={words.jobs.selectAll} set={() => pick(new Set(isAll ? [] : keys))} />
              </th>
            ) : null}
            <th scope="col" aria-sort="ascending">
              {words.jobs.due} <span aria-hidden="true">↑</span>
            </th>
            <th scope="col">{words.jobs.job}</th>
            <th scope="col">{words.jobs.state}</th>
            {columns.map((column) => (
              <th key={column} scope="col" class={column === 'attempts' ? 'n' : undefined}>
                {words.jobs.column[column]}
              </th>
            ))}
          </tr>
        </thead>
        {SECTIONS.filter((section) => of(section).length > 0).map((section) => (
          <tbody key={section}>
            <tr class="group">
              <th colSpan={width} scope="rowgroup">
                {headingOf(section, nowMs)} <span>{of(section).length}</span>
              </th>
            </tr>
            {of(section).map((row) => (
              <JobRow
                key={keyOf(row)}
                row={row}
                columns={columns}
                section={section}
                nowMs={nowMs}
                isPicked={picked.has(keyOf(row))}
                pick={hasBoxes ? () => pick(toggled(picked, keyOf(row))) : undefined}
              />
            ))}
          </tbody>
        ))}
      </table>
    </>
  );
}

function toggled(keys: ReadonlySet<string>, key: string): ReadonlySet<string> {
  const next = new Set(keys);
  if (!next.delete(key)) next.add(key);
  return next;
}

interface BoxOf {
  readonly isOn: boolean;
  readonly text: string;
  readonly set: () => void;
}

/** The words come first: that is where they are looked for. */
const Box = ({ isOn, text, set }: BoxOf) => (
  <label>
    <span class="away">{text}</span>
    <input type="checkbox" checked={isOn} onChange={set} />
  </label>
);

interface RowOf {
  readonly row: Row;
  readonly columns: Columns;
  readonly section: Section;
  readonly nowMs: number;
  readonly isPicked: boolean;
  /** Undefined: nothing can be selected. */
  readonly pick: (() => void) | undefined;
}

function JobRow({ row, columns, section, nowMs, isPicked, pick }: RowOf) {
  const atMs = row.overMs ?? row.dueMs;
  return (
    <tr class="job" aria-selected={pick === undefined ? undefined : isPicked}>
      {pick === undefined ? null : (
        <td class="pick">
          {isLiveRow(row) ? <Box isOn={isPicked} text={words.jobs.select(row.id)} set={pick} /> : null}
        </td>
      )}
      <td class="when">
        {atMs === undefined ? (
          <span class="none">–</span>
        ) : (
          <time dateTime={utcText(atMs)} title={`${localText(atMs)} · ${utcText(atMs)}`}>
            <b>{whenText(atMs, section, nowMs)}</b> <span class="quiet">{relativeText(atMs, nowMs)}</span>
          </time>
        )}
      </td>
      <th scope="row">
        <JobLink queue={row.queue} id={row.id} bare={row.bare} />
      </th>
      <td class="st">
        <State of={stateOf(row)} text={heldUntil(row, nowMs) ?? words.states[stateOf(row)]} />
      </td>
      {columns.map((column) => (
        <td key={column} class={CLASSES[column]}>
          <Cell row={row} column={column} nowMs={nowMs} />
        </td>
      ))}
    </tr>
  );
}

/** Its worker holds it until it is due. */
const heldUntil = (row: Row, nowMs: number): string | undefined =>
  heldText(row, nowMs) === undefined || row.dueMs === undefined
    ? undefined
    : words.jobs.heldUntil(secondText(row.dueMs));

const CLASSES: Readonly<Record<Column, string>> = {
  queue: 'in',
  note: 'note quiet',
  attempts: 'n tries',
  name: 'more',
  tags: 'more',
  worker: 'more',
  data: 'more data',
};

function Cell({ row, column, nowMs }: Pick<RowOf, 'row' | 'nowMs'> & { readonly column: Column }) {
  switch (column) {
    case 'queue':
      return (
        <a class="plain" href={`#/queue/${encodeURIComponent(row.queue)}`}>
          {row.queue}
        </a>
      );
    case 'note':
      return <Note row={row} nowMs={nowMs} />;
    case 'attempts':
      return row.attempts > 0 ? row.attempts : <span class="none">–</span>;
    case 'name':
      return <>{row.name ?? ''}</>;
    case 'tags':
      return <>{row.tags?.join(', ') ?? ''}</>;
    case 'worker':
      return row.owner === undefined ? null : <Id text={row.owner} />;
    case 'data':
      return row.preview === undefined ? null : <code title={row.preview}>{row.preview}</code>;
  }
}

/** Why it waits, or what came of it: the least that saves a look at the job. */
function Note({ row, nowMs }: Pick<RowOf, 'row' | 'nowMs'>) {
  const { now } = useLive();
  const { state, error, startedMs, tookMs, owner } = row;
  const on = owner === undefined ? '' : ` ${words.jobs.on(owner)}`;
  if (error !== undefined && state !== 'running') return <span title={error}>{error}</span>;
  if (state === 'running' && startedMs !== undefined) {
    return <>{`${words.jobs.runsFor(durationText(Math.max(0, nowMs - startedMs)))}${on}`}</>;
  }
  if (tookMs !== undefined) return <>{`${words.jobs.took(durationText(tookMs))}${on}`}</>;
  const queue = now?.queues.find(({ queue }) => queue === row.queue);
  if (isLiveRow(row) && queue?.paused) return <span class="warn-text">{words.jobs.paused}</span>;
  if (state === 'ready' && queue?.workers === 0) return <span class="warn-text">{words.jobs.noWorker}</span>;
  return null;
}
