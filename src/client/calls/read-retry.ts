/**
 * Reading in an outage: repeated like everything else, but a lost reply of a read has changed nothing, so what is
 * left in the end is `unavailable` and never `indeterminate`.
 */
import { type RetryPolicy, withRetry } from '../../redis/connection/outage.ts';

/** @throws DuestreamError `unavailable` or `refused` */
export const withReadRetry = <T>(what: string, call: () => Promise<T>, policy: RetryPolicy): Promise<T> =>
  withRetry(what, call, { ...policy, harmless: 'nothing was changed' });
