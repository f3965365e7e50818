/** `inBatches`: jobs that were started are gathered, one call of a handler takes them, and each has an end of its own. */
import { describe, expect, it } from 'vitest';
import { fixed } from '../../../src/job/backoff.ts';
import { memberOf } from '../../../src/job/codec.ts';
import { Sealed } from '../../../src/job/content.ts';
import type { EntryId, Token } from '../../../src/job/job.ts';
import { Defer, Unrecoverable } from '../../../src/job/outcome.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { readLog } from '../../../src/redis/read/log-lines.ts';
import { readNew } from '../../../src/redis/scripts/ready.ts';
import { createSubscriber } from '../../../src/worker/broadcast/subscriber.ts';
import { type Batch, type BatchOptions, inBatches } from '../../../src/worker/run/batch.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { eventually, gate, HOUR_MS, QUICK, useLine } from '../../support/worker-line.ts';

const line = useLine();

type Settings = Parameters<typeof line.worker>[1];

/** A worker that notes the ids of its batches, whose jobs were in line before it began. */
async function served(
  options: BatchOptions,
  handler: (batch: Batch, nth: number) => unknown = () => undefined,
  settings: Settings = {},
) {
  const batches: (readonly string[])[] = [];
  const take = (batch: Batch) => {
    batches.push(batch.jobs.map(({ id }) => id));
    return handler(batch, batches.length);
  };
  const worker = await line.worker(inBatches(options, take), { concurrency: 1, ...settings });
  const done = () => worker.heard.of('job.completed').map(({ id }) => id);
  return { worker, batches, done };
}

/** They are ready before a worker comes, so that it is given all at once. */
async function ready(...ids: readonly string[]): Promise<void> {
  await line.plan(...ids.map((id) => ({ id })));
  await eventually(async () => (await line.picture()).ready?.length).toBe(ids.length);
}
const ids = (count: number, prefix = 'n') => line.many(count, prefix).map(({ id = '' }) => id);

describe('a batch', () => {
  it('is called when it is full, and does not wait any longer', async () => {
    await ready(...ids(20));
    const { batches, done } = await served({ size: 5, wait: '1m' });
    await eventually(() => done().length).toBe(20);
    expect(batches.map(({ length }) => length)).toEqual([5, 5, 5, 5]);
    expect(batches.flat().toSorted()).toEqual(ids(20).toSorted());
  });

  it('is called when its first job has waited, with those that have come', async () => {
    const { batches, done } = await served({ size: 100, wait: '200ms' });
    await line.plan({ id: 'a' });
    await line.plan({ id: 'b' });
    await eventually(() => done().length).toBe(2);
    expect(batches).toEqual([['a', 'b']]);
  });

  it('without a wait is what came together', async () => {
    await ready('a', 'b', 'c');
    const { batches, done } = await served({ size: 10, wait: 0 });
    await eventually(() => done().length).toBe(3);
    expect(batches).toEqual([['a', 'b', 'c']]);
  });

  it('has jobs with data, attempt and token, and what handlers have beside them', async () => {
    await line.plan({ id: 'a', name: 'import', data: { n: 1 } });
    let seen: Batch | undefined;
    const { done } = await served({ size: 2, wait: 0 }, (batch) => {
      seen = batch;
    });
    await eventually(() => done()).toEqual(['a']);
    const [job] = seen?.jobs ?? [];
    expect(job).toMatchObject({ id: 'a', name: 'import', data: { n: 1 }, attempt: 1, queue: line.queue, failures: 0 });
    expect(job?.token).toMatch(/^\d+$/);
    expect(job?.mark).toMatch(/^[0-9a-z]+ [0-9a-f]{16}$/);
    expect(seen?.tag).toBe(`{${line.queue}:0}`);
    expect(seen?.lost).toEqual([]);
  });

  it('runs beside as many others as `concurrency` says, and starts no job that would have to wait for its end', async () => {
    const doors = [gate(), gate(), gate()];
    const { batches, worker } = await served({ size: 2, wait: 0 }, (_, nth) => doors[nth - 1]?.opened, {
      concurrency: 2,
    });
    await line.plan({ id: 'a' });
    await eventually(() => batches.length).toBe(1);
    await line.plan({ id: 'b' });
    await eventually(() => batches.length).toBe(2);
    await line.plan({ id: 'c' });
    await eventually(async () => (await line.picture()).ready?.length).toBe(3);
    // Both batches have an empty place, and it is no free slot: c, which a read that waited has brought, is given back.
    const held = async () => (await line.picture()).pending?.[worker.consumer]?.toSorted();
    await eventually(held).toEqual(['j:a', 'j:b']);
    for (const door of doors) door.open();
    await eventually(() => batches.length).toBe(3);
  });

  it('by group has jobs of one group, and the others wait for their turn', async () => {
    await ready('{x}1', '{y}1', '{x}2', '1', '{y}2', '2');
    const groups: (string | undefined)[] = [];
    const { batches, done } = await served({ size: 6, wait: '50ms', by: 'group' }, ({ group }) => groups.push(group));
    await eventually(() => done().length).toBe(6);
    expect(batches.map((batch) => batch.toSorted()).toSorted()).toEqual([
      ['1', '2'],
      ['{x}1', '{x}2'],
      ['{y}1', '{y}2'],
    ]);
    expect(groups.toSorted()).toEqual(['x', 'y', undefined]);
  });
});

describe('a job of a batch', () => {
  it('fails, is put aside, dies or is done, as its handler says of each', async () => {
    await ready('a', 'b', 'c', 'd', 'e');
    const { worker, done } = await served(
      { size: 5 },
      (batch) => {
        batch.fail('a', new Error('no'));
        const [, b, c] = batch.jobs;
        if (b) batch.defer(b, '1h', 'locked');
        if (c) batch.fail(c, new Unrecoverable('never'));
        batch.fail('d', new Error('first'));
        batch.fail('d', new Error('second'));
      },
      { backoff: fixed('1h') },
    );
    await eventually(() => done()).toEqual(['e']);
    await eventually(() => worker.heard.of('job.retried').length).toBe(2);
    expect(worker.heard.of('job.retried')).toMatchObject([
      { id: 'a', error: { message: 'no', kind: 'failure' } },
      { id: 'd', error: { message: 'second' } },
    ]);
    expect(worker.heard.of('job.deferred')).toMatchObject([{ id: 'b', delayMs: 3_600_000, reason: 'locked' }]);
    expect(worker.heard.of('job.dead')).toMatchObject([{ id: 'c', reason: 'never' }]);
  });

  it('has failed when its handler throws, unless something else was said of it', async () => {
    await ready('a', 'b', 'c');
    const { worker } = await served(
      { size: 3 },
      (batch) => {
        batch.defer('b', '1h');
        throw new Error('the database is away');
      },
      { backoff: fixed('1h') },
    );
    await eventually(() => worker.heard.of('job.retried').map(({ id }) => id)).toEqual(['a', 'c']);
    expect(worker.heard.of('job.deferred')).toMatchObject([{ id: 'b' }]);
    expect(worker.heard.of('job.retried')[0]?.error).toMatchObject({ message: 'the database is away', attempt: 1 });
  });

  it('is put aside with all others when its handler throws Defer', async () => {
    await ready('a', 'b');
    const { worker } = await served({ size: 2 }, () => {
      throw new Defer('1h', 'later');
    });
    await eventually(() => worker.heard.of('job.deferred').map(({ id }) => id)).toEqual(['a', 'b']);
  });

  it('keeps a line that was said of it', async () => {
    await ready('a', 'b');
    const { done } = await served({ size: 2 }, ({ jobs }) => jobs[1]?.log('in row 7'));
    await eventually(() => done().length).toBe(2);
    const read = (id: string) => readLog(line.redis, line.ref, { member: memberOf(id) });
    expect(await read('a')).toBeUndefined();
    expect((await read('b'))?.lines).toMatchObject([{ text: 'in row 7', attempt: 1 }]);
  });

  it('can be said something of only while its handler runs, and only in its batch', async () => {
    await ready('a');
    const refused: string[] = [];
    let late: Batch | undefined;
    const { done } = await served({ size: 1 }, (batch) => {
      late = batch;
      try {
        batch.fail('other', new Error('no'));
      } catch (error) {
        refused.push((error as Error).message);
      }
    });
    await eventually(() => done()).toEqual(['a']);
    expect(refused).toEqual(['fail was given "other"; allowed: a job of this batch, or its id']);
    expect(() => late?.defer('a', '1s')).toThrow('defer was called after the handler had ended');
  });
});

/** Another start has the job. Returns what Redis had of the one before. */
async function takenOver(member: string): Promise<string> {
  const run = (await line.redis.hget(line.ref.keys.runs, member)) ?? '';
  const later = run.replace(/^\d+/, (token) => String(Number(token) + 1_000_000));
  await line.redis.hset(line.ref.keys.runs, member, later);
  return run;
}

/** The other start ends as well. */
async function endOfOther(
  member: string,
  { run, consumer }: { readonly run: string; readonly consumer: string },
): Promise<void> {
  const { ready, runs } = line.ref.keys;
  await line.redis.hset(runs, member, run);
  const [[entry = ''] = []] = await line.redis.xrange(ready, '-', '+');
  const claim = { entry: entry as EntryId, member, token: /^\d+/.exec(run)?.[0] as Token };
  expect(await line.jobs.complete(line.ref, [claim], { windowMs: 60_000, consumer })).toEqual(['ok']);
}

describe('a job that is lost to its batch', () => {
  it('aborts its own signal, and that of the batch once it was the last', async () => {
    await ready('a', 'b');
    const door = gate();
    let batch: Batch | undefined;
    const { worker } = await served({ size: 2 }, async (given) => {
      batch = given;
      await door.opened;
    });
    await eventually(() => batch?.jobs.length).toBe(2);
    expect(batch?.signal.aborted).toBe(false);
    await line.jobs.cancel(line.ref, ['j:a'], { windowMs: 60_000 });
    await eventually(() => batch?.lost.map(({ id }) => id)).toEqual(['a']);
    expect(batch?.signal.aborted).toBe(false);
    await line.jobs.cancel(line.ref, ['j:b'], { windowMs: 60_000 });
    await eventually(() => batch?.signal.aborted).toBe(true);
    expect(batch?.lost.length).toBe(2);
    door.open();
    await eventually(() => worker.heard.of('job.cancelled').map(({ id }) => id)).toEqual(['a', 'b']);
  });

  it('before the batch is called leaves it, and the others go on', async () => {
    const { batches, worker, done } = await served({ size: 3, wait: '1m' });
    await line.plan({ id: 'a' }, { id: 'b' });
    await eventually(async () => Object.values((await line.picture()).runs ?? {})).toEqual(['running', 'running']);
    await line.jobs.cancel(line.ref, ['j:a'], { windowMs: 60_000 });
    await eventually(() => worker.heard.of('job.cancelled').map(({ id }) => id)).toEqual(['a']);
    await line.plan({ id: 'c' }, { id: 'd' });
    await eventually(() => done().length).toBe(3);
    expect(batches).toEqual([['b', 'c', 'd']]);
  });

  it('is fenced when somebody else has started it, and the others are done', async () => {
    await ready('a', 'b');
    const door = gate();
    let batch: Batch | undefined;
    const { worker, done } = await served(
      { size: 2 },
      async (given) => {
        batch = given;
        await door.opened;
      },
      { jobLease: HOUR_MS },
    );
    await eventually(() => batch?.jobs.length).toBe(2);
    const run = await takenOver('j:a');
    door.open();
    await eventually(() => done()).toEqual(['b']);
    expect(worker.heard.of('job.fenced')).toMatchObject([{ id: 'a' }]);
    await endOfOther('j:a', { run, consumer: worker.consumer });
  });

  it('while its data are opened is in no batch, and its end counts nowhere', async () => {
    const [late, end] = [gate(), gate()];
    const decode = async (text: string) => {
      if (text === '"late"') await late.opened;
      return text;
    };
    const slow = { name: 'slow', encode: (text: string) => text, decode };
    const planned = (id: string, text: string) => ({ id, data: new Sealed(JSON.stringify(text), slow.name) });
    await line.plan(planned('a', 'late'), planned('b', 'soon'));
    const { worker, batches, done } = await served({ size: 2, wait: 0 }, () => end.opened, {
      jobLease: 600,
      codec: slow,
    });
    await eventually(() => batches).toEqual([['b']]);
    const run = await takenOver('j:a');
    // One call extends both leases: that of b was extended in a call that was sent after the answer for a.
    const calls = async () =>
      Number(/cmdstat_xclaim:calls=(\d+)/.exec(await line.redis.info('commandstats'))?.[1] ?? 0);
    const before = await calls();
    await eventually(calls).toBeGreaterThan(before + 1);
    late.open();
    await eventually(() => worker.heard.of('job.fenced')).toMatchObject([{ id: 'a' }]);
    end.open();
    await eventually(() => done()).toEqual(['b']);
    expect(batches).toEqual([['b']]);
    const ENDS = ['job.completed', 'job.fenced', 'job.retried', 'job.deferred', 'job.dead'];
    expect(worker.heard.names().filter((name) => ENDS.includes(name))).toEqual(['job.fenced', 'job.completed']);
    await endOfOther('j:a', { run, consumer: worker.consumer });
  });

  it('because its time is up is tried again, and its time began with the call of the batch', async () => {
    const door = gate();
    const { worker, batches } = await served(
      { size: 2, wait: '600ms' },
      async ({ signal }) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        door.open();
      },
      { timeout: 300, backoff: fixed('1h') },
    );
    await line.plan({ id: 'a' });
    await door.opened;
    await eventually(() => worker.heard.of('job.retried')).toMatchObject([{ id: 'a', error: { kind: 'timeout' } }]);
    expect(batches).toEqual([['a']]);
  });
});

it('after a crash each job of its batch runs alone', async () => {
  await line.plan({ id: 'a' }, { id: 'b' }, { id: 'c' });
  await eventually(async () => (await line.picture()).ready?.length).toBe(3);
  const [read] = await readNew(line.redis, [line.ref], { consumer: 'ghost', count: 3, blockMs: 0 });
  await line.jobs.start(line.ref, read?.deliveries ?? [], { consumer: 'ghost', bytesMax: 1e7, windowMs: 60_000 });
  const { batches, done } = await served({ size: 3, wait: '300ms' }, undefined, QUICK);
  await eventually(() => done().length).toBe(3);
  expect(batches.map(({ length }) => length)).toEqual([1, 1, 1]);
  await line.plan({ id: 'd' }, { id: 'e' });
  await eventually(() => done().length).toBe(5);
  expect(batches.at(-1)).toHaveLength(2);
});

it('a worker that stops calls the batches that wait, and takes no more', async () => {
  const { batches, worker, done } = await served({ size: 10, wait: '1m' });
  await line.plan({ id: 'a' }, { id: 'b' });
  await eventually(async () => Object.values((await line.picture()).runs ?? {})).toEqual(['running', 'running']);
  await worker.stop();
  expect(batches).toEqual([['a', 'b']]);
  expect(done()).toEqual(['a', 'b']);
});

it('a worker that must end hands the jobs of a batch back, and they use no attempt of their budget', async () => {
  const door = gate();
  const { worker } = await served({ size: 2, wait: 0 }, () => door.opened);
  await line.plan({ id: 'a' }, { id: 'b' });
  await eventually(() => worker.heard.of('job.started').length).toBe(2);
  await line.stopMovers();
  await worker.stop({ shutdown: 100 });
  door.open();
  expect((await line.picture()).scheduled).toMatchObject({ 'j:a': expect.any(Number), 'j:b': expect.any(Number) });
  const run = (await line.redis.hget(line.ref.keys.runs, 'j:a')) ?? '';
  expect(run.split(' ').slice(3, 5)).toEqual(['0', '0']);
});

it('a lost reply to the end of a batch ends each of its jobs once', async () => {
  await ready('a', 'b', 'c');
  const lossy = await openLossyLine(line.server);
  line.onEnd(lossy.close);
  const door = gate();
  const { batches, worker, done } = await served({ size: 3 }, () => door.opened, { redis: lossy.url });
  await eventually(() => worker.heard.of('job.started').length).toBe(3);
  lossy.loseReplyTo('serve');
  door.open();
  await eventually(() => done().toSorted()).toEqual(['a', 'b', 'c']);
  expect(lossy.lost()).toBe(1);
  expect(batches.length).toBe(1);
  expect(await line.count('done')).toBe(3);
});

it('middleware stands around each job, and its next settles as the job ends', async () => {
  await ready('a', 'b');
  const told: string[] = [];
  const worker = line.make(
    inBatches({ size: 2 }, (batch) => batch.fail('a', new Error('no'))),
    { concurrency: 1, backoff: fixed('1h') },
  );
  worker.use({
    async handle(job, _context, next) {
      told.push(`begin ${job.id}`);
      await next().then(
        () => told.push(`done ${job.id}`),
        (error: Error) => {
          told.push(`${error.message} ${job.id}`);
          throw error;
        },
      );
    },
  });
  await worker.start();
  await eventually(() => told.toSorted()).toEqual(['begin a', 'begin b', 'done b', 'no a']);
  await eventually(() => worker.heard.of('job.retried').length).toBe(1);
});

describe('refused is', () => {
  const take = () => undefined;
  const redis = 'redis://127.0.0.1:1';

  it.each([
    [{ size: 0 }, 'size is 0; allowed: a whole number from 1 to 1000'],
    [{ size: 1001 }, 'size is 1001; allowed: a whole number from 1 to 1000'],
    [{ wait: '2m' }, 'wait is "2m"; allowed: 0 to 60000 ms'],
    [{ by: 'queue' }, 'by of inBatches is "queue"; allowed: group, or nothing'],
    [{ sice: 5 }, 'sice is not an option of inBatches; did you mean size?'],
  ])('%j', (options, message) => {
    expect(() => inBatches(options as BatchOptions, take)).toThrow(message);
  });

  it('what is no function', () => {
    expect(() => inBatches({}, undefined as never)).toThrow('the handler of inBatches is undefined');
  });

  it.each([
    [{ delivery: 'at-most-once' as const }, {}, 'delivers at most once'],
    [{ crashes: 1 }, {}, 'has crashes: 1'],
    [{ rate: '10/s' as const }, { wait: '2s' }, 'has limits'],
    [{ perGroup: 1 }, { by: 'group' as const }, 'has perGroup: 1'],
  ])('a queue with %j', (options, batch, why) => {
    const queue = defineQueue('q', options);
    const make = () => createWorker(queue, inBatches(batch, take), { redis });
    expect(make).toThrow(why);
    expect(make).toThrow(/inBatches for queue q.*; allowed: /);
  });

  it('a subscriber', () => {
    const queue = defineQueue('q', { broadcast: true });
    expect(() => createSubscriber(queue, inBatches({}, take) as never, { redis })).toThrow('takes batches');
  });
});
