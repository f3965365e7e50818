/** The SQL of the page about other products makes jobs of the rows of pg-boss, by `schedule --bulk`. */
import { PGlite } from '@electric-sql/pglite';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { useCli } from '../../support/cli.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { read } from '../../support/repository.ts';

const cli = useCli();
let server: TestRedis;
let client: Client;
let database: PGlite;

/** The columns that the SQL reads, as pg-boss defines them. */
const TABLE = `
  CREATE SCHEMA pgboss;
  CREATE TABLE pgboss.job (
    id uuid not null default gen_random_uuid(),
    name text not null,
    data jsonb,
    state text not null default 'created',
    retry_limit integer not null default 2,
    retry_count integer not null default 0,
    retry_delay integer not null default 0,
    retry_backoff boolean not null default false,
    start_after timestamp with time zone not null default now()
  );
  INSERT INTO pgboss.job (id, name, data, state, retry_limit, retry_count, retry_delay, retry_backoff, start_after) VALUES
    ('00000000-0000-0000-0000-000000000001', 'mails', '{"to":"a"}', 'created', 2, 0, 5, false, '2030-01-01T00:00:00.123Z'),
    ('00000000-0000-0000-0000-000000000002', 'mails', NULL, 'retry', 4, 1, 10, true, '2030-01-02T00:00:00Z'),
    ('00000000-0000-0000-0000-000000000003', 'mails', '{}', 'completed', 2, 0, 0, false, now()),
    ('00000000-0000-0000-0000-000000000004', 'calls', '{}', 'created', 2, 0, 0, false, now());
`;

beforeAll(async () => {
  server = await startRedis({ port: true });
  client = createClient({ redis: server.url });
  database = new PGlite();
  await database.exec(TABLE);
});
afterAll(async () => {
  await database.close();
  await client.close();
  await server.stop();
});

test('rows that wait are jobs with their times, their data and the attempts that are left, however often it is made', async () => {
  const [, sql = ''] =
    /```sql\n([\s\S]*?FROM pgboss\.job[\s\S]*?)```/.exec(read('docs/how-to/come-from-bullmq.md')) ?? [];
  const { rows } = await database.query<readonly [string]>(sql, [], { rowMode: 'array' });
  const input = rows.map(([text]) => `${text}\n`).join('');
  const bulk = () => cli.run(['schedule', 'mails', '--bulk', '-', '--redis', server.url], { input });
  expect(await bulk()).toMatchObject({ code: 0, out: '2 lines, 2 scheduled\n' });
  expect(await bulk()).toMatchObject({ code: 0, out: '2 lines, 2 already\n' });
  const [first, second] = await Promise.all(
    [1, 2].map((nth) => client.get('mails', `00000000-0000-0000-0000-00000000000${nth}`)),
  );
  expect(first).toMatchObject({
    dueMs: Date.UTC(2030, 0, 1) + 123,
    data: { to: 'a' },
    options: { attempts: 3, backoff: { kind: 'fixed', delayMs: 5000 } },
  });
  expect(second).toMatchObject({
    dueMs: Date.UTC(2030, 0, 2),
    options: { attempts: 4, backoff: { kind: 'exponential', delayMs: 40_000, jitter: 'equal' } },
  });
});
