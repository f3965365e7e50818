/** What a scrape says, line by line. Every test has metrics of its own, as every process has. */
import { describe, expect, test } from 'vitest';
import { createEmitter } from '../../src/job/events.ts';
import { DuestreamError } from '../../src/kernel/errors.ts';
import { JobHistogram } from '../../src/metrics/histogram.ts';
import { createMetrics, type MetricsOptions } from '../../src/metrics/metrics.ts';
import type { PartitionReading } from '../../src/metrics/readings.ts';
import type { PartitionStats } from '../../src/redis/read/inspect.ts';
import { read, walk } from '../support/repository.ts';
import { samples } from '../support/samples.ts';

const NOW_MS = 1_763_719_000_000;
const named = { queue: 'emails', id: 'order-1042', name: 'welcome' };

/** One led partition of `emails`; what a test is about is given. */
function reading(
  given: {
    readonly queue?: string;
    readonly partition?: number;
    readonly leading?: boolean;
    readonly oldestAgeMs?: number;
    readonly stats?: Partial<PartitionStats>;
  } = {},
): PartitionReading {
  const stats = {
    nowMs: NOW_MS,
    scheduled: 0,
    waiting: 0,
    waitingSinceMs: undefined,
    headDueMs: undefined,
    ready: 0,
    running: 0,
    dead: 0,
    done: 0,
    term: 'p1:1763719000000:5000',
    leaseTtlMs: 5000,
    paused: false,
    wakeMs: undefined,
    counters: {},
    ...given.stats,
  };
  const { queue = 'emails', partition = 0, leading = true, oldestAgeMs = 0 } = given;
  if (!leading) return { queue, partition, leading };
  return { queue, partition, leading, oldestAgeMs, stats };
}

const observed = (options: Partial<MetricsOptions> = {}) => {
  const metrics = createMetrics({ version: '1.2.3', ...options });
  const events = createEmitter();
  return { metrics, events, stop: metrics.observe(events) };
};

describe('whole queues', () => {
  const counters = {
    scheduled: 10,
    promoted: 9,
    done: 5,
    retried: 2,
    deferred: 1,
    dead: 3,
    refused: 4,
    cancelled: 6,
    reclaimed: 8,
    mended: 15,
    forgotten: 16,
  };

  test('subscribers are counted, and the furthest behind is told', async () => {
    const metrics = createMetrics({
      version: '1.2.3',
      queueStats: async () => [
        { ...reading({}), lags: [3, 12] },
        reading({ partition: 1 }),
        { ...reading({ queue: 'idle' }), lags: [] },
      ],
    });
    const found = await samples(metrics);
    expect(found.get('duestream_subscribers{queue="emails"}')).toBe(2);
    expect(found.get('duestream_subscriber_lag_jobs{queue="emails"}')).toBe(12);
    expect(found.get('duestream_subscribers{queue="idle"}')).toBe(0);
    expect(found.get('duestream_subscriber_lag_jobs{queue="idle"}')).toBe(0);
  });

  test('durable counters and counts become the values of the queue', async () => {
    const stats = { scheduled: 11, ready: 12, running: 13, dead: 14, counters };
    const metrics = createMetrics({
      version: '1.2.3',
      queueStats: async () => [reading({ stats, oldestAgeMs: 2500 })],
    });
    const found = await samples(metrics);
    const labels = (name: string) => (name.endsWith('_total') ? 'queue="emails",partition="0"' : 'queue="emails"');
    const emails = (name: string) => found.get(`duestream_${name}{${labels(name)}}`);
    expect({
      scheduled: emails('jobs_scheduled_total'),
      promoted: emails('jobs_promoted_total'),
      completed: emails('jobs_completed_total'),
      retried: emails('jobs_retried_total'),
      deferred: emails('jobs_deferred_total'),
      dead: emails('jobs_dead_total'),
      cancelled: emails('jobs_cancelled_total'),
      reclaimed: emails('reclaimed_total'),
      repaired: emails('jobs_mended_total'),
      forgotten: emails('dead_forgotten_total'),
    }).toEqual({
      scheduled: 10,
      promoted: 9,
      completed: 5,
      retried: 2,
      deferred: 1,
      dead: 7,
      cancelled: 6,
      reclaimed: 8,
      repaired: 15,
      forgotten: 16,
    });
    expect(['scheduled_jobs', 'ready_jobs', 'running_jobs', 'dead_jobs'].map(emails)).toEqual([11, 12, 13, 14]);
    expect(emails('oldest_due_age_seconds')).toBe(2.5);
    expect(found.get('duestream_mover_leader{queue="emails",partition="0"}')).toBe(1);
  });

  test('every durable counter that a metric reads is one that a script counts', () => {
    const wanted = [...read('src/metrics/readings.ts').matchAll(/counted\('(\w+)'\)/g)].map(([, name]) => name);
    const lua = walk('lua').map(read).join('\n');
    expect(wanted.length).toBeGreaterThanOrEqual(11);
    expect(wanted.filter((name) => !lua.includes(`'n.${name}'`))).toEqual([]);
  });

  test('the limits of a queue and what is used of them are those of all its partitions; without a limit there is none', async () => {
    const quota = { pending: 3, pendingMax: 10, bytes: 0, bytesMax: 0 };
    const stats = [{ quota }, { quota: { ...quota, pending: 4 } }];
    const queueStats = async () => stats.map((one, partition) => ({ ...reading({ stats: one }), partition }));
    const found = await samples(createMetrics({ version: '1.2.3', queueStats }));
    expect(found.get('duestream_quota_jobs{queue="emails"}')).toBe(7);
    expect(found.get('duestream_quota_jobs_limit{queue="emails"}')).toBe(20);
    expect(found.get('duestream_quota_bytes_limit{queue="emails"}')).toBeUndefined();
  });

  test('the youngest end that went because of its number is that of all partitions; without one there is no series', async () => {
    const series = 'duestream_done_evicted_age_seconds{queue="emails"}';
    let stats: readonly object[] = [{}, {}];
    const queueStats = async () => stats.map((one, partition) => ({ ...reading({ stats: one }), partition }));
    const metrics = createMetrics({ version: '1.2.3', queueStats });
    expect((await samples(metrics)).has(series)).toBe(false);
    stats = [{ evicted: { ageMs: 71_500, atMs: 1 } }, { evicted: { ageMs: 90_000, atMs: 1 } }];
    expect((await samples(metrics)).get(series)).toBe(71.5);
    stats = [{ evicted: { ageMs: 90_000, atMs: 1 } }, {}];
    expect((await samples(metrics)).get(series)).toBe(90);
  });

  test('a second scrape doubles nothing', async () => {
    const metrics = createMetrics({ version: '1.2.3', queueStats: async () => [reading({ stats: { counters } })] });
    expect(await metrics.scrape()).toBe(await metrics.scrape());
  });

  test('a counter that was never counted is shown as 0, so that its first increase is seen', async () => {
    const metrics = createMetrics({ version: '1.2.3', queueStats: async () => [reading()] });
    expect((await samples(metrics)).get('duestream_jobs_dead_total{queue="emails",partition="0"}')).toBe(0);
  });

  test('what the partitions of a queue hold is added up, and the oldest due of any of them counts', async () => {
    const queueStats = async () => [
      reading({ oldestAgeMs: 1000, stats: { scheduled: 1, counters: { done: 1 } } }),
      reading({ partition: 1, oldestAgeMs: 3000, stats: { scheduled: 2, counters: { done: 2 } } }),
      reading({ queue: 'sms', stats: { scheduled: 4, counters: { done: 4 } } }),
    ];
    const found = await samples(createMetrics({ version: '1.2.3', queueStats }));
    expect(found.get('duestream_scheduled_jobs{queue="emails"}')).toBe(3);
    expect(found.get('duestream_scheduled_jobs{queue="sms"}')).toBe(4);
    const completed = (partition: number) =>
      found.get(`duestream_jobs_completed_total{queue="emails",partition="${partition}"}`);
    expect([completed(0), completed(1)]).toEqual([1, 2]);
    expect(found.get('duestream_oldest_due_age_seconds{queue="emails"}')).toBe(3);
  });

  test('a partition that is no longer led disappears, and comes back when it is led again', async () => {
    let partitions = [reading({ stats: { scheduled: 7 } })];
    const metrics = createMetrics({ version: '1.2.3', queueStats: async () => partitions });
    const ofQueue = async () => [...(await samples(metrics)).keys()].filter((name) => name.includes('emails'));
    expect(await ofQueue()).toContain('duestream_scheduled_jobs{queue="emails"}');
    partitions = [reading({ leading: false, stats: { scheduled: 7 } })];
    expect(await ofQueue()).toEqual(['duestream_mover_leader{queue="emails",partition="0"}']);
    partitions = [];
    expect(await ofQueue()).toEqual([]);
    partitions = [reading({ stats: { scheduled: 8 } })];
    expect((await samples(metrics)).get('duestream_scheduled_jobs{queue="emails"}')).toBe(8);
  });

  test('when a partition gets another leader no counter falls: it ends here and goes on there', async () => {
    const of = (partition: number, leading: boolean, done: number) =>
      reading({ partition, leading, stats: { counters: { done } } });
    let here = [of(0, true, 1000), of(1, true, 500)];
    let there = [of(0, false, 1000), of(1, false, 500)];
    const daemons = [() => here, () => there].map((ours) =>
      createMetrics({ version: '1.2.3', queueStats: async () => ours() }),
    );
    const counters = async () => {
      const found = await Promise.all(daemons.map(samples));
      return found.map((of) => [...of].filter(([name]) => name.startsWith('duestream_jobs_completed_total')));
    };
    const name = (partition: number) => `duestream_jobs_completed_total{queue="emails",partition="${partition}"}`;
    expect(await counters()).toEqual([
      [
        [name(0), 1000],
        [name(1), 500],
      ],
      [],
    ]);
    here = [of(0, true, 1001), of(1, false, 501)];
    there = [of(0, false, 1001), of(1, true, 501)];
    expect(await counters()).toEqual([[[name(0), 1001]], [[name(1), 501]]]);
  });

  test('scrapes at the same time share one reading', async () => {
    let asked = 0;
    const queueStats = async () => {
      asked += 1;
      return [reading()];
    };
    const metrics = createMetrics({ version: '1.2.3', queueStats });
    const [first, second] = await Promise.all([metrics.scrape(), metrics.scrape()]);
    expect([first === second, asked]).toEqual([true, 1]);
    await metrics.scrape();
    expect(asked).toBe(2);
  });

  test('a process that reads no queues does not name them', async () => {
    const text = await createMetrics({ version: '1.2.3' }).scrape();
    expect(text).not.toContain('duestream_scheduled_jobs');
    expect(text).not.toContain('duestream_workers_alive');
    expect(text).toContain('duestream_start_lateness_seconds');
  });
});

describe('the longest times', () => {
  test('are told as they were, of a minute and the one before, and of each queue once', async () => {
    const { metrics, events } = observed({});
    for (const lateMs of [33_000, 12]) events.emit('job.started', { ...named, attempt: 1, lateMs });
    events.emit('job.completed', { ...named, tookMs: 7 });
    events.emit('job.retried', { ...named, attempt: 1, tookMs: 4_321_000, delayMs: 1, error: 'x' } as never);
    const found = await samples(metrics);
    expect(found.get('duestream_start_lateness_max_seconds{queue="emails"}')).toBe(33);
    expect(found.get('duestream_run_duration_max_seconds{queue="emails"}')).toBe(4321);
    expect(found.get('duestream_start_lateness_seconds_bucket{le="45",queue="emails"}')).toBe(2);
    expect(found.get('duestream_start_lateness_seconds_bucket{le="30",queue="emails"}')).toBe(1);
  });

  test('go with the second minute', () => {
    const all = new JobHistogram({ name: 'x_seconds', help: 'x', labelNames: ['queue'], buckets: [1], registers: [] });
    all.series({ queue: 'a' }).observe(5);
    const longest = (seconds: number) => all.largest(seconds * 1000).map(({ value }) => value);
    expect(longest(0)).toEqual([5]);
    all.series({ queue: 'a' }).observe(2);
    expect([longest(59), longest(60), longest(61), longest(120), longest(121)]).toEqual([[5], [5], [2], [2], [0]]);
  });
});

describe('an outage', () => {
  test('without Redis the values of queues are left out and the rest is answered', async () => {
    let away = false;
    const queueStats = async () => {
      if (away) throw new Error('Connection is closed.');
      return [reading()];
    };
    const { metrics, events } = observed({ queueStats, alive: async () => 3 });
    events.emit('job.started', { ...named, attempt: 1, lateMs: 2 });
    const before = await samples(metrics);
    expect([before.get('duestream_redis_up'), before.get('duestream_workers_alive')]).toEqual([1, 3]);
    away = true;
    const during = await samples(metrics);
    expect(during.get('duestream_redis_up')).toBe(0);
    expect(during.has('duestream_workers_alive')).toBe(false);
    expect(during.has('duestream_scheduled_jobs{queue="emails"}')).toBe(false);
    expect(during.get('duestream_start_lateness_seconds_count{queue="emails"}')).toBe(1);
    away = false;
    expect((await samples(metrics)).get('duestream_redis_up')).toBe(1);
  });

  test('an error of the catalogue counts as an outage too', async () => {
    const queueStats = () => Promise.reject(new DuestreamError('unavailable', 'no Redis'));
    expect((await samples(createMetrics({ version: '1.2.3', queueStats }))).get('duestream_redis_up')).toBe(0);
  });

  test('a bug is no outage: the scrape fails, and the next one is not stuck behind it', async () => {
    let broken = true;
    const queueStats = async () => {
      if (broken) throw new TypeError('x is not a function');
      return [reading()];
    };
    const metrics = createMetrics({ version: '1.2.3', queueStats });
    await expect(metrics.scrape()).rejects.toThrow('x is not a function');
    broken = false;
    expect((await samples(metrics)).get('duestream_redis_up')).toBe(1);
  });

  test('Redis is up again when everybody who lost it is back or gone', async () => {
    const { metrics, events, stop } = observed();
    const up = async () => (await samples(metrics)).get('duestream_redis_up');
    events.emit('redis.away', { who: 'registry', why: 'reset', answered: false });
    events.emit('redis.away', { who: 'mover of emails:0', why: 'reset', answered: false });
    events.emit('redis.back', { who: 'registry', awayMs: 10 });
    expect(await up()).toBe(0);
    events.emit('redis.back', { who: 'mover of emails:0', awayMs: 12 });
    expect(await up()).toBe(1);
    events.emit('redis.away', { who: 'registry', why: 'reset', answered: false });
    stop();
    expect(await up()).toBe(1);
  });
});

describe('a registry that is shared', () => {
  test('counts what all parts count, and adds up what each of them has now', async () => {
    const one = observed();
    const other = observed({ registry: one.metrics.registry });
    for (const { events } of [one, other]) {
      events.emit('job.started', { ...named, attempt: 1, lateMs: 1 });
      events.emit('slots.lost', { queue: 'emails', id: 'a', lost: 3, concurrency: 10 });
      events.emit('slots.lost', { queue: 'emails', id: 'a', lost: 2, concurrency: 10 });
    }
    const found = await samples(other.metrics);
    expect(found.get('duestream_start_lateness_seconds_count{queue="emails"}')).toBe(2);
    expect(found.get('duestream_lost_slots{queue="emails"}')).toBe(4);
    one.stop();
    expect((await samples(other.metrics)).get('duestream_lost_slots{queue="emails"}')).toBe(2);
  });

  test('is ready and reaches Redis when all parts do', async () => {
    let ready = true;
    const one = observed({ state: { ready: () => true } });
    const other = observed({ registry: one.metrics.registry, state: { ready: () => ready } });
    const said = async () => {
      const found = await samples(one.metrics);
      return [found.get('duestream_ready'), found.get('duestream_redis_up')];
    };
    expect(await said()).toEqual([1, 1]);
    ready = false;
    // Two daemons have a part of the same name.
    for (const { events } of [one, other]) events.emit('redis.away', { who: 'registry', why: 'x', answered: false });
    one.events.emit('redis.back', { who: 'registry', awayMs: 1 });
    expect(await said()).toEqual([0, 0]);
    other.stop();
    other.metrics.close();
    expect(await said()).toEqual([1, 1]);
  });

  test('has the partitions of all daemons', async () => {
    const one = observed({ queueStats: async () => [reading({ oldestAgeMs: 1000, stats: { ready: 1 } })] });
    observed({
      registry: one.metrics.registry,
      queueStats: async () => [reading({ partition: 1, oldestAgeMs: 4000, stats: { ready: 2 } })],
    });
    const found = await samples(one.metrics);
    expect(found.get('duestream_ready_jobs{queue="emails"}')).toBe(3);
    expect(found.get('duestream_oldest_due_age_seconds{queue="emails"}')).toBe(4);
  });

  test('is read by its own calls as well as by ours', async () => {
    const { metrics } = observed({ queueStats: async () => [reading({ stats: { scheduled: 7 } })] });
    expect(await metrics.registry.metrics()).toContain('duestream_scheduled_jobs{queue="emails"} 7');
  });
});

describe('one process', () => {
  test('two sets of metrics do not meet', async () => {
    const one = observed();
    const other = observed();
    one.events.emit('job.started', { ...named, attempt: 1, lateMs: 1 });
    expect((await samples(other.metrics)).has('duestream_start_lateness_seconds_count{queue="emails"}')).toBe(false);
  });

  test('says what it runs and whether it is ready', async () => {
    let ready = false;
    const metrics = createMetrics({ version: '1.2.3', state: { ready: () => ready } });
    const found = await samples(metrics);
    const node = process.versions.node;
    expect(found.get(`duestream_build_info{version="1.2.3",node="${node}",wire="v1"}`)).toBe(1);
    expect(found.get('duestream_ready')).toBe(0);
    ready = true;
    expect((await samples(metrics)).get('duestream_ready')).toBe(1);
  });

  test('leaves no timer behind', async () => {
    const before = process.getActiveResourcesInfo();
    await createMetrics({ version: '1.2.3', queueStats: async () => [reading()] }).scrape();
    expect(process.getActiveResourcesInfo()).toEqual(before);
  });

  test('the text says which format it is in', () => {
    expect(createMetrics({ version: '1.2.3' }).contentType).toBe('text/plain; version=0.0.4; charset=utf-8');
  });
});
