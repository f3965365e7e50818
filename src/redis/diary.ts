/**
 * `K:diary`: what rarely happened to a partition, written by the scripts that make the change (`lua/lib/diary.lua`) and read
 * here. Settings are stored in the control slot, which may be on another node, so no script can tell of them: the call that has
 * changed them writes the entry, into the diary of partition 0. A process that dies between the two leaves a change without
 * an entry.
 */
import type { Diary, Told } from '../job/account.ts';
import { type DiaryEntry, type DiaryInterval, type DiaryState, diaryEntry, intervalsOf } from '../job/diary.ts';
import type { Redis } from './connection/connect.ts';
import { DIARY_MS, type PartitionRef } from './keys.ts';
import { fieldsOf, list, type Reply, text } from './scripts/scripts.ts';
import { pauseIn } from './scripts/upkeep.ts';

/** As many as a script leaves. */
const ENTRIES_MAX = 1000;

/** Settings of a queue are others now. It never rejects: a diary that cannot be written undoes nothing. */
export async function enterSettings(
  redis: Redis,
  { keys }: Pick<PartitionRef, 'keys'>,
  { by, why, before, after }: Required<Pick<DiaryEntry, 'before' | 'after'>> & Pick<DiaryEntry, 'by' | 'why'>,
): Promise<void> {
  const said = { what: 'set', by, why, before: JSON.stringify(before), after: JSON.stringify(after) };
  const flat = Object.entries(said).flatMap(([name, value]) => (value ? [name, value] : []));
  try {
    await redis.xadd(keys.diary, 'MAXLEN', ENTRIES_MAX, '*', ...flat);
    await redis.pexpire(keys.diary, DIARY_MS);
  } catch {
    // A producer may have no right to it, and Redis may be full.
  }
}

/** What is told of a partition, the oldest first. @param fromMs Default: all of it. */
export async function diaryEntries(
  redis: Redis,
  { keys }: Pick<PartitionRef, 'keys'>,
  fromMs = 0,
): Promise<readonly DiaryEntry[]> {
  const reply = await redis.call('XREVRANGE', keys.diary, '+', Math.max(0, Math.floor(fromMs)), 'COUNT', ENTRIES_MAX);
  return entriesIn(reply as Reply).reverse();
}

const entriesIn = (reply: Reply): DiaryEntry[] =>
  list(reply).flatMap((one) => {
    const [id, flat] = list(one);
    return id === undefined ? [] : (diaryEntry(text(id), fieldsOf(flat)) ?? []);
  });

/** The times within which a partition was paused, closed, without a leader or a worker. */
export const diaryIntervals = async (
  redis: Redis,
  ref: Pick<PartitionRef, 'keys'>,
): Promise<readonly DiaryInterval[]> => pauseNow(redis, ref, intervalsOf(await diaryEntries(redis, ref)));

/** Of `unserved` the end is told by the next look at the registry, so it may stand behind the start of a job. */
const TOLD_LATER_MS = 60_000;
/** A closing goes by itself; it was told before the time that it covers. */
const BEFORE = 50;

/**
 * What the diary tells of the time from the due time of a job to its start. What ends says since when it held, so entries
 * from the due time on tell of it. A leader that was elected by then writes all there is.
 */
export async function diaryAround(
  redis: Redis,
  { keys, lingerMs }: Pick<PartitionRef, 'keys' | 'lingerMs'>,
  { fromMs, toMs, group }: { readonly fromMs: number; readonly toMs: number; readonly group: string | undefined },
): Promise<Diary> {
  const [before, within] = await Promise.all([
    redis.call('XREVRANGE', keys.diary, `(${Math.max(1, fromMs)}`, '-', 'COUNT', BEFORE),
    redis.call('XRANGE', keys.diary, fromMs, toMs + TOLD_LATER_MS, 'COUNT', ENTRIES_MAX),
  ]);
  const entries = [...entriesIn(before as Reply).reverse(), ...entriesIn(within as Reply)];
  const elected = entries.findLast(({ what, atMs }) => what === 'elected' && atMs <= fromMs);
  const told = intervalsOf(entries).flatMap((one): Told[] =>
    one.fromMs === undefined || (one.group ?? group) !== group
      ? []
      : [{ cause: TOLD_AS[one.what], fromMs: one.fromMs, toMs: one.toMs ?? toMs }],
  );
  return { sinceMs: elected?.atMs ?? Number.POSITIVE_INFINITY, told, lingerMs };
}

const TOLD_AS: Readonly<Record<DiaryState, Told['cause']>> = {
  paused: 'paused',
  closed: 'closed',
  leaderless: 'no-leader',
  unserved: 'no-worker',
};

/** With the pause that holds now, also where an older process made it, which tells the diary nothing. */
export async function pauseNow(
  redis: Redis,
  { keys }: Pick<PartitionRef, 'keys'>,
  told: readonly DiaryInterval[],
): Promise<readonly DiaryInterval[]> {
  const pause = pauseIn(await redis.hget(keys.meta, 'paused'));
  if (!pause || told.some(({ what, toMs }) => what === 'paused' && toMs === undefined)) return told;
  const { sinceMs, reason } = pause;
  return [...told, { what: 'paused', fromMs: sinceMs, toMs: undefined, why: reason }];
}
