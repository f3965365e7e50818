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
 * Every promise settles: a chunk is sent with the same bytes until the budget is spent, and while Redis stays away
 * what has waited longer than the budget is refused rather than tried. What waits is bounded by count and by bytes.
 */

import type { Queue } from '../../job/queue.ts';
import type { Clock } from '../../kernel/clock.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { withRetry } from '../../redis/connection/outage.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import type { ScheduleReply } from '../../redis/scripts/replies.ts';
import { type Chunk, type Chunks, createChunks, type Pending } from './chunks.ts';
import { homeOf, type Layout, type Layouts } from './layouts.ts';
import type { Plan } from './plan.ts';
import { failureOf, type Scheduled, scheduledOf } from './scheduled.ts';
import { tooMany } from './slots.ts';

export interface Batch {
  /** @throws DuestreamError `exists`, `queue-full`, `bad-input`, `unavailable`, `indeterminate`, `out-of-memory`, `refused`, `moved` */
  readonly add: (queue: Queue, plan: Plan) => Promise<Scheduled>;
  /** As many calls at once, without a promise for each. It never rejects. */
  readonly addMany: (queue: Queue, plans: readonly Plan[]) => Promise<Answers>;
  /** Resolves when every call has settled. */
  readonly quiet: () => Promise<void>;
}

/** What became of a list of jobs, by their places in it: a result or an error each. */
export interface Answers {
  readonly results: readonly (Scheduled | undefined)[];
  readonly errors: ReadonlyMap<number, unknown>;
}

export interface BatchParts {
  readonly jobs: Pick<Jobs, 'schedule'>;
  readonly layouts: Layouts;
  readonly clock: Clock;
  readonly budgetMs: number;
  readonly horizonMs: number;
  readonly recordBytesMax: number;
}

/** A chunk of so many jobs goes before the turn ends, while fewer calls than this are under way. */
const EAGER_JOBS = 32;
const EAGER_CALLS = 3;
/** 5,000 jobs or 10 MiB on the way at a time. */
const CHUNKS_IN_FLIGHT_MAX = 20;
const WAITING_MAX = 250_000;
const WAITING_BYTES_MAX = 256 * 1024 * 1024;
/** Layouts change by a command of an operator; more than this in one call is a registry at odds with itself. */
export const MOVES_MAX = 5;
const MOVE_PAUSE_MS = 50;

interface Batching extends BatchParts {
  readonly chunks: Chunks;
  /** Who waits until every call has settled. */
  readonly listeners: (() => void)[];
  waiting: number;
  waitingBytes: number;
  inFlight: number;
  /** A flush comes at the end of this turn. */
  flushing: boolean;
  /** The last call found Redis away. */
  away: boolean;
}

export function createBatch(parts: BatchParts): Batch {
  const batching: Batching = {
    ...parts,
    chunks: createChunks(parts.clock),
    listeners: [],
    waiting: 0,
    waitingBytes: 0,
    inFlight: 0,
    flushing: false,
    away: false,
  };
  return {
    add: (queue, plan) =>
      new Promise((resolve, reject) => {
        const chunk = add(batching, { queue, plan, at: 0, resolve, reject, moves: 0 });
        if (chunk) send(batching, chunk.items.length);
      }),
    addMany: (queue, plans) => addMany(batching, queue, plans),
    quiet: () =>
      batching.waiting === 0 ? Promise.resolve() : new Promise((resolve) => batching.listeners.push(resolve)),
  };
}

function addMany(batching: Batching, queue: Queue, plans: readonly Plan[]): Promise<Answers> {
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
      if (plan) add(batching, { queue, plan, at, resolve, reject, moves: 0 });
    }
    if (left === 0) tell({ results, errors });
    else send(batching, plans.length);
  });
}

/** The chunk it was put into, unless it is refused or the layout is not known yet. */
function add(batching: Batching, pending: Pending): Chunk | undefined {
  const { layouts } = batching;
  const { queue, plan, at } = pending;
  if (batching.waiting >= WAITING_MAX || batching.waitingBytes >= WAITING_BYTES_MAX) {
    pending.reject(tooMany(batching.waiting), at);
    return undefined;
  }
  batching.waiting += 1;
  batching.waitingBytes += plan.bytes;
  const layout = layouts.known(queue);
  if (layout) return place(batching, pending, layout, false);
  void placeLater(batching, pending, layouts.load(queue));
  return undefined;
}

async function placeLater(batching: Batching, pending: Pending, loading: Promise<Layout>): Promise<void> {
  try {
    place(batching, pending, await loading, true);
    send(batching, 1);
  } catch (error) {
    fail(batching, pending, error);
  }
}

function place({ chunks }: Batching, pending: Pending, layout: Layout, fresh: boolean): Chunk {
  return chunks.place(pending, homeOf(layout, pending.plan.id), fresh);
}

/** At once when there are enough of them and Redis has little to do, else at the end of this turn. */
function send(batching: Batching, ready: number): void {
  if (ready >= EAGER_JOBS && batching.inFlight < EAGER_CALLS) flush(batching);
  if (batching.flushing) return;
  batching.flushing = true;
  setImmediate(() => {
    batching.flushing = false;
    flush(batching);
  });
}

function flush(batching: Batching): void {
  while (batching.inFlight < CHUNKS_IN_FLIGHT_MAX) {
    const chunk = batching.chunks.next();
    if (!chunk) return;
    batching.inFlight += 1;
    void carry(batching, chunk);
  }
}

async function carry(batching: Batching, chunk: Chunk): Promise<void> {
  const { budgetMs, clock } = batching;
  try {
    // In an outage a call also waits for those before it: that is taken from its budget.
    const leftMs = batching.away ? budgetMs - (clock.monotonicMs() - chunk.openedMs) : budgetMs;
    if (leftMs < 0) throw neverSent();
    await deliver(batching, chunk, leftMs);
  } catch (error) {
    batching.away = error instanceof DuestreamError && (error.code === 'unavailable' || error.code === 'indeterminate');
    for (const pending of chunk.items) fail(batching, pending, error);
  } finally {
    batching.inFlight -= 1;
    flush(batching);
  }
}

/** As many calls as it takes: Redis looks at the first job of each at least. What is left in the chunk is not settled. */
async function deliver(batching: Batching, chunk: Chunk, leftMs: number): Promise<void> {
  const { horizonMs, recordBytesMax, jobs, clock } = batching;
  const { ref, mode, items } = chunk;
  const layout = chunk.fresh ? ('fresh' as const) : ('remembered' as const);
  const settings = { mode, horizonMs, bytesMax: recordBytesMax, layout };
  while (items.length > 0) {
    const plans = items.map(({ plan }) => plan);
    // @send-chunk
    const reply = await withRetry('schedule', () => jobs.schedule(ref, plans, settings), { clock, budgetMs: leftMs });
    batching.away = false;
    if ('kind' in reply) {
      await move(batching, chunk);
      return;
    }
    const sent = items.splice(0);
    items.push(...sent.filter((pending, index) => !answer(batching, pending, reply[index])));
  }
}

/** The queue has another layout, or was removed and is declared anew by now: its jobs go to their new homes. */
async function move(batching: Batching, { ref, items }: Chunk): Promise<void> {
  const { clock, layouts } = batching;
  const [first] = items;
  if (!first) return;
  first.moves += 1;
  await clock.sleep(MOVE_PAUSE_MS * (first.moves - 1));
  const layout = await layouts.reload(first.queue, ref);
  for (const pending of items) {
    pending.moves = Math.max(pending.moves, first.moves);
    if (pending.moves > MOVES_MAX) fail(batching, pending, movedAway(pending.queue.name));
    else place(batching, pending, layout, true);
  }
  send(batching, 1);
}

/** Says whether the call is settled; what is `later` is sent again. */
function answer(batching: Batching, pending: Pending, reply: ScheduleReply | undefined): boolean {
  try {
    if (!reply) throw new Error('the script replied to fewer jobs than it was sent');
    if (reply.kind === 'later') return false;
    pending.resolve(scheduledOf(pending.queue.name, pending.plan, reply), pending.at);
  } catch (error) {
    pending.reject(error, pending.at);
  }
  settled(batching, pending);
  return true;
}

function fail(batching: Batching, pending: Pending, error: unknown): void {
  pending.reject(failureOf(pending.queue.name, pending.plan, error), pending.at);
  settled(batching, pending);
}

function settled(batching: Batching, { plan }: Pending): void {
  const { listeners } = batching;
  batching.waiting -= 1;
  batching.waitingBytes -= plan.bytes;
  if (batching.waiting === 0) for (const listener of listeners.splice(0)) listener();
}

const neverSent = () =>
  new DuestreamError('unavailable', 'Redis is not available and the call waited too long; nothing was sent');

/** The error of a queue whose registry and partitions do not agree. */
export const movedAway = (queue: string) =>
  new DuestreamError('moved', `queue ${queue} was resized ${MOVES_MAX} times during one call; repeat the call`);
