/** `relay`: a pass of the leader that is a turn of the worker in its process as well. */
import { expect, onTestFinished, test } from 'vitest';
import { markOf } from '../../src/job/record-header.ts';
import { openBlocking, whenReady } from '../../src/redis/connection/connect.ts';
import { createJobs, type Jobs } from '../../src/redis/scripts/jobs.ts';
import { readNew } from '../../src/redis/scripts/ready.ts';
import type { Ended } from '../../src/redis/scripts/replies.ts';
import { item, LEASE_MS, T0, usePartition } from '../support/partition.ts';

const p = usePartition();

interface Asked {
  readonly ended?: readonly Ended[];
  readonly take?: number;
  readonly term?: string;
  readonly leaseMs?: number;
  readonly bytesMax?: number;
  readonly cap?: number;
}
async function relay(
  { ended = [], take = 5, leaseMs, bytesMax = 1_000_000, cap = 10_000, ...asked }: Asked = {},
  jobs: Pick<Jobs, 'relay'> = p.jobs,
) {
  const term = asked.term ?? (await p.lead());
  const pass = { term, leaseMs, limit: take, cap };
  const settings = { consumer: 'w1', bytesMax, windowMs: 60_000, nowMs: T0 };
  return jobs.relay(p.ref, { ended, take, pass }, settings);
}
const kindsIn = ({ taken }: Awaited<ReturnType<typeof relay>>) => taken.map(({ member, kind }) => `${member} ${kind}`);
const claimOf = ({ taken }: Awaited<ReturnType<typeof relay>>): readonly Ended[] =>
  taken.flatMap((one) =>
    one.kind === 'run' ? [{ entry: one.entry, member: one.member, token: one.token, mark: markOf(one.record) }] : [],
  );

test('completes, promotes, brings and starts in one call', async () => {
  await p.schedule('a');
  const first = await relay();
  expect(kindsIn(first)).toEqual(['j:a run']);
  await p.scheduleAll([item('b'), item('c', { dueMs: T0 + 500 })]);
  const second = await relay({ ended: claimOf(first) });
  expect([kindsIn(second), second.completed, second.delivered, second.refusal]).toEqual([
    ['j:b run'],
    undefined,
    1,
    undefined,
  ]);
  expect(second.promoted).toMatchObject({
    kind: 'promoted',
    count: 1,
    nextMs: T0 + 500,
    backlog: 1,
    lateness: [[0, 1]],
  });
  expect(await p.picture()).toMatchObject({ jobs: { 'j:a': 'tombstone done' }, pending: { w1: ['j:b'] } });
  expect([await p.count('promoted'), await p.count('done')]).toEqual([2, 1]);
});

test('comes before a read that waits, which finds what is left', async () => {
  await p.promote();
  const reader = openBlocking({ redis: { path: p.server.socketPath }, name: 'reader' });
  onTestFinished(() => reader.disconnect());
  await whenReady(reader);
  const reading = readNew(reader, [p.ref], { consumer: 'w2', count: 5, blockMs: 2000 });
  const isBlocked = async () => /blocked_clients:1\b/.test(await p.redis.info('clients'));
  while (!(await isBlocked())) await new Promise((resolve) => setImmediate(resolve));
  await p.schedule('a');
  expect(kindsIn(await relay())).toEqual(['j:a run']);
  expect(await isBlocked()).toBe(true);
  await p.scheduleAll([item('b'), item('c')]);
  await p.promote({ limit: 1, nowMs: T0 - 1 });
  expect(kindsIn(await relay({ take: 1 }))).toEqual(['j:b run']);
  await p.promote();
  const read = (await reading).flatMap(({ deliveries }) => deliveries);
  expect(read.map(({ member }) => member)).toEqual(['j:c']);
});

test('of a leader that was deposed only completes', async () => {
  await p.schedule('a');
  const first = await relay();
  await p.schedule('b');
  const second = await relay({ ended: claimOf(first), term: 'm0:1:1000' });
  expect(second).toMatchObject({ promoted: { kind: 'fenced' }, completed: undefined, taken: [], delivered: 0 });
  expect(await p.picture()).toMatchObject({ jobs: { 'j:a': 'tombstone done' }, scheduled: { 'j:b': T0 } });
});

test('brings nothing while the queue is paused, and says so', async () => {
  await p.schedule('a');
  await p.promote();
  await p.redis.hset(p.keys.meta, 'paused', `${T0} test`);
  const relayed = await relay();
  expect([relayed.promoted.kind, kindsIn(relayed)]).toEqual(['paused', []]);
});

test('brings what is ready where nothing more may be promoted, and writes down which tokens it gave', async () => {
  await p.scheduleAll([item('a'), item('b')]);
  await p.promote({ limit: 1 });
  const relayed = await relay({ cap: 1, take: 1 });
  expect([relayed.promoted.kind, kindsIn(relayed)]).toEqual(['capped', ['j:a run']]);
  const [claim] = claimOf(relayed);
  expect(Number(await p.meta('token'))).toBeGreaterThanOrEqual(Number(claim?.token));
});

test('drops the old entry of a bare job that was put again', async () => {
  await p.put('bare', T0);
  await p.promote();
  await p.put('bare', T0 + 500);
  expect(kindsIn(await relay())).toEqual(['bare dropped']);
});

test('prolongs the lease when it is asked to', async () => {
  await p.lead();
  await p.redis.pexpire(p.keys.leader, 1_000_000);
  await relay();
  expect(await p.redis.pttl(p.keys.leader)).toBeGreaterThan(LEASE_MS);
  await relay({ leaseMs: LEASE_MS });
  expect(await p.redis.pttl(p.keys.leader)).toBeLessThanOrEqual(LEASE_MS);
});

test('starts no more than its bytes', async () => {
  await p.scheduleAll([item('a', { data: 'x'.repeat(400) }), item('b')]);
  expect(kindsIn(await relay({ bytesMax: 450 }))).toEqual(['j:a run', 'j:b later']);
});

test('costs a lone job one script of few commands', async () => {
  await p.schedule('a');
  const first = await relay();
  await p.schedule('b');
  await p.redis.config('RESETSTAT');
  await relay({ ended: claimOf(first) }, createJobs(p.redis));
  const stats = await p.redis.info('commandstats');
  const calls = [...stats.matchAll(/cmdstat_([a-z|]+):calls=(\d+)/g)].filter(
    ([, name]) => !/^(info|config)/.test(name ?? ''),
  );
  expect(calls.reduce((sum, [, , count]) => sum + Number(count), 0)).toBe(21);
});
