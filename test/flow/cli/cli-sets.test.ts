/** `sets` on the command line. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { auditEntries } from '../../../src/access/audit.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { useCli } from '../../support/cli.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const cli = useCli();
let server: TestRedis;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: server.url, name: 'test' });
  await whenReady(redis);
});
afterAll(async () => {
  close(redis);
  await server.stop();
});
const run = (...args: readonly string[]) => cli.run([...args, '--redis', server.url]);

test('a set is created, filled, looked at, sealed and over', async () => {
  const create = () =>
    run('sets', 'create', 'imports', 'import-7', '--name', 'imported', '--data', '{"file":7}', '--delay', '5s');
  expect((await create()).out).toBe('set import-7 of imports  is there\n');
  expect((await create()).out).toBe('set import-7 of imports  was there with this callback\n');
  expect((await run('schedule', 'imports', '--set', 'import-7', '--id', 'row-1', '--delay', '1h')).out).toMatch(
    /^\{set:import-7\}row-1 {2}scheduled/,
  );
  expect((await run('sets', 'ls', 'imports')).out).toMatch(/import-7 +no +1 +0/);
  const shown = await run('sets', 'show', 'imports', 'import-7');
  expect(shown.out).toMatch(
    /open +1 member\n.*0 done, 0 dead.*\n.*\{set:import-7\}\{then\}, named imported, 5 s later/s,
  );
  expect((await run('ls', 'imports', '--set', 'import-7')).out).toContain('{set:import-7}row-1');
  expect((await run('ls', 'imports', '--count', '--set', 'import-8')).out).toMatch(/^0\b/);
  expect((await run('cancel', 'imports', '--set', 'import-7', '--dry-run')).out).toMatch(/1 job/);
  expect(await run('dead', 'ls', 'imports', '--set', 'import-7')).toMatchObject({ code: 0 });
  expect((await run('ls', 'imports', '--state', 'over', '--set', 'import-7')).err).toContain('keeps no history');
  expect((await run('sets', 'seal', 'imports', 'import-7')).out).toBe('set import-7 of imports  is sealed\n');
  await run('cancel', 'imports', '{set:import-7}row-1');
  expect((await run('sets', 'seal', 'imports', 'import-7')).out).toMatch(/is over/);
  expect((await create()).code).toBe(1);
  expect((await run('show', 'imports', '{set:import-7}{then}')).out).toContain('imported');
  expect((await run('sets', 'ls', 'imports')).out).toBe('no set of imports waits for its members\n');
});

test('a set is removed with its members, and each change is in the audit', async () => {
  await run('sets', 'create', 'imports', 'import-8');
  await run('schedule', 'imports', '--set', 'import-8', '--delay', '1h');
  expect((await run('sets', 'rm', 'imports', 'import-8')).out).toBe(
    'set import-8 of imports  removed, 1 member cancelled\n',
  );
  expect(await run('sets', 'rm', 'imports', 'import-8')).toMatchObject({ code: 1 });
  expect(await run('sets', 'show', 'imports', 'import-8')).toMatchObject({ code: 1 });
  expect(await run('schedule', 'imports', '--set', 'import-8')).toMatchObject({ code: 1 });
  const entries = await auditEntries({ redis, namespace: 'duestream' }, { limit: 10 });
  const verbs = entries.map(({ verb }) => verb);
  expect(verbs).toEqual(expect.arrayContaining(['sets.create', 'sets.seal', 'sets.remove']));
});
