/** The metrics as instruments of OpenTelemetry: the same families by the same names, read when an SDK asks. */
import { metrics as api } from '@opentelemetry/api';
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createEmitter } from '../../src/job/events.ts';
import { createMetrics } from '../../src/metrics/metrics.ts';
import { createOutboxMetrics } from '../../src/metrics/outbox.ts';

/** Reads when the test asks. */
class OnDemand extends MetricReader {
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

const reader = new OnDemand();
beforeAll(() => void api.setGlobalMeterProvider(new MeterProvider({ readers: [reader] })));
afterAll(() => api.disable());

/** What the SDK reads now: name → its points. */
async function points() {
  const { resourceMetrics, errors } = await reader.collect();
  expect(errors).toEqual([]);
  const found = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
  return new Map(found.map(({ descriptor, dataPoints }) => [descriptor.name, { unit: descriptor.unit, dataPoints }]));
}

test('counters and gauges have the values of a scrape, and histograms what was observed', async () => {
  const events = createEmitter();
  const metrics = createMetrics({ version: '1', state: { ready: () => true } });
  const unobserve = metrics.observe(events);
  events.emit('job.started', { queue: 'mail', id: 'a', name: 'x', attempt: 1, lateMs: 250 });
  events.emit('jobs.promoted', {
    ...{ queue: 'mail', partition: 0, deadLetters: 0, tookMs: 1 },
    count: 3,
    lateness: [[10, 3]],
  });
  events.emit('job.fenced', { queue: 'mail', id: 'a', verb: 'complete', reply: 'fenced' });
  const found = await points();
  expect(found.get('duestream_fenced_total')?.dataPoints).toMatchObject([{ attributes: { queue: 'mail' }, value: 1 }]);
  expect(found.get('duestream_ready')?.dataPoints).toMatchObject([{ value: 1 }]);
  const lateness = found.get('duestream_start_lateness_seconds');
  expect(lateness).toMatchObject({
    unit: 's',
    dataPoints: [{ attributes: { queue: 'mail' }, value: { count: 1, sum: 0.25 } }],
  });
  expect(found.get('duestream_promotion_lateness_seconds')?.dataPoints).toMatchObject([{ value: { count: 3 } }]);
  unobserve();
  metrics.close();
});

test('a part that has ended is read no more', async () => {
  let reads = 0;
  const metrics = createMetrics({
    version: '1',
    queueStats: async () => {
      reads += 1;
      return [];
    },
  });
  await points();
  expect(reads).toBe(1);
  metrics.close();
  await points();
  expect(reads).toBe(1);
});

test('the metrics of an outbox are read with one look at its database', async () => {
  let looks = 0;
  const metrics = createOutboxMetrics({
    state: async () => {
      looks += 1;
      return { rows: 3, refused: 1, lagMs: 2500, queues: [{ queue: 'mail', lagMs: 2500 }] };
    },
    stalled: () => [],
    counts: () => ({ done: 5, putOff: 2, refused: 1 }),
  });
  const found = await points();
  const valuesOf = (name: string) => found.get(`duestream_outbox_${name}`)?.dataPoints.map(({ value }) => value);
  expect([valuesOf('rows'), valuesOf('lag_seconds'), valuesOf('calls_total')]).toEqual([[3], [2.5], [5, 2, 1]]);
  expect(looks).toBe(1);
  metrics.close();
  await points();
  expect(looks).toBe(1);
});
