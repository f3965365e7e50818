/**
 * What a kubelet would do with the pods of the chart: the containers are started by their commands, with their variables and files; their
 * probes are asked, and SIGTERM ends them.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { containerOf, environmentOf, objectsWith, type Parsed, SECRETS } from '../../support/kubernetes.ts';
import { useProcesses } from '../../support/processes.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const HANDLERS = fileURLToPath(new URL('../../fixtures/held-handlers.mjs', import.meta.url));
const objects = objectsWith({
  secret: SECRETS,
  config: { log: { level: 'info' }, queues: { unused: { attempts: 2 } } },
  worker: { enabled: true, image: 'shop:1', module: HANDLERS, queues: ['unused'] },
  monitoring: { enabled: true },
});

const processes = useProcesses();
let server: TestRedis;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'due-pods-'));
  server = await startRedis();
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Starts the container of a Deployment, on this machine alone and at a free port. */
async function started(name: string) {
  const container = containerOf(objects.get(`Deployment ${name}`));
  const env = {
    ...environmentOf(container, { folder, objects, redisUrl: server.url }),
    DUESTREAM_HTTP__HOST: '127.0.0.1',
    DUESTREAM_HTTP__PORT: '0',
  };
  const args = container.args.map((one: string) => one.replace('--http-port=7420', '--http-port=0'));
  const running = await processes.started({ name, args, env });
  const { http }: Parsed = await running.logged('started');
  const statusOf = async (path: string, headers: Readonly<Record<string, string>> = {}) =>
    (await fetch(`http://${http.host}:${http.port}${path}`, { headers })).status;
  return { container, running, statusOf };
}

test.for(['duestream', 'duestream-worker'])(
  'the pods of %s answer their probes, and scrapers that have the token',
  async (name) => {
    const { container, running, statusOf } = await started(name);
    const probes = [container.startupProbe, container.livenessProbe, container.readinessProbe];
    for (const { httpGet } of probes) await expect.poll(() => statusOf(httpGet.path)).toBe(200);
    const [{ path }] = objects.get('ServiceMonitor duestream').spec.endpoints;
    expect(await statusOf(path)).toBe(401);
    expect(await statusOf(path, { Authorization: `Bearer ${SECRETS.token}` })).toBe(200);
    expect(await statusOf('/v1/queues')).toBe(name === 'duestream' ? 200 : 404);
    expect(await running.end('SIGTERM')).toMatchObject({ code: 0 });
  },
);

test('a pod whose Redis is away lives and is not ready, so that it is not started again', async () => {
  const { container, statusOf } = await started('duestream');
  await expect.poll(() => statusOf(container.readinessProbe.httpGet.path)).toBe(200);
  await server.kill('SIGKILL');
  await expect.poll(() => statusOf(container.readinessProbe.httpGet.path)).toBe(503);
  expect(await statusOf(container.livenessProbe.httpGet.path)).toBe(200);
  await server.restart();
  await expect.poll(() => statusOf(container.readinessProbe.httpGet.path)).toBe(200);
});

test.runIf(process.platform === 'linux').for(['duestream', 'duestream-worker'])(
  'a pod of %s that is asked for metrics has no more memory than it asks for',
  async (name) => {
    const { container, running, statusOf } = await started(name);
    const [{ path }] = objects.get('ServiceMonitor duestream').spec.endpoints;
    const asked = Array.from({ length: 20 }, () => statusOf(path, { Authorization: `Bearer ${SECRETS.token}` }));
    expect(new Set(await Promise.all(asked))).toEqual(new Set([200]));
    const [, kibibytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${running.pid}/status`, 'utf8')) ?? [];
    const { memory } = container.resources.requests;
    expect(memory).toMatch(/^\d+Mi$/);
    expect(Number(kibibytes)).toBeLessThan(Number.parseInt(memory, 10) * 1024);
  },
);
