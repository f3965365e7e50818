/**
 * Whether ends are remembered for as long as the done window says. Where more jobs end than `done.max` leaves room for,
 * the oldest go before their time, down to the floor that no end goes below. What is told is by the configuration that
 * `doctor` was given; what went is told by the daemons.
 */

import type { DoneLimits } from '../../config/done.ts';
import { span } from '../../kernel/humanize.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { type PartitionStats, stats } from '../../redis/read/inspect.ts';
import { listQueues, partitionsOf } from '../../redis/scripts/queues.ts';
import type { Finding, Subject } from './finding.ts';

const PARTITIONS_MAX = 256;
/** Of fewer ends than this part of the limit nobody can say how fast they come. */
const SAMPLE = 1 / 10;
/** So near to the floor the number of tombstones grows with the rate. */
const NEAR = 1.5;

interface Shortage {
  readonly ref: PartitionRef;
  /** For how long ends are remembered there, as far as can be seen. */
  readonly rememberedMs: number;
  readonly perSecond: number;
}

export async function done({ redis, namespace, done: limits }: Subject): Promise<Finding> {
  const { windowMs, tombstonesMax, floorMs } = limits;
  if (windowMs === 0) return { status: 'ok', saw: 'this configuration remembers no end of a job' };
  const queues = await listQueues(redis, namespace);
  const refs = queues.flatMap((layout) => partitionsOf(namespace, layout)).slice(0, PARTITIONS_MAX);
  const short: Shortage[] = [];
  for (const ref of refs) {
    const now = await stats(redis, ref);
    if (now.done < tombstonesMax * SAMPLE && now.evicted === undefined) continue;
    const [, oldest] = await redis.zrange(ref.keys.done, '0', '0', 'WITHSCORES');
    const found = shortage(now, { oldestMs: Number(oldest ?? now.nowMs), ...limits });
    if (found !== undefined) short.push({ ref, ...found });
  }
  const [worst] = short.sort((one, other) => one.rememberedMs - other.rememberedMs);
  if (worst === undefined) return { status: 'ok', saw: `every end of a job is remembered for ${span(windowMs)}` };
  const { queue, partition } = worst.ref;
  const wanted = Math.ceil((worst.perSecond * windowMs) / 1000);
  const saw =
    `ends in ${queue}:${partition} are remembered for ${span(worst.rememberedMs)}, not for ${span(windowMs)}: ` +
    `about ${Math.round(worst.perSecond)} jobs end there per second, and done.max is ${tombstonesMax}`;
  const advice =
    worst.rememberedMs > NEAR * floorMs
      ? `set done.max to ${wanted} or more, about ${mib(wanted)} of memory; or set done.window to the time that you need`
      : `no end is forgotten before ${span(floorMs)}, so memory now grows with the rate: add partitions, or set done.max to ${wanted}, about ${mib(wanted)} of memory`;
  return { status: 'warn', saw, advice };
}

/** How much less than the window is remembered, if it is less. */
export function shortage(
  { nowMs, done: count, evicted }: Pick<PartitionStats, 'nowMs' | 'done' | 'evicted'>,
  of: DoneLimits & { readonly oldestMs: number },
): Omit<Shortage, 'ref'> | undefined {
  const spanMs = Math.max(1, nowMs - of.oldestMs);
  const perSecond = (1000 * count) / spanMs;
  // At this rate the limit is reached after so long; no end goes below the floor.
  const filledMs =
    count < of.tombstonesMax * SAMPLE ? of.windowMs : Math.max(of.floorMs, (1000 * of.tombstonesMax) / perSecond);
  const rememberedMs = Math.min(filledMs, evicted?.ageMs ?? of.windowMs);
  return rememberedMs < of.windowMs ? { rememberedMs, perSecond } : undefined;
}

/** `npm run bench:done` measures it, with ids of 22 characters. */
const BYTES_PER_END = 270;
const mib = (count: number): string => `${Math.max(1, Math.round((count * BYTES_PER_END) / 2 ** 20))} MiB`;
