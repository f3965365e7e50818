/** What the configuration lets through, the worker and the queue that get it take as well, and the other way round. */
import { describe, expect, test } from 'vitest';
import { defineConfig } from '../../src/config/load.ts';
import { type Config, type ConfigInput, options } from '../../src/config/options.ts';
import { overridesOf } from '../../src/core/job-fields.ts';
import { silentLog } from '../../src/core/log.ts';
import { defineQueue } from '../../src/core/queue.ts';
import { queueRanges, workerRanges } from '../../src/core/ranges.ts';
import { createWorkers } from '../../src/daemon/workers.ts';
import { defineHandlers } from '../../src/worker/handlers.ts';
import { readWorkerOptions } from '../../src/worker/options.ts';

/** How a worker is told in code what the file calls `worker.<key>`. */
const IN_CODE = {
  concurrency: 'concurrency',
  jobLeaseMs: 'jobLease',
  extendEveryMs: 'extendEvery',
  beatTtlMs: 'beatTtl',
  graceMs: 'grace',
  shutdownMs: 'shutdown',
  abortGraceMs: 'abortGrace',
  recycleAtPercent: 'recycleAtPercent',
  doneWindowMs: 'doneWindow',
} as const satisfies Record<keyof typeof workerRanges, string>;

type Key = keyof typeof IN_CODE;
const keys = Object.keys(IN_CODE) as readonly Key[];

/** The other of two options that bind each other, so that only the range of the first decides. */
const besides = (key: Key, value: number): Partial<Record<Key, number>> => {
  if (key === 'jobLeaseMs') return { extendEveryMs: Math.max(10, Math.floor(value / 2)) };
  return key === 'extendEveryMs' ? { jobLeaseMs: Math.min(86_400_000, Math.max(100, 2 * value)) } : {};
};

const inFile = (key: Key, value: number): Config => {
  if (key === 'doneWindowMs') return defineConfig({ done: { windowMs: value } });
  return defineConfig({ worker: { ...besides(key, value), [key]: value } });
};
const inCode = (key: Key, value: number) => {
  const all = { ...besides(key, value), [key]: value };
  const named = Object.fromEntries(Object.entries(all).map(([name, one]) => [IN_CODE[name as Key], one]));
  return readWorkerOptions({ redis: 'redis://127.0.0.1:1', ...named });
};
const takes = (act: () => unknown): boolean => {
  try {
    act();
    return true;
  } catch (error) {
    expect(error).toMatchObject({ name: 'DuestreamError' });
    return false;
  }
};

describe.each(keys)('%s', (key) => {
  const { min, max } = workerRanges[key];

  test.each([
    [min, true],
    [max, true],
    [min - 1, false],
    [max + 1, false],
  ])('of %d is taken by both or by neither', (value, taken) => {
    expect({ file: takes(() => inFile(key, value)), code: takes(() => inCode(key, value)) }).toEqual({
      ...{ file: taken, code: taken },
    });
  });
});

test.each(keys.filter((key) => key !== 'doneWindowMs'))('the reference says the range of worker.%s', (key) => {
  const { min, max } = workerRanges[key];
  expect(options.find((option) => option.key === `worker.${key}`)?.allowed).toMatch(new RegExp(`^${min} to ${max}\\b`));
});

describe.each([
  ['partitions', 'partitions'],
  ['attempts', 'attempts'],
  ['crashes', 'crashes'],
  ['timeoutMs', 'timeout'],
] as const)('queues.*.%s', (key, name) => {
  const { min, max } = queueRanges[key];

  test.each([
    [min, true],
    [max, true],
    [min - 1, false],
    [max + 1, false],
  ])('of %d is taken by both or by neither', (value, taken) => {
    const input: ConfigInput = { queues: { q: { [key]: value } } };
    const said = [() => defineConfig(input), () => defineQueue('q', { [name]: value })];
    const job = name === 'attempts' || name === 'timeout' ? [() => overridesOf({ [name]: value }, 0)] : [];
    expect([...said, ...job].map(takes)).toEqual([...said, ...job].map(() => taken));
  });
});

test('a grace that no worker takes is refused by the configuration, with the range of the worker', () => {
  expect(() => defineConfig({ worker: { graceMs: 10 } })).toThrow(/worker\.graceMs is 10 .*allowed: 50 to 3600000 ms/);
});

test('a queue that delivers effectively once is refused by the configuration where ends are forgotten', () => {
  const queues = { money: { delivery: 'effectively-once' } } as const;
  const message = /queues\.money\.delivery is effectively-once and .* remembers nothing; allowed/;
  expect(() => defineConfig({ queues, done: { windowMs: 0 } })).toThrow(message);
  expect(() => defineConfig({ queues, done: { max: 0 } })).toThrow(message);
  expect(defineConfig({ queues }).queues.money).toEqual({ delivery: 'effectively-once' });
});

test('the lowest and the highest configuration make a worker', () => {
  const handlers = defineHandlers({ q: () => undefined });
  for (const bound of ['min', 'max'] as const) {
    const { doneWindowMs, ...worker } = Object.fromEntries(keys.map((key) => [key, workerRanges[key][bound]]));
    const extendEveryMs = Math.min(worker.extendEveryMs ?? 0, (worker.jobLeaseMs ?? 0) / 2);
    const config = defineConfig({ worker: { ...worker, extendEveryMs }, done: { windowMs: doneWindowMs ?? 0 } });
    expect(createWorkers(handlers, { config, redis: config.redis.url, log: silentLog })).toHaveLength(1);
  }
});
