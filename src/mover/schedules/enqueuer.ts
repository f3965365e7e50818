/**
 * Makes jobs of the instants of the schedules in a led partition. Which instants there are follows from the definition
 * and from how far it was fired, both in Redis; nothing is chained from job to job, so nothing can stop silently.
 *
 *  K:fires ─▶ who is to be looked at ─▶ definition, state ─▶ instants by policy ─▶ fire (jobs, state, next look at once)
 *
 * Schedules come due together: at midnight, at each full minute. So they are read, decided and fired by the hundred, and
 * while Redis fires some, the next are read and decided here. When many come next, together, they are read and decided
 * ahead; what is left for their instant are the calls of `fire`, which refuse each schedule that was changed since.
 *
 * What must always hold: an instant becomes one job, whoever fires it and however often; the clock is that of Redis.
 */

import type { Emitter } from '../../job/events.ts';
import type { Clock } from '../../kernel/clock.ts';
import { createLoop, type Idle, idle } from '../../kernel/loop.ts';
import { inTurns, type Steps } from '../../kernel/steps.ts';
import { memberOf } from '../../redis/connection/cluster/members.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { pauseAfter } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { arm, definitions, disarm, firedOf, lookedAt, lookedAtThen } from '../../redis/scripts/schedules.ts';
import type { Fired } from '../../schedule/progress.ts';
import type { Leadership } from '../election/election.ts';
import { createErrands, type Errand, type Errands } from './fire-plan.ts';
import { sendErrands } from './fires.ts';
import { createGoneLook } from './gone-schedules.ts';

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
  /** Looks at what is due, up to a bound. Returns milliseconds until the next look. */
  readonly pass: () => Promise<number | Idle>;
  /** A schedule was put or resumed. */
  readonly wake: () => void;
}

/** Names that a pass asks for: few while few are due, so that a look costs little. */
const NAMES_MIN = 100;
const NAMES_MAX = 3000;
/** Definitions that are read at once: fewer where they are large, and a few when their size is not known yet. */
const READ_MIN = 10;
const READ_FIRST = 100;
const READ_MAX = 300;
const READ_CHARS = 2 * 1024 * 1024;
/** After so much a pass ends, so that who stops waits for seconds at most. */
const PASS_CHARS = 16 * 1024 * 1024;
/** Schedules are decided so long before their instant, or longer where they are many, and so many of them. */
const AHEAD_MS = 2000;
const AHEAD_MS_EACH = 0.2;
const AHEAD_MAX = 100_000;
const AHEAD_SIZE = 32 * 1024 * 1024;
/** Of those that were decided ahead, a pass fires so many. */
const FIRED_AT_ONCE = 5000;
/** Longest rest, for a lost nudge. */
const REST_MS = 5000;
const FOLLOWING_REST_MS = 250;

/** What is decided for an instant to come. */
interface Ahead {
  readonly atMs: number;
  readonly errands: Errand[];
  /** Of all that are looked at then, so many were read. */
  seen: number;
  size: number;
  complete: boolean;
}

interface Enqueuing extends EnqueuerParts {
  readonly errands: Errands;
  readonly lookForGone: () => Promise<void>;
  names: number;
  reads: number;
  ahead: Ahead | undefined;
}

/** Schedules as they were found. */
interface Found {
  readonly names: readonly string[];
  readonly texts: readonly (string | undefined)[];
  readonly states: readonly (Fired | undefined)[];
}

interface Pass {
  readonly term: string;
  readonly nowMs: number;
  /** Whose turn is still to come. */
  readonly names: string[];
  chars: number;
}

export function createEnqueuer(parts: EnqueuerParts): Enqueuer {
  const { redis, ref, clock, events } = parts;
  const enqueuing: Enqueuing = {
    ...parts,
    errands: createErrands(parts),
    lookForGone: createGoneLook(parts),
    names: NAMES_MIN,
    reads: READ_FIRST,
    ahead: undefined,
  };
  const run = () => pass(enqueuing);
  const who = `enqueuer of ${ref.queue}:${ref.partition}`;
  const loop = createLoop({
    who,
    pass: run,
    probe: () => memberOf(redis, ref.keys.meta).ping(),
    clock,
    events,
    pauseAfter,
  });
  return { start: loop.start, stop: loop.stop, pass: run, wake: loop.wake };
}

async function pass(enqueuing: Enqueuing): Promise<number | Idle> {
  const { leading, redis, ref } = enqueuing;
  const leadership = leading();
  if (!leadership) {
    enqueuing.ahead = undefined;
    return idle(FOLLOWING_REST_MS);
  }
  const { term } = leadership;
  await enqueuing.lookForGone();
  const limit = enqueuing.names;
  const looked = await lookedAt(redis, ref, { limit, nowMs: enqueuing.nowMs?.() });
  const { names, nowMs, nextMs } = looked;
  enqueuing.names = names.length < limit ? NAMES_MIN : Math.min(NAMES_MAX, limit * 4);
  const { ahead } = enqueuing;
  if (ahead && nowMs >= ahead.atMs) {
    const some = ahead.errands.splice(0, FIRED_AT_ONCE);
    if (ahead.errands.length === 0) enqueuing.ahead = undefined;
    await sendErrands(enqueuing, term, some);
    return 0;
  }
  if (names.length > 0) {
    await lookAtAll(enqueuing, { term, nowMs, names: [...names], chars: 0 });
    return 0;
  }
  if (nextMs === undefined) return REST_MS;
  const waitMs = nextMs - nowMs;
  if (!looked.crowded) return Math.min(REST_MS, waitMs);
  const leadMs = await leadFor(enqueuing, nextMs, waitMs);
  if (waitMs > leadMs) return Math.min(REST_MS, waitMs - leadMs);
  return (await prepareSome(enqueuing, nextMs)) ? 0 : waitMs;
}

/** How long before an instant its schedules are to be decided. */
async function leadFor({ redis, ref }: Enqueuing, atMs: number, waitMs: number): Promise<number> {
  if (waitMs <= AHEAD_MS || waitMs > AHEAD_MAX * AHEAD_MS_EACH + REST_MS) return AHEAD_MS;
  const many = Math.min(AHEAD_MAX, await redis.zcount(ref.keys.fires, atMs, atMs));
  return Math.max(AHEAD_MS, many * AHEAD_MS_EACH);
}

/** Decides some of the schedules of an instant to come. @returns whether there may be more */
async function prepareSome(enqueuing: Enqueuing, atMs: number): Promise<boolean> {
  const { redis, ref } = enqueuing;
  if (enqueuing.ahead?.atMs !== atMs) enqueuing.ahead = { atMs, errands: [], seen: 0, size: 0, complete: false };
  const { ahead } = enqueuing;
  if (ahead.complete) return false;
  const names = await lookedAtThen(redis, ref, { atMs, from: ahead.seen, limit: enqueuing.reads });
  const turn = { term: '', nowMs: atMs, names: [...names], chars: 0 };
  const { errands } = await inTurns(decide(enqueuing, turn, await readSome(enqueuing, turn)));
  // Whatever is odd about the others is for their instant.
  const planned = errands.filter(({ plan }) => plan !== undefined);
  ahead.errands.push(...planned);
  ahead.seen += names.length;
  ahead.size += planned.reduce((sum, { size }) => sum + size, 0);
  ahead.complete = names.length === 0 || ahead.seen >= AHEAD_MAX || ahead.size >= AHEAD_SIZE;
  return !ahead.complete;
}

/** Some are read while those before them are decided and fired. */
async function lookAtAll(enqueuing: Enqueuing, turn: Pass): Promise<void> {
  let sending: Promise<void> = Promise.resolve();
  let reading: Promise<Found> | undefined = heard(readSome(enqueuing, turn));
  try {
    while (reading) {
      const found = await reading;
      const isMore = turn.names.length > 0 && turn.chars < PASS_CHARS;
      reading = isMore ? heard(readSome(enqueuing, turn)) : undefined;
      const work = await inTurns(decide(enqueuing, turn, found));
      await sending;
      sending = heard(send(enqueuing, turn, work));
    }
  } finally {
    await Promise.allSettled([sending, reading]);
  }
  await sending;
}

/** It is awaited later; until then nobody hears it fail. */
function heard<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

async function readSome(enqueuing: Enqueuing, turn: Pass): Promise<Found> {
  const { redis, ref, namespace } = enqueuing;
  const names = turn.names.splice(0, enqueuing.reads);
  const [texts, states] = await Promise.all([definitions(redis, namespace, names), firedOf(redis, ref, names)]);
  const chars = texts.reduce((sum, text) => sum + (text?.length ?? 0), 0);
  turn.chars += chars;
  const fitting = Math.floor((READ_CHARS * names.length) / Math.max(1, chars));
  enqueuing.reads = Math.max(READ_MIN, Math.min(READ_MAX, fitting));
  return { names, texts, states };
}

interface Work {
  readonly errands: readonly Errand[];
  /** Schedules that nobody armed here, and those that are gone. */
  readonly unarmed: readonly string[];
  readonly gone: readonly { readonly name: string; readonly state: string }[];
}

function* decide({ errands }: Enqueuing, { nowMs }: Pass, { names, texts, states }: Found): Steps<Work> {
  const work = { errands: [] as Errand[], unarmed: [] as string[], gone: [] as { name: string; state: string }[] };
  for (const [at, name] of names.entries()) {
    const fired = states[at];
    yield;
    const errand = fired && (yield* errands.about({ name, fired, nowMs }, texts[at]));
    if (!errand) work.unarmed.push(name);
    else if (errand === 'forget') work.gone.push({ name, state: fired.text });
    else work.errands.push(errand);
  }
  return work;
}

async function send(enqueuing: Enqueuing, { term }: Pass, { errands, unarmed, gone }: Work): Promise<void> {
  const { redis, ref } = enqueuing;
  const ended = await Promise.allSettled([
    sendErrands(enqueuing, term, errands),
    ...unarmed.map((name) => arm(redis, ref, name)),
    ...gone.map(({ name, state }) => disarm(redis, ref, name, state)),
  ]);
  const failed = ended.find((one) => one.status === 'rejected');
  if (failed) throw failed.reason;
}
