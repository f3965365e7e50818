/**
 * Moves due jobs of one partition from `scheduled` to `ready`, or of a broadcast queue to `cast`, while this process leads it.
 *
 * It sleeps until the next due time, which every pass replies. A producer that adds a sooner job nudges it through
 * `K:wake`; if that nudge is lost, the safety tick finds the job at most a second late. The alarm clock is a Node timer
 * (0.3 ms late in the median), never a blocking time-out of Redis (up to 100 ms late). The safety tick reads the head of
 * the zset and no more: a pass is made when something is due, and every few seconds for the rest of what it looks at.
 *
 * What must always hold: nothing is promoted outside a trusted term; a pass is bounded, so that no other command of
 * Redis waits for long; when the undelivered backlog is at its cap, jobs stay in the zset, where they can be cancelled.
 */
import { createLoop, type Idle, idle } from '../../kernel/loop.ts';
import { memberOf } from '../../redis/connection/cluster/members.ts';
import { pauseAfter } from '../../redis/connection/outage.ts';
import { isBroadcast, type PartitionRef } from '../../redis/keys.ts';
import { headDue } from '../../redis/read/due-next.ts';
import type { LeadersPass, Passed, PromoteReply } from '../../redis/scripts/passes.ts';
import type { Leadership } from '../election/election.ts';
import { type MoverParts, type Moving, movingOf } from './moving.ts';

export interface Mover {
  readonly ref: PartitionRef;
  readonly start: () => void;
  /** Stops and gives the lease back. */
  readonly stop: () => Promise<void>;
  /** One step: campaign, or promote once. Returns milliseconds until the next. */
  readonly pass: () => Promise<number | Idle>;
  /** A message of `K:wake`: a due time in ms, or `resigned`. */
  readonly nudge: (message: string) => void;
  readonly leading: () => Leadership | undefined;
  /** How many jobs it has promoted. */
  readonly promoted: () => number;
  /** Epoch ms by the clock of Redis, as its answers have told it. */
  readonly serverMs: () => number;
  /** After a reconnect: go on at once. */
  readonly wake: () => void;
  readonly lastProgressMs: () => number;
  readonly lastTurnMs: () => number;
}

/** While nothing is due, a pass is made this often: it tells of a key of another type, and advertises the wake-up anew. */
const WHOLE_PASS_MS = 15_000;
/** So much of a lease may be over before a pass prolongs it. */
const PROLONG_AFTER = 1 / 10;

export function createMover(parts: MoverParts): Mover {
  const { redis, ref, clock, events } = parts;
  const moving = movingOf(parts, () => loop.wake());
  const run = () => pass(moving);
  const who = `mover of ${ref.queue}:${ref.partition}`;
  const loop = createLoop({
    who,
    pass: run,
    probe: () => memberOf(redis, ref.keys.meta).ping(),
    clock,
    events,
    pauseAfter,
  });
  return {
    ref,
    start: loop.start,
    async stop() {
      await loop.stop();
      await moving.election.resign('stopped').catch(() => undefined);
    },
    pass: run,
    nudge(message) {
      const dueMs = Number(message);
      if (message === 'resigned') onResigned(moving);
      else if (Number.isFinite(dueMs)) onSooner(moving, dueMs);
    },
    leading: moving.election.leading,
    promoted: () => moving.promoted,
    serverMs: () => moving.server.nowMs(),
    wake: loop.wake,
    lastProgressMs: loop.lastProgressMs,
    lastTurnMs: loop.lastTurnMs,
  };
}

async function pass(moving: Moving): Promise<number | Idle> {
  const { election, way, clock, options } = moving;
  const leadership = election.leading();
  if (!leadership || (way.isTime() && (await way.give()))) return campaign(moving);
  if (isDue(moving)) return promote(moving, leadership);
  const nowMs = clock.monotonicMs();
  if (nowMs - moving.lookedMs >= options.safetyTickMs) {
    const isOwing = nowMs - moving.promotedMs >= WHOLE_PASS_MS || (await sawDue(moving));
    const still = election.leading();
    if (isOwing && still) return promote(moving, still);
  }
  // A timer fires up to a millisecond early; only a long rest needs the lease to be kept meanwhile.
  if (nowMs - moving.prolongedMs >= options.leaseMs / 4) {
    moving.prolongedMs = nowMs;
    await election.renew();
  }
  return election.leading() ? restMs(moving) : 0;
}

const isDue = ({ clock, server, nextLookMs }: Moving) => server.earliestMs(clock.monotonicMs()) >= nextLookMs;

/** What a producer put that does not nudge. The clock of Redis is asked as well: it may have been set. */
async function sawDue(moving: Moving): Promise<boolean> {
  const { redis, ref, server, clock } = moving;
  const [dueMs] = await Promise.all([headDue(redis, ref), server.sample()]);
  moving.lookedMs = clock.monotonicMs();
  moving.nextLookMs = Math.min(moving.nextLookMs, Math.max(dueMs, moving.soonestLookMs));
  return isDue(moving);
}

async function campaign(moving: Moving): Promise<number | Idle> {
  const { election, way } = moving;
  const waitMs = way.outForMs();
  if (waitMs > 0) return idle(waitMs);
  moving.nextLookMs = 0;
  moving.promotedMs = Number.NEGATIVE_INFINITY;
  moving.prolongedMs = Number.NEGATIVE_INFINITY;
  way.anew();
  const nextMs = await election.campaign();
  const leadership = election.leading();
  return moving.stuck && leadership ? promote(moving, leadership) : nextMs;
}

async function promote(moving: Moving, { term }: Leadership): Promise<number> {
  const { clock, options, election } = moving;
  const sentMs = clock.monotonicMs();
  const prolongs = sentMs - moving.prolongedMs >= options.leaseMs * PROLONG_AFTER;
  moving.nudgedMs = Number.POSITIVE_INFINITY;
  const pass = { term, limit: options.batchMax, cap: options.readyMax };
  const passed = await sent(moving, { ...pass, leaseMs: prolongs ? options.leaseMs : undefined }).catch(
    (error: unknown) => {
      moving.stuck = true;
      election.concede('promote got no reply');
      throw error;
    },
  );
  moving.stuck = false;
  const { reply, receivedMs, limit } = passed;
  if (reply.kind === 'fenced') {
    election.concede('fenced');
    return 0;
  }
  if (prolongs) {
    election.prolonged(sentMs);
    moving.prolongedMs = sentMs;
  }
  moving.promotedMs = moving.lookedMs = receivedMs;
  moving.server.saw({ sentMs, receivedMs, serverMs: reply.nowMs });
  tell(moving, reply, receivedMs - sentMs);
  return plan(moving, reply, { receivedMs, isFull: reply.count + reply.deadLetters >= limit });
}

/** With a worker in this process that has room, as a part of its turn. What is broadcast has no worker. */
async function sent({ jobs, ref, clock, relay, current, windowMs }: Moving, pass: LeadersPass): Promise<Passed> {
  const { broadcast } = current();
  if (broadcast?.isOn) {
    const limit = Math.min(pass.limit, broadcast.max);
    const reply = await jobs.cast(current(), { ...pass, limit, broadcast, windowMs });
    return { reply, receivedMs: clock.monotonicMs(), limit };
  }
  const relayed = relay(ref, pass);
  if (relayed) return relayed;
  const reply = await jobs.promote(ref, pass);
  return { reply, receivedMs: clock.monotonicMs(), limit: pass.limit };
}

function plan(
  moving: Moving,
  reply: Exclude<PromoteReply, { kind: 'fenced' }>,
  { receivedMs, isFull }: { readonly receivedMs: number; readonly isFull: boolean },
): number {
  const { pace, options, standstill } = moving;
  moving.promoted += reply.count;
  if (reply.count > 0 && moving.calls && !isBroadcast(moving.current())) callWorkers(moving, reply.count);
  pace.promoted(reply.count, receivedMs);
  if (reply.kind === 'capped') {
    return look(moving, reply.nowMs + Math.min(options.safetyTickMs, standstill.restMs(reply.backlog)));
  }
  standstill.over();
  if (reply.kind === 'paused') return look(moving, reply.nowMs + options.safetyTickMs);
  if (isFull) return look(moving, 0);
  moving.soonestLookMs = reply.nowMs + pace.gapMs();
  return look(
    moving,
    Math.max(Math.min(reply.nextMs ?? Number.POSITIVE_INFINITY, moving.nudgedMs), moving.soonestLookMs),
  );
}

/** In a cluster no worker waits in a read; one that misses this looks within a second. */
function callWorkers({ redis, ref }: Moving, count: number): void {
  redis.spublish(ref.keys.work, String(count)).catch(() => undefined);
}

function look(moving: Moving, atMs: number): number {
  moving.nextLookMs = atMs;
  return restMs(moving);
}

function restMs(moving: Moving): number {
  const { options, clock, server } = moving;
  const { nextLookMs, lookedMs, prolongedMs } = moving;
  const nowMs = clock.monotonicMs();
  const lookMs = nowMs + nextLookMs - server.earliestMs(nowMs);
  const untilMs = Math.min(lookMs, lookedMs + options.safetyTickMs, prolongedMs + options.leaseMs / 3);
  return Math.max(0, Math.ceil(untilMs - nowMs));
}

function tell({ ref, events }: Moving, reply: Exclude<PromoteReply, { kind: 'fenced' }>, tookMs: number): void {
  const { queue, partition } = ref;
  const { kind: state, count, deadLetters, lateness } = reply;
  events.emit('mover.passed', { queue, partition, state, tookMs });
  if (count + deadLetters === 0) return;
  events.emit('jobs.promoted', { queue, partition, count, deadLetters, lateness, tookMs });
}

function onResigned({ election, way, wake }: Moving): void {
  if (election.leading()) return;
  way.onResigned();
  wake();
}

function onSooner(moving: Moving, dueMs: number): void {
  moving.nudgedMs = Math.min(moving.nudgedMs, dueMs);
  const lookMs = Math.max(dueMs, moving.soonestLookMs);
  if (!(lookMs < moving.nextLookMs)) return;
  moving.nextLookMs = lookMs;
  moving.wake();
}
