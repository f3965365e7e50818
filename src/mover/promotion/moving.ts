/** What a mover is made of, and what it remembers from pass to pass. */

import type { Emitter } from '../../job/events.ts';
import type { Clock } from '../../kernel/clock.ts';
import { isCluster } from '../../redis/connection/cluster/members.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { createServers, type ServerClock } from '../../redis/connection/server-clock.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { createJobs, type Jobs } from '../../redis/scripts/jobs.ts';
import type { Relay } from '../../redis/scripts/passes.ts';
import { createElection, type Election } from '../election/election.ts';
import { createGivingWay, type GivingWay } from '../election/giving-way.ts';
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
  /** A worker in this process that takes what a pass promotes, in the same call. */
  readonly relay?: Relay;
  /** The partition with the settings of its queue as they are now. */
  readonly current?: () => PartitionRef;
  /** How long the end of a job that a broadcast queue has sent is remembered. Default 10 min. */
  readonly windowMs?: number;
  readonly rank?: () => number;
  /** Whether a process of better rank has sent a heartbeat after this monotonic time. */
  readonly betterBeatSince?: (sinceMs: number) => Promise<boolean>;
}

export interface Moving extends Required<MoverParts> {
  readonly jobs: Jobs;
  readonly election: Election;
  readonly pace: Pace;
  readonly standstill: Standstill;
  readonly way: GivingWay;
  /** Cuts the current rest short. */
  readonly wake: () => void;
  readonly server: ServerClock;
  /** Workers are told of what became ready: they do not wait in reads. */
  readonly calls: boolean;
  /** Server time of the next look. A look before it would find nothing, so the clock must not be ahead. */
  nextLookMs: number;
  /** The soonest nudge since promote was sent last: its reply may not know of that job yet. */
  nudgedMs: number;
  soonestLookMs: number;
  promotedMs: number;
  promoted: number;
  /** When the head was seen last, by a pass or by the safety tick. */
  lookedMs: number;
  prolongedMs: number;
  /** The last promote failed. Being elected again is then no progress: the pass goes on until it has promoted. */
  stuck: boolean;
}

/** Of a mover that has not looked yet. */
export function movingOf(parts: MoverParts, wake: () => void): Moving {
  const {
    redis,
    ref,
    clock,
    options,
    rank = () => 0,
    relay = () => undefined,
    current = () => ref,
    windowMs = 600_000,
    betterBeatSince = async () => true,
  } = parts;
  const election = createElection({ ...parts, leaseMs: options.leaseMs, rank });
  return {
    ...parts,
    calls: isCluster(redis),
    rank,
    relay,
    current,
    windowMs,
    betterBeatSince,
    wake,
    jobs: createJobs(redis),
    pace: createPace(),
    server: createServers(redis, clock)(ref),
    standstill: createStandstill(options),
    election,
    way: createGivingWay({ clock, election, rank, betterBeatSince }),
    nextLookMs: 0,
    soonestLookMs: 0,
    nudgedMs: Number.POSITIVE_INFINITY,
    stuck: false,
    promotedMs: Number.NEGATIVE_INFINITY,
    lookedMs: Number.NEGATIVE_INFINITY,
    prolongedMs: Number.NEGATIVE_INFINITY,
    promoted: 0,
  };
}
