/** `context.log`: what a handler says of its job, on its way to Redis, and to people who look at the job. */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { fixed } from '../../../src/job/backoff.ts';
import { memberOf } from '../../../src/job/codec.ts';
import type { JobLog } from '../../../src/job/log-lines.ts';
import { Defer, Unrecoverable } from '../../../src/job/outcome.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import type { Log } from '../../../src/kernel/log.ts';
import { readLog } from '../../../src/redis/read/log-lines.ts';
import type { Handler, HandlerContext } from '../../../src/worker/run/handlers.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { luaOf } from '../../support/model-cut.ts';
import { eventually, gate, HOUR_MS, NAMESPACE, useLine } from '../../support/worker-line.ts';

const line = useLine();

const logOf = (id = 'a') => readLog(line.redis, line.ref, { member: memberOf(id) });
const texts = (log: JobLog | undefined) => log?.lines.map(({ text }) => text);
const clientOf = () => {
  const client = createClient({ redis: { path: line.server.socketPath }, namespace: NAMESPACE });
  line.onEnd(() => client.close());
  return client;
};
const ENDS: readonly (readonly [how: string, end: (context: HandlerContext) => unknown, event: string])[] = [
  ['is done', () => undefined, 'job.completed'],
  ['commits', ({ commit, tag }) => commit('INCR', `${tag}:x`), 'job.completed'],
  ['fails', () => Promise.reject(new Error('no')), 'job.retried'],
  ['is put aside', () => Promise.reject(new Defer('1h')), 'job.deferred'],
];

describe('lines of a handler', () => {
  it.each(ENDS)('are with its job when that %s, whose end brings them', async (_, end, event) => {
    const worker = await line.worker(
      (_job, context) => {
        context.log('asked the bank', { account: 'DE02', tries: 2 });
        context.log('it said yes');
        return end(context);
      },
      { jobLease: HOUR_MS, backoff: fixed('1h') },
    );
    await line.plan({});
    await eventually(() => worker.heard.names()).toContain(event);
    expect(await logOf()).toEqual({
      leftOut: 0,
      lines: [
        { atMs: expect.any(Number), attempt: 1, text: 'asked the bank', fields: { account: 'DE02', tries: 2 } },
        { atMs: expect.any(Number), attempt: 1, text: 'it said yes', fields: undefined },
      ],
    });
  });

  it('are with its dead letter when it dies, and the client shows them in both places', async () => {
    const worker = await line.worker((_job, { log }) => {
      log('asked');
      throw new Unrecoverable('never');
    });
    await line.plan({});
    await eventually(() => worker.heard.of('job.dead').length).toBe(1);
    const client = clientOf();
    const job = await client.get(line.queue, 'a');
    expect(texts(job?.log)).toEqual(['asked']);
    const { deadLetters } = await client.deadLetters.list(line.queue);
    const letter = await client.deadLetters.get(line.queue, deadLetters[0]?.deadLetter ?? '');
    expect(texts(letter?.log)).toEqual(['asked']);
  });

  it('go with the extension of its lease while it runs', async () => {
    const door = gate();
    const worker = await line.worker(
      async (_job, { log }) => {
        log('begun');
        await door.opened;
        log('ended');
      },
      { jobLease: 600 },
    );
    await line.plan({});
    await eventually(async () => texts(await logOf())).toEqual(['begun']);
    door.open();
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    expect(texts(await logOf())).toEqual(['begun', 'ended']);
  });

  it('of all attempts follow each other, with the number of each', async () => {
    const worker = await line.worker(
      (job, { log }) => {
        log(`try ${job.attempt}`);
        if (job.attempt < 3) throw new Error('no');
      },
      { backoff: fixed(10), attempts: 3 },
    );
    await line.plan({});
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    const said = (await logOf())?.lines.map(({ attempt, text }) => [attempt, text]);
    expect(said).toEqual([
      [1, 'try 1'],
      [2, 'try 2'],
      [3, 'try 3'],
    ]);
  });

  it('are kept up to a number, also of a handler that says thousands', async () => {
    const worker = await line.worker((_job, { log }) => {
      for (let row = 1; row <= 5000; row += 1) log(`row ${row}`);
    });
    await line.plan({});
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    const log = await logOf();
    expect(log?.leftOut).toBe(4900);
    expect(texts(log)?.at(0)).toBe('row 4901');
    expect(texts(log)?.at(-1)).toBe('row 5000');
  });

  it('of a handler whose time is up say where it stopped', async () => {
    const worker = await line.worker(
      async (_job, { log, signal }) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        log('stopped at row 7');
      },
      { timeout: 100, backoff: fixed('1h') },
    );
    await line.plan({});
    await eventually(() => worker.heard.of('job.retried').length).toBe(1);
    expect(texts(await logOf())).toEqual(['stopped at row 7']);
  });

  it('after it has ended are nobody’s', async () => {
    let said: HandlerContext['log'] | undefined;
    const worker = await line.worker((_job, { log }) => {
      said = log;
    });
    await line.plan({ id: 'a' }, { id: 'b' });
    await eventually(() => worker.heard.of('job.completed').length).toBe(2);
    said?.('too late');
    await line.plan({ id: 'c' });
    await eventually(() => worker.heard.of('job.completed').length).toBe(3);
    expect(await line.redis.exists(line.ref.keys.logs)).toBe(0);
  });
});

it('a handler that says nothing calls no script more, and one that does calls one, right before the end of its job', async () => {
  const worker = await line.worker((job, { log }) => {
    if (job.id === 'talks') log('x');
  });
  // Redis lists each command that it was sent, in their order, the newest first.
  await line.redis.config('SET', 'slowlog-log-slower-than', '0');
  await line.redis.config('SET', 'slowlog-max-len', '10000');
  const endOf = async (id: string) => {
    await line.redis.call('SLOWLOG', 'RESET');
    await line.plan({ id });
    await eventually(() => worker.heard.of('job.completed').at(-1)?.id).toBe(id);
    const sent = (await line.redis.call('SLOWLOG', 'GET', '-1')) as [number, number, number, readonly string[]][];
    const called = sent.toReversed().flatMap(([, , , words]) => ENDS_AND_LINES.filter((verb) => isCallOf(verb, words)));
    return called.filter((verb, at) => verb === 'log' || called[at - 1] === 'log');
  };
  expect(await endOf('quiet')).toEqual([]);
  expect(await endOf('talks')).toEqual(['log', 'serve']);
  expect(await endOf('quiet-again')).toEqual([]);
});

const ENDS_AND_LINES = ['log', 'serve', 'complete', 'extend'];
/** By the digest of its text, or by how that begins: Redis lists no more of it. */
function isCallOf(verb: string, [, script = '']: readonly string[]): boolean {
  return script === createHash('sha1').update(luaOf(verb)).digest('hex') || script.includes(`\n-- ${verb}: `);
}

it('a reply that is lost loses no line and doubles none', async () => {
  const lossy = await openLossyLine(line.server);
  line.onEnd(lossy.close);
  const worker = await line.worker(
    (_job, { log }) => {
      log('one');
      log('two');
    },
    { redis: lossy.url },
  );
  lossy.loseReplyTo('log');
  await line.plan({});
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  expect(lossy.lost()).toBe(1);
  expect(texts(await logOf())).toEqual(['one', 'two']);
});

it.each(ENDS)(
  'are kept where Redis has forgotten their script, and another connection has brought back that of the end: it %s',
  async (_, end, event) => {
    const door = gate();
    const worker = await line.worker(
      async (job, context) => {
        if (job.id === 'b') await door.opened;
        context.log('asked the bank');
        return end(context);
      },
      { jobLease: HOUR_MS, backoff: fixed('1h') },
    );
    const over = () => worker.heard.of(event as 'job.completed').map(({ id }) => id);
    await line.plan({ id: 'a' });
    await eventually(over).toEqual(['a']);
    await line.plan({ id: 'b' });
    await eventually(() => worker.heard.of('job.started').length).toBe(2);
    await line.redis.call('SCRIPT', 'FLUSH');
    for (const verb of ['serve', 'complete', 'commit', 'retry', 'defer']) {
      await line.redis.call('SCRIPT', 'LOAD', luaOf(verb));
    }
    door.open();
    await eventually(over).toEqual(['a', 'b']);
    expect([texts(await logOf('a')), texts(await logOf('b'))]).toEqual([['asked the bank'], ['asked the bank']]);
  },
);

it('a full Redis keeps no line and holds up no job, and an event counts what was said', async () => {
  const door = gate();
  const worker = await line.worker(async (_job, { log }) => {
    await door.opened;
    log('one');
    log('two');
  });
  await line.plan({});
  await eventually(() => worker.heard.of('job.started').length).toBe(1);
  await line.redis.config('SET', 'maxmemory', '1');
  door.open();
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  await line.redis.config('SET', 'maxmemory', '0');
  expect(worker.heard.of('log.refused')).toEqual([{ queue: line.queue, lines: 2 }]);
  expect(await logOf()).toBeUndefined();
});

it('a queue that delivers at most once keeps nothing: its jobs are over already', async () => {
  const worker = await line.worker((_job, { log }) => log('x'), { delivery: 'at-most-once' });
  await line.plan({});
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  expect(await line.redis.exists(line.ref.keys.logs)).toBe(0);
});

it('a line shows nothing of what its queue hides', async () => {
  const queue = defineQueue(line.queue, { redact: ['email', 'card.number'] });
  const client = clientOf();
  const data = { email: 'ann@example.org', card: { number: 4111111111111111 } };
  await client.schedule(queue, data, { id: 'a' });
  const worker = await line.worker(((job, { log }) => {
    const { email, card } = job.data as typeof data;
    log(`mail to ${email}`, { to: [email], card: card.number, why: new Error(`no ${email}`) });
    log('more', { email: 'x', card: { number: 1, last4: '1111' } });
  }) as Handler);
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  const log = await logOf();
  expect(JSON.stringify(log)).not.toMatch(/ann@|4111/);
  expect(log?.lines.map(({ text, fields }) => [text, fields])).toEqual([
    ['mail to [redacted]', { to: ['[redacted]'], card: '[redacted]', why: 'no [redacted]' }],
    ['more', { email: '[redacted]', card: { number: '[redacted]', last4: '1111' } }],
  ]);
});

it('its methods write to the log of the worker, and keep nothing', async () => {
  const written: unknown[] = [];
  const write = (fields: object, message: string) => void written.push({ ...fields, message });
  const log: Log = { debug: write, info: write, warn: write, error: write, child: (fields) => childOf(log, fields) };
  const worker = await line.worker((_job, context) => context.log.info({ invoice: 42 }, 'asked'), { log });
  await line.plan({});
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  expect(written).toContainEqual({
    queue: line.queue,
    job: 'a',
    name: 'default',
    attempt: 1,
    invoice: 42,
    message: 'asked',
  });
  expect(await line.redis.exists(line.ref.keys.logs)).toBe(0);
});

/** As a logger of pino makes one. */
function childOf(log: Log, bound: object): Log {
  const write =
    (method: 'debug' | 'info' | 'warn' | 'error'): Log['info'] =>
    (fields, message) =>
      log[method]({ ...bound, ...fields }, message);
  const child: Log = {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: (fields) => childOf(child, fields),
  };
  return child;
}

it('what is no line is refused with what is allowed', async () => {
  const refused: string[] = [];
  const wrong: readonly (readonly unknown[])[] = [[{ invoice: 42 }, 'asked'], [], ['asked', 'more'], ['asked', [1]]];
  const worker = await line.worker((_job, { log }) => {
    for (const given of wrong) {
      try {
        Reflect.apply(log, undefined, given);
      } catch (error) {
        refused.push((error as Error).message);
      }
    }
  });
  await line.plan({});
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  expect(refused).toEqual([
    'the text of log is a value of type object; allowed: a text, and fields behind it',
    'the text of log is undefined; allowed: a text, and fields behind it',
    'the fields of log are "more"; allowed: an object of names and values',
    'the fields of log are an array; allowed: an object of names and values',
  ]);
});
