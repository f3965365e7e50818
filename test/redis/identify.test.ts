/** `identify`: the data of a namespace get an id, once. */
import { expect, test } from 'vitest';
import { controlKeys } from '../../src/redis/keys.ts';
import { scripts } from '../../src/redis/scripts/script-table.ts';
import { run } from '../../src/redis/scripts/scripts.ts';
import { usePartition } from '../support/partition.ts';

const p = usePartition();
const keys = controlKeys('t');
const identify = (candidate: string) => run(p.redis, scripts.identify, { keys, args: { candidate } });

test('the first id stays, whoever comes after', async () => {
  expect(await identify('first')).toBe('first');
  expect(await p.withoutWrite(() => identify('second'))).toBe('first');
  expect(await p.redis.pttl(keys.id)).toBe(-1);
});

test('many at the same time agree', async () => {
  const ids = await Promise.all(['a', 'b', 'c'].map(identify));
  expect(new Set(ids).size).toBe(1);
});
