/**
 * Makes jobs of the instants of the schedules in a led partition. Which instants there are follows from the definition
 * and from how far it was fired, both in Redis; nothing is chained from job to job, so nothing can stop silently.
 *
 *  K:fires ─▶ who is to be looked at ─▶ definition, state ─▶ instants by policy ─▶ fire (jobs, state, next look at once)
 *
 * What must always hold: an instant becomes one job, whoever fires it and however often; the clock is that of Redis.
 */

import type { Clock } from '../core/clock.ts';
import { encodeRecord } from '../core/codec.ts';
import { DuestreamError, messageOf } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import { createLoop, type Idle, idle } from '../core/loop.ts';
import { firesDue } from '../core/recurring/catch-up.ts';
import { nextFire } from '../core/recurring/recurrence.ts';
import { dueOfFire, fireMember, type Schedule } from '../core/recurring/schedule.ts';
import { type Fired, instantOf } from '../core/recurring/schedule-progress.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { pauseAfter } from '../redis/connection/outage.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { FIRE_BYTES_MAX, FIRE_JOBS_MAX } from '../redis/transitions/bytes.ts';
import { createJobs, type Jobs } from '../redis/transitions/jobs.ts';
import {
  arm,
  definitions,
  disarm,
  type FireItem,
  fire,
  firedOf,
  lookedAt,
  postpone,
} from '../redis/transitions/schedules.ts';
import type { Leadership } from './election.ts';
import { createKnownSchedules, type KnownSchedules, type ReadSchedule } from './known-schedules.ts';

export interface EnqueuerParts {
  readonly redis: Redis;
  readonly ref: PartitionRef;
  readonly namespace: string;
  readonly leading: () => Leadership | undefined;
  readonly clock: Clock;
  readonly events: Emitter;
  /** Time of Redis for tests; production leaves it out. */
  readonly nowMs?: () => number;
}

export interface Enqueuer {
  readonly start: () => void;
  readonly stop: () => Promise<void>;
  /** Looks at what is due, up to a batch. Returns milliseconds until the next look. */
  readonly pass: () => Promise<number | Idle>;
  /** A schedule was put or resumed. */
  readonly wake: () => void;
}

const BATCH = 100;
/** Longest rest, for a lost nudge. */
const REST_MS = 5000;
const FOLLOWING_REST_MS = 250;
/** How often a place without a definition is looked at, and for how long. */
const MISSING_LOOK_MS = 5000;
const MISSING_MS = 60_000;
const UNREADABLE_LOOK_MS = 60_000;
/** Of a job besides its body. */
const ITEM_BYTES = 300;

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

interface Enqueuing extends EnqueuerParts {
  readonly jobs: Jobs;
  readonly known: KnownSchedules;
  /** Schedule → the state in which its definition was missed, and since when. */
  readonly missing: Map<string, { readonly state: string; readonly sinceMs: number }>;
}

export function createEnqueuer(parts: EnqueuerParts): Enqueuer {
  const { redis, ref, clock, events } = parts;
  const known = createKnownSchedules({ ref, events });
  const enqueuing: Enqueuing = { ...parts, jobs: createJobs(redis), known, missing: new Map() };
  const run = () => pass(enqueuing);
  const who = `enqueuer of ${ref.queue}:${ref.partition}`;
  const loop = createLoop({ who, pass: run, probe: () => redis.ping(), clock, events, pauseAfter });
  return { start: loop.start, stop: loop.stop, pass: run, wake: loop.wake };
}

async function pass(enqueuing: Enqueuing): Promise<number | Idle> {
  const { leading, redis, ref, namespace } = enqueuing;
  const leadership = leading();
  if (!leadership) return idle(FOLLOWING_REST_MS);
  const { names, nowMs, nextMs } = await lookedAt(redis, ref, { limit: BATCH, nowMs: enqueuing.nowMs?.() });
  if (names.length === 0) return nextMs === undefined ? REST_MS : Math.min(REST_MS, nextMs - nowMs);
  const [texts, states] = await Promise.all([definitions(redis, namespace, names), firedOf(redis, ref, names)]);
  const ended = await Promise.allSettled(
    names.map((name, at) => {
      const fired = states[at];
      return fired
        ? lookAlone(enqueuing, { term: leadership.term, name, fired, nowMs }, texts[at])
        : arm(redis, ref, name);
    }),
  );
  const failed = ended.find((one) => one.status === 'rejected');
  if (failed) throw failed.reason;
  return 0;
}

/** What is wrong with one schedule is told and looked at later; the others go on. An outage is of all of them. */
async function lookAlone(enqueuing: Enqueuing, look: Look, content: string | undefined): Promise<void> {
  const { known } = enqueuing;
  try {
    await lookAt(enqueuing, look, content);
  } catch (error) {
    if (!isItsOwn(error)) throw error;
    const why = messageOf(error);
    known.tell(look.name, `${why} ${content}`, why);
    await lookLater(enqueuing, look, UNREADABLE_LOOK_MS);
  }
}

async function lookAt(enqueuing: Enqueuing, look: Look, content: string | undefined): Promise<void> {
  const { known, ref, missing } = enqueuing;
  if (content === undefined) return lookAtNothing(enqueuing, look);
  const { text, unreadable } = look.fired;
  if (unreadable !== undefined) known.tell(look.name, text, unreadable);
  const found = unreadable === undefined && known.read(look.name, content);
  if (found && found.schedule.queue !== ref.queue) return lookAtNothing(enqueuing, look);
  missing.delete(look.name);
  if (!found) return lookLater(enqueuing, look, UNREADABLE_LOOK_MS);
  if (found.schedule.paused !== undefined)
    await send(enqueuing, look, found.schedule, { instants: [], upToMs: 0, nextMs: undefined });
  else await fireDue(enqueuing, look, found);
  known.wasFine(look.name);
}

async function fireDue(enqueuing: Enqueuing, look: Look, { schedule, recurrence }: ReadSchedule): Promise<void> {
  const { ref, events } = enqueuing;
  const afterMs = Math.max(look.fired.reachedMs, schedule.sinceMs);
  const { instants, missed, nextMs } = firesDue(recurrence, { ...look, afterMs, catchUp: schedule.catchUp });
  if (missed) {
    const { queue, partition } = ref;
    const sinceMs = nextFire(recurrence, afterMs) ?? afterMs;
    events.emit('schedule.missed', { queue, partition, schedule: look.name, sinceMs, fired: instants.length });
  }
  // A call that would fire more is made in parts, because Redis does nothing else meanwhile.
  const fits = Math.floor(FIRE_BYTES_MAX / (schedule.body.length + ITEM_BYTES));
  const some = instants.slice(0, Math.max(1, Math.min(FIRE_JOBS_MAX, fits)));
  const isRest = some.length < instants.length;
  const upToMs = isRest ? (some.at(-1) ?? 0) : look.nowMs;
  const sent = { upToMs, nextMs: isRest ? look.nowMs : nextMs };
  const fired = await send(enqueuing, look, schedule, { ...sent, instants: some });
  if (fired && schedule.overlap === 'replace' && (await makesWay(enqueuing, fired)))
    await send(enqueuing, { ...look, fired }, schedule, { ...sent, instants: [] });
}

/** Only when its compensation job is known to Redis, which a full one refuses. @returns whether it is over already */
async function makesWay(enqueuing: Enqueuing, { waiting, last }: Fired): Promise<boolean> {
  const { jobs, ref } = enqueuing;
  if (waiting === undefined || last === undefined) return false;
  const replies = await jobs.cancel(ref, [last], { windowMs: REPLACED_WINDOW_MS });
  return !('kind' in replies) && replies[0]?.kind !== 'requested';
}

/** @returns how far it is then; undefined when somebody else was faster */
async function send(
  enqueuing: Enqueuing,
  { term, name, fired, nowMs }: Look,
  schedule: Schedule,
  { instants, upToMs, nextMs }: Sent,
): Promise<Fired | undefined> {
  const { redis, ref, events } = enqueuing;
  const waitingMs = fired.waiting === undefined ? undefined : instantOf(fired.waiting);
  const atMs = [...(waitingMs === undefined ? [] : [waitingMs]), ...instants];
  const reachedMs = Math.max(fired.reachedMs, upToMs);
  const reply = await fire(redis, ref, {
    ...{ term, name, state: fired.text, reachedMs, lookMs: nextMs },
    ...{ overlap: schedule.overlap, maxRuns: schedule.maxRuns, nowMs: enqueuing.nowMs?.() },
    items: schedule.paused === undefined ? atMs.map((instant) => itemOf(schedule, instant, { waitingMs, nowMs })) : [],
  });
  if (reply.kind !== 'fired') return undefined;
  const { queue, partition } = ref;
  for (const [at, outcome] of reply.outcomes.entries()) {
    const instant = atMs[at] ?? 0;
    const latenessMs = reply.nowMs - instant;
    events.emit('schedule.fired', { queue, partition, schedule: name, atMs: instant, outcome, latenessMs });
  }
  return reply.fired;
}

/** A definition that is not there, or is another queue's, may be about to be written. */
async function lookAtNothing(enqueuing: Enqueuing, look: Look): Promise<void> {
  const { missing, clock, known, redis, ref } = enqueuing;
  const { text: state } = look.fired;
  const before = missing.get(look.name);
  const sinceMs = before?.state === state ? before.sinceMs : clock.monotonicMs();
  missing.set(look.name, { state, sinceMs });
  if (clock.monotonicMs() - sinceMs < MISSING_MS) return lookLater(enqueuing, look, MISSING_LOOK_MS);
  missing.delete(look.name);
  known.forget(look.name);
  await disarm(redis, ref, look.name, look.fired.text);
}

async function lookLater(enqueuing: Enqueuing, { term, name, fired, nowMs }: Look, byMs: number): Promise<void> {
  const { redis, ref } = enqueuing;
  await postpone(redis, ref, { term, name, state: fired.text, lookMs: nowMs + byMs, nowMs: enqueuing.nowMs?.() });
}

/** Of a definition or a state that nobody foresaw, and not of Redis or the way to it. */
function isItsOwn(error: unknown): boolean {
  const ours = error instanceof DuestreamError && error.code === 'bad-input';
  return ours || error instanceof TypeError || error instanceof RangeError;
}

/** How long the tombstone of a replaced job stays. */
const REPLACED_WINDOW_MS = 600_000;

/** A job that waited for another is due when it stops waiting; its record keeps the due of its instant. */
function itemOf(
  schedule: Schedule,
  atMs: number,
  { waitingMs, nowMs }: { readonly waitingMs: number | undefined; readonly nowMs: number },
): FireItem {
  const dueMs = dueOfFire(schedule, atMs);
  const record = encodeRecord(dueMs, schedule.body, schedule.header);
  return {
    member: fireMember(schedule.name, atMs),
    record,
    dueMs: atMs === waitingMs ? Math.max(dueMs, nowMs) : dueMs,
  };
}
