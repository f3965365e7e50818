/**
 * Many schedule calls → few script calls. Jobs that are scheduled in one turn of the event loop, or while all script
 * calls allowed in flight are under way, go to their partition together, at most 250 and 512 KiB at a time.
 *
 *   add ──▶ open chunk of its partition ──(turn ends, place in flight)──▶ one script call ──▶ each caller its own reply
 *             ▲                                                             │ moved: the queue has another layout
 *             └─────────────────────────────────────────────────────────────┘
 *
 * Every promise settles: a chunk is sent with the same bytes until the budget is spent, and while Redis stays away
 * what has waited longer than the budget is refused rather than tried. What waits is bounded by count and by bytes.
 */
import type { Clock } from '../core/clock.ts';
import { DuestreamError } from '../core/errors.ts';
import type { Queue } from '../core/queue.ts';
import { withRetry } from '../redis/connection/outage.ts';
import type { PartitionRef } from '../redis/keys.ts';
import type { Jobs } from '../redis/transitions/jobs.ts';
import type { ScheduleReply } from '../redis/transitions/replies.ts';
import { homeOf, type Layout, type Layouts } from './layouts.ts';
import type { Plan } from './plan.ts';
import { failureOf, type Scheduled, scheduledOf } from './scheduled.ts';
import { tooMany } from './slots.ts';

export interface Batch {
  /** @throws DuestreamError `exists`, `bad-input`, `unavailable`, `indeterminate`, `out-of-memory`, `refused`, `moved` */
  readonly add: (queue: Queue, plan: Plan) => Promise<Scheduled>;
  /** Resolves when every call has settled. */
  readonly quiet: () => Promise<void>;
}

export interface BatchParts {
  readonly jobs: Pick<Jobs, 'schedule'>;
  readonly layouts: Layouts;
  readonly clock: Clock;
  readonly budgetMs: number;
  readonly horizonMs: number;
  readonly recordBytesMax: number;
}

/** One script call: Redis serves nobody else meanwhile. 250 small jobs take it 1.5 ms, 125 of 4 KiB 2 ms. */
export const CHUNK_JOBS_MAX = 250;
export const CHUNK_BYTES_MAX = 512 * 1024;
/** 5,000 jobs or 10 MiB on the way at a time. */
const CHUNKS_IN_FLIGHT_MAX = 20;
const WAITING_MAX = 250_000;
const WAITING_BYTES_MAX = 256 * 1024 * 1024;
/** Layouts change by a command of an operator; more than this in one call is a registry at odds with itself. */
export const MOVES_MAX = 5;
const MOVE_PAUSE_MS = 50;

interface Pending {
  readonly queue: Queue;
  readonly plan: Plan;
  readonly resolve: (scheduled: Scheduled) => void;
  readonly reject: (error: unknown) => void;
  moves: number;
}

interface Chunk {
  readonly ref: PartitionRef;
  readonly mode: Plan['mode'];
  readonly openedMs: number;
  readonly items: Pending[];
  bytes: number;
  /** The layout was read for a job in it. */
  fresh: boolean;
}

interface Batching extends BatchParts {
  /** The chunk of each partition that still takes jobs; it stands in `queued` as well. */
  readonly open: Map<string, Chunk>;
  readonly queued: Chunk[];
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
    ...{ open: new Map(), queued: [], listeners: [], waiting: 0, waitingBytes: 0, inFlight: 0 },
    ...{ flushing: false, away: false },
  };
  return {
    add: (queue, plan) => add(batching, queue, plan),
    quiet: () =>
      batching.waiting === 0 ? Promise.resolve() : new Promise((resolve) => batching.listeners.push(resolve)),
  };
}

function add(batching: Batching, queue: Queue, plan: Plan): Promise<Scheduled> {
  const { layouts } = batching;
  if (batching.waiting >= WAITING_MAX || batching.waitingBytes >= WAITING_BYTES_MAX)
    return Promise.reject(tooMany(batching.waiting));
  return new Promise((resolve, reject) => {
    const pending: Pending = { queue, plan, resolve, reject, moves: 0 };
    batching.waiting += 1;
    batching.waitingBytes += plan.bytes;
    const layout = layouts.known(queue);
    if (layout) place(batching, pending, layout);
    else void placeLater(batching, pending, layouts.load(queue));
  });
}

async function placeLater(batching: Batching, pending: Pending, loading: Promise<Layout>): Promise<void> {
  try {
    place(batching, pending, await loading, true);
  } catch (error) {
    fail(batching, pending, error);
  }
}

function place(batching: Batching, pending: Pending, layout: Layout, fresh = false): void {
  const { open, clock, queued } = batching;
  const { id, mode, bytes } = pending.plan;
  const ref = homeOf(layout, id);
  let chunk = open.get(ref.keys.jobs);
  // Another mode closes the chunk, so that calls for one id are sent in the order they were made.
  const fits =
    chunk?.ref === ref &&
    chunk.mode === mode &&
    chunk.items.length < CHUNK_JOBS_MAX &&
    chunk.bytes + bytes <= CHUNK_BYTES_MAX;
  if (!chunk || !fits) {
    chunk = { ref, mode, openedMs: clock.monotonicMs(), items: [], bytes: 0, fresh };
    open.set(ref.keys.jobs, chunk);
    queued.push(chunk);
  }
  chunk.items.push(pending);
  chunk.bytes += bytes;
  chunk.fresh ||= fresh;
  if (batching.flushing) return;
  batching.flushing = true;
  setImmediate(() => flush(batching));
}

function flush(batching: Batching): void {
  const { queued, open } = batching;
  batching.flushing = false;
  while (batching.inFlight < CHUNKS_IN_FLIGHT_MAX) {
    const chunk = queued.shift();
    if (!chunk) return;
    if (open.get(chunk.ref.keys.jobs) === chunk) open.delete(chunk.ref.keys.jobs);
    batching.inFlight += 1;
    void send(batching, chunk);
  }
}

async function send(batching: Batching, chunk: Chunk): Promise<void> {
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
}

/** Says whether the call is settled; what is `later` is sent again. */
function answer(batching: Batching, pending: Pending, reply: ScheduleReply | undefined): boolean {
  try {
    if (!reply) throw new Error('the script replied to fewer jobs than it was sent');
    if (reply.kind === 'later') return false;
    pending.resolve(scheduledOf(pending.queue.name, pending.plan, reply));
  } catch (error) {
    pending.reject(error);
  }
  settled(batching, pending);
  return true;
}

function fail(batching: Batching, pending: Pending, error: unknown): void {
  pending.reject(failureOf(pending.queue.name, pending.plan, error));
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
