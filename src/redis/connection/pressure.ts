/**
 * Whether Redis is at its memory limit now. What frees memory is let through there, and so are a retry and a burial,
 * which write the error of the handler as well: a crowd of failing jobs could fill it further with long texts. A ZADD
 * XX GT -inf changes nothing, and Redis refuses it exactly when memory is at the limit.
 */

import type { PartitionKeys } from '../keys.ts';
import type { Redis } from './connect.ts';
import { outageOf } from './outage.ts';

/** False also when Redis gives another answer or none: then the call that follows tells. */
export function isFull(redis: Redis, keys: PartitionKeys): Promise<boolean> {
  return redis.call('ZADD', keys.done, 'XX', 'GT', '-inf', '-').then(
    () => false,
    (error: unknown) => outageOf(error) === 'full',
  );
}
