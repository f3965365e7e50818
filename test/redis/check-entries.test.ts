/** `checkEntries`: entries that nobody would ever deliver again are found. */
import { expect, test } from 'vitest';
import { checkEntries } from '../../src/redis/repair/damage.ts';
import { T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const look = (part: 'ready' | 'front' | 'pending', limit = 100) =>
  p.withoutWrite(() => checkEntries(p.redis, p.ref, { part, limit }));
const found = async (part: 'ready' | 'front' | 'pending' = 'ready') =>
  (await look(part)).found.map(({ kind, detail }) => [kind, detail]);

async function three(): Promise<void> {
  for (const id of ['a', 'b', 'c']) await p.schedule(id);
  await p.promote();
}

test('a partition without a stream has nothing to tell', async () => {
  for (const part of ['ready', 'front', 'pending'] as const) {
    expect(await look(part)).toEqual({ next: undefined, looked: 0, found: [] });
  }
});

test('entries that wait or are held are well', async () => {
  await three();
  await p.read('w1', 1);
  for (const part of ['ready', 'front', 'pending'] as const) expect(await found(part)).toEqual([]);
});

test('an entry that was delivered and is held by nobody is stuck', async () => {
  await three();
  await p.read('w1', 2);
  await p.redis.call('XGROUP', 'DELCONSUMER', p.keys.ready, 'workers', 'w1');
  for (const part of ['ready', 'front'] as const) {
    expect(await found(part)).toEqual([
      ['stuck', 'j:a'],
      ['stuck', 'j:b'],
    ]);
  }
});

test('pages go on where the last one ended', async () => {
  await three();
  const first = await look('ready', 2);
  expect(first.looked).toBe(2);
  const rest = await checkEntries(p.redis, p.ref, { part: 'ready', limit: 2, after: first.next });
  expect(rest).toMatchObject({ looked: 1, next: undefined });
});

test('an entry that is held and gone is told, and a job promoted early', async () => {
  await three();
  await p.read('w1', 1);
  await p.redis.xtrim(p.keys.ready, 'MAXLEN', 0);
  expect(await found('pending')).toEqual([['vanished', '']]);
  await p.redis.xadd(p.keys.ready, '*', 'member', 'j:a', 'due', T0 * 2);
  expect(await found()).toEqual([['early', 'j:a']]);
  await p.reset();
});

test('an entry that was offered before its job was due is none that was promoted early', async () => {
  await three();
  const [entry = ''] = (await p.redis.xadd(p.keys.ready, '*', 'member', 'j:a', 'due', T0))?.split('-') ?? [];
  await p.redis.xadd(p.keys.ready, '*', 'member', 'j:b', 'due', Number(entry) + 100);
  expect(await found()).toEqual([]);
});

test('a stream without the group is told', async () => {
  await three();
  await p.redis.call('XGROUP', 'DESTROY', p.keys.ready, 'workers');
  expect(await found()).toEqual([['group', '']]);
  await p.reset();
});
