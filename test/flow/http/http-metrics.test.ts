/** From what the scripts count in Redis to what a scraper reads: the names on both sides must be the same. */
import { expect, test } from 'vitest';
import { createHttp } from '../../../src/http/server.ts';
import { createMetrics } from '../../../src/metrics/metrics.ts';
import { oldestDueAge, stats } from '../../../src/redis/read/inspect.ts';
import { T0, usePartition } from '../../support/partition.ts';

const p = usePartition();

test('one job of every fate is found in /metrics', async () => {
  await p.complete([await p.running('completed')]);
  await p.dead('dead');
  await p.put('seconds-not-ms', T0 / 1000);
  await p.promote();
  await p.schedule('cancelled', { dueMs: T0 + 60_000 });
  await p.cancel('j:cancelled');
  await p.retry(await p.running('retried'), { delayMs: 60_000 });
  await p.defer(await p.running('deferred'), { delayMs: 60_000 });
  await p.running('reclaimed');
  await p.reclaim('w1');
  await p.schedule('ready');
  await p.promote();
  await p.schedule('waiting', { dueMs: T0 + 60_000 });

  expect(await scraped()).toMatchObject({
    jobs_scheduled_total: 8,
    jobs_promoted_total: 6,
    jobs_completed_total: 1,
    jobs_retried_total: 1,
    jobs_deferred_total: 1,
    jobs_dead_total: 2,
    jobs_cancelled_total: 1,
    reclaimed_total: 1,
    scheduled_jobs: 3,
    ready_jobs: 1,
    running_jobs: 1,
    dead_jobs: 2,
  });
});

test('an overdue job that nobody promotes shows its age by the clock of Redis', async () => {
  const nowMs = (await stats(p.redis, p.ref)).nowMs;
  await p.lead();
  await p.schedule('late', { dueMs: nowMs - 90_000 });
  const { oldest_due_age_seconds: age = 0 } = await scraped();
  expect(age).toBeGreaterThanOrEqual(90);
  expect(age).toBeLessThanOrEqual(((await stats(p.redis, p.ref)).nowMs - nowMs) / 1000 + 90);
});

/** The values of the queue as a scraper reads them, without prefix and labels. */
async function scraped(): Promise<Readonly<Record<string, number>>> {
  const { queue, partition } = p.ref;
  const metrics = createMetrics({
    version: '1.2.3',
    queueStats: async () => [
      {
        queue,
        partition,
        leading: true as const,
        epoch: 1,
        stats: await stats(p.redis, p.ref),
        oldestAgeMs: await oldestDueAge(p.redis, p.ref),
      },
    ],
  });
  const health = { ok: true, detail: '' };
  const http = createHttp({ ...metrics, host: '127.0.0.1', port: 0, live: () => health, ready: async () => health });
  const { host, port } = await http.start();
  const text = await (await fetch(`http://${host}:${port}/metrics`)).text();
  await http.stop();
  const values = [...text.matchAll(/^duestream_(\w+)\{queue="q"(?:,partition="0")?\} (\S+)$/gm)];
  return Object.fromEntries(values.map(([, name, value]) => [name, Number(value)]));
}
