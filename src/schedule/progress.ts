/**
 * How far a schedule was fired ⇄ the text in `K:fired`: `reached runs skipped waiting last armed`, members or `-`. A
 * text that is none of these, as of a later version, is told and never guessed: nothing fires from it and nobody
 * overwrites it.
 *
 * And what becomes of it when another definition is put over the schedule.
 */
import { idOf } from '../job/codec.ts';
import { show } from '../kernel/duration.ts';
import type { ScheduleInput } from './input.ts';
import { firedBy, type Schedule } from './schedule.ts';
import { type Definition, defineSchedule, firesAlike, type Hand, pinnedOf, type Source } from './text.ts';

export interface Fired {
  /** As it is stored; a call that fires must name it. */
  readonly text: string;
  /** The last instant that was handled, ms. */
  readonly reachedMs: number;
  readonly runs: number;
  readonly skipped: number;
  /** The member that waits until the one before is over. */
  readonly waiting: string | undefined;
  /** The member that was scheduled last. */
  readonly last: string | undefined;
  /** Why nobody can read it; the fields above are then those of one that was never fired. */
  readonly unreadable?: string | undefined;
}

/** As in `fire.lua`. */
const STATE = /^(\d+) (\d+) (\d+) ([!-~]+) ([!-~]+) (\d+)$/;
/** The last instant of the year 9999: from beyond no rule has any, and its schedule would end without a word. */
const REACHED_MAX = 253_402_300_799_999;
const SHOWN_CHARS = 80;

export function decodeFired(stored: string): Fired {
  const found = STATE.exec(stored);
  const waiting = found?.[4] ?? '';
  const last = found?.[5] ?? '';
  const fired = {
    text: stored,
    reachedMs: Number(found?.[1]),
    runs: Number(found?.[2]),
    skipped: Number(found?.[3]),
    waiting: waiting === '-' ? undefined : waiting,
    last: last === '-' ? undefined : last,
  };
  const sane =
    fired.reachedMs <= REACHED_MAX && Number.isSafeInteger(fired.runs) && Number.isSafeInteger(fired.skipped);
  if (sane && (fired.waiting === undefined || instantOf(fired.waiting) !== undefined)) return fired;
  const text = show(stored.slice(0, SHOWN_CHARS));
  return unreadFired(`its state is ${text}; allowed: reached runs skipped waiting last armed`, stored);
}

/** @param why for people */
export const unreadFired = (why: string, stored = ''): Fired => ({
  text: stored,
  reachedMs: 0,
  runs: 0,
  skipped: 0,
  waiting: undefined,
  last: undefined,
  unreadable: why,
});

/**
 * How far a schedule was fired as its definition counts it: what a clock that was ahead had fired before a resume or
 * another rule counts no more, because these start it afresh.
 */
export function firedSince<T extends Pick<Fired, 'reachedMs'>>({ aheadMs }: Schedule, fired: T, nowMs: number): T {
  const isBefore = aheadMs !== undefined && aheadMs > nowMs && fired.reachedMs === aheadMs;
  return isBefore ? { ...fired, reachedMs: 0 } : fired;
}

/** The instant that a member of a schedule stands for. */
export const instantOf = (member: string): number | undefined => firedBy(idOf(member).id)?.atMs;

// A definition that is put over another: what goes on where it was, and what counts from now. A rule that changed, a
// schedule that is resumed, and one that had all its runs and gets more count from now: what passed before is not
// caught up. Anything else goes on. Pure; the store and the test kit ask it.

interface Put {
  readonly name: string;
  readonly input: ScheduleInput;
  readonly source: Source;
  /** Undefined: it is not paused by hand. */
  readonly hand?: Hand | undefined;
  readonly nowMs: number;
}

/** The pause by hand that goes on when a definition is put: unless the definition says itself what is to be. */
export const handAfter = (before: Definition | undefined, { paused }: ScheduleInput): Hand | undefined =>
  paused === undefined ? before?.hand : undefined;

/** What a call that pauses a schedule says. */
export interface Pausing {
  /** '' = the reason of an earlier pause stays. */
  readonly why: string;
  readonly by: string;
}

/** The pause by hand after such a call; undefined: the schedule fires again. */
export const handOf = (before: Definition, pausing: Pausing | undefined, atMs: number): Hand | undefined =>
  pausing && { why: pausing.why || before.schedule.paused || '', who: { by: pausing.by, atMs } };

/**
 * @param fired how far the one before was fired, where it was
 * @throws DuestreamError `bad-input`
 */
export function successor(
  before: Definition | undefined,
  { name, input, source, hand, nowMs }: Put,
  fired: Pick<Fired, 'reachedMs' | 'runs'> | undefined,
): Definition {
  const define = (sinceMs: number, anchorMs = sinceMs, aheadMs?: number) =>
    defineSchedule(name, input, { sinceMs, anchorMs, aheadMs, source, hand });
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
