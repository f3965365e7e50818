/**
 * Moves due jobs of one partition from `scheduled` to `ready`, while this process leads it.
 *
 * It sleeps until the next due time, which every pass replies. A producer that adds a sooner job nudges it through
 * `K:wake`; if that nudge is lost, the safety tick finds the job at most a second late. The alarm clock is a Node timer
 * (0.3 ms late in the median), never a blocking time-out of Redis (up to 100 ms late).
 *
 * What must always hold: nothing is promoted outside a trusted term; a pass is bounded, so that no other command of
 * Redis waits for long; when the undelivered backlog is at its cap, jobs stay in the zset, where they can be cancelled.
 */
import type { Clock } from '../core/clock.ts';
import type { Emitter } from '../core/events.ts';
import { createLoop, type Idle, idle } from '../core/loop.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { pauseAfter } from '../redis/connection/outage.ts';
import { createServers, type ServerClock } from '../redis/connection/server-clock.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { createJobs, type Jobs } from '../redis/transitions/jobs.ts';
import type { PromoteReply } from '../redis/transitions/replies.ts';
import { createElection, type Election, type Leadership, RANK_STEP_MS } from './election.ts';
import { createPace, type Pace } from './pace.ts';
import { createStandstill, type Standstill } from './standstill.ts';

export interface MoverOptions {
  /** How long a lease lasts. A dead leader is replaced after this time. */
  readonly leaseMs: number;
  /** Most members per pass. */
  readonly batchMax: number;
  /** Most undelivered entries in ready; above, promotion waits. */
  readonly readyMax: number;
  /** Longest rest: the bound on lateness for producers that do not nudge. */
  readonly safetyTickMs: number;
}

export interface MoverParts {
  readonly redis: Redis;
  readonly ref: PartitionRef;
  readonly processId: string;
  readonly options: MoverOptions;
  readonly clock: Clock;
  readonly events: Emitter;
  readonly rank?: () => number;
  /** Whether a process of better rank has sent a heartbeat after this monotonic time. */
  readonly betterBeatSince?: (sinceMs: number) => Promise<boolean>;
}

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
  /** After a reconnect: go on at once. */
  readonly wake: () => void;
  readonly lastProgressMs: () => number;
  readonly lastTurnMs: () => number;
}

/** A leader gives way to a process of better rank after this time, so that a restart does not shuffle leadership. */
const GIVE_WAY_MS = 10_000;
/** After giving way, the better one must have had its chance. */
const RESIGNED_REST_MS = 500;

interface Moving extends Required<MoverParts> {
  readonly jobs: Jobs;
  readonly election: Election;
  readonly pace: Pace;
  readonly standstill: Standstill;
  /** Cuts the current rest short. */
  readonly wake: () => void;
  readonly server: ServerClock;
  /** Server time of the next look. A look before it would find nothing, so the clock must not be ahead. */
  nextLookMs: number;
  /** The soonest nudge since promote was sent last: its reply may not know of that job yet. */
  nudgedMs: number;
  soonestLookMs: number;
  promotedMs: number;
  prolongedMs: number;
  /** The last promote failed. Being elected again is then no progress: the pass goes on until it has promoted. */
  stuck: boolean;
  outrankedSinceMs: number | undefined;
  campaignFromMs: number;
}

export function createMover(parts: MoverParts): Mover {
  const { redis, ref, clock, events } = parts;
  const moving = movingOf(parts, () => loop.wake());
  const run = () => pass(moving);
  const who = `mover of ${ref.queue}:${ref.partition}`;
  const loop = createLoop({ who, pass: run, probe: () => redis.ping(), clock, events, pauseAfter });
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
    wake: loop.wake,
    lastProgressMs: loop.lastProgressMs,
    lastTurnMs: loop.lastTurnMs,
  };
}

function movingOf(parts: MoverParts, wake: () => void): Moving {
  const { redis, ref, clock, options, rank = () => 0, betterBeatSince = async () => true } = parts;
  return {
    ...parts,
    ...{ rank, betterBeatSince, wake, jobs: createJobs(redis), pace: createPace() },
    server: createServers(redis, clock)(ref),
    standstill: createStandstill(options),
    election: createElection({ ...parts, leaseMs: options.leaseMs, rank }),
    ...{ nextLookMs: 0, soonestLookMs: 0, nudgedMs: Number.POSITIVE_INFINITY, stuck: false },
    ...{ promotedMs: Number.NEGATIVE_INFINITY, prolongedMs: Number.NEGATIVE_INFINITY },
    ...{ outrankedSinceMs: undefined, campaignFromMs: Number.NEGATIVE_INFINITY },
  };
}

async function pass(moving: Moving): Promise<number | Idle> {
  const { election, clock, options } = moving;
  const leadership = election.leading();
  if (!leadership) return campaign(moving);
  if (await gaveWay(moving)) return campaign(moving);
  const nowMs = clock.monotonicMs();
  const due = moving.server.earliestMs(nowMs) >= moving.nextLookMs || nowMs - moving.promotedMs >= options.safetyTickMs;
  if (!due) {
    // A timer fires up to a millisecond early; only a long rest needs the lease to be kept meanwhile.
    if (nowMs - moving.prolongedMs >= options.leaseMs / 4) {
      moving.prolongedMs = nowMs;
      await election.renew();
    }
    return election.leading() ? restMs(moving) : 0;
  }
  return promote(moving, leadership);
}

async function campaign(moving: Moving): Promise<number | Idle> {
  const { clock, election } = moving;
  const waitMs = moving.campaignFromMs - clock.monotonicMs();
  if (waitMs > 0) return idle(waitMs);
  moving.nextLookMs = 0;
  moving.promotedMs = Number.NEGATIVE_INFINITY;
  moving.outrankedSinceMs = undefined;
  const nextMs = await election.campaign();
  const leadership = election.leading();
  return moving.stuck && leadership ? promote(moving, leadership) : nextMs;
}

async function promote(moving: Moving, { term }: Leadership): Promise<number> {
  const { clock, jobs, ref, options, election } = moving;
  const sentMs = clock.monotonicMs();
  moving.nudgedMs = Number.POSITIVE_INFINITY;
  const reply = await jobs
    .promote(ref, { term, leaseMs: options.leaseMs, limit: options.batchMax, cap: options.readyMax })
    .catch((error: unknown) => {
      moving.stuck = true;
      election.concede('promote got no reply');
      throw error;
    });
  moving.stuck = false;
  const receivedMs = clock.monotonicMs();
  if (reply.kind === 'fenced') {
    election.concede('fenced');
    return 0;
  }
  election.prolonged(sentMs);
  moving.promotedMs = receivedMs;
  moving.prolongedMs = sentMs;
  moving.server.saw({ sentMs, receivedMs, serverMs: reply.nowMs });
  tell(moving, reply, receivedMs - sentMs);
  return plan(moving, reply, receivedMs);
}

function plan(moving: Moving, reply: Exclude<PromoteReply, { kind: 'fenced' }>, receivedMs: number): number {
  const { pace, options, standstill } = moving;
  pace.promoted(reply.count, receivedMs);
  if (reply.kind === 'capped') {
    return look(moving, reply.nowMs + Math.min(options.safetyTickMs, standstill.restMs(reply.backlog)));
  }
  standstill.over();
  if (reply.kind === 'paused') return look(moving, reply.nowMs + options.safetyTickMs);
  if (reply.count + reply.deadLetters >= options.batchMax) return look(moving, 0);
  moving.soonestLookMs = reply.nowMs + pace.gapMs();
  return look(
    moving,
    Math.max(Math.min(reply.nextMs ?? Number.POSITIVE_INFINITY, moving.nudgedMs), moving.soonestLookMs),
  );
}

function look(moving: Moving, atMs: number): number {
  moving.nextLookMs = atMs;
  return restMs(moving);
}

function restMs(moving: Moving): number {
  const { options, clock, server } = moving;
  const { nextLookMs, promotedMs, prolongedMs } = moving;
  const nowMs = clock.monotonicMs();
  const lookMs = nowMs + nextLookMs - server.earliestMs(nowMs);
  const untilMs = Math.min(lookMs, promotedMs + options.safetyTickMs, prolongedMs + options.leaseMs / 3);
  return Math.max(0, Math.ceil(untilMs - nowMs));
}

function tell({ ref, events }: Moving, reply: Exclude<PromoteReply, { kind: 'fenced' }>, tookMs: number): void {
  const { queue, partition } = ref;
  const { kind: state, count, deadLetters, lateness } = reply;
  events.emit('mover.passed', { queue, partition, state, tookMs });
  if (count + deadLetters === 0) return;
  events.emit('jobs.promoted', { queue, partition, count, deadLetters, lateness, tookMs });
}

/** Never to one that was killed: its heartbeat is there for longer than its lease, and nobody would lead. */
async function gaveWay(moving: Moving): Promise<boolean> {
  const { rank, clock, betterBeatSince, election } = moving;
  if (rank() === 0) moving.outrankedSinceMs = undefined;
  else moving.outrankedSinceMs ??= clock.monotonicMs();
  const sinceMs = moving.outrankedSinceMs;
  if (sinceMs === undefined || clock.monotonicMs() - sinceMs < GIVE_WAY_MS) return false;
  moving.outrankedSinceMs = undefined;
  if (!(await betterBeatSince(sinceMs))) return false;
  moving.campaignFromMs = clock.monotonicMs() + RESIGNED_REST_MS;
  await election.resign('a process of better rank is there');
  return true;
}

/** A free lease is taken in the order of rank; the one who gave way waits for longer. */
function onResigned(moving: Moving): void {
  const { election, clock, rank, wake } = moving;
  if (election.leading()) return;
  moving.campaignFromMs = Math.max(moving.campaignFromMs, clock.monotonicMs() + rank() * RANK_STEP_MS);
  wake();
}

function onSooner(moving: Moving, dueMs: number): void {
  moving.nudgedMs = Math.min(moving.nudgedMs, dueMs);
  const lookMs = Math.max(dueMs, moving.soonestLookMs);
  if (!(lookMs < moving.nextLookMs)) return;
  moving.nextLookMs = lookMs;
  moving.wake();
}
