/** Heartbeats: who says it is alive. They nominate the dead and decide nothing. */
import { expect, test } from 'vitest';
import { controlKeys } from '../../src/redis/keys.ts';
import {
  beat,
  beatAges,
  beatAndHear,
  forget,
  type Identity,
  leave,
  presence,
  tellWorker,
  type WorkerPause,
  withoutBeat,
} from '../../src/redis/scripts/presence.ts';
import { scripts } from '../../src/redis/scripts/script-table.ts';
import { run } from '../../src/redis/scripts/scripts.ts';
import { T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const namespace = 't';
const keys = controlKeys(namespace);
const worker = (id: string): Identity => ({ id, role: 'worker', host: 'h', pid: 1, startedMs: T0, queues: ['emails'] });
const beats = (id: string, ttlMs = 5000) => beat(p.redis, { namespace, identity: worker(id), ttlMs });

test('a process that beats is present with its identity, until its time to live', async () => {
  await beats('w1');
  expect(await presence(p.redis, namespace)).toEqual([{ id: 'w1', identity: { ...worker('w1'), beatTtlMs: 5000 } }]);
  const ttl = await p.redis.pttl(keys.beat('w1'));
  expect(ttl > 0 && ttl <= 5000).toBe(true);
});

test('a beat that was cut off before its last write is sent anew', async () => {
  await p.redis.sadd(keys.alive, 'w1');
  expect(await beats('w1')).toBe('anew');
  expect(await beats('w1')).toBe('kept');
});

test('a second beat prolongs the first', async () => {
  await beats('w1', 1000);
  await beats('w1', 60_000);
  expect(await p.redis.pttl(keys.beat('w1'))).toBeGreaterThan(1000);
});

test('a process whose heartbeat is missing is still listed, without an identity', async () => {
  await beats('w1');
  await beats('w2');
  await p.redis.del(keys.beat('w1'));
  expect(await presence(p.redis, namespace)).toEqual([
    { id: 'w1', identity: undefined },
    { id: 'w2', identity: { ...worker('w2'), beatTtlMs: 5000 } },
  ]);
  expect(await withoutBeat(p.redis, namespace, ['w1', 'w2', 'w3'])).toEqual(['w1', 'w3']);
});

test('the age of a beat is what has gone of its time to live, where it says how long that is', async () => {
  await beats('w1');
  await p.redis.pexpire(keys.beat('w1'), 4000);
  await p.redis.set(keys.beat('old'), JSON.stringify(worker('old')), 'PX', 5000);
  const known = [{ ...worker('w1'), beatTtlMs: 5000 }, worker('old'), { ...worker('gone'), beatTtlMs: 5000 }];
  const ages = await beatAges(p.redis, namespace, known);
  expect([...ages.keys()]).toEqual(['w1']);
  expect(ages.get('w1')).toBeGreaterThanOrEqual(1000);
});

test('a beat after its key was lost makes it again', async () => {
  await beats('w1');
  await p.redis.flushall();
  await beats('w1');
  expect(await presence(p.redis, namespace)).toMatchObject([{ id: 'w1', identity: { host: 'h' } }]);
});

test('a process that leaves is gone at once, and one that is forgotten is not listed', async () => {
  await beats('w1');
  await beats('w2');
  await leave(p.redis, namespace, 'w1');
  expect((await presence(p.redis, namespace)).map(({ id }) => id)).toEqual(['w2']);
  await p.redis.del(keys.beat('w2'));
  await forget(p.redis, namespace, 'w2');
  expect(await presence(p.redis, namespace)).toEqual([]);
});

test('a process that is back when it is to be forgotten stays listed, in one step', async () => {
  await beats('w1');
  await forget(p.redis, namespace, 'w1');
  expect((await presence(p.redis, namespace)).map(({ id }) => id)).toEqual(['w1']);
});

test('however many processes are killed, those that come take the lost ones away and leave the living', async () => {
  const living = Array.from({ length: 30 }, (_, at) => `living${at}`);
  for (const id of living) await beats(id, 60_000);
  let most = 0;
  for (let round = 0; round < 600; round += 1) {
    await beats(`killed${round}`);
    await p.redis.del(keys.beat(`killed${round}`));
    most = Math.max(most, await p.redis.scard(keys.alive));
  }
  expect(most).toBeLessThanOrEqual(102);
  expect(await p.redis.smismember(keys.alive, ...living)).toEqual(living.map(() => 1));
});

test('what thousands of killed processes left goes a few at a time, with each that comes', async () => {
  await p.redis.sadd(keys.alive, ...Array.from({ length: 2000 }, (_, at) => `killed${at}`));
  for (let round = 0; round < 130; round += 1) await beats(`w${round}`, 60_000);
  const left = (await presence(p.redis, namespace)).filter(({ identity }) => identity === undefined);
  expect(left.length).toBeLessThan(100);
});

test('where a process may not look for lost ones, it lives all the same', async () => {
  await p.redis.call('ACL', 'SETUSER', 'default', '-srandmember');
  try {
    expect(await beats('w1')).toBe('anew');
  } finally {
    await p.redis.call('ACL', 'SETUSER', 'default', '+srandmember');
  }
});

test('leaving and forgetting twice is fine', async () => {
  await leave(p.redis, namespace, 'w1');
  await forget(p.redis, namespace, 'w1');
  expect(await withoutBeat(p.redis, namespace, [])).toEqual([]);
});

/** A worker that hears of a pause. */
const hears = (id: string, { ttlMs = 5000, ...said }: { ttlMs?: number; paused?: WorkerPause } = {}) =>
  beatAndHear(p.redis, { namespace, identity: { ...worker(id), pauses: true, ...said }, ttlMs });
const tells = (id: string, pause?: WorkerPause) => tellWorker(p.redis, { namespace, id, pause });
/** As somebody may write it: within a text it is no pause. */
const PAUSE: WorkerPause = { sinceMs: T0, by: 'ada', reason: 'a dump of "paused":{}' };

test('a worker is paused beside its heartbeat, and hears of it where it prolongs that', async () => {
  expect(await hears('w1')).toEqual({ isAnew: true, paused: undefined });
  expect(await hears('w1')).toEqual({ isAnew: false, paused: undefined });
  expect(await tells('w1', PAUSE)).toEqual({ kind: 'ok', pause: PAUSE });
  expect(await hears('w1')).toEqual({ isAnew: false, paused: PAUSE });
  expect(await presence(p.redis, namespace)).toMatchObject([{ id: 'w1', identity: { pauses: true, paused: PAUSE } }]);
  expect(await tells('w1', { ...PAUSE, by: 'bob' })).toEqual({ kind: 'same', pause: PAUSE });
  expect(await tells('w1')).toEqual({ kind: 'ok', pause: PAUSE });
  expect(await tells('w1')).toEqual({ kind: 'same', pause: undefined });
  expect(await hears('w1')).toEqual({ isAnew: false, paused: undefined });
  expect(await presence(p.redis, namespace)).toMatchObject([{ id: 'w1', identity: { queues: ['emails'] } }]);
});

test('a beat that hears is one command, and prolongs the key as any other', async () => {
  await hears('w1', { ttlMs: 1000 });
  await p.redis.call('CONFIG', 'RESETSTAT');
  await hears('w1', { ttlMs: 60_000 });
  expect(await p.redis.pttl(keys.beat('w1'))).toBeGreaterThan(1000);
  const stats = await p.redis.info('commandstats');
  const sent = [...stats.matchAll(/^cmdstat_([\w|-]+):/gm)].map(([, name]) => name);
  expect(sent.toSorted()).toEqual(['config|resetstat', 'getex', 'pttl']);
});

test('a pause lives as long as the heartbeat, and is written again by a worker whose key was lost', async () => {
  await hears('w1', { ttlMs: 1000 });
  await tells('w1', PAUSE);
  const ttl = await p.redis.pttl(keys.beat('w1'));
  expect(ttl > 0 && ttl <= 1000).toBe(true);
  await p.redis.del(keys.beat('w1'));
  expect(await tells('w1')).toEqual({ kind: 'gone' });
  expect(await hears('w1', { paused: PAUSE })).toEqual({ isAnew: true, paused: PAUSE });
  expect(await hears('w1')).toEqual({ isAnew: false, paused: PAUSE });
  expect(await tells('w1')).toEqual({ kind: 'ok', pause: PAUSE });
});

test('nobody but a worker that lives and hears of it is paused', async () => {
  await beats('old');
  await beat(p.redis, { namespace, identity: { ...worker('m1'), role: 'daemon' }, ttlMs: 5000 });
  await p.redis.set(keys.beat('odd'), '{', 'PX', 5000);
  expect(await tells('old', PAUSE)).toEqual({ kind: 'deaf', version: undefined });
  for (const id of ['m1', 'odd', 'none']) expect(await tells(id, PAUSE)).toEqual({ kind: 'gone' });
  expect(await p.redis.get(keys.beat('odd'))).toBe('{');
});

test('a heartbeat that somebody else has written meanwhile is not replaced, and the same twice is fine', async () => {
  await hears('w1');
  const before = (await p.redis.get(keys.beat('w1'))) ?? '';
  const tell = (said: { before: string; after: string }) =>
    run(p.redis, scripts.tell, { keys: { ...keys, beat: keys.beat('w1') }, args: { process: 'w1', ...said } });
  expect(await tell({ before: 'another', after: 'new' })).toBe('changed');
  expect(await p.redis.get(keys.beat('w1'))).toBe(before);
  expect([await tell({ before, after: 'new' }), await tell({ before, after: 'new' })]).toEqual(['ok', 'ok']);
  await p.redis.del(keys.beat('w1'));
  expect(await tell({ before: 'new', after: before })).toBe('gone');
});

test('a heartbeat that nobody can read does not hide the others', async () => {
  await beats('w1');
  await beats('w2');
  await p.redis.set(keys.beat('w1'), 'not json', 'PX', 1000);
  expect((await presence(p.redis, namespace)).map(({ id }) => id)).toEqual(['w1', 'w2']);
});
