/** `remove`: an empty partition vanishes with all its keys; one that holds anything only by force. */
import { expect, test } from 'vitest';
import { remove } from '../../src/redis/scripts/upkeep.ts';
import { T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const removed = (force = false) => remove(p.redis, p.ref, { force });
const EMPTY = { scheduled: 0, entries: 0, dead: 0 };

test('what is over holds nothing: tombstones, counters and the lease go with the partition', async () => {
  await p.complete([await p.running('a')]);
  expect(await removed()).toEqual({ kind: 'ok', holds: EMPTY });
  expect(await p.redis.keys('*')).toEqual([]);
  expect(await p.withoutWrite(() => removed())).toEqual({ kind: 'ok', holds: EMPTY });
});

test.each([
  ['a scheduled job', () => p.schedule('a', { dueMs: T0 + 1 }), { ...EMPTY, scheduled: 1 }],
  ['a running job', () => p.running('a'), { ...EMPTY, entries: 1 }],
  ['a dead letter', () => p.dead('a'), { ...EMPTY, dead: 1 }],
  ['a bare job', () => p.put('a', T0), { ...EMPTY, scheduled: 1 }],
])('%s keeps it, and force removes it all the same', async (_, arrange, holds) => {
  await arrange();
  expect(await p.withoutWrite(() => removed())).toEqual({ kind: 'holds', holds });
  expect(await removed(true)).toEqual({ kind: 'ok', holds });
  expect(await p.redis.keys('*')).toEqual([]);
});

test('a leader whose partition was removed is fenced', async () => {
  await p.schedule('a');
  await p.lead();
  await removed(true);
  expect(await p.withoutWrite(() => p.promote())).toEqual({ kind: 'fenced' });
});
