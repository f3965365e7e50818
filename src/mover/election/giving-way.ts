/**
 * When a leader of worse rank gives way to a better one, and for how long it then stays out of the way. It spreads
 * leadership over the daemons and decides nothing.
 */
import type { Clock } from '../../kernel/clock.ts';
import { type Election, RANK_STEP_MS } from './election.ts';

export interface GivingWay {
  /** Whether better ones have been there for so long that it is time to ask for them. */
  readonly isTime: () => boolean;
  /** Gives the lease back, but never to one that was killed: its heartbeat is there for longer than its lease. */
  readonly give: () => Promise<boolean>;
  /** A new term has begun. */
  readonly anew: () => void;
  /** Somebody gave the lease back. A free one is taken in the order of rank. */
  readonly onResigned: () => void;
  /** Milliseconds until this process may campaign; 0 or less: at once. */
  readonly outForMs: () => number;
}

/** A leader gives way to a process of better rank after this time, so that a restart does not shuffle leadership. */
const GIVE_WAY_MS = 10_000;
/** After giving way, the better one must have had its chance. */
const RESIGNED_REST_MS = 500;

export function createGivingWay(parts: {
  readonly clock: Clock;
  readonly election: Pick<Election, 'resign'>;
  readonly rank: () => number;
  /** Whether a process of better rank has sent a heartbeat after this monotonic time. */
  readonly betterBeatSince: (sinceMs: number) => Promise<boolean>;
}): GivingWay {
  const { clock, election, rank, betterBeatSince } = parts;
  let outrankedSinceMs: number | undefined;
  let campaignFromMs = Number.NEGATIVE_INFINITY;
  return {
    isTime() {
      if (rank() === 0) outrankedSinceMs = undefined;
      else outrankedSinceMs ??= clock.monotonicMs();
      return outrankedSinceMs !== undefined && clock.monotonicMs() - outrankedSinceMs >= GIVE_WAY_MS;
    },
    async give() {
      const sinceMs = outrankedSinceMs;
      outrankedSinceMs = undefined;
      if (sinceMs === undefined || !(await betterBeatSince(sinceMs))) return false;
      campaignFromMs = clock.monotonicMs() + RESIGNED_REST_MS;
      await election.resign('a process of better rank is there');
      return true;
    },
    anew() {
      outrankedSinceMs = undefined;
    },
    onResigned() {
      campaignFromMs = Math.max(campaignFromMs, clock.monotonicMs() + rank() * RANK_STEP_MS);
    },
    outForMs: () => campaignFromMs - clock.monotonicMs(),
  };
}
