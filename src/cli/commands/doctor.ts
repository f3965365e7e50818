/** `doctor`: looks whether this Redis can be trusted with jobs, and says what to do about what it finds. */

import type { Command } from 'commander';
import { doneLimits } from '../../config/options.ts';
import type { Finding } from '../../inspect/doctor/check.ts';
import { examine, type Result, restored } from '../../inspect/doctor/doctor.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { counted } from '../../kernel/humanize.ts';
import { Unreachable } from '../../redis/connection/connect-problem.ts';
import { type Exit, type Register, type Session, withAnyRedis, withExamples } from '../session.ts';
import { line, type Paint } from '../terminal/output.ts';

export const doctor: Register = (parent, runner) => {
  const command = parent
    .command('doctor')
    .description('check whether this Redis can be trusted with jobs, and say what to do')
    .option('--restored', 'after a backup was restored: also list, per queue, what may run twice')
    .action((flags: Flags, command: Command) => runner.run(command, (session) => run(session, flags)));
  withExamples(command, [
    'duestream doctor --restored',
    'duestream doctor',
    'duestream doctor --redis redis://10.0.0.5:6379 --json',
  ]);
};

interface Flags {
  readonly restored?: boolean;
}

async function run(session: Session, flags: Flags): Promise<Exit> {
  const results = await examined(session, flags);
  const failed = results.some(({ status }) => status === 'fail');
  session.out.answer({ ok: !failed, checks: results }, () => [
    ...results.flatMap((result) => lines(session.out.paint, result)),
    summary(results),
  ]);
  if (results[0]?.status === 'fail') return 69;
  return failed ? 1 : 0;
}

/** Without a connection there is one finding, and nothing else can be said. */
async function examined(session: Session, flags: Flags): Promise<readonly Result[]> {
  try {
    const { config } = session;
    const { namespace, limits, mover } = config;
    const place = { namespace, horizonMs: limits.horizonMs, done: doneLimits(config), closedMax: mover.closedMax };
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
