/** `onAbandoned`: told when a job died and a crash or a timeout may have left half of its work outside. */
import { describe, expect, it } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { fixed } from '../../../src/job/backoff.ts';
import { decodeHistory, memberOf } from '../../../src/job/codec.ts';
import type { Abandoned } from '../../../src/job/compensation.ts';
import { ABANDONED, type Job } from '../../../src/job/job.ts';
import { partitionOf } from '../../../src/job/job-id.ts';
import { Unrecoverable } from '../../../src/job/outcome.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { readNew } from '../../../src/redis/scripts/ready.ts';
import type { Handler, HandlerContext } from '../../../src/worker/run/handlers.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { aborted, eventually, gate, NAMESPACE, QUICK, useLine } from '../../support/worker-line.ts';

const AT_ONCE = { backoff: fixed(1) } as const;
const hang = (_job: unknown, { signal }: HandlerContext) => aborted(signal);
const fail = () => {
  throw new Error('no');
};

describe('one partition', () => {
  const line = useLine();

  /** A handler for compensation jobs that keeps what it was given. */
  function keeper(then: Handler<Abandoned> = () => undefined) {
    const compensations: Job<Abandoned>[] = [];
    const onAbandoned: Handler<Abandoned> = (job, context) => {
      compensations.push(job);
      return then(job, context);
    };
    return { compensations, onAbandoned };
  }

  /** A worker that never existed reads what is ready and starts it, as if it died then. */
  async function crashUnder(ghost = 'ghost'): Promise<void> {
    await eventually(async () => (await line.picture()).ready?.length ?? 0).toBe(1);
    const batches = await readNew(line.redis, [line.ref], { consumer: ghost, count: 1, blockMs: 0 });
    const deliveries = batches.flatMap((batch) => batch.deliveries);
    await line.jobs.start(line.ref, deliveries, { consumer: ghost, bytesMax: 1e6, windowMs: 60_000 });
  }

  /** A job is planned and promoted, and nothing that comes of it is before `goOn`. */
  async function planAlone(): Promise<() => void> {
    await line.stopMovers();
    await line.plan({});
    const mover = line.mover();
    await mover.pass();
    await mover.pass();
    return () => mover.start();
  }

  const reasons = async () => (await line.deadLetters()).map(({ member, reason }) => `${member} ${reason}`);

  it('a job under which workers keep dying is told of, with all that is known about it', async () => {
    await line.plan({ id: 'order-7', name: 'charge', data: { amount: 5, text: 'ä "{}" |' } });
    await crashUnder();
    const { compensations, onAbandoned } = keeper();
    const ran: string[] = [];
    const worker = await line.worker((job) => ran.push(job.id), { ...QUICK, crashes: 1, onAbandoned });
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    const [deadLetter] = await line.deadLetters();
    expect(compensations).toMatchObject([
      {
        id: `{order-7}abandoned:${deadLetter?.token}`,
        name: ABANDONED,
        queue: line.queue,
        attempt: 1,
        bare: false,
        data: {
          id: 'order-7',
          name: 'charge',
          data: { amount: 5, text: 'ä "{}" |' },
          token: deadLetter?.token,
          reason: 'crashes-exhausted',
          history: [
            { kind: 'crash', attempt: 1, message: 'worker ghost was lost' },
            { kind: 'refused', attempt: 2, message: 'the worker died once under this job' },
          ],
        },
      },
    ]);
    expect(ran).toEqual([]);
    expect(await line.picture()).toMatchObject({ dead: ['j:order-7: crashes-exhausted'] });
  });

  it('a job that used up its attempts by timeouts is told of', async () => {
    const { compensations, onAbandoned } = keeper();
    await line.worker(hang, { ...AT_ONCE, timeout: 15, attempts: 2, onAbandoned });
    await line.plan({ data: 'kept' });
    await eventually(() => compensations.map(({ data }) => data)).toMatchObject([
      {
        id: 'a',
        name: 'default',
        data: 'kept',
        reason: 'attempts-exhausted',
        history: [{ kind: 'timeout' }, { kind: 'timeout' }],
      },
    ]);
  });

  it.each([
    ['fails for the last time', new Error('no'), 'attempts-exhausted'],
    ['says that it cannot succeed', new Unrecoverable('gone'), 'gone'],
  ])('a job that timed out once and then %s is told of', async (_what, thrown, reason) => {
    const { compensations, onAbandoned } = keeper();
    await line.worker(
      (job, context) => {
        if (job.attempt === 1) return aborted(context.signal);
        throw thrown;
      },
      { ...AT_ONCE, timeout: 15, attempts: 2, onAbandoned },
    );
    await line.plan({});
    await eventually(() => compensations.map(({ data }) => data.reason)).toEqual([reason]);
  });

  it('a crash counts although five failures have pushed it out of the history', async () => {
    await line.plan({});
    await crashUnder();
    const { compensations, onAbandoned } = keeper();
    await line.worker(fail, { ...QUICK, ...AT_ONCE, attempts: 7, onAbandoned });
    await eventually(() => compensations.length).toBe(1);
    expect(compensations[0]?.data.history.map(({ kind }) => kind)).toEqual(Array(5).fill('failure'));
  });

  it('a job that only failed, was refused, or has no handler is not told of', async () => {
    const { compensations, onAbandoned } = keeper();
    const worker = await line.worker({ default: fail }, { ...AT_ONCE, attempts: 2, onAbandoned });
    await line.plan({ id: 'a' }, { id: 'b', name: 'other' });
    const unreadable = { member: memberOf('c'), record: '1abc|{', dueMs: Date.now() };
    await line.jobs.schedule(line.ref, [unreadable], { mode: 'keep', horizonMs: 1e12, bytesMax: 1000 });
    await eventually(() => worker.heard.of('job.dead').length).toBe(3);
    expect(await line.picture()).toEqual(
      expect.not.objectContaining({ scheduled: expect.anything(), ready: expect.anything() }),
    );
    expect([compensations, await line.count('scheduled')]).toEqual([[], 3]);
  });

  it('a job that was asked to stop ends cancelled, and is not told of', async () => {
    const door = gate();
    const { compensations, onAbandoned } = keeper();
    const worker = await line.worker(() => door.opened.then(fail), { timeout: '1m', attempts: 1, onAbandoned });
    await line.plan({});
    await eventually(() => worker.heard.of('job.started').length).toBe(1);
    await line.jobs.cancel(line.ref, ['j:a'], { windowMs: 60_000 });
    door.open();
    await eventually(() => worker.heard.of('job.cancelled').length).toBe(1);
    expect([compensations, await reasons()]).toEqual([[], []]);
  });

  it('the reply to the death is lost: there is one dead letter and one compensation job', async () => {
    const lossy = await openLossyLine(line.server);
    line.onEnd(lossy.close);
    const { compensations, onAbandoned } = keeper();
    const worker = await line.worker(hang, { timeout: 15, attempts: 1, onAbandoned, redis: lossy.url });
    lossy.loseReplyTo('bury');
    await line.plan({});
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    expect([lossy.lost(), compensations.length, await reasons()]).toEqual([1, 1, ['j:a attempts-exhausted']]);
  });

  it('a compensation job that fails is tried again like any job, and what it takes back is done in the end', async () => {
    const { compensations, onAbandoned } = keeper(() => compensations.length < 3 && fail());
    const worker = await line.worker(hang, { ...AT_ONCE, timeout: 15, attempts: 3, onAbandoned });
    await line.plan({ attempts: 1 });
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    expect(compensations.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    expect(new Set(compensations.map(({ data }) => JSON.stringify(data))).size).toBe(1);
  });

  it('a compensation job that is told and crashes half-way is told again by another worker', async () => {
    const dying = await line.worker(hang, { ...AT_ONCE, timeout: 15, attempts: 1, onAbandoned: hang });
    await line.plan({});
    await eventually(() => dying.heard.of('job.dead').length).toBe(2);
    const { compensations, onAbandoned } = keeper();
    const [, compensationLetter] = await line.deadLetters();
    expect(compensationLetter?.member).toMatch(/^j:\{a\}abandoned:\d+$/);
    await dying.stop();
    const producer = createClient({ redis: { path: line.server.socketPath }, namespace: NAMESPACE });
    line.onEnd(() => producer.close());
    const [, deadLetter] = await line.redis.xrange(line.ref.keys.dead, '-', '+');
    await producer.deadLetters.replay(line.queue, deadLetter?.[0] ?? '');
    await crashUnder();
    const worker = await line.worker(fail, { ...QUICK, onAbandoned });
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    expect(compensations).toMatchObject([{ crashes: 1, data: { id: 'a', reason: 'attempts-exhausted' } }]);
  });

  it.each([
    ['fails', fail, 'attempts-exhausted'],
    ['is timed out', hang, 'attempts-exhausted'],
  ])(
    'a compensation job that %s for the last time is a dead letter, and has no compensation job',
    async (_what, handler, reason) => {
      const { compensations, onAbandoned } = keeper(handler);
      const worker = await line.worker(hang, { ...AT_ONCE, timeout: 15, attempts: 1, onAbandoned });
      await line.plan({});
      await eventually(() => worker.heard.of('job.dead').length).toBe(2);
      expect(compensations).toHaveLength(1);
      expect(await reasons()).toEqual([
        'j:a attempts-exhausted',
        expect.stringMatching(`^j:{a}abandoned:\\d+ ${reason}$`),
      ]);
      expect(await line.count('scheduled')).toBe(2);
    },
  );

  it('a record that may kill its reader is handed on unread, and its compensation job dies without another one', async () => {
    const dueMs = Date.now() - 1000;
    const poison = { member: memberOf('a'), record: `1${dueMs.toString(36)}|not JSON at all`, dueMs };
    await line.jobs.schedule(line.ref, [poison], { mode: 'keep', horizonMs: 1e12, bytesMax: 1000 });
    await crashUnder();
    const { compensations, onAbandoned } = keeper();
    const first = await line.worker(fail, { ...QUICK, crashes: 1, onAbandoned, concurrency: 1 });
    await eventually(() => first.heard.of('job.dead').map(({ reason }) => reason)).toEqual([
      'crashes-exhausted',
      'unreadable-record',
    ]);
    expect(compensations).toEqual([]);
    expect(await line.count('scheduled')).toBe(2);
  });

  it('a compensation job under which workers keep dying is dead as any job, and leaves no compensation job of its own', async () => {
    const first = await line.worker(hang, { timeout: 15, attempts: 1, onAbandoned: hang });
    const goOn = await planAlone();
    await eventually(() => first.heard.of('job.dead').length).toBe(1);
    await first.stop();
    goOn();
    await crashUnder();
    const { compensations, onAbandoned } = keeper();
    const worker = await line.worker(fail, { ...QUICK, crashes: 1, onAbandoned });
    await eventually(() => worker.heard.of('job.dead')).toMatchObject([{ reason: 'crashes-exhausted' }]);
    expect([compensations, await line.count('scheduled'), (await reasons()).length]).toEqual([[], 2, 2]);
  });

  it('a compensation job never reaches a handler that takes every name: it waits as a dead letter for one of its own', async () => {
    const first = await line.worker(hang, { timeout: 15, attempts: 1, onAbandoned: hang });
    const goOn = await planAlone();
    await eventually(() => first.heard.of('job.dead').length).toBe(1);
    await first.stop();
    goOn();
    const ran: string[] = [];
    const without = await line.worker((job) => ran.push(job.name));
    await eventually(() => without.heard.of('job.dead')).toMatchObject([{ reason: 'no-handler', name: ABANDONED }]);
    expect(ran).toEqual([]);
    expect(decodeHistory(((await line.deadLetters())[1]?.history ?? '').split('\n'))).toMatchObject([
      { kind: 'refused', message: `no handler for jobs named ${ABANDONED}` },
    ]);
  });

  it('a foreign job that only looks like a compensation job is a dead letter', async () => {
    const { compensations, onAbandoned } = keeper();
    const worker = await line.worker(fail, { onAbandoned });
    await line.plan({ name: ABANDONED }, { id: 'b', name: ABANDONED, data: { told: 1, body: 2 } });
    await eventually(() => worker.heard.of('job.dead').map(({ reason }) => reason)).toEqual([
      'unreadable-record',
      'unreadable-record',
    ]);
    expect(compensations).toEqual([]);
  });

  it('a bare job is told of by its id', async () => {
    const { compensations, onAbandoned } = keeper();
    await line.worker(hang, { timeout: 15, attempts: 1, onAbandoned });
    await line.redis.zadd(line.ref.keys.scheduled, 0, 'order{1');
    await eventually(() => compensations.map(({ data }) => data)).toMatchObject([{ id: 'order{1', name: 'default' }]);
  });
});

describe('four partitions', () => {
  const line = useLine({ partitions: 4 });

  it('a compensation job lives where its id belongs, and can be looked up', async () => {
    const producer = createClient({ redis: { path: line.server.socketPath }, namespace: NAMESPACE });
    line.onEnd(() => producer.close());
    const queue = defineQueue(line.queue, { partitions: 4 });
    const ids = [...Array.from({ length: 8 }, (_, nth) => `order-${nth}`), 'x'.repeat(128)];
    const compensations: { readonly id: string; readonly of: string }[] = [];
    const onAbandoned: Handler<Abandoned> = ({ id, data }) => compensations.push({ id, of: data.id });
    const worker = await line.worker(hang, { timeout: 15, attempts: 1, onAbandoned });
    await producer.scheduleMany(
      queue,
      ids.map((id) => ({ id, data: null })),
    );
    await eventually(() => worker.heard.of('job.completed').length).toBe(ids.length);
    expect(new Set(ids.map((id) => partitionOf(id, 4))).size).toBeGreaterThan(1);
    for (const { id, of } of compensations) {
      expect(await producer.get(queue, id)).toMatchObject({ state: 'done', partition: partitionOf(of, 4) });
      expect(await producer.get(queue, of)).toMatchObject({ state: 'dead', partition: partitionOf(of, 4) });
    }
    expect(compensations.map(({ of }) => of).toSorted()).toEqual(ids.toSorted());
  });

  it.each(['invoice:7', 'y'.repeat(128), '{acme}order-7'])(
    'a step late in the chain of %s has a compensation job in its partition',
    async (id) => {
      const compensations: { readonly id: string; readonly of: string }[] = [];
      const worker = await line.worker(
        async ({ data }, context) => {
          const { step } = data as { step: number };
          return step < 12 ? context.commitJob({ step: step + 1 }) : hang(undefined, context);
        },
        {
          timeout: 500,
          attempts: 1,
          delivery: 'effectively-once',
          onAbandoned: ({ id, data }) => compensations.push({ id, of: data.id }),
        },
      );
      await line.plan({ id, data: { step: 1 } });
      await eventually(() => worker.heard.of('job.completed').length).toBe(12);
      const [made] = compensations;
      expect([made?.of, made?.id].map((one) => partitionOf(one ?? '', 4))).toEqual(
        [id, id].map((one) => partitionOf(one, 4)),
      );
      expect((await line.deadLetters()).map(({ member, reason }) => [member, reason])).toEqual([
        [`j:${made?.of}`, 'attempts-exhausted'],
      ]);
    },
  );
});
