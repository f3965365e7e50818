/** `doctor`: looks whether this Redis can be trusted with jobs, and says what to do about what it finds. */
import type { Command } from 'commander';
import { doneLimits } from '../../config/done.ts';
import { DuestreamError, messageOf } from '../../core/errors.ts';
import { membersOf } from '../../redis/connection/cluster/members.ts';
import { describe, type Redis } from '../../redis/connection/connect.ts';
import { Unreachable } from '../../redis/connection/connect-problem.ts';
import { type Exit, type Register, withExamples } from '../register.ts';
import { type Session, withAnyRedis } from '../session.ts';
import type { Paint } from '../terminal/paint.ts';
import { counted, line } from '../terminal/text.ts';
import { checks, readInfo } from './checks.ts';
import type { Check, Finding, Info } from './finding.ts';

interface Result extends Finding {
  readonly check: string;
}

export const doctor: Register = (parent, runner) => {
  const command = parent
    .command('doctor')
    .description('check whether this Redis can be trusted with jobs, and say what to do')
    .action((_flags: unknown, command: Command) => runner.run(command, run));
  withExamples(command, ['duestream doctor', 'duestream doctor --redis redis://10.0.0.5:6379 --json']);
};

async function run(session: Session): Promise<Exit> {
  const results = await examine(session);
  const failed = results.some(({ status }) => status === 'fail');
  session.out.answer({ ok: !failed, checks: results }, () => [
    ...results.flatMap((result) => lines(session.out.paint, result)),
    summary(results),
  ]);
  if (results[0]?.status === 'fail') return 69;
  return failed ? 1 : 0;
}

/** Without a connection there is one finding, and nothing else can be said. */
async function examine(session: Session): Promise<readonly Result[]> {
  try {
    return await withAnyRedis(session, async (redis) => {
      const [first = redis] = membersOf(redis);
      const info = await infoOr(first);
      const results: Result[] = [];
      for (const check of checks) results.push(await look(check, { redis, info, session }));
      return results;
    });
  } catch (error) {
    if (error instanceof Unreachable) {
      return [{ check: 'reachable', status: 'fail', saw: error.saw, advice: error.remedy }];
    }
    if (!(error instanceof DuestreamError) || error.code !== 'unavailable') throw error;
    const advice = 'start one with "duestream dev", or name one with --redis or DUESTREAM_REDIS_URL';
    return [{ check: 'reachable', status: 'fail', saw: error.message, advice }];
  }
}

async function infoOr(redis: Redis): Promise<Info | undefined> {
  try {
    return await readInfo(redis);
  } catch {
    return undefined;
  }
}

async function look(check: Check, seen: { redis: Redis; info: Info | undefined; session: Session }): Promise<Result> {
  const servers = membersOf(seen.redis);
  if (!check.perServer || servers.length === 1) return lookAt(check, seen);
  const all = await Promise.all(
    servers.map(async (redis) => ({
      where: describe(redis),
      result: await lookAt(check, { ...seen, redis, info: await infoOr(redis) }),
    })),
  );
  return together(all);
}

/** One line for all servers. Where they differ, the worst decides, and each is named with what it is like. */
function together(all: readonly { readonly where: string; readonly result: Result }[]): Result {
  const [first] = all;
  if (!first) throw new Error('a cluster without a server');
  const worst = all.reduce((a, b) => (BADNESS[b.result.status] > BADNESS[a.result.status] ? b : a)).result;
  if (all.every(({ result }) => result.saw === first.result.saw)) {
    return { ...worst, saw: `${worst.saw} (each of ${all.length} servers)` };
  }
  return { ...worst, saw: all.map(({ where, result }) => `${where} ${result.saw}`).join('; ') };
}

const BADNESS: Readonly<Record<Finding['status'], number>> = { ok: 0, warn: 1, fail: 2 };

async function lookAt(
  { name, needsInfo = false, look: examineIt }: Check,
  { redis, info, session }: { redis: Redis; info: Info | undefined; session: Session },
): Promise<Result> {
  if (info === undefined && needsInfo) {
    return { check: name, status: 'warn', saw: 'not visible', advice: 'allow INFO to this user, then run this again' };
  }
  try {
    const { namespace, limits } = session.config;
    const done = doneLimits(session.config);
    const subject = { redis, info: info ?? new Map(), namespace, horizonMs: limits.horizonMs, done };
    return { check: name, ...(await examineIt(subject)) };
  } catch (error) {
    return {
      check: name,
      status: 'fail',
      saw: messageOf(error),
      advice: 'run this again; if it stays, look at the log of Redis',
    };
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
