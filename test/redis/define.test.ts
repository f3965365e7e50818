/** `define`: who writes a definition has seen the one that is there. */
import { expect, test } from 'vitest';
import { controlKeys } from '../../src/redis/keys.ts';
import { define } from '../../src/redis/scripts/schedules.ts';
import { usePartition } from '../support/partition.ts';

const p = usePartition();
const write = (before: string | undefined, after?: string) =>
  define(p.redis, 't', { name: 'nightly', before, ...(after === undefined ? {} : { after }) });
const stored = () => p.redis.hget(controlKeys('t').schedules, 'nightly');

test('is written over what was read, and the same call again is no conflict', async () => {
  expect(await write(undefined, 'one')).toBe('ok');
  expect(await write('one', 'two')).toBe('ok');
  expect(await p.withoutWrite(() => write('one', 'two'))).toBe('ok');
  expect(await stored()).toBe('two');
});

test('is not written over what somebody else has written since', async () => {
  await write(undefined, 'theirs');
  expect(await p.withoutWrite(() => write(undefined, 'ours'))).toBe('changed');
  expect(await p.withoutWrite(() => write('older', 'ours'))).toBe('changed');
  expect(await p.withoutWrite(() => write('older'))).toBe('changed');
});

test('is deleted if it is what was read, and twice is the same', async () => {
  await write(undefined, 'one');
  expect(await write('one')).toBe('ok');
  expect(await p.withoutWrite(() => write('one'))).toBe('ok');
  expect(await stored()).toBeNull();
});
