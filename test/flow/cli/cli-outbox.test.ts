/** `outbox` on the command line: the tables, the relay as a process, and what a person does with rows. */
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import initSqlJs from 'sql.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { build } from '../../../scripts/steps.mjs';
import { type Client, createClient } from '../../../src/client/client.ts';
import { createOutbox, inboxTable, outboxTable, type Run } from '../../../src/sql/index.ts';
import { useCli } from '../../support/cli.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { root } from '../../support/repository.ts';

const cli = useCli();
const outbox = createOutbox({ dialect: 'sqlite' });
const METRICS = [
  'rows 1',
  'refused_rows 1',
  'lag_seconds 0',
  'up 1',
  'calls_total{outcome="done"} 1',
  'calls_total{outcome="refused"} 1',
];
let server: TestRedis;
let client: Client;

beforeAll(async () => {
  await build();
  server = await startRedis({ port: true });
  client = createClient({ redis: server.url });
  // As in a project of a user: the module finds what is installed beside it.
  const modules = join(cli.folder, 'node_modules');
  mkdirSync(modules);
  symlinkSync(root, join(modules, 'duestream'));
  symlinkSync(join(root, 'node_modules/sql.js'), join(modules, 'sql.js'));
  copyFileSync(join(root, 'test/fixtures/outbox-module.mjs'), join(cli.folder, 'outbox.mjs'));
});
afterAll(async () => {
  await client.close();
  await server.stop();
});

/** The rows of the module in this process. */
async function runHere(): Promise<Run> {
  const { run } = await import(pathToFileURL(join(cli.folder, 'outbox.mjs')).href);
  return run;
}

test('the tables are printed, for a migration', async () => {
  expect(await cli.run(['outbox', 'table', 'postgres'])).toEqual({ code: 0, out: outboxTable('postgres'), err: '' });
  expect((await cli.run(['outbox', 'table', 'sqlite', '--inbox'])).out).toBe(inboxTable('sqlite'));
  expect(JSON.parse((await cli.run(['outbox', 'table', 'sqlite', '--json'])).out).sql).toBe(outboxTable('sqlite'));
  expect(await cli.run(['outbox', 'table', 'mysql'])).toMatchObject({ code: 64 });
});

test('rows are listed, tried again and removed', async () => {
  const run = await runHere();
  await outbox.schedule(run, 'mail', { step: 1 }, { id: 'a', delay: '1h' });
  await outbox.cancel(run, 'mail', 'b');
  await outbox.close(run, 'mail', 'invoice:7', { for: '1d' });
  await run("UPDATE duestream_outbox SET error = 'body is no JSON', attempts = 1 WHERE key = 'b'", []);
  const all = await cli.run(['outbox', 'ls', 'outbox.mjs']);
  expect(all.code).toBe(0);
  expect(all.out).toMatch(/^3 rows, 1 refused; the oldest that waits is /);
  expect(all.out).toMatch(/1 {2}schedule {2}mail {3}a .* waits\n/);
  expect(all.out).toMatch(/2 {2}cancel .* refused\n/);
  expect(all.out).toMatch(/3 {2}close .*#invoice:7/);
  expect(all.out).toContain('2  body is no JSON\n');
  expect(all.out.split('\n').every((text) => text.length <= 80)).toBe(true);
  const told = JSON.parse((await cli.run(['outbox', 'ls', 'outbox.mjs', '--refused', '--json'])).out);
  expect(told).toMatchObject({ rows: 3, refused: 1, shown: [{ seq: 2, error: 'body is no JSON' }] });
  expect((await cli.run(['outbox', 'ls', 'outbox.mjs', '--limit', '1'])).out).toContain('--after 1\n');
  expect((await cli.run(['outbox', 'retry', 'outbox.mjs', '--all'])).out).toBe('1 row will be tried again\n');
  expect(await cli.run(['outbox', 'retry', 'outbox.mjs', '2'])).toMatchObject({ code: 1 });
  expect(await cli.run(['outbox', 'rm', 'outbox.mjs', '1', '2', '3', '9'])).toEqual({
    code: 1,
    out: '3 rows removed\nnot removed, as there is none or a relay has it: 9\n',
    err: '',
  });
  expect((await cli.run(['outbox', 'ls', 'outbox.mjs'])).out).toBe(
    '0 rows, 0 refused; the oldest that waits is 0 ms old\n',
  );
});

test('a wrong use is refused', async () => {
  writeFileSync(join(cli.folder, 'none.mjs'), 'export default 5;\n');
  for (const args of [
    ['retry', 'outbox.mjs'],
    ['retry', 'outbox.mjs', '1', '--all'],
    ['rm', 'outbox.mjs', 'x'],
  ]) {
    expect(await cli.run(['outbox', ...args])).toMatchObject({ code: 64, out: '' });
  }
  const none = await cli.run(['outbox', 'ls', 'none.mjs']);
  expect(none).toMatchObject({ code: 64, out: '' });
  expect(none.err).toContain('allowed: export default defineOutbox({ dialect, run })');
  expect((await cli.run(['outbox', 'ls', 'outbx.mjs'])).err).toContain('did you mean outbox.mjs?');
});

test('a relay as a process makes the calls, shows its metrics, and ends at a signal', async () => {
  const file = join(cli.folder, 'outbox.sqlite');
  const { Database } = await initSqlJs();
  const db = new Database();
  db.run(outboxTable('sqlite'));
  const run = (text: string, params: (string | number | null)[]) => {
    db.run(text, params);
    return [];
  };
  outbox.schedule(run, 'mail', { step: 1 }, { id: 'a', delay: '1h' });
  outbox.cancel(run, 'mail', 'bad');
  db.run("UPDATE duestream_outbox SET body = '?' WHERE key = 'bad'");
  writeFileSync(file, db.export());
  const relay = await cli.start(['outbox', 'relay', 'outbox.mjs', '--http-port', '0', '--redis', server.url], {
    env: { OUTBOX_FILE: file },
  });
  const said = await relay.saying(/"msg":"started"/);
  const { port } = JSON.parse(said.split('\n').find((text) => text.includes('"started"')) ?? '{}').http;
  await expect.poll(() => client.get('mail', 'a')).toBeDefined();
  const missing = async () => {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    return METRICS.filter((line) => !text.includes(`duestream_outbox_${line}\n`));
  };
  await expect.poll(missing).toEqual([]);
  expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200);
  expect(await relay.saying('a row of the outbox was refused')).toContain('"key":"bad"');
  expect(await relay.end()).toBe(0);
  const left = new Database(readFileSync(file)).exec('SELECT key FROM duestream_outbox');
  expect(left[0]?.values).toEqual([['bad']]);
});
