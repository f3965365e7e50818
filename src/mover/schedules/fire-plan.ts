/**
 * What the leader does about one schedule that it looks at: it fires instants and sets the next look, only sets the look,
 * or arms or disarms the schedule. The planner asks Redis nothing, so many schedules are decided in one go; it works in
 * steps, because a rule may name very many instants, and the leader has a lease to renew.
 */

import { createHash } from 'node:crypto';
import { encodeRecord } from '../../job/codec.ts';
import type { Emitter } from '../../job/events.ts';
import type { Carry } from '../../job/labels.ts';
import type { Clock } from '../../kernel/clock.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { reasonOf } from '../../kernel/reason.ts';
import type { Steps } from '../../kernel/steps.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { FIRE_BYTES_MAX, FIRE_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import type { FireItem, ScheduleFire } from '../../redis/scripts/schedules.ts';
import { firesDue } from '../../schedule/instants.ts';
import { type Fired, firedSince, instantOf } from '../../schedule/progress.ts';
import { carriedBy, dueOfFire, fireMember, recurrenceOf, type Schedule } from '../../schedule/schedule.ts';
import { decodeDefinition } from '../../schedule/text.ts';
import { nextFireOf, type Recurrence } from '../../time/recurrence.ts';

/** A schedule as it was found. */
interface Look {
  readonly name: string;
  readonly fired: Fired;
  readonly nowMs: number;
}

/** The instants that a fire covers. */
interface Covered {
  readonly instants: readonly number[];
  /** So many other instants passed, and make no job. */
  readonly missed: number;
  readonly upToMs: number;
  readonly nextMs: number | undefined;
}

/** One schedule's part of a call of `fire`. */
export interface FirePlan {
  readonly look: Look;
  readonly fire: ScheduleFire;
  /** Of state and records, as characters. */
  readonly size: number;
  /** The instants of its jobs. */
  readonly atMs: readonly number[];
  /** Undefined when only the look is set. */
  readonly due: { readonly schedule: Schedule; readonly covered: Covered } | undefined;
}

interface FirePlannerParts {
  readonly ref: PartitionRef;
  readonly clock: Clock;
  readonly events: Emitter;
}

/** How often a place without a definition is looked at, and for how long. */
const MISSING_LOOK_MS = 5000;
const MISSING_MS = 60_000;
const UNREADABLE_LOOK_MS = 60_000;
/** What one schedule fires in one call. The rest follows at once; others have their turn between. */
const ITEM_SIZE = 300;

export class FirePlanner {
  readonly #parts: FirePlannerParts;
  readonly #cache: ScheduleCache;
  /** Schedule → the state in which its definition was missed, and since when. */
  readonly #missing = new Map<string, { readonly state: string; readonly sinceMs: number }>();

  constructor(parts: FirePlannerParts) {
    this.#parts = parts;
    this.#cache = new ScheduleCache(parts);
  }

  /**
   * A schedule that cannot be read is told and looked at later; the others go on.
   *
   * @returns `forget` for a schedule whose definition has been away for a minute
   */
  *plan(look: Look, content: string | undefined): Steps<FirePlan | 'forget'> {
    try {
      return yield* this.#planRead(look, content);
    } catch (error) {
      if (!isItsOwn(error)) throw error;
      const why = reasonOf(error);
      this.#cache.tell(look.name, `${why} ${content}`, why);
      return later(look, UNREADABLE_LOOK_MS);
    }
  }

  *#planRead(look: Look, content: string | undefined): Steps<FirePlan | 'forget'> {
    const cache = this.#cache;
    if (content === undefined) return this.#planMissing(look);
    const { text, unreadable } = look.fired;
    if (unreadable !== undefined) cache.tell(look.name, text, unreadable);
    const found = unreadable === undefined && cache.read(look.name, content);
    if (found && found.schedule.queue !== this.#parts.ref.queue) return this.#planMissing(look);
    this.#missing.delete(look.name);
    if (!found) return later(look, UNREADABLE_LOOK_MS);
    const { schedule } = found;
    const since = { ...look, fired: firedSince(schedule, look.fired, look.nowMs) };
    const plan =
      schedule.paused === undefined
        ? yield* this.#planDue(since, found)
        : planOf(since, schedule, { instants: [], missed: 0, upToMs: 0, nextMs: undefined });
    cache.wasFine(look.name);
    return plan;
  }

  *#planDue(look: Look, { schedule, recurrence }: ReadSchedule): Steps<FirePlan> {
    const { ref, events } = this.#parts;
    const { fired, nowMs } = look;
    const afterMs = Math.max(fired.reachedMs, schedule.sinceMs);
    const all = yield* firesDue(recurrence, { afterMs, nowMs, catchUp: schedule.catchUp });
    const { instants, nextMs } = all;
    const isSpent = schedule.maxRuns !== undefined && fired.runs >= schedule.maxRuns;
    const missed = isSpent ? 0 : all.missed;
    if (missed > 0) {
      const { queue, partition } = ref;
      const sinceMs = (yield* nextFireOf(recurrence, afterMs)) ?? afterMs;
      events.emit('schedule.missed', {
        queue,
        partition,
        schedule: look.name,
        sinceMs,
        fired: instants.length,
        missed,
      });
    }
    const most = Math.max(1, Math.min(FIRE_JOBS_MAX, Math.floor(FIRE_BYTES_MAX / (schedule.body.length + ITEM_SIZE))));
    if (instants.length <= most) return planOf(look, schedule, { instants, missed, upToMs: nowMs, nextMs });
    const some = instants.slice(0, most);
    return planOf(look, schedule, { instants: some, missed, upToMs: some.at(-1) ?? 0, nextMs: nowMs });
  }

  /** A definition that is not there, or is another queue's, may be about to be written. */
  #planMissing(look: Look): FirePlan | 'forget' {
    const { clock } = this.#parts;
    const { text: state } = look.fired;
    const before = this.#missing.get(look.name);
    const sinceMs = before?.state === state ? before.sinceMs : clock.monotonicMs();
    this.#missing.set(look.name, { state, sinceMs });
    if (clock.monotonicMs() - sinceMs < MISSING_MS) return later(look, MISSING_LOOK_MS);
    this.#missing.delete(look.name);
    this.#cache.forget(look.name);
    return 'forget';
  }
}

/** Only says when to look again. */
function later(look: Look, byMs: number): FirePlan {
  const { name, fired, nowMs } = look;
  const fire: ScheduleFire = {
    name,
    state: fired.text,
    reachedMs: undefined,
    lookMs: nowMs + byMs,
    overlap: 'allow',
    items: [],
  };
  return { look, fire, size: fired.text.length, atMs: [], due: undefined };
}

/** The job that waits first, then the new ones. */
function planOf(look: Look, schedule: Schedule, covered: Covered): FirePlan {
  const { name, fired } = look;
  const waitingMs = fired.waiting === undefined ? undefined : instantOf(fired.waiting);
  const atMs = waitingMs === undefined ? covered.instants : [waitingMs, ...covered.instants];
  const items = schedule.paused === undefined ? atMs.map((instant) => itemOf(schedule, look, instant, waitingMs)) : [];
  const fire: ScheduleFire = {
    name,
    state: fired.text,
    reachedMs: Math.max(fired.reachedMs, covered.upToMs),
    lookMs: covered.nextMs,
    overlap: schedule.overlap,
    maxRuns: schedule.maxRuns,
    missed: covered.missed,
    items,
  };
  const size = fired.text.length + items.length * (schedule.body.length + ITEM_SIZE);
  return { look, fire, size, atMs, due: { schedule, covered } };
}

/** The same with the state of now, for the job that waits: the job before it is over since. */
export function planOfWaiting({ look, due }: FirePlan, fired: Fired): readonly FirePlan[] {
  return due ? [planOf({ ...look, fired }, due.schedule, { ...due.covered, instants: [], missed: 0 })] : [];
}

/** The same, and its jobs carry a trace. The schedules of an instant are decided ahead, and a trace begins when they fire. */
export function carriedFire({ fire, due, atMs }: FirePlan, carry: Carry): ScheduleFire {
  if (!due) return fire;
  const { name, jitterMs, body, header } = carriedBy(due.schedule, carry);
  const dueMs = (at: number) => dueOfFire({ name, jitterMs }, atMs[at] ?? 0);
  return { ...fire, items: fire.items.map((item, at) => ({ ...item, record: encodeRecord(dueMs(at), body, header) })) };
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

/** The error comes from a definition or a state that nobody foresaw, and not from Redis or the way to it. */
function isItsOwn(error: unknown): boolean {
  const ours = error instanceof DuestreamError && error.code === 'bad-input';
  return ours || error instanceof TypeError || error instanceof RangeError;
}

// The definitions that an enqueuer has read, and the unreadable ones that it told of. Each text is read once; a
// schedule that cannot be read is told once, and again when its text is another. A definition may hold 256 KiB of data,
// so the cache is bounded by size: when the definitions that were used lately fill half of the room, the others go, and
// are read again when they are due. Of an unreadable text the cache keeps only a digest. Schedules with the same rule,
// zone, calendar and bounds share one recurrence.

interface ReadSchedule {
  readonly text: string;
  readonly schedule: Schedule;
  readonly recurrence: Recurrence;
}

/** Of text; what is made from it takes about as much again. Typical definitions have 300 characters. */
const CHARS_MAX = 8 << 20;
const TOLD_MAX = 10_000;
/** Recurrences that schedules share, so that what is remembered of one serves all. */
const SHARED_MAX = 1000;
const SHARED_CHARS = 1000;

export class ScheduleCache {
  readonly #parts: { readonly ref: PartitionRef; readonly events: Emitter };
  #lately = new Map<string, ReadSchedule>();
  #before = new Map<string, ReadSchedule>();
  /** Of the text of those used lately. */
  #chars = 0;
  readonly #told = new Map<string, string>();
  readonly #shared = new Map<string, Recurrence>();

  constructor(parts: { readonly ref: PartitionRef; readonly events: Emitter }) {
    this.#parts = parts;
  }

  /** @returns undefined for a definition that cannot be read */
  read(name: string, text: string): ReadSchedule | undefined {
    const recent = this.#lately.get(name);
    if (recent?.text === text) return recent;
    const older = this.#before.get(name);
    try {
      const found = older?.text === text ? older : this.#decode(name, text);
      this.#keep(name, found);
      return found;
    } catch (error) {
      this.tell(name, text, reasonOf(error));
      return undefined;
    }
  }

  /** `what` cannot be read, because `why`. Told once. */
  tell(name: string, what: string, why: string): void {
    const { ref, events } = this.#parts;
    const digest = createHash('sha1').update(what).digest('base64');
    if (this.#told.get(name) === digest) return;
    if (this.#told.size >= TOLD_MAX) this.#told.clear();
    this.#told.set(name, digest);
    events.emit('schedule.unreadable', { queue: ref.queue, partition: ref.partition, schedule: name, why });
  }

  /** The schedule could be read and fired. */
  wasFine(name: string): void {
    this.#told.delete(name);
  }

  forget(name: string): void {
    this.#chars -= this.#lately.get(name)?.text.length ?? 0;
    this.#lately.delete(name);
    this.#before.delete(name);
  }

  #keep(name: string, found: ReadSchedule): void {
    this.#chars += found.text.length - (this.#lately.get(name)?.text.length ?? 0);
    this.#lately.set(name, found);
    this.#before.delete(name);
    if (this.#chars <= CHARS_MAX / 2) return;
    this.#before = this.#lately;
    this.#lately = new Map();
    this.#chars = 0;
  }

  #decode(name: string, text: string): ReadSchedule {
    const { schedule } = decodeDefinition(name, text);
    return { text, schedule, recurrence: this.#recurrenceOf(schedule) };
  }

  /** The recurrence of a schedule: the same for those that fire alike. */
  #recurrenceOf(schedule: Schedule): Recurrence {
    const shared = this.#shared;
    const { name, rule, zone, dst, calendar, startMs, endMs } = schedule;
    // `H` in an expression follows from the name.
    const seed = 'cron' in rule && rule.cron.includes('H') ? name : '';
    const key = JSON.stringify([seed, rule, zone, dst, calendar, startMs, endMs]);
    const recurrence = shared.get(key) ?? recurrenceOf(schedule);
    if (shared.size >= SHARED_MAX) shared.clear();
    if (key.length <= SHARED_CHARS) shared.set(key, recurrence);
    return recurrence;
  }
}
