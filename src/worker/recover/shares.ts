/**
 * Who takes which entry of a dead worker. Every survivor computes the same order of preference per entry, so that the
 * entries spread over all of them instead of landing on the one that looks first. It is a preference that expires: views
 * of who lives may differ, and an entry nobody prefers must not wait.
 *
 *  round 0      the first of the order
 *  round 1, 2   the first three
 *  from 3 on    anybody
 *
 * Two survivors may wish for the same entry; the reclaim script gives it to one of them.
 *
 * The whole order is never needed: an entry is somebody else's as soon as enough others come before us, which a few
 * hashes show. After so many hashes the event loop goes on first, so that 1,000 entries and 1,000 survivors hold nobody up.
 */

import type { EntryId } from '../../job/job.ts';
import { weightOf } from '../../kernel/shares.ts';

const NEAR = 3;
const OPEN_FROM_ROUND = 3;
/** About a millisecond. */
const HASHES_AT_ONCE = 500;

export interface View {
  readonly consumer: string;
  readonly living: readonly string[];
  readonly round: number;
  /** More are not wanted. */
  readonly most: number;
}

export async function sharesOf(
  entries: readonly EntryId[],
  { consumer, living, round, most }: View,
  giveWay: () => Promise<unknown> = nextImmediate,
): Promise<readonly EntryId[]> {
  if (round >= OPEN_FROM_ROUND) return entries.slice(0, most);
  const near = round === 0 ? 1 : NEAR;
  const others = living.filter((name) => name !== consumer);
  const wanted: EntryId[] = [];
  let hashes = 0;

  async function isOurs(entry: EntryId): Promise<boolean> {
    const mine = weightOf(entry, consumer);
    let before = 0;
    for (const other of others) {
      hashes += 1;
      if (hashes % HASHES_AT_ONCE === 0) await giveWay();
      if (comesBefore(weightOf(entry, other), mine, other < consumer)) before += 1;
      if (before === near) return false;
    }
    return true;
  }

  for (const entry of entries) {
    if (wanted.length >= most) break;
    if (await isOurs(entry)) wanted.push(entry);
  }
  return wanted;
}

const comesBefore = (weight: string, mine: string, first: boolean) => weight < mine || (weight === mine && first);
const nextImmediate = () => new Promise((resolve) => setImmediate(resolve));
