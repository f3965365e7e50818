/**
 * What foreign producers may have put wrongly: due times in seconds or without end, and ids nobody can read. A mover makes
 * dead letters of them as soon as they are due, so dead letters are looked at as well. Counts are exact; members are looked
 * at from the soonest on, as many as the bounds below allow.
 */

import { idOf } from '../../job/codec.ts';
import { show } from '../../kernel/duration.ts';
import { counted } from '../../kernel/humanize.ts';
import { askAll } from '../../redis/connection/cluster/members.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { timeAt } from '../../redis/connection/server-clock.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { createStep } from '../../redis/scripts/bytes.ts';
import { listQueues, partitionsOf } from '../../redis/scripts/queues.ts';
import { purge } from '../../redis/scripts/upkeep.ts';
import type { Finding, Subject } from './finding.ts';

const PARTITIONS_MAX = 256;
const DEAD_LETTERS_MAX = 500;
const MEMBERS_MAX = 10_000;
const STEP = 100;
const CHARS_MAX = 16 * 1024 * 1024;

/** Scores of 1973 and before were meant in seconds; 0 means now. */
const SECONDS = [
  ['-inf', '(0'],
  ['(0', '(100000000000'],
] as const;

export async function dueTimes({ redis, info, namespace, horizonMs }: Subject): Promise<Finding> {
  const refs = await refsOf(redis, namespace);
  const nowMs = Math.floor(Math.max(...(await askAll(redis, timeAt))));
  const farFrom = `(${nowMs + horizonMs}`;
  const early = { count: 0, example: '' };
  const far = { count: 0, example: '' };
  for (const ref of refs) {
    for (const [from, to] of SECONDS) await addRange(redis, ref, { from, to, into: early });
    await addRange(redis, ref, { from: farFrom, to: '+inf', into: far });
  }
  const deadLetters = info.get('role') === 'slave' ? 0 : await deadLettersOf(redis, refs, 'bad-due');
  const saw = [
    ...(early.count > 0
      ? [`${counted(early.count, 'due time')} that look like seconds, such as ${early.example}`]
      : []),
    ...(far.count > 0 ? [`${counted(far.count, 'due time')} past the horizon, such as ${far.example}`] : []),
    ...(deadLetters > 0 ? [`${counted(deadLetters, 'dead letter')} for the reason bad-due`] : []),
  ];
  if (saw.length === 0)
    return { status: 'ok', saw: `every due time makes sense, in ${counted(refs.length, 'partition')}` };
  const advice = [
    ...(early.count + deadLetters > 0 ? ['change the producer: the score is milliseconds since 1970'] : []),
    ...(far.count > 0 ? ['remove members past the horizon with ZREM: they are never promoted'] : []),
  ];
  return { status: 'warn', saw: saw.join('; '), advice: advice.join('; ') };
}

export async function members({ redis, info, namespace }: Subject): Promise<Finding> {
  const refs = await refsOf(redis, namespace);
  const seen = { looked: 0, chars: 0, unreadable: 0, example: '' };
  for (const ref of refs) await lookAtMembers(redis, ref, seen);
  const deadLetters = info.get('role') === 'slave' ? 0 : await deadLettersOf(redis, refs, 'bad-member');
  if (seen.unreadable + deadLetters === 0) return { status: 'ok', saw: `${seen.looked} ids checked, all can be read` };
  const saw = [
    ...(seen.unreadable > 0
      ? [`${seen.unreadable} of ${seen.looked} ids cannot be read, such as ${seen.example}`]
      : []),
    ...(deadLetters > 0 ? [`${counted(deadLetters, 'dead letter')} for the reason bad-member`] : []),
  ];
  const advice = 'change the producer: an id has at most 128 printable ASCII characters and no space';
  return { status: 'warn', saw: saw.join('; '), advice };
}

/** The same rule as `promote` has. */
export function isReadable(member: string): boolean {
  return member.length <= (idOf(member).bare ? 130 : 200) && /^[!-~]+$/.test(member);
}

async function refsOf(redis: Redis, namespace: string): Promise<readonly PartitionRef[]> {
  const queues = await listQueues(redis, namespace);
  return queues.flatMap((layout) => partitionsOf(namespace, layout)).slice(0, PARTITIONS_MAX);
}

async function addRange(
  redis: Redis,
  { queue, keys }: PartitionRef,
  { from, to, into }: { from: string; to: string; into: { count: number; example: string } },
): Promise<void> {
  const count = await redis.zcount(keys.scheduled, from, to);
  if (count === 0) return;
  const [member = '', due = ''] = await redis.zrangebyscore(keys.scheduled, from, to, 'WITHSCORES', 'LIMIT', 0, 1);
  into.count += count;
  if (into.example === '') into.example = `${show(idOf(member).id.slice(0, 40))} at ${due} in ${queue}`;
}

async function lookAtMembers(
  redis: Redis,
  { queue, keys }: PartitionRef,
  seen: { looked: number; chars: number; unreadable: number; example: string },
): Promise<void> {
  // A member may be as large as a megabyte, so few are read at once.
  const step = createStep(STEP);
  for (let from = 0; seen.looked < MEMBERS_MAX && seen.chars < CHARS_MAX; ) {
    const asked = step.next();
    const found = await redis.zrange(keys.scheduled, String(from), String(from + asked - 1));
    step.saw(found.map(({ length }) => length));
    from += found.length;
    const bad = found.filter((member) => !isReadable(member));
    seen.looked += found.length;
    seen.chars += found.reduce((sum, member) => sum + member.length, 0);
    seen.unreadable += bad.length;
    if (bad[0] !== undefined && seen.example === '') seen.example = `${show(bad[0].slice(0, 40))} in ${queue}`;
    if (found.length < asked) return;
  }
}

/** How many of the oldest dead letters have this reason. */
async function deadLettersOf(redis: Redis, refs: readonly PartitionRef[], reason: string): Promise<number> {
  let count = 0;
  for (const ref of refs) {
    let after: string | undefined;
    let left = DEAD_LETTERS_MAX;
    do {
      const { matched, looked, next } = await purge(redis, ref, {
        mode: 'count',
        ageMs: 0,
        limit: left,
        reason,
        after,
      });
      count += matched;
      left -= looked;
      after = next;
    } while (after !== undefined && left > 0);
  }
  return count;
}
