/** `bury`: a running job becomes a dead letter. */
import { describe, expect, test } from 'vitest';
import { decodeTombstone } from '../../src/job/codec.ts';
import { deadLetter, deadLetters } from '../../src/redis/read/inspect.ts';
import { failure, item, only, T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const deadLettersNow = () => deadLetters(p.redis, p.ref, { limit: 10 });

describe('a running job', () => {
  test('becomes a dead letter with its record, reason and history, and leaves a tombstone that names the dead letter', async () => {
    await p.retry(await p.running('a', { data: { to: 'x' } }), { delayMs: 0, error: failure('first', 1) });
    const claim = only(await p.run());
    expect(await p.bury(claim, { reason: 'attempts', error: failure('second', 2) })).toBe('ok');
    const found = only(await deadLettersNow());
    expect(found).toMatchObject({
      id: 'a',
      bare: false,
      reason: 'attempts',
      attempts: 2,
      generation: 0,
      atMs: T0,
      record: item('a', { data: { to: 'x' } }).record,
    });
    expect(found.history.map(({ message }) => message)).toEqual(['first', 'second']);
    expect(await deadLetter(p.redis, p.ref, found.entry)).toEqual(found);
    const tombstone = decodeTombstone((await p.redis.hget(p.keys.jobs, 'j:a')) ?? '');
    expect(tombstone).toMatchObject({ outcome: 'dead', token: claim.token, attempts: 2, deadLetter: found.entry });
    expect(await p.picture()).toEqual({
      jobs: { 'j:a': 'tombstone dead' },
      dead: ['j:a: attempts'],
      done: { 'j:a': T0 },
    });
    expect(await p.count('dead')).toBe(1);
  });

  test('without an error of its own keeps the history it has', async () => {
    await p.bury(await p.running('a'), { reason: 'crashes', error: '' });
    expect(only(await deadLettersNow())).toMatchObject({ reason: 'crashes', history: [] });
  });

  test('keeps five errors at most', async () => {
    let claim = await p.running('a');
    for (let nth = 1; nth <= 6; nth += 1) {
      await p.retry(claim, { delayMs: 0, error: failure(`error ${nth}`, nth) });
      claim = only(await p.run());
    }
    await p.bury(claim, { error: failure('error 7', 7) });
    const messages = only(await deadLettersNow()).history.map(({ message }) => message);
    expect(messages).toEqual([3, 4, 5, 6, 7].map((nth) => `error ${nth}`));
  });

  test('leaves its dead letter and nothing else when there is no done window', async () => {
    await p.bury(await p.running('a'), { windowMs: 0 });
    expect(await p.picture()).toEqual({ dead: ['j:a: attempts'] });
  });

  test('that was asked to stop ends cancelled, without a dead letter', async () => {
    const claim = await p.running('a');
    await p.cancel('j:a');
    expect(await p.bury(claim)).toBe('cancelled');
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone cancelled' }, done: { 'j:a': T0 } });
    expect([await p.count('dead'), await p.count('cancelled')]).toEqual([0, 1]);
  });

  test('of a lost worker is still buried by its late end, before the next start', async () => {
    const late = await p.running('a');
    await p.reclaim('w1');
    expect(await p.bury(late)).toBe('ok');
    expect(only(await deadLettersNow()).history.map(({ kind }) => kind)).toEqual(['crash', 'failure']);
  });
});

describe('a compensation job', () => {
  const compensation = { member: 'j:undo', record: item('undo').record };

  test('is scheduled at once, in the same step', async () => {
    const claim = await p.running('a');
    const heard = await p.nudgesOf(async () => {
      expect(await p.bury(claim, { compensation })).toBe('ok');
    });
    expect(heard).toEqual([String(T0)]);
    expect(await p.meta('wake')).toBe(String(T0));
    expect(await p.picture()).toEqual({
      scheduled: { 'j:undo': T0 },
      jobs: { 'j:a': 'tombstone dead', 'j:undo': 'record' },
      dead: ['j:a: attempts'],
      done: { 'j:a': T0 },
    });
    expect(await p.count('scheduled')).toBe(2);
  });

  test('is there once: a second identical call changes nothing', async () => {
    const claim = await p.running('a');
    await p.bury(claim, { compensation });
    expect(await p.withoutWrite(() => p.bury(claim, { compensation }))).toBe('already');
  });

  test('that is there already stays as it is', async () => {
    await p.schedule('undo', { dueMs: T0 + 500 });
    await p.bury(await p.running('a'), { compensation });
    expect((await p.picture()).scheduled).toEqual({ 'j:undo': T0 + 500 });
  });

  test('of a job that ends cancelled does not come', async () => {
    const claim = await p.running('a');
    await p.cancel('j:a');
    expect(await p.bury(claim, { compensation })).toBe('cancelled');
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone cancelled' }, done: { 'j:a': T0 } });
  });
});

describe('is refused without a write', () => {
  test('when the same call was carried out before: one dead letter', async () => {
    const claim = await p.running('a');
    await p.bury(claim);
    expect(await p.withoutWrite(() => p.bury(claim))).toBe('already');
    expect(await deadLettersNow()).toHaveLength(1);
  });

  test('when the same call was carried out before and left no tombstone: its dead letter shows it', async () => {
    const claim = await p.running('a');
    await p.bury(claim, { windowMs: 0 });
    expect(await p.withoutWrite(() => p.bury(claim, { windowMs: 0 }))).toBe('already');
    await p.redis.del(p.keys.dead);
    expect(await p.withoutWrite(() => p.bury(claim, { windowMs: 0 }))).toBe('gone');
  });

  test('when the same call has ended it as cancelled', async () => {
    const claim = await p.running('a');
    await p.cancel('j:a');
    await p.bury(claim);
    expect(await p.withoutWrite(() => p.bury(claim))).toBe('cancelled');
  });

  test('when the job waits for its next attempt', async () => {
    const claim = await p.running('a');
    await p.retry(claim);
    expect(await p.withoutWrite(() => p.bury(claim))).toBe('already');
  });

  test('when a newer start runs', async () => {
    const old = await p.running('a');
    const { deliveries } = await p.reclaim('w1');
    await p.start(deliveries, { consumer: 'w2' });
    expect(await p.withoutWrite(() => p.bury(old))).toBe('fenced');
  });

  test('when the job was never there', async () => {
    const claim = await p.running('a');
    expect(await p.withoutWrite(() => p.bury({ ...claim, member: 'j:nobody' }))).toBe('gone');
  });
});

test('a bare member that was put again while it ran stays live beside its dead letter', async () => {
  await p.put('a', T0);
  const claim = only(await p.run());
  await p.put('a', T0 + 7);
  expect(await p.bury(claim)).toBe('ok');
  expect(await p.picture()).toEqual({ scheduled: { a: T0 + 7 }, jobs: { a: 'record' }, dead: ['a: attempts'] });
});
