/** Lists of a page: a table, what stands in its cells, and the buttons below it. */
import type { ComponentChildren } from 'preact';
import type { Listed } from './asked.ts';
import { localText, relativeText, utcBeside, utcText } from './words.ts';

// A table that scrolls inside itself where it is wider than the page, also by keyboard.

/** Its name; a column of numbers is aligned at the right, as are its cells of the class `number`. */
type Column = string | { readonly number: string };

interface TableOf {
  /** What it is a table of: `jobs`. */
  readonly of: string;
  readonly columns: readonly Column[];
  /** The rows. */
  readonly children: ComponentChildren;
}

export function Table({ of, columns, children }: TableOf) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`Table of ${of}`}>
      <table>
        <thead>
          <tr>{columns.map(head)}</tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

function head(column: Column) {
  const isNumber = typeof column === 'object';
  const name = isNumber ? column.number : column;
  return (
    <th key={name} scope="col" class={isNumber ? 'number' : undefined}>
      {name}
    </th>
  );
}

// Below a list: look again from its beginning, and show what comes next if there is more.

type Actions = Pick<Listed<never>, 'next' | 'isBusy' | 'more' | 'reload'>;

export function ListActions({ next, isBusy, more, reload }: Actions) {
  return (
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
  );
}

// An instant: how far away it is; the long form has the local time, and UTC beside it. Both are said to whoever points
// at it.

export function Instant({ atMs, isLong = false }: { readonly atMs: number | undefined; readonly isLong?: boolean }) {
  if (atMs === undefined) return <span class="quiet">–</span>;
  const local = localText(atMs);
  const relative = relativeText(atMs, Date.now());
  const beside = isLong ? utcBeside(atMs, local) : '';
  return (
    <time dateTime={utcText(atMs)} title={`${local} · ${utcText(atMs)}`}>
      {isLong ? local : relative}
      {beside === '' ? null : <span class="quiet"> · {beside}</span>}
      {isLong ? ` (${relative})` : ''}
    </time>
  );
}

// An id that leads to the page of its job. A bare job, made by a plain ZADD, may have the id of another.

interface Named {
  readonly queue: string;
  readonly id: string;
  readonly bare: boolean;
}

export function JobLink({ queue, id, bare }: Named) {
  return (
    <a class="id" href={`#/job/${encodeURIComponent(queue)}/${encodeURIComponent(id)}${bare ? '?bare=true' : ''}`}>
      {id}
    </a>
  );
}
