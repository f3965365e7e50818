/** When a mover looks, what it promotes, and what makes it wait. */
import { expect, it } from 'vitest';
import { memberOf } from '../../../src/job/codec.ts';
import { pause, resume } from '../../../src/redis/scripts/upkeep.ts';
import { handClock, moverOn, restOf, slowed } from '../../support/mover-line.ts';
import { eventually, gate, HOUR_MS, useLine } from '../../support/worker-line.ts';

const line = useLine({ movers: false });

const readyCount = async () => (await line.picture()).ready?.length ?? 0;

it('jobs are promoted in the order of their due times, and none a millisecond early', async () => {
  const mover = moverOn(line);
  mover.start();
  const now = Date.now();
  await line.plan(...Array.from({ length: 40 }, (_, at) => ({ id: `n${at}`, dueMs: now + 20 + ((at * 7) % 40) * 10 })));
  mover.nudge(String(now + 20));
  await eventually(readyCount).toBe(40);
  const entries = await line.redis.xrange(line.ref.keys.ready, '-', '+');
  const dueTimes = entries.map(([, fields]) => Number(fields[3]));
  expect(dueTimes).toEqual([...dueTimes].sort((a, b) => a - b));
  for (const [at, [entry]] of entries.entries()) {
    expect(Number(entry.split('-')[0])).toBeGreaterThanOrEqual(dueTimes[at] ?? Number.NaN);
  }
});

it('it sleeps until the next due time, and does not look in between', async () => {
  const dueMs = Date.now() + 400;
  await line.plan({ dueMs });
  const mover = moverOn(line, { safetyTickMs: HOUR_MS });
  mover.start();
  await eventually(readyCount).toBe(1);
  // One look at the start, one at the due time, and perhaps one more because a timer was a little early.
  expect(mover.heard.of('mover.passed').length).toBeLessThanOrEqual(3);
});

it('a nudge by a sooner job wakes it', async () => {
  await line.plan({ id: 'far', dueMs: Date.now() + HOUR_MS });
  const mover = moverOn(line, { safetyTickMs: HOUR_MS });
  mover.start();
  await eventually(() => mover.heard.of('mover.passed').length).toBe(1);
  const dueMs = Date.now() + 20;
  await line.plan({ id: 'near', dueMs });
  mover.nudge(String(dueMs));
  await eventually(async () => (await line.picture()).ready).toEqual(['j:near']);
});

it('a nudge that overtakes the reply of the pass that is under way is not lost', async () => {
  const door = gate();
  let passes = 0;
  const redis = slowed(line.redis, 'promote', async (send) => {
    const reply = await send();
    passes += 1;
    if (passes === 1) await door.opened;
    return reply;
  });
  const mover = moverOn(line, { redis, safetyTickMs: HOUR_MS });
  mover.start();
  await eventually(() => passes).toBe(1);
  const dueMs = Date.now();
  await line.plan({ dueMs });
  mover.nudge(String(dueMs));
  door.open();
  await eventually(readyCount).toBe(1);
});

it.each(['nonsense', 'NaN', '{}', 'Infinity'])('the nudge %j is ignored', async (message) => {
  const mover = moverOn(line);
  await mover.pass();
  await mover.pass();
  mover.nudge(message);
  await mover.pass();
  expect(mover.heard.of('mover.passed')).toHaveLength(1);
});

it('the safety tick counts from the last look, however often nudges for later jobs wake it', async () => {
  const clock = handClock();
  const mover = moverOn(line, { clock, safetyTickMs: 1000 });
  expect(await mover.pass()).toBe(0);
  expect(await mover.pass()).toBe(1000);
  clock.advance(900);
  expect(await mover.pass()).toBe(100);
  // A timer may fire a little early; the rest is rested then, and not a whole tick more.
  clock.advance(99.7);
  expect(await mover.pass()).toBe(1);
  await line.redis.zadd(line.ref.keys.scheduled, Date.now() - 5, 'bare');
  clock.advance(0.3);
  await mover.pass();
  expect(await readyCount()).toBe(1);
});

it('a bare member that nobody announced is found by the safety tick', async () => {
  const mover = moverOn(line, { safetyTickMs: 100 });
  mover.start();
  await eventually(() => mover.heard.of('mover.passed').length).toBeGreaterThan(0);
  await line.redis.zadd(line.ref.keys.scheduled, Date.now(), 'order-1');
  await eventually(async () => (await line.picture()).ready).toEqual(['order-1']);
});

it('above its cap of undelivered entries it promotes nothing, and goes on when there is room', async () => {
  await line.plan(...line.many(25));
  const mover = moverOn(line, { readyMax: 10 });
  mover.start();
  await eventually(() => mover.heard.of('mover.passed').at(-1)?.state).toBe('capped');
  expect(await readyCount()).toBe(10);
  expect(Object.keys((await line.picture()).scheduled ?? {})).toHaveLength(15);
  const read = () => line.redis.xreadgroup('GROUP', 'workers', 'w', 'COUNT', 10, 'STREAMS', line.ref.keys.ready, '>');
  await read();
  await eventually(readyCount).toBe(20);
  await read();
  await eventually(readyCount).toBe(25);
});

it('while nobody takes what is ready it looks ever more rarely, and at once again when somebody does', async () => {
  const clock = handClock();
  await line.plan(...line.many(25));
  const mover = moverOn(line, { clock, readyMax: 10, safetyTickMs: 1000 });
  const looksIn = async (forMs: number) => {
    const untilMs = clock.monotonicMs() + forMs;
    const before = mover.heard.of('mover.passed').length;
    while (clock.monotonicMs() < untilMs) clock.advance(restOf(await mover.pass()));
    return mover.heard.of('mover.passed').length - before;
  };
  // Every 5 ms it was 2,000 looks; resting never longer than 100 ms it is 100 and those on the way there.
  expect(await looksIn(10_000)).toBeLessThanOrEqual(120);
  expect(await readyCount()).toBe(10);
  await line.redis.xreadgroup('GROUP', 'workers', 'w', 'COUNT', 3, 'STREAMS', line.ref.keys.ready, '>');
  const readMs = clock.monotonicMs();
  while ((await readyCount()) < 13) clock.advance(restOf(await mover.pass()));
  expect(clock.monotonicMs() - readMs).toBeLessThanOrEqual(202);
  expect(await looksIn(25)).toBeGreaterThanOrEqual(3);
});

it('while the queue is paused nothing is promoted, and afterwards everything that is due', async () => {
  await line.plan(...line.many(3));
  await line.redis.hset(line.ref.keys.meta, 'paused', '1');
  const mover = moverOn(line, { safetyTickMs: 30 });
  mover.start();
  await eventually(() => mover.heard.of('mover.passed').map(({ state }) => state)).toContain('paused');
  expect(await readyCount()).toBe(0);
  await line.redis.hdel(line.ref.keys.meta, 'paused');
  await eventually(readyCount).toBe(3);
});

it('twenty thousand jobs that are due at once drain in bounded passes, in order', async () => {
  const dueMs = Date.now() - 1000;
  for (let from = 0; from < 20_000; from += 1000) {
    const ids = Array.from({ length: 1000 }, (_, at) => `n${String(from + at).padStart(5, '0')}`);
    await line.plan(...ids.map((id) => ({ id, dueMs })));
  }
  const mover = moverOn(line, { readyMax: 1_000_000 });
  mover.start();
  const counts = () => mover.heard.of('jobs.promoted').map(({ count }) => count);
  // The last pass is told when its reply has come, a moment after Redis has the jobs.
  await eventually(() => counts().reduce((sum, count) => sum + count, 0)).toBe(20_000);
  expect(Math.max(...counts())).toBeLessThanOrEqual(500);
  expect(await line.redis.xlen(line.ref.keys.ready)).toBe(20_000);
  const members = (await line.redis.xrange(line.ref.keys.ready, '-', '+')).map(([, fields]) => fields[1] ?? '');
  expect(members).toEqual([...members].sort());
  expect(members[0]).toBe(memberOf('n00000'));
});

it('lateness is told in pairs that add up to what was promoted', async () => {
  await line.plan({ id: 'a', dueMs: Date.now() - 70 }, { id: 'b', dueMs: Date.now() - 70_000 });
  const mover = moverOn(line);
  mover.start();
  await eventually(() => mover.heard.of('jobs.promoted').length).toBe(1);
  const [{ lateness, count } = { lateness: [], count: 0 }] = mover.heard.of('jobs.promoted');
  expect(lateness.reduce((sum, [, jobs]) => sum + jobs, 0)).toBe(count);
  expect(Math.max(...lateness.map(([lateMs]) => lateMs))).toBeGreaterThanOrEqual(70_000);
});

it('while nothing is due the safety tick makes no pass, but one every minute', async () => {
  const clock = handClock();
  await line.plan({ id: 'far', dueMs: Date.now() + HOUR_MS });
  const mover = moverOn(line, { clock, safetyTickMs: 1000, leaseMs: HOUR_MS });
  await mover.pass();
  const passesIn = async (seconds: number) => {
    const before = mover.heard.of('mover.passed').length;
    for (let second = 0; second < seconds; second += 1) {
      await mover.pass();
      clock.advance(1000);
    }
    return mover.heard.of('mover.passed').length - before;
  };
  expect(await passesIn(60)).toBe(1);
  expect(await passesIn(60)).toBe(1);
  expect(mover.leading()).toBeDefined();
});

it('a sooner bare job that the safety tick saw is promoted at its due time, without a nudge', async () => {
  const clock = handClock();
  await line.plan({ id: 'far', dueMs: Date.now() + HOUR_MS });
  const mover = moverOn(line, { clock, safetyTickMs: 1000 });
  await mover.pass();
  await mover.pass();
  await line.redis.zadd(line.ref.keys.scheduled, Date.now() + 60_000, 'soon');
  clock.advance(1000);
  expect(restOf(await mover.pass())).toBe(100);
  await line.redis.zadd(line.ref.keys.scheduled, Math.round(mover.serverMs()) + 150, 'sooner');
  clock.advance(100);
  expect(restOf(await mover.pass())).toBeLessThanOrEqual(51);
  expect(mover.heard.of('mover.passed')).toHaveLength(1);
});

it('the lease is prolonged by a pass when a tenth of it is over, and by itself while there are none', async () => {
  const clock = handClock();
  const mover = moverOn(line, { clock, safetyTickMs: 1000, leaseMs: 40_000 });
  const left = () => line.redis.pttl(line.ref.keys.leader);
  const promotes = async (id: string) => {
    await line.redis.pexpire(line.ref.keys.leader, 5000);
    await line.plan({ id, dueMs: Date.now() - 5 });
    mover.nudge('0');
    clock.advance(10);
    await mover.pass();
  };
  await mover.pass();
  await promotes('a');
  await promotes('b');
  expect(await left()).toBeLessThanOrEqual(5000);
  clock.advance(4000);
  await promotes('c');
  expect(await left()).toBeGreaterThan(5000);
  await line.redis.pexpire(line.ref.keys.leader, 5000);
  clock.advance(16_000);
  await mover.pass();
  expect(await left()).toBeGreaterThan(5000);
  expect(mover.leading()).toBeDefined();
});

it('a producer that does not nudge is looked for ten times in a tick for a day, by the next leader too; a lost nudge is no such producer', async () => {
  const clock = handClock();
  const { scheduled, meta } = line.ref.keys;
  await line.plan({ id: 'far', dueMs: Date.now() + HOUR_MS });
  const mover = moverOn(line, { clock, safetyTickMs: 1000, leaseMs: HOUR_MS });
  await mover.pass();
  await mover.pass();
  // Its nudge is not handed on here.
  await line.plan({ id: 'nearer', dueMs: Date.now() + HOUR_MS / 2 });
  clock.advance(1000);
  expect(restOf(await mover.pass())).toBe(1000);
  expect(await line.redis.hget(meta, 'foreign')).toBeNull();
  await line.redis.zadd(scheduled, Date.now() + 60_000, 'bare');
  clock.advance(1000);
  expect(restOf(await mover.pass())).toBe(100);
  expect(Number(await line.redis.hget(meta, 'foreign'))).toBeGreaterThan(Date.now() - HOUR_MS);
  await mover.stop();
  const next = moverOn(line, { clock, processId: 'm2', safetyTickMs: 1000, leaseMs: HOUR_MS });
  await next.pass();
  expect(restOf(await next.pass())).toBe(100);
  await pause(line.redis, line.ref, { reason: '' });
  next.nudge('0');
  await next.pass();
  expect(restOf(await next.pass())).toBe(1000);
  await resume(line.redis, line.ref);
  await line.redis.hset(meta, 'foreign', Date.now() - 25 * HOUR_MS);
  await next.stop();
  const later = moverOn(line, { clock, processId: 'm3', safetyTickMs: 1000, leaseMs: HOUR_MS });
  await later.pass();
  expect(restOf(await later.pass())).toBe(1000);
});
