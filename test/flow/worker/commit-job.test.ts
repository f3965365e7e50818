/** `context.commitJob`: a job that comes into being in the same step in which another one is completed, or not at all. */
import { describe, expect, it } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { createTestKit } from '../../../src/testing/index.ts';
import type { Handler, HandlerContext } from '../../../src/worker/run/handlers.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { eventually, NAMESPACE, useLine } from '../../support/worker-line.ts';

const line = useLine();
const EFFECTIVELY = { delivery: 'effectively-once' } as const;
const DAY_MS = 86_400_000;

const key = (name: string) => `t:v1:{${line.queue}:0}:${name}`;
const waiting = () => line.redis.zrange(key('scheduled'), '0', '-1');
const next: Handler = (_job, { commitJob }) => commitJob({ step: 2 }, { delay: '3d', tags: ['user:42'] });

function producer() {
  const made = createClient({ redis: { path: line.server.socketPath }, namespace: NAMESPACE });
  line.onEnd(() => made.close());
  return made;
}

describe('the new job', () => {
  it('is there when the first one is done: with its data, its due time and its tags', async () => {
    const told: unknown[] = [];
    const worker = await line.worker(async (_job, { commitJob }) => {
      told.push(await commitJob({ step: 2 }, { delay: '3d', tags: ['user:42', 'vip'], name: 'second' }));
      expect(await waiting()).toEqual([]);
    }, EFFECTIVELY);
    await line.plan({});
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    const [{ id, dueMs }] = told as [{ id: string; dueMs: number }];
    expect(id).toMatch(/^\{a\}then:\d+\.00$/);
    const made = producer();
    expect(await made.get(line.queue, id)).toMatchObject({
      state: 'scheduled',
      name: 'second',
      data: { step: 2 },
      dueMs,
      options: { tags: ['user:42', 'vip'] },
    });
    expect(dueMs).toBeGreaterThan(Date.now() + 2 * DAY_MS);
    expect((await made.count(line.queue, { tag: 'user:42' })).count).toBe(1);
    expect(await line.count('scheduled')).toBe(2);
    expect((await made.cancel(line.queue, id)).status).toBe('cancelled');
  });

  it('that is due at once runs too, and may have one of its own', async () => {
    const seen: unknown[] = [];
    const worker = await line.worker(async ({ data }, { commitJob }: HandlerContext) => {
      const { step = 1 } = (data ?? {}) as { step?: number };
      seen.push(step);
      if (step < 3) await commitJob({ step: step + 1 });
    }, EFFECTIVELY);
    await line.plan({ data: { step: 1 } });
    await eventually(() => worker.heard.of('job.completed').length).toBe(3);
    expect(seen).toEqual([1, 2, 3]);
  });

  it.each(['a', 'z'.repeat(128), '{schedule:nightly}2026-03-08T01:30:00Z'])(
    'may be the 20th step of a chain that began with %s: its id is as long as that of the first one',
    async (id) => {
      const ids: string[] = [];
      const worker = await line.worker(async (job, { commitJob }: HandlerContext) => {
        const { step } = job.data as { step: number };
        if (step > 1) ids.push(job.id);
        if (step < 20) await commitJob({ step: step + 1 });
      }, EFFECTIVELY);
      await line.plan({ id, data: { step: 1 } });
      await eventually(() => worker.heard.of('job.completed').length).toBe(20);
      expect(new Set(ids.map(({ length }) => length)).size).toBe(1);
      expect([new Set(ids).size, Math.max(...ids.map(({ length }) => length)) <= 128]).toEqual([19, true]);
      const made = producer();
      expect(await made.get(line.queue, ids.at(-1) ?? '')).toMatchObject({ state: 'done' });
    },
  );

  it('is made once although the reply to the commit was lost', async () => {
    const lossy = await openLossyLine(line.server);
    line.onEnd(lossy.close);
    const worker = await line.worker(next, { ...EFFECTIVELY, redis: lossy.url });
    lossy.loseReplyTo('commit');
    await line.plan({});
    // Redis is done before the reply is lost; the worker knows when it has asked again.
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    expect([lossy.lost(), (await waiting()).length, await line.count('scheduled')]).toEqual([1, 1, 2]);
  });

  it('is made once, and its debounced job lives on with newer data, although the reply to the commit was lost', async () => {
    const lossy = await openLossyLine(line.server);
    line.onEnd(lossy.close);
    const calls = producer();
    const debounce = { wait: '20ms', max: '1s' };
    const ran: unknown[] = [];
    await line.worker(
      async ({ id, data }, { commitJob }) => {
        ran.push(data);
        if (data === 1) expect((await calls.schedule(line.queue, 2, { id, debounce })).status).toBe('behind');
        await commitJob({ after: data }, { delay: '3d' });
      },
      { ...EFFECTIVELY, redis: lossy.url },
    );
    lossy.loseReplyTo('commit');
    await calls.schedule(line.queue, 1, { id: 'index', debounce });
    await eventually(async () => (await calls.get(line.queue, 'index'))?.state).toBe('done');
    expect([lossy.lost(), ran]).toEqual([1, [1, 2]]);
    const after = await Promise.all((await waiting()).map((member) => calls.get(line.queue, member.slice(2))));
    expect(after.map((job) => job?.data)).toEqual([{ after: 1 }, { after: 2 }]);
  });

  it('is not made when the handler fails, and when another command of the commit is refused', async () => {
    const worker = await line.worker(
      async ({ id }, context) => {
        await next({ id } as never, context);
        if (id === 'a') throw new Error('no');
        context.commit('HSET', `${context.tag}:text`, 'f', 1);
      },
      { ...EFFECTIVELY, attempts: 1 },
    );
    await line.redis.set(`{${line.queue}:0}:text`, 'x');
    await line.plan({ id: 'a' }, { id: 'b' });
    await eventually(() => worker.heard.of('job.dead').length).toBe(2);
    expect(await waiting()).toEqual([]);
    expect(await line.count('scheduled')).toBe(2);
  });
});

it('is refused with the reason: an id, a bare job, an option that there is not, after the end', async () => {
  const refused: string[] = [];
  let late: HandlerContext['commitJob'] | undefined;
  const worker = await line.worker(async (_job, { commitJob }) => {
    late = commitJob;
    const all = [
      { id: 'x' },
      { ifExists: 'replace' },
      { durability: 'memory' },
      { debounce: {} },
      { dealy: '1d' },
      { priority: 'high' },
    ];
    for (const options of all) {
      await commitJob({}, options as object).catch((error: Error) => refused.push(error.message));
    }
  }, EFFECTIVELY);
  await line.plan({});
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  expect(refused).toMatchObject([
    expect.stringContaining('id is not an option of commitJob;'),
    expect.stringContaining('ifExists is not an option of commitJob;'),
    expect.stringContaining('durability is not an option of commitJob;'),
    expect.stringContaining('debounce is not an option of commitJob;'),
    expect.stringContaining('did you mean delay?'),
    expect.stringContaining(`priority "high", and queue ${line.queue} is not gated; allowed: after`),
  ]);
  await expect(late?.({})).rejects.toThrow('commitJob was called after the handler had ended');
  expect(await waiting()).toEqual([]);
});

it('is refused where one call could not carry all: 100 jobs with five tags fit, 100 with ten do not', async () => {
  const refused: string[] = [];
  const worker = await line.worker(async ({ id }, { commitJob }) => {
    const tags = Array.from({ length: id === 'few' ? 5 : 10 }, (_, nth) => `tag${nth}`);
    for (let nth = 0; nth < 100; nth += 1) {
      await commitJob({ nth }, { delay: '3d', tags }).catch((error: Error) => refused.push(error.message));
    }
  }, EFFECTIVELY);
  await line.plan({ id: 'few' });
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  expect([refused, (await waiting()).length]).toEqual([[], 100]);
  await line.plan({ id: 'many' });
  await eventually(() => worker.heard.of('job.completed').length).toBe(2);
  const [why = ''] = refused;
  expect(why).toMatch(/^commitJob makes 38\d\d words that are to be committed; allowed: 3800, all commands and jobs/);
  // Those before it are made.
  expect((await waiting()).length).toBe(200 - refused.length);
});

it('in the test kit happens with the end, too', async () => {
  const ladder = defineQueue<{ step: number }>('ladder', EFFECTIVELY);
  const kit = createTestKit({
    queues: [ladder],
    handlers: {
      ladder: async (job, { commitJob }) => {
        if (job.data.step < 3) await commitJob({ step: job.data.step + 1 }, { delay: '1d' });
        if (job.data.step === 2 && job.attempt === 1) throw new Error('once');
      },
    },
  });
  await kit.client.schedule(ladder, { step: 1 }, { id: 'a' });
  await kit.advance('7d');
  expect(kit.runs.map(({ data, outcome }) => [(data as { step: number }).step, outcome])).toEqual([
    [1, 'done'],
    [2, 'retry'],
    [2, 'done'],
    [3, 'done'],
  ]);
});
