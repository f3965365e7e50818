/** Lists of a page: a table, what stands in its cells, and the buttons below it. */
import { type ComponentChildren, toChildArray } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { words } from '../words/words.ts';
import type { Listed } from './asked.ts';
import { localText, utcBeside, utcText } from './clock.ts';
import { relativeText, shortText } from './words.ts';

// A table that scrolls inside itself where it is wider than the page, also by keyboard. In a narrow window each row is a
// card, and each cell has the name of its column in front. Without rows there is no table, and no heads of nothing.

/** Its name; a column of numbers is aligned at the right, as are its cells of the class `number`. */
type Column = string | { readonly number: string };

interface TableOf {
  /** What it is a table of: `jobs`. */
  readonly of: string;
  /** Its classes: `list texts` is a table whose rows flow as lines in a narrow window. */
  readonly look?: string;
  readonly columns: readonly Column[];
  /** The rows. */
  readonly children: ComponentChildren;
}

export function Table({ of, look, columns, children }: TableOf) {
  const place = useRef<HTMLDivElement>(null);
  // After each drawing: rows come and go, and a page may leave a column out.
  useLayoutEffect(() => nameParts(place.current, columns.map(nameOf)));
  if (toChildArray(children).length === 0) return null;
  return (
    <div ref={place} class="scroll" tabIndex={0} role="region" aria-label={words.parts.table(of)}>
      <table class={look}>
        <thead>
          <tr>{columns.map(head)}</tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

function head(column: Column) {
  const name = nameOf(column);
  return (
    <th key={name} scope="col" class={typeof column === 'object' ? 'number' : undefined}>
      {name}
    </th>
  );
}

const nameOf = (column: Column): string => (typeof column === 'object' ? column.number : column);

/** A browser may forget that a row is one when it is drawn as a card: so each part says what it is. */
const ROLES = [
  ['table', 'table'],
  ['thead, tbody', 'rowgroup'],
  ['tr', 'row'],
  ['td', 'cell'],
  ['thead th', 'columnheader'],
  ['tbody th', 'rowheader'],
] as const;

export function nameRoles(place: HTMLElement | null | undefined): void {
  for (const [parts, role] of ROLES)
    for (const part of place?.querySelectorAll(parts) ?? []) part.setAttribute('role', role);
}

/** Each cell gets the name of its column, for the style sheet. Rows are made by the pages, so it is done where they meet. */
function nameParts(place: HTMLElement | null, names: readonly string[]): void {
  if (place === null) return;
  nameRoles(place);
  for (const row of place.querySelectorAll('tbody tr')) {
    for (const [at, cell] of [...row.children].entries()) cell.setAttribute('data-label', names[at] ?? '');
  }
}

// Below a list: look again from its beginning, and show what comes next if there is more.

type Actions = Pick<Listed<never>, 'cursor' | 'isBusy' | 'more' | 'reload'>;

export function ListActions({ cursor, isBusy, more, reload }: Actions) {
  return (
    <p class="actions">
      <button type="button" onClick={reload}>
        {words.parts.lookAgain}
      </button>
      {cursor === undefined ? null : (
        <button type="button" onClick={more} disabled={isBusy}>
          {words.parts.showMore}
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

// An id in a list. It breaks behind one of its separators before it breaks anywhere else. A very long one is shortened in the
// middle, and the whole of it is said to whoever points at it. The page of a job shows it whole.

export function Id({ text, isWhole = false }: { readonly text: string; readonly isWhole?: boolean }) {
  const short = isWhole ? text : shortText(text);
  return (
    <span class="id" title={short === text ? undefined : text}>
      {short.split(/(?<=[:/._}-])/).flatMap((piece, at) => (at === 0 ? [piece] : [<wbr key={at} />, piece]))}
    </span>
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
    <a href={`#/job/${encodeURIComponent(queue)}/${encodeURIComponent(id)}${bare ? '?bare=true' : ''}`}>
      <Id text={id} />
    </a>
  );
}
