/** What the API answers, as a page holds it: asked for when the page opens, and again when somebody says so. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { askJson } from '../api.ts';
import { type Answer, addressOf, type Call, type Given, type Shape } from '../call.ts';

export interface Asked<Value> {
  /** The last answer; it stays while the next one is under way. */
  readonly value: Value | undefined;
  readonly problem: unknown;
  readonly isBusy: boolean;
  readonly reload: () => void;
}

/** Another address, another answer. */
export function useAsked<One extends Shape>(call: Call<One>, given: NoInfer<Given<One>>): Asked<Answer<One>> {
  const address = addressOf(call, given);
  const [state, setState] = useState<Omit<Asked<Answer<One>>, 'reload'>>({
    value: undefined,
    problem: undefined,
    isBusy: true,
  });
  const [round, setRound] = useState(0);
  const asked = useRef<string>();
  useEffect(() => {
    let isGone = false;
    const before = asked.current === address;
    asked.current = address;
    setState(({ value }) => ({ value: before ? value : undefined, problem: undefined, isBusy: true }));
    askJson(call, given).then(
      (value) => isGone || setState({ value, problem: undefined, isBusy: false }),
      (problem: unknown) => isGone || setState(({ value }) => ({ value, problem, isBusy: false })),
    );
    return () => {
      isGone = true;
    };
  }, [address, round]);
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

export interface RowsOf<Page, Row> {
  readonly rowsOf: (page: Page) => readonly Row[];
  readonly keyOf: (row: Row) => string;
}

/** A call that is answered page by page. */
interface Paged extends Shape {
  readonly given: { readonly cursor?: string };
  readonly answer: { readonly cursor?: string };
}

/** An empty page may have a next one: the search looks at a bounded number of places. So many are asked for at once. */
const EMPTY_PAGES_MAX = 20;

/** @param given without the cursor */
export function useList<One extends Paged, Row>(
  call: Call<One>,
  given: NoInfer<Given<One>>,
  { rowsOf, keyOf }: RowsOf<NoInfer<Answer<One>>, Row>,
): Listed<Row> {
  const address = addressOf(call, given);
  // Rows are those of one address: with another one the first look shows none of them, and says that it is busy.
  const [listed, setListed] = useState(address);
  const [rows, setRows] = useState<readonly Row[]>([]);
  const [cursor, setCursor] = useState<string>();
  const [problem, setProblem] = useState<unknown>();
  const [isBusy, setBusy] = useState(true);
  const running = useRef(0);

  /** Pages until one has rows. */
  async function next(from: string | undefined): Promise<{ found: readonly Row[]; cursor: string | undefined }> {
    let at = from;
    for (let asked = 0; ; asked += 1) {
      const page = await askJson(call, { ...given, cursor: at });
      const found = rowsOf(page);
      at = page.cursor;
      if (found.length > 0 || at === undefined || asked >= EMPTY_PAGES_MAX) return { found, cursor: at };
    }
  }

  async function load(before: readonly Row[], from: string | undefined): Promise<void> {
    running.current += 1;
    const mine = running.current;
    setBusy(true);
    setProblem(undefined);
    try {
      const page = await next(from);
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
    setListed(address);
    setRows([]);
    setCursor(undefined);
    void load([], undefined);
    return () => {
      running.current += 1;
    };
  }, [address]);
  const acts = { more: () => void load(rows, cursor), reload: () => void load([], undefined) };
  if (listed !== address) return { rows: [], cursor: undefined, problem: undefined, isBusy: true, ...acts };
  return { rows, cursor, problem, isBusy, ...acts };
}
