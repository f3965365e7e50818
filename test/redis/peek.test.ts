/** `peek`: everything that is stored about one member, in every state of its life, without a write. */
import { expect, test } from 'vitest';
import { peek } from '../../src/redis/read/inspect.ts';
import { item, only, T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const at = (member: string) => p.withoutWrite(() => peek(p.redis, p.ref, member));

test('an id that was never there is unknown', async () => {
  expect(await at('j:nobody')).toBeUndefined();
});

test('a job is seen in every state it passes', async () => {
  const { record } = item('a');
  await p.schedule('a');
  expect(await at('j:a')).toMatchObject({
    state: 'scheduled',
    dueMs: T0,
    record,
    run: undefined,
    tombstone: undefined,
  });
  const deliveries = await p.deliver();
  expect(await at('j:a')).toMatchObject({ state: 'ready', dueMs: undefined, record });
  const claim = only(await p.claim(deliveries));
  expect(await at('j:a')).toMatchObject({ state: 'running', record, run: { token: claim.token, owner: 'w1' } });
  await p.retry(claim);
  expect(await at('j:a')).toMatchObject({ state: 'scheduled', dueMs: T0 + 1000, run: { failures: 1 } });
  await p.complete(await p.run({ nowMs: T0 + 1000 }));
  const over = { outcome: 'done', attempts: 2 };
  expect(await at('j:a')).toMatchObject({ state: 'done', record: undefined, tombstone: over, overMs: T0 });
});

test('a cancelled job says so, also while its entry is still in ready', async () => {
  await p.schedule('a');
  await p.promote();
  await p.cancel('j:a');
  expect(await at('j:a')).toMatchObject({ state: 'cancelled', overMs: undefined });
});

test('a dead job names its dead letter', async () => {
  const deadLetter = await p.dead('a');
  expect(await at('j:a')).toMatchObject({ state: 'dead', tombstone: { deadLetter } });
});

test('a job of a lost worker is ready again', async () => {
  await p.running('a');
  await p.reclaim('w1');
  expect(await at('j:a')).toMatchObject({ state: 'ready', run: { owner: undefined, crashes: 1 } });
});

test('a bare member that was not adopted yet is scheduled without a record', async () => {
  await p.put('order-1', T0);
  expect(await at('order-1')).toMatchObject({ state: 'scheduled', dueMs: T0, record: undefined });
});

test('a partition of another generation says where it moved', async () => {
  await p.redis.hset(p.keys.meta, 'generation', 2);
  expect(await at('j:a')).toEqual({ kind: 'moved', layoutGeneration: 2 });
});
