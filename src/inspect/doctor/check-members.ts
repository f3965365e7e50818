/** Whether what foreign producers put among the scheduled jobs makes sense: due times, and ids that can be read. */
import { idOf } from '../../job/codec.ts';
import { show } from '../../kernel/duration.ts';
import { counted } from '../../kernel/humanize.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { createStep } from '../../redis/scripts/bytes.ts';
import { beyond } from '../../redis/scripts/scripts.ts';
import { purge } from '../../redis/scripts/upkeep.ts';
import { askPartitions, type Finding, latestMs, leavingOut, refsOf, type Subject, sum } from './check.ts';

const DEAD_LETTERS_MAX = 500;
const MEMBERS_MAX = 10_000;
const STEP = 100;
const CHARS_MAX = 16 * 1024 * 1024;

/** Scores of 1973 and before were meant in seconds; 0 means now. */
const SECONDS = [
  ['-inf', '(0'],
  ['(0', '(100000000000'],
] as const;

/**
 * Finds due times that a foreign producer gave in seconds or beyond the horizon. The mover makes a dead letter of such a
 * member as soon as it is due, so this check counts those dead letters too. All counts are exact.
 */
export async function dueTimes({ redis, info, namespace, horizonMs }: Subject): Promise<Finding> {
  const refs = await refsOf(redis, namespace);
  const nowMs = await latestMs(redis);
  const early = { count: 0, example: '' };
  const far = { count: 0, example: '' };
  const look = async (ref: PartitionRef) => {
    for (const [from, to] of SECONDS) await addRange(redis, ref, { from, to, into: early });
    for (const [from, to] of beyond(nowMs + horizonMs)) await addRange(redis, ref, { from, to, into: far });
    return info.get('role') === 'slave' ? 0 : deadLettersOf(redis, ref, 'bad-due');
  };
  const { found, unread } = await askPartitions(redis, refs, look, 1);
  const deadLetters = sum(found);
  const saw = [
    ...(early.count > 0
      ? [`${counted(early.count, 'due time')} that look like seconds, such as ${early.example}`]
      : []),
    ...(far.count > 0 ? [`${counted(far.count, 'due time')} past the horizon, such as ${far.example}`] : []),
    ...(deadLetters > 0 ? [`${counted(deadLetters, 'dead letter')} for the reason bad-due`] : []),
  ];
  if (saw.length === 0) {
    const well = `every due time makes sense, in ${counted(found.length, 'partition')}`;
    return leavingOut({ status: 'ok', saw: well }, unread);
  }
  const advice = [
    ...(early.count + deadLetters > 0 ? ['change the producer: the score is milliseconds since 1970'] : []),
    ...(far.count > 0
      ? ['if nobody means these times, remove the members past the horizon with ZREM: they start then, or never']
      : []),
  ];
  return leavingOut({ status: 'warn', saw: saw.join('; '), advice: advice.join('; ') }, unread);
}

/** Finds ids that nobody can read. The check looks at the members that are due soonest, as many as the bounds above allow. */
export async function members({ redis, info, namespace }: Subject): Promise<Finding> {
  const refs = await refsOf(redis, namespace);
  const seen = { looked: 0, chars: 0, unreadable: 0, example: '' };
  const look = async (ref: PartitionRef) => {
    await lookAtMembers(redis, ref, seen);
    return info.get('role') === 'slave' ? 0 : deadLettersOf(redis, ref, 'bad-member');
  };
  // One after the other: what is looked at is bounded in all.
  const { found, unread } = await askPartitions(redis, refs, look, 1);
  const deadLetters = sum(found);
  if (seen.unreadable + deadLetters === 0) {
    return leavingOut({ status: 'ok', saw: `${seen.looked} ids checked, all can be read` }, unread);
  }
  const saw = [
    ...(seen.unreadable > 0
      ? [`${seen.unreadable} of ${seen.looked} ids cannot be read, such as ${seen.example}`]
      : []),
    ...(deadLetters > 0 ? [`${counted(deadLetters, 'dead letter')} for the reason bad-member`] : []),
  ];
  const advice = 'change the producer: an id has at most 128 printable ASCII characters and no space';
  return leavingOut({ status: 'warn', saw: saw.join('; '), advice }, unread);
}

/** The same rule as `promote` has. */
export function isReadable(member: string): boolean {
  return member.length <= (idOf(member).bare ? 130 : 200) && /^[!-~]+$/.test(member);
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
async function deadLettersOf(redis: Redis, ref: PartitionRef, reason: string): Promise<number> {
  let count = 0;
  let after: string | undefined;
  let left = DEAD_LETTERS_MAX;
  do {
    const { matched, looked, next } = await purge(redis, ref, { mode: 'count', ageMs: 0, limit: left, reason, after });
    count += matched;
    left -= looked;
    after = next;
  } while (after !== undefined && left > 0);
  return count;
}
