/** Which columns the list of jobs has. The choice stays in this browser. */
import { useId } from 'preact/hooks';
import { Icon } from '../../parts/icon.tsx';
import { words } from '../../words/words.ts';

/** When, which and in what state is always there. */
export const COLUMNS = ['queue', 'note', 'attempts', 'name', 'tags', 'worker', 'data'] as const;
export type Column = (typeof COLUMNS)[number];
export type Columns = readonly Column[];

const AT_FIRST: Columns = ['queue', 'note', 'attempts'];
const KEY = 'duestream.columns';

export function keptColumns(): Columns {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? 'null');
    return Array.isArray(kept) ? COLUMNS.filter((one) => kept.includes(one)) : AT_FIRST;
  } catch {
    // Storage may be forbidden, or what stands there is not ours.
    return AT_FIRST;
  }
}

function keep(columns: Columns): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(columns));
  } catch {
    // Then the choice holds for this page.
  }
}

interface Menu {
  readonly columns: Columns;
  readonly set: (columns: Columns) => void;
}

export function ColumnsMenu({ columns, set }: Menu) {
  const id = useId();
  const toggle = (column: Column) => {
    const next = COLUMNS.filter((one) => (one === column) !== columns.includes(one));
    keep(next);
    set(next);
  };
  return (
    <span class="right">
      <button type="button" {...{ popovertarget: id }}>
        {words.jobs.columns}
        <Icon name="down" />
      </button>
      <div id={id} class="menu" {...{ popover: 'auto' }}>
        <fieldset>
          <legend>{words.jobs.columnsWhich}</legend>
          {COLUMNS.map((column) => (
            <label key={column}>
              <input type="checkbox" checked={columns.includes(column)} onChange={() => toggle(column)} />
              {words.jobs.column[column]}
            </label>
          ))}
        </fieldset>
      </div>
    </span>
  );
}
