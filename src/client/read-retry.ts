/**
 * Reading in an outage: repeated like everything else, but a lost reply of a read has changed nothing, so what is
 * left in the end is `unavailable` and never `indeterminate`.
 */
import { DuestreamError, Indeterminate } from '../core/errors.ts';
import { type RetryPolicy, withRetry } from '../redis/connection/outage.ts';

/** @throws DuestreamError `unavailable` or `refused` */
export async function withReadRetry<T>(what: string, call: () => Promise<T>, policy: RetryPolicy): Promise<T> {
  try {
    return await withRetry(what, call, policy);
  } catch (error) {
    if (!(error instanceof Indeterminate)) throw error;
    throw new DuestreamError('unavailable', `${what}: Redis does not answer; nothing was changed`, { cause: error });
  }
}
