/**
 * What a script reads is bounded, however large records, members and dead letters are, and calling again comes to an end.
 * Bytes are counted, not milliseconds: a record of 256 KiB costs Redis 1.3 ms to read and hash on any quiet machine.
 */
import { expect, test } from 'vitest';
import { everyDeadLetter } from '../../src/redis/read/ends.ts';
import { repair } from '../../src/redis/repair/repair.ts';
import { createStep, READ_BYTES_MAX } from '../../src/redis/scripts/bytes.ts';
import { type Delivery, takenOf } from '../../src/redis/scripts/replies.ts';
import { type NamedScript, scripts } from '../../src/redis/scripts/script-table.ts';
import { list, type Reply, text } from '../../src/redis/scripts/scripts.ts';
import { purge } from '../../src/redis/scripts/upkeep.ts';
import { page } from '../support/first-jobs.ts';
import { item, LEASE_MS, only, T0, usePartition, WINDOW_MS } from '../support/partition.ts';
import { weighed } from '../support/weigh.ts';

const p = usePartition();
const LARGE = 100_000;
const COUNT = 40;
const MIB = 1_048_576;
/** Hashed as well as read, and one of each more than fits: the first is always taken. */
const HASHED_MAX = 2 * (READ_BYTES_MAX + 2 * LARGE);
const data = 'x'.repeat(LARGE);
const ids = Array.from({ length: COUNT }, (_, at) => `job-${at}`);
const members = ids.map((id) => `j:${id}`);
const late = { expiresAtMs: T0 + 1000, onLate: 'dead' as const };

type Args = Readonly<Record<string, string | number>>;
const weigh = (script: NamedScript, args: Args, each: readonly (string | number)[] = []) =>
  weighed(p.redis, script, {
    keys: p.keys,
    args: { now: T0, window: WINDOW_MS, bytes: READ_BYTES_MAX, ...args },
    each,
  });
const scheduleAll = (asked: Parameters<typeof item>[1] = {}) =>
  p.scheduleAll(ids.map((id) => item(id, { data, ...asked })));
const wordsOf = ({ entry, member, dueMs }: Delivery) => [entry, member, dueMs];
/** What `start` replies, in the order of its entries. */
const startKinds = (reply: Reply) => {
  const [started, others] = list(reply);
  return takenOf(started, others).map(({ kind }) => [kind]);
};
const kinds = (reply: Reply) => list(reply).map((one) => (Array.isArray(one) ? text(one[0]) : text(one)).split(' ')[0]);

/** Calls until nothing is `later`, each time for the rest; the answers, and what the largest call read. */
async function calledAgain<T>(
  all: readonly T[],
  call: (rest: readonly T[]) => Promise<{ bytes: number; reply: Reply }>,
) {
  let [rest, most, calls] = [all, 0, 0];
  const answers: (string | undefined)[] = [];
  while (rest.length > 0) {
    const { bytes, reply } = await call(rest);
    const got = kinds(reply);
    const looked = got.includes('later') ? got.indexOf('later') : got.length;
    expect(looked).toBeGreaterThan(0);
    expect(got.slice(looked).every((kind) => kind === 'later')).toBe(true);
    answers.push(...got.slice(0, looked));
    rest = rest.slice(looked);
    most = Math.max(most, bytes);
    calls += 1;
  }
  return { answers: [...new Set(answers)], most, calls };
}

test('start reads what fits, and nothing after the first record that does not', async () => {
  await scheduleAll();
  const deliveries = await p.deliver();
  const told = await calledAgain(deliveries, async (rest) => {
    const { bytes, reply } = await weigh(scripts.start, { consumer: 'w1', suspects: 0 }, rest.flatMap(wordsOf));
    return { bytes, reply: startKinds(reply) };
  });
  expect(told).toMatchObject({ answers: ['run'] });
  expect(told.most).toBeLessThan(HASHED_MAX);
  expect(told.calls).toBe(Math.ceil(COUNT / Math.floor(READ_BYTES_MAX / LARGE)));
});

test('cancel reads what fits, and the rest when it is called again', async () => {
  await scheduleAll({ dueMs: T0 + 1000 });
  const told = await calledAgain(members, (rest) => weigh(scripts.cancel, { generation: 0 }, rest));
  expect(told).toMatchObject({ answers: ['cancelled'] });
  expect(told.most).toBeLessThan(HASHED_MAX);
  expect(told.calls).toBeGreaterThan(4);
});

test('expire reads what fits, and few of the dead letters that are there', async () => {
  await scheduleAll({ late });
  const deliveries = await p.deliver();
  const told = await calledAgain(deliveries, (rest) =>
    weigh(
      scripts.expire,
      { now: T0 + 2000, consumer: 'w1' },
      rest.flatMap((one) => [...wordsOf(one), '', '']),
    ),
  );
  expect(told).toMatchObject({ answers: ['dead'] });
  expect(told.most).toBeLessThan(HASHED_MAX + 262_144 + LARGE);
  expect(await p.redis.xlen(p.keys.dead)).toBe(COUNT);
});

const SETTINGS = { generation: 0, mode: 'keep', horizon: 1e9, bytes: 1e6 };
const wordsOfItem = (asked: Parameters<typeof item>[1]) => (id: string) => {
  const { member, record, dueMs } = item(id, asked);
  return [member, record, dueMs];
};

test.each([
  ['the same call again, which has to be compared', 'already', { data }],
  ['another record of the same length', 'exists', { data: 'y'.repeat(LARGE) }],
])('schedule over live jobs: %s', async (_what, answer, asked) => {
  await scheduleAll();
  const told = await calledAgain(ids, (rest) => weigh(scripts.schedule, SETTINGS, rest.flatMap(wordsOfItem(asked))));
  expect(told).toMatchObject({ answers: [answer] });
  expect(told.most).toBeLessThan(READ_BYTES_MAX + LARGE);
});

test('schedule over jobs in ready reads a large record for its due time, and no more of them than fit', async () => {
  await scheduleAll();
  await p.promote();
  const told = await calledAgain(ids, (rest) =>
    weigh(scripts.schedule, SETTINGS, rest.flatMap(wordsOfItem({ data: 1 }))),
  );
  expect(told).toMatchObject({ answers: ['exists'] });
  expect(told.most).toBeLessThan(READ_BYTES_MAX + LARGE);
  expect(told.calls).toBeGreaterThan(4);
});

test('schedule over jobs that are over hashes no more than fits', async () => {
  await scheduleAll();
  await p.complete(await p.run());
  const told = await calledAgain(ids, (rest) => weigh(scripts.schedule, SETTINGS, rest.flatMap(wordsOfItem({ data }))));
  expect(told).toMatchObject({ answers: ['already'] });
  expect(told.most).toBeLessThan(READ_BYTES_MAX + LARGE);
});

test('schedule over scheduled jobs of another length reads no more than fits', async () => {
  await scheduleAll();
  const told = await calledAgain(ids, (rest) =>
    weigh(scripts.schedule, SETTINGS, rest.flatMap(wordsOfItem({ data: 1 }))),
  );
  expect(told).toMatchObject({ answers: ['exists'] });
  expect(told.most).toBeLessThan(READ_BYTES_MAX + LARGE);
});

async function promoteAll() {
  let [most, passes] = [0, 0];
  const args = { term: await p.lead(), lease: LEASE_MS, limit: 500, cap: 10_000 };
  for (; (await p.redis.zcard(p.keys.scheduled)) > 0; passes += 1) {
    most = Math.max(most, (await weigh(scripts.promote, args)).bytes);
  }
  return { most, passes };
}

test('promote reads large foreign members a few at a time, and takes good jobs on', async () => {
  await Promise.all(ids.map((id) => p.put(id.padEnd(LARGE, 'x'), T0)));
  await p.schedule('good');
  const { most, passes } = await promoteAll();
  expect(most).toBeLessThan(MIB + 2 * LARGE);
  expect(passes).toBeLessThan(7);
  expect(await p.redis.xlen(p.keys.dead)).toBe(COUNT);
  expect((await p.picture()).ready).toEqual(['j:good']);
});

test('promote that meets large members after many small ones reads one step of them at most', async () => {
  await p.scheduleAll(Array.from({ length: 100 }, (_, at) => item(`a${at}`, { dueMs: T0 - 1 })));
  await Promise.all(ids.map((id) => p.put(id.padEnd(LARGE, 'x'), T0)));
  expect((await promoteAll()).most).toBeLessThan(MIB + 2 * LARGE);
});

test('promote reads no record of a bare job, and of bad due times as many as fit', async () => {
  const record = item('bare', { data }).record;
  await p.redis.hset(p.keys.jobs, ...ids.flatMap((id) => [id, record]));
  for (const id of ids) await p.put(id, T0);
  expect((await promoteAll()).most).toBeLessThan(LARGE);
  await p.reset();
  await scheduleAll();
  for (const member of members) await p.put(member, 5);
  expect((await promoteAll()).most).toBeLessThan(2 * (MIB + LARGE));
  expect(await p.redis.xlen(p.keys.dead)).toBe(COUNT);
});

/** A look through a hash reads whole groups of members at once: how much that is depends on the server's random seed. */
const STEP_OF_HASH = 10 * LARGE;

test('checkMembers calls a partition large when it is large in bytes, and a slice ends in time', async () => {
  await scheduleAll({ dueMs: T0 + 1000 });
  const all = await weigh(scripts.checkMembers, { part: 'all', cursor: 0, limit: 5000 });
  expect(list(all.reply)[0]).toBe('large');
  expect(all.bytes).toBeLessThan(MIB + STEP_OF_HASH);
  let [cursor, looked, most] = ['0', 0, 0];
  do {
    const { bytes, reply } = await weigh(scripts.checkMembers, { part: 'jobs', cursor, limit: 5000 });
    cursor = text(list(reply)[0]);
    looked += Number(list(reply)[1]);
    most = Math.max(most, bytes);
  } while (cursor !== '0');
  expect(most).toBeLessThan(MIB + STEP_OF_HASH);
  expect(looked).toBe(COUNT);
});

test.each(['scheduled', 'runs'])('checkMembers of %s reads few large members at a time', async (part) => {
  const large = ids.map((id) => id.padEnd(LARGE, 'x'));
  if (part === 'scheduled') for (const member of large) await p.put(member, T0 + 1000);
  else await p.redis.hset(p.keys.runs, ...large.flatMap((member) => [member, '1 0 1 0 0 - - - 0']));
  // A table that is growing gives a whole group of its members at once; each look at it brings that a step forward.
  for (let looks = 0; looks < 200; looks += 1) {
    await (part === 'scheduled' ? p.redis.zscore(p.keys.scheduled, 'nobody') : p.redis.hexists(p.keys.runs, 'nobody'));
  }
  // Each one that is found is named in the reply as well, which is not read.
  expect((await weigh(scripts.checkMembers, { part, cursor: 0, limit: 5000 })).bytes).toBeLessThan(MIB + STEP_OF_HASH);
  await p.reset();
});

test('checkEntries ends a page of ready, and of what is held, when foreign entries are large', async () => {
  await p.promote();
  for (const id of ids) await p.redis.xadd(p.keys.ready, '*', 'member', id.padEnd(LARGE, 'x'), 'due', '1');
  await p.read();
  for (const part of ['ready', 'pending']) {
    let [after, looked, most] = ['', 0, 0];
    do {
      const { bytes, reply } = await weigh(scripts.checkEntries, { part, after, limit: 1000 });
      after = text(list(reply)[0]);
      looked += Number(list(reply)[1]);
      most = Math.max(most, bytes);
    } while (after !== '');
    expect(most).toBeLessThan(MIB + 2 * LARGE);
    expect(looked).toBe(COUNT);
  }
  await p.reset();
});

test('reclaim leaves what does not fit where it is', async () => {
  await p.promote();
  for (const id of ids) await p.redis.xadd(p.keys.ready, '*', 'member', id.padEnd(LARGE, 'x'), 'due', '1');
  const entries = (await p.read()).map(({ entry }) => entry);
  const { bytes, reply } = await weigh(scripts.reclaim, { owner: 'w1', consumer: 'w2', idle: 0 }, entries);
  expect(bytes).toBeLessThan(MIB + 2 * LARGE);
  expect(list(reply).length / 3).toBeGreaterThan(9);
  const rest = await p.reclaim('w1', { entries });
  expect(list(reply).length / 3 + rest.deliveries.length).toBeLessThan(COUNT);
  await p.reset();
});

test('repair reads what fits of the records of orphans, and repairs all of them in the end', async () => {
  await scheduleAll();
  await p.redis.del(p.keys.scheduled);
  const orphans = members.map((name) => ({ kind: 'orphan' as const, name, detail: '-' }));
  const { bytes, reply } = await weigh(
    scripts.repair,
    { seen: '-' },
    orphans.flatMap(({ kind, name }) => [kind, name]),
  );
  expect(bytes).toBeLessThan(READ_BYTES_MAX + LARGE);
  expect(kinds(reply)).toContain('later');
  const rest = await repair(p.redis, p.ref, orphans, { nowMs: T0 });
  expect(new Set(rest.values())).toEqual(new Set(['sound', 'repaired']));
  expect(await p.redis.zcard(p.keys.scheduled)).toBe(COUNT);
});

test('settles and releases read no record; a death reads few of the dead letters that are there', async () => {
  await scheduleAll();
  const deliveries = await p.deliver();
  const claims = [];
  for (const one of deliveries.slice(0, 20)) claims.push(...(await p.claim([one])));
  for (const claim of claims.slice(0, 10)) await p.bury(claim);
  const death = { ...claims[10], reason: 'attempts', error: '', compensation: '', compensationRecord: '' };
  expect((await weigh(scripts.bury, death)).bytes).toBeLessThan(262_144 + 3 * LARGE);
  const ends = claims.slice(11, 20).flatMap(({ entry, member, token }) => [entry, member, token, 'mi8or64g abc']);
  expect((await weigh(scripts.complete, {}, ends)).bytes).toBeLessThan(LARGE);
  const others = deliveries.slice(20);
  const unknown = others.flatMap(({ entry, member }) => [entry, member, '7', '']);
  expect((await weigh(scripts.complete, {}, unknown)).bytes).toBeLessThan(LARGE);
  const released = await weigh(scripts.release, { consumer: 'w1' }, others.flatMap(wordsOf));
  expect(released.bytes).toBeLessThan(LARGE);
  expect(new Set(kinds(released.reply))).toEqual(new Set(['ok']));
});

test('purge ends when it has read 256 KiB of dead letters, also where small ones come first', async () => {
  for (let at = 0; at < 100; at += 1) await p.redis.xadd(p.keys.dead, '*', 'member', `j:${at}`, 'reason', 'r');
  for (const id of ids) await p.redis.xadd(p.keys.dead, '*', 'member', id.padEnd(LARGE, 'x'), 'reason', 'r');
  let [after, most, looked] = ['', 0, 0];
  do {
    const call = { age: -1e12, reason: '', after, limit: 500, mode: 'count' };
    const { bytes, reply } = await weigh(scripts.purge, call);
    most = Math.max(most, bytes);
    looked += Number(list(reply)[1]);
    after = text(list(reply)[2]);
  } while (after !== '');
  expect(most).toBeLessThan(262_144 + 16 * LARGE);
  expect(looked).toBe(COUNT + 100);
  expect((await purge(p.redis, p.ref, { mode: 'remove', ageMs: 0, limit: 5, nowMs: 9e15 })).matched).toBeLessThan(6);
  await p.reset();
});

test('pages of jobs and dead letters are whole, whatever their sizes', async () => {
  const sizes = ids.map((id, at) => item(id, { data: 'x'.repeat(at % 3 === 0 ? LARGE : 1), dueMs: T0 + at }));
  await p.scheduleAll(sizes);
  const scheduled = await page(p.redis, p.ref, { state: 'scheduled', limit: 35 });
  expect(scheduled.slice(5).map(({ id }) => id)).toEqual(ids.slice(5, 35));
  await p.promote({ nowMs: T0 + 100 });
  const ready = await page(p.redis, p.ref, { state: 'ready', limit: 35 });
  expect(ready.slice(5).map(({ id }) => id)).toEqual(ids.slice(5, 35));
  const held = await p.read();
  for (const one of held) await p.bury(only(await p.claim([one])));
  const found: string[] = [];
  for await (const { id } of everyDeadLetter(p.redis, p.ref, 1000)) found.push(id);
  expect(found).toEqual(ids.toReversed());
});

test('a page asks for one value first, then for twice as many, and never for more than fit', () => {
  const step = createStep(50);
  const asked = [1, 10, 10, 10, 300_000, 10].map((size) => {
    const count = step.next();
    step.saw([size]);
    return count;
  });
  expect(asked).toEqual([1, 2, 4, 8, 16, 3]);
  expect(step.next()).toBe(3);
});
