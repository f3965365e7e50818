/**
 * What the leader does about one schedule that it looks at: fires instants and sets the next look, only sets the look,
 * or hands it to arm or disarm. Nothing is asked of Redis here, so many schedules are decided in one go; it is done in
 * steps, because a rule may name very many instants, and the leader has a lease to renew.
 */

import { encodeRecord } from '../../job/codec.ts';
import type { Emitter } from '../../job/events.ts';
import type { Clock } from '../../kernel/clock.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { reasonOf } from '../../kernel/reason.ts';
import type { Steps } from '../../kernel/steps.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { FIRE_BYTES_MAX, FIRE_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import type { FireItem, ScheduleFire } from '../../redis/scripts/schedules.ts';
import { firesDue } from '../../schedule/catch-up.ts';
import { type Fired, firedSince, instantOf } from '../../schedule/progress.ts';
import { dueOfFire, fireMember, type Schedule } from '../../schedule/schedule.ts';
import { nextFireOf } from '../../time/next-fires.ts';
import { createKnownSchedules, type KnownSchedules, type ReadSchedule } from './schedule-cache.ts';

/** A schedule as it was found. */
export interface Look {
  readonly name: string;
  readonly fired: Fired;
  readonly nowMs: number;
}

/** What is handled by a fire. */
interface Handled {
  readonly instants: readonly number[];
  /** So many others passed, and make no job. */
  readonly missed: number;
  readonly upToMs: number;
  readonly nextMs: number | undefined;
}

/** One schedule's part of a call of `fire`. */
export interface Errand {
  readonly look: Look;
  readonly fire: ScheduleFire;
  /** Of state and records, as characters. */
  readonly size: number;
  /** The instants of its jobs. */
  readonly atMs: readonly number[];
  /** Undefined when only the look is set. */
  readonly plan: { readonly schedule: Schedule; readonly handled: Handled } | undefined;
}

export interface Errands {
  /** @returns `forget` for a schedule whose definition has been away for a minute */
  readonly about: (look: Look, content: string | undefined) => Steps<Errand | 'forget'>;
}

export interface ErrandsParts {
  readonly ref: PartitionRef;
  readonly clock: Clock;
  readonly events: Emitter;
}

interface Deciding extends ErrandsParts {
  readonly known: KnownSchedules;
  /** Schedule → the state in which its definition was missed, and since when. */
  readonly missing: Map<string, { readonly state: string; readonly sinceMs: number }>;
}

/** How often a place without a definition is looked at, and for how long. */
const MISSING_LOOK_MS = 5000;
const MISSING_MS = 60_000;
const UNREADABLE_LOOK_MS = 60_000;
/** What one schedule fires in one call. The rest follows at once; others have their turn between. */
const ITEM_SIZE = 300;

export function createErrands(parts: ErrandsParts): Errands {
  const deciding: Deciding = { ...parts, known: createKnownSchedules(parts), missing: new Map() };
  return { about: (look, content) => aboutAlone(deciding, look, content) };
}

/** What is wrong with one schedule is told and looked at later; the others go on. */
function* aboutAlone(deciding: Deciding, look: Look, content: string | undefined): Steps<Errand | 'forget'> {
  const { known } = deciding;
  try {
    return yield* about(deciding, look, content);
  } catch (error) {
    if (!isItsOwn(error)) throw error;
    const why = reasonOf(error);
    known.tell(look.name, `${why} ${content}`, why);
    return later(look, UNREADABLE_LOOK_MS);
  }
}

function* about(deciding: Deciding, look: Look, content: string | undefined): Steps<Errand | 'forget'> {
  const { known, ref, missing } = deciding;
  if (content === undefined) return aboutNothing(deciding, look);
  const { text, unreadable } = look.fired;
  if (unreadable !== undefined) known.tell(look.name, text, unreadable);
  const found = unreadable === undefined && known.read(look.name, content);
  if (found && found.schedule.queue !== ref.queue) return aboutNothing(deciding, look);
  missing.delete(look.name);
  if (!found) return later(look, UNREADABLE_LOOK_MS);
  const { schedule } = found;
  const since = { ...look, fired: firedSince(schedule, look.fired, look.nowMs) };
  const errand =
    schedule.paused === undefined
      ? yield* due(deciding, since, found)
      : errandOf(since, schedule, { instants: [], missed: 0, upToMs: 0, nextMs: undefined });
  known.wasFine(look.name);
  return errand;
}

function* due({ ref, events }: Deciding, look: Look, { schedule, recurrence }: ReadSchedule): Steps<Errand> {
  const { fired, nowMs } = look;
  const afterMs = Math.max(fired.reachedMs, schedule.sinceMs);
  const all = yield* firesDue(recurrence, { afterMs, nowMs, catchUp: schedule.catchUp });
  const { instants, nextMs } = all;
  const isSpent = schedule.maxRuns !== undefined && fired.runs >= schedule.maxRuns;
  const missed = isSpent ? 0 : all.missed;
  if (missed > 0) {
    const { queue, partition } = ref;
    const sinceMs = (yield* nextFireOf(recurrence, afterMs)) ?? afterMs;
    events.emit('schedule.missed', { queue, partition, schedule: look.name, sinceMs, fired: instants.length, missed });
  }
  const most = Math.max(1, Math.min(FIRE_JOBS_MAX, Math.floor(FIRE_BYTES_MAX / (schedule.body.length + ITEM_SIZE))));
  if (instants.length <= most) return errandOf(look, schedule, { instants, missed, upToMs: nowMs, nextMs });
  const some = instants.slice(0, most);
  return errandOf(look, schedule, { instants: some, missed, upToMs: some.at(-1) ?? 0, nextMs: nowMs });
}

/** A definition that is not there, or is another queue's, may be about to be written. */
function aboutNothing({ missing, clock, known }: Deciding, look: Look): Errand | 'forget' {
  const { text: state } = look.fired;
  const before = missing.get(look.name);
  const sinceMs = before?.state === state ? before.sinceMs : clock.monotonicMs();
  missing.set(look.name, { state, sinceMs });
  if (clock.monotonicMs() - sinceMs < MISSING_MS) return later(look, MISSING_LOOK_MS);
  missing.delete(look.name);
  known.forget(look.name);
  return 'forget';
}

/** Only says when to look again. */
function later(look: Look, byMs: number): Errand {
  const { name, fired, nowMs } = look;
  const fire: ScheduleFire = {
    name,
    state: fired.text,
    reachedMs: undefined,
    lookMs: nowMs + byMs,
    overlap: 'allow',
    items: [],
  };
  return { look, fire, size: fired.text.length, atMs: [], plan: undefined };
}

/** The job that waits first, then the new ones. */
function errandOf(look: Look, schedule: Schedule, handled: Handled): Errand {
  const { name, fired } = look;
  const waitingMs = fired.waiting === undefined ? undefined : instantOf(fired.waiting);
  const atMs = waitingMs === undefined ? handled.instants : [waitingMs, ...handled.instants];
  const items = schedule.paused === undefined ? atMs.map((instant) => itemOf(schedule, look, instant, waitingMs)) : [];
  const fire: ScheduleFire = {
    name,
    state: fired.text,
    reachedMs: Math.max(fired.reachedMs, handled.upToMs),
    lookMs: handled.nextMs,
    overlap: schedule.overlap,
    maxRuns: schedule.maxRuns,
    missed: handled.missed,
    items,
  };
  const size = fired.text.length + items.length * (schedule.body.length + ITEM_SIZE);
  return { look, fire, size, atMs, plan: { schedule, handled } };
}

/** The same with the state that there is now, for the job that waits: the one before it is over since. */
export function onceMore({ look, plan }: Errand, fired: Fired): readonly Errand[] {
  return plan ? [errandOf({ ...look, fired }, plan.schedule, { ...plan.handled, instants: [], missed: 0 })] : [];
}

/** A job that waited for another is due when it stops waiting; its record keeps the due time of its instant. */
function itemOf(schedule: Schedule, { nowMs }: Look, atMs: number, waitingMs: number | undefined): FireItem {
  const dueMs = dueOfFire(schedule, atMs);
  return {
    member: fireMember(schedule.name, atMs),
    record: encodeRecord(dueMs, schedule.body, schedule.header),
    dueMs: atMs === waitingMs ? Math.max(dueMs, nowMs) : dueMs,
  };
}

/** Of a definition or a state that nobody foresaw, and not of Redis or the way to it. */
function isItsOwn(error: unknown): boolean {
  const ours = error instanceof DuestreamError && error.code === 'bad-input';
  return ours || error instanceof TypeError || error instanceof RangeError;
}
