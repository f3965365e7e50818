/**
 * `K:looks`: what held the jobs in line of a partition, second by second. The leader looks ten times a second while somebody is in
 * line (`mover/chores/surveyor.ts`) and adds an entry for each second:
 *
 *     f <epoch ms of the first look> t <of the last> p <what held jobs without a group> g <group>=<what held its jobs> … l <largest lateness of a pass, ms> j <when that was>
 *
 * What held a group is one time after the other, from `f` on: the letter of a cause in `job/account.ts` and for how many ms, or `-` and
 * for how many ms nobody knows of one. Entries go after half an hour, and so does the key.
 */
import type { LineLook, LineRun } from '../../job/account.ts';
import { causeOfLetter, letterOf } from '../../job/account.ts';
import type { Redis } from '../connection/connect.ts';
import { LOOKS_MS, type PartitionRef } from '../keys.ts';
import { fieldsOf, list, type Reply } from '../scripts/scripts.ts';

/** How long a second is told. */
const KEPT_MS = 30 * 60_000;
/** Seconds of one read: all that are kept. */
const SECONDS_MAX = KEPT_MS / 1000;

/** Adds a second. The time of the server is that of the last look. */
export async function addLook(
  redis: Redis,
  { keys }: PartitionRef,
  { fromMs, toMs, held, lateMs, passMs }: LineLook,
): Promise<void> {
  const words = [...held].flatMap(([group, runs]) => (group === '' ? [] : [`${group}=${runsText(runs, fromMs)}`]));
  await Promise.all([
    redis.xadd(
      keys.looks,
      '*',
      'f',
      fromMs,
      't',
      toMs,
      'p',
      runsText(held.get('') ?? [], fromMs),
      'g',
      words.join(' '),
      'l',
      Math.round(lateMs),
      'j',
      Math.round(passMs),
    ),
    redis.call('XTRIM', keys.looks, 'MINID', String(Math.max(0, Math.floor(toMs) - KEPT_MS))),
    redis.pexpire(keys.looks, LOOKS_MS),
  ]);
}

/** The seconds that have something of a time, in their order. */
export async function readLooks(
  redis: Redis,
  { keys }: PartitionRef,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): Promise<readonly LineLook[]> {
  const reply = list(
    (await redis.call('XRANGE', keys.looks, String(fromMs), String(toMs + 2000), 'COUNT', SECONDS_MAX)) as Reply,
  );
  return reply.map((entry) => {
    const [, flat] = list(entry);
    const fields = fieldsOf(flat);
    const groups = [...(fields.get('g') ?? '').matchAll(/(\S+)=(\S+)/g)];
    const fromMs = Number(fields.get('f'));
    const all = [['', '', fields.get('p') ?? ''], ...groups];
    return {
      fromMs,
      toMs: Number(fields.get('t')),
      held: new Map(all.map(([, group = '', own = '']) => [group, runsIn(own, fromMs)])),
      lateMs: Number(fields.get('l')) || 0,
      passMs: Number(fields.get('j')) || 0,
    };
  });
}

function runsText(runs: readonly LineRun[], startMs: number): string {
  let atMs = startMs;
  let text = '';
  for (const { cause, fromMs, toMs } of runs) {
    if (fromMs > atMs) text += `-${fromMs - atMs}`;
    text += `${letterOf(cause)}${toMs - Math.max(atMs, fromMs)}`;
    atMs = toMs;
  }
  return text;
}

function runsIn(text: string, startMs: number): readonly LineRun[] {
  let atMs = startMs;
  return [...text.matchAll(/([A-Z-])(\d+)/g)].flatMap(([, letter = '', ms]) => {
    const fromMs = atMs;
    atMs += Number(ms);
    const cause = causeOfLetter(letter);
    return cause === undefined ? [] : [{ cause, fromMs, toMs: atMs }];
  });
}
