/** `pause` and `resume`: promotion and starts rest, what runs goes on, and the leader is told when it may go on. */
import { expect, test } from 'vitest';
import { stats } from '../../src/redis/read/inspect.ts';
import { pause, pauseOf } from '../../src/redis/scripts/upkeep.ts';
import { T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const paused = (reason = '', nowMs = T0) => pause(p.redis, p.ref, { reason, nowMs });

test('a pause says since when and why, and nothing is promoted any more', async () => {
  await p.schedule('a');
  expect(await paused('the mail server moves')).toEqual({
    kind: 'ok',
    pause: { sinceMs: T0, reason: 'the mail server moves' },
  });
  expect(await p.promote()).toMatchObject({ kind: 'paused', count: 0 });
  expect(await stats(p.redis, p.ref)).toMatchObject({
    paused: true,
    pause: { sinceMs: T0, reason: 'the mail server moves' },
  });
});

test('a job that was read before the pause is handed back, and one that runs goes on', async () => {
  const claim = await p.running('runs');
  await p.schedule('read');
  const deliveries = await p.deliver();
  await paused();
  expect(await p.start(deliveries)).toMatchObject([{ kind: 'released' }]);
  expect(await p.extend([claim])).toEqual(['ok']);
  expect(await p.complete([claim])).toEqual(['ok']);
  expect(await p.picture()).toMatchObject({ scheduled: { 'j:read': T0 }, jobs: { 'j:runs': 'tombstone done' } });
});

test('a second pause writes nothing and tells of the first', async () => {
  await paused('first');
  expect(await p.withoutWrite(() => paused('second', T0 + 5))).toEqual({
    kind: 'already',
    pause: { sinceMs: T0, reason: 'first' },
  });
});

test('without a time the clock of the server counts', async () => {
  const { pause: made } = await pause(p.redis, p.ref, { reason: '' });
  expect(made?.sinceMs).toBeGreaterThan(T0);
  expect(made?.reason).toBe('');
});

test('a field that somebody else wrote still pauses, and is shown as it is', async () => {
  await p.redis.hset(p.keys.meta, 'paused', '1');
  expect(await p.promote()).toMatchObject({ kind: 'paused' });
  expect(await paused()).toEqual({ kind: 'already', pause: { sinceMs: undefined, reason: '1' } });
  expect(pauseOf('1763719000000 two words\nand a line')).toEqual({
    sinceMs: 1_763_719_000_000,
    reason: 'two words\nand a line',
  });
});
