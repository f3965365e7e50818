/** The producer of the test kit finds jobs, and changes all that a filter means, as one over Redis does. */
import { describe, expect, test } from 'vitest';
import { settingsOf } from '../../src/client/calls/settings.ts';
import { clientOver, type JobsClient } from '../../src/client/client.ts';
import { type ChangedJobs, onFilter } from '../../src/client/jobs/by-filter.ts';
import { cancelling, foundToCancel } from '../../src/client/jobs/cancel.ts';
import { editing } from '../../src/client/jobs/edit.ts';
import { type RescheduleTarget, rescheduling } from '../../src/client/jobs/reschedule.ts';
import { parseFilter } from '../../src/client/query/filter.ts';
import { createCalls } from '../../src/client/session.ts';
import { defineQueue, type HandlerContext, type JobFilter, type Queue } from '../../src/index.ts';
import { createTestKit } from '../../src/testing/index.ts';
import { Ledger } from '../../src/testing/ledger.ts';
import { createMovers, createWorld } from '../../src/testing/services.ts';
import { VirtualTime } from '../../src/testing/time.ts';

const start = '2026-03-01T00:00:00Z';
const wide = defineQueue<{ n: number }>('wide', { partitions: 4 });

/** In a queue that nobody serves: one job is ready, the others are scheduled. */
async function waiting(queue: Queue<{ n: number }> = defineQueue('mail')) {
  const kit = createTestKit({ start, handlers: { other: () => undefined } });
  const { client: producer } = kit;
  await producer.schedule(queue, { n: 0 }, { id: 'now', tags: ['t'] });
  await kit.advance('1s');
  await producer.schedule(
    queue,
    { n: 1 },
    { id: 'second', at: '2026-03-03T00:00:00Z', tags: ['t', 'u'], name: 'digest' },
  );
  await producer.schedule(queue, { n: 2 }, { id: 'first', at: '2026-03-02T00:00:00Z', tags: ['t'] });
  await producer.schedule(queue, { n: 3 }, { id: 'third', at: '2026-03-04T00:00:00Z', name: 'digest' });
  await producer.schedule(queue, { n: 4 }, { id: 'gone', delay: '1h', tags: ['t'] });
  await producer.cancel(queue, 'gone');
  const idsOf = async (filter: JobFilter) => (await producer.list(queue, filter)).jobs.map(({ id }) => id);
  return { kit, producer, queue, idsOf };
}

test('groups of the kit are those of jobs that are due, where the queue is gated', async () => {
  const { kit, producer, queue } = await waiting(defineQueue('mail', { perGroup: 1, partitions: 2 }));
  await producer.schedule(queue, { n: 5 }, { id: 'a', group: 'acme' });
  await producer.schedule(queue, { n: 6 }, { id: 'b', group: 'umbrella', delay: '1h' });
  await kit.advance('1s');
  const { groups } = await producer.groups.list(queue);
  expect(groups.map(({ group, running, waiting: inLine, perGroup }) => [group, running + inLine, perGroup])).toEqual([
    ['acme', 1, 1],
  ]);
  expect((await producer.groups.list(queue, { top: true })).scanned).toBe(1);
  expect(await producer.groups.get(queue, 'umbrella')).toMatchObject({ running: 0, waiting: 0, holders: [] });
  await expect(producer.groups.list('open')).rejects.toThrow('queue open is not gated');
});

test('many groups are listed in the order of their names, each once', async () => {
  const { kit, producer, queue } = await waiting(defineQueue('mail', { fair: true, partitions: 3 }));
  const names = Array.from({ length: 330 }, (_, nth) => `g${nth}`);
  await producer.scheduleMany(
    queue,
    names.map((group, nth) => ({ data: { n: nth }, id: 'a', group })),
  );
  await kit.advance('1s');
  const first = await producer.groups.list(queue, { limit: 200 });
  const second = await producer.groups.list(queue, { limit: 200, cursor: first.cursor });
  expect([...first.groups, ...second.groups].map(({ group }) => group)).toEqual(names.toSorted());
  expect({ cursor: second.cursor, scanned: first.scanned }).toEqual({ cursor: undefined, scanned: 200 });
  expect((await producer.groups.list(queue, { top: true })).scanned).toBe(330);
});

describe('a list of the kit', () => {
  test.each<[JobFilter, readonly string[]]>([
    [{}, ['first', 'second', 'third', 'now']],
    [{ state: 'scheduled' }, ['first', 'second', 'third']],
    [{ state: 'ready' }, ['now']],
    [{ state: 'running' }, []],
    [{ tag: 't' }, ['first', 'now', 'second']],
    [{ tag: 't', state: 'ready' }, ['now']],
    [{ tag: 'u' }, ['second']],
    [{ name: 'digest' }, ['second', 'third']],
    [{ name: 'default', tag: 't' }, ['first', 'now']],
    [{ idPrefix: 't' }, ['third']],
    [{ due: { from: '2026-03-03T00:00:00Z' } }, ['second', 'third']],
    [{ due: { to: '2026-03-03T00:00:00Z' } }, ['first', 'now']],
    [{ tag: 't', due: { from: '2026-03-02T00:00:00Z', to: '2026-03-03T00:00:00Z' } }, ['first']],
  ])('has for %j the jobs %j, and counts them', async (filter, ids) => {
    const { producer, queue, idsOf } = await waiting();
    expect(await idsOf(filter)).toEqual(ids);
    expect((await producer.count(queue, filter)).count).toBe(ids.length);
  });

  test('shows each job as get does, with its partition', async () => {
    const { producer, queue } = await waiting(wide);
    const { jobs } = await producer.list('wide', { state: 'scheduled' });
    expect(jobs).toHaveLength(3);
    for (const job of jobs) expect(await producer.get(queue, job.id)).toMatchObject({ ...job });
  });

  test('goes from page to page over several partitions, also while jobs come and go', async () => {
    const { producer, queue } = await waiting(wide);
    const stays = Array.from({ length: 230 }, (_, nth) => `stays-${nth}`);
    await producer.scheduleMany(
      queue,
      stays.flatMap((id) => [id, `goes-${id}`].map((one) => ({ id: one, data: { n: 0 }, delay: '5d', tags: ['s'] }))),
    );
    for (const filter of [{ state: 'scheduled' }, { tag: 's' }, { idPrefix: 'stays' }] as const) {
      const met: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await producer.list(queue, { ...filter, limit: 7, cursor });
        met.push(...page.jobs.flatMap(({ id }) => (id.startsWith('stays') ? [id] : [])));
        await producer.cancel(
          queue,
          page.jobs.flatMap(({ id }) => (id.startsWith('goes') ? [id] : [])),
        );
        cursor = page.cursor;
      } while (cursor !== undefined);
      expect(met.toSorted()).toEqual(stays.toSorted());
    }
    const ids: string[] = [];
    for await (const { id } of producer.list(queue, { tag: 's' })) ids.push(id);
    expect(ids.toSorted()).toEqual(stays.toSorted());
    expect((await producer.count(queue)).count).toBe(stays.length + 4);
  });

  test('ends while each job is put off, and while a change goes on from its cursor', async () => {
    const { kit, producer, queue } = await waiting(wide);
    let met = 0;
    for await (const { id } of producer.list(queue, { state: 'scheduled' })) {
      met += 1;
      await producer.reschedule(queue, id, { delay: '40d' });
    }
    expect(met).toBe(3);
    let [cursor, changed]: [string | undefined, number] = [undefined, 0];
    do {
      const some: ChangedJobs = await producer.reschedule(
        queue,
        { state: 'scheduled' },
        { delay: '3d' },
        { limit: 1, cursor },
      );
      [cursor, changed] = [some.cursor, changed + some.changed];
      await kit.advance('1m');
    } while (cursor !== undefined && changed < 20);
    const { jobs } = await producer.list(queue, { state: 'scheduled' });
    expect([changed, new Set(jobs.map(({ dueMs }) => dueMs)).size]).toEqual([3, 1]);
  });

  test('refuses what a producer refuses', async () => {
    const { producer, queue } = await waiting();
    const { cursor } = await producer.list(queue, { state: 'scheduled', limit: 1 });
    await expect(producer.list(queue, { state: 'ready', cursor })).rejects.toThrow(/of another filter/);
    await expect(producer.cancel(queue, {})).rejects.toThrow(/says nothing/);
  });
});

describe('a change by filter in the kit', () => {
  test('cancels those that wait, and asks those that run to stop', async () => {
    const reasons: unknown[] = [];
    const handlers = {
      q: (_: unknown, { signal }: HandlerContext) =>
        signal.addEventListener('abort', () => reasons.push(String(signal.reason))),
    };
    const kit = createTestKit({ start, handlers, lasts: () => '1h' });
    await kit.schedule('q', 1, { id: 'runs', tags: ['t'] });
    await kit.advance('1s');
    await kit.schedule('q', 1, { id: 'waits', delay: '2h', tags: ['t'] });
    const running = await kit.client.list('q', { state: 'running' });
    expect(running.jobs).toMatchObject([{ id: 'runs', owner: 'kit', attempts: 1 }]);
    expect(await kit.client.cancel('q', { tag: 't' }, { dryRun: true })).toMatchObject({
      dryRun: true,
      matched: 2,
      changed: 0,
      ids: ['runs', 'waits'],
    });
    expect(kit.jobs({ state: 'cancelled' })).toEqual([]);
    expect(await kit.client.cancel('q', { tag: 't' })).toEqual({
      dryRun: false,
      matched: 2,
      changed: 1,
      requested: 1,
      skipped: {},
      scanned: 2,
      ids: ['runs', 'waits'],
      cursor: undefined,
    });
    await kit.advance('3h');
    expect(reasons).toEqual([expect.stringContaining('cancelled')]);
    expect(kit.jobs({ state: 'cancelled' }).map(({ id }) => id)).toEqual(['runs', 'waits']);
  });

  test('reschedules and runs those that wait', async () => {
    const { kit, producer, queue, idsOf } = await waiting();
    const at = '2026-03-05T00:00:00Z';
    expect(await producer.reschedule(queue, { tag: 't' }, { at })).toMatchObject({ matched: 3, changed: 3 });
    expect(await producer.reschedule(queue, { tag: 't' }, { at })).toMatchObject({ matched: 0 });
    expect(await idsOf({ due: { from: at } })).toEqual(['first', 'now', 'second']);
    const kept = await producer.reschedule(queue, { tag: 't' }, { delay: '9d', only: 'earlier' });
    expect(kept).toMatchObject({ changed: 0, skipped: { kept: 3 } });
    expect(await producer.runNow(queue, { tag: 't' })).toMatchObject({ matched: 3, changed: 3 });
    await kit.advance('1s');
    expect(await idsOf({ state: 'ready' })).toEqual(['first', 'now', 'second']);
    const early = await producer.reschedule(queue, { state: 'ready' }, { delay: 0, only: 'earlier' });
    expect(early).toMatchObject({ changed: 0, skipped: { 'already-due': 3 } });
  });

  test('edits those that wait, as their schemas and codec say', async () => {
    const { producer, queue, idsOf } = await waiting();
    const done = await producer.edit(queue, { name: 'digest' }, { data: { n: 9 }, tags: ['v'] });
    expect(done).toMatchObject({ matched: 2, changed: 2, ids: ['second', 'third'] });
    expect(await idsOf({ tag: 'u' })).toEqual([]);
    expect(await producer.edit(queue, { tag: 'v' }, { data: { n: 9 } })).toMatchObject({
      skipped: { already: 2 },
    });
    expect(await producer.get(queue, 'third')).toMatchObject({ data: { n: 9 }, options: { tags: ['v'] } });
    const large = { data: { n: 1, pad: 'x'.repeat(50_000) } };
    expect(await producer.edit(queue, { tag: 'v' }, large)).toMatchObject({ changed: 2 });
    const early = { expiresAt: '2026-03-03T12:00:00Z' };
    expect(await producer.edit(queue, { tag: 'v' }, early)).toMatchObject({ changed: 1, skipped: { refused: 1 } });
    const coded = defineQueue('mail', { codec: { encode: (text) => `!${text}`, decode: (text) => text.slice(1) } });
    await producer.edit(coded, { idPrefix: 'f' }, { data: { n: 5 } });
    expect(await producer.get(coded, 'first')).toMatchObject({ data: '!{"n":5}', codec: 'codec' });
  });

  test('goes on from its cursor', async () => {
    const { producer, queue } = await waiting(wide);
    const list = Array.from({ length: 130 }, (_, nth) => ({
      id: `j${nth}`,
      data: { n: nth },
      delay: '1d',
      tags: ['x'],
    }));
    await producer.scheduleMany(queue, list);
    const told: number[] = [];
    const some = await producer.cancel(queue, { tag: 'x' }, { limit: 30 });
    expect(some).toMatchObject({ matched: 30, changed: 30, cursor: expect.any(String) });
    const onProgress = ({ matched }: { readonly matched: number }) => told.push(matched);
    const rest = await producer.cancel(queue, { tag: 'x' }, { cursor: some.cursor, onProgress });
    expect(rest).toMatchObject({ matched: 100, changed: 100, cursor: undefined });
    expect(told.at(-1)).toBe(100);
    expect((await producer.count(queue, { tag: 'x' })).count).toBe(0);
  });

  const changes = {
    'another due time': (p: JobsClient) => p.reschedule('mail', 'b', { delay: '4h' }),
    'other tags': (p: JobsClient) => p.edit('mail', 'b', { tags: ['paid'] }),
    'other data': (p: JobsClient) => p.edit('mail', 'b', { data: 'new' }),
    'its end': (p: JobsClient) => p.cancel('mail', 'b'),
    'its turn': (p: JobsClient, time: VirtualTime) => p.runNow('mail', 'b').then(() => time.advanceTo(time.nowMs + 1)),
  };
  test.each(Object.entries(changes))('skips and counts a job that got %s after it was read', async (_, change) => {
    for (const verb of ['cancel', 'reschedule', 'edit', 'runNow'] as const) {
      const { time, producer, finding } = await bare();
      const list = [...'abc'].map((id) => ({ id, data: id, delay: '1h', tags: ['t'] }));
      await producer.scheduleMany('mail', list);
      let calls = 0;
      const racing: typeof finding = {
        ...finding,
        async callPartitions(queue, call) {
          calls += 1;
          if (calls === 2) await change(producer, time);
          return finding.callPartitions(queue, call);
        },
      };
      const to = (due: Omit<RescheduleTarget, 'id' | 'found'>) =>
        onFilter(racing, {
          ...ASK,
          act: rescheduling(finding),
          itemOf: (found) => ({ id: found.id, found, ...due }),
        });
      const calling = {
        cancel: () => onFilter(racing, { ...ASK, act: cancelling(finding), itemOf: foundToCancel }),
        reschedule: () => to({ dueMs: time.nowMs + 9e6, mode: 'any' }),
        edit: () =>
          onFilter(racing, {
            ...ASK,
            act: editing(finding, mail),
            itemOf: (found) => ({ id: found.id, found, change: NINE }),
          }),
        runNow: () => to({ dueMs: 0, mode: 'earlier' }),
      };
      const done = await calling[verb]();
      expect(done, verb).toMatchObject({ matched: 3, changed: 2, ids: ['a', 'c'] });
      expect(Object.values(done.skipped), verb).toEqual([1]);
      expect((await producer.get(mail, 'b'))?.options?.attempts, verb).toBeUndefined();
    }
  });

  test('skips one that was changed while its data was encoded', async () => {
    const { producer, other } = await bare();
    await producer.scheduleMany(
      mail,
      ['second', 'third'].map((id, n) => ({ id, data: { n }, at: '2026-03-03T00:00:00Z' })),
    );
    const slow = defineQueue('mail', {
      codec: {
        async encode(text) {
          await other.reschedule('mail', 'third', { delay: '9d' });
          return text;
        },
        decode: (text) => text,
      },
    });
    const done = await producer.edit(slow, { due: { from: '2026-03-03T00:00:00Z' } }, { data: { n: 7 } });
    expect(done).toMatchObject({ matched: 2, changed: 1, skipped: { changed: 1 }, ids: ['second'] });
    expect(await producer.get(slow, 'third')).toMatchObject({ data: { n: 1 }, codec: undefined });
  });

  const mail = defineQueue('mail');
  const NINE = { hasData: false, options: { attempts: 9 } };
  const ASK = {
    queue: mail,
    means: 'a test',
    filter: parseFilter({ tag: 't', state: 'scheduled' }, { owner: 'a test' }),
    dryRun: false,
    limit: Number.POSITIVE_INFINITY,
    cursor: undefined,
    signal: undefined,
    onProgress: undefined,
  };

  /** The parts of a client in virtual time, where nobody serves a queue. */
  async function bare() {
    const ledger = new Ledger();
    const time: VirtualTime = new VirtualTime(Date.parse(start), () => world.tellHeads());
    const world = createWorld(time, ledger);
    world.welcome();
    await createMovers(world.redis, time).start([]);
    const settings = settingsOf({ redis: world.redis, clock: time.clock });
    const calls = createCalls(settings);
    const { finding } = await calls.connected();
    const other = clientOver(settings, createCalls(settings));
    return { time, producer: clientOver(settings, calls), other, finding };
  }
});
