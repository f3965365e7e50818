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
import { createServers } from '../redis/connection/server-clock.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { createJobs } from '../redis/transitions/jobs.ts';
import type { PromoteReply } from '../redis/transitions/replies.ts';
import { createElection, type Leadership, RANK_STEP_MS } from './election.ts';
import { createPace } from './pace.ts';
import { createStandstill } from './standstill.ts';

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

export function createMover(parts: MoverParts): Mover {
  const { redis, ref, options, clock, events, rank = () => 0, betterBeatSince = async () => true } = parts;
  const jobs = createJobs(redis);
  const election = createElection({ ...parts, leaseMs: options.leaseMs, rank });
  const pace = createPace();
  const standstill = createStandstill(options);
  const server = createServers(redis, clock)(ref);
  /** Server time of the next look. A look before it would find nothing, so the clock must not be ahead. */
  let nextLookMs = 0;
  /** The soonest nudge since promote was sent last: its reply may not know of that job yet. */
  let nudgedMs = Number.POSITIVE_INFINITY;
  let soonestLookMs = 0;
  let promotedMs = Number.NEGATIVE_INFINITY;
  let prolongedMs = Number.NEGATIVE_INFINITY;
  /** The last promote failed. Being elected again is then no progress: the pass goes on until it has promoted. */
  let stuck = false;
  let outrankedSinceMs: number | undefined;
  let campaignFromMs = Number.NEGATIVE_INFINITY;

  async function pass(): Promise<number | Idle> {
    const leadership = election.leading();
    if (!leadership) return campaign();
    if (await gaveWay()) return campaign();
    const nowMs = clock.monotonicMs();
    const due = server.earliestMs(nowMs) >= nextLookMs || nowMs - promotedMs >= options.safetyTickMs;
    if (!due) {
      // A timer fires up to a millisecond early; only a long rest needs the lease to be kept meanwhile.
      if (nowMs - prolongedMs >= options.leaseMs / 4) {
        prolongedMs = nowMs;
        await election.renew();
      }
      return election.leading() ? restMs() : 0;
    }
    return promote(leadership);
  }

  async function campaign(): Promise<number | Idle> {
    const waitMs = campaignFromMs - clock.monotonicMs();
    if (waitMs > 0) return idle(waitMs);
    nextLookMs = 0;
    promotedMs = Number.NEGATIVE_INFINITY;
    outrankedSinceMs = undefined;
    const nextMs = await election.campaign();
    const leadership = election.leading();
    return stuck && leadership ? promote(leadership) : nextMs;
  }

  async function promote({ term }: Leadership): Promise<number> {
    const sentMs = clock.monotonicMs();
    nudgedMs = Number.POSITIVE_INFINITY;
    const reply = await jobs
      .promote(ref, { term, leaseMs: options.leaseMs, limit: options.batchMax, cap: options.readyMax })
      .catch((error: unknown) => {
        stuck = true;
        election.concede('promote got no reply');
        throw error;
      });
    stuck = false;
    const receivedMs = clock.monotonicMs();
    if (reply.kind === 'fenced') {
      election.concede('fenced');
      return 0;
    }
    election.prolonged(sentMs);
    promotedMs = receivedMs;
    prolongedMs = sentMs;
    server.saw({ sentMs, receivedMs, serverMs: reply.nowMs });
    tell(reply, receivedMs - sentMs);
    return plan(reply, receivedMs);
  }

  function plan(reply: Exclude<PromoteReply, { kind: 'fenced' }>, receivedMs: number): number {
    pace.moved(reply.count, receivedMs);
    if (reply.kind === 'capped') {
      return look(reply.nowMs + Math.min(options.safetyTickMs, standstill.restMs(reply.backlog)));
    }
    standstill.over();
    if (reply.kind === 'paused') return look(reply.nowMs + options.safetyTickMs);
    if (reply.count + reply.deadLetters >= options.batchMax) return look(0);
    soonestLookMs = reply.nowMs + pace.gapMs();
    return look(Math.max(Math.min(reply.nextMs ?? Number.POSITIVE_INFINITY, nudgedMs), soonestLookMs));
  }

  function look(atMs: number): number {
    nextLookMs = atMs;
    return restMs();
  }

  function restMs(): number {
    const untilMs = Math.min(
      clock.monotonicMs() + nextLookMs - server.earliestMs(),
      promotedMs + options.safetyTickMs,
      prolongedMs + options.leaseMs / 3,
    );
    return Math.max(0, Math.ceil(untilMs - clock.monotonicMs()));
  }

  function tell(reply: Exclude<PromoteReply, { kind: 'fenced' }>, tookMs: number): void {
    const { queue, partition } = ref;
    events.emit('mover.passed', { queue, partition, state: reply.kind, tookMs });
    if (reply.count + reply.deadLetters === 0) return;
    const { count, deadLetters, lateness } = reply;
    events.emit('jobs.promoted', { queue, partition, count, deadLetters, lateness, tookMs });
  }

  /** Never to one that was killed: its heartbeat is there for longer than its lease, and nobody would lead. */
  async function gaveWay(): Promise<boolean> {
    if (rank() === 0) outrankedSinceMs = undefined;
    else outrankedSinceMs ??= clock.monotonicMs();
    const sinceMs = outrankedSinceMs;
    if (sinceMs === undefined || clock.monotonicMs() - sinceMs < GIVE_WAY_MS) return false;
    outrankedSinceMs = undefined;
    if (!(await betterBeatSince(sinceMs))) return false;
    campaignFromMs = clock.monotonicMs() + RESIGNED_REST_MS;
    await election.resign('a process of better rank is there');
    return true;
  }

  /** A free lease is taken in the order of rank; the one who gave way waits for longer. */
  function onResigned(): void {
    if (election.leading()) return;
    campaignFromMs = Math.max(campaignFromMs, clock.monotonicMs() + rank() * RANK_STEP_MS);
    loop.wake();
  }

  function onSooner(dueMs: number): void {
    nudgedMs = Math.min(nudgedMs, dueMs);
    const lookMs = Math.max(dueMs, soonestLookMs);
    if (!(lookMs < nextLookMs)) return;
    nextLookMs = lookMs;
    loop.wake();
  }

  const who = `mover of ${ref.queue}:${ref.partition}`;
  const loop = createLoop({ who, pass, probe: () => redis.ping(), clock, events, pauseAfter });
  return {
    ref,
    start: loop.start,
    async stop() {
      await loop.stop();
      await election.resign('stopped').catch(() => undefined);
    },
    pass,
    nudge(message) {
      const dueMs = Number(message);
      if (message === 'resigned') onResigned();
      else if (Number.isFinite(dueMs)) onSooner(dueMs);
    },
    leading: election.leading,
    wake: loop.wake,
    lastProgressMs: loop.lastProgressMs,
    lastTurnMs: loop.lastTurnMs,
  };
}

/** After giving way, the better one must have had its chance. */
const RESIGNED_REST_MS = 500;
