/** Limits of what runs at once, through the library: what is promised, what waits, and what is refused. */
import { beforeEach, describe, expect, test } from 'vitest';
import { queueReport } from '../../../src/client/queues/stats.ts';
import { whyNothingMoves } from '../../../src/client/queues/why.ts';
import { Defer } from '../../../src/job/outcome.ts';
import { defineQueue, type QueueOptions } from '../../../src/job/queue.ts';
import { partitionRef } from '../../../src/redis/keys.ts';
import { setGroup, setQueue } from '../../../src/redis/scripts/queues.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { useLibrary } from '../../support/library.ts';

const NAMESPACE = 'duestream';
const library = useLibrary();
beforeEach(() => library.lead());

/** Handlers that hold their jobs until they are told to end, in several workers. */
async function hold(options: QueueOptions, { workers = 2, slots = 10 } = {}) {
  const queue = defineQueue('work', options);
  const running = new Map<string, () => void>();
  const started: string[] = [];
  let most = 0;
  for (let nth = 0; nth < workers; nth += 1) {
    const handler = async ({ id }: { readonly id: string }) => {
      started.push(id);
      await new Promise<void>((end) => {
        running.set(id, end);
        most = Math.max(most, running.size);
      });
      running.delete(id);
    };
    const worker = createWorker(queue, handler, { redis: library.server.url, concurrency: slots });
    library.onEnd(() => {
      release();
      return worker.stop();
    });
    await worker.start();
  }
  const release = (...ids: readonly string[]) => {
    for (const id of ids.length > 0 ? ids : [...running.keys()]) running.get(id)?.();
  };
  const drain = async (count: number) => {
    await expect
      .poll(() => {
        release();
        return started.length;
      })
      .toBe(count);
    release();
  };
  return { queue, running, started, release, drain, most: () => most };
}

const many = (count: number, of: (nth: number) => object = () => ({})) =>
  Array.from({ length: count }, (_, nth) => ({ data: { nth }, id: `j${String(nth).padStart(3, '0')}`, ...of(nth) }));

describe('a limit', () => {
  test('of the queue holds over two workers, and what has no place waits', async () => {
    const line = await hold({ concurrency: 3 });
    await library.client.scheduleMany(line.queue, many(20));
    await expect.poll(() => line.running.size).toBe(3);
    await expect.poll(async () => (await library.client.count('work', { state: 'waiting' })).count).toBe(17);
    const totals = await queueReport({ redis: library.redis, namespace: NAMESPACE }, 'work');
    expect(totals).toMatchObject({ scheduled: 0, waiting: 17, ready: 0, running: 3 });
    const { reasons } = await whyNothingMoves({ redis: library.redis, namespace: NAMESPACE }, 'work', 10_000);
    expect(reasons.map(({ code, text }) => [code, text.replace(/for .* ms|for \S+ s/, 'for a while')])).toEqual([
      ['waiting', expect.stringContaining('as many run as its concurrency allows')],
    ]);
    await line.drain(20);
    expect(line.most()).toBe(3);
  });

  test('per group is a lock: the jobs of a group start one after the other, in order', async () => {
    const line = await hold({ perGroup: 1 });
    await library.client.scheduleMany(
      line.queue,
      many(12, (nth) => ({ group: `g${nth % 3}` })),
    );
    await expect.poll(() => line.running.size).toBe(3);
    await expect.poll(async () => (await library.client.count('work', { state: 'waiting' })).count).toBe(9);
    const { moves, reasons } = await whyNothingMoves({ redis: library.redis, namespace: NAMESPACE }, 'work', 10_000);
    expect({ moves, reasons }).toMatchObject({ moves: true, reasons: [{ code: 'waiting', heldBy: 'group-full' }] });
    expect(reasons[0]?.advice).toMatch(
      /duestream groups ls work --top; .*: duestream queues set work --per-group <n>$/,
    );
    await line.drain(12);
    expect(line.most()).toBe(3);
    for (const group of ['g0', 'g1', 'g2']) {
      const own = line.started.filter((id) => id.startsWith(`{${group}}`));
      expect(own).toEqual(own.toSorted());
      expect(own).toHaveLength(4);
    }
  });

  test('is set, raised and taken back while jobs wait', async () => {
    const line = await hold({});
    await library.client.scheduleMany(line.queue, many(4));
    await expect.poll(() => line.running.size).toBe(4);
    await setQueue(library.redis, { namespace: NAMESPACE, queue: 'work', concurrency: 2 });
    await library.client.scheduleMany(
      line.queue,
      many(10).map((job) => ({ ...job, id: `later-${job.id}` })),
    );
    await expect.poll(async () => (await library.client.count('work', { state: 'waiting' })).count).toBe(10);
    // What ran goes on and counts: nothing starts until fewer than two run.
    line.release('j000', 'j001');
    await expect.poll(() => line.running.size).toBe(2);
    line.release('j002');
    await expect.poll(() => line.started.length).toBe(5);
    await setQueue(library.redis, { namespace: NAMESPACE, queue: 'work', concurrency: 4 });
    await expect.poll(() => line.running.size).toBe(4);
    await setQueue(library.redis, { namespace: NAMESPACE, queue: 'work', concurrency: 0 });
    await expect.poll(() => line.started.length).toBe(14);
    await line.drain(14);
  });
});

describe('a group', () => {
  const inGroups = (groups: readonly string[], each: number) =>
    groups.flatMap((group) => many(each, () => ({ group })));

  test('has limits of its own by its name, or by the beginning of it, from the moment on in which they are set', async () => {
    const groups = {
      acme: { concurrency: 3 },
      'pro-*': { concurrency: 2 },
      'pro-max*': { concurrency: false as const },
    };
    const line = await hold({ perGroup: 1, groups });
    await library.client.scheduleMany(line.queue, inGroups(['acme', 'pro-a', 'pro-max-a', 'free'], 5));
    const runningOf = (group: string) => [...line.running.keys()].filter((id) => id.startsWith(`{${group}}`)).length;
    const running = () => ['acme', 'pro-a', 'pro-max-a', 'free'].map(runningOf);
    await expect.poll(running).toEqual([3, 2, 5, 1]);
    const of = { namespace: NAMESPACE, queue: 'work' };
    expect(await setGroup(library.redis, { ...of, group: 'acme', limits: { concurrency: 4 } })).toBeDefined();
    await expect.poll(running).toEqual([4, 2, 5, 1]);
    // What its definition says cannot be unset, only overridden.
    expect(await setGroup(library.redis, { ...of, group: 'pro-*' })).toBeUndefined();
    expect(await setGroup(library.redis, { ...of, group: 'pro-*', limits: { concurrency: 1 } })).toBeDefined();
    expect(await setGroup(library.redis, { ...of, group: 'pro-*', limits: { concurrency: 1 } })).toBeUndefined();
    // Both go on, and none starts for one of them until the group has room again.
    const [first = '', second = ''] = [...line.running.keys()].filter((id) => id.startsWith('{pro-a}'));
    line.release(first);
    await expect.poll(() => line.running.has(first)).toBe(false);
    await library.client.schedule(line.queue, {}, { id: 'last', group: 'other' });
    await expect.poll(() => line.running.has('{other}last')).toBe(true);
    expect(runningOf('pro-a')).toBe(1);
    line.release(second);
    await expect.poll(() => line.started.filter((id) => id.startsWith('{pro-a}')).length).toBe(3);
    await line.drain(21);
  });

  test('waits for its own rate, while others have their turns', async () => {
    const queue = defineQueue('work', { perGroup: { rate: { limit: 1, per: '700ms' } } });
    const at = new Map<string, number>();
    const worker = createWorker(queue, ({ id }) => void at.set(id, performance.now()), { redis: library.server.url });
    library.onEnd(() => worker.stop());
    await worker.start();
    const before = performance.now();
    await library.client.scheduleMany(queue, inGroups(['a', 'b'], 3));
    await expect.poll(() => at.size).toBe(6);
    for (const group of ['a', 'b']) {
      const times = [0, 1, 2].map((nth) => (at.get(`{${group}}j00${nth}`) ?? 0) - before);
      // The first was let through after the call began, and each rate may be ahead by 50 ms.
      expect(times[1]).toBeGreaterThan(700 - 51);
      expect(times[2]).toBeGreaterThan(1400 - 51);
    }
  });

  test('with a weight of three has three turns where another has one', async () => {
    const line = await hold({ concurrency: 1, groups: { big: { weight: 3 } } }, { workers: 1 });
    await library.client.schedule(line.queue, {}, { id: 'first' });
    await expect.poll(() => line.running.size).toBe(1);
    await library.client.scheduleMany(line.queue, inGroups(['big', 'small'], 9));
    await expect.poll(async () => (await library.client.count('work', { state: 'waiting' })).count).toBe(18);
    await line.drain(19);
    const big = line.started.slice(1, 13).filter((id) => id.startsWith('{big}'));
    expect(big).toHaveLength(9);
    expect(line.started.slice(1, 5).filter((id) => id.startsWith('{big}')).length).toBeGreaterThanOrEqual(2);
  });

  test.each(['group', 'queue'] as const)(
    'is closed by a handler that puts its job aside and closes its %s',
    async (scope) => {
      const queue = defineQueue('work', { fair: true, partitions: 2 });
      const at = new Map<string, number>();
      let saidMs = 0;
      const handler = ({ id }: { readonly id: string }) => {
        if (id === '{a}refused' && saidMs === 0) {
          saidMs = performance.now();
          throw new Defer('800ms', { reason: 'it said 429', close: scope });
        }
        at.set(id, performance.now());
      };
      const worker = createWorker(queue, handler, { redis: library.server.url, concurrency: 1 });
      library.onEnd(() => worker.stop());
      await worker.start();
      await library.client.schedule(queue, {}, { id: 'refused', group: 'a' });
      await expect.poll(() => saidMs).toBeGreaterThan(0);
      await expect.poll(() => library.client.get('work', '{a}refused')).toMatchObject({ state: 'scheduled' });
      if (scope === 'queue') {
        const refs = [0, 1].map((partition) =>
          partitionRef(NAMESPACE, { queue: 'work', partition, layoutGeneration: 0 }),
        );
        const closings = () => Promise.all(refs.map(({ keys }) => library.redis.hget(keys.meta, 'closing')));
        await expect.poll(closings).toEqual(['it said 429', 'it said 429']);
      }
      await library.client.scheduleMany(queue, inGroups(['a', 'b', 'c', 'd'], 1));
      await expect.poll(() => at.size).toBe(5);
      const early = ['b', 'c', 'd'].filter((group) => (at.get(`{${group}}j000`) ?? 0) - saidMs < 800);
      expect((at.get('{a}j000') ?? 0) - saidMs).toBeGreaterThanOrEqual(800);
      if (scope === 'queue') expect(early).toEqual([]);
    },
  );
});

describe('a job in line', () => {
  test('is listed, edited, put off and cancelled like one that is scheduled', async () => {
    const line = await hold({ concurrency: 1 });
    await library.client.scheduleMany(line.queue, many(5));
    await expect.poll(async () => (await library.client.count('work', { state: 'waiting' })).count).toBe(4);
    const { jobs } = await library.client.list('work', { state: 'waiting' });
    expect(jobs.map(({ id, state }) => [id, state])).toEqual([1, 2, 3, 4].map((nth) => [`j00${nth}`, 'waiting']));
    expect(await library.client.get('work', 'j003')).toMatchObject({ state: 'waiting' });
    expect(await library.client.cancel('work', 'j001')).toMatchObject({ status: 'cancelled' });
    expect(await library.client.reschedule('work', 'j002', { delay: '1h' })).toMatchObject({ status: 'rescheduled' });
    expect(await library.client.edit('work', 'j004', { priority: 'high' })).toMatchObject({ status: 'edited' });
    await expect.poll(async () => (await library.client.count('work', { state: 'waiting' })).count).toBe(2);
    line.release();
    await expect.poll(() => line.started.length).toBe(2);
    expect(line.started[1]).toBe('j004');
    await line.drain(3);
    expect(line.started).toEqual(['j000', 'j004', 'j003']);
  });

  test('of high priority comes before those that wait for as long', async () => {
    const line = await hold({ concurrency: 1, fair: true });
    await library.client.schedule(line.queue, {}, { id: 'first' });
    await expect.poll(() => line.running.size).toBe(1);
    await library.client.scheduleMany(line.queue, many(3));
    await library.client.schedule(line.queue, {}, { id: 'urgent', priority: 'high' });
    await expect.poll(async () => (await library.client.count('work', { state: 'waiting' })).count).toBe(4);
    await line.drain(5);
    expect(line.started.slice(0, 2)).toEqual(['first', 'urgent']);
  });
});

describe('it is refused', () => {
  test.each([
    [{ group: 'acme' }, 'the job has group "acme", and queue open is not gated'],
    [{ priority: 'high' as const }, 'the job has priority "high", and queue open is not gated'],
  ])('to schedule %j where the queue is not gated', async (options, message) => {
    await expect(library.client.schedule('open', {}, options)).rejects.toThrow(message);
    await expect(library.client.scheduleMany('open', [{ data: {}, ...options }])).rejects.toThrow(message);
  });

  test('to put a schedule with a priority where the queue is not gated', async () => {
    await library.client.schedule('open', {}, { delay: '1d' });
    const hourly = { queue: 'open', every: '1h' } as const;
    await expect(library.client.schedules.put('hourly', { ...hourly, priority: 'high' })).rejects.toThrow(
      'schedule hourly: the job has priority "high", and queue open is not gated',
    );
    expect(await library.client.schedules.get('hourly')).toBeUndefined();
    expect(await library.client.schedules.put('hourly', { ...hourly, priority: 'normal' })).toMatchObject({
      status: 'created',
    });
  });

  test.each([
    [{ rate: '0/s' as const }, 'rate is "0/s"; allowed: a text such as 10/s'],
    [{ rate: { limit: 1, per: '2d' } }, 'from 1/d to 100000/s'],
    [{ concurrency: 0 }, 'concurrency is 0; allowed: a whole number from 1'],
    [{ perGroup: { rate: '1/s', most: 3 } as never }, 'most'],
    [{ perGroup: { rate: '0/s' as const } }, 'rate of perGroup is "0/s"'],
    [{ groups: { acme: { weight: 101 } } }, 'weight of group acme is 101; allowed: a whole number from 1 to 100'],
    [{ groups: { 'a b': {} } }, 'group is "a b"'],
    [{ groups: [] as never }, 'groups is'],
    [{ groups: { '*': { weight: 2 } } }, 'group is'],
    [{ perGroup: 1001 }, 'perGroup is 1001; allowed: a whole number from 1 to 1000'],
    [{ fair: false as never }, 'fair is a value of type boolean; allowed: true'],
    [{ concurrency: 5, partitions: 6 }, 'cannot be divided among its 6 partitions'],
    [{ perGroup: 1, delivery: 'at-most-once' as const }, 'allowed for it: rate and fair'],
    [{ fair: true as const, broadcast: true }, 'is a broadcast queue'],
  ])('to define a queue with %j', (options, message) => {
    expect(() => defineQueue('q', options)).toThrow(message);
  });

  test.each(['', 'a b', 'a{b', 'x'.repeat(65), 'schedule:x'])('to name a group %j', async (group) => {
    await expect(library.client.schedule(defineQueue('work', { fair: true }), {}, { group })).rejects.toThrow(
      'group is',
    );
  });

  test('to close a group without a time, and to give it limits that are none', async () => {
    const groups = library.client.groups as unknown as Record<
      'set' | 'close',
      (...args: readonly unknown[]) => Promise<unknown>
    >;
    await expect(groups.close('work', 'acme')).rejects.toThrow('allowed: { for, reason, by }');
    await expect(groups.close('work', 'acme', {})).rejects.toThrow('for');
    await expect(groups.set('work', 'acme')).rejects.toThrow('allowed: { concurrency, rate, maxPending, weight }');
  });

  test('to give an id of one group and another group', async () => {
    const call = library.client.schedule(defineQueue('work', { fair: true }), {}, { id: '{one}a', group: 'other' });
    await expect(call).rejects.toThrow('id is "{one}a", of group "one", and group is "other"');
  });
});

test('an id with its group is that of the same job', async () => {
  const queue = defineQueue('work', { fair: true });
  const first = await library.client.schedule(queue, { n: 1 }, { id: 'a', group: 'acme', at: '2031-01-01T00:00:00Z' });
  expect(first).toMatchObject({ id: '{acme}a', status: 'scheduled' });
  const again = { id: first.id, group: 'acme', at: '2031-01-01T00:00:00Z' };
  expect(await library.client.schedule(queue, { n: 1 }, again)).toMatchObject({ status: 'already' });
  const { group: _, ...bare } = again;
  expect(await library.client.schedule(queue, { n: 1 }, bare)).toMatchObject({ status: 'already' });
});
