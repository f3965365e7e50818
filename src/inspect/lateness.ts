/** How late jobs were in the last hour and how long they ran, over all queues and queue by queue: their buckets are added. */
import { BOUNDS_MS, type Spread, sumOf } from '../job/minutes.ts';
import { codeOf } from './failure.ts';
import { type QueueMinutes, queueMinutes, type SpreadTotal, spreadTotal } from './minutes.ts';
import { type Namespaced, queueNames } from './refs.ts';

interface QueueLateness extends Readonly<Record<Spread, SpreadTotal>> {
  readonly queue: string;
}

/** The spreads over all queues, and of each. */
export interface Lateness extends Readonly<Record<Spread, SpreadTotal>> {
  /** Whether somebody keeps them now, in any queue. */
  readonly on: boolean;
  readonly nowMs: number;
  /** By name. */
  readonly queues: readonly QueueLateness[];
}

/** Queues that are read together. */
const AT_ONCE = 10;

/** @param may which queues count */
export async function lastHour(
  place: Namespaced,
  { may, nowMs }: { readonly may: (queue: string) => boolean; readonly nowMs: number },
): Promise<Lateness> {
  const names = (await queueNames(place)).filter(may);
  const found: { readonly queue: string; readonly minutes: QueueMinutes }[] = [];
  for (let from = 0; from < names.length; from += AT_ONCE) {
    const some = names.slice(from, from + AT_ONCE).map((queue) => minutesOf(place, queue, nowMs));
    found.push(...(await Promise.all(some)).flat());
  }
  const all = (name: Spread) => {
    const lists = found.map(({ minutes }) => minutes.total[name].counts);
    return spreadTotal(sumOf(lists, BOUNDS_MS.length + 1));
  };
  return {
    on: found.some(({ minutes }) => minutes.on),
    nowMs,
    promotion: all('promotion'),
    start: all('start'),
    run: all('run'),
    queues: found.map(({ queue, minutes }) => ({ queue, ...minutes.total })),
  };
}

/** Nothing of a queue that was removed since. */
async function minutesOf(place: Namespaced, queue: string, nowMs: number) {
  try {
    return [{ queue, minutes: await queueMinutes(place, queue, { hours: 1, nowMs }) }];
  } catch (error) {
    if (codeOf(error) === 'not-found') return [];
    throw error;
  }
}
