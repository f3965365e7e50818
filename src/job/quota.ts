/**
 * How much a queue may hold: jobs that wait or run, and the bytes of their records. It is stored in the registry of queues,
 * and each partition has its share beside its jobs, where `schedule` reads it with what it reads anyway.
 */

import type { QueueSettings } from './queue-settings.ts';

/** What a queue, or one of its partitions, may hold. 0: as much as there is. */
export interface Quota {
  /** Jobs that wait or run. */
  readonly pending: number;
  /** Bytes of their records. */
  readonly bytes: number;
}

export const NO_QUOTA: Quota = Object.freeze({ pending: 0, bytes: 0 });

/** The share of each of several partitions: rounded up, so that none is 0. Undefined: nobody ever set a limit. */
export function quotaShare(
  { maxPending, maxBytes }: Pick<QueueSettings, 'maxPending' | 'maxBytes'>,
  partitions: number,
): Quota | undefined {
  if (maxPending === undefined && maxBytes === undefined) return undefined;
  const share = (limit = 0) => Math.ceil(limit / partitions);
  return Object.freeze({ pending: share(maxPending), bytes: share(maxBytes) });
}

/** A limit, and how much of it is used. */
export interface QuotaUse {
  /** Jobs that wait or run. */
  readonly pending: number;
  /** 0: no limit. */
  readonly pendingMax: number;
  /** Bytes of their records, as the sum that is kept says; 0 without a limit, as nobody counts then. */
  readonly bytes: number;
  /** 0: no limit. */
  readonly bytesMax: number;
}

/**
 * From the fields `quota` and `held` of a partition, and how many jobs there are; undefined without limits. Where fewer are
 * there than were counted, somebody did not count what he took away: as `lua/lib/quota.lua`.
 */
export function quotaUse(
  { quota = '', held = '' }: { readonly quota?: string | undefined; readonly held?: string | undefined },
  pending: number,
): QuotaUse | undefined {
  const [, pendingMax, bytesMax] = /^(\d+) (\d+)$/.exec(quota) ?? [];
  if (pendingMax === undefined) return undefined;
  const [, weight, count] = /^(\d+) (\d+)$/.exec(held) ?? [];
  const counted = Number(count ?? 0);
  const sum = pending < counted ? Math.floor((Number(weight) * pending) / counted) : Number(weight ?? 0);
  const bytes = Number(bytesMax) === 0 ? 0 : sum;
  return { pending, pendingMax: Number(pendingMax), bytes, bytesMax: Number(bytesMax) };
}

/** Of all partitions together; undefined where none has limits. */
export function quotaSum(all: readonly (QuotaUse | undefined)[]): QuotaUse | undefined {
  const some = all.filter((one) => one !== undefined);
  if (some.length === 0) return undefined;
  const sum = (of: (one: QuotaUse) => number) => some.reduce((total, one) => total + of(one), 0);
  return {
    pending: sum((one) => one.pending),
    pendingMax: sum((one) => one.pendingMax),
    bytes: sum((one) => one.bytes),
    bytesMax: sum((one) => one.bytesMax),
  };
}
