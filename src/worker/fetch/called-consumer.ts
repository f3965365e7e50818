/**
 * Takes new entries where Redis is a cluster. One read cannot span partitions there, and one blocked connection for each
 * would grow with them; so nothing blocks. A partition is asked when it calls (`wake-channel.ts`), and its turn delivers and starts in one call
 * (`serve`). What always holds: no more is asked for than there are free slots.
 *
 *  K:work ──call──▶ called ──a free slot──▶ turn, which brings entries ──▶ handlers run
 *                     ▲  ▲                    │ as many as it asked for
 *     tick ───────────┘  └────────────────────┘
 *
 * The tick is the guarantee: each second every partition that is ours is asked, and some of the others, so that a job
 * whose call was lost, or whose workers are full, is found. A partition whose node is away rests, and the others go on.
 */
import { createAbort } from '../../kernel/abort.ts';
import { createLoop, type Idle, idle } from '../../kernel/loop.ts';
import { outageOf, pauseAfter } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { ensureGroup } from '../../redis/scripts/ready.ts';
import { createStarter } from '../run/starter.ts';
import type { Assignment } from './assignment.ts';
import type { Consumer, ConsumerParts } from './consumer.ts';
import type { Calls } from './wake-channel.ts';

export interface CalledParts extends Omit<ConsumerParts, 'blocking'> {
  readonly calls: Calls;
  readonly assignment: Assignment;
  /** The channel on which processes come and go. */
  readonly fleet: string;
}

/** How often it looks without a call. */
const TICK_MS = 1000;
/** The same while calls may be missed. */
const DEAF_MS = 100;
/** A subscriber whose node froze says nothing: it is asked for a sign of life this often. */
const MEND_MS = 5000;
/** In so many ticks every other partition is looked into once. */
const SWEEP_TICKS = 16;
/** A partition that did not answer is left alone for this time. */
const REST_MS = 250;

interface Consuming extends CalledParts {
  readonly stopping: AbortController;
  /** Partitions that are to be asked, in the order of their calls. */
  readonly called: Set<PartitionRef>;
  /** Those that are being asked. */
  readonly asking: Set<PartitionRef>;
  /** Partitions that are heard, and what ends that. */
  readonly heard: Map<PartitionRef, () => void>;
  /** Monotonic ms until when a partition that failed is left alone. */
  readonly resting: Map<PartitionRef, number>;
  readonly wake: () => void;
  /** Monotonic ms of the next tick. */
  tickMs: number;
  mendedMs: number;
  /** Where the sweep goes on. */
  swept: number;
  /** Since the last pass. */
  answered: boolean;
  failure: { readonly error: unknown } | undefined;
}

export function createCalledConsumer(parts: CalledParts): Consumer {
  const { refs, clock, events, turns, commands } = parts;
  const queue = refs[0]?.queue ?? '';
  const starter = createStarter({ ...parts, queue });
  const consuming: Consuming = {
    ...parts,
    stopping: createAbort(),
    called: new Set(refs),
    asking: new Set(),
    heard: new Map(),
    resting: new Map(),
    wake: () => loop.wake(),
    swept: 0,
    answered: false,
    failure: undefined,
    tickMs: Number.NEGATIVE_INFINITY,
    mendedMs: clock.monotonicMs(),
  };
  // What calls has its turn before a busy partition is given more.
  turns.yieldWhile(() => consuming.called.size > 0);
  const loop = createLoop({
    who: `consumer of ${queue}`,
    pass: () => pass(consuming),
    probe: () => commands.ping(),
    clock,
    events,
    pauseAfter,
  });
  const forgetFleet = parts.calls.listen(parts.fleet, parts.assignment.outdate);
  return {
    start: loop.start,
    wake() {
      consuming.tickMs = Number.NEGATIVE_INFINITY;
      loop.wake();
    },
    async stop() {
      consuming.stopping.abort();
      for (const forget of [...consuming.heard.values(), forgetFleet]) forget();
      // First of all: what is asked for now is released, and no suspect has its turn.
      const released = starter.stop();
      await loop.stop();
      await released;
      starter.end();
    },
    pass: () => pass(consuming),
    take: starter.take,
    lastTurnMs: loop.lastTurnMs,
    lastProgressMs: loop.lastProgressMs,
  };
}

async function pass(consuming: Consuming): Promise<number | Idle> {
  const { inFlight, stopping, called, clock, refs, resting } = consuming;
  await inFlight.whenFree(stopping.signal);
  if (stopping.signal.aborted) return idle(0);
  const nowMs = clock.monotonicMs();
  if (nowMs >= consuming.tickMs) tick(consuming, nowMs);
  // None is waited for: one that does not answer must not hold up the others.
  for (const ref of chosen(consuming)) void ask(consuming, ref).finally(consuming.wake);
  const { answered, failure } = consuming;
  [consuming.answered, consuming.failure] = [false, undefined];
  // The others go on as if nothing had happened; when none of them answers, it is an outage.
  if (failure && resting.size === refs.length) throw failure.error;
  const untilTickMs = Math.max(1, consuming.tickMs - clock.monotonicMs());
  const waitMs = called.size > 0 ? Math.min(REST_MS, untilTickMs) : untilTickMs;
  return answered ? waitMs : idle(waitMs);
}

/** Hears whom it should hear, and calls for a look into what is ours and a part of the rest. */
function tick(consuming: Consuming, nowMs: number): void {
  const { assignment, refs, called, calls } = consuming;
  // Without an answer it stays as it was.
  assignment.refresh().then(
    () => hear(consuming),
    () => undefined,
  );
  const others = refs.filter((ref) => !assignment.isMine(ref));
  const some = Math.ceil(others.length / SWEEP_TICKS);
  for (let nth = 0; nth < some; nth += 1) {
    const ref = others[(consuming.swept + nth) % others.length];
    if (ref) called.add(ref);
  }
  consuming.swept += some;
  for (const ref of refs) if (assignment.isMine(ref)) called.add(ref);
  if (calls.isDeaf() || nowMs - consuming.mendedMs >= MEND_MS) {
    consuming.mendedMs = nowMs;
    calls.mend();
  }
  consuming.tickMs = nowMs + (calls.isDeaf() ? DEAF_MS : TICK_MS);
}

function hear({ assignment, refs, calls, heard, called, stopping, wake }: Consuming): void {
  if (stopping.signal.aborted) return;
  const wanted = new Set(refs.filter(assignment.isMine));
  for (const [ref, forget] of heard) {
    if (wanted.has(ref)) continue;
    forget();
    heard.delete(ref);
  }
  for (const ref of wanted) {
    if (heard.has(ref)) continue;
    const onCall = () => {
      called.add(ref);
      wake();
    };
    heard.set(ref, calls.listen(ref.keys.work, onCall));
  }
}

/** As many as there are free slots, and none that is being asked or rests. */
function chosen({ called, asking, resting, refs, inFlight, clock, turns }: Consuming) {
  const nowMs = clock.monotonicMs();
  const isFree = (ref: PartitionRef) => !asking.has(ref) && (resting.get(ref) ?? 0) <= nowMs;
  // The queue may have been laid out anew.
  for (const ref of called) if (!refs.includes(ref)) called.delete(ref);
  const some = [...called].filter(isFree).slice(0, inFlight.free());
  for (const ref of some) {
    called.delete(ref);
    turns.expectMore(ref);
  }
  return some;
}

async function ask(consuming: Consuming, ref: PartitionRef): Promise<void> {
  const { turns, asking, called, resting, commands, clock } = consuming;
  asking.add(ref);
  try {
    if (await turns.at(ref)) called.add(ref);
    consuming.answered = true;
    resting.delete(ref);
  } catch (error) {
    called.add(ref);
    consuming.failure = { error };
    resting.set(ref, clock.monotonicMs() + REST_MS);
    if (outageOf(error) === 'no-group') await ensureGroup(commands, ref.keys).catch(() => undefined);
  } finally {
    asking.delete(ref);
  }
}
