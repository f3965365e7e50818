/**
 * `doctor`: looks whether this Redis can be trusted with jobs, and says what to do about what it finds. With `--keys` it looks
 * at each key instead; with `--repair` it says what it would mend there, and with `--yes` too it mends it.
 */

import type { Command } from 'commander';
import { doneLimits } from '../../config/options.ts';
import type { Finding } from '../../inspect/doctor/check.ts';
import {
  checkKeys,
  type KeyFlaw,
  type KeysAsked,
  type KeysFound,
  keysFinding,
  type PartitionReport,
} from '../../inspect/doctor/check-keys.ts';
import { examine, type Result, restored } from '../../inspect/doctor/doctor.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { counted } from '../../kernel/humanize.ts';
import { Unreachable } from '../../redis/connection/connect-problem.ts';
import type { Bookkeeping } from '../../redis/repair/leftovers.ts';
import { listQueues, partitionsOf } from '../../redis/scripts/queues.ts';
import {
  type Exit,
  partitionsOfQueue,
  type Register,
  type Session,
  withAnyRedis,
  withExamples,
  withRedis,
} from '../session.ts';
import { line, type Paint, unreadLines } from '../terminal/output.ts';

export const doctor: Register = (parent, runner) => {
  const command = parent
    .command('doctor [queue]')
    .description('check whether this Redis can be trusted with jobs, say what to do, and repair damage to the keys')
    .option('--keys', 'look at each key for damage instead; of one queue, if it is named')
    .option('--repair', 'as --keys, and show the repairs that are possible; with --yes, make them')
    .option('--yes', 'with --repair: make the repairs')
    .option('--restored', 'after a backup was restored: also list, per queue, what may run twice')
    .action((queue: string | undefined, flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, queue, flags)),
    );
  withExamples(command, [
    'duestream doctor',
    'duestream doctor --redis redis://10.0.0.5:6379 --json',
    'duestream doctor --restored',
    'duestream doctor --keys',
    'duestream doctor emails --repair --yes',
  ]);
};

interface Flags {
  readonly keys?: boolean;
  readonly repair?: boolean;
  readonly yes?: boolean;
  readonly restored?: boolean;
}

async function run(session: Session, queue: string | undefined, flags: Flags): Promise<Exit> {
  const { repair = false, yes = false } = flags;
  if (yes && !repair) throw new DuestreamError('usage', '--yes is given without --repair; allowed: both, or neither');
  const isOfKeys = flags.keys === true || repair || queue !== undefined;
  if (isOfKeys && flags.restored === true) {
    throw new DuestreamError('usage', '--restored is given with a look at keys; allowed: one after the other');
  }
  return isOfKeys
    ? lookAtKeys(session, queue, repair ? (yes ? 'make' : 'plan') : 'none')
    : lookAtServer(session, flags);
}

async function lookAtServer(session: Session, flags: Flags): Promise<Exit> {
  const results = await examined(session, flags);
  const failed = results.some(({ status }) => status === 'fail');
  session.out.answer({ ok: !failed, checks: results }, () => [
    ...results.flatMap((result) => lines(session.out.paint, result)),
    summary(results),
  ]);
  if (results[0]?.status === 'fail') return 69;
  return failed ? 1 : 0;
}

async function lookAtKeys(session: Session, queue: string | undefined, repair: KeysAsked['repair']): Promise<Exit> {
  const { namespace } = session.config;
  const note = (text: string) => session.out.note(line`${text}`);
  const { found, result } = await withRedis(session, async (redis) => {
    const refs =
      queue === undefined
        ? (await listQueues(redis, namespace)).flatMap((layout) => partitionsOf(namespace, layout))
        : await partitionsOfQueue(session, redis, queue);
    const asked: KeysAsked = { namespace, refs, isAll: queue === undefined, repair, note };
    const found = await checkKeys(redis, asked);
    return { found, result: { check: 'keys', ...keysFinding(found, asked) } };
  });
  const ok = result.status === 'ok';
  session.out.answer({ ok, checks: [result], ...found }, () => [
    ...keysLines(session.out.paint, found),
    ...lines(session.out.paint, result),
  ]);
  return ok ? 0 : 1;
}

/** Without a connection there is one finding, and nothing else can be said. */
async function examined(session: Session, flags: Flags): Promise<readonly Result[]> {
  try {
    const { config } = session;
    const { namespace, limits, mover, sharedLimits } = config;
    const place = {
      ...{ namespace, horizonMs: limits.horizonMs, done: doneLimits(config), closedMax: mover.closedMax },
      ...{ secrets: Object.keys(config.targets.secrets), sharedLimits },
    };
    return await withAnyRedis(session, async (redis) => [
      ...(await examine(redis, place)),
      ...(flags.restored === true ? await restored(redis, namespace) : []),
    ]);
  } catch (error) {
    if (error instanceof Unreachable) {
      return [{ check: 'reachable', status: 'fail', saw: error.saw, advice: error.remedy }];
    }
    if (!(error instanceof DuestreamError) || error.code !== 'unavailable') throw error;
    const advice = 'start one with "duestream dev", or name one with --redis or DUESTREAM_REDIS_URL';
    return [{ check: 'reachable', status: 'fail', saw: error.message, advice }];
  }
}

function lines(paint: Paint, { check, status, saw, advice }: Result): readonly string[] {
  const colour = { ok: paint.green, warn: paint.yellow, fail: paint.red }[status];
  const first = `${colour(status.padEnd(4))}  ${check.padEnd(11)}  ${line`${saw}`}`;
  return advice === undefined ? [first] : [first, line`                   ${advice}`];
}

function summary(results: readonly Result[]): string {
  const count = (status: Finding['status']) => results.filter((result) => result.status === status).length;
  if (count('fail') > 0) return line`${count('fail')} failed: correct that before you trust this Redis with jobs`;
  if (count('warn') > 0) return line`usable, with ${counted(count('warn'), 'warning')}`;
  return 'all is well';
}

/** Many flaws of one kind have one cause; JSON has all of them. */
const FLAWS_MAX = 20;

function keysLines(paint: Paint, { partitions, unread, bookkeeping, control }: KeysFound): readonly string[] {
  return [
    ...partitions.flatMap((one) => partitionLines(paint, one)),
    ...unreadLines(unread),
    ...(bookkeeping === undefined ? [] : [bookkeepingLine(bookkeeping)]),
    ...flawLines(paint, control),
  ];
}

function partitionLines(
  paint: Paint,
  { queue, partition, looked, atomic, flaws, more }: PartitionReport,
): readonly string[] {
  const how = atomic ? 'at one moment' : 'page by page';
  const state = flaws.length === 0 ? paint.green('no damage') : paint.red(counted(flaws.length, 'flaw'));
  const head = `${line`${queue}:${partition}`}  ${state}${line`, ${looked} checked ${how}`}`;
  return [
    head,
    ...flawLines(paint, flaws),
    ...(more ? ['  there is more damage than one look reports: repair, then look again'] : []),
  ];
}

function flawLines(paint: Paint, flaws: readonly KeyFlaw[]): readonly string[] {
  const rest = flaws.length - FLAWS_MAX;
  return [
    ...flaws.slice(0, FLAWS_MAX).map((flaw) => flawLine(paint, flaw)),
    ...(rest > 0 ? [line`  … and ${rest} more; --json has all of them`] : []),
  ];
}

/** What is kept beside the jobs, and how much of it belongs to nothing any more. */
function bookkeepingLine(of: Bookkeeping): string {
  const excess = (count: number, what: string) => (count === 0 ? '' : ` (${count} ${what})`);
  const timed =
    of.sessions === undefined
      ? 'sessions and Idempotency-Keys not counted: this user may not use SCAN'
      : `${counted(of.sessions, 'session')}, ${counted(of.idempotencyKeys ?? 0, 'Idempotency-Key')}${excess(of.withoutTtl ?? 0, 'of both without a time to live')}`;
  return [
    `bookkeeping: ${counted(of.settings, 'setting')}${excess(of.settingsWithoutQueue, 'without a queue')}`,
    `${of.tokens} of ${counted(of.tokensMax, 'token')}`,
    `${counted(of.processes, 'process', 'processes')}${excess(of.processesWithoutBeat, 'without a heartbeat')}`,
    timed,
    `${counted(of.firedSchedules, 'schedule')} that fired${excess(of.firedSchedulesGone, 'gone')}`,
  ].join(', ');
}

function flawLine(paint: Paint, { invariant, what, name, means, repair, repaired }: KeyFlaw): string {
  const mark = repaired
    ? paint.green('repaired')
    : repair === undefined
      ? paint.yellow('not repaired by doctor')
      : paint.red('can be repaired');
  return `  ${invariant.padEnd(3)}  ${line`${[what, name].join(' ').trim()}: ${means}`} [${mark}]`;
}
