/** Who looks for dead workers, pass by pass: a few while all live, all once somebody is missed who holds entries. */
import { expect, it } from 'vitest';
import { createEmitter } from '../../../src/job/events.ts';
import { enlist } from '../../../src/redis/connection/cluster/members.ts';
import type { Redis } from '../../../src/redis/connection/connect.ts';
import { controlKeys } from '../../../src/redis/keys.ts';
import { beat } from '../../../src/redis/scripts/presence.ts';
import { consumers, join, readNew } from '../../../src/redis/scripts/ready.ts';
import { createReclaimer } from '../../../src/worker/recover/reclaimer.ts';
import { InFlight } from '../../../src/worker/run/in-flight.ts';
import { handClock } from '../../support/mover-line.ts';
import { eventually, listen, NAMESPACE, useLine } from '../../support/worker-line.ts';

const PARTITIONS = 2;
/** So long that the seats, which hold for 1.2 of it by the clock of Redis, outlive every pause of a busy machine. */
const GRACE_MS = 50_000;
const line = useLine({ partitions: PARTITIONS });
const control = controlKeys(NAMESPACE);

/** A worker that is there: it joined its groups and sends heartbeats. */
async function appear(name: string): Promise<void> {
  const identity = { id: name, role: 'worker' as const, host: 'h', pid: 1, startedMs: 0, queues: [line.queue] };
  await beat(line.redis, { namespace: NAMESPACE, identity, ttlMs: 3_600_000 });
  for (const { keys } of line.refs) await join(line.redis, keys, name);
}
const die = (name: string) => line.redis.del(control.beat(name));

/** Workers of which only the part that looks for dead ones runs, by hand. */
async function watchers(count: number, jobLeaseMs = 1, commands = line.redis, graceMs = GRACE_MS) {
  const clock = handClock();
  /** Since when the heartbeats of all have been well. */
  let steadySinceMs = clock.monotonicMs();
  const names = Array.from({ length: count }, (_, at) => `w${at}`);
  const alive = new Set(names);
  const made = names.map((consumer) => {
    const events = createEmitter();
    const took: string[] = [];
    const reclaimer = createReclaimer({
      commands,
      namespace: NAMESPACE,
      refs: line.refs,
      consumer,
      inFlight: new InFlight(50),
      clock,
      events,
      graceMs,
      beatTtlMs: 120_000,
      jobLeaseMs,
      random: () => 0,
      beats: { lastProgressMs: clock.monotonicMs, steadySinceMs: () => steadySinceMs },
      starter: { takeOver: async (_, deliveries) => void took.push(...deliveries.map(({ member }) => member)) },
    });
    return { consumer, pass: reclaimer.pass, heard: listen(events), took };
  });
  for (const name of names) await appear(name);
  /** Everybody passes once; says how often the consumers of a partition were listed. */
  const round = async (afterMs = 20_000): Promise<number> => {
    clock.advance(afterMs);
    await line.redis.config('RESETSTAT');
    for (const one of made) if (alive.has(one.consumer)) await one.pass();
    const stats = await line.redis.info('commandstats');
    return Number(/cmdstat_xinfo\|consumers:calls=(\d+)/.exec(stats)?.[1] ?? 0);
  };
  line.onEnd(async () => {
    for (const name of names) await die(name);
    for (const { keys } of line.refs)
      for (const name of names) await line.redis.xgroup('DELCONSUMER', keys.ready, 'workers', name);
  });
  const beats = {
    fail() {
      steadySinceMs = Number.POSITIVE_INFINITY;
    },
    recover() {
      steadySinceMs = clock.monotonicMs();
    },
  };
  return { round, made, alive, beats, retired: () => made.flatMap(({ heard }) => heard.of('consumer.retired')) };
}

/** What a worker was given that has died since. */
async function leave(name: string, jobs: number): Promise<void> {
  await line.plan(...line.many(jobs, name));
  await eventually(async () => (await line.picture()).ready?.length ?? 0).toBe(jobs);
  await readNew(line.redis, [line.ref], { consumer: name, count: jobs, blockMs: 0 });
}

it('of ten workers four look while all live, and the cost of the others does not depend on how many there are', async () => {
  const { round } = await watchers(10);
  expect(await round()).toBe(4 * PARTITIONS);
  expect(await round()).toBe(4 * PARTITIONS);
});

it('three workers all look', async () => {
  const { round } = await watchers(3);
  expect(await round()).toBe(3 * PARTITIONS);
});

it('a seat goes to another one after a minute', async () => {
  const { round } = await watchers(6);
  const seated = async () => (await line.redis.hget(line.ref.keys.meta, 'watch'))?.match(/w\d/g)?.sort();
  await round();
  expect(await seated()).toEqual(['w0', 'w1', 'w2', 'w3']);
  await round(60_001);
  await round();
  expect(await seated()).toContain('w4');
  expect(await seated()).toContain('w5');
  expect(await seated()).toHaveLength(4);
});

it('one who holds entries is missed: all look, each proves it for itself, and what it held is taken once', async () => {
  const { round, made } = await watchers(10);
  await appear('ghost');
  await leave('ghost', 30);
  await round();
  await die('ghost');
  await round();
  const took = () => made.flatMap((one) => one.took);
  expect(await round()).toBe(10 * PARTITIONS);
  expect(took()).toEqual([]);
  for (let rounds = 0; rounds < 8 && took().length < 30; rounds += 1) await round();
  expect([...took()].sort()).toEqual(
    line
      .many(30, 'ghost')
      .map(({ id }) => `j:${id}`)
      .sort(),
  );
  expect(made.filter((one) => one.took.length > 0).length).toBeGreaterThan(4);
});

it('all who look die in their seats, one of them with entries: the others sit down and find it', async () => {
  const { round, made, alive } = await watchers(6);
  await leave('w0', 5);
  await round();
  for (const name of ['w0', 'w1', 'w2', 'w3']) {
    alive.delete(name);
    await die(name);
  }
  // Their seats run out by the clock of Redis, long before their heartbeats do.
  await line.redis.hdel(line.ref.keys.meta, 'watch');
  for (let rounds = 0; rounds < 12; rounds += 1) await round();
  expect(made.slice(4).flatMap((one) => one.took)).toHaveLength(5);
  expect(made.slice(0, 4).flatMap((one) => one.took)).toEqual([]);
});

it('twenty die who hold nothing: each is retired once, nobody lists the consumers for each of them, and none is left', async () => {
  const { round, retired } = await watchers(10);
  const ghosts = Array.from({ length: 20 }, (_, at) => `ghost${at}`);
  for (const ghost of ghosts) await appear(ghost);
  await round();
  for (const ghost of ghosts) await die(ghost);
  const lists: number[] = [];
  for (let rounds = 0; rounds < 6; rounds += 1) lists.push(await round());
  expect(Math.max(...lists)).toBe(4 * PARTITIONS);
  expect(retired()).toHaveLength(20 * PARTITIONS);
  expect((await line.redis.smembers(control.alive)).filter((id) => /^ghost\d/.test(id))).toEqual([]);
});

it('one that lives for a single look takes out all who were heard of last long ago and hold nothing', async () => {
  // By Redis's own measure: 120 times the grace, here 600 ms, and not by how long this one has watched.
  const { round, retired } = await watchers(1, 1, line.redis, 5);
  await leave('holds', 1);
  const killed = Array.from({ length: 30 }, (_, at) => `ghost${at}`);
  for (const one of killed) await appear(one);
  for (const one of killed) await die(one);
  const youngestMs = async () => {
    const all = await Promise.all(line.refs.map(({ keys }) => consumers(line.redis, keys)));
    return Math.min(...all.flat().map(({ idleMs }) => idleMs));
  };
  await eventually(async () => (await youngestMs()) >= 600).toBe(true);
  await appear('young');
  await die('young');
  await round(0);
  const gone = retired().map(({ partition, consumer }) => `${partition} ${consumer}`);
  const wanted = line.refs.flatMap(({ partition }) => killed.map((one) => `${partition} ${one}`));
  expect(gone.filter((one) => !one.endsWith(' young')).toSorted()).toEqual(wanted.toSorted());
});

it('after heartbeats failed, those who are back within a grace are left alone, and the others are retired', async () => {
  const { round, retired, beats } = await watchers(3);
  for (const name of ['slow', 'ghost']) await appear(name);
  await round();
  beats.fail();
  for (const name of ['slow', 'ghost']) await die(name);
  for (let rounds = 0; rounds < 6; rounds += 1) await round();
  beats.recover();
  await round(10_000);
  expect(retired()).toEqual([]);
  await appear('slow');
  for (let rounds = 0; rounds < 6; rounds += 1) await round();
  expect(retired().map(({ partition, consumer }) => `${partition} ${consumer}`)).toEqual(['0 ghost', '1 ghost']);
  await die('slow');
});

it('a worker that died in one partition and holds an entry in another stays listed', async () => {
  // So young an entry is not taken, and a consumer that holds one stays.
  const { round, retired } = await watchers(2, 60_000);
  await appear('ghost');
  await leave('ghost', 1);
  await die('ghost');
  for (let rounds = 0; rounds < 5; rounds += 1) await round();
  expect(retired()).toMatchObject([{ partition: 1, consumer: 'ghost' }]);
  expect(await line.redis.smembers(control.alive)).toContain('ghost');
});

/** As in a cluster whose node with the first partition is away: what names a key of it is not sent. */
function withoutTheFirst(): { readonly redis: Redis; readonly comesBack: () => void } {
  const place = line.ref.keys.ready.replace(/ready$/, '');
  let isAway = true;
  const redis = new Proxy(line.redis, {
    get(target, name) {
      const found: unknown = Reflect.get(target, name);
      if (typeof found !== 'function') return found;
      return (...words: readonly unknown[]) =>
        isAway && words.flat(2).some((word) => String(word).startsWith(place))
          ? Promise.reject(new Error('not connected to Redis at a node that is away'))
          : Reflect.apply(found, target, words);
    },
  });
  enlist(redis, { all: () => [line.redis], of: () => line.redis });
  return {
    redis,
    comesBack() {
      isAway = false;
    },
  };
}

it('a partition whose node is away costs the others nothing, and its own dead wait for a grace of their own', async () => {
  const { redis, comesBack } = withoutTheFirst();
  const { round, made, retired } = await watchers(1, 1, redis);
  await appear('ghost');
  const [, second] = line.refs;
  if (!second) throw new Error('no second partition');
  // Routed by hand: what counts is where the entry is.
  await leave('ghost', 3);
  await line.planIn(second, ...line.many(2, 'there'));
  await eventually(() => line.redis.xlen(second.keys.ready)).toBe(2);
  await readNew(line.redis, [second], { consumer: 'ghost', count: 2, blockMs: 0 });
  await round();
  await die('ghost');
  const took = () => made.flatMap((one) => one.took).toSorted();
  for (let rounds = 0; rounds < 8; rounds += 1) await round();
  expect(took()).toEqual(['j:there0', 'j:there1']);
  expect(await line.redis.smembers(control.alive)).toContain('ghost');
  comesBack();
  await round();
  expect(took()).toHaveLength(2);
  for (let rounds = 0; rounds < 8; rounds += 1) await round();
  expect(took()).toHaveLength(5);
  expect(retired().map(({ partition }) => partition)).toEqual([1, 0]);
  expect(await line.redis.smembers(control.alive)).not.toContain('ghost');
});

it('a worker without others looks more rarely, and as often as ever when there is another one', async () => {
  const { made } = await watchers(1);
  const rests = async () => Math.round((await made[0]?.pass()) ?? 0);
  const alone = Math.round(0.75 * 0.72 * 120_000);
  expect(await rests()).toBe(alone);
  await appear('late');
  expect(await rests()).toBeCloseTo(0.75 * 0.4 * GRACE_MS);
  for (const { keys } of line.refs) await line.redis.xgroup('DELCONSUMER', keys.ready, 'workers', 'late');
  expect(await rests()).toBe(alone);
});
