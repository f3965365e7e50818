/** A button that keeps what a page shows as a file of comma-separated values. It is made in the browser: nothing more is asked for than the page may ask. */
import { useState } from 'preact/hooks';
import { words } from '../words/words.ts';
import { type Cell, csvText } from './csv.ts';
import { Icon } from './icon.tsx';
import { ProblemNote } from './problem.tsx';

interface ExportOf {
  /** Of the file, without its ending: `slo-2026-11`. */
  readonly name: string;
  /** The first row has the names of the columns. */
  readonly rows: () => Promise<readonly (readonly Cell[])[]> | readonly (readonly Cell[])[];
}

export function Export({ name, rows }: ExportOf) {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>();

  async function keep(): Promise<void> {
    setBusy(true);
    setProblem(undefined);
    try {
      save(`${name}.csv`, csvText(await rows()));
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  }

  return (
    <span class="export">
      <button type="button" disabled={isBusy} onClick={() => void keep()}>
        <Icon name="download" />
        {words.parts.exportCsv}
      </button>
      <ProblemNote problem={problem} />
    </span>
  );
}

/** Spreadsheets take a file without this mark for one of another alphabet. */
const UTF8 = '\uFEFF';

function save(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([UTF8, text], { type: 'text/csv;charset=utf-8' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
