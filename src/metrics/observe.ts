/**
 * From events to what this process counts itself: histograms of lateness and duration, and the rare events of workers.
 * Whole queues are not counted here but read from Redis (`readings.ts`), so that a restart forgets nothing.
 */
import type { EventSource } from '../core/events.ts';
import type { Families } from './families.ts';
import type { Shared } from './shared.ts';

/** Listens until the returned function is called. */
export function observeEvents(events: EventSource, { families, away }: Pick<Shared, 'families' | 'away'>): () => void {
  const mine = new Set<string>();
  const parkedJobs = partOf(families.parkedJobs);
  const waitingSuspects = partOf(families.waitingSuspects);
  const lostSlots = partOf(families.lostSlots);
  away.add(mine);
  const ran = (outcome: string) => (one: { readonly queue: string; readonly tookMs: number }) =>
    families.runDuration.observe({ queue: one.queue, outcome }, seconds(one.tookMs));
  const stops = [
    events.on('mover.passed', ({ queue, tookMs }) => families.moverPassDuration.observe({ queue }, seconds(tookMs))),
    events.on('jobs.promoted', ({ queue, lateness }) => {
      // The library takes one observation at a time. A pass promotes 500 jobs at most, which costs about 0.1 ms here.
      for (const [lateMs, count] of lateness) {
        for (let i = 0; i < count; i += 1) families.promotionLateness.observe({ queue }, seconds(lateMs));
      }
    }),
    events.on('job.started', ({ queue, lateMs }) => families.startLateness.observe({ queue }, seconds(lateMs))),
    events.on('job.completed', ran('completed')),
    events.on('job.retried', ran('retried')),
    events.on('job.deferred', ran('deferred')),
    events.on('job.dead', ran('dead')),
    events.on('job.failed', ran('failed')),
    events.on('schedule.fired', ({ queue, outcome, latenessMs }) => {
      families.scheduleFires.inc({ queue, outcome });
      if (outcome === 'ok') families.scheduleLateness.observe({ queue }, seconds(latenessMs));
    }),
    events.on('schedule.missed', ({ queue }) => families.scheduleMissed.inc({ queue })),
    events.on('job.fenced', ({ queue }) => families.fenced.inc({ queue })),
    events.on('entries.adopted', ({ queue, count }) => families.adopted.inc({ queue }, count)),
    events.on('jobs.parked', ({ queue, count }) => families.parked.inc({ queue }, count)),
    events.on('parked.waiting', ({ queue, waiting }) => parkedJobs.set(queue, waiting)),
    events.on('suspects.waiting', ({ queue, waiting }) => waitingSuspects.set(queue, waiting)),
    events.on('slots.lost', ({ queue, lost }) => lostSlots.set(queue, lost)),
    events.on('promise.rejected', () => families.rejections.inc()),
    events.on('process.ticked', ({ lagMs }) => families.eventLoopLag.observe(seconds(lagMs))),
    events.on('redis.away', ({ who, answered }) => {
      if (answered) mine.delete(who);
      else mine.add(who);
    }),
    events.on('redis.back', ({ who }) => mine.delete(who)),
    events.on('redis.evicts', () => families.redisEvicts.set(1)),
    events.on('redis.keeps', () => families.redisEvicts.set(0)),
  ];
  return () => {
    for (const stop of stops) stop();
    // Who is not listened to any more cannot say that it is back.
    away.delete(mine);
    for (const part of [parkedJobs, waitingSuspects, lostSlots]) part.leave();
  };
}

/** What one listener adds to a gauge: workers of the same queue may share one. */
function partOf(gauge: Families['parkedJobs']) {
  const values = new Map<string, number>();
  const set = (queue: string, value: number) => {
    gauge.inc({ queue }, value - (values.get(queue) ?? 0));
    values.set(queue, value);
  };
  return {
    set,
    leave(): void {
      for (const queue of values.keys()) set(queue, 0);
    },
  };
}

/** Metrics speak in base units. */
const seconds = (ms: number): number => ms / 1000;
