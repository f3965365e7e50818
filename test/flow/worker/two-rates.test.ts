/** Two rates through the library: both hold over several workers, everybody who asks is told of both, and 0.2.0 starts nothing. */
import { describe, expect, test } from 'vitest';
import { defineQueue, type Queue } from '../../../src/job/queue.ts';
import { partitionRef } from '../../../src/redis/keys.ts';
import { useLibrary, useOlder } from '../../support/library.ts';

const { keys } = partitionRef('duestream', { queue: 'accounts', partition: 0, layoutGeneration: 0 });
/** Ten in 100 ms, and six at once with one in a minute after that. */
const BOTH = [
  { limit: 100, per: '1s', burst: 2 },
  { limit: 1, per: '1m', burst: 6 },
] as const;
const library = useLibrary();

/** Two workers, and what they have started. */
async function work(queue: Queue): Promise<string[]> {
  const starts: string[] = [];
  await library.work(queue, ({ id }) => void starts.push(id));
  return starts;
}

const many = (count: number) => Array.from({ length: count }, (_, nth) => ({ id: `n${nth}`, data: {} }));

test('two rates that a definition has hold, and whoever asks is told of both', async () => {
  const queue = defineQueue('accounts', { rate: BOTH });
  await library.lead();
  const starts = await work(queue);
  await library.client.scheduleMany(queue, many(9));
  await expect.poll(() => starts.length).toBe(6);
  await expect.poll(async () => (await library.client.queues.get('accounts')).waiting).toBe(3);
  const { limits } = await library.client.queues.get('accounts');
  expect(limits).toMatchObject({
    text: '100/s, burst 2 and 1/m, burst 6',
    rate: { limit: 100, perMs: 1000, burst: 2 },
    secondRate: { limit: 1, perMs: 60_000, burst: 6 },
  });
  const last = await library.client.get(queue, 'n8');
  expect(last?.waitsFor?.obstacles).toMatchObject([{ kind: 'rate' }]);
  const [obstacle] = last?.waitsFor?.obstacles ?? [];
  const waitMs = obstacle?.kind === 'rate' ? obstacle.untilMs - (last?.nowMs ?? 0) : 0;
  expect(waitMs).toBeGreaterThan(10_000);
  const { reasons } = await library.client.queues.why('accounts');
  expect(reasons).toMatchObject([{ heldBy: 'rate' }]);
  expect(starts).toHaveLength(6);
  // One rate again: it comes from a command, and holds for all.
  await library.client.queues.set('accounts', { rate: '100/s' });
  await expect.poll(() => starts.length).toBe(9);
  expect(await library.redis.hget(keys.meta, 'paused')).toBeNull();
});

test('a command that sets two rates is told of the setting as it was and as it is', async () => {
  await library.client.schedule(defineQueue('accounts', { rate: '10/s' }), {}, { delay: '1h' });
  const done = await library.client.queues.set('accounts', { rate: ['10/s', { limit: 500, per: '1h', burst: 50 }] });
  expect(done).toMatchObject({
    changed: ['rate'],
    before: { rate: '10/s' },
    after: { rate: ['10/s', { limit: 500, per: '1h', burst: 50 }] },
  });
  expect(await library.redis.hget(keys.meta, 'gates')).toBe('100000 1 0 0 r7200000,50');
  expect(await library.redis.hget(keys.meta, 'paused')).toBe('!0.3.0');
  const back = await library.client.queues.unset('accounts', 'rate');
  expect(back.settings.rate).toBe('10/s');
  expect(await library.redis.hget(keys.meta, 'paused')).toBeNull();
});

describe('beside a process of 0.2.0', () => {
  const older = useOlder(library);

  test('its leader is replaced, its worker starts nothing, and all jobs start', async () => {
    const ran = await older('accounts', 'leader');
    await expect.poll(() => library.redis.exists(keys.leader)).toBe(1);
    await library.lead();
    // A job that it reads and hands back costs a turn of the second rate, which it does not know.
    const queue = defineQueue('accounts', { rate: [BOTH[0], { limit: 600, per: '1m', burst: 6 }] });
    const starts = await work(queue);
    await library.client.scheduleMany(queue, many(9));
    await expect.poll(() => starts.length).toBe(9);
    expect(ran).toEqual([]);
    await expect(library.client.queues.set('accounts', { rate: ['1/s', '30/m'] })).rejects.toThrow(
      'queue accounts cannot have two rates while',
    );
  });
});
