/** What `http.work` costs while nobody claims: its connections say nothing to Redis while jobs go their way. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

let server: TestRedis;
beforeAll(async () => {
  // A port tells connections apart.
  server = await startRedis({ port: true });
});
afterAll(() => server.stop());

/** `[ms, address, command]` of all that Redis carries out, until it is stopped. */
async function listening() {
  const monitor = await (await server.client()).monitor();
  const heard: { readonly from: string; readonly command: string }[] = [];
  monitor.on('monitor', (_time: string, args: readonly string[], from: string) => {
    heard.push({ from, command: args.join(' ') });
  });
  return { heard, stop: () => monitor.disconnect() };
}

async function addressesOf(name: RegExp): Promise<ReadonlySet<string>> {
  const list = String(await (await server.client()).client('LIST'));
  const lines = list.split('\n').filter((line) => name.test(line));
  return new Set(lines.map((line) => / addr=(\S+)/.exec(line)?.[1] ?? ''));
}

test('with http.work on and no claim, no command of a job comes from it', async () => {
  const daemon = createDaemon({ redis: server.url, roles: ['mover', 'http'], http: { port: 0, work: 'on' } });
  await daemon.start();
  const worker = createWorker('mail', () => undefined, { redis: server.url });
  await worker.start();
  const client = createClient({ redis: server.url });
  try {
    await expect.poll(async () => (await addressesOf(/name=duestream:work[ :]/)).size).toBe(2);
    await client.schedule('mail', null, { id: 'first', delay: 0 });
    await expect.poll(async () => (await client.get('mail', 'first'))?.state).toBe('done');
    const { heard, stop } = await listening();
    const ids = Array.from({ length: 50 }, (_, at) => `job-${at}`);
    for (const id of ids) await client.schedule('mail', null, { id, delay: 0 });
    await expect.poll(async () => (await client.get('mail', 'job-49'))?.state).toBe('done');
    stop();
    const own = await addressesOf(/name=duestream:work[ :]/);
    const said = heard.filter(({ from }) => own.has(from)).map(({ command }) => command);
    expect(heard.some(({ command }) => command.includes('job-49'))).toBe(true);
    // Twice a minute it looks whether anybody has claimed at another daemon.
    expect(said.filter((command) => !CHORES.test(command))).toEqual([]);
  } finally {
    await client.close();
    await worker.stop();
    await daemon.stop();
  }
});

const CHORES = /^(hgetall \S+:queues|exists \S+:claims)$/i;

test('with http.work off there is no connection of it', async () => {
  const daemon = createDaemon({ redis: server.url, namespace: 'off', roles: ['mover', 'http'], http: { port: 0 } });
  await daemon.start();
  try {
    expect([...(await addressesOf(/name=duestream:work[ :]/))]).toEqual([]);
  } finally {
    await daemon.stop();
  }
});
