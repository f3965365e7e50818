/**
 * Makes jobs of the instants of the schedules in a led partition. Which instants there are follows from the definition
 * and from how far it was fired, both in Redis; no job is chained to the job before, so no chain can break silently.
 *
 *  K:fires ─▶ names to look at ─▶ definition, state ─▶ plans by policy ─▶ fire (jobs, state, next look at once)
 *
 * Schedules come due together: at midnight, at each full minute. So the enqueuer reads, decides and fires them by the
 * hundred, and while Redis fires some, it reads and decides the next. When many schedules share a coming instant, it reads
 * and decides them ahead; for their instant only the calls of `fire` are left, which refuse each schedule that was changed
 * since. A call of `fire` is bounded by jobs and by bytes, so that no other command of Redis waits for long.
 *
 * What must always hold: an instant becomes one job, whichever leader fires it and however often; the clock is that of Redis.
 */

import { type Idle, idle, type Loop } from '../../kernel/loop.ts';
import { RHYTHMS } from '../../kernel/rhythm.ts';
import { inTurns, type Steps } from '../../kernel/steps.ts';
import { FIRE_BYTES_MAX, FIRE_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import { createJobs } from '../../redis/scripts/jobs.ts';
import {
  arm,
  definitions,
  disarm,
  fire,
  firedOf,
  goneSchedules,
  lookedAt,
  lookedAtThen,
  type ScheduleFired,
} from '../../redis/scripts/schedules.ts';
import type { Fired } from '../../schedule/progress.ts';
import { beginFires } from '../../telemetry/spans.ts';
import { type Duty, partitionLoop } from '../partition-loop.ts';
import { carriedFire, type FirePlan, FirePlanner, planOfWaiting } from './fire-plan.ts';

export interface EnqueuerParts extends Duty {
  readonly namespace: string;
  /** Time of Redis for tests; production leaves it out. */
  readonly nowMs?: () => number;
}

/** Names that a pass asks for: few while few are due, so that a look costs little. */
const NAMES_MIN = 100;
const NAMES_MAX = 3000;
/** Definitions that are read at once: fewer where they are large, and a few when their size is not known yet. */
const READ_MIN = 10;
const READ_FIRST = 100;
const READ_MAX = 300;
const READ_CHARS = 2 * 1024 * 1024;
/** After so much a pass ends, so that a stop waits for seconds at most. */
const PASS_CHARS = 16 * 1024 * 1024;
/** Schedules are decided so long before their instant, or longer where they are many, and so many of them. */
const AHEAD_MS = 2000;
const AHEAD_MS_EACH = 0.2;
const AHEAD_MAX = 100_000;
const AHEAD_SIZE = 32 * 1024 * 1024;
/** Of the schedules that were decided ahead, a pass fires so many. */
const FIRED_AT_ONCE = 5000;
/** Few calls of `fire` are on their way at a time: the mover of this process shares the connection. */
const CALLS_AT_ONCE = 2;
const FOLLOWING_REST_MS = 250;
/** How long the tombstone of a replaced job stays. */
const REPLACED_WINDOW_MS = 600_000;
/** The walk over the schedules that a partition has fired, for those that are gone. */
const GONE_PAGE = 200;
const GONE_PAGE_REST_MS = 5000;
const GONE_WALK_REST_MS = 60_000;

/** What is decided for an instant to come. */
interface Ahead {
  readonly atMs: number;
  readonly plans: FirePlan[];
  /** Of all schedules that are to be looked at then, so many were read. */
  seen: number;
  size: number;
  complete: boolean;
}

/** Schedules as they were found. */
interface Found {
  readonly names: readonly string[];
  readonly texts: readonly (string | undefined)[];
  readonly states: readonly (Fired | undefined)[];
}

/** A look at the schedules that are due. */
interface Look {
  readonly term: string;
  readonly nowMs: number;
  /** The schedules that were not read yet. */
  readonly names: string[];
  chars: number;
}

interface Decided {
  readonly plans: readonly FirePlan[];
  /** Schedules that have no state here: no call has armed them. */
  readonly unarmed: readonly string[];
  readonly gone: readonly { readonly name: string; readonly state: string }[];
}

/** A plan whose fire was accepted, and the state after it. */
interface Done {
  readonly plan: FirePlan;
  readonly fired: Fired;
}

export class Enqueuer {
  readonly #parts: EnqueuerParts;
  readonly #loop: Loop;
  readonly #planner: FirePlanner;
  /** Longest rest, for a lost nudge. */
  readonly #restMs: number;
  #names = NAMES_MIN;
  #reads = READ_FIRST;
  #ahead: Ahead | undefined = undefined;
  #goneCursor: string | undefined = undefined;
  #goneLookMs = Number.NEGATIVE_INFINITY;

  constructor(parts: EnqueuerParts) {
    this.#parts = parts;
    this.#loop = partitionLoop('enqueuer', parts, () => this.pass());
    this.#planner = new FirePlanner(parts);
    this.#restMs = (parts.rhythm ?? RHYTHMS.default).firesMs;
  }

  start(): void {
    this.#loop.start();
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  /** A schedule was put or resumed. */
  wake(): void {
    this.#loop.wake();
  }

  /** Looks at what is due, up to a bound. Returns milliseconds until the next look. */
  async pass(): Promise<number | Idle> {
    const { leading, redis, ref, nowMs: testNowMs } = this.#parts;

    const leadership = leading();
    if (!leadership) {
      this.#ahead = undefined;
      return idle(FOLLOWING_REST_MS);
    }
    const { term } = leadership;
    await this.#lookForGone();
    const restMs = this.#goneCursor === undefined ? this.#restMs : Math.min(this.#restMs, GONE_PAGE_REST_MS);
    const limit = this.#names;
    const looked = await lookedAt(redis, ref, { limit, nowMs: testNowMs?.() });
    const { names, nowMs, nextMs } = looked;
    this.#names = names.length < limit ? NAMES_MIN : Math.min(NAMES_MAX, limit * 4);
    if (this.#ahead && nowMs >= this.#ahead.atMs) {
      await this.#fireAhead(this.#ahead, term);
      return 0;
    }
    if (names.length > 0) {
      await this.#fireDue({ term, nowMs, names: [...names], chars: 0 });
      return 0;
    }
    if (nextMs === undefined) return restMs;
    const waitMs = nextMs - nowMs;
    if (!looked.crowded) return Math.min(restMs, waitMs);
    const leadMs = await this.#leadFor(nextMs, waitMs);
    if (waitMs > leadMs) return Math.min(restMs, waitMs - leadMs);
    return (await this.#decideAhead(nextMs)) ? 0 : waitMs;
  }

  /** Reads some schedules while those before them are decided and fired. */
  async #fireDue(look: Look): Promise<void> {
    let sending: Promise<void> = Promise.resolve();
    let reading: Promise<Found> | undefined = heard(this.#read(look));
    try {
      while (reading) {
        const found = await reading;
        const isMore = look.names.length > 0 && look.chars < PASS_CHARS;
        reading = isMore ? heard(this.#read(look)) : undefined;
        const decided = await inTurns(this.#decide(look, found));
        await sending;
        sending = heard(this.#send(look.term, decided));
      }
    } finally {
      await Promise.allSettled([sending, reading]);
    }
    await sending;
  }

  async #read(look: Look): Promise<Found> {
    const { redis, ref, namespace } = this.#parts;
    const names = look.names.splice(0, this.#reads);
    const [texts, states] = await Promise.all([definitions(redis, namespace, names), firedOf(redis, ref, names)]);
    const chars = texts.reduce((sum, text) => sum + (text?.length ?? 0), 0);
    look.chars += chars;
    const fitting = Math.floor((READ_CHARS * names.length) / Math.max(1, chars));
    this.#reads = Math.max(READ_MIN, Math.min(READ_MAX, fitting));
    return { names, texts, states };
  }

  *#decide({ nowMs }: Look, { names, texts, states }: Found): Steps<Decided> {
    const decided = { plans: [] as FirePlan[], unarmed: [] as string[], gone: [] as { name: string; state: string }[] };
    for (const [at, name] of names.entries()) {
      const fired = states[at];
      yield;
      const plan = fired && (yield* this.#planner.plan({ name, fired, nowMs }, texts[at]));
      if (!plan) decided.unarmed.push(name);
      else if (plan === 'forget') decided.gone.push({ name, state: fired.text });
      else decided.plans.push(plan);
    }
    return decided;
  }

  async #send(term: string, { plans, unarmed, gone }: Decided): Promise<void> {
    const { redis, ref } = this.#parts;
    const ended = await Promise.allSettled([
      this.#fireAll(term, plans),
      ...unarmed.map((name) => arm(redis, ref, name)),
      ...gone.map(({ name, state }) => disarm(redis, ref, name, state)),
    ]);
    throwFirst(ended);
  }

  async #fireAll(term: string, plans: readonly FirePlan[]): Promise<void> {
    const calls = [...callsOf(plans)].reverse();
    const oneByOne = async () => {
      for (let call = calls.pop(); call; call = calls.pop()) {
        await this.#fireSome(term, call).catch((error: unknown) => {
          // The other loops end with the calls that they have sent.
          calls.length = 0;
          throw error;
        });
      }
    };
    throwFirst(await Promise.allSettled(Array.from({ length: CALLS_AT_ONCE }, oneByOne)));
  }

  async #fireSome(term: string, plans: readonly FirePlan[]): Promise<void> {
    const done = await this.#fire(term, plans);
    const freed = await this.#cancelReplaced(done);
    if (freed.length > 0) await this.#fire(term, freed);
  }

  /** @returns the plans that Redis accepted: of the others, another leader was faster */
  async #fire(term: string, plans: readonly FirePlan[]): Promise<readonly Done[]> {
    const { redis, ref, nowMs } = this.#parts;
    const span = beginFires(ref.queue, jobsOf(plans));
    const schedules = plans.map((plan) => (span ? carriedFire(plan, span.carry) : plan.fire));
    const call = () => fire(redis, ref, { term, schedules, nowMs: nowMs?.() });
    const reply = await (span ? span.through(call) : call());
    if (reply.kind === 'fenced') return [];
    return reply.schedules.flatMap((one, at) => this.#tellFired(plans[at], one, reply.nowMs));
  }

  #tellFired(plan: FirePlan | undefined, one: ScheduleFired, nowMs: number): readonly Done[] {
    if (one.kind !== 'fired' || !plan) return [];
    const { ref, events } = this.#parts;
    const { queue, partition } = ref;
    const { name: schedule } = plan.look;
    for (const [at, outcome] of one.outcomes.entries()) {
      const atMs = plan.atMs[at] ?? 0;
      events.emit('schedule.fired', { queue, partition, schedule, atMs, outcome, latenessMs: nowMs - atMs });
    }
    return [{ plan, fired: one.fired }];
  }

  /**
   * Cancels the jobs that are replaced: only when Redis has the jobs that replace them, which a full Redis refuses.
   *
   * @returns plans for the schedules whose way is free already
   */
  async #cancelReplaced(done: readonly Done[]): Promise<readonly FirePlan[]> {
    const { redis, ref } = this.#parts;
    const replacing = done.flatMap(({ plan, fired }) => {
      const { last, waiting } = fired;
      const isReplaced = plan.fire.overlap === 'replace' && waiting !== undefined && last !== undefined;
      return isReplaced ? [{ plan, fired, last }] : [];
    });
    if (replacing.length === 0) return [];
    const members = replacing.map(({ last }) => last);
    const replies = await createJobs(redis).cancel(ref, members, { windowMs: REPLACED_WINDOW_MS });
    if ('kind' in replies) return [];
    return replacing.flatMap(({ plan, fired }, at) =>
      replies[at]?.kind === 'requested' ? [] : planOfWaiting(plan, fired),
    );
  }

  /** How long before an instant its schedules are to be decided. */
  async #leadFor(atMs: number, waitMs: number): Promise<number> {
    const { redis, ref } = this.#parts;
    if (waitMs <= AHEAD_MS || waitMs > AHEAD_MAX * AHEAD_MS_EACH + this.#restMs) return AHEAD_MS;
    const many = Math.min(AHEAD_MAX, await redis.zcount(ref.keys.fires, atMs, atMs));
    return Math.max(AHEAD_MS, many * AHEAD_MS_EACH);
  }

  /** Decides some of the schedules of an instant to come. @returns whether there may be more */
  async #decideAhead(atMs: number): Promise<boolean> {
    const { redis, ref } = this.#parts;
    if (this.#ahead?.atMs !== atMs) this.#ahead = { atMs, plans: [], seen: 0, size: 0, complete: false };
    const ahead = this.#ahead;
    if (ahead.complete) return false;
    const names = await lookedAtThen(redis, ref, { atMs, from: ahead.seen, limit: this.#reads });
    const look = { term: '', nowMs: atMs, names: [...names], chars: 0 };
    const { plans } = await inTurns(this.#decide(look, await this.#read(look)));
    // Whatever is odd about the other schedules is for their instant.
    const planned = plans.filter(({ due }) => due !== undefined);
    ahead.plans.push(...planned);
    ahead.seen += names.length;
    ahead.size += planned.reduce((sum, { size }) => sum + size, 0);
    ahead.complete = names.length === 0 || ahead.seen >= AHEAD_MAX || ahead.size >= AHEAD_SIZE;
    return !ahead.complete;
  }

  async #fireAhead({ plans }: Ahead, term: string): Promise<void> {
    const some = plans.splice(0, FIRED_AT_ONCE);
    if (plans.length === 0) this.#ahead = undefined;
    await this.#fireAll(term, some);
  }

  /**
   * A partition may know of a schedule that is gone and that no leader looks at: it had ended, or was paused, and a call
   * deleted its definition and died before it disarmed the schedule. The enqueuer arms such a schedule once more, misses
   * its definition for a minute, and disarms it.
   *
   *  page of K:fired ─▶ no definition, no place in K:fires ─▶ arm ─▶ the next pass looks ─▶ … a minute … ─▶ disarm
   *
   * A page at a time, also while the leader has much to fire, so that at most the schedules of a few minutes are left.
   */
  async #lookForGone(): Promise<void> {
    const { redis, ref, namespace, clock } = this.#parts;
    const nowMs = clock.monotonicMs();
    if (nowMs < this.#goneLookMs) return;
    this.#goneLookMs = nowMs + GONE_WALK_REST_MS;
    const cursor = this.#goneCursor ?? '0';
    const page = { namespace, among: 'not looked at', cursor, limit: GONE_PAGE } as const;
    const { next, gone } = await goneSchedules(redis, ref, page);
    this.#goneCursor = next;
    if (next !== undefined) this.#goneLookMs = nowMs + GONE_PAGE_REST_MS;
    await Promise.all(gone.map(({ name }) => arm(redis, ref, name)));
  }
}

/** A promise that is awaited later; until then its failure is no unhandled rejection. */
function heard<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

function throwFirst(ended: readonly PromiseSettledResult<unknown>[]): void {
  const failed = ended.find((one) => one.status === 'rejected');
  if (failed) throw failed.reason;
}

const jobsOf = (plans: readonly FirePlan[]): number =>
  plans.reduce((sum, { fire: { items } }) => sum + items.length, 0);

function callsOf(plans: readonly FirePlan[]): readonly (readonly FirePlan[])[] {
  const calls: FirePlan[][] = [];
  let [jobs, size] = [FIRE_JOBS_MAX, FIRE_BYTES_MAX];
  for (const plan of plans) {
    jobs += Math.max(1, plan.fire.items.length);
    size += plan.size;
    if (jobs > FIRE_JOBS_MAX || size > FIRE_BYTES_MAX) {
      calls.push([]);
      jobs = Math.max(1, plan.fire.items.length);
      size = plan.size;
    }
    calls.at(-1)?.push(plan);
  }
  return calls;
}
