/** One reading for all who ask the same within some time. */
import { expect, test } from 'vitest';
import { createShared } from '../../src/http/api/shared.ts';
import { type Clock, systemClock } from '../../src/kernel/clock.ts';

function readings(keepMs = 3000) {
  let [nowMs, read] = [0, 0];
  const clock: Clock = { ...systemClock, monotonicMs: () => nowMs };
  const shared = createShared<number>(keepMs, clock);
  const count = async () => {
    read += 1;
    return read;
  };
  return {
    ...shared,
    ask: (key = 'all', look: () => Promise<number> = count) => shared.get(key, look),
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

test('all who ask the same within the time have one answer, and behind it there is another one', async () => {
  const { ask, pass } = readings();
  expect(await Promise.all([ask(), ask(), ask('other')])).toEqual([1, 1, 2]);
  pass(2999);
  expect(await ask()).toBe(1);
  pass(1);
  expect(await ask()).toBe(3);
});

test('a change makes it old at once', async () => {
  const { ask, forget } = readings();
  expect(await ask()).toBe(1);
  forget();
  expect(await ask()).toBe(2);
});

test('a reading that failed is told to those who wait for it, and to nobody else', async () => {
  const { ask } = readings();
  const failing = () => Promise.reject(new Error('Redis is away'));
  const both = [ask('all', failing), ask('all', failing)];
  for (const one of both) await expect(one).rejects.toThrow('Redis is away');
  expect(await ask()).toBe(1);
});

test('a caller who asks something else each time does not fill the memory: the oldest answer goes', async () => {
  const { ask } = readings();
  await ask('first');
  for (let nth = 0; nth < 20; nth += 1) await ask(`key ${nth}`);
  expect(await ask('key 19')).toBe(21);
  expect(await ask('first')).toBe(22);
});
