/**
 * A job scheduler of BullMQ → a schedule. Pure. The next job of a scheduler waits in BullMQ as a job of its own; here a schedule
 * makes its jobs when they are due. So that job is not imported, unless it is due before the schedule counts.
 */
import { DuestreamError, messageOf } from '../../kernel/errors.ts';
import { atOnce, within } from '../../kernel/steps.ts';
import { parseSchedule, type ScheduleInput } from '../../schedule/input.ts';
import { recurrenceOf } from '../../schedule/schedule.ts';
import { nextFire } from '../../time/recurrence.ts';
import { type Flaw, isFlaw } from '../flaw.ts';
import { scheduleName } from '../names.ts';
import type { Said } from '../tally.ts';
import { type Meant, toldOf } from './counterparts.ts';
import type { BullScheduler } from './layout.ts';

/** What a scheduler becomes. */
export interface PlannedSchedule {
  readonly id: string;
  /** When its next job is due in BullMQ. */
  readonly nextMs: number;
  readonly name: string;
  readonly input: ScheduleInput;
  readonly notes: readonly Said[];
}

/** A scheduler that stays. */
export interface UnfitScheduler {
  readonly id: string;
  readonly why: string;
  /** Its last job is one like any other. */
  readonly isOver?: boolean;
}

interface Target extends Meant {
  readonly queue: string;
  /** Of schedulers without one, which BullMQ computes in the zone of its worker. */
  readonly zone: string;
  readonly nowMs: number;
}

export function planSchedule(
  id: string,
  scheduler: BullScheduler | Flaw,
  target: Target,
): PlannedSchedule | UnfitScheduler {
  if (isFlaw(scheduler)) return { id, why: scheduler.flaw };
  const runs = runsLeft(scheduler, target.nowMs);
  if (runs !== undefined && runs < 1) return { id, why: 'it has made all of its jobs', isOver: true };
  const { value, notes } = toldOf({ ...scheduler, attemptsMade: 0 }, target);
  const { name: job, ...options } = value;
  const name = scheduleName(target.queue, id);
  const input: ScheduleInput = {
    queue: target.queue,
    job,
    data: scheduler.data,
    ...ruleOf(scheduler, target.zone),
    ...(scheduler.endMs !== undefined && { end: new Date(scheduler.endMs) }),
    ...(runs !== undefined && { maxRuns: runs }),
    ...options,
  };
  const first = firstInstant(name, input, target.nowMs);
  if (first instanceof DuestreamError) return { id, why: messageOf(first) };
  return { id, nextMs: scheduler.nextMs, name, input, notes: [...notes, ...zoneNotes(scheduler, target, first)] };
}

/** How many jobs the schedule makes; its next one is among them, unless that was due before and is a job like any other. */
const runsLeft = ({ limit, made, nextMs }: BullScheduler, nowMs: number): number | undefined =>
  limit === undefined ? undefined : limit - Math.max(1, made) + (nextMs > nowMs ? 1 : 0);

function ruleOf(
  { pattern, everyMs = 0, zone, startMs, nextMs }: BullScheduler,
  otherwise: string,
): Pick<ScheduleInput, 'cron' | 'zone' | 'every' | 'align' | 'start'> {
  if (pattern !== undefined) {
    return { cron: pattern, zone: zone ?? otherwise, ...(startMs !== undefined && { start: new Date(startMs) }) };
  }
  // Counted from the epoch, its instants would be others.
  const isAligned = everyMs > 0 && nextMs % everyMs === 0 && startMs === undefined;
  return { every: everyMs, ...(!isAligned && { align: 'start', start: new Date(nextMs) }) };
}

/** The first instant from now on. @returns the refusal where duestream does not take the rule */
function firstInstant(name: string, input: ScheduleInput, nowMs: number): number | undefined | DuestreamError {
  try {
    const schedule = parseSchedule(name, input, { sinceMs: nowMs });
    return atOnce(within(nextFire(recurrenceOf(schedule), nowMs), { left: STEPS_MAX }));
  } catch (error) {
    if (error instanceof DuestreamError) return error;
    throw error;
  }
}

const STEPS_MAX = 10_000;

/** Both have the same rule, and may still disagree about the clock that it is meant by. */
function zoneNotes(
  { pattern, zone, nextMs }: BullScheduler,
  { nowMs, zone: otherwise }: Target,
  first: number | undefined,
): readonly Said[] {
  if (pattern === undefined) return [];
  const isOther = nextMs > nowMs && first !== undefined && first !== nextMs;
  return [
    ...(zone === undefined ? [{ kind: 'zone', text: `${NO_ZONE} ${otherwise}; --zone says another one` }] : []),
    ...(isOther ? [{ kind: 'next', text: `${OTHER_NEXT}, such as ${textOf(nextMs)} and ${textOf(first)}` }] : []),
  ];
}

const NO_ZONE = 'schedulers without tz follow the clock of the worker in BullMQ; here they follow that of';
const OTHER_NEXT = 'the next instants of schedulers differ there and here';
const textOf = (ms: number): string => new Date(ms).toISOString();
