/** The test kit closes tags by the rules of the product. */
import { expect, test } from 'vitest';
import { Unrecoverable } from '../../src/index.ts';
import { createTestKit } from '../../src/testing/index.ts';

const start = '2026-03-01T00:00:00Z';
const DAY_MS = 86_400_000;
const tags = ['invoice:7'];

test('a ladder ends with the payment, and a step that comes late is not scheduled', async () => {
  const kit = createTestKit({ start, handlers: { mail: () => undefined } });
  for (const [nth, delay] of ['1h', '1d', '3d'].entries())
    await kit.schedule('mail', nth, { id: `7:${nth}`, tags, delay });
  await kit.advance('2h');
  const startMs = Date.parse(start);
  expect(await kit.client.tags.close('mail', 'invoice:7', { for: '90d', reason: 'paid' })).toEqual({
    cancelled: 2,
    running: [],
    untilMs: startMs + 7_200_000 + 90 * DAY_MS,
  });
  const late = await kit.schedule('mail', 3, { id: '7:3', tags, delay: '7d' });
  expect(late).toMatchObject({ status: 'closed', closed: { tag: 'invoice:7' } });
  expect(await kit.schedule('mail', 0, { id: '8:0', tags: ['invoice:8'], delay: '1h' })).toMatchObject({
    status: 'scheduled',
  });
  await kit.advance('10d');
  expect(kit.runs.map(({ id }) => id)).toEqual(['7:0', '8:0']);
  expect((await kit.client.tags.list('mail')).tags).toMatchObject([{ tag: 'invoice:7', reason: 'paid' }]);
});

test('what nobody asked about is cancelled when it would start', async () => {
  const kit = createTestKit({ start, handlers: { mail: () => undefined } });
  await kit.schedule('mail', 1, { id: 'a', delay: '1h' });
  await kit.client.tags.close('mail', 'x', { for: '2h' });
  await kit.client.edit('mail', 'a', { tags: ['x'] });
  await kit.client.schedules.put('hourly', { queue: 'mail', every: '1h', jobTags: ['x'] });
  await kit.advance('90m');
  expect(kit.runs).toEqual([]);
  expect(kit.jobs().map(({ state }) => state)).toEqual(['cancelled', 'cancelled']);
  await kit.advance('2h');
  expect(kit.runs.length).toBeGreaterThan(0);
});

test('a dead letter stays while a tag of its job is closed', async () => {
  const kit = createTestKit({
    start,
    handlers: {
      mail() {
        throw new Unrecoverable('no');
      },
    },
  });
  await kit.schedule('mail', 1, { id: 'a', tags });
  await kit.advance('1s');
  await kit.client.tags.close('mail', tags, { for: '1h' });
  const [letter] = (await kit.client.deadLetters.list('mail')).deadLetters;
  const replay = () => kit.client.deadLetters.replay('mail', letter?.deadLetter ?? '');
  expect(await replay()).toMatchObject({ status: 'closed' });
  expect(await kit.client.deadLetters.replay('mail', {}, { all: true })).toMatchObject({
    changed: 0,
    skipped: { closed: 1 },
  });
  expect(await kit.client.tags.open('mail', tags)).toEqual({ opened: tags });
  expect(await replay()).toMatchObject({ status: 'scheduled' });
});

test('the longest end wins, and a tag opens at its end', async () => {
  const kit = createTestKit({ start, handlers: { mail: () => undefined } });
  const untilMs = Date.parse(start) + 3_600_000;
  await kit.client.tags.close('mail', tags, { for: '1h', reason: 'first' });
  expect(await kit.client.tags.close('mail', tags, { for: '1m' })).toMatchObject({ untilMs });
  expect((await kit.client.tags.list('mail')).tags).toMatchObject([{ untilMs, reason: 'first' }]);
  await kit.advance('1h');
  expect((await kit.client.tags.list('mail')).count).toBe(0);
  expect(await kit.schedule('mail', 1, { tags })).toMatchObject({ status: 'scheduled' });
});
