/**
 * Makes jobs of the instants of the schedules in a led partition. Which instants there are follows from the definition
 * and from how far it was fired, both in Redis; nothing is chained from job to job, so nothing can stop silently.
 *
 *  K:fires ─▶ who is to be looked at ─▶ definition, state ─▶ instants by policy ─▶ fire (jobs, state, next look at once)
 *
 * What must always hold: an instant becomes one job, whoever fires it and however often; the clock is that of Redis.
 */
import { firesDue } from '../core/catch-up.ts';
import type { Clock } from '../core/clock.ts';
import { encodeRecord, idOf } from '../core/codec.ts';
import { messageOf } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import { createLoop } from '../core/loop.ts';
import { nextFire, type Recurrence } from '../core/recurrence.ts';
import { dueOfFire, firedBy, fireMember, recurrenceOf, type Schedule } from '../core/schedule.ts';
import { decodeDefinition } from '../core/schedule-text.ts';
import type { Redis } from '../redis/connect.ts';
import { createJobs } from '../redis/jobs.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { arm, definitions, disarm, type Fired, type FireItem, fire, firedOf, lookedAt } from '../redis/schedules.ts';
import { pauseAfter } from '../redis/weather.ts';
import type { Leadership } from './election.ts';

export interface FirerParts {
  readonly redis: Redis;
  readonly ref: PartitionRef;
  readonly namespace: string;
  readonly leading: () => Leadership | undefined;
  readonly clock: Clock;
  readonly events: Emitter;
  /** Time of Redis for tests; production leaves it out. */
  readonly nowMs?: () => number;
}

export interface Firer {
  readonly start: () => void;
  readonly stop: () => Promise<void>;
  /** Looks at what is due, up to a batch. Returns milliseconds until the next look. */
  readonly pass: () => Promise<number>;
  /** A schedule was put or resumed. */
  readonly wake: () => void;
}

const BATCH = 100;
/** Longest rest, for a lost nudge. */
const REST_MS = 5000;
const FOLLOWING_REST_MS = 250;
/** A definition that is not there may be about to be written. */
const MISSING_LOOK_MS = 5000;
const MISSING_MS = 60_000;
const UNREADABLE_LOOK_MS = 60_000;
const KNOWN_MAX = 10_000;
/** A call that fires more is made in parts: the server closes a connection that sends a gigabyte. */
const CALL_BYTES = 2 * 1024 * 1024;
const ITEM_BYTES = 300;

interface Known {
  readonly text: string;
  readonly schedule: Schedule;
  readonly recurrence: Recurrence;
}

interface Look {
  readonly term: string;
  readonly name: string;
  readonly fired: Fired;
  readonly nowMs: number;
}

interface Sent {
  readonly instants: readonly number[];
  /** What is handled then. */
  readonly upToMs: number;
  readonly nextMs: number | undefined;
}

export function createFirer(parts: FirerParts): Firer {
  const { redis, ref, namespace, leading, clock, events } = parts;
  const jobs = createJobs(redis);
  const known = new Map<string, Known>();
  const missingSince = new Map<string, number>();
  /** The texts that were told to be unreadable. */
  const told = new Map<string, string>();

  async function pass(): Promise<number> {
    const leadership = leading();
    if (!leadership) return FOLLOWING_REST_MS;
    const { names, nowMs, nextMs } = await lookedAt(redis, ref, { limit: BATCH, nowMs: parts.nowMs?.() });
    if (names.length === 0) return nextMs === undefined ? REST_MS : Math.min(REST_MS, nextMs - nowMs);
    const [texts, states] = await Promise.all([definitions(redis, namespace, names), firedOf(redis, ref, names)]);
    await Promise.all(
      names.map((name, at) => {
        const fired = states[at];
        return fired ? lookAt({ term: leadership.term, name, fired, nowMs }, texts[at]) : arm(redis, ref, name);
      }),
    );
    return 0;
  }

  async function lookAt(look: Look, content: string | undefined): Promise<void> {
    if (content === undefined) return lookAtNothing(look);
    missingSince.delete(look.name);
    const found = read(look, content);
    if (!found) return postpone(look, UNREADABLE_LOOK_MS);
    if (found.schedule.queue !== ref.queue) await disarm(redis, ref, look.name, look.fired.text);
    else if (found.schedule.paused !== undefined)
      await send(look, found.schedule, { instants: [], upToMs: 0, nextMs: undefined });
    else await fireDue(look, found);
  }

  async function fireDue(look: Look, { schedule, recurrence }: Known): Promise<void> {
    const afterMs = Math.max(look.fired.reachedMs, schedule.sinceMs);
    const { instants, missed, nextMs } = firesDue(recurrence, { ...look, afterMs, catchUp: schedule.catchUp });
    const { last, runs } = look.fired;
    const isSpent = schedule.maxRuns !== undefined && runs >= schedule.maxRuns;
    if (schedule.overlap === 'replace' && last !== undefined && instants.length > 0 && !isSpent) {
      await jobs.cancel(ref, [last], { windowMs: REPLACED_WINDOW_MS });
    }
    if (missed) {
      const { queue, partition } = ref;
      const sinceMs = nextFire(recurrence, afterMs) ?? afterMs;
      events.emit('schedule.missed', { queue, partition, schedule: look.name, sinceMs, fired: instants.length });
    }
    const some = instants.slice(0, Math.max(1, Math.floor(CALL_BYTES / (schedule.body.length + ITEM_BYTES))));
    const isRest = some.length < instants.length;
    await send(look, schedule, {
      ...{ instants: some, upToMs: isRest ? (some.at(-1) ?? 0) : look.nowMs, nextMs: isRest ? look.nowMs : nextMs },
    });
  }

  async function send(
    { term, name, fired, nowMs }: Look,
    schedule: Schedule,
    { instants, upToMs, nextMs }: Sent,
  ): Promise<void> {
    const waitingMs = fired.waiting === undefined ? undefined : firedBy(idOf(fired.waiting).id)?.atMs;
    const atMs = [...(waitingMs === undefined ? [] : [waitingMs]), ...instants];
    const reachedMs = Math.max(fired.reachedMs, upToMs);
    const reply = await fire(redis, ref, {
      ...{ term, name, state: fired.text, reachedMs, lookMs: nextMs },
      ...{ overlap: schedule.overlap, maxRuns: schedule.maxRuns, nowMs: parts.nowMs?.() },
      items:
        schedule.paused === undefined ? atMs.map((instant) => itemOf(schedule, instant, { waitingMs, nowMs })) : [],
    });
    if (reply.kind !== 'fired') return;
    const { queue, partition } = ref;
    for (const [at, outcome] of reply.outcomes.entries()) {
      const instant = atMs[at] ?? 0;
      const latenessMs = reply.nowMs - instant;
      events.emit('schedule.fired', { queue, partition, schedule: name, atMs: instant, outcome, latenessMs });
    }
  }

  async function lookAtNothing(look: Look): Promise<void> {
    const sinceMs = missingSince.get(look.name) ?? clock.monotonicMs();
    missingSince.set(look.name, sinceMs);
    if (clock.monotonicMs() - sinceMs < MISSING_MS) return postpone(look, MISSING_LOOK_MS);
    missingSince.delete(look.name);
    known.delete(look.name);
    await disarm(redis, ref, look.name, look.fired.text);
  }

  async function postpone({ term, name, fired, nowMs }: Look, byMs: number): Promise<void> {
    const kept = { reachedMs: fired.reachedMs, lookMs: nowMs + byMs, overlap: 'allow' as const, items: [] };
    await fire(redis, ref, { term, name, state: fired.text, ...kept, nowMs: parts.nowMs?.() });
  }

  /** Read once per text. One that nobody can read is told once. */
  function read({ name }: Look, content: string): Known | undefined {
    const before = known.get(name);
    if (before?.text === content) return before;
    try {
      const { schedule } = decodeDefinition(name, content);
      const found = { text: content, schedule, recurrence: recurrenceOf(schedule) };
      if (known.size >= KNOWN_MAX) known.clear();
      known.set(name, found);
      return found;
    } catch (error) {
      const { queue, partition } = ref;
      if (told.get(name) === content) return undefined;
      if (told.size >= KNOWN_MAX) told.clear();
      told.set(name, content);
      events.emit('schedule.unreadable', { queue, partition, schedule: name, why: messageOf(error) });
      return undefined;
    }
  }

  const loop = createLoop({ who: `firer of ${ref.queue}:${ref.partition}`, pass, clock, events, pauseAfter });
  return { start: loop.start, stop: loop.stop, pass, wake: loop.wake };
}

/** How long the stub of a replaced job stays. */
const REPLACED_WINDOW_MS = 600_000;

/** A job that waited for another is due when it stops waiting; its record keeps the due of its instant. */
function itemOf(
  schedule: Schedule,
  atMs: number,
  { waitingMs, nowMs }: { readonly waitingMs: number | undefined; readonly nowMs: number },
): FireItem {
  const dueMs = dueOfFire(schedule, atMs);
  const record = encodeRecord(dueMs, schedule.body, schedule.lateness);
  return {
    member: fireMember(schedule.name, atMs),
    record,
    dueMs: atMs === waitingMs ? Math.max(dueMs, nowMs) : dueMs,
  };
}
