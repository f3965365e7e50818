/**
 * `top`: is anything late, what happens per second, what comes due, what `doctor` found: once a second, in 80 columns. It
 * is what the page *Now* of the dashboard shows. Into a pipe, and with `--json`, it is one frame.
 */

import { stripVTControlCharacters } from 'node:util';
import type { Command } from 'commander';
import { doneLimits } from '../../config/options.ts';
import { createLook, type LiveQueue, type Look, type NextHour } from '../../inspect/look.ts';
import { bytesText } from '../../inspect/sizing.ts';
import { systemClock } from '../../kernel/clock.ts';
import { durationMs } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { counted, span } from '../../kernel/humanize.ts';
import { silentLog } from '../../kernel/log.ts';
import { reasonOf } from '../../kernel/reason.ts';
import { type Exit, type Register, type Session, wholeNumber, withClient, withExamples } from '../session.ts';
import { line, type Paint, table } from '../terminal/output.ts';

interface Flags {
  readonly every: string;
  readonly frames?: number;
}

const EVERY_MIN_MS = 200;

export const top: Register = (parent, runner) => {
  const command = parent
    .command('top')
    .description('show live whether anything is late, what happens per second, and what comes due')
    .option('--every <duration>', 'how often it is looked', '1s')
    .option('--frames <n>', 'end after so many frames; default: go on, or 1 into a pipe', wholeNumber(1, 1_000_000))
    .action((flags: Flags, command: Command) => runner.run(command, (session) => run(session, flags)));
  withExamples(command, ['duestream top', 'duestream top --every 5s', 'duestream top --frames 1']);
};

async function run(session: Session, { every, frames }: Flags): Promise<Exit> {
  const { config, out, invocation } = session;
  const everyMs = durationMs(every, '--every');
  if (everyMs < EVERY_MIN_MS) throw new DuestreamError('usage', `--every is ${every}; allowed: at least 200ms`);
  const isLive = invocation.stdout.isTTY === true && !out.json;
  const most = frames ?? (isLive ? Number.POSITIVE_INFINITY : 1);
  await withClient(session, async ({ schedules }) => {
    const examined = {
      namespace: config.namespace,
      horizonMs: config.limits.horizonMs,
      done: doneLimits(config),
      closedMax: config.mover.closedMax,
    };
    const place = async () => ({ redis: await session.line.redis(), namespace: config.namespace });
    const look = createLook({ backend: { place, schedules, examined }, clock: systemClock, log: silentLog });
    // Rates need two looks; and what is asked at a slower beat is there by the second one.
    await look();
    for (let frame = 1; frame <= most; frame += 1) {
      await systemClock.sleep(frame === 1 ? Math.min(everyMs, 1000) : everyMs);
      show(session, await lookOr(look), isLive);
    }
  });
  return 0;
}

/** An outage is shown, and the next look tries again. */
async function lookOr(look: () => Promise<Look>): Promise<Look | DuestreamError> {
  try {
    return await look();
  } catch (error) {
    return error instanceof DuestreamError
      ? error
      : new DuestreamError('unavailable', reasonOf(error), { cause: error });
  }
}

const HOME = '\u001b[H';
const TO_END_OF_LINE = '\u001b[K';
const TO_END = '\u001b[J';

function show({ out, config, invocation }: Session, found: Look | DuestreamError, isLive: boolean): void {
  if (found instanceof DuestreamError && !isLive) throw found;
  const { namespace } = config;
  const rows = invocation.stdout.rows ?? 24;
  const lines =
    found instanceof DuestreamError
      ? [line`${namespace}  Redis does not answer: ${found.message}`]
      : frameOf(found, { namespace, paint: out.paint, rows: isLive ? rows - 1 : Number.POSITIVE_INFINITY });
  // Written over the frame before: nothing flickers, and nothing has to be put back when a signal ends it.
  if (!isLive) out.answer(found, () => lines);
  else invocation.stdout.write(`${HOME}${lines.map((text) => `${text}${TO_END_OF_LINE}\n`).join('')}${TO_END}`);
}

/* One frame of `top`: lines of at most 80 columns. */

/** Later than this is late: below it a job may be on its way. */
const LATE_MS = 1000;
const COLUMNS = 80;
const NAMES_MAX = 3;

export interface Frame {
  readonly namespace: string;
  readonly paint: Paint;
  /** Of the terminal: queues that do not fit are counted. */
  readonly rows: number;
}

export function frameOf(look: Look, { namespace, paint, rows }: Frame): readonly string[] {
  const head = [
    `${paint.bold(line`namespace ${namespace}`)}  ${new Date(look.nowMs).toISOString().slice(0, 19).replace('T', ' ')} UTC`,
    '',
    `late       ${lateText(look.queues, paint)}`,
    `per second ${ratesText(look.queues)}`,
    `processes  ${processesText(look, paint)}`,
    `Redis      ${redisText(look)}`,
    ...look.unread.map(({ queue, why }) => paint.red(line`unread     ${queue}: ${why}`)),
    ...limitLines(look.queues),
    ...comingLines(look.forecast),
    ...doctorLines(look, paint),
    '',
  ];
  const queues = [...look.queues].sort((a, b) => b.oldestDueAgeMs - a.oldestDueAgeMs || (a.queue < b.queue ? -1 : 1));
  const room = Math.max(1, rows - head.length - 2);
  const hidden = queues.length - room;
  return [
    ...head.map((text) => cut(text)),
    ...(queues.length === 0 ? ['no queue was used yet'] : queueTable(queues.slice(0, room), paint)),
    ...(hidden > 0 ? [`and ${counted(hidden, 'queue')} more: duestream queues ls`] : []),
  ];
}

const HEAD = ['queue', 'scheduled', 'ready', 'running', 'dead', 'waits', 'starts/s', 'workers'];
const NAME_CHARS = 20;
/** Beside a column more. */
const GATED_NAME_CHARS = 12;

/** With those that are in line, where a queue has limits. */
function queueTable(queues: readonly LiveQueue[], paint: Paint): readonly string[] {
  const isGated = queues.some(({ limits }) => limits !== undefined);
  const head = isGated ? HEAD.toSpliced(1, 0, 'in line') : HEAD;
  return table(
    paint,
    head,
    queues.map((one) => rowOf(one, isGated)),
  );
}

function rowOf(one: LiveQueue, isGated: boolean) {
  const most = one.limits?.concurrency;
  return [
    `${one.queue.slice(0, isGated ? GATED_NAME_CHARS : NAME_CHARS)}${one.paused ? ' (paused)' : ''}`,
    ...(isGated ? [one.limits && one.waiting] : []),
    ...[one.scheduled, one.ready, most === undefined ? one.running : `${one.running}/${most}`, one.dead],
    one.oldestDueAgeMs === 0 ? undefined : span(one.oldestDueAgeMs),
    ...[one.perSecond.started, one.workers],
  ];
}

/** The queues with the longest lines, and what holds them. */
function limitLines(queues: readonly LiveQueue[]): readonly string[] {
  const held = queues.filter(({ waiting }) => waiting > 0).sort((a, b) => b.waiting - a.waiting);
  const more = held.length > NAMES_MAX ? [`and ${counted(held.length - NAMES_MAX, 'queue')} more`] : [];
  const texts = held
    .slice(0, NAMES_MAX)
    .map((one) => line`${one.queue}: ${one.waiting} for ${span(one.waitMs)} (${one.limits?.text})`);
  return [...texts, ...more].map((text, at) => `${at === 0 ? 'in line' : '       '}    ${text}`);
}

function lateText(queues: readonly LiveQueue[], paint: Paint): string {
  const late = queues
    .filter(({ oldestDueAgeMs }) => oldestDueAgeMs > LATE_MS)
    .sort((a, b) => b.oldestDueAgeMs - a.oldestDueAgeMs);
  if (late.length === 0) return paint.green('nothing');
  const names = late
    .slice(0, NAMES_MAX)
    .map((one) => line`${one.queue} ${span(one.oldestDueAgeMs)}${one.oldestInLine ? ' in line' : ''}`);
  const more = late.length > NAMES_MAX ? ` and ${counted(late.length - NAMES_MAX, 'queue')} more` : '';
  return paint.red(`${names.join(', ')}${more}`);
}

function ratesText(queues: readonly LiveQueue[]): string {
  const sum = (of: keyof LiveQueue['perSecond']) =>
    Math.round(queues.reduce((total, { perSecond }) => total + perSecond[of], 0) * 10) / 10;
  return (['scheduled', 'promoted', 'started', 'ended'] as const).map((name) => `${sum(name)} ${name}`).join('   ');
}

function processesText({ processes: { daemons, workers, versions }, queues }: Look, paint: Paint): string {
  const leaders = queues.flatMap((one) => one.leaders);
  const led = leaders.filter((one) => one !== undefined).length;
  const text = `${led} of ${counted(leaders.length, 'partition')} led`;
  const both = `${counted(daemons, 'daemon')}, ${counted(workers, 'worker')}`;
  const mixed = versions.length > 1 ? `; ${paint.yellow(counted(versions.length, 'version'))}` : '';
  return `${workers === 0 && queues.length > 0 ? paint.yellow(both) : both}${mixed}; ${led < leaders.length ? paint.red(text) : text}`;
}

const KEEPS = {
  always: 'AOF, fsync always',
  everysec: 'AOF, fsync every second',
  unknown: 'AOF, fsync unknown',
  no: 'AOF, no fsync',
  snapshots: 'snapshots only',
  none: 'keeps nothing',
} as const;

function redisText({ redis }: Look): string {
  if (redis === undefined) return 'not visible';
  const { usedBytes, maxBytes, durability } = redis;
  const part = maxBytes > 0 ? ` of ${bytesText(maxBytes)} (${Math.round((usedBytes / maxBytes) * 100)} %)` : '';
  return `${bytesText(usedBytes)}${part}; ${KEEPS[durability]}`;
}

const LEVELS = ' ▁▂▃▄▅▆▇█';

function comingLines(forecast: NextHour | undefined): readonly string[] {
  if (forecast === undefined) return [];
  const { nextHour, scheduled, coming, buckets, busiest } = forecast;
  const most = Math.max(1, ...buckets.map(({ jobs }) => jobs));
  const level = (jobs: number) => LEVELS[jobs === 0 ? 0 : Math.max(1, Math.round((jobs / most) * 8))];
  const peak = busiest ? `; most at ${new Date(busiest.fromMs).toISOString().slice(11, 16)}: ${busiest.jobs}` : '';
  return [
    `next hour  ${counted(nextHour, 'job')}: ${scheduled} wait now, ${coming} from schedules${peak}`,
    ...(nextHour === 0 ? [] : [`           ${buckets.map(({ jobs }) => level(jobs)).join('')}`]),
  ];
}

function doctorLines({ doctor }: Look, paint: Paint): readonly string[] {
  if (doctor === undefined) return [];
  if (doctor.findings.length === 0) return [`doctor     ${paint.green('all is well')}`];
  return doctor.findings.map(({ check, status, saw }, at) => {
    const colour = status === 'fail' ? paint.red : paint.yellow;
    return `${at === 0 ? 'doctor' : '      '}     ${colour(status)} ${line`${check}: ${saw}`}`;
  });
}

/** Colours take no room. */
function cut(text: string): string {
  const plain = stripVTControlCharacters(text);
  return plain.length <= COLUMNS ? text : `${plain.slice(0, COLUMNS - 1)}…`;
}
