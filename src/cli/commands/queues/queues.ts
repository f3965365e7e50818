/** The commands of `queues` that show and pause: ls, show, why, pause and resume. */
import { type Command, Option } from 'commander';
import { operations } from '../../../client/operations.ts';
import { leaderName } from '../../../client/queues/processes.ts';
import { overrideNote, type QueueLimits, type SettingOverride } from '../../../client/queues/settings.ts';
import type {
  BroadcastCounts,
  DueSpan,
  PartitionCounts,
  QueueCounts,
  QueueReport,
} from '../../../client/queues/stats.ts';
import type { Obstacle, Why } from '../../../client/queues/why.ts';
import { lastStartOf } from '../../../inspect/estimate.ts';
import { backOf, type QueueMinutes, queueMinutes, type SpreadTotal } from '../../../inspect/minutes.ts';
import { valueText } from '../../../job/queue-settings.ts';
import type { QuotaUse } from '../../../job/quota.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { durationMs, durationText } from '../../../kernel/duration.ts';
import { counted, span } from '../../../kernel/humanize.ts';
import { DAYS } from '../../../redis/read/history.ts';
import type { Pause } from '../../../redis/scripts/upkeep.ts';
import {
  type Exit,
  type Register,
  type Session,
  wholeNumber,
  withClient,
  withExamples,
  withRedis,
} from '../../session.ts';
import { asking } from '../../terminal/asking.ts';
import { moment } from '../../terminal/instants.ts';
import { type Cell, fields, line, type Paint, table, unreadLines } from '../../terminal/output.ts';

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

// `queues show <queue>`: counts per state and partition, what happened so far, who leads, and what comes due when.

export const queuesShow: Register = (parent, runner) => {
  const command = parent
    .command('show <queue>')
    .description(
      'show how many jobs are in each state and partition, and how many become due in the next minute, hour, day and week; or what happened before now',
    )
    .addOption(
      new Option(
        '--hours <n>',
        'what happened in the last hour by the minute, or in the last 24 by ten minutes',
      ).choices(['1', '24']),
    )
    .option(
      '--days <n>',
      'what happened in so many days, at most 396: by the hour up to 7 days, else by the day',
      wholeNumber(1, DAYS),
    )
    .addOption(
      new Option('--by <step>', 'of --days: by the hour, at most 90 days, or by the day').choices(['hour', 'day']),
    )
    .action((queue: string, flags: BackFlags, command: Command) =>
      runner.run(command, (session) =>
        (flags.hours ?? flags.days ?? flags.by) === undefined
          ? runShow(session, queue)
          : runBack(session, queue, flags),
      ),
    );
  withExamples(command, [
    'duestream queues show emails',
    'duestream queues show emails --days 30',
    'duestream queues show emails --json',
  ]);
};

interface BackFlags {
  readonly hours?: '1' | '24';
  readonly days?: number;
  readonly by?: 'hour' | 'day';
}

async function runBack(session: Session, queue: string, { hours, ...flags }: BackFlags): Promise<Exit> {
  const back = backOf({ ...flags, hours: hours === '24' ? 24 : 1 });
  const { namespace } = session.config;
  const found = await withRedis(session, (redis) => queueMinutes({ redis, namespace }, queue, back));
  session.out.answer({ queue, ...found }, () => backLines(session.out.paint, queue, found));
  return 0;
}

const BACK_HEAD = [
  'from',
  'starts',
  'p50',
  'p99',
  'longest',
  'run p50',
  'run p99',
  'done',
  'retried',
  'dead',
  'expired',
];

/** One line per step in which anything happened, and all of them together. */
function backLines(paint: Paint, queue: string, found: QueueMinutes): readonly string[] {
  const rows = found.known.flatMap((_, at) => backRow(found, at));
  const { start, run } = found.total;
  if (rows.length === 0) {
    const advice = found.on ? '' : '; where leaders keep no minutes, "http.minutes: on" lets them';
    return [line`nothing is known of ${queue} in this time${advice}`];
  }
  const told = (of: SpreadTotal) =>
    `half within ${msText(of.p50Ms)}, 99 % within ${msText(of.p99Ms)}, the longest ${msText(of.maxMs)}`;
  return [
    ...table(paint, BACK_HEAD, rows),
    '',
    ...fields([
      ['lateness', `${counted(start.count, 'start')}: ${told(start)}`],
      ['run time', told(run)],
    ]),
    'times in the first column are UTC',
  ];
}

function backRow({ startMs, stepMs, start, run, counts }: QueueMinutes, at: number): readonly Cell[][] {
  const ends = [counts.done, counts.retried, counts.dead, counts.expired].map((list) => list[at] ?? 0);
  const starts = start.count[at] ?? 0;
  if (starts === 0 && ends.every((count) => count === 0)) return [];
  const times = [start.p50Ms, start.p99Ms, start.maxMs, run.p50Ms, run.p99Ms].map((list) => msText(list[at]));
  return [[new Date(startMs + at * stepMs).toISOString().slice(0, 16), starts, ...times, ...ends]];
}

const msText = (ms: number | null | undefined): string => (ms === null || ms === undefined ? '-' : span(ms));

async function runShow(session: Session, queue: string): Promise<Exit> {
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
    ['target', of.settings.target ? valueText('target', of.settings.target) : undefined],
    ['quota', quota && quotaText(quota)],
    ...of.overrides.map((one) => ['by hand', overrideText(one)] as const),
    ['workers', of.broadcast ? 'none: every subscriber gets each job' : of.workers],
    ['paused', of.pause && pauseText(of.pause, of.nowMs)],
  ]);
}

const overrideText = (one: SettingOverride): string =>
  line`${one.setting}${one.group === undefined ? '' : ` of ${one.group}`} is ${valueText(one.setting, one.value)}${overrideNote(one)}`;

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
  const {
    namespace,
    mover: { readyMax },
  } = session.config;
  const found = await withClient(session, (client) => client.queues.why(queue, { readyMax }));
  const lastStart = await withRedis(session, (redis) => lastStartOf({ redis, namespace }, queue));
  session.out.answer({ queue, ...found, ...(lastStart && { lastStart }) }, () => [
    ...whyLines(session.out.paint, queue, found),
    ...(lastStart ? [`${'last start'.padEnd(CODE_CHARS)}  ${line`${lastStart.text}`}`] : []),
  ]);
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

export const queuesPause = asking(operations.queues.pause, {
  takesAll: true,
  description: 'pause a queue: no job of it starts until you resume it; running jobs go on',
  examples: [
    'duestream queues pause emails --reason "the mail server moves"',
    'duestream queues pause --all --reason "restored from 03:00"',
  ],
  say: ({ queue, changed, pause, running }) => [
    changed
      ? line`${queue} is paused`
      : line`${queue} was paused already, ${pause ? pauseText(pause, systemClock.wallMs()) : ''}`,
    running === 0 ? 'no job runs' : line`running jobs go on to their end: ${counted(running, 'job')}`,
    line`to go on: duestream queues resume ${queue}`,
  ],
});

export const queuesResume = asking(operations.queues.resume, {
  takesAll: true,
  description: 'resume a paused queue at once',
  examples: ['duestream queues resume emails', 'duestream queues resume --all'],
  say: ({ queue, pause }) => [
    pause === undefined
      ? line`${queue} was not paused`
      : line`${queue} goes on; it was paused ${pauseText(pause, systemClock.wallMs())}`,
  ],
});

/** Since when and why. */
function pauseText({ sinceMs, reason }: Pause, nowMs: number): string {
  const since = sinceMs === undefined ? 'since an unknown moment' : `since ${moment(sinceMs, nowMs)}`;
  return reason === '' ? since : `${since}: ${reason}`;
}

// `queues close` and `queues open`: a queue with limits lets nobody through for some time.

export const queuesClose = asking(operations.queues.close, {
  description: 'let no job of a queue with limits through for some time; running jobs go on, and it opens by itself',
  examples: ['duestream queues close calls --for 10m --reason "the provider is down"'],
  say: ({ queue, changed }, asked) =>
    changed
      ? [
          line`${queue} is closed for ${durationText(durationMs(asked.for, 'for'))}; what was let through before starts all the same`,
          line`to open it: duestream queues open ${queue}`,
        ]
      : [line`${queue} is closed for as long or longer already`],
});

export const queuesOpen = asking(operations.queues.open, {
  description: 'open a closed queue at once',
  examples: ['duestream queues open calls'],
  say: ({ queue, changed }) => [changed ? line`${queue} is open` : line`${queue} was open`],
});

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
