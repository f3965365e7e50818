/** The commands of `queues` that show and pause: ls, stats, why, pause and resume. */
import type { Command } from 'commander';
import type { CloseOptions } from '../../../client/groups/rules.ts';
import { leaderName } from '../../../client/queues/processes.ts';
import { queueNames } from '../../../client/queues/refs.ts';
import { overrideNote, type QueueLimits, type SettingOverride, saidText } from '../../../client/queues/settings.ts';
import type {
  BroadcastCounts,
  DueSpan,
  PartitionCounts,
  QueueCounts,
  QueueReport,
} from '../../../client/queues/stats.ts';
import type { Obstacle, Why } from '../../../client/queues/why.ts';
import type { QuotaUse } from '../../../job/quota.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { durationMs, durationText } from '../../../kernel/duration.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import { counted, span } from '../../../kernel/humanize.ts';
import { reasonOf } from '../../../kernel/reason.ts';
import type { Pause } from '../../../redis/scripts/upkeep.ts';
import { type Exit, type Register, type Session, withClient, withExamples, withRedis } from '../../session.ts';
import { moment } from '../../terminal/instants.ts';
import { fields, line, type Paint, table, unreadLines } from '../../terminal/output.ts';

// `queues ls`: every queue with its counts per state, how long jobs have waited, and who leads and serves it.

export const queuesLs: Register = (parent, runner) => {
  const command = parent
    .command('ls')
    .description('list queues: their counts, how long the oldest due job has waited, workers and leaders')
    .action((_flags: unknown, command: Command) => runner.run(command, runLs));
  withExamples(command, ['duestream queues ls', 'duestream queues ls --json']);
};

async function runLs(session: Session): Promise<Exit> {
  const { namespace } = session.config;
  const { queues, unread } = await withClient(session, (client) => client.queues.list());
  session.out.answer({ namespace, queues, unread }, () => {
    if (queues.length + unread.length === 0) {
      return [line`no queue was used in namespace ${namespace} yet; the first "duestream schedule" makes one`];
    }
    const isLimited = queues.some(({ quota }) => quota !== undefined);
    const rows = queues.map((queue) => [
      queue.queue,
      queue.partitions,
      queue.scheduled,
      queue.ready,
      queue.running,
      queue.dead,
      waitsText(queue),
      ...(isLimited ? [queue.quota && fullText(queue.quota)] : []),
      queue.workers,
      leaderText(queue) + (queue.paused ? ' (paused)' : ''),
    ]);
    return [
      ...table(session.out.paint, isLimited ? LS_HEAD.toSpliced(7, 0, 'full') : LS_HEAD, rows),
      ...gatedLines(session.out.paint, queues),
      ...unreadLines(unread),
    ];
  });
  return unread.length === 0 ? 0 : 1;
}

const LS_HEAD = ['queue', 'partitions', 'scheduled', 'ready', 'running', 'dead', 'waits', 'workers', 'leader'];

/** A table of its own for queues with limits: in one table with the rest they would not fit a terminal. */
function gatedLines(paint: Paint, queues: readonly QueueCounts[]): readonly string[] {
  const rows = queues.flatMap(({ queue, waiting, waitMs, running, limits }) =>
    limits === undefined
      ? []
      : [[queue, waiting, waiting === 0 ? undefined : span(waitMs), ofMost(running, limits.concurrency), limits.text]],
  );
  if (rows.length === 0) return [];
  return ['', ...table(paint, ['gated', 'in line', 'for', 'running', 'limits'], rows)];
}

/** For how long the oldest due job has waited, and that it is in line. */
const waitsText = (of: Pick<QueueCounts, 'oldestDueAgeMs' | 'oldestInLine'>): string | undefined =>
  of.oldestDueAgeMs === 0 ? undefined : `${span(of.oldestDueAgeMs)}${of.oldestInLine ? ' (in line)' : ''}`;

/** `3`, or `3/5` where there is a limit. */
const ofMost = (count: number, most = 0): string => (most === 0 ? String(count) : `${count}/${most}`);

/** One name when one process leads everything, else how many partitions are led. */
function leaderText({ leaders }: QueueCounts): string {
  const led = leaders.filter((leader) => leader !== undefined);
  const names = [...new Set(led)];
  if (names.length === 0) return 'none: start one with "duestream start"';
  const missing = leaders.length - led.length;
  return names.join(', ') + (missing > 0 ? ` (${missing} partitions without)` : '');
}

// `queues stats <queue>`: counts per state and partition, what happened so far, who leads, and what comes due when.

export const queuesStats: Register = (parent, runner) => {
  const command = parent
    .command('stats <queue>')
    .description(
      'show how many jobs are in each state and partition, and how many become due in the next minute, hour, day and week',
    )
    .action((queue: string, _flags: unknown, command: Command) =>
      runner.run(command, (session) => runStats(session, queue)),
    );
  withExamples(command, ['duestream queues stats emails', 'duestream queues stats emails --json']);
};

async function runStats(session: Session, queue: string): Promise<Exit> {
  const found = await withClient(session, (client) => client.queues.get(queue));
  const { partitions, dueNext: next, limits, counters, broadcast } = found;
  session.out.answer(found, () => [
    ...head(found),
    ...broadcastLines(session.out.paint, broadcast),
    '',
    ...(limits === undefined
      ? table(session.out.paint, STATS_HEAD, partitions.map(row))
      : table(session.out.paint, STATS_HEAD.toSpliced(2, 0, 'in line'), partitions.map(gatedRow))),
    '',
    ...counterLines(counters),
    '',
    ...bars(session.out.paint, next),
  ]);
  return 0;
}

function head(of: QueueReport): readonly string[] {
  const { scheduled, waiting, waitMs, ready, running, dead, over, oldestDueAgeMs, oldestInLine, quota } = of;
  const inLine = waiting === 0 ? '' : `${waiting} waiting, `;
  const counts = `${scheduled} scheduled, ${inLine}${ready} ready, ${running} running, ${dead} dead`;
  return fields([
    ['queue', of.queue],
    ['jobs', `${counts}; ${over} ended within the done window`],
    ['oldest', oldestText({ oldestDueAgeMs, oldestInLine })],
    ['in line', waiting === 0 ? undefined : `the first of them has waited for ${span(waitMs)}`],
    ['limits', of.limits && limitsLine(of.limits, running)],
    ['linger', of.lingerMs > 0 ? `due jobs wait up to ${durationText(of.lingerMs)} for company` : undefined],
    ['quota', quota && quotaText(quota)],
    ...of.overrides.map((one) => ['by hand', overrideText(one)] as const),
    ['workers', of.broadcast ? 'none: every subscriber gets each job' : of.workers],
    ['paused', of.pause && pauseText(of.pause, of.nowMs)],
  ]);
}

const overrideText = (one: SettingOverride): string =>
  line`${one.setting}${one.group === undefined ? '' : ` of ${one.group}`} is ${saidText(one.value)}${overrideNote(one)}`;

function broadcastLines(paint: Paint, broadcast: BroadcastCounts | undefined): readonly string[] {
  if (!broadcast) return [];
  const { kept, max, bytes, ageMs, subscribers } = broadcast;
  const rows = subscribers.map(({ id, host, pid, lag }) => [id, line`${host}:${pid}`, lag]);
  return [
    ...fields([
      ['broadcast', `keeps ${counted(kept, 'job')}; at most ${max}, of ${bytes} bytes, for ${durationText(ageMs)}`],
    ]),
    '',
    ...(rows.length === 0 ? ['nobody subscribes now'] : table(paint, ['subscriber', 'where', 'jobs behind'], rows)),
  ];
}

const STATS_HEAD = ['partition', 'scheduled', 'ready', 'running', 'dead', 'over', 'waits', 'leader'];

const oldestText = (of: Parameters<typeof waitsText>[0]): string =>
  of.oldestDueAgeMs === 0
    ? 'no due job waits'
    : `due and not started for ${span(of.oldestDueAgeMs)}${of.oldestInLine ? ', in line' : ''}`;

function row({ partition, scheduled, ready, running, dead, over, leader, ...oldest }: PartitionCounts) {
  const led = leader === undefined ? 'none: start one with "duestream start"' : leaderName(leader);
  return [partition, scheduled, ready, running, dead, over, waitsText(oldest), led];
}

function gatedRow(of: PartitionCounts) {
  const [partition, scheduled, ready, , ...rest] = row(of);
  return [partition, scheduled, of.waiting, ready, ofMost(of.running, of.concurrency), ...rest];
}

const limitsLine = ({ text, concurrency }: QueueLimits, running: number): string =>
  concurrency === undefined ? text : `${text}; ${running} of ${concurrency} run`;

function counterLines(counters: Readonly<Record<string, number>>): readonly string[] {
  const all = Object.entries(counters).map(([name, count]) => line`${count} ${name}`);
  return fields([['so far', all.length === 0 ? 'nothing' : all.join(', ')]]);
}

const BAR_CHARS = 40;

/** One bar per span; a span that holds anything is never shown as empty. */
function bars(paint: Paint, spans: readonly DueSpan[]): readonly string[] {
  const most = Math.max(1, ...spans.map(({ count }) => count));
  const rows = spans.map(({ fromMs, toMs, count }) => {
    const name = fromMs === undefined ? 'now' : toMs === undefined ? 'later' : `in ${SPAN_NAMES.get(toMs)}`;
    return [name, count, '█'.repeat(Math.ceil((count / most) * BAR_CHARS))];
  });
  return table(paint, ['due', 'jobs', ''], rows);
}

const SPAN_NAMES: ReadonlyMap<number, string> = new Map([
  [60_000, '1 min'],
  [300_000, '5 min'],
  [3_600_000, '1 h'],
  [21_600_000, '6 h'],
  [86_400_000, '1 d'],
  [604_800_000, '1 w'],
]);

// `queues why <queue>`: each reason for which jobs wait, and what to do about it.

export const queuesWhy: Register = (parent, runner) => {
  const command = parent
    .command('why <queue>')
    .description('say why jobs of a queue wait, and what to do about it')
    .action((queue: string, _flags: unknown, command: Command) =>
      runner.run(command, (session) => runWhy(session, queue)),
    );
  withExamples(command, ['duestream queues why emails', 'duestream queues why emails --json']);
};

async function runWhy(session: Session, queue: string): Promise<Exit> {
  const { readyMax } = session.config.mover;
  const found = await withClient(session, (client) => client.queues.why(queue, { readyMax }));
  session.out.answer({ queue, ...found }, () => whyLines(session.out.paint, queue, found));
  return 0;
}

function whyLines(paint: Paint, queue: string, { moves, reasons }: Why): readonly string[] {
  if (reasons.length === 0) return [line`nothing hinders ${queue}`];
  const colour = moves ? paint.green : paint.yellow;
  return reasons.flatMap(({ code, text, advice, partitions }: Obstacle) => [
    `${colour(code.padEnd(CODE_CHARS))}  ${line`${text}`}${partitions ? ` (in partition ${partitions.join(', ')})` : ''}`,
    `${' '.repeat(CODE_CHARS)}  ${line`${advice}`}`,
  ]);
}

/** As long as the longest code. */
const CODE_CHARS = 12;

// `queues pause` and `queues resume`: one queue, or all that there are.

export const queuesPause: Register = (parent, runner) => {
  const command = parent
    .command('pause [queue]')
    .description('pause a queue: no job of it starts until you resume it; running jobs go on')
    .option('--all', 'every queue of the namespace')
    .option('--reason <text>', 'why, for the next person who looks')
    .action((queue: string | undefined, { all, reason = '' }: PauseFlags, command: Command) =>
      runner.run(command, (session) => each(session, { queue, all }, (name) => runPause(session, name, reason))),
    );
  withExamples(command, [
    'duestream queues pause emails --reason "the mail server moves"',
    'duestream queues pause --all --reason "restored from 03:00"',
  ]);
};

export const queuesResume: Register = (parent, runner) => {
  const command = parent
    .command('resume [queue]')
    .description('resume a paused queue at once')
    .option('--all', 'every queue of the namespace')
    .action((queue: string | undefined, { all }: PauseFlags, command: Command) =>
      runner.run(command, (session) => each(session, { queue, all }, (name) => runResume(session, name))),
    );
  withExamples(command, ['duestream queues resume emails', 'duestream queues resume --all']);
};

interface PauseFlags {
  readonly all?: boolean | undefined;
  readonly reason?: string;
}

/** What one queue answers: as JSON, and as lines. */
interface Told {
  readonly value: object;
  readonly lines: () => readonly string[];
}

/**
 * One answer for the queue that was named, or one for all of them. Of all, one that is refused stops no other: the answer names it,
 * and the command ends with 1.
 *
 * @throws DuestreamError `usage`
 */
async function each(
  session: Session,
  { queue, all }: { readonly queue: string | undefined; readonly all?: boolean | undefined },
  act: (queue: string) => Promise<Told>,
): Promise<Exit> {
  if ((queue === undefined) === (all !== true)) throw new DuestreamError('usage', 'name a queue, or say --all');
  if (queue !== undefined) {
    const { value, lines } = await act(queue);
    session.out.answer(value, lines);
    return 0;
  }
  const { namespace } = session.config;
  const told: Told[] = [];
  const failed: { readonly queue: string; readonly error: unknown }[] = [];
  for (const name of await withRedis(session, (redis) => queueNames({ redis, namespace }))) {
    await act(name).then(
      (one) => told.push(one),
      (error: unknown) => failed.push({ queue: name, error }),
    );
  }
  const [first] = failed;
  if (first && told.length === 0) throw first.error;
  const refused = failed.map(({ queue: name, error }) => ({ queue: name, why: reasonOf(error) }));
  session.out.answer({ namespace, queues: told.map(({ value }) => value), failed: refused }, () =>
    told.length === 0
      ? [line`no queue was used in namespace ${namespace} yet`]
      : [
          ...told.flatMap(({ lines }) => lines()),
          ...refused.map(({ queue: name, why }) => line`queue ${name}: ${why}`),
        ],
  );
  return first ? 1 : 0;
}

/** Since when and why. */
function pauseText({ sinceMs, reason }: Pause, nowMs: number): string {
  const since = sinceMs === undefined ? 'since an unknown moment' : `since ${moment(sinceMs, nowMs)}`;
  return reason === '' ? since : `${since}: ${reason}`;
}

async function runPause(session: Session, queue: string, reason: string): Promise<Told> {
  const { status, pause, running } = await withClient(session, (client) => client.queues.pause(queue, { reason }));
  const changed = status === 'changed';
  session.changes.push({ verb: 'queues.pause', queue, target: queue, count: changed ? 1 : 0, reason });
  const lines = () => {
    const since = pause === undefined ? '' : pauseText(pause, systemClock.wallMs());
    return [
      changed ? line`${queue} is paused` : line`${queue} was paused already, ${since}`,
      running === 0 ? 'no job runs' : line`running jobs go on to their end: ${counted(running, 'job')}`,
      line`to go on: duestream queues resume ${queue}`,
    ];
  };
  return { value: { queue, paused: true, changed, pause, running }, lines };
}

async function runResume(session: Session, queue: string): Promise<Told> {
  const { status, pause } = await withClient(session, (client) => client.queues.resume(queue));
  const changed = status === 'changed';
  session.changes.push({ verb: 'queues.resume', queue, target: queue, count: changed ? 1 : 0 });
  const lines = () => {
    if (pause === undefined) return [line`${queue} was not paused`];
    return [line`${queue} goes on; it was paused ${pauseText(pause, systemClock.wallMs())}`];
  };
  return { value: { queue, paused: false, changed, pause }, lines };
}

// `queues close` and `queues open`: a queue with limits lets nobody through for some time.

export const queuesClose: Register = (parent, runner) => {
  const command = parent
    .command('close <queue>')
    .description('let no job of a queue with limits through for some time; running jobs go on, and it opens by itself')
    .requiredOption('--for <duration>', 'for how long: 30s, 10m')
    .option('--reason <text>', 'why, for the next person who looks')
    .action((queue: string, flags: { readonly for: string; readonly reason?: string }, command: Command) =>
      runner.run(command, (session) => runClose(session, queue, flags)),
    );
  withExamples(command, ['duestream queues close calls --for 10m --reason "the provider is down"']);
};

export const queuesOpen: Register = (parent, runner) => {
  const command = parent
    .command('open <queue>')
    .description('open a closed queue at once')
    .action((queue: string, _flags: unknown, command: Command) =>
      runner.run(command, (session) => runClose(session, queue)),
    );
  withExamples(command, ['duestream queues open calls']);
};

/** @param closing undefined: it opens */
async function runClose(session: Session, queue: string, closing?: CloseOptions) {
  const { status } = await withClient(session, ({ queues }) =>
    closing ? queues.close(queue, closing) : queues.open(queue),
  );
  const changed = status === 'changed';
  const forMs = closing && durationMs(closing.for, 'for');
  const verb = closing ? 'queues.close' : 'queues.open';
  session.changes.push({ verb, queue, target: queue, count: changed ? 1 : 0, reason: closing?.reason });
  session.out.answer({ queue, closed: forMs !== undefined, forMs, changed }, () => {
    if (forMs === undefined) return [changed ? line`${queue} is open` : line`${queue} was open`];
    if (!changed) return [line`${queue} is closed for as long or longer already`];
    return [
      line`${queue} is closed for ${durationText(forMs)}; what was let through before starts all the same`,
      line`to open it: duestream queues open ${queue}`,
    ];
  });
  return 0 as const;
}

// How much a queue may hold and does, in words.

/** Of the limit that is nearer: how much of it is used. */
function fullText({ pending, pendingMax, bytes, bytesMax }: QuotaUse): string {
  return `${Math.max(percent(pending, pendingMax), percent(bytes, bytesMax))} %`;
}

/** Both limits, each with what is used of it. */
function quotaText({ pending, pendingMax, bytes, bytesMax }: QuotaUse): string {
  const jobs = pendingMax === 0 ? [] : [line`${pending} of ${pendingMax} jobs (${percent(pending, pendingMax)} %)`];
  const size = bytesMax === 0 ? [] : [line`${bytes} of ${bytesMax} bytes (${percent(bytes, bytesMax)} %)`];
  return [...jobs, ...size].join(', ');
}

/** 0 without a limit. 100 only when it is reached. */
const percent = (used: number, most: number): number => (most === 0 ? 0 : Math.floor((used / most) * 100));
