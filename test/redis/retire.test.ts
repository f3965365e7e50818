/** `retire`: a consumer that provably owns nothing leaves the group. */
import { expect, test } from 'vitest';
import { consumers, retire } from '../../src/redis/scripts/ready.ts';
import { usePartition } from '../support/partition.ts';

const p = usePartition();
const names = async () => (await consumers(p.redis, p.keys)).map(({ name }) => name);

test('a consumer that owns nothing is removed', async () => {
  await p.complete([await p.running('a')]);
  expect(await names()).toEqual(['w1']);
  expect(await retire(p.redis, p.ref, 'w1')).toBe('ok');
  expect(await names()).toEqual([]);
});

test('a second identical call finds nothing to do', async () => {
  await p.complete([await p.running('a')]);
  await retire(p.redis, p.ref, 'w1');
  const { writes: _, ...before } = await p.snapshot();
  expect(await retire(p.redis, p.ref, 'w1')).toBe('gone');
  expect(await p.snapshot()).toMatchObject(before);
});

test('one that was never there is told apart from one that was, and is not made', async () => {
  await p.complete([await p.running('a')]);
  expect(await retire(p.redis, p.ref, 'w2')).toBe('gone');
  expect(await names()).toEqual(['w1']);
});

test('a consumer that owns an entry stays, because its entry would vanish with it', async () => {
  await p.running('a');
  expect(await p.withoutWrite(() => retire(p.redis, p.ref, 'w1'))).toBe('busy');
});

test('a partition without a stream has no consumers', async () => {
  expect(await p.withoutWrite(() => retire(p.redis, p.ref, 'w1'))).toBe('gone');
});

test('a consumer whose entries were reclaimed is removed, and they stay', async () => {
  await p.running('a');
  await p.reclaim('w1');
  expect(await retire(p.redis, p.ref, 'w1')).toBe('ok');
  expect((await p.picture()).pending).toEqual({ w2: ['j:a'] });
});
