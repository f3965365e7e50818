/** `commit`: a running job is over together with effects its handler asked for, in one step. */
import { describe, expect, test } from 'vitest';
import { decodeTombstone } from '../../src/job/codec.ts';
import { deadLetters } from '../../src/redis/read/inspect.ts';
import { only, T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const KEY = '{q:0}:sum';
const add = (amount: number) => ({ command: 'INCRBY', key: KEY, args: [amount] });
const sum = () => p.redis.get(KEY);

describe('a running job', () => {
  test('is over with its effects, in their order', async () => {
    const claim = await p.running('a');
    const push = (word: string) => ({ command: 'RPUSH', key: '{q:0}:list', args: [word] });
    expect(await p.commit(claim, [add(5), push('first'), push('second'), add(2)])).toBe('ok');
    expect([await sum(), await p.redis.lrange('{q:0}:list', 0, -1)]).toEqual(['7', ['first', 'second']]);
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone done' }, done: { 'j:a': T0 } });
    expect(await p.count('done')).toBe(1);
  });

  test('is over without effects as well', async () => {
    expect(await p.commit(await p.running('a'), [])).toBe('ok');
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone done' }, done: { 'j:a': T0 } });
  });

  test('has its effects once: a second identical call changes nothing', async () => {
    const claim = await p.running('a');
    await p.commit(claim, [add(5)]);
    expect(await p.withoutWrite(() => p.commit(claim, [add(5)]))).toBe('already');
    expect(await sum()).toBe('5');
  });

  test('leaves nothing but its effects when there is no done window', async () => {
    const claim = await p.running('a');
    expect(await p.commit(claim, [add(5)], { windowMs: 0 })).toBe('ok');
    expect(await p.picture()).toEqual({});
    expect(await p.withoutWrite(() => p.commit(claim, [add(5)], { windowMs: 0 }))).toBe('gone');
  });

  test('that was asked to stop ends cancelled, without an effect', async () => {
    const claim = await p.running('a');
    await p.cancel('j:a');
    expect(await p.commit(claim, [add(5)])).toBe('cancelled');
    expect(await sum()).toBeNull();
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone cancelled' }, done: { 'j:a': T0 } });
  });

  test('is not over when an effect is refused, and the error says which', async () => {
    const claim = await p.running('a');
    await p.redis.set(KEY, 'a word');
    const call = () => p.commit(claim, [add(5)]);
    await expect(p.withoutWrite(call)).rejects.toThrow(/not an integer/);
    expect(await p.complete([claim])).toEqual(['ok']);
  });

  test('is a dead letter when an effect after the first is refused: a second start would have the first twice', async () => {
    const claim = await p.running('a');
    await p.redis.set('{q:0}:word', 'a "word"');
    const effects = [add(5), { command: 'INCR', key: '{q:0}:word', args: [] }, add(7)];
    const said = await p.commit(claim, effects);
    expect(said).toMatch(/^half 2 ERR value is not an integer/);
    expect(await sum()).toBe('5');
    expect(await p.picture()).toEqual({
      jobs: { 'j:a': 'tombstone dead' },
      dead: ['j:a: half-committed'],
      done: { 'j:a': T0 },
    });
    const { history, entry: deadLetter } = only(await deadLetters(p.redis, p.ref, { limit: 10 }));
    expect(history).toEqual([
      {
        atMs: T0,
        attempt: 1,
        kind: 'failure',
        message: expect.stringMatching(/^command 2 of the commit was refused: /),
      },
    ]);
    expect(decodeTombstone((await p.redis.hget(p.keys.jobs, 'j:a')) ?? '')).toMatchObject({
      outcome: 'dead',
      deadLetter,
    });
    expect([await p.count('dead'), await p.count('done')]).toEqual([1, 0]);
    expect(await p.withoutWrite(() => p.commit(claim, effects))).toBe(said);
  });

  test('is told again to have been half committed, without a done window and behind other dead letters', async () => {
    await p.redis.set('{q:0}:word', 'a word');
    const effects = [add(5), { command: 'INCR', key: '{q:0}:word', args: [] }];
    const forgotten = await p.running('forgotten');
    const said = await p.commit(forgotten, effects, { windowMs: 0 });
    expect(await p.withoutWrite(() => p.commit(forgotten, effects, { windowMs: 0 }))).toBe(said);
    const claim = await p.running('a');
    await p.commit(claim, effects);
    for (let nth = 0; nth < 10; nth += 1) await p.bury(await p.running(`b${nth}`));
    expect(await p.withoutWrite(() => p.commit(claim, effects))).toBe(said);
    expect(await p.withoutWrite(() => p.commit(forgotten, effects, { windowMs: 0 }))).toBe('gone');
  });

  test('is not over at the memory limit, and nothing has happened', async () => {
    const claim = await p.running('a');
    await p.redis.config('SET', 'maxmemory', '1');
    try {
      await expect(p.withoutWrite(() => p.commit(claim, [add(5)]))).rejects.toThrow(/OOM/);
    } finally {
      await p.redis.config('SET', 'maxmemory', '0');
    }
    expect(await p.commit(claim, [add(5)])).toBe('ok');
  });
});

describe('is refused without an effect', () => {
  test('when a newer start runs', async () => {
    const old = await p.running('a');
    const { deliveries } = await p.reclaim('w1');
    await p.start(deliveries, { consumer: 'w2' });
    expect(await p.withoutWrite(() => p.commit(old, [add(5)]))).toBe('fenced');
  });

  test('when the job waits for its next attempt', async () => {
    const claim = await p.running('a');
    await p.retry(claim);
    expect(await p.withoutWrite(() => p.commit(claim, [add(5)]))).toBe('fenced');
  });

  test('when the job died otherwise, or its dead letter was purged', async () => {
    const buried = await p.running('a');
    await p.bury(buried);
    expect(await p.withoutWrite(() => p.commit(buried, [add(5)]))).toBe('gone');
    await p.redis.set('{q:0}:word', 'a word');
    const half = await p.running('b');
    const effects = [add(5), { command: 'INCR', key: '{q:0}:word', args: [] }];
    expect(await p.commit(half, effects)).toMatch(/^half/);
    await p.redis.del(p.keys.dead);
    expect(await p.withoutWrite(() => p.commit(half, effects))).toBe('gone');
  });

  test('when the job was never there', async () => {
    const claim = await p.running('a');
    expect(await p.withoutWrite(() => p.commit({ ...claim, member: 'j:nobody' }, [add(5)]))).toBe('gone');
  });
});

test('a bare member that was put again while it ran stays live', async () => {
  await p.put('a', T0);
  const claim = only(await p.run());
  await p.put('a', T0 + 7);
  expect(await p.commit(claim, [add(5)])).toBe('ok');
  expect(await p.picture()).toEqual({ scheduled: { a: T0 + 7 }, jobs: { a: 'record' } });
});
