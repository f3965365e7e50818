/** The test kit refuses what a queue has no room for, by the rules of the product. */
import { expect, test } from 'vitest';
import { defineQueue } from '../../src/index.ts';
import { createTestKit } from '../../src/testing/index.ts';

const start = '2026-03-01T00:00:00Z';
const full = { code: 'queue-full' };

test('a new job is refused while as many wait or run as there may be', async () => {
  const mail = defineQueue('mail', { maxPending: 2 });
  const kit = createTestKit({ start, queues: [mail], handlers: { mail: () => undefined } });
  await kit.schedule('mail', 1, { id: 'a', delay: '1h' });
  await kit.schedule('mail', 2, { id: 'b', delay: '2h' });
  await expect(kit.schedule('mail', 3, { id: 'c', delay: '1h' })).rejects.toMatchObject(full);
  expect(await kit.schedule('mail', 4, { id: 'b', delay: '3h', ifExists: 'replace' })).toMatchObject({
    status: 'replaced',
  });
  await kit.advance('1h');
  expect(await kit.schedule('mail', 3, { id: 'c', delay: '1h' })).toMatchObject({ status: 'scheduled' });
});

test('records take as many bytes as there may be; a job that is replaced is judged by the difference', async () => {
  const mail = defineQueue('mail', { maxBytes: 1024 });
  const kit = createTestKit({ start, queues: [mail], handlers: { mail: () => undefined } });
  await kit.schedule('mail', 'x'.repeat(600), { id: 'a', delay: '1h' });
  await expect(kit.schedule('mail', 'x'.repeat(600), { id: 'b', delay: '1h' })).rejects.toThrow(/maxBytes: 1024/);
  const again = { id: 'a', delay: '1h', ifExists: 'replace' } as const;
  await expect(kit.schedule('mail', 'x'.repeat(1100), again)).rejects.toMatchObject(full);
  expect(await kit.schedule('mail', 'x'.repeat(900), again)).toMatchObject({ status: 'replaced' });
});

test('what a schedule fires is not refused, and counts', async () => {
  const mail = defineQueue('mail', { maxPending: 1 });
  const kit = createTestKit({ start, queues: [mail], handlers: { mail: () => undefined } });
  await kit.schedule('mail', 1, { delay: '5h' });
  await kit.client.schedules.put('hourly', { queue: 'mail', every: '1h' });
  await kit.advance('2h');
  expect(kit.runs.length).toBeGreaterThan(0);
});

test('a new job is refused while as many of its group wait or run as there may be', async () => {
  const mail = defineQueue('mail', { perGroup: { concurrency: 1, maxPending: 2 } });
  const lasts = () => '10m';
  const kit = createTestKit({ start, queues: [mail], handlers: { mail: () => undefined }, lasts });
  const put = (id: string, group: string, options: object = {}) => kit.schedule('mail', 1, { id, group, ...options });
  await put('a', 'acme');
  await put('b', 'acme', { delay: '1h' });
  await put('a', 'umbrella');
  const refused = put('c', 'acme');
  await expect(refused).rejects.toMatchObject({ code: 'group-full' });
  await expect(refused).rejects.toThrow('group acme of queue mail is full: 2 of its jobs wait or run; allowed by its');
  expect(await kit.client.groups.get('mail', 'acme')).toMatchObject({ pending: 2, maxPending: 2 });
  expect(await put('b', 'acme', { delay: '2h', ifExists: 'replace' })).toMatchObject({ status: 'replaced' });
  await kit.advance('11m');
  expect(await put('c', 'acme', { delay: '1h' })).toMatchObject({ status: 'scheduled' });
  await expect(put('d', 'acme')).rejects.toMatchObject({ code: 'group-full' });
  await kit.queues.set('mail', { perGroup: { maxPending: false } });
  await put('d', 'acme');
});

test('jobs from before the limit do not count in their group, and a job with ten tags has no place for it', async () => {
  const mail = defineQueue('mail', { fair: true });
  const kit = createTestKit({ start, queues: [mail], handlers: { mail: () => undefined } });
  const put = (id: string, options: object = {}) =>
    kit.schedule('mail', 1, { id, group: 'acme', delay: '1h', ...options });
  await put('a');
  await kit.queues.set('mail', { perGroup: { maxPending: 1 } });
  await put('b');
  await expect(put('c')).rejects.toMatchObject({ code: 'group-full' });
  const tags = [...'0123456789'];
  await expect(put('d', { group: 'umbrella', tags })).rejects.toThrow('allowed: up to 9 tags beside it');
  await put('d', { group: 'umbrella', tags: tags.slice(1) });
});
