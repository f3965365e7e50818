/**
 * A definition that is put over another: what goes on where it was, and what counts from now. A rule that changed, a
 * schedule that is resumed, and one that had all its runs and gets more count from now: what passed before is not caught
 * up. Anything else goes on. Pure; the store and the test kit ask it.
 */

import type { ScheduleInput } from './input.ts';
import { type Fired, firedSince } from './progress.ts';
import type { Schedule } from './schedule.ts';
import { type Definition, defineSchedule, firesAlike, pinnedOf, type Source } from './text.ts';

export interface Put {
  readonly name: string;
  readonly input: ScheduleInput;
  readonly source: Source;
  readonly nowMs: number;
}

/**
 * @param fired how far the one before was fired, where it was
 * @throws DuestreamError `bad-input`
 */
export function successor(
  before: Definition | undefined,
  { name, input, source, nowMs }: Put,
  fired: Pick<Fired, 'reachedMs' | 'runs'> | undefined,
): Definition {
  const define = (sinceMs: number, anchorMs = sinceMs, aheadMs?: number) =>
    defineSchedule(name, input, { sinceMs, anchorMs, aheadMs, source });
  const fresh = define(nowMs);
  if (!before) return fresh;
  // An interval that counts from its first put does so however often it is put, paused or moved.
  const anchorMs = everyOf(before.schedule) === everyOf(fresh.schedule) ? (pinnedOf(before) ?? nowMs) : nowMs;
  const { sinceMs, queue } = before.schedule;
  const aheadMs = fired && fired.reachedMs > nowMs ? fired.reachedMs : undefined;
  if (hasEnded(before.schedule, fired) || !firesAlike(before, define(sinceMs, anchorMs)))
    return define(nowMs, anchorMs, aheadMs);
  // In another queue what became a job in the one before becomes none.
  const isMoved = queue !== fresh.schedule.queue;
  const reachedMs = isMoved && fired ? firedSince(before.schedule, fired, nowMs).reachedMs : 0;
  return define(Math.max(sinceMs, reachedMs), anchorMs, before.schedule.aheadMs);
}

const everyOf = ({ rule }: Schedule) => ('everyMs' in rule ? rule.everyMs : undefined);

function hasEnded({ maxRuns }: Schedule, fired: Pick<Fired, 'runs'> | undefined): boolean {
  return maxRuns !== undefined && fired !== undefined && fired.runs >= maxRuns;
}
