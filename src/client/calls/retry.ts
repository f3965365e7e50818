/**
 * Calls that are repeated in an outage: a read, which may be made again as often as it takes, and a call of several
 * steps.
 */

import { systemClock } from '../../kernel/clock.ts';
import { memberOf } from '../../redis/connection/cluster/members.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { type RetryPolicy, type Whole, withRetry } from '../../redis/connection/outage.ts';
import { controlKeys } from '../../redis/keys.ts';

/** @throws DuestreamError `unavailable` or `refused` */
export const withReadRetry = <T>(what: string, call: () => Promise<T>, policy: RetryPolicy): Promise<T> =>
  withRetry(what, call, { ...policy, harmless: 'nothing was changed' });

/**
 * Waits for the server of the registry, which every process needs. In a cluster another node may be down: its queues alone do not answer.
 *
 * @throws DuestreamError `unavailable` or `refused`
 */
export const registryAnswers = (redis: Redis, namespace: string, policy: RetryPolicy): Promise<unknown> =>
  withReadRetry('ready', () => memberOf(redis, controlKeys(namespace).queues).ping(), policy);

// A call of several steps. Each step is repeated by itself, so none that was carried out is met by its own repetition;
// all share one budget. Once a step has written, or may have, the call says `indeterminate` in an outage and never
// `unavailable`.

export interface Repeating {
  /** Changes nothing, or nothing that anybody can see. */
  readonly read: <T>(step: () => Promise<T>) => Promise<T>;
  /** A step is told whether an earlier try of it may have been carried out. */
  readonly write: <T>(step: (mayHaveRun: boolean) => Promise<T>) => Promise<T>;
  /** The same for a step that has repetitions of its own. */
  readonly repeated: <T>(step: (what: string, policy: RetryPolicy) => Promise<T>) => Promise<T>;
}

export function createRepeating(what: string, { clock, budgetMs }: Pick<RetryPolicy, 'clock' | 'budgetMs'>): Repeating {
  const endMs = clock.monotonicMs() + budgetMs;
  const whole: Whole = { isBegun: false };
  const policy = (): RetryPolicy => ({ clock, budgetMs: endMs - clock.monotonicMs(), whole });
  return {
    read: (step) => withReadRetry(what, step, policy()),
    write: (step) => withRetry(what, step, policy()),
    repeated: (step) => step(what, policy()),
  };
}

/** Without repetitions: whoever calls makes the whole call again. */
export const once: Repeating = {
  read: (step) => step(),
  write: (step) => step(false),
  repeated: (step) => step('once', { clock: systemClock, budgetMs: 0 }),
};
