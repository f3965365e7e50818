/**
 * A process of another version lives in the namespace: a daemon finds it by its heartbeat and writes down which versions there are,
 * and a worker and a client read that with the layout of a queue. Each says it once.
 */
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import type { EventSource, Events } from '../../../src/job/events.ts';
import { version } from '../../../src/kernel/version.ts';
import { controlKeys } from '../../../src/redis/keys.ts';
import type { Identity } from '../../../src/redis/scripts/presence.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { useCli } from '../../support/cli.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const cli = useCli();
const namespace = 'duestream';
const said = { own: version, others: '9.1.0' };
let server: TestRedis;

beforeAll(async () => {
  server = await startRedis({ port: true });
  const identity: Identity = {
    id: 'new',
    role: 'worker',
    host: 'h',
    pid: 1,
    startedMs: 0,
    queues: [],
    version: '9.1.0',
  };
  const keys = controlKeys(namespace);
  const redis = await server.client();
  await redis.set(keys.beat('new'), JSON.stringify(identity), 'PX', 600_000);
  await redis.sadd(keys.alive, 'new');
});
afterAll(() => server.stop());

/** The first job declares its queue, before anybody knows of versions. */
async function first(redis: string): Promise<void> {
  const client = createClient({ redis });
  await client.schedule('mail', {}, { delay: '1h' });
  await client.close();
}

function hearing(events: EventSource) {
  const heard: Events['versions.differ'][] = [];
  events.on('versions.differ', (one) => void heard.push(one));
  return heard;
}

test('a daemon, a worker and a client say that another version runs beside them, and doctor says it', async () => {
  const redis = server.url;
  await first(redis);
  const daemon = createDaemon({ redis, roles: ['mover'] });
  const ofDaemon = hearing(daemon.events);
  await daemon.start();
  try {
    expect(ofDaemon).toEqual([said]);
    const field = await (await server.client()).hget(controlKeys(namespace).queues, ':versions');
    expect(field).toBe(`${version} 9.1.0`);

    const worker = createWorker('mail', () => undefined, { redis });
    const ofWorker = hearing(worker.events);
    await worker.start();
    expect(ofWorker).toEqual([said]);
    await worker.stop();

    const client = createClient({ redis });
    const warned = once(process, 'warning');
    await client.schedule('mail', {}, { delay: '1h' });
    const [warning] = (await warned) as [Error];
    expect(warning.name).toBe('DuestreamWarning');
    expect(warning.message).toMatch(
      /^duestream 9\.1\.0 runs beside this process, which has .*"duestream queues workers" says/,
    );
    await client.close();

    const { out } = await cli.run(['doctor', '--json', '--redis', redis]);
    const found = JSON.parse(out).checks.find(({ check }: { readonly check: string }) => check === 'processes');
    expect(found).toMatchObject({ status: 'warn', saw: expect.stringContaining('9.1.0 (1 process)') });
  } finally {
    await daemon.stop();
  }
});

test('a namespace with processes of one version has nothing to say', async () => {
  const redis = server.url;
  const daemon = createDaemon({ redis, namespace: 'alike', roles: ['mover'] });
  const heard = hearing(daemon.events);
  await daemon.start();
  await daemon.stop();
  expect(heard).toEqual([]);
  const { out } = await cli.run(['doctor', '--json', '--redis', redis, '--namespace', 'alike']);
  const found = JSON.parse(out).checks.find(({ check }: { readonly check: string }) => check === 'processes');
  expect(found).toEqual({ check: 'processes', status: 'ok', saw: expect.stringContaining('no process lives') });
});
