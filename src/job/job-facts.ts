/**
 * The facts of the report of a job, one row for each, in the order in which people read them: `duestream show` and the page of a
 * job walk this table. The page has words of its own, in several languages, and the compiler asks for them by the key of a row. It
 * runs in a browser too, so it takes no more of the report than it says.
 */
import { counted, percent } from '../kernel/humanize.ts';
import { accountWords, type StartAccount } from './account.ts';

/** The report of a job, as the library and the HTTP API give it. */
interface ToldJob {
  readonly deferred?: { readonly times: number; readonly reason?: string | undefined } | undefined;
  readonly progress?:
    | { readonly fraction: number; readonly text?: string | undefined; readonly atMs: number }
    | undefined;
  readonly nextLifeMs?: number | undefined;
  readonly starts?: { readonly text: string } | undefined;
  readonly account?: StartAccount | undefined;
  readonly nowMs: number;
}

interface Fact {
  readonly key: string;
  /**
   * The line in `show`. Left out: `show` says it elsewhere, with what the job is or in its timeline.
   *
   * @param relative `in 5 min`, `3 s ago`. Undefined or empty: it is not shown.
   */
  readonly line?: {
    readonly label: string;
    readonly value: (job: ToldJob, relative: (atMs: number, nowMs: number) => string) => string | undefined;
  };
}

export type FactKey = (typeof jobFacts)[number]['key'];

export const jobFacts = [
  { key: 'name' },
  { key: 'tags' },
  { key: 'attempts' },
  { key: 'lastStart', line: { label: 'last start', value: ({ account }) => account && accountWords(account) } },
  {
    key: 'aside',
    line: {
      label: 'put aside',
      value: ({ deferred }) => (deferred?.times ? asideText(deferred) : undefined),
    },
  },
  {
    key: 'progress',
    line: {
      label: 'progress',
      value: ({ progress, nowMs }, relative) =>
        progress &&
        [percent(progress.fraction), progress.text ?? '', relative(Math.min(progress.atMs, nowMs), nowMs)]
          .filter((part) => part !== '')
          .join(', '),
    },
  },
  {
    key: 'newer',
    line: {
      label: 'newer data',
      value: ({ nextLifeMs, nowMs }, relative) =>
        nextLifeMs === undefined
          ? undefined
          : `came while it runs, and are shown here. They start when this run has ended, and not before they are due: ${relative(nextLifeMs, nowMs)}`,
    },
  },
  { key: 'starts', line: { label: 'starts', value: ({ starts }) => starts?.text } },
  { key: 'worker' },
  { key: 'reason' },
  { key: 'partition' },
] as const satisfies readonly Fact[];

/** How often a handler put its job aside. */
export const asideText = ({ times, reason }: NonNullable<ToldJob['deferred']>): string =>
  `${counted(times, 'time')}${reason === undefined ? '' : `, last because: ${reason}`}`;

interface Starts {
  readonly attempts: number;
  readonly failures: number;
  readonly crashes: number;
  readonly history: readonly unknown[];
  readonly timeline: readonly { readonly kind: string; readonly attempt?: number | undefined }[];
}

const STARTS: ReadonlySet<string> = new Set([
  ...['started', 'failure', 'timeout', 'crash', 'refused', 'deferred', 'handed-back'],
]);

/** Of starts that have no place in the timeline; undefined: each has one. */
export function notKeptText(job: Starts): string | undefined {
  const missing = notKept(job);
  if (missing === 0) return undefined;
  return `${counted(missing, 'start')} ${missing === 1 ? 'is' : 'are'} not kept; a start that a handler put aside, or a worker handed back, uses no attempt`;
}

/** How many starts have no place in the timeline. */
export function notKept({ attempts, failures, crashes, history, timeline }: Starts): number {
  const listed = timeline.flatMap(({ kind, attempt }) => (STARTS.has(kind) && attempt !== undefined ? [attempt] : []));
  // Failures that are not kept have a line of their own.
  return Math.max(0, attempts - new Set(listed).size - Math.max(0, failures + crashes - history.length));
}
