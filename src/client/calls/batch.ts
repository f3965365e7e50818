/**
 * Many schedule calls → few script calls. Jobs that are scheduled in one turn of the event loop, or while all script
 * calls allowed in flight are under way, go to their partition together, at most 250 and 512 KiB at a time.
 *
 *   add ──▶ open chunk of its partition ──(turn ends, place in flight)──▶ one script call ──▶ each caller its own reply
 *             ▲                                                             │ moved: the queue has another layout
 *             └─────────────────────────────────────────────────────────────┘
 *
 * While Redis has little to do, a chunk does not wait for the end of the turn: with 32 jobs it goes at once, so that
 * Redis works on them while the next ones are made ready.
 *
 * Every promise settles: a chunk is sent with the same bytes until the budget is spent, and while Redis stays away, a chunk
 * that has waited longer than the budget is refused rather than tried. The calls that wait are bounded by count and by bytes.
 * A call that is repeated gives its place in flight back, and its partition is sent no other until it answers: in a cluster
 * one master may be away, and the others must not wait for it.
 */

import type { Queue } from '../../job/queue.ts';
import { type Clock, setImmediate } from '../../kernel/clock.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { withRetry } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { Jobs, Sends } from '../../redis/scripts/jobs.ts';
import type { ScheduleReply } from '../../redis/scripts/replies.ts';
import { letGoByMs, pausedForHeld, stillHeld } from './held.ts';
import { homeOf, type Layout, type Layouts, MOVE_PAUSE_MS, MOVES_MAX, movedAway } from './layouts.ts';
import { refusalOf } from './needs.ts';
import { Overtaken } from './orders.ts';
import { tooMany } from './partition-calls.ts';
import { countedPlan, inOrder, newerPlan, type Plan } from './plan.ts';
import { tooFewReplies } from './repeats.ts';
import { failureOf, type Scheduled, scheduledOf, type Updated, updatedOf } from './scheduled.ts';
import { type Lane, neverSent, type Phase, type Place, type Turns, waitBehind } from './turns.ts';

/** What sends a chunk: `createJobs` in `redis/scripts/jobs.ts`, behind the refusals of `client/parts.ts`. */
export type ScheduleSender = Pick<Jobs, 'schedule'>;

export interface BatchParts {
  readonly jobs: ScheduleSender;
  readonly layouts: Pick<Layouts, 'known' | 'load' | 'reload'>;
  readonly clock: Clock;
  readonly budgetMs: number;
  readonly horizonMs: number;
  readonly recordBytesMax: number;
  /** The order of the calls of the client. */
  readonly turns: Pick<Turns, 'lane' | 'isInside'>;
  readonly update: UpdateJob;
}

/** Edits a live job as a plan with `names` says: see `jobs/update.ts`. `isDoubtful`: the call itself may have made the job. */
export type UpdateJob = (queue: Queue, plan: Plan, sent: { readonly isDoubtful: boolean }) => Promise<Updated>;

/** What became of a list of jobs, by their places in it: a result or an error each. */
export interface Answers {
  readonly results: readonly (Scheduled | undefined)[];
  readonly errors: ReadonlyMap<number, unknown>;
}

/** One job that was scheduled, and its caller. It is its own place in the line of its id. */
interface Pending extends Place {
  readonly queue: Queue;
  /** As its partition takes it: see `countedPlan`. */
  plan: Plan;
  /** Its place in the list of its call. */
  readonly at: number;
  readonly resolve: (scheduled: Scheduled, at: number) => void;
  readonly reject: (error: unknown, at: number) => void;
  /** How often the queue has moved since. */
  moves: number;
  /** An earlier try may have been carried out. */
  isDoubtful?: boolean;
  /** A debounce call that was sent with a higher order. */
  isLater?: boolean;
  /** The calls that it goes beside; undefined where the call that it is a part of has a turn. */
  phase: Phase | undefined;
  /** Where later calls find it. */
  lane: Lane | undefined;
  /** The call for its id before it. It goes with that one, or waits until that one is over. */
  before: Place | undefined;
  /** The call for its id after it, which waits for it. */
  follower: Pending | undefined;
  chunk: Chunk | undefined;
  /** When it began to wait for others. */
  heldMs: number | undefined;
}

/** Jobs of one partition for one script call. */
interface Chunk {
  readonly ref: PartitionRef;
  readonly mode: Plan['mode'];
  /** Since when the job in it that has waited for longest waits. */
  openedMs: number;
  readonly items: Pending[];
  bytes: number;
  /** The layout was read for a job in it. */
  fresh: boolean;
}

/** Whose turn it is: the job has its own, is one of a list that has a turn and a lane of its own, or its call has a turn already. */
export type Order = 'own' | Lane | 'none';

/** All fields at once, so that the objects have one shape. */
const pendingOf = (given: Pick<Pending, 'queue' | 'plan' | 'at' | 'resolve' | 'reject'>): Pending => ({
  queue: given.queue,
  plan: given.plan,
  at: given.at,
  resolve: given.resolve,
  reject: given.reject,
  moves: 0,
  isOver: false,
  behind: undefined,
  phase: undefined,
  lane: undefined,
  before: undefined,
  follower: undefined,
  chunk: undefined,
  heldMs: undefined,
});

/** One script call: Redis serves nobody else meanwhile. 250 small jobs take it 1 ms, 125 of 4 KiB 2 ms. */
export const CHUNK_JOBS_MAX = 250;
export const CHUNK_BYTES_MAX = 512 * 1024;
/** A chunk of so many jobs goes before the turn ends, while fewer calls than this are under way. */
const EAGER_JOBS = 32;
const EAGER_CALLS = 3;
/** 5,000 jobs or 10 MiB on the way at a time. */
const CHUNKS_IN_FLIGHT_MAX = 20;
const WAITING_MAX = 250_000;
const WAITING_BYTES_MAX = 256 * 1024 * 1024;

export class ScheduleBatch {
  readonly #parts: BatchParts;
  /** The chunk of each partition that still takes jobs; it stands in `#queued` as well. */
  readonly #open = new Map<string, Chunk>();
  readonly #queued: Chunk[] = [];
  /** The calls of `quiet` that wait until every job has settled. */
  readonly #listeners: (() => void)[] = [];
  #waiting = 0;
  #waitingBytes = 0;
  #inFlight = 0;
  /** A flush comes at the end of this turn. */
  #isFlushing = false;
  /** By partition: a call is being repeated there, or the last one gave up. What answers is not here. */
  readonly #silent = new Map<string, 'repeating' | 'away'>();

  constructor(parts: BatchParts) {
    this.#parts = parts;
  }

  /** @throws DuestreamError `exists`, `queue-full`, `group-full`, `no-set`, `bad-input`, `unavailable`, `indeterminate`, `out-of-memory`, `refused`, `moved` */
  add(queue: Queue, plan: Plan, order: Order = 'own'): Promise<Scheduled> {
    return new Promise((resolve, reject) => {
      const chunk = this.#add(pendingOf({ queue, plan, at: 0, resolve, reject }), order);
      if (chunk) this.#flushSoon(chunk.items.length);
    });
  }

  /** As many calls at once, without a promise for each. It never rejects. */
  addMany(queue: Queue, plans: readonly Plan[], order: Order = 'own'): Promise<Answers> {
    return new Promise((tell) => {
      const results: (Scheduled | undefined)[] = plans.map(() => undefined);
      const errors = new Map<number, unknown>();
      let left = plans.length;
      const resolve = (scheduled: Scheduled, at: number) => {
        results[at] = scheduled;
        left -= 1;
        if (left === 0) tell({ results, errors });
      };
      const reject = (error: unknown, at: number) => {
        errors.set(at, error);
        left -= 1;
        if (left === 0) tell({ results, errors });
      };
      for (let at = 0; at < plans.length; at += 1) {
        const plan = plans[at];
        if (plan) this.#add(pendingOf({ queue, plan, at, resolve, reject }), order);
      }
      if (left === 0) tell({ results, errors });
      else this.#flushSoon(plans.length);
    });
  }

  /** Resolves when every call has settled. */
  quiet(): Promise<void> {
    return this.#waiting === 0 ? Promise.resolve() : new Promise((resolve) => this.#listeners.push(resolve));
  }

  /** The chunk of the job, unless the job is refused or the layout of its queue is not known yet. */
  #add(pending: Pending, order: Order): Chunk | undefined {
    const { plan, at } = pending;
    if (this.#waiting >= WAITING_MAX || this.#waitingBytes >= WAITING_BYTES_MAX) {
      pending.reject(tooMany(this.#waiting), at);
      return undefined;
    }
    this.#waiting += 1;
    this.#waitingBytes += plan.bytes;
    const lane = order === 'own' ? this.#laneOf(pending) : order === 'none' ? undefined : order;
    if (lane) lineUp(pending, lane);
    return pending.phase === undefined || pending.phase.isOpen ? this.#enter(pending) : this.#hold(pending);
  }

  /** The job goes beside the other calls on jobs of its queue. Undefined: see `Turns.take`. */
  #laneOf(pending: Pending): Lane | undefined {
    const { turns } = this.#parts;
    if (turns.isInside()) return undefined;
    const lane = turns.lane(pending.queue.name);
    pending.phase = lane.join('jobs');
    return lane;
  }

  /** Until its phase begins. */
  #hold(pending: Pending): undefined {
    pending.heldMs = this.#parts.clock.monotonicMs();
    pending.phase?.waiting.push(() => this.#enterLater(pending));
  }

  #enter(pending: Pending): Chunk | undefined {
    const { layouts } = this.#parts;
    const layout = layouts.known(pending.queue);
    if (layout) return this.#place(pending, layout, false);
    void this.#placeLater(pending, layouts.load(pending.queue));
    return undefined;
  }

  #enterLater(pending: Pending): void {
    const chunk = this.#enter(pending);
    if (chunk) this.#flushSoon(chunk.items.length);
  }

  async #placeLater(pending: Pending, loading: Promise<Layout>): Promise<void> {
    try {
      this.#place(pending, await loading, true);
      this.#flushSoon(1);
    } catch (error) {
      this.#fail(pending, error);
    }
  }

  /** Puts the job into the chunk of its partition that still takes jobs, or begins one. Undefined: not now, or refused. */
  #place(pending: Pending, layout: Layout, fresh: boolean): Chunk | undefined {
    const ref = homeOf(layout, pending.plan.id);
    if (!this.#suits(pending, ref, fresh)) return undefined;
    const { plan, before, heldMs } = pending;
    const open = this.#open.get(ref.keys.jobs);
    let chunk = open && hasRoom(open, ref, plan) ? open : undefined;
    // Calls for one id are in one script call, in their order, or one after the other: of two on the way at once the first
    // might have to be repeated, and be carried out last. An update is more than one call, so it shares none with an earlier
    // call for its id.
    const isApart = !chunk || !before || !('chunk' in before) || before.chunk !== chunk || plan.mode === 'update';
    if (before && !before.isOver && isApart) {
      return this.#holdBehind(before, pending);
    }
    if (!chunk) {
      chunk = { ref, mode: plan.mode, openedMs: this.#parts.clock.monotonicMs(), items: [], bytes: 0, fresh };
      this.#open.set(ref.keys.jobs, chunk);
      this.#queued.push(chunk);
    }
    if (heldMs !== undefined) chunk.openedMs = Math.min(chunk.openedMs, heldMs);
    chunk.items.push(pending);
    chunk.bytes += plan.bytes;
    chunk.fresh ||= fresh;
    pending.chunk = chunk;
    this.#follow(pending);
    return chunk;
  }

  /** Whether its partition can honour what the job asks for. If not, it is refused, or placed anew once the settings are read. */
  #suits(pending: Pending, ref: PartitionRef, fresh: boolean): boolean {
    const { queue, plan } = pending;
    const refusal = refusalOf(queue.name, plan.needs, ref);
    if (refusal !== undefined) {
      // The settings that are remembered may be older than what they have to honour.
      if (fresh) this.#fail(pending, refusal);
      else void this.#placeLater(pending, this.#parts.layouts.reload(queue, ref, 'declares'));
      return false;
    }
    return !ref.gates?.isCounted || this.#count(pending);
  }

  /** Until the call before it is over, or stands in a chunk that takes this one too. */
  #holdBehind(before: Place | Pending, pending: Pending): undefined {
    pending.heldMs ??= this.#parts.clock.monotonicMs();
    if ('chunk' in before) before.follower = pending;
    else waitBehind(before, () => this.#enterLater(pending));
  }

  #follow(pending: Pending): void {
    const { follower } = pending;
    pending.follower = undefined;
    if (follower) this.#enterLater(follower);
  }

  /** Says whether the job goes on. */
  #count(pending: Pending): boolean {
    const before = pending.plan;
    try {
      const counted = countedPlan(before);
      const more = counted.record.length - before.record.length;
      pending.plan = { ...counted, bytes: before.bytes + more };
      this.#waitingBytes += more;
      return true;
    } catch (error) {
      this.#fail(pending, error);
      return false;
    }
  }

  /** At once when enough jobs are ready and Redis has little to do, else at the end of this turn. */
  #flushSoon(ready: number): void {
    if (ready >= EAGER_JOBS && this.#inFlight < EAGER_CALLS) this.#flush();
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    setImmediate(() => {
      this.#isFlushing = false;
      this.#flush();
    });
  }

  #flush(): void {
    while (this.#inFlight < CHUNKS_IN_FLIGHT_MAX) {
      const chunk = this.#nextChunk();
      if (!chunk) return;
      this.#inFlight += 1;
      void this.#carry(chunk);
    }
  }

  /** The oldest chunk that may be sent, which takes no more jobs from now on. */
  #nextChunk(): Chunk | undefined {
    const at = this.#queued.findIndex(({ ref }) => this.#silent.get(ref.keys.jobs) !== 'repeating');
    const [chunk] = at < 0 ? [] : this.#queued.splice(at, 1);
    if (chunk && this.#open.get(chunk.ref.keys.jobs) === chunk) this.#open.delete(chunk.ref.keys.jobs);
    return chunk;
  }

  async #carry(chunk: Chunk): Promise<void> {
    const { budgetMs, clock } = this.#parts;
    const { jobs: partition } = chunk.ref.keys;
    let isRepeated = false;
    const onFailure = () => {
      this.#silent.set(partition, 'repeating');
      if (isRepeated) return;
      isRepeated = true;
      this.#inFlight -= 1;
      this.#flush();
    };
    try {
      // In an outage a call also waits for the calls before it: that is taken from its budget.
      const leftMs = this.#silent.has(partition) ? budgetMs - (clock.monotonicMs() - chunk.openedMs) : budgetMs;
      if (leftMs < 0) throw neverSent();
      await this.#deliver(chunk, leftMs, onFailure);
    } catch (error) {
      const isOurs = error instanceof DuestreamError;
      const isAway = isOurs && (error.code === 'unavailable' || error.code === 'indeterminate');
      if (isAway) this.#silent.set(partition, 'away');
      else this.#silent.delete(partition);
      for (const pending of chunk.items) this.#fail(pending, error);
    } finally {
      if (!isRepeated) this.#inFlight -= 1;
      this.#flush();
    }
  }

  /** Makes as many calls as it takes: each looks at its first job at least. A job that stays in the chunk is not settled. */
  async #deliver(chunk: Chunk, leftMs: number, onFailure: () => void): Promise<void> {
    const { horizonMs, recordBytesMax, jobs, clock } = this.#parts;
    const { ref, mode, items } = chunk;
    const layoutAge = chunk.fresh ? ('fresh' as const) : ('remembered' as const);
    const sends: Sends = { isRepeat: false, firstMs: undefined };
    const settings = { mode, horizonMs, bytesMax: recordBytesMax, layoutAge, sends };
    const untilMs = letGoByMs({ clock, budgetMs: leftMs });
    while (items.length > 0) {
      const plans = ref.gates?.isStrict ? items.map(({ plan }) => inOrder(plan)) : items.map(({ plan }) => plan);
      // @send-chunk
      const policy = { clock, budgetMs: leftMs, onFailure };
      const send = (mayHaveRun: boolean) => {
        if (mayHaveRun) for (const pending of items) pending.isDoubtful = true;
        sends.isRepeat = items.some(({ isDoubtful, plan }) => isDoubtful || plan.isRepeated);
        return jobs.schedule(ref, plans, settings);
      };
      const reply = await withRetry('schedule', send, policy);
      this.#silent.delete(ref.keys.jobs);
      if ('kind' in reply) {
        await this.#move(chunk);
        return;
      }
      const overtaken = new Overtaken();
      const held = items.filter((_, index) => reply[index]?.kind === 'held');
      for (const [index, pending] of items.splice(0).entries()) {
        const isThrough = !isSentLater(pending, reply[index], overtaken) && this.#answer(pending, reply[index], ref);
        if (!isThrough) items.push(pending);
      }
      if (held.length > 0 && !(await pausedForHeld(clock, untilMs))) this.#giveUp(chunk, held);
    }
  }

  /** Workers have not let go of the jobs that are there. */
  #giveUp({ items }: Chunk, held: readonly Pending[]): void {
    const others = items.splice(0).filter((pending) => !held.includes(pending));
    items.push(...others);
    for (const pending of held) this.#fail(pending, stillHeld(pending.plan.id, pending.isDoubtful ?? false));
  }

  /** The queue has another layout, or was removed and is declared anew by now: its jobs go to their new homes. */
  async #move({ ref, items }: Chunk): Promise<void> {
    const { clock, layouts } = this.#parts;
    const [first] = items;
    if (!first) return;
    first.moves += 1;
    await clock.sleep(MOVE_PAUSE_MS * (first.moves - 1));
    const layout = await layouts.reload(first.queue, ref, 'declares');
    for (const pending of items) {
      pending.moves = Math.max(pending.moves, first.moves);
      if (pending.moves > MOVES_MAX) this.#fail(pending, movedAway(pending.queue.name));
      else this.#place(pending, layout, true);
    }
    this.#flushSoon(1);
  }

  /** Says whether the chunk is through with the job; one whose reply is `later` or `held` is sent again. */
  #answer(pending: Pending, reply: ScheduleReply | undefined, ref: PartitionRef): boolean {
    try {
      if (!reply) throw tooFewReplies();
      if (reply.kind === 'later' || reply.kind === 'held') return false;
      if (reply.kind === 'uncounted' && pending.moves < MOVES_MAX) {
        // Somebody has set a limit of the pending jobs of a group since the settings were read.
        pending.moves += 1;
        void this.#placeLater(pending, this.#parts.layouts.reload(pending.queue, ref, 'declares'));
        return true;
      }
      if (reply.kind === 'exists' && pending.plan.names) {
        void this.#update(pending, reply.dueMs);
        return true;
      }
      pending.resolve(scheduledOf(pending.queue.name, pending.plan, reply), pending.at);
    } catch (error) {
      pending.reject(error, pending.at);
    }
    this.#settled(pending);
    return true;
  }

  /** The job lives, or did just now: where nobody knows it any more, it is made after all. */
  async #update(pending: Pending, dueMs: number): Promise<void> {
    const { queue, plan, at, isDoubtful = false } = pending;
    const { update, layouts } = this.#parts;
    try {
      const updated = await update(queue, plan, { isDoubtful });
      if (updated.status === 'unknown' && pending.moves < MOVES_MAX) {
        pending.moves += 1;
        void this.#placeLater(pending, layouts.load(queue));
        return;
      }
      pending.resolve(updatedOf(queue.name, { id: plan.id, dueMs }, updated), at);
      this.#settled(pending);
    } catch (error) {
      this.#fail(pending, error);
    }
  }

  #fail(pending: Pending, error: unknown): void {
    pending.reject(failureOf(pending.queue.name, pending.plan, error), pending.at);
    this.#settled(pending);
  }

  #settled(pending: Pending): void {
    const { plan, phase, lane, behind } = pending;
    this.#waiting -= 1;
    this.#waitingBytes -= plan.bytes;
    pending.isOver = true;
    if (lane) lane.leave(plan.member, pending);
    if (pending.follower) this.#follow(pending);
    if (behind) for (const begin of behind.splice(0)) begin();
    phase?.leave();
    if (this.#waiting === 0) for (const listener of this.#listeners.splice(0)) listener();
  }
}

/**
 * Whether a debounce call that was overtaken is sent once more, with a higher order: clocks differ, and nobody has called
 * since. One that may have been carried out before, or was overtaken again meanwhile, is done: newer data are there.
 */
function isSentLater(pending: Pending, reply: ScheduleReply | undefined, overtaken: Overtaken): boolean {
  if (reply?.kind !== 'overtaken' || pending.isDoubtful || pending.isLater || pending.plan.isRepeated) return false;
  pending.plan = newerPlan(pending.plan, overtaken.orderAfter(pending.plan.member, reply.order));
  pending.isLater = true;
  return true;
}

/** The job takes its place behind all calls for its id that were made before. */
function lineUp(pending: Pending, lane: Lane): void {
  const { plan } = pending;
  if (plan.isNewId === true) return;
  pending.lane = lane;
  pending.before = lane.places.get(plan.member);
  lane.places.set(plan.member, pending);
}

/**
 * Another mode closes the chunk, so that calls for one id are sent in the order they were made. So does one that was made
 * before, perhaps by somebody else: what is cancelled since is not known of it.
 */
function hasRoom(chunk: Chunk, ref: PartitionRef, { mode, bytes, isRepeated = false }: Plan): boolean {
  return (
    chunk.ref === ref &&
    chunk.mode === mode &&
    (chunk.items[0]?.plan.isRepeated ?? false) === isRepeated &&
    chunk.items.length < CHUNK_JOBS_MAX &&
    chunk.bytes + bytes <= CHUNK_BYTES_MAX
  );
}
