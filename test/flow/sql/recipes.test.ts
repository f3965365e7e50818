/** The recipes of the how-to, as they stand on the page: a job is scheduled in a transaction, and carried out by a relay. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import {
  createInbox,
  createOutbox,
  createRelay,
  type Dialect,
  inboxTable,
  outboxTable,
  type Run,
} from '../../../src/sql/index.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { read, root } from '../../support/repository.ts';

interface Recipe {
  readonly run: Run;
  readonly inTransaction: (work: (run: Run) => unknown) => unknown;
  readonly pool?: { readonly end: () => Promise<void> };
}

const page = read('docs/how-to/outbox-drivers.md');
let folder = '';
let server: TestRedis;
let client: Client;
let postgres: { readonly db: PGlite; readonly socket: PGLiteSocketServer };

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'due-recipes-'));
  const modules = join(folder, 'node_modules');
  mkdirSync(modules);
  for (const name of ['pg', 'drizzle-orm']) symlinkSync(join(root, 'node_modules', name), join(modules, name));
  server = await startRedis();
  client = createClient({ redis: server.url });
  const db = await PGlite.create();
  await db.exec(outboxTable('postgres') + inboxTable('postgres'));
  const socket = new PGLiteSocketServer({ db, host: '127.0.0.1', port: 0, maxConnections: 10 });
  await socket.start();
  postgres = { db, socket };
  process.env.DATABASE_URL = `postgres://postgres:postgres@${socket.getServerConn()}/postgres`;
  process.env.DATABASE_FILE = ':memory:';
});
afterAll(async () => {
  delete process.env.DATABASE_URL;
  delete process.env.DATABASE_FILE;
  await client.close();
  await server.stop();
  await postgres.socket.stop();
  await postgres.db.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The program below a heading, without its types. */
async function recipe(heading: string): Promise<Recipe> {
  const [, part = ''] = page.split(new RegExp(`^## ${heading}$`, 'm'));
  const [, code = ''] = /^```ts\n([\s\S]*?)^```/m.exec(part) ?? [];
  const { outputText } = ts.transpileModule(code, { compilerOptions: { target: 99, module: 99 } });
  const file = join(folder, `${heading}.mjs`);
  writeFileSync(file, outputText);
  return import(pathToFileURL(file).href);
}

async function tried({ run, inTransaction }: Recipe, dialect: Dialect, queue: string): Promise<void> {
  const outbox = createOutbox({ dialect });
  const inbox = createInbox({ dialect });
  await inTransaction((own) => outbox.schedule(own, queue, { text: "it's $1?" }, { id: 'a', delay: '1h' }));
  const undone = async () =>
    inTransaction((own) => {
      const ran = outbox.schedule(own, queue, 1, { id: 'b', delay: '1h' });
      const fail = () => {
        throw new Error('no');
      };
      return 'then' in ran ? ran.then(fail) : fail();
    });
  await expect(undone()).rejects.toThrow('no');
  const job = { queue, id: 'a', mark: 'x 1' };
  expect(await inTransaction((own) => inbox.once(own, job))).toBe(true);
  expect(await inTransaction((own) => inbox.once(own, job))).toBe(false);
  expect(await outbox.state(run)).toMatchObject({ rows: 1, refused: 0 });
  expect((await outbox.list(run)).map(({ key }) => key)).toEqual(['a']);
  await using relay = createRelay({ dialect, run, redis: server.url });
  expect(await relay.pass()).toMatchObject({ claimed: 1, done: 1 });
  expect(await client.get(queue, 'a')).toMatchObject({ state: 'scheduled', data: { text: "it's $1?" } });
  expect(await outbox.state(run)).toMatchObject({ rows: 0 });
}

describe('the recipe for', () => {
  test.each([
    ['pg', 'with-pg'],
    ['Drizzle', 'with-drizzle'],
  ])('%s', async (heading, queue) => {
    const made = await recipe(heading);
    await tried(made, 'postgres', queue);
    await made.pool?.end();
  });

  const hasSqlite = Number(process.versions.node.split('.')[0]) >= 22;
  test.skipIf(!hasSqlite)('SQLite', async () => {
    const made = await recipe('SQLite');
    await made.run(outboxTable('sqlite').split(';')[0] ?? '', []);
    await made.run(inboxTable('sqlite').split(';')[0] ?? '', []);
    await tried(made, 'sqlite', 'with-sqlite');
  });
});
