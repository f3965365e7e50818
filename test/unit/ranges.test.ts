/** What the configuration lets through, the worker and the queue that get it take as well, and the other way round. */
import { describe, expect, test } from 'vitest';
import { settingsOf } from '../../src/client/calls/settings.ts';
import { defineConfig } from '../../src/config/load.ts';
import { type Config, type ConfigInput, options } from '../../src/config/options.ts';
import { createModuleWorker } from '../../src/daemon/daemon.ts';
import { overridesOf } from '../../src/job/fields.ts';
import { defineQueue } from '../../src/job/queue.ts';
import { type WorkerOptionName, workerOptions } from '../../src/job/worker-options.ts';
import { dataBytesMaxRange, queueRanges } from '../../src/kernel/checks.ts';
import { durationText } from '../../src/kernel/duration.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { readWorkerOptions } from '../../src/worker/options.ts';
import { defineHandlers } from '../../src/worker/run/handlers.ts';

type Key = WorkerOptionName;
const keys = Object.keys(workerOptions) as readonly Key[];

const inFile = (key: Key, value: number): Config => {
  if (key === 'doneWindow') return defineConfig({ done: { window: value } });
  return defineConfig({ worker: { [key]: value } });
};
const inCode = (key: Key, value: number) => readWorkerOptions({ redis: 'redis://127.0.0.1:1', [key]: value });
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
  const { min, max } = workerOptions[key];

  test.each([
    [min, true],
    [max, true],
    [min - 1, false],
    [max + 1, false],
  ])('of %d is taken by both or by neither', (value, taken) => {
    expect({ file: takes(() => inFile(key, value)), code: takes(() => inCode(key, value)) }).toEqual({
      file: taken,
      code: taken,
    });
  });
});

test.each(keys.filter((key) => key !== 'doneWindow'))('the reference says the range of worker.%s', (key) => {
  const { kind, min, max } = workerOptions[key];
  const text = kind === 'duration' ? durationText : String;
  expect(options.find((option) => option.key === `worker.${key}`)?.allowed).toBe(`${text(min)} to ${text(max)}`);
});

describe.each([
  ['partitions', queueRanges.partitions],
  ['attempts', queueRanges.attempts],
  ['crashes', queueRanges.crashes],
  ['timeout', queueRanges.timeoutMs],
] as const)('queues.*.%s', (name, { min, max }) => {
  test.each([
    [min, true],
    [max, true],
    [min - 1, false],
    [max + 1, false],
  ])('of %d is taken by both or by neither', (value, taken) => {
    const input: ConfigInput = { queues: { q: { [name]: value } } };
    const said = [() => defineConfig(input), () => defineQueue('q', { [name]: value })];
    const job = name === 'attempts' || name === 'timeout' ? [() => overridesOf({ [name]: value }, 0)] : [];
    expect([...said, ...job].map(takes)).toEqual([...said, ...job].map(() => taken));
  });
});

test('a grace that no worker takes is refused by the configuration, with the range of the worker', () => {
  expect(() => defineConfig({ worker: { grace: 10 } })).toThrow(/worker\.grace is 10 .*allowed: 50ms to 1h/);
});

test('a queue that delivers effectively once is refused by the configuration where ends are forgotten', () => {
  const queues = { money: { delivery: 'effectively-once' } } as const;
  const message = /queues\.money\.delivery is effectively-once and .* remembers nothing; allowed/;
  expect(() => defineConfig({ queues, done: { window: 0 } })).toThrow(message);
  expect(() => defineConfig({ queues, done: { max: 0 } })).toThrow(message);
  expect(defineConfig({ queues }).queues.money).toEqual({ delivery: 'effectively-once' });
});

test('the lowest and the highest configuration make a worker', () => {
  const handlers = defineHandlers({ q: () => undefined });
  for (const bound of ['min', 'max'] as const) {
    const { doneWindow, ...worker } = Object.fromEntries(keys.map((key) => [key, workerOptions[key][bound]]));
    const config = defineConfig({ worker, done: { window: doneWindow ?? 0 } });
    const worked = createModuleWorker(handlers, { config, redis: config.redis.url, log: silentLog });
    expect(worked.queues).toEqual(['q']);
  }
});

test('a queue of a handler module has every setting of its definition where the file says nothing of it', () => {
  const handlers = defineHandlers({ q: () => undefined }, { queues: [defineQueue('q', { concurrency: 1 })] });
  const workerOf = (q: NonNullable<ConfigInput['queues']>[string]) => {
    const config = defineConfig({ queues: { q } });
    return createModuleWorker(handlers, { config, redis: config.redis.url, log: silentLog });
  };
  expect(workerOf({ maxPending: 5 }).queues).toEqual(['q']);
  // The limit of the definition counts beside what the file says.
  expect(() => workerOf({ partitions: 2 })).toThrow(
    /concurrency 1 of queue q cannot be divided among its 2 partitions/,
  );
  expect(workerOf({ partitions: 2, concurrency: false }).queues).toEqual(['q']);
});

test('dataBytesMax has one range and one default, for the configuration and for a producer', () => {
  const { min, max, default: otherwise } = dataBytesMaxRange;
  const redis = 'redis://127.0.0.1:1';
  expect(defineConfig({}).limits.dataBytesMax).toBe(otherwise);
  expect(settingsOf({ redis }).dataBytesMax).toBe(otherwise);
  for (const dataBytesMax of [min - 1, min, max, max + 1]) {
    const isAllowed = dataBytesMax >= min && dataBytesMax <= max;
    expect(takes(() => defineConfig({ limits: { dataBytesMax } }))).toBe(isAllowed);
    expect(takes(() => settingsOf({ redis, dataBytesMax }))).toBe(isAllowed);
  }
});
