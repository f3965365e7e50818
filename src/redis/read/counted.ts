/**
 * How many jobs wait and run, at one moment: `count.lua` judges each entry of ready, a page at a time. Of a small partition
 * it says which jobs they are, for those who count by what a record says.
 */

import { LIVE_STATES, type LiveState } from '../../job/state.ts';
import type { Redis } from '../connection/connect.ts';
import type { PartitionRef } from '../keys.ts';
import { type Moved, moved } from '../scripts/replies.ts';
import { scripts } from '../scripts/script-table.ts';
import { list, run, text } from '../scripts/scripts.ts';
import type { DueRange, Place } from './places.ts';

/** Entries that one script judges, and jobs of a partition that is counted by their content: it then takes 2 ms. */
const COUNTED_AT_ONCE = 500;

/** How many jobs there are, of a page of ready at one moment. The first page has those that are scheduled too. */
export interface Counted {
  readonly kind: 'counted';
  readonly counts: Readonly<Record<LiveState, number>>;
  /** Behind it the next page begins; undefined at the end. */
  readonly next: string | undefined;
  /** The last entry that there was when the first page was counted. */
  readonly last: string;
  /** The same of two pages: nothing has moved in between. */
  readonly mark: string;
}

export interface CountAsk {
  readonly due: DueRange;
  /** Where the page begins; undefined: the first. */
  readonly after?: string | undefined;
  /** That of the first page. */
  readonly last?: string | undefined;
}

/** A job where it was at one moment. */
export interface Member extends Pick<Place, 'member' | 'at'> {
  readonly state: LiveState;
}

export async function countPage(
  redis: Redis,
  ref: PartitionRef,
  { due, after, last }: CountAsk,
): Promise<Counted | Moved> {
  const args = { ...countArgs(ref, due), after: after ?? '', last: last ?? '', mode: 'count' };
  const reply = list(await run(redis, scripts.count, { keys: ref.keys, args }));
  const other = moved(reply);
  if (other) return other;
  const [, scheduled, waiting, ready, running, next, newest, mark] = reply;
  return {
    kind: 'counted',
    counts: { scheduled: Number(scheduled), waiting: Number(waiting), ready: Number(ready), running: Number(running) },
    next: text(next) === '' ? undefined : text(next),
    last: text(newest),
    mark: text(mark),
  };
}

/** Which jobs there are, all at one moment; undefined where they are too many for that. */
export async function membersOf(
  redis: Redis,
  ref: PartitionRef,
  due: DueRange,
): Promise<readonly Member[] | Moved | undefined> {
  const args = { ...countArgs(ref, due), after: '', last: '', mode: 'members' };
  const reply = list(await run(redis, scripts.count, { keys: ref.keys, args, bytes: true }));
  const other = moved(reply);
  if (other) return other;
  if (text(reply[0]) === 'large') return undefined;
  const words = reply.slice(8).map(text);
  return Array.from({ length: words.length / 3 }, (_, nth): Member => {
    const [member = '', state] = [words[3 * nth], words[3 * nth + 1]];
    return { member, at: member, state: LIVE_STATES.find((one) => one === state) ?? 'scheduled' };
  });
}

const countArgs = ({ layoutGeneration }: PartitionRef, { fromMs, toMs }: DueRange) => ({
  generation: layoutGeneration,
  from: fromMs ?? '',
  to: toMs ?? '',
  limit: COUNTED_AT_ONCE,
});
