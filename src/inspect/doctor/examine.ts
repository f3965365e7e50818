/** All checks, one after the other: whether a Redis can be trusted with jobs, and what to do about what was seen. */
import { reasonOf } from '../../kernel/reason.ts';
import { membersOf } from '../../redis/connection/cluster/members.ts';
import { describe, type Redis } from '../../redis/connection/connect.ts';
import { checks, readInfo } from './checks.ts';
import type { Check, Finding, Info, Subject } from './finding.ts';

export interface Result extends Finding {
  readonly check: string;
}

/** What is judged besides Redis. */
export type Examined = Omit<Subject, 'redis' | 'info'>;

export async function examine(redis: Redis, place: Examined): Promise<readonly Result[]> {
  const [first = redis] = membersOf(redis);
  const info = await infoOr(first);
  const results: Result[] = [];
  for (const check of checks) results.push(await look(check, { redis, info, place }));
  return results;
}

async function infoOr(redis: Redis): Promise<Info | undefined> {
  try {
    return await readInfo(redis);
  } catch {
    return undefined;
  }
}

async function look(check: Check, seen: { redis: Redis; info: Info | undefined; place: Examined }): Promise<Result> {
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
  { redis, info, place }: { redis: Redis; info: Info | undefined; place: Examined },
): Promise<Result> {
  if (info === undefined && needsInfo) {
    return { check: name, status: 'warn', saw: 'not visible', advice: 'allow INFO to this user, then run this again' };
  }
  try {
    return { check: name, ...(await examineIt({ ...place, redis, info: info ?? new Map() })) };
  } catch (error) {
    return {
      check: name,
      status: 'fail',
      saw: reasonOf(error),
      advice: 'run this again; if it stays, look at the log of Redis',
    };
  }
}
