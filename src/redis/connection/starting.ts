/**
 * What a service asks of Redis while it starts. Each call is repeated within one bound, so no lost reply ends a start. A
 * start that gives up is `unavailable` and never in doubt: its service is stopped, and the same start may be made again.
 */
import type { Clock } from '../../kernel/clock.ts';
import { type RetryPolicy, withRetry } from './outage.ts';

/** How long a start waits for Redis, and how long it repeats a call. */
export const START_WITHIN_MS = 5000;

export const startPolicy = (clock: Clock, signal?: AbortSignal): RetryPolicy => ({
  clock,
  budgetMs: START_WITHIN_MS,
  ...(signal && { signal }),
});

/** @throws DuestreamError `unavailable` or `refused`, or what the call itself throws */
export const whileStarting = <T>(
  service: string,
  call: () => Promise<T>,
  { clock, signal }: { readonly clock: Clock; readonly signal?: AbortSignal | undefined },
): Promise<T> =>
  withRetry(`start of the ${service}`, call, {
    ...startPolicy(clock, signal),
    harmless: `the ${service} did not start`,
  });
