/** What the API answers, as a page holds it: asked for when the page opens, and again when somebody says so. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { ask } from '../api.ts';

export interface Asked<Shape> {
  /** The last answer; it stays while the next one is under way. */
  readonly value: Shape | undefined;
  readonly problem: unknown;
  readonly isBusy: boolean;
  readonly reload: () => void;
}

/** @param path what is asked for: another path, another answer; undefined asks for nothing */
export function useAsked<Shape>(path: string | undefined): Asked<Shape> {
  const [state, setState] = useState<Omit<Asked<Shape>, 'reload'>>({
    value: undefined,
    problem: undefined,
    isBusy: true,
  });
  const [round, setRound] = useState(0);
  const asked = useRef<string | undefined>(undefined);
  useEffect(() => {
    if (path === undefined) return undefined;
    let isGone = false;
    const before = asked.current === path;
    asked.current = path;
    setState(({ value }) => ({ value: before ? value : undefined, problem: undefined, isBusy: true }));
    ask<Shape>(`GET ${path}`).then(
      (value) => isGone || setState({ value, problem: undefined, isBusy: false }),
      (problem: unknown) => isGone || setState(({ value }) => ({ value, problem, isBusy: false })),
    );
    return () => {
      isGone = true;
    };
  }, [path, round]);
  return { ...state, reload: useCallback(() => setRound((count) => count + 1), []) };
}

/** A list that grows page by page. What is shown stays where it is, whatever moves meanwhile. */
export interface Listed<Row> {
  readonly rows: readonly Row[];
  readonly cursor: string | undefined;
  readonly problem: unknown;
  readonly isBusy: boolean;
  readonly more: () => void;
  readonly reload: () => void;
}

export interface ListSource<Row> {
  /** Without the cursor. */
  readonly path: string;
  readonly rowsOf: (page: { readonly cursor?: string }) => readonly Row[];
  readonly keyOf: (row: Row) => string;
}

/** An empty page may have a next one: the search looks at a bounded number of places. So many are asked for at once. */
const EMPTY_PAGES_MAX = 20;

export function useList<Row>({ path, rowsOf, keyOf }: ListSource<Row>): Listed<Row> {
  const [rows, setRows] = useState<readonly Row[]>([]);
  const [cursor, setCursor] = useState<string>();
  const [problem, setProblem] = useState<unknown>();
  const [isBusy, setBusy] = useState(true);
  const running = useRef(0);

  async function load(before: readonly Row[], from: string | undefined): Promise<void> {
    running.current += 1;
    const mine = running.current;
    setBusy(true);
    setProblem(undefined);
    try {
      const page = await pagesFrom({ path, rowsOf, from });
      if (mine !== running.current) return;
      // A job that moved to a later place while the list grew is shown once, where it was.
      const known = new Set(before.map(keyOf));
      setRows([...before, ...page.found.filter((row) => !known.has(keyOf(row)))]);
      setCursor(page.cursor);
    } catch (error) {
      if (mine === running.current) setProblem(error);
    } finally {
      if (mine === running.current) setBusy(false);
    }
  }

  useEffect(() => {
    setRows([]);
    setCursor(undefined);
    void load([], undefined);
    return () => {
      running.current += 1;
    };
  }, [path]);
  return { rows, cursor, problem, isBusy, more: () => void load(rows, cursor), reload: () => void load([], undefined) };
}

async function pagesFrom<Row>({
  path,
  rowsOf,
  from,
}: Pick<ListSource<Row>, 'path' | 'rowsOf'> & { readonly from: string | undefined }) {
  let cursor = from;
  for (let asked = 0; ; asked += 1) {
    const sign = path.includes('?') ? '&' : '?';
    const page: { readonly cursor?: string } = await ask(
      `GET ${path}${cursor === undefined ? '' : `${sign}cursor=${encodeURIComponent(cursor)}`}`,
    );
    const found = rowsOf(page);
    cursor = page.cursor;
    if (found.length > 0 || cursor === undefined || asked >= EMPTY_PAGES_MAX) return { found, cursor };
  }
}
