/** The examples of codecs and middleware, as their readers run them: short, in the how-tos word for word, and right. */
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { aesGcm } from '../../../examples/data-and-middleware/aes-gcm.mjs';
import { logging } from '../../../examples/data-and-middleware/logging.mjs';
import { tenancy, tenants } from '../../../examples/data-and-middleware/tenancy.mjs';
import { defineQueue } from '../../../src/job/queue.ts';
import { createTestKit, type TestKit } from '../../../src/testing/index.ts';
import { defineHandlers, type Handler } from '../../../src/worker/run/handlers.ts';
import { read } from '../../support/repository.ts';

const FOLDER = 'examples/data-and-middleware';
const LINES_MAX = 25;

test.each([
  ['aes-gcm.mjs', 'docs/how-to/encrypt-data.md'],
  ['logging.mjs', 'docs/how-to/middleware.md'],
  ['tenancy.mjs', 'docs/how-to/middleware.md'],
])('%s is short, and stands in its how-to', (file, page) => {
  const code = read(`${FOLDER}/${file}`);
  expect(code.trimEnd().split('\n').length).toBeLessThanOrEqual(LINES_MAX);
  expect(read(page)).toContain(code);
  expect(read(`${FOLDER}/README.md`)).toContain(file);
});

test('keys are changed while jobs wait, and a text of another queue or another key is refused', async () => {
  const seen: unknown[] = [];
  const keys = new Map([['2026-01', randomBytes(64)]]);
  const makeQueue = () => defineQueue<{ iban: string }>('payouts', { codec: aesGcm(keys) });
  const before = makeQueue();
  // A worker that has both keys.
  const all = new Map([...keys, ['2026-02', randomBytes(64)]]);
  const after = defineQueue<{ iban: string }>('payouts', { codec: aesGcm(all) });
  const handlers = defineHandlers({ payouts: (job) => void seen.push(job.data.iban) }, { queues: [after] });
  const kit = createTestKit({ handlers });
  const call = () => kit.client.schedule(before, { iban: 'DE02' }, { id: 'old', at: new Date(kit.nowMs + 1000) });
  expect([(await call()).status, (await call()).status]).toEqual(['scheduled', 'already']);
  await kit.client.schedule(after, { iban: 'FR76' }, { id: 'new', delay: '2s' });
  const stored = await Promise.all(['old', 'new'].map((id) => kit.client.get('payouts', id)));
  expect(stored.map((job) => String(job?.data).split('.')[0])).toEqual(['2026-01', '2026-02']);
  expect(JSON.stringify(stored)).not.toMatch(/DE02|FR76/);
  await kit.advance('1h');
  expect(seen).toEqual(['DE02', 'FR76']);

  const other = aesGcm(new Map([['2026-02', randomBytes(64)]]));
  await kit.client.schedule(defineQueue('payouts', { codec: other }), { iban: 'X' }, { id: 'forged' });
  const unknown = aesGcm(new Map([['2025', randomBytes(64)]]));
  await kit.client.schedule(defineQueue('payouts', { codec: unknown }), { iban: 'X' }, { id: 'unknown' });
  await kit.advance('1s');
  expect(kit.jobs({ state: 'dead' }).map(({ reason }) => reason)).toEqual(['bad-data', 'bad-data']);
  const errors = kit.runs.map(({ error }) => error);
  expect(errors).toContain('the codec aes-256-gcm cannot decode the data: there is no key 2025');
});

function kitOf(handler: Handler<{ again?: boolean }>): TestKit {
  return createTestKit({ handlers: { mail: handler } });
}

test('logging tells of each job and of each end', async () => {
  const lines: string[] = [];
  const kit = kitOf(({ id }) => {
    if (id === 'b') throw new Error('no');
  });
  for (const one of [kit, kit.client]) one.use(logging((line) => lines.push(line)));
  for (const id of ['a', 'b']) await kit.client.schedule('mail', {}, { id, attempts: 1 });
  await kit.advance('1s');
  expect(lines).toEqual([
    ...['mail a scheduled', 'mail b scheduled', 'mail a done at attempt 1', 'mail b failed at attempt 1: Error: no'],
  ]);
});

test('a tenant travels with its jobs, also with those of its handlers', async () => {
  const seen: unknown[] = [];
  const kit = kitOf(async (job, context) => {
    seen.push(tenants.getStore());
    if (job.data.again) await context.schedule('mail', {}, { id: 'b', delay: '1h' });
  });
  for (const one of [kit, kit.client]) one.use(tenancy);
  await expect(kit.client.schedule('mail', {})).rejects.toThrow('without a tenant');
  await tenants.run('acme', () => kit.client.schedule('mail', { again: true }, { id: 'a' }));
  await kit.advance('2h');
  expect(seen).toEqual(['acme', 'acme']);
});
