/** What a call means, and when it takes effect: what was given when it was made, and in the order in which it was made. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { clientSettings } from '../../../src/client/calls/settings.ts';
import { Lane, Turn } from '../../../src/client/calls/turns.ts';
import { type Client, clientOver, createClient } from '../../../src/client/client.ts';
import { createCalls } from '../../../src/client/session.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { createTestKit } from '../../../src/testing/index.ts';
import { createRandom, type Random } from '../../support/fuzz.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

let server: TestRedis;
let spaces = 0;
/** Namespaces, so that nothing of a test is met by another one. */
function space(): string {
  spaces += 1;
  return `calls-${spaces}`;
}
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

const HOUR_MS = 3_600_000;
const dayMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS + 24 * HOUR_MS;
const slow = { '~standard': { version: 1, vendor: 'own', validate: async (value: unknown) => ({ value }) } } as const;

describe('a call means what it was given when it was made', () => {
  const queue = defineQueue<{ nth: number }>('given');
  // Its schema, which takes anything, takes its time.
  const checked = defineQueue('checked', { jobs: { default: slow } }) as unknown as typeof queue;
  const kinds = ['a new client', 'a connected client', 'a kit', 'a client with a middleware'] as const;

  async function clientOf(kind: (typeof kinds)[number]): Promise<Client> {
    if (kind === 'a kit') return createTestKit({ handlers: {}, start: new Date(dayMs - HOUR_MS) }).client;
    const client = createClient({ redis: server.url, namespace: space() });
    if (kind === 'a connected client') await client.schedule(queue, { nth: -1 }, { id: 'first', delay: '1d' });
    if (kind === 'a client with a middleware') client.use({ schedule: async (call, next) => next(call) });
    return client;
  }

  test.each(kinds)('%s: a Date that moves on, data that change, options that are used again', async (kind) => {
    const client = await clientOf(kind);
    for (const to of [queue, checked]) {
      const at = new Date(dayMs);
      const data = { nth: 0 };
      const options = { id: 'd0', at, tags: ['t0'] };
      const calls: Promise<unknown>[] = [];
      for (let nth = 0; nth < 3; nth += 1) {
        data.nth = nth;
        options.id = `d${nth}`;
        options.tags[0] = `t${nth}`;
        calls.push(client.schedule(to, data, options));
        at.setTime(at.getTime() + HOUR_MS);
      }
      options.id = 'd9';
      await Promise.all(calls);
      for (let nth = 0; nth < 3; nth += 1) {
        const job = await client.get(to, `d${nth}`);
        expect(job).toMatchObject({ data: { nth }, dueMs: dayMs + nth * HOUR_MS, options: { tags: [`t${nth}`] } });
      }
      expect(await client.get(to, 'd9')).toBeUndefined();
    }
    await client.close();
  });

  test.each(kinds)('%s: a list that is emptied, and its jobs that change', async (kind) => {
    const client = await clientOf(kind);
    for (const to of [queue, checked]) {
      const jobs = [1, 2, 3].map((nth) => ({ data: { nth }, id: `b${nth}`, at: new Date(dayMs) }));
      const [last] = jobs.slice(-1);
      const flushed = client.scheduleMany(to, jobs);
      jobs.length = 0;
      last?.at.setTime(0);
      if (last) last.data.nth = 9;
      expect(await flushed).toHaveLength(3);
      expect(await client.get(to, 'b3')).toMatchObject({ data: { nth: 3 }, dueMs: dayMs });
    }
    await client.close();
  });

  test.each(kinds)('%s: another time, other data, and a schedule', async (kind) => {
    const client = await clientOf(kind);
    const ids = ['e0', 'e1', 'e2'];
    await client.scheduleMany(
      queue,
      ids.map((id) => ({ id, data: { nth: 9 }, at: new Date(dayMs) })),
    );
    const at = new Date(dayMs);
    const data = { nth: 0 };
    const tags = [''];
    const input = { queue: 'given', every: '1h', data, start: at };
    const calls = ids.flatMap((id, nth) => {
      at.setTime(dayMs + nth * HOUR_MS);
      data.nth = nth;
      tags[0] = `t${nth}`;
      return [
        client.reschedule(queue, id, { at }),
        client.edit(queue, id, { data, tags }),
        client.schedules.put(id, input),
      ];
    });
    at.setTime(0);
    data.nth = 9;
    await Promise.all(calls);
    for (const [nth, id] of ids.entries()) {
      const dueMs = dayMs + nth * HOUR_MS;
      expect(await client.get(queue, id)).toMatchObject({ data: { nth }, dueMs, options: { tags: [`t${nth}`] } });
      expect((await client.schedules.get(id))?.input).toMatchObject({
        data: { nth },
        start: new Date(dueMs).toISOString(),
      });
    }
    await client.close();
  });
});

// Random calls of one turn, over a few ids. What is left must be what is left when each of them is awaited.

const IDS = ['a', 'b', 'c', 'd'];
const queues = [defineQueue<{ v: number }>('one'), defineQueue<{ v: number }>('many', { partitions: 4 })];
type Call = (client: Client) => Promise<unknown>;

function randomCall(random: Random, nth: number): Call {
  const to = random.of(queues);
  const id = random.of(IDS);
  const at = new Date(dayMs + random.below(5) * HOUR_MS);
  const tags = [random.of(['x', 'y'])];
  const data = { v: nth };
  const some = IDS.filter(() => random.chance(0.5));
  const filter = { tag: random.of(['x', 'y']) };
  const ifExists = random.of(['keep', 'replace', 'update'] as const);
  const one: Call = (client) => client.schedule(to, data, { id, at, tags, ifExists });
  return random.of<Call>([
    one,
    one,
    one,
    (client) => client.schedule(to, data, { at, tags }),
    (client) =>
      client.scheduleMany(
        to,
        some.concat(some).map((each) => ({ id: each, data, at, tags, ifExists })),
      ),
    (client) => client.cancel(to, id),
    (client) => client.cancel(to, some),
    (client) => client.cancel(to, filter),
    (client) => client.reschedule(to, id, { at }),
    (client) => client.reschedule(to, some, { at, only: 'later' }),
    (client) => client.reschedule(to, filter, { at }),
    (client) => client.edit(to, id, { data, tags }),
    (client) => client.edit(to, filter, { data }),
    (client) => client.tags.close(to, filter.tag, { for: '1h' }),
    (client) => client.tags.open(to, filter.tag),
    (client) => client.schedules.put('s', { queue: 'one', every: '1h', data }),
    (client) => client.schedules.pause('s').catch(() => undefined),
    (client) => client.schedules.resume('s').catch(() => undefined),
    (client) => client.schedules.remove('s'),
  ]);
}

async function leftIn(client: Client) {
  const jobs: unknown[] = [];
  for (const queue of queues) {
    for (const id of IDS) {
      const job = await client.get(queue, id);
      jobs.push(job && [id, job.state, job.data, job.dueMs, job.options]);
    }
    const others = (await client.list(queue)).jobs.filter(({ id }) => !IDS.includes(id));
    jobs.push(others.map(({ data }) => (data as { v: number }).v).toSorted((one, other) => one - other));
  }
  const schedule = await client.schedules.get('s');
  return { jobs, schedule: schedule && [schedule.paused, schedule.input.data] };
}

async function leftOf(client: Client, make: (client: Client) => Promise<unknown>) {
  await make(client);
  const left = await leftIn(client);
  await client.close();
  return left;
}

const callsOf = (seed: number, count = 12): readonly Call[] => {
  const random = createRandom(seed);
  return Array.from({ length: count }, (_, nth) => randomCall(random, nth));
};
const atOnce = (calls: readonly Call[]) => (client: Client) => Promise.all(calls.map((call) => call(client)));
const awaited = (calls: readonly Call[]) => async (client: Client) => {
  for (const call of calls) await call(client);
};
const own = (redis = server.url) => createClient({ redis, namespace: space() });

describe('calls of one client take effect in the order in which they were made', () => {
  test('random calls of one turn leave what they leave when each is awaited', async () => {
    for (let seed = 1; seed <= 16; seed += 1) {
      const calls = callsOf(seed);
      const client = own();
      if (seed % 2 === 0) await client.ready();
      expect(await leftOf(client, atOnce(calls)), `seed ${seed}`).toEqual(await leftOf(own(), awaited(calls)));
    }
  });

  test('the same where replies are lost and calls are repeated', async () => {
    const line = await openLossyLine(server);
    for (let seed = 101; seed <= 106; seed += 1) {
      const calls = callsOf(seed);
      const client = own(line.url);
      await client.ready();
      line.lose({ after: seed % 7 });
      expect(await leftOf(client, atOnce(calls)), `seed ${seed}`).toEqual(await leftOf(own(), awaited(calls)));
    }
    await line.close();
  });

  test('the same in a kit, and through a middleware that takes its time', async () => {
    for (let seed = 201; seed <= 210; seed += 1) {
      const calls = callsOf(seed);
      const kit = () => createTestKit({ handlers: {}, start: new Date(dayMs - 2 * HOUR_MS) }).client;
      const middle = own();
      middle.use({
        async schedule(call, next) {
          await new Promise((resolve) => setImmediate(resolve));
          return next(call);
        },
      });
      const expected = await leftOf(own(), awaited(calls));
      expect(await leftOf(kit(), atOnce(calls)), `seed ${seed}`).toEqual(await leftOf(kit(), awaited(calls)));
      expect(await leftOf(middle, atOnce(calls)), `seed ${seed}`).toEqual(expected);
    }
  });

  test('a client without turns is noticed', async () => {
    let wrong = 0;
    for (let seed = 1; seed <= 10; seed += 1) {
      const calls = callsOf(seed);
      const settings = clientSettings({ redis: server.url, namespace: space() });
      const session = createCalls(settings);
      session.turns.take = () => new Turn();
      session.turns.lane = () => new Lane();
      const left = await leftOf(clientOver(settings, session), atOnce(calls));
      if (JSON.stringify(left) !== JSON.stringify(await leftOf(own(), awaited(calls)))) wrong += 1;
    }
    expect(wrong).toBeGreaterThan(0);
  });

  test('a middleware may call the client that it stands in', async () => {
    const [queue] = queues;
    if (!queue) throw new Error('no queue');
    const client = own();
    client.use({
      async schedule(call, next) {
        await client.cancel(
          call.queue,
          call.jobs.flatMap(({ id }) => id ?? []),
        );
        await client.cancel(call.queue, { tag: 'x' });
        return next(call);
      },
    });
    await client.schedule(queue, { v: 1 }, { id: 'a', delay: '1h' });
    expect(await client.schedule(queue, { v: 2 }, { id: 'a', delay: '2h' })).toMatchObject({ status: 'scheduled' });
    await client.close();
  });

  test('a stop waits for calls that nobody awaits, whatever they wait for', async () => {
    const [queue] = queues;
    if (!queue) throw new Error('no queue');
    const namespace = space();
    const client = createClient({ redis: server.url, namespace });
    for (let v = 0; v < 5; v += 1) {
      void client.schedule(queue, { v }, { id: 'a', at: new Date(dayMs + v), ifExists: 'replace' });
      void client.cancel(queue, { tag: 'x' });
    }
    await client.close();
    const other = createClient({ redis: server.url, namespace });
    expect(await other.get(queue, 'a')).toMatchObject({ data: { v: 4 }, dueMs: dayMs + 4 });
    await other.close();
  });
});
