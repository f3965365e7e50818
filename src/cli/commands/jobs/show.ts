/** `show <queue> <id>`: the report of one job in every state, also after it was over. */
import type { Command } from 'commander';
import { type AuditEntry, auditEntries } from '../../../access/audit.ts';
import type { Holder } from '../../../client/groups/groups.ts';
import { findReport, type JobReport, type Moment } from '../../../client/query/report.ts';
import { lingerLeftMs, lingerText, type ShownWait, whyJobWaits } from '../../../client/queues/why.ts';
import { addressOf } from '../../../inspect/dead-letters.ts';
import { startEstimateOf } from '../../../inspect/estimate.ts';
import { shownReport } from '../../../inspect/redacted.ts';
import { accountWords } from '../../../job/account.ts';
import type { StartEstimate } from '../../../job/estimate.ts';
import { jobFacts, notKeptText } from '../../../job/job-facts.ts';
import type { JobLog } from '../../../job/log-lines.ts';
import type { Attempted } from '../../../job/outcome.ts';
import type { KeptResult } from '../../../job/past.ts';
import { REDACTED } from '../../../job/redaction.ts';
import { heldText } from '../../../job/state.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { show as quoted } from '../../../kernel/duration.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import { span } from '../../../kernel/humanize.ts';
import type { Redis } from '../../../redis/connection/connect.ts';
import type { PartitionRef } from '../../../redis/keys.ts';
import { everyDeadLetter } from '../../../redis/read/ends.ts';
import { stats } from '../../../redis/read/inspect.ts';
import { type Exit, partitionsOfQueue, type Register, type Session, withExamples, withRedis } from '../../session.ts';
import { iso, relative } from '../../terminal/instants.ts';
import { fields, json, line, stackLines } from '../../terminal/output.ts';
import { saidText } from '../audit-ls.ts';

/** How far back dead letters are searched for an id whose end is no longer remembered. */
const DEAD_LETTERS_SEARCHED_MAX = 1000;
const RETRY_MS = 10_000;
/** Changes by people that are told of one job: the newest. */
const CHANGES_MAX = 20;

export const show: Register = (parent, runner) => {
  const command = parent
    .command('show <queue> <id>')
    .description('show what happened to one job: due time, attempts, errors, worker, end')
    .option('--bare', 'the id is a bare member: a foreign producer put it with ZADD')
    .action((queue: string, id: string, { bare = false }: { readonly bare?: boolean }, command: Command) =>
      runner.run(command, (session) => run(session, { queue, id, bare })),
    );
  withExamples(command, ['duestream show emails welcome:42', 'duestream show emails order-1042 --bare']);
};

interface Asked {
  readonly queue: string;
  readonly id: string;
  readonly bare: boolean;
}

async function run(session: Session, asked: Asked): Promise<Exit> {
  const { report, partition } = await withRedis(session, async (redis) => {
    const refs = await partitionsOfQueue(session, redis, asked.queue);
    const found = await find(redis, refs, asked);
    if (!found) return explain(session, { redis, refs, asked });
    const ref = refs[found.partition];
    const { leaseTtlMs = 0, paused = false } = ref ? await stats(redis, ref) : {};
    const { namespace } = session.config;
    const waitsFor = await whyJobWaits({ redis, namespace }, found);
    const starts = await startEstimateOf({ redis, namespace }, found);
    const changes = await changesOf(session, redis, asked);
    return {
      report: { ...shownReport(found, refs), waitsFor, ...(starts && { starts }), ...changes },
      partition: { led: leaseTtlMs > 0, paused, lingerMs: ref?.lingerMs },
    };
  });
  session.out.answer(report, () => reportLines(report, partition));
  return 0;
}

/** Whoever may not read the audit sees the rest. */
async function changesOf(
  { config: { namespace } }: Session,
  redis: Redis,
  { queue, id }: Asked,
): Promise<Pick<Report, 'changes'>> {
  const entries = await auditEntries({ redis, namespace }, { queue, target: id, limit: CHANGES_MAX }).catch(() => []);
  return entries.length === 0 ? {} : { changes: entries.toReversed() };
}

async function find(redis: Redis, refs: readonly PartitionRef[], asked: Asked): Promise<JobReport | undefined> {
  const found = await findReport({ redis, policy: { clock: systemClock, budgetMs: RETRY_MS } }, refs, asked);
  if (!found || !('kind' in found)) return found;
  throw new DuestreamError('moved', `queue ${quoted(asked.queue)} was resized while it was read`);
}

/** Nothing is known of the id: says what that can mean, and looks in the places where it may be after all. */
async function explain(
  session: Session,
  { redis, refs, asked }: { redis: Redis; refs: readonly PartitionRef[]; asked: Asked },
): Promise<never> {
  const { queue, id, bare } = asked;
  const job = `${queue} has no ${bare ? 'bare ' : ''}job ${quoted(id)}`;
  const twin = await find(redis, refs, { ...asked, bare: !bare });
  if (twin !== undefined) {
    throw new DuestreamError(
      'not-found',
      `${job}, but a ${bare ? 'managed' : 'bare'} one: ${bare ? 'leave out' : 'add'} --bare`,
    );
  }
  for (const ref of refs) {
    for await (const found of everyDeadLetter(redis, ref, DEAD_LETTERS_SEARCHED_MAX)) {
      if (found.id !== id) continue;
      const address = addressOf({ ref, deadLetter: found }, refs.length);
      throw new DuestreamError('not-found', `${job} any more; it is dead: "duestream dead show ${queue} ${address}"`);
    }
  }
  const window = session.config.done.windowMs;
  throw new DuestreamError(
    'not-found',
    `${job}: it never existed, it was over more than ${span(window)} ago, or it is in another queue or namespace (this is ${session.config.namespace})`,
  );
}

// The report of one job as lines: what the job is, its timeline, and what comes next.

/** What decides whether a job that is due moves. */
interface Partition {
  /** Whether the partition has a leader that promotes. */
  readonly led: boolean;
  readonly paused: boolean;
  readonly lingerMs: number | undefined;
}

/** All but what it waits for, of which more is known here. */
type Known = Omit<JobReport, 'waitsFor'>;
type Report = Known & {
  readonly waitsFor: ShownWait | undefined;
  readonly starts?: StartEstimate;
  /** Who changed it by command, over HTTP or on a page, the oldest first. */
  readonly changes?: readonly AuditEntry[];
};

function reportLines(report: Report, partition: Partition): readonly string[] {
  return [
    ...jobFields(report, OVER_STATES.has(report.state) && report.deadLetter === undefined),
    ...fields([
      ...jobFacts.flatMap((fact) =>
        'line' in fact ? [[fact.line.label, fact.line.value(report, relative)] as const] : [],
      ),
      ['result', report.result && resultText(report.result)],
      ['state', stateText(report)],
    ]),
    '',
    ...forgotten(report),
    ...[notKeptText(report) ?? []].flat(),
    ...storyLines(report),
    ...now(report),
    ...obstacle(report, partition),
    ...logLines(report.log),
  ];
}

/** What the handlers of a job said, below what happened to it. */
export function logLines(log: JobLog | undefined): readonly string[] {
  if (!log) return [];
  const left = log.leftOut === 0 ? [] : [line`(${log.leftOut} lines are not kept)`];
  const said = log.lines.map(
    ({ atMs, attempt, text, fields: given }) =>
      line`${iso(atMs)}  attempt ${attempt}: ${text}${given === undefined ? '' : ` ${json(given)}`}`,
  );
  return ['', 'its handlers said:', ...left, ...said];
}

const OVER_STATES: ReadonlySet<string> = new Set(['done', 'cancelled', 'expired', 'dead']);

type Facts = Pick<
  JobReport,
  | 'id'
  | 'bare'
  | 'queue'
  | 'partition'
  | 'name'
  | 'tags'
  | 'data'
  | 'headers'
  | 'options'
  | 'codec'
  | 'readable'
  | 'unreadable'
>;

/** What a job is, whatever became of it. @param isGone it is over, and nobody keeps its data */
export function jobFields(job: Facts, isGone = false): readonly string[] {
  return fields([
    ['job', job.id + (job.bare ? ' (bare: put by a foreign producer)' : '')],
    ['queue', `${job.queue}, partition ${job.partition}`],
    ['name', job.name],
    ['data', dataText(job, isGone)],
    ['headers', job.headers && json(job.headers)],
    ...optionTexts({ ...job.options, tags: job.tags }),
  ]);
}

type Options = Omit<JobReport['options'], 'tags'> & Pick<JobReport, 'tags'>;

/** What this one job was told. The compiler asks for the words of an option that is new. */
function optionTexts(options: Options): readonly (readonly [string, string | undefined])[] {
  const { attempts, timeoutMs, backoff, expiresAtMs, maxLatenessMs, onLate, priority, cost, target, tags, set } =
    options;
  const ending = { drop: 'it is dropped', dead: 'it becomes a dead letter', run: 'it runs anyway' }[onLate ?? 'drop'];
  const texts: Readonly<Record<keyof Options, readonly [string, string | undefined]>> = {
    priority: ['priority', priority],
    cost: ['cost', cost === undefined ? undefined : `${cost} ${cost === 1 ? 'turn' : 'turns'} of the rate`],
    target: ['target', target && json(target)],
    tags: ['tags', tags?.length ? tags.join(', ') : undefined],
    set: ['set', set],
    attempts: ['budget', attempts === undefined ? undefined : `${attempts} attempts`],
    timeoutMs: ['timeout', timeoutMs === undefined ? undefined : span(timeoutMs)],
    backoff: ['backoff', backoff === undefined ? undefined : json(backoff)],
    expiresAtMs: ['expires', expiresAtMs === undefined ? undefined : `${iso(expiresAtMs)}, then ${ending}`],
    maxLatenessMs: [
      'lateness',
      maxLatenessMs === undefined ? undefined : `at most ${span(maxLatenessMs)}, then ${ending}`,
    ],
    // Said with the two above.
    onLate: ['late', undefined],
  };
  return Object.values(texts);
}

function dataText({ readable, data, codec, unreadable }: Facts, isGone: boolean): string | undefined {
  if (!readable && unreadable === undefined) return 'the record is missing';
  if (!readable && unreadable === REDACTED) return 'unreadable, and not shown because its queue redacts data';
  if (!readable) return `unreadable: ${unreadable}`;
  if (data === undefined) return isGone ? 'not kept: the job is over' : undefined;
  return codec === undefined ? json(data) : `${json(data)}, encoded by ${json(codec)}`;
}

export function resultText(result: KeptResult): string | undefined {
  switch (result.kind) {
    case 'kept':
      return json(result.value);
    case 'none':
      return undefined;
    case 'too-large':
      return `not kept: ${result.bytes} bytes of JSON`;
    case 'no-json':
      return `not kept: ${result.why}`;
  }
}

function stateText(job: Known): string {
  const { state, dueMs, nowMs, cancelRequested } = job;
  if (state === 'scheduled' && dueMs !== undefined) return `scheduled, due ${relative(dueMs, nowMs)}`;
  if (state === 'waiting' && dueMs !== undefined) return `waiting in line, due ${relative(dueMs, nowMs)}`;
  if (state === 'running' && cancelRequested) return 'running, asked to stop';
  return heldText(job, nowMs) ?? state;
}

function forgotten({ failures, crashes, history }: Known): readonly string[] {
  const count = failures + crashes - history.length;
  return count > 0 ? [line`(${count} earlier failures are not kept)`] : [];
}

/** One error of a history, and below it where it was thrown. */
export const attemptLines = ({ worker, ...attempted }: Attempted): readonly string[] =>
  failureLines({ ...attempted, owner: worker }, attempted.kind);

function failureLines(
  { atMs, attempt, owner, tookMs, message, stack }: Omit<Moment, 'kind'>,
  kind: keyof typeof FAILED,
): readonly string[] {
  const ran = owner === undefined || tookMs === undefined ? '' : ` after ${span(tookMs)} on worker ${owner}`;
  return [line`${iso(atMs)}  attempt ${attempt} ${FAILED[kind]}${ran}: ${message}`, ...stackLines(stack)];
}

/** The timeline, and between its moments who changed the job. */
function storyLines(report: Report): readonly string[] {
  const left = [...(report.changes ?? [])];
  const until = (atMs: number) => left.splice(0, left.filter((one) => one.atMs <= atMs).length).map(changeLine);
  const told = report.timeline.flatMap((moment) => [...until(moment.atMs - 1), ...momentLines(report, moment)]);
  return [...told, ...until(Number.POSITIVE_INFINITY)];
}

function changeLine({ atMs, who, way, verb, before, after, reason }: AuditEntry): string {
  const [from, to] = [saidText(before), saidText(after)];
  const what = to === undefined ? '' : from === undefined ? `: ${to}` : `: ${from} → ${to}`;
  return line`${iso(atMs)}  ${verb} by ${who} (${way})${what}${reason === undefined ? '' : `, because: ${reason}`}`;
}

const FAILED = {
  failure: 'failed',
  timeout: 'timed out',
  crash: 'lost its worker',
  refused: 'was refused',
  deferred: 'was put aside',
  'handed-back': 'was handed back',
} as const;

function momentLines(report: Known, moment: Moment): readonly string[] {
  const { atMs, kind, attempt, owner, tookMs, outcome, message } = moment;
  const stamp = iso(atMs);
  const took = tookMs === undefined ? '' : `, which took ${span(tookMs)}`;
  switch (kind) {
    case 'earlier-end': {
      const why = message === undefined ? '' : `: ${message}`;
      return [line`${stamp}  an earlier life of this id ended ${outcome} after attempt ${attempt}${why}`];
    }
    case 'asked-due':
      return [line`${stamp}  the due time that was asked for`];
    case 'started':
      return [
        line`${stamp}  attempt ${attempt} started${owner === undefined ? '' : ` on worker ${owner}`}${took}`,
        ...unnudgedLines(report, moment),
        ...lateLines(report, moment),
      ];
    case 'failure':
    case 'timeout':
    case 'crash':
    case 'refused':
    case 'deferred':
    case 'handed-back':
      return failureLines(moment, kind);
    case 'due':
      return [
        line`${stamp}  ${report.nextLifeMs === undefined ? `attempt ${attempt} is` : 'newer data are'} due, ${relative(atMs, report.nowMs)}`,
      ];
    case 'dead':
      return deadLines(report, stamp);
    case 'done':
    case 'cancelled':
    case 'expired':
      return [line`${stamp}  ${ending(report)}`];
  }
}

/** Below this nobody asks why. */
const LATE_MS = 50;

/** Why the first start of a job may be late whose producer told no leader of it. */
function unnudgedLines({ bare, askedDueMs = 0 }: Known, { atMs, attempt }: Moment): readonly string[] {
  // A job that is due at 0 was due when it was put, and nobody knows when that was.
  if (!bare || attempt !== 1 || askedDueMs <= 0 || atMs - askedDueMs < LATE_MS) return [];
  return [
    line`                          ${span(atMs - askedDueMs)} after its due time: its producer used a plain ZADD and no nudge,`,
    line`                          so the leader learns of it with its next look, each second or ten times a second`,
  ];
}

/** Why an earlier start was late. The facts have the last one. */
function lateLines({ attempts }: Known, { attempt, account }: Moment): readonly string[] {
  if (attempt === attempts || account === undefined || account.lateMs < LATE_MS) return [];
  return [line`                          ${accountWords(account)}`];
}

function deadLines(report: Known, stamp: string): readonly string[] {
  const { queue, deadLetter, reason } = report;
  if (deadLetter === undefined) {
    return [line`${stamp}  ${ending(report)}; its dead letter was replayed or has passed its retention`];
  }
  return [line`${stamp}  dead: ${reason}`, line`to run it again: duestream dead replay ${queue} ${deadLetter}`];
}

const ending = ({ state, attempts, token }: Known): string =>
  attempts === 0 ? `${state} before it was ever started` : `${state} after attempt ${attempts}, token ${token}`;

/** As wide as the stamps it stands below. */
const NOW = 'now'.padEnd(24, '.');

/** What is true at this moment. */
function now(report: Report): readonly string[] {
  const { state, attempts, owner, token, cancelRequested, waitsFor, nowMs } = report;
  const held = heldText(report, nowMs);
  if (waitsFor) return waitLines(waitsFor, nowMs);
  if (state === 'ready') return [line`${NOW}  ready: the next free worker takes it`];
  if (state !== 'running') return [];
  if (held) return [line`${NOW}  ${held} by worker ${owner}: its handler has not begun`];
  return [
    line`${NOW}  attempt ${attempts} runs on worker ${owner}, token ${token}`,
    ...(cancelRequested ? [line`${NOW}  a cancel was requested: it will end cancelled and is not retried`] : []),
  ];
}

/** Where a job stands in line, and what lets nobody through. */
function waitLines({ text, obstacles }: ShownWait, nowMs: number): readonly string[] {
  return [
    line`${NOW}  waits in line: ${text}`,
    ...obstacles.flatMap((one) => [
      line`${NOW}  ${one.text}`,
      ...('holders' in one ? one.holders.map((holder) => holderLine(holder, nowMs)) : []),
    ]),
  ];
}

const holderLine = ({ id, owner, sinceMs }: Holder, nowMs: number): string =>
  line`                          held for ${span(Math.max(0, nowMs - sinceMs))} by ${id}, ${owner === undefined ? 'which no worker has started yet' : `on worker ${owner}`}`;

/** Why a job that is due does not move. */
function obstacle({ state, dueMs, nowMs }: Known, { led, paused, lingerMs }: Partition): readonly string[] {
  if (state !== 'scheduled' || dueMs === undefined) return [];
  if (paused) return ['the queue is paused'];
  const lingersMs = lingerLeftMs({ lingerMs, dueMs, nowMs });
  if (led && lingersMs !== undefined) return [lingerText(lingersMs)];
  if (led || dueMs > nowMs) return [];
  return ['it is overdue and no daemon leads this partition: start one with "duestream start"'];
}
