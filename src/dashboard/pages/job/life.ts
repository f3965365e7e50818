/**
 * The life of a job as a picture has it: its starts, and of each the times between, every one with its cause. It is made of the
 * timeline and of the accounts of its starts. A time that nobody tells a cause of is drawn as such, and nothing is guessed.
 *
 *  due ─parts of the account─▶ start ─run─▶ failed ─backoff─▶ due ─parts─▶ start ─run─▶ done
 *  └──────────── attempt 1 ─────────────┘   └──────────────── attempt 2 ─────────────────┘
 */
import type { AccountPart, Cause } from '../../../job/account.ts';
import type { Schemas } from '../../api-types.ts';
import type { Words } from '../../words/en.ts';

type StateName = keyof Words['states'];
export type Report = Schemas['Job'];
/** A change that the audit has. */
export type Change = Schemas['AuditEntry'];
type Moment = Schemas['Moment'];

/** What passes: a cause of an account, or what lies between two starts and behind one. */
export type Why = Cause | 'retry' | 'aside' | 'wait' | 'between' | 'handler' | 'run';

/** Colour and pattern of what passes, of css/job.css. */
export const COLOURS: Readonly<Record<Why, string>> = {
  'made-late': 'asked',
  promotion: 'promote',
  'no-leader': 'promote',
  linger: 'promote',
  behind: 'promote',
  paused: 'gate',
  line: 'gate',
  closed: 'gate',
  'group-full': 'gate',
  concurrency: 'gate',
  rate: 'gate',
  shared: 'gate',
  unasked: 'noworker',
  worker: 'noworker',
  'no-worker': 'noworker',
  busy: 'noworker',
  unproven: 'noworker',
  ran: 'run',
  'clock-set': 'asked',
  retry: 'retry',
  aside: 'asked',
  wait: 'asked',
  between: 'asked',
  handler: 'promote',
  run: 'run',
};

/** A time with one cause. */
export interface Piece {
  readonly fromMs: number;
  readonly toMs: number;
  readonly why: Why;
  /** The cause is told by clocks that are read ten times a second. */
  readonly isAbout: boolean;
}

/** A start with what led to it, or what leads to the next one. */
export interface Attempt {
  /** Undefined where nobody knows it. */
  readonly attempt: number | undefined;
  readonly fromMs: number;
  readonly toMs: number;
  readonly pieces: readonly Piece[];
  readonly state: StateName;
  /** How it ended. */
  readonly end: Moment | undefined;
  readonly owner: string | undefined;
}

export interface Life {
  readonly fromMs: number;
  readonly toMs: number;
  readonly attempts: readonly Attempt[];
}

/** An entry of the audit is written after its change: that of a cancellation stands a moment behind the end that it made. */
const ENTRY_MS = 1000;

/**
 * The changes of this life. An id may have had earlier ones, and the audit has the changes of all of them.
 *
 * @param changes the newest first
 */
export function ofThisLife({ timeline }: Pick<Report, 'timeline'>, changes: readonly Change[]): readonly Change[] {
  const end = timeline.findLast(({ kind }) => kind === 'earlier-end');
  if (end === undefined) return changes;
  const since = changes.filter(({ atMs }) => atMs >= end.atMs);
  const first = since.findLast(({ verb }) => verb === 'jobs.cancel');
  const madeEnd = end.outcome === 'cancelled' && first !== undefined && first.atMs - end.atMs < ENTRY_MS;
  return madeEnd ? since.filter((one) => one !== first) : since;
}

const FAILED: ReadonlySet<string> = new Set(['failure', 'timeout', 'crash', 'refused']);
const ENDED: ReadonlySet<string> = new Set([...FAILED, 'deferred', 'handed-back']);
const OVER: ReadonlySet<string> = new Set(['done', 'cancelled', 'expired', 'dead']);

export const isFailed = ({ kind }: Moment): boolean => FAILED.has(kind);

/** A start as the timeline tells it. */
interface Run {
  readonly attempt: number | undefined;
  /** Undefined: nobody knows. */
  readonly startedMs: number | undefined;
  readonly account: Schemas['StartAccount'] | undefined;
  readonly owner: string | undefined;
  readonly end: Moment | undefined;
  /** Of a crash: when Redis last heard of its worker. */
  readonly signMs: number | undefined;
}

/** @returns undefined before its first start, as long as it is not late */
export function lifeOf(job: Report): Life | undefined {
  const runs = runsOf(job);
  const first = runs[0];
  const fromMs = first === undefined ? (job.dueMs ?? job.askedDueMs) : beginOf(job, first, runs);
  // A due time of 0 is that of a job that was due when it was put.
  if (
    fromMs === undefined ||
    fromMs < EARLIEST_MS ||
    (first === undefined && (fromMs > job.nowMs || OVER.has(job.state)))
  )
    return undefined;
  const attempts: Attempt[] = [];
  let atMs = fromMs;
  for (const [at, run] of runs.entries()) {
    const before = attempts.at(-1);
    const account = run.account ?? runs.slice(at + 1).find(isOf(run))?.account;
    const attempt = attemptOf(job, { run: { ...run, account }, fromMs: atMs, before });
    attempts.push(attempt);
    atMs = attempt.toMs;
  }
  const next = nextOf(job, atMs, attempts.at(-1));
  if (next !== undefined) attempts.push(next);
  return { fromMs, toMs: attempts.at(-1)?.toMs ?? fromMs, attempts };
}

/** The account of a start after a crash begins at the due time of the start that crashed. */
const isOf =
  ({ startedMs }: Run) =>
  ({ account }: Run): boolean =>
    account !== undefined && startedMs !== undefined && account.dueMs <= startedMs;

function beginOf(job: Report, first: Run, runs: readonly Run[]): number | undefined {
  const account = first.account ?? runs.find(isOf(first))?.account;
  const startMs = first.startedMs ?? first.end?.atMs;
  if (account !== undefined) return Math.min(account.dueMs, startMs ?? account.dueMs);
  const asked = job.askedDueMs;
  return asked !== undefined && asked >= EARLIEST_MS && startMs !== undefined && asked < startMs ? asked : startMs;
}

const EARLIEST_MS = 1e11;

function runsOf({ timeline, history, state }: Report): readonly Run[] {
  const runs: Run[] = [];
  let open: Moment | undefined;
  for (const moment of timeline) {
    const { kind, attempt } = moment;
    if (kind === 'started') open = moment;
    if (!ENDED.has(kind) && !OVER.has(kind)) continue;
    if (OVER.has(kind) && open === undefined) continue;
    const start = open?.attempt === attempt ? open : undefined;
    const kept = history.find((one) => one.atMs === moment.atMs && one.attempt === attempt);
    runs.push(runOf(start, moment, kept));
    open = undefined;
  }
  if (open !== undefined && state === 'running') runs.push(runOf(open, undefined, undefined));
  return runs;
}

const runOf = (start: Moment | undefined, end: Moment | undefined, kept: Schemas['Attempted'] | undefined): Run => ({
  attempt: (start ?? end)?.attempt,
  startedMs: start?.account?.startedMs ?? start?.atMs ?? kept?.beganMs,
  account: start?.account,
  owner: (start ?? end)?.owner,
  end,
  signMs: kept?.signMs,
});

interface Told {
  readonly run: Run;
  /** Where the attempt before has ended. */
  readonly fromMs: number;
  readonly before: Attempt | undefined;
}

function attemptOf(job: Report, told: Told): Attempt {
  const { run, fromMs } = told;
  const { attempt, owner, end, startedMs, account, signMs } = run;
  const endMs = Math.max(fromMs, end?.atMs ?? job.nowMs);
  const startMs = Math.min(endMs, Math.max(fromMs, startedMs ?? endMs));
  const heldMs = Math.max(startMs, Math.min(account?.dueMs ?? startMs, endMs));
  const handlerMs = Math.min(endMs, heldMs + (account?.toHandlerMs ?? 0));
  const lastMs = Math.max(handlerMs, Math.min(signMs ?? endMs, endMs));
  const pieces = [
    ...waitOf(told, startMs),
    pieceOf('wait', startMs, heldMs),
    pieceOf('handler', heldMs, handlerMs),
    pieceOf('run', handlerMs, lastMs),
    pieceOf('unproven', lastMs, endMs),
  ];
  const state = end === undefined ? 'running' : stateOf(end);
  return { attempt, owner, end, state, fromMs, toMs: endMs, pieces: pieces.filter(isLong) };
}

function stateOf(end: Moment): StateName {
  if (FAILED.has(end.kind)) return 'failed';
  if (end.kind === 'done' || end.kind === 'cancelled' || end.kind === 'expired' || end.kind === 'dead') return end.kind;
  return 'scheduled';
}

/** From the end of the attempt before to a start. */
function waitOf({ run: { account }, fromMs, before }: Told, startMs: number): readonly Piece[] {
  if (account === undefined) return [pieceOf(before === undefined ? 'wait' : 'between', fromMs, startMs)];
  const pieces = [pieceOf(gapOf(before), fromMs, Math.min(account.dueMs, startMs))];
  let atMs = account.dueMs;
  for (const part of account.parts) {
    pieces.push(clipped(part, { fromMs: Math.max(atMs, fromMs), toMs: Math.min(atMs + part.ms, startMs) }));
    atMs += part.ms;
  }
  return [...pieces, pieceOf('wait', Math.max(fromMs, Math.min(atMs, startMs)), startMs)];
}

const clipped = ({ cause, about }: AccountPart, time: { readonly fromMs: number; readonly toMs: number }): Piece => ({
  ...time,
  why: cause,
  isAbout: about === true,
});

/** What lies between an end and the next due time. */
function gapOf(before: Attempt | undefined): Why {
  if (before?.state === 'failed') return 'retry';
  if (before?.end?.kind === 'deferred') return 'aside';
  return before === undefined ? 'wait' : 'between';
}

const pieceOf = (why: Why, fromMs: number, toMs: number): Piece => ({ why, fromMs, toMs, isAbout: false });
const isLong = ({ fromMs, toMs }: Piece): boolean => toMs > fromMs;

const WAITS: Readonly<Record<string, Why>> = { scheduled: 'promotion', waiting: 'line', ready: 'worker' };

/** What comes next of a job that waits. */
function nextOf(job: Report, fromMs: number, before: Attempt | undefined): Attempt | undefined {
  const { state, dueMs, nowMs, attempts } = job;
  const why = WAITS[state];
  if (why === undefined) return undefined;
  const untilDueMs = Math.max(fromMs, dueMs ?? fromMs);
  const toMs = Math.max(untilDueMs, nowMs);
  const pieces = [pieceOf(gapOf(before), fromMs, untilDueMs), pieceOf(why, untilDueMs, toMs)];
  const shown: StateName = state === 'scheduled' && before?.state === 'failed' ? 'retry' : (state as StateName);
  return {
    attempt: attempts + 1,
    owner: undefined,
    end: undefined,
    state: shown,
    ...{ fromMs, toMs, pieces: pieces.filter(isLong) },
  };
}

/** For how long each cause lasted, the longest first. */
export interface Sum {
  readonly why: Why;
  readonly ms: number;
  readonly isAbout: boolean;
}

export function sumsOfLife({ attempts }: Life): readonly Sum[] {
  const sums = new Map<Why, Sum>();
  for (const { why, fromMs, toMs, isAbout } of attempts.flatMap(({ pieces }) => pieces)) {
    const before = sums.get(why);
    sums.set(why, { why, ms: (before?.ms ?? 0) + toMs - fromMs, isAbout: isAbout || before?.isAbout === true });
  }
  return [...sums.values()].toSorted((one, other) => other.ms - one.ms);
}

/** A life that is shorter needs no reason. */
const SHORT_MS = 1000;

/** What took most of a life, if that is a half of it. */
export function mostOf(life: Life): Why | undefined {
  const wholeMs = life.toMs - life.fromMs;
  const [first] = sumsOfLife(life);
  return wholeMs >= SHORT_MS && first !== undefined && first.ms * 2 >= wholeMs ? first.why : undefined;
}
