/**
 * Makes the hours that are over of the minutes, and the days of the hours: `redis/read/history.ts` says what that is. The leader of the first
 * partition does it for the whole queue, a minute after the hour, when the leaders of the others have written their states. A
 * leader that was away makes up for what it missed, as long as the minutes are there.
 */
import { HOUR_MINUTES } from '../../job/happened.ts';
import { MINUTES_MAX } from '../../job/minutes.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { lastHour, makeHours } from '../../redis/read/history.ts';
import { findQueue, partitionsOf } from '../../redis/scripts/queues.ts';

export interface HourKeeperParts {
  readonly redis: Redis;
  readonly namespace: string;
  readonly ref: PartitionRef;
}

/** The hour of now and the one before it may have no states any more at their beginning. */
const BACK_MAX = MINUTES_MAX / HOUR_MINUTES - 3;

/** @returns what is called with each minute of a leader, and does something once an hour */
export function createHourKeeper({ redis, namespace, ref }: HourKeeperParts): (minute: number) => Promise<void> {
  /** Up to where this process has looked, and what Redis said then of the last hour with a line. */
  let looked: { readonly hour: number; readonly at: number | undefined } | undefined;
  return async (minute) => {
    const over = Math.floor((minute - 1) / HOUR_MINUTES) - 1;
    if (ref.partition !== 0 || looked?.hour === over) return;
    const at = await lastHour(redis, ref);
    // Another leader, or a call of an older one that came late, has written since.
    const done = looked !== undefined && looked.at === at ? looked.hour : (at ?? over - 1);
    // The clock of Redis was set back: what it said before is no reason to wait.
    const from = done > over ? over : Math.max(done + 1, over - BACK_MAX);
    const layout = from > over ? undefined : await findQueue(redis, namespace, ref.queue);
    if (layout) await makeHours(redis, partitionsOf(namespace, layout), { from, to: over });
    looked = { hour: over, at: await lastHour(redis, ref) };
  };
}
