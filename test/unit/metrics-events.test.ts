/** What becomes of an event in the metrics of its process. */
import { expect, test } from 'vitest';
import { createEmitter } from '../../src/job/events.ts';
import { createMetrics } from '../../src/metrics/metrics.ts';
import { samples } from '../support/samples.ts';

const named = { queue: 'emails', id: 'order-1042', name: 'welcome' };
const failure = { atMs: 1_763_719_000_000, attempt: 1, kind: 'failure', message: 'smtp said no' } as const;

function observed() {
  const metrics = createMetrics({ version: '1.2.3' });
  const events = createEmitter();
  return { metrics, events, stop: metrics.observe(events) };
}

test('what goes wrong in a process is counted: lost slots, rejections, a loop that stood still', async () => {
  const { metrics, events } = observed();
  events.emit('slots.lost', { queue: 'emails', id: 'a', lost: 2, concurrency: 8 });
  events.emit('slots.lost', { queue: 'emails', id: 'a', lost: 1, concurrency: 8 });
  events.emit('promise.rejected', { error: 'nobody listened' });
  for (const lagMs of [1, 6000]) events.emit('process.ticked', { lagMs });
  const found = await samples(metrics);
  expect(found.get('duestream_lost_slots{queue="emails"}')).toBe(1);
  expect(found.get('duestream_unhandled_rejections_total')).toBe(1);
  const lag = (le: string) => found.get(`duestream_event_loop_lag_seconds_bucket{le="${le}"}`);
  expect(['0.005', '5', '15'].map(lag)).toEqual([1, 1, 2]);
});

test('suspects and parked jobs that wait are shown as they are now', async () => {
  const { metrics, events } = observed();
  for (const waiting of [8, 0]) events.emit('parked.waiting', { queue: 'emails', waiting });
  expect((await samples(metrics)).get('duestream_parked_jobs{queue="emails"}')).toBe(0);
  for (const waiting of [3, 2]) events.emit('suspects.waiting', { queue: 'emails', waiting });
  expect((await samples(metrics)).get('duestream_waiting_suspects{queue="emails"}')).toBe(2);
});

test('every promoted job is one observation of its lateness', async () => {
  const { metrics, events } = observed();
  const lateness = [
    [0, 2],
    [1, 490],
    [5, 7],
    [400_000, 1],
  ] as const;
  events.emit('jobs.promoted', { queue: 'emails', partition: 0, count: 500, deadLetters: 0, lateness, tookMs: 3 });
  const found = await samples(metrics);
  const name = 'duestream_promotion_lateness_seconds';
  const upTo = (le: string) => found.get(`${name}_bucket{le="${le}",queue="emails"}`);
  expect(['0.001', '0.002', '0.003', '0.005', '300', '+Inf'].map(upTo)).toEqual([492, 492, 492, 499, 499, 500]);
  expect(found.get(`${name}_count{queue="emails"}`)).toBe(500);
  expect(found.get(`${name}_sum{queue="emails"}`)).toBeCloseTo(400.525, 6);
});

test.each(['promotion_lateness', 'start_lateness'])('1, 2, 5 and 10 ms can be read from %s', async (name) => {
  const { metrics, events } = observed();
  events.emit('job.started', { ...named, attempt: 1, lateMs: 1 });
  const lateness = [[1, 1]] as const;
  events.emit('jobs.promoted', { queue: 'emails', partition: 0, count: 1, deadLetters: 0, lateness, tookMs: 1 });
  const bounds = [...(await samples(metrics)).keys()].flatMap((key) =>
    key.startsWith(`duestream_${name}_seconds_bucket`) ? [key.match(/le="([^"]+)"/)?.[1]] : [],
  );
  expect(bounds).toEqual(expect.arrayContaining(['0.001', '0.002', '0.005', '0.01']));
});

test('instants of schedules are counted by what became of them, and those that made a job tell how late', async () => {
  const { metrics, events } = observed();
  const fired = { queue: 'emails', partition: 0, schedule: 'nightly', atMs: 0 };
  for (const latenessMs of [2, 40]) events.emit('schedule.fired', { ...fired, outcome: 'ok', latenessMs });
  events.emit('schedule.fired', { ...fired, outcome: 'skipped', latenessMs: 7000 });
  events.emit('schedule.missed', {
    queue: 'emails',
    partition: 0,
    schedule: 'nightly',
    sinceMs: 0,
    fired: 1,
    missed: 1,
  });
  const found = await samples(metrics);
  expect(found.get('duestream_schedule_fires_total{queue="emails",outcome="ok"}')).toBe(2);
  expect(found.get('duestream_schedule_fires_total{queue="emails",outcome="skipped"}')).toBe(1);
  expect(found.get('duestream_schedule_missed_total{queue="emails"}')).toBe(1);
  expect(found.get('duestream_schedule_lateness_seconds_sum{queue="emails"}')).toBeCloseTo(0.042, 6);
});

test('a run is counted under what it ended with', async () => {
  const { metrics, events } = observed();
  events.emit('job.completed', { ...named, tookMs: 20 });
  events.emit('job.retried', { ...named, tookMs: 30, delayMs: 1000, error: failure });
  events.emit('job.deferred', { ...named, tookMs: 40, delayMs: 1000 });
  events.emit('job.dead', { ...named, tookMs: 50, reason: 'attempts', error: failure });
  const found = await samples(metrics);
  const sums = ['completed', 'retried', 'deferred', 'dead'].map((outcome) =>
    found.get(`duestream_run_duration_seconds_sum{queue="emails",outcome="${outcome}"}`),
  );
  expect(sums).toEqual([0.02, 0.03, 0.04, 0.05]);
});

test('passes, refused results, places that were given away and adopted entries are counted', async () => {
  const { metrics, events } = observed();
  events.emit('job.overran', { ...named, tookMs: 35_000 });
  events.emit('mover.passed', { queue: 'emails', partition: 0, state: 'promoted', tookMs: 2 });
  events.emit('job.fenced', { queue: 'emails', id: 'order-1042', verb: 'complete', reply: 'fenced' });
  events.emit('entries.adopted', { queue: 'emails', partition: 0, count: 3 });
  const found = await samples(metrics);
  expect(found.get('duestream_mover_pass_duration_seconds_bucket{le="0.002",queue="emails"}')).toBe(1);
  expect(found.get('duestream_overran_total{queue="emails"}')).toBe(1);
  expect(found.get('duestream_fenced_total{queue="emails"}')).toBe(1);
  expect(found.get('duestream_adopted_total{queue="emails"}')).toBe(3);
});

test('no id and no name of a job gets into a label', async () => {
  const { metrics, events } = observed();
  events.emit('job.started', { ...named, attempt: 1, lateMs: 1 });
  events.emit('job.completed', { ...named, tookMs: 20 });
  events.emit('job.fenced', { queue: 'emails', id: 'order-1042', verb: 'complete', reply: 'fenced' });
  expect(await metrics.scrape()).not.toMatch(/order-1042|welcome/);
});

test('nothing is counted any more once listening was stopped', async () => {
  const { metrics, events, stop } = observed();
  stop();
  events.emit('job.started', { ...named, attempt: 1, lateMs: 1 });
  expect((await samples(metrics)).has('duestream_start_lateness_seconds_count{queue="emails"}')).toBe(false);
});
