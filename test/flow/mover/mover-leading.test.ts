/** Who moves a partition, and how leadership passes from one process to another. */
import { expect, it } from 'vitest';
import { idle } from '../../../src/kernel/loop.ts';
import { rendezvous } from '../../../src/kernel/shares.ts';
import { diaryEntries } from '../../../src/redis/diary.ts';
import { beat, leave } from '../../../src/redis/scripts/presence.ts';
import { listQueues } from '../../../src/redis/scripts/queues.ts';
import { daemonOn, handClock, moverOn, slowed } from '../../support/mover-line.ts';
import { eventually, HOUR_MS, NAMESPACE, useLine } from '../../support/worker-line.ts';

const line = useLine({ movers: false, check: false });

const declare = (queue = line.queue) =>
  line.redis.hset(`${NAMESPACE}:v1:{control}:queues`, queue, '{"partitions":1,"generation":0}');
const forgetQueues = () => line.redis.del(`${NAMESPACE}:v1:{control}:queues`);
/** A name that every daemon ranks before this one. */
function rankedFirst(than: string): string {
  const names = Array.from({ length: 100 }, (_, at) => `better${at}`);
  const name = names.find((one) => rendezvous(line.ref.keys.leader, [one, than])[0] === one);
  if (name === undefined) throw new Error('no name comes first');
  return name;
}
const leader = () => line.redis.get(line.ref.keys.leader);

it('of two daemons one leads, and both know which', async () => {
  await declare();
  line.onEnd(forgetQueues);
  const daemons = [await daemonOn(line, 'd1'), await daemonOn(line, 'd2')];
  await Promise.all(daemons.map((daemon) => daemon.start()));
  await eventually(() => daemons.filter((daemon) => daemon.leads()).length).toBe(1);
  const term = (await leader()) ?? '';
  expect(daemons.map((daemon) => daemon.leads())).toEqual([term.startsWith('d1:'), term.startsWith('d2:')]);
  await line.plan(...line.many(10));
  await eventually(async () => (await line.picture()).ready?.length).toBe(10);
});

it('a leader that heard no nudges for a while looks as soon as it hears them again', async () => {
  await declare();
  line.onEnd(forgetQueues);
  const daemon = await daemonOn(line, 'd1', { leaseMs: HOUR_MS, safetyTickMs: HOUR_MS });
  await daemon.start();
  await eventually(() => daemon.leads()).toBe(true);
  await line.plan({ id: 'far', dueMs: Date.now() + HOUR_MS });
  daemon.subscriber.disconnect();
  await eventually(() => daemon.subscriber.status).toBe('end');
  await line.plan({ id: 'unheard', dueMs: Date.now() - 5 });
  await daemon.subscriber.connect();
  await eventually(async () => (await line.picture()).ready).toEqual(['j:unheard']);
});

it('a leader tells the diary when the last worker goes and when one is there again', async () => {
  await declare();
  line.onEnd(forgetQueues);
  const identity = { id: 'w9', role: 'worker', host: 'h', pid: 1, startedMs: 0, queues: [line.queue] } as const;
  const of = { namespace: NAMESPACE, identity, ttlMs: HOUR_MS };
  await beat(line.redis, of);
  const daemon = await daemonOn(line, 'd1');
  await daemon.start();
  const told = async () => (await diaryEntries(line.redis, line.ref)).map(({ what }) => what);
  await eventually(told).toEqual(['elected']);
  await leave(line.redis, NAMESPACE, 'w9');
  await eventually(told).toEqual(['elected', 'unserved']);
  await beat(line.redis, of);
  await eventually(told).toEqual(['elected', 'unserved', 'served']);
  await daemon.stop();
  await leave(line.redis, NAMESPACE, 'w9');
  await eventually(told).toEqual(['elected', 'unserved', 'served', 'resigned']);
});

it('a leader that stops hands over long before its lease would run out', async () => {
  await declare();
  line.onEnd(forgetQueues);
  const options = { leaseMs: HOUR_MS, safetyTickMs: HOUR_MS };
  const [first, second] = [await daemonOn(line, 'd1', options), await daemonOn(line, 'd2', options)];
  await first.start();
  await eventually(() => first.leads()).toBe(true);
  await second.start();
  await first.stop();
  await eventually(() => second.leads()).toBe(true);
  expect(first.leads()).toBe(false);
  expect(first.heard.of('leader.lost')).toMatchObject([{ why: 'stopped' }]);
});

it('a leader that dies without a word is replaced after its lease', async () => {
  await declare();
  line.onEnd(forgetQueues);
  const options = { leaseMs: 500, safetyTickMs: 100 };
  const [first, second] = [await daemonOn(line, 'd1', options), await daemonOn(line, 'd2', options)];
  await first.start();
  await eventually(() => first.leads()).toBe(true);
  await second.start();
  first.die();
  await eventually(() => second.leads()).toBe(true);
  expect(first.leads()).toBe(false);
  const [before, after] = [first, second].map((one) => one.heard.of('leader.elected').at(-1)?.epoch ?? 0);
  expect(after).toBeGreaterThan(before ?? 0);
});

it('a queue that is declared while daemons run is led at once', async () => {
  line.onEnd(forgetQueues);
  const daemon = await daemonOn(line, 'd1');
  await daemon.start();
  expect(daemon.partitions()).toEqual([]);
  const worker = await line.worker(() => undefined);
  await eventually(() => daemon.leads()).toBe(true);
  await line.plan({});
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  expect((await listQueues(line.redis, NAMESPACE)).map(({ queue }) => queue)).toEqual([line.queue]);
});

it('a nudge reaches the leader, also after its subscription was killed', async () => {
  await declare();
  line.onEnd(forgetQueues);
  const daemon = await daemonOn(line, 'd1', { safetyTickMs: HOUR_MS, leaseMs: HOUR_MS });
  await daemon.start();
  await eventually(() => daemon.leads()).toBe(true);
  await line.plan({ id: 'a' });
  await eventually(async () => (await line.picture()).ready).toEqual(['j:a']);
  await line.redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  const subscribers = async () =>
    Number(((await line.redis.call('PUBSUB', 'SHARDNUMSUB', line.ref.keys.wake)) as [string, number])[1]);
  await eventually(subscribers).toBe(0);
  await eventually(subscribers).toBe(1);
  await line.plan({ id: 'b' });
  await eventually(async () => (await line.picture()).ready).toEqual(['j:a', 'j:b']);
});

it('a leader whose lease another process has got concedes, and comes back with a later epoch', async () => {
  // Without a due job the mover renews its lease after a quarter of it, and then notices.
  const mover = moverOn(line, { safetyTickMs: 20, leaseMs: 2000 });
  mover.start();
  await eventually(() => mover.leading()?.epoch).toBeGreaterThan(0);
  await line.redis.set(line.ref.keys.leader, `other:${Date.now()}:300`, 'PX', 300);
  // Its pass may notice it first, or its renewal.
  const reasons = () => mover.heard.of('leader.lost').map(({ why }) => why);
  await eventually(reasons).toEqual([expect.stringMatching(/^(fenced|the lease was lost)$/)]);
  await line.plan({});
  await eventually(async () => (await line.picture()).ready).toEqual(['j:a']);
  const [first, second] = mover.heard.of('leader.elected').map(({ epoch }) => epoch);
  expect(second).toBeGreaterThan(first ?? Number.POSITIVE_INFINITY);
});

it('everything is flushed away: the leader is elected again and goes on', async () => {
  const mover = moverOn(line, { safetyTickMs: 20 });
  mover.start();
  await eventually(() => mover.leading()?.epoch).toBeGreaterThan(0);
  await line.redis.flushall();
  await line.plan({});
  await eventually(async () => (await line.picture()).ready).toEqual(['j:a']);
  const epochs = mover.heard.of('leader.elected').map(({ epoch }) => epoch);
  expect(epochs).toEqual([...new Set(epochs)].sort((a, b) => a - b));
});

it('a promote without a reply ends the leadership; the same process may be elected again', async () => {
  let lose = true;
  const redis = slowed(line.redis, 'promote', async (send) => {
    const reply = await send();
    if (!lose) return reply;
    lose = false;
    throw new Error('Command timed out');
  });
  await line.plan({});
  const mover = moverOn(line, { redis });
  mover.start();
  await eventually(() => mover.heard.of('leader.elected').length).toBe(2);
  expect(mover.heard.of('leader.lost')).toMatchObject([{ why: 'promote got no reply' }]);
  await eventually(() => mover.heard.names().filter((name) => name.startsWith('redis.'))).toEqual([
    'redis.away',
    'redis.back',
  ]);
  expect((await line.picture()).ready).toEqual(['j:a']);
});

it('a leader that conceded for want of a reply still gives its lease back when it stops', async () => {
  const redis = slowed(line.redis, 'promote', () => Promise.reject(new Error('Command timed out')));
  const mover = moverOn(line, { redis });
  mover.start();
  await eventually(() => mover.heard.of('leader.lost').length).toBeGreaterThan(0);
  await mover.stop();
  expect(await leader()).toBeNull();
});

it('a leader of worse rank gives way after ten seconds, and lets the better one be first', async () => {
  const clock = handClock();
  let rank = 0;
  const mover = moverOn(line, { clock, safetyTickMs: 1000, rank: () => rank });
  await mover.pass();
  await mover.pass();
  rank = 1;
  await mover.pass();
  clock.advance(9999);
  await mover.pass();
  expect(mover.leading()).toBeDefined();
  clock.advance(1);
  const restMs = await mover.pass();
  expect(mover.leading()).toBeUndefined();
  expect(await leader()).toBeNull();
  expect(mover.heard.of('leader.lost')).toMatchObject([{ why: 'a process of better rank is there' }]);
  expect(restMs).toEqual(idle(500));
  // Its own word of it comes back over the channel, and must not make it take what it gave away.
  mover.nudge('resigned');
  clock.advance(499);
  expect(await mover.pass()).toEqual(idle(1));
  expect(await leader()).toBeNull();
  clock.advance(1);
  await mover.pass();
  expect(mover.leading()).toBeDefined();
});

it('a leader does not give way to one that was killed, whose heartbeat is still there', async () => {
  await declare();
  line.onEnd(forgetQueues);
  const better = rankedFirst('d1');
  const identity = { id: better, role: 'daemon' as const, host: 'here', pid: 2, startedMs: 0, queues: [] };
  const beats = () => beat(line.redis, { namespace: NAMESPACE, identity, ttlMs: 3_600_000 });
  await beats();
  // Killed long ago by the hour, as its heartbeat says; the clock of the daemon goes on while the test does not wait.
  await line.redis.pexpire(`${NAMESPACE}:v1:{control}:beat:${better}`, 1_800_000);
  line.onEnd(() => leave(line.redis, NAMESPACE, better));
  const clock = handClock();
  const daemon = await daemonOn(line, 'd1', { clock, safetyTickMs: 20, leaseMs: 3_600_000 });
  await daemon.start();
  await eventually(() => daemon.leads()).toBe(true);
  const passes = () => daemon.heard.of('mover.passed').length;
  for (let times = 0; times < 3; times += 1) {
    const before = passes();
    clock.advance(61_000);
    await eventually(passes).toBeGreaterThan(before);
  }
  expect(daemon.heard.of('leader.lost')).toEqual([]);
  await beats();
  await eventually(() => {
    clock.advance(1000);
    return daemon.heard.of('leader.lost');
  }).toMatchObject([{ why: 'a process of better rank is there' }]);
});

it('a leader that comes back does not give way for what it saw in its last term', async () => {
  const clock = handClock();
  const mover = moverOn(line, { clock, safetyTickMs: 1000, leaseMs: 20_000, rank: () => 1 });
  await mover.pass();
  await mover.pass();
  await line.redis.set(line.ref.keys.leader, 'other:1:60000', 'PX', 60_000);
  clock.advance(9000);
  await mover.pass();
  expect(mover.leading()).toBeUndefined();
  await line.redis.del(line.ref.keys.leader);
  await mover.pass();
  clock.advance(1000);
  await mover.pass();
  expect(mover.leading()).toBeDefined();
  expect(mover.heard.of('leader.lost')).toMatchObject([{ why: 'the lease was lost' }]);
});

it('a better rank that comes and goes within ten seconds changes nothing', async () => {
  const clock = handClock();
  let rank = 0;
  const mover = moverOn(line, { clock, safetyTickMs: 1000, rank: () => rank });
  await mover.pass();
  for (let times = 0; times < 3; times += 1) {
    rank = 1;
    await mover.pass();
    clock.advance(8000);
    await mover.pass();
    rank = 0;
    await mover.pass();
  }
  expect(mover.heard.of('leader.lost')).toEqual([]);
});

it('a free lease is taken in the order of rank', async () => {
  const clock = handClock();
  const mover = moverOn(line, { clock, rank: () => 3 });
  mover.nudge('resigned');
  expect(await mover.pass()).toEqual(idle(120));
  expect(await leader()).toBeNull();
  clock.advance(120);
  await mover.pass();
  expect(mover.leading()).toBeDefined();
});

it('daemons that start and stop, also in the middle of a start, leave no lease, heartbeat or subscription', async () => {
  await declare();
  line.onEnd(forgetQueues);
  for (let turns = 0; turns < 20; turns += 1) {
    const daemon = await daemonOn(line, `d${turns}`);
    const started = daemon.start().catch(() => undefined);
    for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    await daemon.stop();
    await started;
    daemon.die();
    expect(await leader()).toBeNull();
    expect(await line.redis.keys(`*beat:d${turns}`)).toEqual([]);
  }
  const list = async () => String(await line.redis.client('LIST'));
  await eventually(async () => (await list()).includes('name=duestream:nudges')).toBe(false);
});
