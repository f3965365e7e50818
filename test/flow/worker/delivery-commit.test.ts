/** `context.commit`: effects in Redis that happen in the same step in which their job is completed, or not at all. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { fixed } from '../../../src/job/backoff.ts';
import { decodeHistory, decodeTombstone } from '../../../src/job/codec.ts';
import type { Handler } from '../../../src/worker/run/handlers.ts';
import { cutCommands, openLossyLine } from '../../support/lossy-line.ts';
import { aborted, eventually, gate, QUICK, useLine } from '../../support/worker-line.ts';

const line = useLine();
const EFFECTIVELY = { delivery: 'effectively-once', backoff: fixed(20) } as const;

const key = (name: string) => `{${line.queue}:0}:${name}`;
const sum = () => line.redis.get(key('sum'));
const outcome = async (id = 'a') => decodeTombstone((await line.stored(id)) ?? '')?.outcome;
const add: Handler = (_job, { commit, tag }) => commit('INCRBY', `${tag}:sum`, 5);

describe('effects happen once', () => {
  it('with the end of their job, in the order in which they were asked for', async () => {
    const worker = await line.worker(async (_job, { commit, tag, token, attempt }) => {
      commit('RPUSH', `${tag}:log`, 'first', attempt);
      await sleep(1);
      expect(await line.redis.exists(key('log'))).toBe(0);
      commit('HSET', `${tag}:seen`, 'token', token);
      commit('rpush', `${tag}:log`, 'last', 1.5);
    }, EFFECTIVELY);
    await line.plan({});
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    expect(await line.redis.lrange(key('log'), 0, -1)).toEqual(['first', '1', 'last', '1.5']);
    expect(await line.redis.hget(key('seen'), 'token')).toBe(decodeTombstone((await line.stored('a')) ?? '')?.token);
  });

  it('for each of many jobs at a time, in any queue that acknowledges after its handlers', async () => {
    const worker = await line.worker(add, { concurrency: 20 });
    await line.plan(...line.many(300));
    await eventually(() => worker.heard.of('job.completed').length).toBe(300);
    expect(await sum()).toBe('1500');
  });

  it('although the reply to the commit was lost', async () => {
    const lossy = await openLossyLine(line.server);
    line.onEnd(lossy.close);
    const worker = await line.worker(add, { ...EFFECTIVELY, redis: lossy.url });
    lossy.loseReplyTo('commit');
    await line.plan({});
    // Redis is done before the reply is lost; the worker knows when it has asked again.
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    expect([lossy.lost(), await sum(), await line.count('done')]).toEqual([1, '5', 1]);
  });

  it('although scripts are flushed and connections killed again and again', async () => {
    await line.worker((job, context) => sleep(3).then(() => add(job, context)), { ...EFFECTIVELY, concurrency: 3 });
    await line.plan(...line.many(300));
    for (let cut = 0; cut < 10; cut += 1) {
      await sleep(100);
      await line.redis.script('FLUSH');
      await cutCommands(line.redis);
    }
    await eventually(() => line.count('done')).toBe(300);
    expect(await sum()).toBe('1500');
  });

  it('although the job is started again by a worker that thinks the first one dead: the first has none', async () => {
    const door = gate();
    const stuck = await line.worker(
      async (job, context) => {
        await door.opened;
        add(job, context);
      },
      { ...EFFECTIVELY, jobLease: 86_400_000, beatTtl: 3_600_000, concurrency: 1 },
    );
    await line.plan({});
    await eventually(() => stuck.heard.of('job.started').length).toBe(1);
    await line.redis.del(`t:v1:{control}:beat:${stuck.consumer}`);
    const other = await line.worker(add, { ...EFFECTIVELY, ...QUICK, jobLease: 300, grace: 100 });
    await eventually(() => other.heard.of('job.completed').length).toBe(1);
    door.open();
    await eventually(() => stuck.heard.of('job.fenced')).toMatchObject([{ id: 'a', verb: 'commit' }]);
    expect([await sum(), stuck.heard.of('job.completed')]).toEqual(['5', []]);
  });

  it('although the same call is made again after the end of its job', async () => {
    const worker = await line.worker(add, EFFECTIVELY);
    const dueMs = Date.now() - 1000;
    await line.plan({ dueMs });
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    await expect(line.plan({ dueMs })).rejects.toThrow('already');
    // An entry that should not be there: whoever is given it is refused the start.
    await line.redis.xadd(line.ref.keys.ready, '*', 'member', 'j:a', 'due', dueMs);
    await eventually(async () => (await line.picture()).ready).toBeUndefined();
    expect([await sum(), worker.heard.of('job.started').length]).toEqual(['5', 1]);
  });
});

describe('effects do not happen', () => {
  it.each([
    ['throws', {}, () => Promise.reject(new Error('no'))],
    ['is timed out', { timeout: 20 }, (signal: AbortSignal) => aborted(signal)],
  ])('when the handler %s after it asked for them', async (_what, settings, ending) => {
    const worker = await line.worker(
      async (job, context) => {
        add(job, context);
        if (job.attempt === 1) await ending(context.signal);
      },
      { ...EFFECTIVELY, ...settings },
    );
    await line.plan({});
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    expect([await sum(), worker.heard.of('job.retried').length]).toEqual(['5', 1]);
  });

  it('when the job was asked to stop', async () => {
    const door = gate();
    const worker = await line.worker(
      async (job, context) => {
        await door.opened;
        add(job, context);
      },
      { ...EFFECTIVELY },
    );
    await line.plan({});
    await eventually(() => worker.heard.of('job.started').length).toBe(1);
    await line.jobs.cancel(line.ref, ['j:a'], { windowMs: 60_000 });
    door.open();
    await eventually(() => worker.heard.of('job.cancelled').length).toBe(1);
    expect([await sum(), await outcome()]).toEqual([null, 'cancelled']);
  });

  it('when they are asked for after the end of the start, and whoever asks is told', async () => {
    const told: unknown[] = [];
    const worker = await line.worker(
      async (job, context) => {
        if (job.attempt > 1) return;
        await aborted(context.signal);
        try {
          add(job, context);
        } catch (error) {
          told.push(error);
        }
      },
      { ...EFFECTIVELY, timeout: 20 },
    );
    await line.plan({});
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    expect(told).toMatchObject([{ code: 'bad-input', message: 'commit was called after the handler had ended' }]);
    expect(await sum()).toBeNull();
  });
});

describe('an effect that Redis refuses', () => {
  it('makes the start a failure with a clear message, and nothing happens', async () => {
    await line.redis.rpush(key('sum'), 'a list');
    const worker = await line.worker(
      async (job, context) => {
        add(job, context);
        if (job.attempt === 2) await line.redis.del(key('sum'));
      },
      { ...EFFECTIVELY },
    );
    await line.plan({});
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    expect(worker.heard.of('job.retried')).toMatchObject([
      {
        error: { kind: 'failure', message: expect.stringMatching(/^commit was refused: WRONGTYPE Operation against/) },
      },
    ]);
    expect(await sum()).toBe('5');
  });

  it.each([
    ['NOSUCH', [], /Unknown (Redis )?command/],
    ['SUBSCRIBE', [], /not allowed from script/],
    ['INCRBY', [], /Wrong number of args/],
    ['XCLAIM', ['nobody', 'me', 0, '1-1'], /NOGROUP/],
  ])('because %s is no good ends in a dead letter after the attempts', async (command, words, message) => {
    const worker = await line.worker((_job, { commit, tag }) => commit(command, `${tag}:sum`, ...words), {
      ...EFFECTIVELY,
      attempts: 2,
    });
    await line.plan({});
    await eventually(() => worker.heard.of('job.dead')).toMatchObject([{ reason: 'attempts-exhausted' }]);
    const history = decodeHistory(((await line.deadLetters())[0]?.history ?? '').split('\n'));
    expect(history.map((one) => one.message)).toEqual([expect.stringMatching(message), expect.stringMatching(message)]);
  });

  it('after others were accepted makes a dead letter at once, because a second start would have those twice', async () => {
    await line.redis.rpush(key('list'), 'a list');
    const worker = await line.worker((job, context) => {
      add(job, context);
      context.commit('INCR', `${context.tag}:list`);
      context.commit('SET', `${context.tag}:never`, 1);
    }, EFFECTIVELY);
    await line.plan({ data: 'kept' });
    await eventually(() => worker.heard.of('job.dead')).toMatchObject([
      { id: 'a', reason: 'half-committed', error: { message: expect.stringMatching(/^command 2 WRONGTYPE/) } },
    ]);
    expect([await sum(), await line.redis.exists(key('never')), await outcome()]).toEqual(['5', 0, 'dead']);
    const [deadLetter] = await line.deadLetters();
    expect(deadLetter).toMatchObject({ member: 'j:a', reason: 'half-committed', attempts: '1' });
    expect(deadLetter?.record).toContain('"d":"kept"');
    expect(decodeHistory((deadLetter?.history ?? '').split('\n'))).toMatchObject([
      {
        attempt: 1,
        kind: 'failure',
        message: expect.stringMatching(/^command 2 of the commit was refused: WRONGTYPE/),
      },
    ]);
    expect(await line.count('dead')).toBe(1);
  });

  it('because Redis is full puts the job aside: nothing happens, and no failure is counted', async () => {
    const worker = await line.worker(
      async (job, context) => {
        if (job.attempt < 3) await line.redis.config('SET', 'maxmemory', '1');
        add(job, context);
      },
      // A failure would be the last one.
      { ...EFFECTIVELY, attempts: 1 },
    );
    await line.plan({});
    for (const times of [1, 2]) {
      await eventually(() => worker.heard.of('job.deferred').length).toBe(times);
      await line.redis.config('SET', 'maxmemory', '0');
      expect(await sum()).toBeNull();
      await line.redis.zadd(line.ref.keys.scheduled, 'XX', Date.now() - 1000, 'j:a');
    }
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    for (const { delayMs } of worker.heard.of('job.deferred')) expect(delayMs).toBeGreaterThanOrEqual(10_000);
    expect([worker.heard.of('job.retried'), worker.heard.of('job.dead')]).toEqual([[], []]);
    expect(await sum()).toBe('5');
  });
});

describe('what cannot be committed is said when it is asked for', () => {
  it.each([
    ['a key elsewhere', ['SET', 'balances', 1], /^commit's key is "balances"; allowed: a key whose first braces are/],
    ['a key of another partition', ['SET', '{other:0}:x', 1], /first braces are context.tag, here \{q\d+:0\}/],
    ['a tag that comes second', ['SET', '{x}{q:0}', 1], /first braces are context.tag/],
    ['empty braces', ['SET', '{}', 1], /first braces are context.tag/],
    ['two words as a command', ['CONFIG SET', 'tag', 1], /^commit's command is "CONFIG SET"; allowed/],
    ['an argument that is no number', ['SET', 'tag', Number.NaN], /^commit's argument is NaN; allowed/],
    ['an argument that is an object', ['SET', 'tag', {}], /^commit's argument is .*; allowed: texts and finite/],
    ['too many words', ['RPUSH', 'tag', ...Array(1001).fill('x')], /1001 arguments; allowed: 1000 after the key/],
  ])('%s', async (_what, [command, place, ...args], message) => {
    const thrown: unknown[] = [];
    const worker = await line.worker((_job, { commit, tag }) => {
      try {
        commit(String(command), place === 'tag' ? `${tag}:x` : String(place), ...(args as string[]));
      } catch (error) {
        thrown.push(error);
      }
    }, EFFECTIVELY);
    await line.plan({});
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    expect(thrown).toMatchObject([{ code: 'bad-input', message: expect.stringMatching(message) }]);
  });

  it('more words than one call carries, all commands together', async () => {
    const thrown: unknown[] = [];
    const worker = await line.worker(async (_job, { commit, tag }) => {
      const words = Array<string>(1000).fill('x');
      try {
        for (let nth = 0; nth < 4; nth += 1) commit('RPUSH', `${tag}:words`, ...words);
      } catch (error) {
        thrown.push(error);
      }
    }, EFFECTIVELY);
    await line.plan({});
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    const message =
      'commit makes 4012 words that are to be committed; allowed: 3800, all commands and jobs of one job together';
    expect(thrown).toMatchObject([{ code: 'bad-input', message }]);
    expect(await line.redis.llen(`{${line.queue}:0}:words`)).toBe(3000);
  });

  it('more than a hundred commands', async () => {
    const worker = await line.worker(
      (job, context) => {
        for (let nth = 0; nth < (job.attempt === 1 ? 101 : 100); nth += 1) add(job, context);
      },
      { ...EFFECTIVELY },
    );
    await line.plan({});
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    expect(worker.heard.of('job.retried')).toMatchObject([
      { error: { message: 'commit was called more than 100 times; allowed: 100 commands per job' } },
    ]);
    expect(await sum()).toBe('500');
  });

  it('a worker that would forget the ends of jobs', () => {
    expect(() => line.make(() => undefined, { ...EFFECTIVELY, doneWindow: 0 })).toThrow(
      'doneWindow is 0 in a queue that delivers effectively once; allowed: more than 0',
    );
  });
});
