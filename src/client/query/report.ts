/**
 * The report of one job: what is known of it right now, and what happened to it in the order of time. It is made here and
 * nowhere else: `get` of a client returns it, `duestream show`, the HTTP API and the dashboard show it (with what
 * `inspect/redacted.ts` hides from people), the test kit makes it of its own jobs. Looking at a broken job must not throw,
 * because somebody looks at it because it is broken.
 */
import { briefAccount, type StartAccount, tokenMs, withDiary } from '../../job/account.ts';
import { contentOf, memberOf, NO_CONTENT, type RecordContent } from '../../job/codec.ts';
import type { ToldOptions } from '../../job/fields.ts';
import { DEFAULT_NAME, type EntryId } from '../../job/job.ts';
import { groupOf, type JobHeaders } from '../../job/labels.ts';
import type { JobLog } from '../../job/log-lines.ts';
import type { Attempted, Deferred, JobProgress, PutAside } from '../../job/outcome.ts';
import { isEndOf, type KeptResult, type PastJob } from '../../job/past.ts';
import type { Queue } from '../../job/queue.ts';
import { decodeHeader, digestOf } from '../../job/record-header.ts';
import { heldText, type JobState, type OverState } from '../../job/state.ts';
import type { InputOf } from '../../job/types.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import { diaryAround } from '../../redis/diary.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { type Ended, pastOf, turnsWhile } from '../../redis/read/ends.ts';
import { type DeadLetter, deadLetter, type Peek, peek, stats } from '../../redis/read/inspect.ts';
import { readLog } from '../../redis/read/log-lines.ts';
import { readLooks } from '../../redis/read/looks.ts';
import { readEntries, startAccount } from '../../redis/scripts/ready.ts';
import type { Moved } from '../../redis/scripts/replies.ts';
import { etagOfJob } from '../calls/etag.ts';
import { type CallPartitions, placesOf } from '../calls/partition-calls.ts';
import { withReadRetry } from '../calls/retry.ts';
import { isOverState } from './filter.ts';
import { type JobWait, jobWaitOf } from './waits.ts';

/** A job at one moment, as a list has it. */
export interface JobView<Data = unknown> {
  readonly id: string;
  readonly queue: string;
  readonly partition: number;
  /** Whether a foreign producer put it with a plain ZADD. */
  readonly bare: boolean;
  readonly state: JobState;
  /** Undefined when its record cannot be read, and once the job is over, but for a dead one and in a queue that keeps a history. */
  readonly name: string | undefined;
  /** Undefined once the job is over, and when its record cannot be read. Of a dead job its dead letter has them. */
  readonly data: Data | undefined;
  /** Texts beside the data; undefined as `data` is, and where there are none. */
  readonly headers: JobHeaders | undefined;
  /** The codec that encoded the data, which is shown as it is stored: a text that only handlers get decoded. */
  readonly codec: string | undefined;
  /** What this one job was told, if that differs from its queue's: attempts, times in ms, and the rest. Empty once it is over and not dead. */
  readonly options: ToldOptions;
  /** Undefined where nobody knows them any more. */
  readonly tags: readonly string[] | undefined;
  /** Tells this content from any other, for `ifDigest` of an edit. Undefined once the job is over, or without a record. */
  readonly digest: string | undefined;
  /** Tells the job as it is now from what it becomes by an edit, a start or another due time, for `ifMatch`. Undefined once it is over. */
  readonly etag: string | undefined;
  /**
   * Epoch ms of the next start; undefined when it is over. Of a job that is ready or runs `list` knows it, `get` does not. Where a job
   * that runs was started before this time, its worker holds it until then, and its handler has not begun.
   */
  readonly dueMs: number | undefined;
  /** The due time that the producer asked for, in epoch ms. */
  readonly askedDueMs: number | undefined;
  /** How often handlers were started. */
  readonly attempts: number;
  readonly failures: number;
  readonly crashes: number;
  /** Grows when the job is replaced or replayed. */
  readonly generation: number;
  readonly cancelRequested: boolean;
  /**
   * Newer data of a debounced job came while it runs. They are its `data`, and start at this time, or when the run
   * has ended if that is later: epoch ms.
   */
  readonly nextLifeMs: number | undefined;
  /** The worker that runs it, or had it last. */
  readonly owner: string | undefined;
  /** The number of its last start. */
  readonly token: string | undefined;
  /** Its last start, in epoch ms by the clock of Redis. */
  readonly startedMs: number | undefined;
  /** How long its last handler ran, once it is over in a queue that keeps a history. */
  readonly tookMs: number | undefined;
  /** What became of what its last handler returned, once it is over in a queue that keeps a history. */
  readonly result: KeptResult | undefined;
  /** The last failures, oldest first, at most 5. */
  readonly history: readonly Attempted[];
  /** How often its handler put it aside, and why it did the last time. */
  readonly deferred: Deferred | undefined;
  /** How far its handler says that it is, while it runs. */
  readonly progress: JobProgress | undefined;
  /** When it ended, in epoch ms. */
  readonly overMs: number | undefined;
  /** Why it is dead, as long as its dead letter is there. */
  readonly reason: string | undefined;
  /** The address of its dead letter, to show or replay it, as long as that is there. What `list` finds in a history may be gone by now. */
  readonly deadLetter: string | undefined;
  /** False when there should be a record and it is missing or cannot be read: the job will become a dead letter. */
  readonly readable: boolean;
}

/** All that is known of one job: the facts, and its timeline. */
export interface JobReport<Data = unknown> extends JobView<Data> {
  /** The beginning of a record that cannot be read. */
  readonly unreadable: string | undefined;
  /** The id of its entry in the stream of its partition, while it runs. */
  readonly entry: string | undefined;
  /** Why its last start was when it was: while it runs, and once it is over in a queue that keeps a history. */
  readonly account: StartAccount | undefined;
  /** Of a job that waits in line: how many come before it, and what lets nobody through. */
  readonly waitsFor: JobWait | undefined;
  /** What its handlers said by `context.log`, as long as the job, its end or its dead letter is kept. Undefined: nothing. */
  readonly log: JobLog | undefined;
  /** How it ended, if its queue keeps a history; the ends of earlier lives of its id follow. Empty while it lives its first. */
  readonly past: readonly PastJob[];
  /** What is known of it in the order of time, with what comes next. */
  readonly timeline: readonly Moment[];
  /** When this was so, in epoch ms by the clock of Redis. */
  readonly nowMs: number;
}

/** One thing that happened to a job, or is going to. */
export interface Moment {
  readonly atMs: number;
  /** A kind of failure, a state in which the job ended, or one of the others. `due` is its next start. */
  readonly kind: 'asked-due' | 'due' | 'started' | 'earlier-end' | Attempted['kind'] | PutAside['kind'] | OverState;
  readonly attempt?: number | undefined;
  readonly owner?: string | undefined;
  readonly tookMs?: number | undefined;
  /** Of an earlier end: how that life of the id ended. */
  readonly outcome?: OverState | undefined;
  readonly message?: string | undefined;
  readonly stack?: string | undefined;
  /** Of a start: why it was when it was. */
  readonly account?: StartAccount | undefined;
}

export type Get = <Data>(
  queue: Queue<Data>,
  id: string,
  how: { readonly bare: boolean },
) => Promise<JobReport<InputOf<Data>> | undefined>;

export function createGet({
  redis,
  callPartitions,
}: {
  readonly redis: Redis;
  readonly callPartitions: CallPartitions;
}): Get {
  return <Data>(queue: Queue<Data>, id: string, { bare }: { readonly bare: boolean }) =>
    callPartitions(queue, (layout, policy) => findReport<InputOf<Data>>({ redis, policy }, layout, { id, bare }));
}

interface Reading {
  readonly redis: Redis;
  readonly policy: RetryPolicy;
}

/** The report of a job in a queue of this layout, or undefined when nothing is known of its id. */
export async function findReport<Data>(
  reading: Reading,
  layout: readonly PartitionRef[],
  { id, bare }: { readonly id: string; readonly bare: boolean },
): Promise<JobReport<Data> | Moved | undefined> {
  for (const ref of placesOf(layout, id, bare)) {
    const report = await reportIn<Data>(reading, ref, { id, bare });
    if (report) return report;
  }
  return undefined;
}

/** Ends of earlier lives that a report tells. */
export const ENDS_MAX = 5;

async function reportIn<Data>(
  { redis, policy }: Reading,
  ref: PartitionRef,
  { id, bare }: { readonly id: string; readonly bare: boolean },
): Promise<JobReport<Data> | Moved | undefined> {
  const read = <T>(call: () => Promise<T>) => withReadRetry('get', call, policy);
  const member = memberOf(id, { bare });
  const seen = await read(() => peek(redis, ref, member));
  if (seen && 'kind' in seen) return seen;
  // Nothing is asked where no history was ever kept.
  const past = ref.history ? await read(() => pastOf(redis, ref, { member, max: ENDS_MAX })) : [];
  const entry = (seen ? seen.tombstone : past[0])?.deadLetter;
  const letter = entry === undefined ? undefined : await read(() => deadLetter(redis, ref, entry));
  const log = await read(() => readLog(redis, ref, { member, deadLetter: letter }));
  const known = { id, bare, past, letter, log };
  if (seen) {
    const waitsFor = await read(async () => waitIn(redis, ref, seen));
    const account = await read(async () => runningAccount(redis, ref, seen));
    const isOver = seen.tombstone !== undefined && isEndOf(past[0], seen.tombstone);
    const told = await read(async () =>
      toldAround(redis, ref, account ?? (isOver ? past[0]?.account : undefined), seen),
    );
    return reportOf(ref, { ...known, waitsFor, account: told }, seen);
  }
  const [end] = past;
  if (!end) return undefined;
  const { nowMs } = await read(() => stats(redis, ref));
  const account = await read(async () => toldAround(redis, ref, end.account, { member, nowMs }));
  return reportOf(ref, { ...known, account }, { ...gone(end), nowMs });
}

/** Below it nobody asks why, and nothing is read for it. */
const TOLD_FROM_MS = 1000;

/** The account with what the diary tells of its time: pauses, closings, and when there was no leader or worker; and the turns of others. */
async function toldAround(
  redis: Redis,
  ref: PartitionRef,
  account: StartAccount | undefined,
  { member, nowMs }: { readonly member: string; readonly nowMs: number },
): Promise<StartAccount | undefined> {
  if (account === undefined || account.lateMs < TOLD_FROM_MS) return account && briefAccount(account);
  const time = { fromMs: account.dueMs, toMs: account.startedMs };
  const [diary, others] = await Promise.all([
    diaryAround(redis, ref, { ...time, group: groupOf(member) }),
    ref.gates && turnsWhile(redis, ref, { ...time, member, nowMs }),
  ]);
  const told = briefAccount(withDiary(account, diary));
  return others ? { ...told, others } : told;
}

/** A job that waits has its due time, and perhaps a record that says its priority. */
function waitIn(redis: Redis, ref: PartitionRef, seen: Peek): Promise<JobWait> | undefined {
  const { state, member, record, dueMs, nowMs } = seen;
  if (state !== 'waiting' || dueMs === undefined) return undefined;
  const { priority = 'normal' } = decodeHeader(record ?? '') ?? {};
  return jobWaitOf(redis, ref, { member, priority, dueMs, nowMs });
}

/** The due time of a start is in its entry, which is there while the job runs. */
async function runningAccount(
  redis: Redis,
  ref: PartitionRef,
  { state, run, record, nowMs }: Peek,
): Promise<StartAccount | undefined> {
  if (state !== 'running' || run?.entry === undefined) return undefined;
  const [delivery] = await readEntries(redis, ref.keys, [run.entry as EntryId]);
  if (!delivery) return undefined;
  const startedMs = tokenMs(run.token);
  const looks = ref.gates ? await readLooks(redis, ref, { fromMs: delivery.dueMs, toMs: startedMs }) : [];
  return startAccount({ ref, delivery, run, record: record ?? '', looks, isClockSet: startedMs > nowMs });
}

/** What else is known of a job that is looked at. */
interface Known {
  readonly id: string;
  readonly bare: boolean;
  readonly past: readonly PastJob[];
  /** Of a dead job, as long as it is there. */
  readonly letter?: Letter | undefined;
  readonly waitsFor?: JobWait | undefined;
  /** Of its start, while it runs. */
  readonly account?: StartAccount | undefined;
  readonly log?: JobLog | undefined;
}

type Letter = Pick<
  DeadLetter,
  'record' | 'reason' | 'history' | 'deferred' | 'failures' | 'crashes' | 'generation' | 'atMs'
>;

/** The look at a job. Of one whose tombstone is gone too only `end` is known, from the history. */
type Look = Omit<Peek, 'member' | 'nowMs' | 'tombstone'> & {
  readonly end?: PastJob;
  readonly tombstone: Rest | undefined;
};

/** What a tombstone tells, as far as a report says it. */
type Rest = Pick<PastJob, 'outcome' | 'attempts' | 'token' | 'deadLetter'> & {
  readonly askedDueMs: number | undefined;
};

const NOTHING_LIVES = { record: undefined, run: undefined, dueMs: undefined, seen: undefined };

const gone = (end: PastJob): Look => ({
  ...NOTHING_LIVES,
  state: end.outcome,
  end,
  tombstone: undefined,
  overMs: end.overMs,
});

/** What a list says of a job that is over. */
export function viewOfEnd<Data>(
  ref: Pick<PartitionRef, 'queue' | 'partition'>,
  { id, bare, state, overMs, past, tombstone, letter }: Ended,
): JobView<Data> {
  if (past) return { ...viewOf<Data>(ref, { id, bare, past: [] }, gone(past)), deadLetter: past.deadLetter };
  const ofLetter = letter && {
    ...letter,
    outcome: state,
    token: undefined,
    deadLetter: letter.entry,
    askedDueMs: undefined,
  };
  return viewOf(
    ref,
    { id, bare, past: [], letter },
    { ...NOTHING_LIVES, state, overMs, tombstone: tombstone ?? ofLetter },
  );
}

/** What a list says of a job. */
export function viewOf<Data>(ref: Pick<PartitionRef, 'queue' | 'partition'>, known: Known, look: Look): JobView<Data> {
  return factsOf<Data>(ref, known, look).view;
}

/** All that is known of a job. */
export function reportOf<Data>(
  ref: Pick<PartitionRef, 'queue' | 'partition'>,
  known: Known,
  look: Look & { readonly nowMs: number },
): JobReport<Data> {
  const { view, content, end } = factsOf<Data>(ref, known, look);
  const account = known.account ?? end?.account;
  return {
    ...view,
    unreadable: content.unreadable,
    entry: look.run?.entry,
    account,
    waitsFor: known.waitsFor,
    log: known.log,
    past: known.past,
    timeline: timelineOf(view, { past: known.past, end, account, isHeld: heldText(view, look.nowMs) !== undefined }),
    nowMs: look.nowMs,
  };
}

interface Facts<Data> {
  readonly view: JobView<Data>;
  readonly content: RecordContent;
  /** How its last life ended, if that is over and its queue keeps a history. */
  readonly end: PastJob | undefined;
}

function factsOf<Data>(
  ref: Pick<PartitionRef, 'queue' | 'partition'>,
  { id, bare, past, letter }: Known,
  look: Look,
): Facts<Data> {
  const { tombstone, run } = look;
  // A tombstone knows little; the record of the same end does.
  const end = look.end ?? (tombstone && isEndOf(past[0], tombstone) ? past[0] : undefined);
  const content = contentIn(look, bare, letter);
  const { failures, crashes, generation, history, deferred } = run ?? end ?? letter ?? NOTHING_RAN;
  const started = tombstone ?? run ?? end ?? NEVER_STARTED;
  const token = startedToken(started.token);
  const { digest, etag } = marksOf(look);
  const { startedMs, tookMs, result } = end ?? { startedMs: startedMsOf(token), tookMs: undefined, result: undefined };
  const view: JobView<Data> = {
    id,
    bare,
    queue: ref.queue,
    partition: ref.partition,
    state: look.state,
    name: content.name ?? end?.name,
    // The queue's definition is the only witness of the type, here as in a handler.
    data: content.data as Data | undefined,
    headers: content.headers,
    codec: content.codec,
    options: content.options,
    tags: end?.tags ?? content.options.tags,
    digest,
    etag,
    dueMs: look.dueMs,
    askedDueMs: content.askedDueMs ?? (tombstone ?? end)?.askedDueMs,
    attempts: started.attempts,
    failures,
    crashes,
    generation,
    cancelRequested: run?.cancelRequested ?? false,
    nextLifeMs: nextLifeOf(look, content),
    owner: (run ?? end)?.owner,
    token,
    startedMs,
    tookMs,
    result,
    history,
    deferred,
    progress: progressOf(look),
    overMs: look.overMs ?? letter?.atMs,
    // It may have been replayed or removed.
    deadLetter: letter && (tombstone ?? end)?.deadLetter,
    reason: letter?.reason,
    readable: content.readable,
  };
  return { view, content, end };
}

/** The record is that of the newer data already. A run that was retried may keep the mark until its next start, which has them. */
const nextLifeOf = ({ state, run }: Look, { askedDueMs }: RecordContent) =>
  state === 'running' && run?.hasNews ? askedDueMs : undefined;

/** An attempt that is over has no progress, although its run may keep the line. */
const progressOf = ({ state, run }: Look) => (state === 'running' ? run?.progress : undefined);

const marksOf = ({ record, seen }: Look) => ({
  digest: record === undefined ? undefined : digestOf(record),
  etag: seen === undefined ? undefined : etagOfJob(seen),
});

const NOTHING_RAN = { failures: 0, crashes: 0, generation: 0, history: [], deferred: undefined } as const;
const NEVER_STARTED = { attempts: 0, token: undefined } as const;

function contentIn({ record, dueMs, tombstone, end }: Look, bare: boolean, letter: Letter | undefined): RecordContent {
  if (record !== undefined) return contentOf(record);
  // Nobody keeps the record of a job that is over, but for a dead one.
  if (tombstone || end) return letter ? contentOf(letter.record) : { ...NO_CONTENT, readable: true };
  // A bare member gets its record when it is promoted; one of ours without a record has lost it.
  return { ...NO_CONTENT, name: bare ? DEFAULT_NAME : undefined, askedDueMs: dueMs, readable: bare };
}

/** Token 0 stands for "not started yet". */
const startedToken = (token: string | undefined) => (token === '0' ? undefined : token);

/** Tokens grow with the clock of Redis in µs, so the token of a start says when it was. */
const startedMsOf = (token: string | undefined): number | undefined =>
  token === undefined ? undefined : Math.floor(Number(token) / 1000);

function timelineOf(
  { state, askedDueMs, nextLifeMs, dueMs, attempts, owner, overMs, startedMs, history, deferred }: JobView,
  {
    past,
    end,
    account,
    isHeld,
  }: Pick<JobReport, 'past' | 'account'> & { readonly end: PastJob | undefined; readonly isHeld: boolean },
): readonly Moment[] {
  const asides = (deferred?.starts ?? []).map(({ reason, ...start }) => ({
    ...start,
    message: reason,
    stack: undefined,
    account: undefined,
  }));
  const isLastStartKnown = [...history, ...asides].some(
    ({ attempt, tookMs }) => attempt === attempts && tookMs !== undefined,
  );
  const moments: readonly (Omit<Moment, 'atMs'> & { readonly atMs: number | undefined })[] = [
    ...past.slice(end ? 1 : 0).map((one) => ({
      atMs: one.overMs,
      kind: 'earlier-end' as const,
      attempt: one.attempts,
      outcome: one.outcome,
      message: one.history.at(-1)?.message,
    })),
    // Its record says already what the next life is to be.
    nextLifeMs === undefined
      ? { atMs: askedDueMs, kind: 'asked-due' as const }
      : { atMs: nextLifeMs, kind: 'due' as const, attempt: 1 },
    ...(isLastStartKnown || isHeld
      ? []
      : [{ atMs: startedMs, kind: 'started' as const, attempt: attempts, owner, tookMs: end?.tookMs, account }]),
    ...[...history, ...asides].flatMap(
      ({ atMs, kind, attempt, message, stack, worker, tookMs, account: ofAttempt }) => [
        ...(tookMs === undefined
          ? []
          : [{ atMs: atMs - tookMs, kind: 'started' as const, attempt, owner: worker, account: ofAttempt }]),
        { atMs, kind, attempt, owner: worker, tookMs, message, stack },
      ],
    ),
    ...(state === 'scheduled' ? [{ atMs: dueMs, kind: 'due' as const, attempt: attempts + 1 }] : []),
    ...(isHeld ? [{ atMs: dueMs, kind: 'due' as const, attempt: attempts }] : []),
    ...(isOverState(state) ? [{ atMs: overMs, kind: state, attempt: attempts }] : []),
  ];
  const known = moments.flatMap(({ atMs, ...moment }) => (atMs === undefined ? [] : [{ atMs, ...moment }]));
  // Redis times an end, and a worker the failure that led to it: it may say some milliseconds more.
  const lastFailedMs = Math.max(...history.map(({ atMs }) => atMs));
  const placeOf = ({ atMs, kind }: Moment) => (kind === state ? Math.max(atMs, lastFailedMs) : atMs);
  return known.toSorted((a, b) => placeOf(a) - placeOf(b));
}
