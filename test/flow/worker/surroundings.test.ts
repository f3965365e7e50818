/** What a worker says when nobody leads its queues, when its clock is not that of Redis, or when other versions run beside it. */
import { expect, it } from 'vitest';
import { createEmitter } from '../../../src/job/events.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import { version } from '../../../src/kernel/version.ts';
import { createServers } from '../../../src/redis/connection/server-clock.ts';
import { createSurroundings } from '../../../src/worker/surroundings.ts';
import { eventually, listen, useLine } from '../../support/worker-line.ts';

const line = useLine({ movers: false, partitions: 2 });

/** The look of a worker whose clocks a test sets. */
function surroundings() {
  const events = createEmitter();
  const now: { monotonicMs: number; offMs: number; versions?: string } = { monotonicMs: 1000, offMs: 0 };
  const clock = {
    ...systemClock,
    monotonicMs: () => now.monotonicMs,
    wallMs: () => systemClock.wallMs() + now.offMs,
  };
  const server = createServers(line.redis, systemClock)();
  const ofHost = {
    ...server,
    nowMs: () => server.nowMs(),
    latestMs: () => server.nowMs(),
    earliestMs: () => server.nowMs(),
  };
  const { redis, refs } = line;
  const served = () => [{ refs, versions: now.versions }];
  const of = { redis, served, server: ofHost, beatTtlMs: 300, clock, events };
  const look = createSurroundings(of);
  const lookAfter = (ms: number) => {
    now.monotonicMs += ms;
    return look();
  };
  return { heard: listen(events), now, server, lookAfter };
}

const lead = (partition: number) => line.redis.set(line.refs[partition]?.keys.leader ?? '', 'm:1:60000');
const unlead = (partition: number) => line.redis.del(line.refs[partition]?.keys.leader ?? '');

it('a worker tells once that no daemon leads its queue, and once that a daemon leads it again', async () => {
  const worker = await line.worker(() => undefined, { beatTtl: 100 });
  await eventually(() => worker.heard.of('leader.away')).toEqual([{ queue: line.queue, partitions: [0, 1] }]);
  await lead(0);
  await lead(1);
  await eventually(() => worker.heard.of('leader.back')).toEqual([{ queue: line.queue, awayMs: expect.any(Number) }]);
  expect(worker.heard.of('leader.away')).toHaveLength(1);
});

it('it names the partitions that are not led, and says nothing of the moment between two leaders', async () => {
  const { heard, lookAfter } = surroundings();
  await lead(0);
  await lookAfter(0);
  await lookAfter(299);
  await lead(1);
  await lookAfter(1);
  await unlead(1);
  await lookAfter(1);
  expect(heard.names()).toEqual([]);
  await lookAfter(300);
  await lookAfter(300);
  expect(heard.of('leader.away')).toEqual([{ queue: line.queue, partitions: [1] }]);
  await lead(1);
  await lookAfter(100);
  await lookAfter(100);
  expect(heard.of('leader.back')).toEqual([{ queue: line.queue, awayMs: 700 }]);
});

it('it tells each change of a clock that differs from that of Redis by more than half a second', async () => {
  const { heard, now, server, lookAfter } = surroundings();
  await server.sample();
  await lookAfter(0);
  expect(heard.names()).toEqual([]);
  now.offMs = 5000;
  await lookAfter(0);
  await lookAfter(0);
  expect(heard.names()).toEqual(['clock.off']);
  expect(heard.of('clock.off')[0]?.aheadMs).toBeLessThan(-4000);
  now.offMs = 0;
  await lookAfter(0);
  expect(heard.names()).toEqual(['clock.off', 'clock.right']);
});

it('it tells once that processes of another minor version live, and once that they are gone; one with other repairs is none of them', async () => {
  const { heard, now, lookAfter } = surroundings();
  await lead(0);
  await lead(1);
  const repaired = version.replace(/\d+$/, '99');
  for (const versions of [undefined, version, `${repaired} ${version}`, 'nonsense ; 1']) {
    Object.assign(now, { versions });
    await lookAfter(0);
  }
  expect(heard.names()).toEqual([]);
  now.versions = `0.1.4 ${version} 9.0.0-rc.1`;
  await lookAfter(0);
  await lookAfter(0);
  expect(heard.of('versions.differ')).toEqual([{ own: version, others: '0.1.4, 9.0.0-rc.1' }]);
  now.versions = version;
  await lookAfter(0);
  await lookAfter(0);
  expect(heard.names()).toEqual(['versions.differ', 'versions.agree']);
});
