/** Sets by a client, with workers: members that add members, a group, a removal, and calls that are refused. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { createDaemon, type Daemon } from '../../../src/daemon/daemon.ts';
import { createWorker } from '../../../src/daemon/embedded-worker.ts';
import type { SetEnds } from '../../../src/job/job.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const rows = defineQueue<{ row: number }>('rows', { partitions: 3 });
const then = { name: 'imported', data: { row: -1 } };
let server: TestRedis;
let redis: Redis;
let daemon: Daemon;
let client: Client;

beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: server.url, name: 'test' });
  await whenReady(redis);
});
beforeEach(async () => {
  await redis.flushall();
  daemon = createDaemon({ redis: { url: server.url }, roles: ['mover'], http: { port: 0 } });
  await daemon.start();
  client = createClient({ redis: server.url });
});
afterEach(async () => {
  await client.close();
  await daemon.stop();
});
afterAll(async () => {
  close(redis);
  await server.stop();
});

test('the callback runs once, when members that members have added are over, with the counts', async () => {
  const called: (SetEnds | undefined)[] = [];
  expect(await client.sets.begin(rows, 'import-7', { then })).toEqual({
    set: 'import-7',
    status: 'made',
    callback: '{set:import-7}{then}',
  });
  const jobs = [0, 1, 2, 3].map((row) => ({
    data: { row },
    id: `row-${row}`,
    name: 'row',
    set: 'import-7',
    attempts: 1,
  }));
  const made = await client.scheduleMany(rows, jobs);
  expect(made[0]?.id).toBe('{set:import-7}row-0');
  // As a caller repeats it whose reply was lost.
  const again = { name: 'row', set: 'import-7', attempts: 1, id: made[0]?.id, at: new Date(made[0]?.dueMs ?? 0) };
  expect((await client.schedule(rows, { row: 0 }, again)).status).toBe('already');
  await client.sets.seal(rows, 'import-7');
  const worker = createWorker(
    rows,
    {
      row: async ({ data: { row } }, { commitJob }) => {
        if (row === 0) await commitJob({ row: 10 }, { name: 'row', set: 'import-7', delay: 50 });
        if (row === 1)
          await expect(commitJob({ row: 11 }, { set: 'other' })).rejects.toThrow(/allowed: the set of this job/);
        if (row === 3) throw new Error('broken');
      },
      imported: async (job) => void called.push(job.set),
    },
    { redis: server.url },
  );
  await worker.start();
  await expect.poll(() => called).toHaveLength(1);
  expect(called).toEqual([{ name: 'import-7', done: 4, dead: 1, cancelled: 0, expired: 0 }]);
  expect((await client.sets.seal(rows, 'import-7')).status).toBe('over');
  expect((await client.sets.list(rows)).sets).toEqual([]);
  await worker.stop();
  await expect(client.schedule(rows, { row: 9 }, { set: 'import-7' })).rejects.toMatchObject({ code: 'no-set' });
});

test('sets are listed page by page over partitions, and by their names', async () => {
  for (const name of ['a', 'b', 'c', 'd', 'e']) await client.sets.begin(rows, name, { then });
  await client.schedule(rows, { row: 1 }, { set: 'c', delay: '1h' });
  const names: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.sets.list(rows, { limit: 2, cursor });
    names.push(...page.sets.map(({ name }) => name));
    cursor = page.cursor;
  } while (cursor !== undefined);
  expect(names.toSorted()).toEqual(['a', 'b', 'c', 'd', 'e']);
  const { sets } = await client.sets.list(rows, { set: ['c', 'nowhere'] });
  expect(sets).toMatchObject([{ name: 'c', open: 1, sealed: false, callback: { name: 'imported', delayMs: 0 } }]);
  expect((await client.count(rows, { set: 'c' })).count).toBe(1);
});

test('members are found by their set: live, over and dead ones, with other filters, and changed', async () => {
  const kept = defineQueue<{ row: number }>('kept', { partitions: 3, history: { keep: '1d' } });
  for (const set of ['a', 'b']) {
    await client.sets.begin(kept, set, { then });
    const jobs = ['1', '2', '3'].map((id) => ({
      data: { row: 1 },
      id,
      set,
      attempts: 1,
      delay: '1h' as const,
      tags: [`row:${id}`],
    }));
    await client.scheduleMany(kept, jobs);
  }
  const found = async (filter: Parameters<Client['list']>[1]) => {
    const ids: string[] = [];
    for await (const { id } of client.list(kept, filter)) ids.push(id);
    return ids.toSorted();
  };
  expect(await found({ set: 'a' })).toEqual(['1', '2', '3'].map((id) => `{set:a}${id}`));
  expect(await found({ set: 'a', tag: 'row:2' })).toEqual(['{set:a}2']);
  expect(await found({ set: 'none' })).toEqual([]);
  expect((await client.count(kept, { set: 'b', state: 'scheduled' })).count).toBe(3);
  expect(await client.cancel(kept, { set: 'a', tag: 'row:1' })).toMatchObject({ matched: 1, changed: 1 });
  expect(await found({ set: 'a', state: ['cancelled', 'scheduled'] })).toEqual(['{set:a}1', '{set:a}2', '{set:a}3']);
  await client.runNow(kept, { set: 'a' });
  const worker = createWorker(
    kept,
    async ({ id }) => {
      if (id === '{set:a}2') throw new Error('broken');
    },
    { redis: server.url },
  );
  await worker.start();
  await expect.poll(async () => (await client.count(kept, { set: 'a' })).count).toBe(0);
  await worker.stop();
  // The note of a worker says it too.
  expect(await found({ set: 'a', state: ['done', 'dead'] })).toEqual(['{set:a}2', '{set:a}3']);
  const [past] = (await client.get(kept, '{set:a}3'))?.past ?? [];
  expect([past?.set, past?.tags]).toEqual(['a', ['row:3']]);
  const { deadLetters } = await client.deadLetters.list(kept, { set: 'a' });
  expect(deadLetters.map(({ id }) => id)).toEqual(['{set:a}2']);
  expect((await client.deadLetters.list(kept, { set: 'b' })).deadLetters).toEqual([]);
});

test('a set may have a group of a queue with limits', async () => {
  const gated = defineQueue<{ row: number }>('gated', { perGroup: 1, partitions: 2 });
  const options = { then, group: 'acme' };
  expect((await client.sets.begin(gated, 'import-8', options)).callback).toBe('{acme}import-8{then}');
  const { id } = await client.schedule(gated, { row: 1 }, { id: 'x', group: 'acme', set: 'import-8' });
  expect(id).toBe('{acme}x');
  await client.sets.seal(gated, 'import-8', { group: 'acme' });
  await client.cancel(gated, id);
  expect((await client.get(gated, '{acme}import-8{then}'))?.name).toBe('imported');
});

test('a removal makes no callback, and cancels the members', async () => {
  await client.sets.begin(rows, 'gone', { then });
  await client.schedule(rows, { row: 1 }, { set: 'gone', id: '1', delay: '1h' });
  await client.sets.seal(rows, 'gone');
  expect(await client.sets.remove(rows, 'gone')).toEqual({ set: 'gone', cancelled: 1, running: [] });
  expect(await client.get(rows, '{set:gone}{then}')).toBeUndefined();
  await expect(client.sets.remove(rows, 'gone')).rejects.toMatchObject({ code: 'not-found' });
});

test('a name is for one set of a queue, whatever the partitions of its groups', async () => {
  const gated = defineQueue<{ row: number }>('tenants', { perGroup: 1, partitions: 4 });
  const groups = ['g0', 'g1', 'g2', 'g3', 'g4', 'g5'];
  expect(await client.sets.begin(gated, 'nightly', { then, group: 'g0' })).toMatchObject({ status: 'made' });
  for (const group of groups.slice(1)) {
    const call = client.sets.begin(gated, 'nightly', { then, group });
    await expect(call).rejects.toMatchObject({ code: 'exists' });
    const member = { id: 'x', group, set: 'nightly', delay: '1h' } as const;
    await expect(client.schedule(gated, { row: 1 }, member)).rejects.toMatchObject({ code: 'no-set' });
  }
  await expect(client.sets.begin(gated, 'nightly', { then })).rejects.toThrow(/has a set nightly of group "g0"/);
  expect(await client.sets.begin(gated, 'nightly', { then, group: 'g0' })).toMatchObject({ status: 'already' });
});

test('a removal cancels the members of its set, and nobody of another one of that name', async () => {
  const gated = defineQueue<{ row: number }>('tenants', { perGroup: 1, partitions: 4 });
  const groups = ['g0', 'g1', 'g2', 'g3'];
  // Calls at one moment find none of the others.
  const made = await Promise.allSettled(groups.map((group) => client.sets.begin(gated, 'nightly', { then, group })));
  const [own, ...others] = groups.filter((_, at) => made[at]?.status === 'fulfilled');
  expect(others.length).toBeGreaterThan(0);
  for (const group of groups.filter((one) => one === own || others.includes(one))) {
    await client.schedule(gated, { row: 1 }, { id: 'x', group, set: 'nightly', delay: '1h' });
    await client.sets.seal(gated, 'nightly', { group });
  }
  expect(await client.sets.remove(gated, 'nightly', { group: own })).toEqual({
    set: 'nightly',
    cancelled: 1,
    running: [],
  });
  const { sets } = await client.sets.list(gated, { set: 'nightly' });
  expect(sets.map(({ group, open, cancelled }) => [group, open, cancelled]).toSorted()).toEqual(
    others.map((group) => [group, 1, 0]),
  );
});

test('what cannot be is refused, and says what is allowed', async () => {
  const bad = (call: Promise<unknown>, words: RegExp) => expect(call).rejects.toThrow(words);
  await bad(client.sets.begin(rows, 'a b', { then }), /set is "a b"; allowed: 1 to 48 of/);
  await bad(client.sets.begin(rows, 'a', { then: { ...then, id: 'x' } as never }), /id.*allowed: data/);
  await bad(client.sets.begin(rows, 'a', { then: undefined as never }), /then is undefined; allowed/);
  await bad(client.sets.begin(rows, 'a', { then, group: 'acme' }), /group "acme"/);
  await bad(client.sets.begin(rows, 'a', { then: { ...then, delay: '9000d' } }), /delay is "9000d"/);
  await bad(client.schedule(rows, { row: 1 }, { set: 'a', id: '{set:b}1' }), /of set "b", and set is "a"/);
  await bad(client.schedule(rows, { row: 1 }, { id: '{set:a}{then}' }), /job id is/);
  await bad(client.sets.list(rows, { set: [] }), /set is a list of 0/);
  await bad(client.list(rows, { tag: '=set:a' }), /tag is "=set:a"/);
  await bad(client.list(rows, { set: 'a b' }), /set is "a b"; allowed: 1 to 48/);
  await client.sets.begin(rows, 'a', { then });
  await bad(client.sets.begin(rows, 'a', { then: { ...then, delay: 5 } }), /has a set a with another callback/);
  const sent = defineQueue<{ row: number }>('sent', { broadcast: true });
  await bad(client.sets.begin(sent, 'a', { then }), /which is a broadcast/);
});
