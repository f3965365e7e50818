/** `dev --cluster` and `dev --sentinel`: the servers they run, whom they refuse, and that nothing is left of them. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { writeDevFile } from '../../../src/cli/dev/dev-file.ts';
import { type DevRedis, type DevRedisFlags, openDevRedis } from '../../../src/cli/dev/dev-redis.ts';
import { openSession } from '../../../src/cli/session.ts';
import { answersPing, ask } from '../../../src/embedded/ask.mjs';
import { runHere } from '../../support/console.ts';
import { testBinary } from '../../support/redis-binary.ts';

let cwd = '';
const places: DevRedis[] = [];
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'due-dev-'));
});
afterEach(async () => {
  for (const place of places.splice(0)) await place.stop();
  rmSync(cwd, { recursive: true, force: true });
});

/** The Redis that `dev` would use in our folder; what it says to the person who waits goes to `said`. */
async function place(flags: Partial<DevRedisFlags>, env: Readonly<Record<string, string>> = {}, said: string[] = []) {
  const all = { DUESTREAM_REDIS_SERVER_BIN: await testBinary(), ...env };
  const stderr = { write: (text: string) => said.push(text) };
  const session = openSession({ args: [], env: all, cwd, stdin: Readable.from([]), stdout: stderr, stderr }, {});
  const found = await openDevRedis(session, { redisPort: 21_000 + Math.floor(Math.random() * 1000), ...flags });
  places.push(found);
  return found;
}

const portOf = (address = '') => Number(address.split(':')[1]);

/** As dev does when its daemon is up. */
const publish = ({ url }: DevRedis) => writeDevFile(cwd, { url, pid: process.pid, http: undefined });

describe('dev --cluster', () => {
  test('runs six servers at ports from the one that was wanted on, says where, and leaves nothing when it stops', async () => {
    const said: string[] = [];
    const { url, kind, servers, shell, stop } = await place({ cluster: true }, {}, said);
    expect(said.join('')).toContain(`${url} is up`);
    expect(kind).toBe('started');
    expect(servers.map(({ name }) => name)).toEqual(
      ['master', 'replica'].flatMap((role) => [1, 2, 3].map((at) => `${role}-${at}`)),
    );
    expect(url).toBe(`cluster://${servers.map(({ address }) => address).join(',')}`);
    expect(shell).toMatch(/ -c -p \d+$/);
    const nodes = await ask({ port: portOf(servers[0]?.address) }, ['CLUSTER', 'INFO']);
    expect(nodes).toContain('cluster_state:ok');
    await stop();
    const answers = await Promise.all(servers.map(({ address }) => answersPing({ port: portOf(address) })));
    expect(answers).toEqual(Array(6).fill(false));
    expect(existsSync(join(cwd, '.duestream'))).toBe(false);
  });

  test('is refused together with a Redis that somebody named', async () => {
    const env = { DUESTREAM_REDIS_URL: 'redis://user:hush@10.0.0.5:6379' };
    const refused = place({ cluster: true }, env);
    await expect(refused).rejects.toMatchObject({
      code: 'usage',
      message: expect.stringMatching(
        /^--cluster starts servers, and redis.url names redis:.*@10\.0\.0\.5:6379 \(DUESTREAM_REDIS_URL\)/,
      ),
    });
  });
});

test('a cluster and Sentinels at once are refused', async () => {
  const { code, err } = await runHere(['dev', '--cluster', '--sentinel'], { cwd });
  expect({ code, err }).toEqual({ code: 64, err: expect.stringContaining("'--sentinel'") });
});

describe('with several servers', () => {
  test('a second dev in the same folder uses those of the first, and its stop leaves them', async () => {
    const first = await place({ sentinel: true });
    publish(first);
    const second = await place({ sentinel: true });
    expect(second).toMatchObject({ url: first.url, kind: 'attached', pid: process.pid });
    await second.stop();
    expect(await answersPing({ port: portOf(first.servers[0]?.address) })).toBe(true);
  });

  test('and with others two devs do not share a folder', async () => {
    publish(await place({ sentinel: true }));
    const refused = { code: 'usage', message: expect.stringMatching(/^another dev \(pid \d+\) runs in this folder/) };
    await expect(place({ cluster: true })).rejects.toMatchObject(refused);
    await expect(place({})).rejects.toMatchObject(refused);
  });

  test('the file of a dev whose servers are gone is passed over', async () => {
    const first = await place({ sentinel: true });
    publish(first);
    await first.stop();
    expect(await place({ sentinel: true })).toMatchObject({ kind: 'started' });
  });
});

test('dev --sentinel runs a primary, two replicas and three Sentinels that name it', async () => {
  const { url, servers, shell } = await place({ sentinel: true });
  const [master, , , ...watchers] = servers;
  expect(servers.map(({ name }) => name)).toEqual([
    'master-1',
    ...[1, 2].map((at) => `replica-${at}`),
    ...[1, 2, 3].map((at) => `sentinel-${at}`),
  ]);
  expect(url).toBe(`sentinel://${watchers.map(({ address }) => address).join(',')}/duestream`);
  expect(shell).toMatch(new RegExp(` -p ${portOf(master?.address)}$`));
  const command = ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'duestream'];
  const named = await Promise.all(watchers.map(({ address }) => ask({ port: portOf(address) }, command)));
  expect(named).toEqual(Array(3).fill(['127.0.0.1', String(portOf(master?.address))]));
});
