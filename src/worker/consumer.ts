/**
 * Reads new entries of the queue's partitions, as many as there are free slots and no more: what is delivered and not
 * started would only wait here and be late if this worker died. Started in bulk, run at once.
 *
 * What must always hold: an entry is in the in-flight map before `start` is called, and leaves it only on a final
 * reply. What `start` lets through is executed; a suspect waits in the quarantine; everything else was settled inside
 * the script.
 */
import type { Clock } from '../core/clock.ts';
import type { Emitter } from '../core/events.ts';
import { createLoop, type Idle, idle } from '../core/loop.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { redial } from '../redis/connection/dialing.ts';
import { outageOf, pauseAfter, withRetry } from '../redis/connection/outage.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { READ_JOBS_MAX } from '../redis/transitions/bytes.ts';
import type { Jobs } from '../redis/transitions/jobs.ts';
import { ensureGroup } from '../redis/transitions/ready.ts';
import type { Delivery, StartReply } from '../redis/transitions/replies.ts';
import type { Execute } from './execute.ts';
import type { Expire } from './expiry.ts';
import { trustedUntilMs } from './extender.ts';
import type { Held, Inflight } from './inflight.ts';
import { createParked } from './parked.ts';
import { processQuarantine } from './quarantine.ts';
import { createStreams } from './streams.ts';
import { unblock } from './unblock.ts';
import { createUnstarted } from './unstarted.ts';

export interface ConsumerParts {
  readonly commands: Redis;
  readonly blocking: Redis;
  readonly jobs: Jobs;
  readonly refs: readonly PartitionRef[];
  readonly consumer: string;
  readonly concurrency: number;
  /** Bytes of records per start call. */
  readonly bytesMax: number;
  readonly windowMs: number;
  /** A job under which so many workers died is started alone. */
  readonly suspectCrashes: number;
  readonly jobLeaseMs: number;
  readonly inflight: Inflight;
  readonly execute: Execute;
  readonly expire: Expire;
  readonly clock: Clock;
  readonly events: Emitter;
}

export interface Consumer {
  readonly start: () => void;
  /** After a reconnect: go on at once. */
  readonly wake: () => void;
  /** Stops reading. Entries a last reply brought are still started or handed back by the caller. */
  readonly stop: () => Promise<void>;
  /** One read: waits for a free slot and for data. */
  readonly pass: () => Promise<number | Idle>;
  /** Takes entries that came another way: reclaimed or adopted. */
  readonly take: (ref: PartitionRef, deliveries: readonly Delivery[]) => Promise<void>;
  readonly lastTurnMs: () => number;
  readonly lastProgressMs: () => number;
}

/** How long a start or a release is repeated before its entries are left to adoption. */
const START_BUDGET_MS = 10_000;
/** Most entries per read; they are started in several calls. */
const READ_MAX = 256;

export function createConsumer(parts: ConsumerParts): Consumer {
  const { commands, blocking, jobs, refs, consumer, concurrency, inflight, execute, expire, clock, events } = parts;
  const stopping = new AbortController();
  const untilStop = { clock, budgetMs: START_BUDGET_MS, signal: stopping.signal };
  const starts = new Set<Promise<void>>();
  const ward = processQuarantine.join({ inflight, clock, start: startAlone });
  const read = createStreams({ blocking, refs, consumer });
  const parked = createParked({ queue: refs[0]?.queue ?? '', clock, events });
  const tell = createUnstarted({ queue: refs[0]?.queue ?? '', inflight, clock, events });

  async function pass(): Promise<number | Idle> {
    await inflight.whenFree(concurrency, stopping.signal);
    if (stopping.signal.aborted) return idle(0);
    const free = Math.min(READ_MAX, inflight.free(concurrency));
    // Since the wait resolved, a take-over may have had the slot; the next pass waits again.
    if (free === 0) return idle(0);
    for (const { ref, deliveries } of await read(free)) dispatch(ref, deliveries);
    return 0;
  }

  function dispatch(ref: PartitionRef, deliveries: readonly Delivery[]): void {
    const started = take(ref, deliveries).finally(() => starts.delete(started));
    starts.add(started);
  }

  async function take(ref: PartitionRef, deliveries: readonly Delivery[]): Promise<void> {
    const fresh = deliveries.filter(({ entry }) => !inflight.has(ref, entry));
    // A read and a take-over can both have counted on the same free slot. Or a suspect is alone meanwhile.
    const room = stopping.signal.aborted || !inflight.isOpen() ? 0 : inflight.free(concurrency);
    let rest: readonly Held[] = fresh.slice(0, room).map((delivery) => inflight.add(ref, delivery));
    await handBack(ref, fresh.slice(room));
    while (rest.length > 0 && inflight.isOpen() && !stopping.signal.aborted) {
      const later = await startSome(ref, rest.slice(0, READ_JOBS_MAX), parts.suspectCrashes);
      rest = [...later, ...rest.slice(READ_JOBS_MAX)];
    }
    for (const one of rest) inflight.remove(one);
    const left = rest.map(({ delivery }) => delivery);
    await handBack(ref, left);
  }

  /** What another worker had waits until a suspect is through: handed back, it would only come again. */
  async function takeOver(ref: PartitionRef, deliveries: readonly Delivery[]): Promise<void> {
    await inflight.until(inflight.isOpen, stopping.signal);
    await take(ref, deliveries);
  }

  /** Back to scheduled, where another worker finds them. Without a reply they stay ours, and adoption finds them. */
  async function handBack(ref: PartitionRef, deliveries: readonly Delivery[]): Promise<void> {
    if (deliveries.length === 0) return;
    await withRetry('release', () => jobs.release(ref, deliveries, { consumer }), untilStop).catch(() => undefined);
  }

  /** Starts what fits into one call; returns what was answered `later`, or too late to run it. */
  async function startSome(ref: PartitionRef, held: readonly Held[], suspects: number): Promise<readonly Held[]> {
    const { bytesMax, windowMs } = parts;
    const deliveries = held.map(({ delivery }) => delivery);
    const start = () => {
      const sentMs = clock.monotonicMs();
      for (const one of held) one.leasedMs = sentMs;
      return jobs.start(ref, deliveries, { consumer, bytesMax, windowMs, suspects });
    };
    const replies = await withRetry('start', start, untilStop).catch(() => undefined);
    if (!replies) {
      // Nobody knows whether they were started. Adoption finds them by their idle time and asks again.
      for (const one of held) inflight.remove(one);
      return [];
    }
    const answers = held.map((one, index) => began(one, replies[index]));
    tell.suspects();
    parked.saw(ref.partition, replies.filter(({ kind }) => kind === 'parked').length);
    const late = held.filter((_, index) => answers[index] === 'late');
    if (late.length > 0) await expireSome(ref, late);
    return held.filter((_, index) => answers[index] === 'later');
  }

  async function startAlone(held: Held): Promise<void> {
    tell.suspects();
    // Left to adoption, as without a reply.
    for (const one of await startSome(held.ref, [held], 0)) inflight.remove(one);
  }

  /** Jobs past their expiry. One that is not late after all goes back and comes again. */
  async function expireSome(ref: PartitionRef, held: readonly Held[]): Promise<void> {
    const deliveries = held.map(({ delivery }) => delivery);
    const kept = await expire(ref, deliveries, stopping.signal);
    for (const one of held) inflight.remove(one);
    await handBack(ref, kept);
  }

  function began(held: Held, reply: StartReply | undefined): 'later' | 'late' | 'begun' {
    switch (reply?.kind) {
      case 'late':
        return 'late';
      case 'run':
      case 'again': {
        const nowMs = clock.monotonicMs();
        // Answered so late that others may have it by now: it is asked for again, and the answer says whose it is.
        if (nowMs >= trustedUntilMs(held, { jobLeaseMs: parts.jobLeaseMs, nowMs })) return 'later';
        held.startedMs = nowMs;
        execute(held, reply);
        return 'begun';
      }
      case 'later':
        return 'later';
      case 'suspect':
        // The quarantine was left. What is not started goes back, as with every answer `later`.
        if (stopping.signal.aborted) return 'later';
        ward.admit(held, reply.token);
        return 'begun';
      case 'cancelled':
        tell.cancelled(held);
        inflight.remove(held);
        return 'begun';
      case 'deadLetter':
        tell.deadLetter(held);
        inflight.remove(held);
        return 'begun';
      default:
        inflight.remove(held);
        return 'begun';
    }
  }

  /** A vanished group is made again at 0; a read that timed out means a connection that may never speak again. */
  async function repair(error: unknown): Promise<void> {
    const outage = outageOf(error);
    if (outage === 'no-group') for (const ref of refs) await ensureGroup(commands, ref.keys);
    else if (outage === 'lost' && blocking.status === 'ready') redial(blocking);
  }

  const loop = createLoop({
    who: `consumer of ${refs[0]?.queue ?? ''}`,
    pass,
    probe: () => blocking.ping(),
    clock,
    events,
    pauseAfter,
    onError: repair,
  });
  return {
    start: loop.start,
    wake: loop.wake,
    async stop() {
      stopping.abort();
      // First of all: the read below may take a while to end, and meanwhile a suspect could have its turn.
      const unstarted = ward.leave();
      tell.suspects();
      const returned = unstarted.map(({ ref, delivery }) => handBack(ref, [delivery]));
      const over = new AbortController();
      const ended = loop.stop().finally(() => over.abort());
      // Again and again: the first may reach Redis before the read it is meant to end.
      while (!over.signal.aborted) {
        await unblock(commands, blocking);
        await clock.sleep(UNBLOCK_EVERY_MS, over.signal);
      }
      await ended;
      await Promise.all([...starts, ...returned]);
      parked.stop();
    },
    pass,
    take: takeOver,
    lastTurnMs: loop.lastTurnMs,
    lastProgressMs: loop.lastProgressMs,
  };
}

const UNBLOCK_EVERY_MS = 50;
