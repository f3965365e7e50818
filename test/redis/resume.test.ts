/** `resume`: the pause ends, and the leader hears of it. */
import { expect, test } from 'vitest';
import { pause, resume } from '../../src/redis/scripts/upkeep.ts';
import { T0, usePartition } from '../support/partition.ts';

const p = usePartition();

test('a paused partition is promoted again, and its leader is nudged to look now', async () => {
  await p.schedule('a');
  await pause(p.redis, p.ref, { reason: 'why', nowMs: T0 });
  expect(await p.promote()).toMatchObject({ kind: 'paused' });
  const heard = await p.nudgesOf(async () => {
    expect(await resume(p.redis, p.ref)).toEqual({ kind: 'ok', pause: { sinceMs: T0, reason: 'why' } });
  });
  expect(heard).toEqual(['0']);
  expect(await p.promote()).toMatchObject({ kind: 'promoted', count: 1 });
});

test('a partition that is not paused is left alone', async () => {
  await p.schedule('a');
  expect(await p.withoutWrite(() => resume(p.redis, p.ref))).toEqual({ kind: 'already', pause: undefined });
  expect(await p.nudgesOf(() => resume(p.redis, p.ref))).toEqual([]);
});
