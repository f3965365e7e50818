/** `duestream admin prove` as a process, on servers of every kind. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PREFIX } from '../../../src/prove/namespace.ts';
import type { Proof } from '../../../src/prove/prove.ts';
import { controlKeys } from '../../../src/redis/keys.ts';
import { useCli } from '../../support/cli.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { startServed } from '../../support/served-redis.ts';
import { startTestSentinels } from '../../support/topology.ts';
import { startCluster } from '../../support/topology-lite.ts';

const cli = useCli();
let server: TestRedis;

beforeAll(async () => {
  server = await startRedis({ port: true, appendonly: true });
});
afterAll(() => server.stop());

const FEW = ['--jobs', '20', '--seconds', '120'];
const PATIENCE_MS = 180_000;

async function proved(url: string, args: readonly string[] = FEW, env: Readonly<Record<string, string>> = {}) {
  const { code, out, err } = await cli.spawn(['admin', 'prove', '--redis', url, '--json', ...args], { env });
  const proof: Proof = JSON.parse(out);
  const statusOf = Object.fromEntries(proof.rows.map(({ row, status }) => [row, status]));
  const rowOf = (name: string) => proof.rows.find(({ row }) => row === name);
  return { code, err, proof, statusOf, rowOf };
}

const ROWS = [
  ...['login', 'version', 'role', 'eviction', 'persistence'],
  ...['lost-replies', 'worker-killed', 'leader-killed', 'left'],
];
const HELD = Object.fromEntries(ROWS.map((row) => [row, 'held']));
const NEED_RIGHTS = ['lost-replies', 'worker-killed', 'leader-killed'];
const NOT_TRIED = Object.fromEntries(NEED_RIGHTS.map((row) => [row, 'not tried']));

test(
  'two runs at once: everything holds, nothing is left, and nobody is disturbed',
  async () => {
    const redis = await server.client();
    await redis.set('theirs', '1');
    const all = await Promise.all([proved(server.url), proved(server.url)]);
    for (const { code, err, proof, statusOf, rowOf } of all) {
      expect(statusOf).toEqual(HELD);
      expect({ code, err, ok: proof.ok }).toEqual({ code: 0, err: '', ok: true });
      expect(rowOf('lost-replies')?.figures).toMatchObject({ jobs: 20, done: 20, dead: 0, twice: 0 });
      expect(rowOf('worker-killed')?.figures).toMatchObject({ jobs: 5, done: 5 });
      expect(rowOf('leader-killed')?.figures).toMatchObject({ jobs: 20, done: 20 });
      expect(rowOf('left')?.figures).toMatchObject({ left: 0 });
    }
    expect(all[0]?.proof.namespace).not.toBe(all[1]?.proof.namespace);
    expect(await redis.keys('*')).toEqual(['theirs']);
  },
  PATIENCE_MS,
);

test(
  'a job that somebody else removes while replies are lost fails that row',
  async () => {
    const running = await cli.start(['admin', 'prove', '--redis', server.url, '--json', ...FEW]);
    const redis = await server.client();
    let isOver = false;
    running.child.once('close', () => {
      isOver = true;
    });
    // The last one waits for nearly three seconds. A call whose reply was lost is made again, so it may come twice.
    while (!isOver) {
      for (const key of await redis.keys(`${PREFIX}*{lost:0}:scheduled`)) {
        await redis.hdel(key.replace(/scheduled$/, 'jobs'), 'j:lost-19');
        await redis.zrem(key, 'j:lost-19');
      }
    }
    const { rows }: Proof = JSON.parse(await running.saying('"rows"'));
    expect(running.child.exitCode).toBe(1);
    expect(rows.find(({ row }) => row === 'lost-replies')).toMatchObject({ status: 'failed', figures: { done: 19 } });
  },
  PATIENCE_MS,
);

test(
  'what a login may not do is named, and what needs it is not tried',
  async () => {
    const redis = await server.client();
    await redis.call('ACL', 'SETUSER', 'app', 'reset', 'on', '>secret', '~*', '&*', '+@all', '-xclaim', '-scan');
    const { code, statusOf, rowOf } = await proved(server.url.replace('//', '//app:secret@'));
    expect(code).toBe(1);
    expect(statusOf).toEqual({ ...HELD, ...NOT_TRIED, login: 'failed' });
    expect(rowOf('login')).toMatchObject({ saw: expect.stringContaining('xclaim'), advice: 'ACL SETUSER app +xclaim' });
    expect(rowOf('left')?.saw).toContain('SCAN is not allowed');
    expect(await redis.keys(`${PREFIX}*`)).toEqual([]);
  },
  PATIENCE_MS,
);

test(
  'a Redis that forgets fails, with what to set',
  async () => {
    const forgetful = await startRedis({ port: true });
    const { code, rowOf } = await proved(forgetful.url, ['--seconds', '5']);
    await forgetful.stop();
    expect(code).toBe(1);
    expect(rowOf('persistence')).toMatchObject({ status: 'failed', advice: expect.stringContaining('appendonly yes') });
  },
  PATIENCE_MS,
);

describe('an end before its time', () => {
  test(
    'the time is up: the rest is not tried, and nothing is left',
    async () => {
      const { code, proof, rowOf } = await proved(server.url, ['--seconds', '5']);
      expect({ code, timeIsUp: proof.timeIsUp }).toEqual({ code: 75, timeIsUp: true });
      expect(rowOf('leader-killed')).toMatchObject({ status: 'not tried', saw: expect.stringContaining('--seconds') });
      expect(await keysOfRuns()).toEqual([]);
    },
    PATIENCE_MS,
  );

  test(
    'somebody interrupts: it says how far it came, and nothing is left, no process either',
    async () => {
      const running = await begun();
      expect(await running.end('SIGINT')).toBe(1);
      expect(await keysOfRuns()).toEqual([]);
      expect(await clientsOfRuns()).toEqual([]);
    },
    PATIENCE_MS,
  );

  test(
    'it is killed: its processes end too, and what it left can be removed, but not while another one runs',
    async () => {
      const redis = await server.client();
      const killed = await begun();
      const [lost = ''] = await namespaces();
      await killed.end('SIGKILL');
      await expect.poll(clientsOfRuns, { interval: 100 }).toEqual([]);
      const other = await begun();
      const [runs = ''] = (await namespaces()).filter((name) => name !== lost);
      // In 15 s they go by themselves.
      const control = controlKeys(lost);
      for (const id of await redis.smembers(control.alive)) await redis.del(control.beat(id));
      const { code, out } = await cli.spawn(['admin', 'prove', '--clean', '--redis', server.url, '--json']);
      expect(code).toBe(0);
      const cleaned: { readonly runs: readonly { readonly namespace: string }[] } = JSON.parse(out);
      expect(cleaned.runs.find(({ namespace }) => namespace === lost)).toMatchObject({ isAlive: false });
      expect(cleaned.runs.find(({ namespace }) => namespace === runs)).toMatchObject({ isAlive: true, removed: 0 });
      expect(await namespaces()).toEqual([runs]);
      expect(await other.end('SIGTERM')).toBe(1);
      expect(await keysOfRuns()).toEqual([]);
    },
    PATIENCE_MS,
  );

  /** A run whose daemon and worker are up. */
  async function begun() {
    const before = (await namespaces()).length;
    const running = await cli.start(['admin', 'prove', '--redis', server.url, '--jobs', '5000', '--seconds', '120']);
    await expect.poll(() => running.err()).toContain('while replies are lost');
    await expect.poll(async () => (await namespaces()).length).toBe(before + 1);
    await expect.poll(keysOfRuns).toContainEqual(expect.stringMatching(/lost:0}:scheduled/));
    return running;
  }
});

test(
  'a cluster: each of its servers',
  async () => {
    const cluster = await startCluster({ replicas: false, args: ['--appendonly', 'yes'] });
    const { statusOf } = await proved(cluster.url);
    const left = await Promise.all(cluster.masters.map(({ client }) => client.dbsize()));
    await cluster.stop();
    expect(statusOf).toEqual(HELD);
    expect(left).toEqual([0, 0, 0]);
  },
  PATIENCE_MS,
);

test(
  'a primary behind Sentinels, with TLS and a password: the lossy line stands in the way of TLS too',
  async () => {
    const group = await startTestSentinels({ tls: true, acl: true });
    const { proof, statusOf } = await proved(group.url, FEW, { DUESTREAM_REDIS__CA: group.caFile ?? '' });
    await group.close();
    expect(statusOf).toEqual({ ...HELD, persistence: 'failed' });
    expect(JSON.stringify(proof)).not.toContain('secret-of-app');
  },
  PATIENCE_MS,
);

test(
  'a service without channels and reads that block: everything holds where workers poll',
  async () => {
    const served = await startServed();
    const { code, statusOf, rowOf } = await proved(served.url, FEW, { DUESTREAM_WORKER__READ: 'poll' });
    await served.stop();
    expect(statusOf).toEqual(HELD);
    expect(rowOf('login')?.saw).toContain('this service has no client|id, client|unblock, spublish, ssubscribe');
    expect(code).toBe(0);
  },
  PATIENCE_MS,
);

test.each([
  [['--jobs', '0'], 64],
  [['--seconds', '4'], 64],
  [['--sconds', '9'], 64],
])('wrong input: %j', async (args, code) => {
  expect((await cli.run(['admin', 'prove', '--redis', server.url, ...args])).code).toBe(code);
});

test('a Redis that is away', async () => {
  expect((await cli.run(['admin', 'prove', '--redis', 'redis://127.0.0.1:1'])).code).toBe(69);
});

async function keysOfRuns(): Promise<readonly string[]> {
  return (await server.client()).keys(`${PREFIX}*`);
}

async function namespaces(): Promise<readonly string[]> {
  return [...new Set((await keysOfRuns()).map((key) => key.split(':')[0] ?? ''))];
}

/** Connections of daemons, workers and producers. */
async function clientsOfRuns(): Promise<readonly string[]> {
  const list = String(await (await server.client()).client('LIST'));
  return list.split('\n').filter((text) => text.includes('name=duestream:'));
}
