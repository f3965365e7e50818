/**
 * The Grafana dashboard that we hand out: a Prometheus scrapes a daemon and a worker that run jobs, and every query of
 * every panel has an answer there. A misspelt metric or label would be an empty panel on the day that it is needed.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { createDaemon, type Daemon } from '../../../src/daemon/daemon.ts';
import { defineHandlers } from '../../../src/worker/run/handlers.ts';
import { type Prometheus, startPrometheus } from '../../support/prometheus.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { read } from '../../support/repository.ts';

interface Panel {
  readonly title: string;
  readonly targets: readonly { readonly expr: string }[];
}

const panels: readonly Panel[] = JSON.parse(read('deploy/grafana.json')).panels;
const queries = panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const));

let server: TestRedis;
let daemon: Daemon;
let producer: Client;
let prometheus: Prometheus;

beforeAll(async () => {
  server = await startRedis({ port: true });
  const handlers = defineHandlers({
    mail: (job) => {
      if (job.id.startsWith('bad')) throw new Error('no');
    },
  });
  const http = { port: 0, host: '127.0.0.1' };
  daemon = createDaemon({ redis: { url: server.url }, roles: ['mover', 'worker', 'http'], http }, { handlers });
  await daemon.start();
  producer = createClient({ redis: server.url });
  await using client = createClient({ redis: server.url });
  const schedules = client.schedules;
  await schedules.put('tick', { queue: 'mail', every: '1s' });
  const target = `${daemon.http()?.host}:${daemon.http()?.port}`;
  prometheus = await startPrometheus([{ job_name: 'duestream', static_configs: [{ targets: [target] }] }]);
}, 600_000);

afterAll(async () => {
  await prometheus.stop();
  await producer.close();
  await daemon.stop();
  await server.stop();
});

interface Answer {
  readonly status: string;
  readonly error?: string;
  readonly data?: { readonly result: readonly { readonly value: readonly [number, string] }[] };
}

/** What Grafana would put in the place of its variables. */
const filled = (expr: string): string => expr.replaceAll('$queue', '.*').replaceAll('$__rate_interval', '1m');

/** How many series a query answers with that are numbers. */
async function seriesOf(expr: string): Promise<number> {
  const asked = `${prometheus.url}/api/v1/query?${new URLSearchParams({ query: filled(expr) })}`;
  const response = await fetch(asked).catch(() => undefined);
  if (response === undefined) return 0;
  const answer: Answer = JSON.parse(await response.text());
  if (answer.status !== 'success') throw new Error(`${expr}: ${answer.error}`);
  return (answer.data?.result ?? []).filter(({ value }) => value[1] !== 'NaN').length;
}

test('every query of every panel has an answer while jobs flow', async () => {
  expect(queries.length).toBeGreaterThan(20);
  const unanswered = async () => {
    await producer.scheduleMany('mail', [{ data: 1 }, { data: 2 }, { data: 3 }]);
    const found = await Promise.all(queries.map(async ([title, expr]) => [title, expr, await seriesOf(expr)] as const));
    return found.filter(([, , series]) => series === 0).map(([title, expr]) => `${title}: ${expr}`);
  };
  await expect.poll(unanswered, { timeout: 110_000, interval: 500 }).toEqual([]);
});

test('a query for a metric that is not there has none', async () => {
  expect(await seriesOf('duestream_no_such_metric')).toBe(0);
});
