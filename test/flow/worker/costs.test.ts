/** Costs through the library: what a job owes keeps others waiting, its handler corrects it, and who may not have a cost is told so. */
import { expect, test } from 'vitest';
import { startEstimateOf } from '../../../src/inspect/estimate.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { partitionRef } from '../../../src/redis/keys.ts';
import type { Handler, HandlerContext } from '../../../src/worker/run/handlers.ts';
import { useLibrary } from '../../support/library.ts';

const { keys } = partitionRef('duestream', { queue: 'calls', partition: 0, layoutGeneration: 0 });
const priced = defineQueue('calls', { rate: '1/s', costs: true });
const library = useLibrary();

test('what a job costs above its turn keeps others waiting, until its handler says that it has not used it', async () => {
  const starts: string[] = [];
  let context: HandlerContext | undefined;
  let end: (() => void) | undefined;
  await library.lead();
  const handler: Handler = async ({ id }, given) => {
    starts.push(id);
    if (id !== 'a') return;
    context = given;
    await new Promise<void>((resolve) => {
      end = resolve;
    });
  };
  await library.work(priced, handler, { workers: 1 });
  await library.client.schedule(priced, {}, { id: 'a', cost: 600 });
  await expect.poll(() => starts).toEqual(['a']);
  await library.client.schedule(priced, {}, { id: 'b' });
  await expect.poll(async () => (await library.client.get(priced, 'b'))?.state).toBe('waiting');
  const report = await library.client.get(priced, 'b');
  const [obstacle] = report?.waitsFor?.obstacles ?? [];
  const waitMs = obstacle?.kind === 'rate' ? obstacle.untilMs - (report?.nowMs ?? 0) : 0;
  expect(waitMs).toBeGreaterThan(300_000);
  if (!report) throw new Error('the job is there');
  expect(await startEstimateOf({ redis: library.redis, namespace: 'duestream' }, report)).toMatchObject({
    untold: 'costs',
  });
  expect(await context?.spent(0)).toBe(true);
  await expect.poll(() => starts).toEqual(['a', 'b']);
  end?.();
  await expect.poll(async () => (await library.client.get(priced, 'a'))?.state).toBe('done');
  expect(await context?.spent(9)).toBe(false);
  await expect(context?.spent(1001)).rejects.toThrow('spent is 1001; allowed: a whole number from 0 to 1000');
});

test('a cost stands in the record, is shown, and can be changed', async () => {
  await library.client.schedule(priced, {}, { id: 'a', cost: 20, delay: '1h' });
  expect(await library.redis.hget(keys.jobs, 'j:a')).toContain(';c=k|');
  expect((await library.client.get(priced, 'a'))?.options).toMatchObject({ cost: 20 });
  await library.client.edit(priced, 'a', { cost: 3 });
  expect((await library.client.get(priced, 'a'))?.options).toMatchObject({ cost: 3 });
  const { limits, settings } = await library.client.queues.get('calls');
  expect([limits?.text, limits?.costs, settings.costs]).toEqual(['1/s · with costs', true, true]);
});

test('a cost is refused where each job costs one turn, whichever way it comes, and taken where there is no rate now', async () => {
  const plain = defineQueue('calls', { rate: '1/s' });
  const words = 'each job of queue calls costs one turn';
  await expect(library.client.schedule(plain, {}, { cost: 2 })).rejects.toThrow(words);
  await library.client.schedule(plain, {}, { id: 'a', cost: 1, delay: '1h' });
  await expect(library.client.edit(plain, 'a', { cost: 2 })).rejects.toThrow(words);
  await expect(library.client.sets.begin(plain, 's', { then: { data: {}, cost: 2 } })).rejects.toThrow(words);
  await expect(library.client.schedules.put('daily', { queue: plain, every: '1d', cost: 2 })).rejects.toThrow(words);
  await library.client.queues.set('calls', { costs: true, rate: false });
  await library.client.schedule(defineQueue('calls'), {}, { id: 'b', cost: 2 });
  expect(await library.redis.hget(keys.meta, 'gates')).toBe('0 1 0 0');
  await library.client.queues.set('calls', { rate: '1/s' });
  expect(await library.redis.hget(keys.meta, 'gates')).toBe('1000000 1 0 0 c');
  expect(await library.redis.hget(keys.meta, 'paused')).toBe('!0.3.0');
});
