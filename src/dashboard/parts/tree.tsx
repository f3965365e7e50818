/** Data of a job, to be opened branch by branch. All of it is text: nothing in it becomes markup. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { words } from '../words/words.ts';
import { numberText } from './words.ts';

/** Deeper branches begin closed. */
const OPEN_TO = 2;
/** So many entries of a branch are shown at first. */
const ENTRIES_SHOWN = 100;

interface Branch {
  readonly value: unknown;
  /** The key or index that leads to it. */
  readonly name?: string;
  readonly depth?: number;
}

export function Tree({ value, name, depth = 0 }: Branch) {
  if (typeof value !== 'object' || value === null) {
    return (
      <Line name={name}>
        <code class={`value ${value === null ? 'null' : typeof value}`}>{textOf(value)}</code>
      </Line>
    );
  }
  const entries = Object.entries(value);
  const size = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  if (entries.length === 0) {
    return (
      <Line name={name}>
        <code class="value empty">{size}</code>
      </Line>
    );
  }
  return <Branches {...{ name, depth, size, entries }} />;
}

interface Entries {
  readonly name: string | undefined;
  readonly depth: number;
  readonly size: string;
  readonly entries: readonly (readonly [string, unknown])[];
}

/** A closed branch holds nothing: a million entries cost nothing until somebody looks. */
function Branches({ name, depth, size, entries }: Entries) {
  const [isOpen, setOpen] = useState(depth < OPEN_TO);
  const [shown, setShown] = useState(ENTRIES_SHOWN);
  return (
    <details class="tree" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {name === undefined ? null : <span class="key">{name}: </span>}
        <code class="size">{size}</code>
      </summary>
      {isOpen
        ? entries.slice(0, shown).map(([key, one]) => <Tree key={key} name={key} value={one} depth={depth + 1} />)
        : null}
      {isOpen && entries.length > shown ? (
        <button type="button" onClick={() => setShown(shown + ENTRIES_SHOWN)}>
          {words.parts.more(numberText(entries.length - shown))}
        </button>
      ) : null}
    </details>
  );
}

function Line({ name, children }: { readonly name: string | undefined; readonly children: ComponentChildren }) {
  return (
    <div class="leaf">
      {name === undefined ? null : <span class="key">{name}: </span>}
      {children}
    </div>
  );
}

const textOf = (value: unknown): string => (typeof value === 'string' ? JSON.stringify(value) : String(value));
