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
 */

import type { EntryId } from '../core/job.ts';
import { rendezvous } from '../core/rendezvous.ts';

const NEAR = 3;
const OPEN_FROM_ROUND = 3;

export function sharesOf(
  entries: readonly EntryId[],
  view: { readonly consumer: string; readonly living: readonly string[]; readonly round: number },
): readonly EntryId[] {
  const { consumer, living, round } = view;
  if (round >= OPEN_FROM_ROUND) return entries;
  const near = round === 0 ? 1 : NEAR;
  return entries.filter((entry) => rendezvous(entry, living).slice(0, near).includes(consumer));
}
