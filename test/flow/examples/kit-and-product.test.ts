/**
 * The test kit ends every job as the product does: each story is told to both, the product with a worker on a real
 * Redis, and how each start ended and what became of each job must be the same.
 */
import { describe, expect, test } from 'vitest';
import { fixed } from '../../../src/job/backoff.ts';
import { encodeRecord } from '../../../src/job/codec.ts';
import { Defer, Unrecoverable } from '../../../src/job/outcome.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { createTestKit } from '../../../src/testing/index.ts';
import { defineHandlers, type Handler } from '../../../src/worker/run/handlers.ts';
import { inKit, inKitWith, inProduct, type Story } from '../../support/kit-table.ts';
import { aborted, useLine } from '../../support/worker-line.ts';

const line = useLine();

const fails = () => () => {
  throw new Error('no');
};
/** Throws what it is given, one start after the other, and then returns. */
const throws =
  (...what: readonly unknown[]): Story['handlers'] =>
  () => {
    const left = [...what];
    return () => {
      if (left.length > 0) throw left.shift();
    };
  };
const waitsForItsSignal =
  () =>
  async (_job: unknown, { signal }: Parameters<Handler>[1]) => {
    throw new Error(await aborted(signal));
  };
const commits = (key: string): Story['handlers'] => {
  return () => (_job, context) => context.commit('INCR', key === 'tag' ? `${context.tag}:count` : key);
};

const soon = fixed(1);
const once = { delivery: 'at-most-once' } as const;
const late = (nowMs: number) => ({ at: new Date(nowMs - 60_000), maxLateness: '10s' }) as const;

const STORIES: Readonly<Record<string, Story>> = {
  'a job that is done': { handlers: () => () => 'fine' },
  'one that fails until its budget is spent': { queue: { attempts: 3, backoff: soon }, handlers: fails, starts: 3 },
  'one that fails and then is done': { queue: { backoff: soon }, handlers: throws('x', new Error('y')), starts: 3 },
  'one with a budget of its own': {
    queue: { attempts: 5, backoff: soon },
    handlers: fails,
    options: () => ({ attempts: 2 }),
    starts: 2,
  },
  'one with a backoff of its own': {
    queue: { attempts: 2 },
    handlers: fails,
    options: () => ({ backoff: soon }),
    starts: 2,
  },
  'one that throws nothing': { queue: { attempts: 1 }, handlers: throws(undefined) },
  'one that throws what cannot be looked at': {
    queue: { attempts: 1 },
    handlers: throws(
      new Proxy(
        {},
        {
          getPrototypeOf: () => {
            throw new Error('do not look');
          },
        },
      ),
    ),
  },
  'Defer, which costs no attempt': {
    queue: { attempts: 1 },
    handlers: throws(new Defer(1), new Defer(1)),
    starts: 3,
  },
  'Unrecoverable, whatever is left of the budget': { handlers: throws(new Unrecoverable('customer is gone')) },
  'the time-out of the queue': {
    queue: { timeout: 40, attempts: 2, backoff: soon },
    handlers: waitsForItsSignal,
    lasts: () => '1h',
    starts: 2,
  },
  'the time-out of the job': {
    queue: { timeout: '1h', attempts: 1 },
    handlers: waitsForItsSignal,
    options: () => ({ timeout: 40 }),
    lasts: () => '10m',
  },
  'a longer time-out of the job': {
    queue: { timeout: 1 },
    handlers: () => () => undefined,
    options: () => ({ timeout: '1h' }),
    lasts: () => '10m',
  },
  'a time-out that the handler ignores': {
    queue: { timeout: 40, attempts: 1 },
    handlers: (hold) => () => hold(),
    lasts: () => '1h',
  },
  'a time-out whose handler says Unrecoverable when it is told': {
    queue: { timeout: 40, attempts: 1 },
    handlers:
      () =>
      async (_job, { signal }) => {
        await aborted(signal);
        throw new Unrecoverable('too late to say so');
      },
    lasts: () => '1h',
  },
  'compensation of a job that died of its time-out': {
    queue: { timeout: 40, attempts: 1 },
    handlers: waitsForItsSignal,
    lasts: ({ name }) => (name === 'default' ? '1h' : 0),
    starts: 2,
    onAbandoned: ({ data }) => {
      if (data.id !== 'a' || data.data !== 7 || data.reason !== 'attempts-exhausted') throw new Error('another job');
    },
    data: 7,
  },
  'compensation that fails, and has none of its own': {
    queue: { timeout: 40, attempts: 2, backoff: soon },
    handlers: waitsForItsSignal,
    lasts: ({ name }) => (name === 'default' ? '1h' : 0),
    starts: 4,
    onAbandoned: () => {
      throw new Error('cannot take it back');
    },
  },
  'no compensation where nothing is half done': {
    queue: { attempts: 1 },
    handlers: fails,
    onAbandoned: () => undefined,
  },
  'a name without a handler': { handlers: () => ({ other: () => undefined }), options: () => ({ name: 'welcome' }) },
  'a name of its own': { handlers: () => ({ welcome: () => undefined }), options: () => ({ name: 'welcome' }) },
  'a job past its expiry, which is dropped': { handlers: fails, options: late },
  'a job past its expiry, which is dead': { handlers: fails, options: (ms) => ({ ...late(ms), onLate: 'dead' }) },
  'a job past its expiry, which runs': {
    handlers: () => () => 1,
    options: (ms) => ({ ...late(ms), onLate: 'run' }),
  },
  'an instant of expiry that is past': {
    handlers: fails,
    options: (ms) => ({ at: new Date(ms - 60_000), expiresAt: new Date(ms - 30_000) }),
  },
  'at most once, done': { queue: once, handlers: () => () => 'fine' },
  'at most once, failed and not tried again': { queue: once, handlers: fails },
  'at most once, deferred and not tried again': { queue: once, handlers: throws(new Defer('5s')) },
  'at most once, Unrecoverable': { queue: once, handlers: throws(new Unrecoverable('never')) },
  'at most once, timed out': {
    queue: { ...once, timeout: 40 },
    handlers: waitsForItsSignal,
    lasts: () => '1h',
  },
  'at most once, commit is refused': { queue: once, handlers: commits('tag') },
  'at most once, without a handler': { queue: once, handlers: () => ({ other: () => undefined }) },
  'at most once, past its expiry': { queue: once, handlers: fails, options: late },
  'effectively once, committed': { queue: { delivery: 'effectively-once' }, handlers: commits('tag') },
  'effectively once, failed and tried again': {
    queue: { delivery: 'effectively-once', backoff: soon },
    handlers: throws('x'),
    starts: 2,
  },
  'a commit elsewhere': { queue: { attempts: 1 }, handlers: commits('{elsewhere}:count') },
  'a cancel of one that runs and returns': { handlers: (hold) => () => hold(), lasts: () => '10m', cancel: true },
  'a cancel of one that runs and fails': {
    handlers: (hold) => async () => {
      await hold();
      throw new Error('stopped half-way');
    },
    lasts: () => '10m',
    cancel: true,
  },
  'a cancel of one that runs and is Unrecoverable': {
    handlers: (hold) => async () => {
      await hold();
      throw new Unrecoverable('never');
    },
    lasts: () => '10m',
    cancel: true,
  },
  'a cancel of one that runs and commits': {
    handlers: (hold) => async (_job, context) => {
      await hold();
      context.commit('INCR', `${context.tag}:count`);
    },
    lasts: () => '10m',
    cancel: true,
  },
  'a cancel of one that runs at most once, and is over': {
    queue: once,
    handlers: (hold) => () => hold(),
    lasts: () => '10m',
    cancel: true,
  },
};

describe('kit and product end alike', () => {
  test.each(Object.entries(STORIES))('%s', async (_, story) => {
    const told = await inProduct(line, { starts: 1, ...story });
    expect(await inKit(line.queue, story)).toEqual(told);
  });

  test.each([
    ['no JSON', encodeRecord(1, '{"d":')],
    ['no object', encodeRecord(1, '[1]')],
    ['attempts that are no number', encodeRecord(1, '{"o":{"a":"many"}}')],
  ])('a record that holds %s', async (_, record) => {
    const told = await inProduct(line, { handlers: fails, record });
    expect(told.jobs).toEqual(['a dead, 1: unreadable-record']);
    expect(await inKitWith(record, fails)).toEqual(told);
  });
});

test('the kit refuses what the product refuses: compensation where jobs are delivered at most once', () => {
  const queues = [defineQueue('q', { delivery: 'at-most-once' })];
  const handlers = defineHandlers({ q: () => undefined }, { queues, onAbandoned: { q: () => undefined } });
  expect(() => createTestKit({ handlers })).toThrow(/onAbandoned is set in a queue that delivers at most once/);
});

test('the definition of the worker counts, in the kit as in the product', async () => {
  const queues = [defineQueue('q', { attempts: 2, backoff: soon })];
  const kit = createTestKit({ handlers: defineHandlers({ q: fails() }, { queues }) });
  await kit.schedule(defineQueue('q', { attempts: 9 }), 1);
  await kit.advance('1h');
  expect(kit.runs.map(({ outcome }) => outcome)).toEqual(['retry', 'dead']);
});
