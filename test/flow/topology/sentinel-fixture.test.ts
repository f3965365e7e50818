/** The Sentinels that tests and `dev --sentinel` use: real servers that agree, fail over, and leave nothing behind. */
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Sentinels } from '../../../src/embedded/sentinels.mjs';
import { leftOf, startElsewhere } from '../../support/left-behind.ts';
import { startTestSentinels } from '../../support/topology.ts';

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const act of cleanUps.splice(0).reverse()) await act();
});

describe('a primary with two replicas and three Sentinels', () => {
  let group: Sentinels;
  beforeAll(async () => {
    group = await startTestSentinels();
  });
  afterAll(() => group.close());

  test('has the roles it should have, and an address that names every Sentinel', async () => {
    const roles = await Promise.all([...group.nodes, ...group.sentinels].map((node) => node.role()));
    expect(roles).toEqual(['master', 'replica', 'replica', 'sentinel', 'sentinel', 'sentinel']);
    const hosts = group.sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',');
    expect(group.url).toBe(`sentinel://${hosts}/duestream`);
  });

  test('has Sentinels that agree on the primary and could elect another, and replicas in step', async () => {
    expect((await group.master()).name).toBe('master-1');
    const said = await Promise.all(group.sentinels.map((node) => node.ask('SENTINEL', 'CKQUORUM', group.name)));
    for (const text of said) expect(text).toMatch(/^OK 3 usable Sentinels/);
    const links = await Promise.all(group.nodes.slice(1).map((node) => node.info('master_link_status')));
    expect(links).toEqual(['up', 'up']);
  });

  test('gets another primary when that one is killed, and takes it back as a replica', async () => {
    const killed = await group.master();
    await group.kill(killed);
    const current = () => group.master().then(({ name }) => name);
    await expect.poll(current).toMatch(/^replica-/);
    await expect.poll(async () => (await group.master()).role()).toBe('master');
    await group.restart(killed);
    await expect.poll(() => killed.role()).toBe('replica');
  });

  test('leaves nothing when it is closed', async () => {
    const traces = { dir: group.dir, pids: [...group.nodes, ...group.sentinels].map(({ pid }) => pid) };
    await group.close();
    expect(leftOf(traces)).toEqual([]);
  });
});

test('the servers and Sentinels leave nothing when who started them is killed', async () => {
  const { parent, ...traces } = await startElsewhere('sentinels', 'startSentinels');
  cleanUps.push(() => parent.kill('SIGKILL'));
  expect(leftOf(traces)).toHaveLength(7);
  parent.kill('SIGKILL');
  await expect.poll(() => leftOf(traces)).toEqual([]);
});

test('with TLS, access rules and a login for the Sentinels only who has all of them gets in', async () => {
  const sentinelLogin = { username: 'watch', password: 'secret-of-watch' };
  const group = await startTestSentinels({ tls: true, acl: true, sentinelLogin });
  cleanUps.push(() => group.close());
  expect(group.url).toMatch(/^sentinels:\/\/app:secret-of-app@127\.0\.0\.1:\d+,.*\/duestream$/);
  const all = {
    sentinels: group.sentinels.map(({ host, port }) => ({ host, port })),
    name: group.name,
    username: 'app',
    password: 'secret-of-app',
    tls: { ca: group.ca },
    sentinelUsername: 'watch',
    sentinelPassword: 'secret-of-watch',
    sentinelTLS: { ca: group.ca },
    enableTLSForSentinelMode: true,
  };
  const connect = (options: object) => {
    const client = new Redis({ ...all, ...options, sentinelRetryStrategy: () => null, retryStrategy: () => null });
    client.on('error', () => undefined);
    cleanUps.push(() => client.disconnect());
    return client;
  };
  expect(await connect({}).set('a', 'x')).toBe('OK');
  for (const wrong of [{ password: 'wrong' }, { sentinelPassword: 'wrong' }, { sentinelTLS: undefined }])
    await expect(connect(wrong).set('a', 'x')).rejects.toThrow();
});
