/** `replay`: a dead letter becomes a scheduled job again, with fresh budgets. */
import { describe, expect, test } from 'vitest';
import { decodeRun } from '../../src/job/codec.ts';
import { item, only, T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const runOf = async (member: string) => decodeRun((await p.redis.hget(p.keys.runs, member)) ?? '');
const deadLetterIds = async () => (await p.redis.xrange(p.keys.dead, '-', '+')).map(([entry]) => entry);

describe('a dead letter', () => {
  test('becomes a scheduled job, due now, and is gone from the dead letters', async () => {
    const deadLetter = await p.dead('a');
    expect(await p.replay(deadLetter, { nowMs: T0 + 5 })).toEqual({ kind: 'ok', dueMs: T0 + 5, member: 'j:a' });
    expect(await p.picture()).toEqual({
      scheduled: { 'j:a': T0 + 5 },
      jobs: { 'j:a': 'record' },
      runs: { 'j:a': 'waiting' },
    });
    expect(await p.redis.hget(p.keys.jobs, 'j:a')).toBe(item('a').record);
    expect(await p.count('replayed')).toBe(1);
  });

  test('is due when the caller says', async () => {
    const deadLetter = await p.dead('a');
    expect(await p.replay(deadLetter, { dueMs: T0 + 900 })).toMatchObject({ kind: 'ok', dueMs: T0 + 900 });
    expect((await p.picture()).scheduled).toEqual({ 'j:a': T0 + 900 });
  });

  test('has fresh budgets; attempts and token go on, and the generation is the next', async () => {
    const deadLetter = await p.dead('a');
    const before = only(await p.redis.xrange(p.keys.dead, '-', '+'))[1];
    await p.replay(deadLetter);
    const token = before[before.indexOf('token') + 1];
    expect(await runOf('j:a')).toMatchObject({
      token,
      generation: 1,
      attempts: 1,
      failures: 0,
      crashes: 0,
      history: [],
    });
    const reply = only(await p.start(await p.deliver()));
    expect(reply).toMatchObject({ kind: 'run', attempts: 2, failures: 0, generation: 1 });
  });

  test('can die and be replayed again', async () => {
    await p.replay(await p.dead('a'));
    await p.bury(only(await p.run()));
    expect(await p.replay(only(await deadLetterIds()))).toMatchObject({ kind: 'ok' });
    expect(await runOf('j:a')).toMatchObject({ generation: 2, attempts: 2 });
  });

  test('can be replayed after its tombstone was swept', async () => {
    const deadLetter = await p.dead('a');
    await p.redis.hdel(p.keys.jobs, 'j:a');
    await p.redis.zrem(p.keys.done, 'j:a');
    expect(await p.replay(deadLetter)).toMatchObject({ kind: 'ok' });
    expect(await p.run()).toHaveLength(1);
  });

  test('of a bare member runs as a bare member', async () => {
    await p.put('a', T0);
    await p.bury(only(await p.run()));
    expect(await p.replay(only(await deadLetterIds()))).toMatchObject({ kind: 'ok', member: 'a' });
    expect((await p.run()).map(({ member }) => member)).toEqual(['a']);
  });

  test('of a bad due keeps its data and runs', async () => {
    await p.schedule('a', { data: 'kept' });
    await p.put('j:a', 5);
    await p.promote();
    expect(await p.replay(only(await deadLetterIds()))).toMatchObject({ kind: 'ok', dueMs: T0 });
    expect(only(await p.start(await p.deliver()))).toMatchObject({ kind: 'run', attempts: 1, generation: 1 });
  });

  test('nudges a leader that sleeps past its due', async () => {
    const deadLetter = await p.dead('a');
    expect(await p.nudgesOf(() => p.replay(deadLetter))).toEqual([String(T0)]);
  });
});

describe('is refused without a write', () => {
  test('when the dead letter was replayed before', async () => {
    const deadLetter = await p.dead('a');
    await p.replay(deadLetter);
    expect(await p.withoutWrite(() => p.replay(deadLetter))).toEqual({ kind: 'gone' });
  });

  test('when there is no such dead letter', async () => {
    expect(await p.withoutWrite(() => p.replay('1-1'))).toEqual({ kind: 'gone' });
  });

  test('when a job of this id is live, in any state: the dead letter stays', async () => {
    const deadLetter = await p.dead('a');
    const refused = () => p.withoutWrite(() => p.replay(deadLetter));
    await p.schedule('a', { data: 'new life' });
    expect(await refused()).toEqual({ kind: 'live', member: 'j:a' });
    const deliveries = await p.deliver();
    expect(await refused()).toEqual({ kind: 'live', member: 'j:a' });
    const claims = await p.claim(deliveries);
    expect(await refused()).toEqual({ kind: 'live', member: 'j:a' });
    await p.complete(claims);
    expect(await p.replay(deadLetter)).toMatchObject({ kind: 'ok' });
  });

  test('when a job of this id is live with the very same record', async () => {
    const deadLetter = await p.dead('a');
    await p.redis.hdel(p.keys.jobs, 'j:a');
    await p.redis.zrem(p.keys.done, 'j:a');
    await p.schedule('a');
    expect(await p.withoutWrite(() => p.replay(deadLetter))).toEqual({ kind: 'live', member: 'j:a' });
  });

  test('when the dead letter has no record', async () => {
    await p.put('seconds', 5);
    await p.promote();
    const deadLetter = only(await deadLetterIds());
    expect(await p.withoutWrite(() => p.replay(deadLetter))).toEqual({ kind: 'empty', member: 'seconds' });
  });

  test('when the partition has another generation', async () => {
    const deadLetter = await p.dead('a');
    const elsewhere = { ...p.ref, layoutGeneration: 1 };
    const reply = await p.withoutWrite(() => p.jobs.replay(elsewhere, deadLetter, { nowMs: T0 }));
    expect(reply).toEqual({ kind: 'moved', layoutGeneration: 0 });
  });
});
