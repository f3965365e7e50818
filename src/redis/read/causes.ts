/**
 * `K:causes` of the first partition: why jobs of a queue started late, by the minute. A worker that has started jobs adds one entry
 * a minute, so that no job costs a command. It holds sums, and who reads adds them:
 *
 *     m <minute> s <starts> l <starts that were late by a second or more> p <letter of a cause><ms>… g <group>=<ms> …
 *     b <letter of a cause><starts>…
 *
 * `minute` is the number of minutes since 1970 in which the jobs were started, by the clock of Redis. `g` has the groups whose jobs
 * waited longest, of jobs that were late by a second or more: ten at the most of each worker. `b` has the starts that were later
 * than promised, each by the cause that held it longest; it is there only where lateness is promised. Entries go after a day; so
 * does the key, where nobody adds any.
 */
import { type Cause, readSums, sumsText, sumsTogether } from '../../job/account.ts';
import { MINUTE_MS } from '../../job/minutes.ts';
import type { Redis } from '../connection/connect.ts';
import { CAUSES_MS, type PartitionRef } from '../keys.ts';
import { fieldsOf, list, type Reply, text } from '../scripts/scripts.ts';

/** What was summed of the starts of one minute. */
export interface CauseSums {
  /** Jobs that were started. */
  readonly starts: number;
  /** Those of them that were late by a second or more. */
  readonly late: number;
  /** By how many ms all jobs together were late, by the cause. */
  readonly ms: ReadonlyMap<Cause, number>;
  /** How long jobs of a group waited together, of jobs that were late by a second or more. */
  readonly groups: ReadonlyMap<string, number>;
  /** Starts that were later than promised, by the cause that held each longest. */
  readonly lateBy: ReadonlyMap<Cause, number>;
}

/** So many groups are told of a minute, those whose jobs waited longest. */
export const GROUPS_TOLD = 10;
/** How long a minute is told. */
const KEPT_MS = 25 * 3_600_000;

/** Adds what a worker has summed of a minute. What a lost reply was about is not sent again: no start counts twice. */
export async function addCauses(
  redis: Redis,
  { keys }: PartitionRef,
  { minute, sums, nowMs }: { readonly minute: number; readonly sums: CauseSums; readonly nowMs: number },
): Promise<void> {
  const groups = longest(sums.groups, GROUPS_TOLD).map(([group, ms]) => `${group}=${Math.round(ms)}`);
  await Promise.all([
    redis.xadd(
      keys.causes,
      ...(['*', 'm', minute, 's', sums.starts, 'l', sums.late, 'p', sumsText(sums.ms), 'g', groups.join(' ')] as const),
      ...(sums.lateBy.size === 0 ? [] : ['b', sumsText(sums.lateBy)]),
    ),
    redis.call('XTRIM', keys.causes, 'MINID', String(Math.floor(nowMs) - KEPT_MS)),
    redis.pexpire(keys.causes, CAUSES_MS),
  ]);
}

/** The groups with the most, the longest first. */
export const longest = (groups: ReadonlyMap<string, number>, count: number): readonly (readonly [string, number])[] =>
  [...groups].sort(([one, ms], [other, most]) => most - ms || (one < other ? -1 : 1)).slice(0, count);

/** Entries of one read, and of one question: a day of 100 workers. */
const PAGE = 1000;
const ENTRIES_MAX = 150_000;
/** A worker adds a minute up to so much after it. */
const ADDED_WITHIN_MS = 3 * MINUTE_MS;

/** The sums of each minute of a time that has any, in their order. */
export async function readCauses(
  redis: Redis,
  { keys }: PartitionRef,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): Promise<ReadonlyMap<number, CauseSums>> {
  const [first, last] = [Math.floor(fromMs / MINUTE_MS), Math.ceil(toMs / MINUTE_MS) - 1];
  const sums = new Map<number, Mutable>();
  let after = String(first * MINUTE_MS);
  for (let read = 0; read < ENTRIES_MAX; read += PAGE) {
    const end = String((last + 1) * MINUTE_MS + ADDED_WITHIN_MS);
    const page = list((await redis.call('XRANGE', keys.causes, after, end, 'COUNT', PAGE)) as Reply);
    for (const entry of page) {
      const [id, flat] = list(entry);
      after = `(${text(id)}`;
      const fields = fieldsOf(flat);
      const minute = Number(fields.get('m'));
      if (!(minute >= first && minute <= last)) continue;
      const sum = sums.get(minute) ?? { starts: 0, late: 0, ms: new Map(), groups: new Map(), lateBy: new Map() };
      sums.set(minute, added(sum, fields));
    }
    if (page.length < PAGE) break;
  }
  return new Map([...sums].sort(([one], [other]) => one - other));
}

interface Mutable extends CauseSums {
  starts: number;
  late: number;
  ms: ReadonlyMap<Cause, number>;
  lateBy: ReadonlyMap<Cause, number>;
  readonly groups: Map<string, number>;
}

function added(sum: Mutable, fields: ReadonlyMap<string, string>): Mutable {
  sum.starts += Number(fields.get('s')) || 0;
  sum.late += Number(fields.get('l')) || 0;
  sum.ms = sumsTogether([sum.ms, readSums(fields.get('p') ?? '')]);
  sum.lateBy = sumsTogether([sum.lateBy, readSums(fields.get('b') ?? '')]);
  for (const [, group = '', ms] of (fields.get('g') ?? '').matchAll(/(\S+)=(\d+)/g)) {
    sum.groups.set(group, (sum.groups.get(group) ?? 0) + Number(ms));
  }
  return sum;
}
