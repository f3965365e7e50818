/** What every method of a client is made of: calls. `client/session.ts` makes them. */
import type { Queue } from '../../job/queue.ts';
import type { Level } from '../../redis/durable/level.ts';
import type { PlanLimits } from './plan.ts';
import type { Claim, Turn, Turns } from './turns.ts';

/** By which clock a call counts its times. */
export interface CallClock {
  /** Waits until the clock of the primary is known well enough, where it is not. */
  readonly server: { readonly settle: () => Promise<void> | undefined };
  /** @param newId the ids that were reserved for the call @param queue whose jobs are planned */
  readonly limits: (calledMs: number, newId?: PlanLimits['newId'], queue?: Queue<unknown>) => PlanLimits;
}

/** @typeParam P what stands on the connection; a method names what it needs of that */
export interface Calls<P> {
  /** @throws DuestreamError `stopped` */
  readonly check: () => void;
  /** What stands on the connection, if it was made. */
  readonly opened: (level?: Level) => P | undefined;
  readonly connected: (level?: Level) => Promise<P>;
  /** The order of the calls. */
  readonly turns: Turns;
  /** @param turn of a call that may have to wait for others; it ends with the work */
  readonly run: <T>(work: (parts: P) => Promise<T>, level?: Level, turn?: Turn) => Promise<T>;
  /**
   * Its input is read before anything else: what is wrong with it is said also while Redis is away, and what becomes of the
   * caller's objects later does not matter.
   *
   * @param claimsOf what the call changes; without it, the call has no turn
   */
  readonly runChecked: <Input, T>(
    read: () => Input,
    work: (parts: P, input: Input, turn?: Turn) => Promise<T>,
    levelOf?: () => Level | undefined,
    claimsOf?: (input: Input) => readonly Claim[],
  ) => Promise<T>;
  /** A stop waits for this as well. */
  readonly track: <T>(call: Promise<T>) => Promise<T>;
  readonly stop: () => Promise<void>;
}
