/** `serve`: what a worker has done is completed, what it was given is started, and new entries are delivered and started. */
import { expect, test } from 'vitest';
import { markOf } from '../../src/job/record-header.ts';
import { ensureGroup } from '../../src/redis/scripts/ready.ts';
import type { Delivery, Ended } from '../../src/redis/scripts/replies.ts';
import { item, T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const settings = { consumer: 'w1', bytesMax: 1_000_000, windowMs: 60_000, nowMs: T0 };

interface Asked {
  readonly ended?: readonly Ended[];
  readonly given?: readonly Delivery[];
  readonly take?: number;
}
const serve = ({ ended = [], given = [], take = 0 }: Asked, call: { bytesMax?: number } = {}) =>
  p.jobs.serve(p.ref, { ended, given, take }, { ...settings, ...call });
const kindsIn = ({ taken }: Awaited<ReturnType<typeof serve>>) => taken.map(({ member, kind }) => `${member} ${kind}`);

test('completes, starts and brings in one call', async () => {
  const claim = await p.running('a');
  await p.schedule('b');
  const given = await p.deliver();
  await p.scheduleAll([item('c'), item('d')]);
  await p.promote();
  const served = await serve({ ended: [{ ...claim, mark: markOf(item('a').record) }], given, take: 1 });
  expect(served).toMatchObject({ completed: undefined, delivered: 1, refusal: undefined });
  expect(kindsIn(served)).toEqual(['j:b run', 'j:c run']);
  expect(await p.picture()).toMatchObject({
    jobs: { 'j:a': 'tombstone done' },
    ready: ['j:b', 'j:c', 'j:d'],
    pending: { w1: ['j:b', 'j:c'] },
  });
});

test('leaves the same tombstone with a mark as when Redis reads the record', async () => {
  const claims = [await p.running('a'), await p.running('b')];
  const marks = [markOf(item('a').record), ''];
  await serve({ ended: claims.map((claim, at) => ({ ...claim, mark: marks[at] ?? '' })) });
  const [one, other] = await p.redis.hmget(p.keys.jobs, 'j:a', 'j:b');
  expect(one?.split(' ')[1]).toBe(other?.split(' ')[1]);
  expect(await p.schedule('b')).toEqual({ kind: 'already', over: 'done' });
});

test('brings nothing while the queue is paused, and gives back what it was given', async () => {
  await p.schedule('a');
  const given = await p.deliver();
  await p.schedule('b');
  await p.promote();
  await p.redis.hset(p.keys.meta, 'paused', `${T0} test`);
  const served = await serve({ given, take: 5 });
  expect([kindsIn(served), served.delivered, served.refusal]).toEqual([['j:a released'], 0, undefined]);
});

test('tells that the group is gone, after it has completed what is over', async () => {
  const claim = await p.running('a');
  await p.redis.xgroup('DESTROY', p.keys.ready, 'workers');
  const served = await serve({ ended: [{ ...claim, mark: '' }], take: 1 });
  expect(served).toMatchObject({ completed: undefined, taken: [], delivered: 0 });
  expect(served.refusal).toMatch(/^NOGROUP/);
  expect(await p.redis.xlen(p.keys.ready)).toBe(0);
  await ensureGroup(p.redis, p.keys);
});

test('reads the fields of an entry by their names', async () => {
  await p.schedule('a');
  const [first] = await p.deliver();
  await p.release(first ? [first] : []);
  await p.redis.zrem(p.keys.scheduled, 'j:a');
  await p.redis.xadd(p.keys.ready, '*', 'due', T0, 'member', 'j:a');
  const served = await serve({ take: 1 });
  expect(served.taken).toMatchObject([{ member: 'j:a', dueMs: T0, kind: 'run' }]);
});

test('has one bound of bytes for what it was given and what it brings', async () => {
  await p.scheduleAll([item('a', { data: 'x'.repeat(400) })]);
  const given = await p.deliver();
  await p.schedule('b');
  await p.promote();
  expect(kindsIn(await serve({ given, take: 1 }, { bytesMax: 500 }))).toEqual(['j:a run', 'j:b later']);
});

test('starts an entry that a person wrote, with its fields in another order and more of them', async () => {
  await p.schedule('a');
  await ensureGroup(p.redis, p.keys);
  await p.redis.xadd(p.keys.ready, '*', 'due', T0, 'by', 'hand', 'member', 'j:a');
  await p.redis.zrem(p.keys.scheduled, 'j:a');
  const { taken } = await serve({ take: 1 });
  expect(taken).toMatchObject([{ member: 'j:a', dueMs: T0, kind: 'run' }]);
});
