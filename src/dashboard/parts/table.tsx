/** A table that scrolls inside itself where it is wider than the page, also by keyboard. */
import type { ComponentChildren } from 'preact';

/** Its name; a column of numbers is aligned at the right, as are its cells of the class `number`. */
export type Column = string | { readonly number: string };

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
