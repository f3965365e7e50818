/** The arithmetic of `duestream admin plan`: classes of the allocator, numbers as people write them, and what follows from them. */
import { describe, expect, test } from 'vitest';
import { benchFigures } from '../../src/inspect/bench-figures.ts';
import {
  allocated,
  bytesOf,
  bytesText,
  countOf,
  type PlanInput,
  pendingBytes,
  planOf,
  recordChars,
  short,
  textBytes,
} from '../../src/inspect/sizing.ts';
import { encodeBody, encodeRecord } from '../../src/job/codec.ts';

const LOAD: PlanInput = {
  jobs: 10_000_000,
  payloadBytes: 200,
  idChars: 16,
  perSecond: 2000,
  handlerMs: 100,
  workers: 20,
  concurrency: 50,
  daemons: 2,
  producers: 4,
  dead: 1000,
  done: { windowMs: 600_000, tombstonesMax: 10_000, floorMs: 60_000 },
  readyMax: 10_000,
};
const plan = (changes: Partial<PlanInput> = {}) => planOf({ ...LOAD, ...changes });
const step = (what: string, changes: Partial<PlanInput> = {}) => plan(changes).steps.find((one) => one.what === what);

describe('memory', () => {
  test.each([
    [1, 8],
    [8, 8],
    [9, 16],
    [17, 32],
    [128, 128],
    [129, 160],
    [220, 224],
    [225, 256],
    [257, 320],
    [4097, 5120],
    [262_145, 327_680],
  ])('an allocation of %i bytes takes %i', (bytes, taken) => {
    expect(allocated(bytes)).toBe(taken);
  });

  test.each([
    [30, 32],
    [31, 48],
    [252, 256],
    [256, 320],
  ])('a text of %i characters takes %i bytes', (chars, taken) => {
    expect(textBytes(chars)).toBe(taken);
  });

  test('a record is as long as the codec makes it', () => {
    const data = 'x'.repeat(198);
    const record = encodeRecord(Date.UTC(2026, 0), encodeBody({ name: 'default', data }));
    expect(recordChars({ idChars: 16, payloadBytes: 200 })).toBe(record.length);
  });

  test('a million pending jobs of 200 bytes take 422 bytes each, as was measured', () => {
    const { zset, hash } = pendingBytes({ idChars: 16, payloadBytes: 200 }, 1_000_000);
    expect(Math.round(zset + hash)).toBe(422);
  });

  test.each([
    [10, '6,000 × ', 'the window'],
    [100, '10,000 × ', 'done.max'],
    [5000, '300,000 × ', 'a minute, below which no end goes for their number'],
    [1_000_000, '60,000,000 × ', 'that minute too'],
  ])('at %i ends per second %s are remembered: %s', (perSecond, how) => {
    expect(step('ends', { perSecond })?.how.startsWith(how)).toBe(true);
  });

  test('the sum is what its lines say', () => {
    expect(plan().memoryBytes).toBeGreaterThan(4e9);
    expect(step('memory')?.is).toBe(bytesText(plan().memoryBytes));
    expect(plan({ jobs: 5_000_000 }).memoryBytes).toBeLessThan(plan().memoryBytes * 0.6);
  });
});

describe('CPU', () => {
  const [slow, , fast] = benchFigures.run;

  test('at a rate that was measured, a job costs what was measured', () => {
    const cores = (500 * (benchFigures.scheduleMicros + (slow?.redisMicros ?? 0))) / 1e6;
    expect(plan({ perSecond: 500, jobs: 1000 }).redisCores).toBeCloseTo(cores, 6);
  });

  test('below and above all rates that were measured, it costs what the nearest one did', () => {
    const perJob = (perSecond: number) => plan({ perSecond, jobs: 1000 }).workerCores / perSecond;
    expect(perJob(1)).toBeCloseTo((slow?.workerMicros ?? 0) / 1e6, 9);
    expect(perJob(1e6)).toBeCloseTo((fast?.workerMicros ?? 0) / 1e6, 9);
  });

  test('between two rates the cost per job falls, and the whole grows', () => {
    const rates = [500, 700, 1000, 1500, 2000];
    const cores = rates.map((perSecond) => plan({ perSecond, jobs: 1000 }).redisCores);
    expect(cores).toEqual(cores.toSorted((a, b) => a - b));
    const each = cores.map((all, at) => all / (rates[at] ?? 1));
    expect(each).toEqual(each.toSorted((a, b) => b - a));
  });

  test('more than one Redis can do is said', () => {
    expect(plan({ perSecond: 100_000 }).warnings.join()).toContain('split the queues over several Redis');
    expect(plan({ perSecond: 10, workers: undefined }).warnings).toEqual([]);
  });
});

describe('workers and connections', () => {
  test('as many workers as running jobs need slots', () => {
    expect(plan({ handlerMs: 2000, workers: undefined })).toMatchObject({ workersNeeded: 115, workers: 115 });
  });

  test('fewer than are needed is said', () => {
    expect(plan({ handlerMs: 2000 }).warnings).toEqual([
      '20 workers where this load needs 115: jobs would start ever later',
    ]);
  });

  test('every worker and daemon has two connections, every producer one', () => {
    expect(plan().connections).toBe(2 * (20 + 2) + 4);
  });

  test('a partition holds at most ten million jobs', () => {
    expect(plan().partitions).toBe(1);
    expect(plan({ jobs: 10_000_001 }).partitions).toBe(2);
    expect(plan({ jobs: 1 }).partitions).toBe(1);
    expect(plan({ jobs: 1e10 }).partitions).toBe(1000);
  });
});

describe('numbers', () => {
  const range = { min: 1, max: 1e10 };
  test.each([
    ['1', 1],
    ['250k', 250_000],
    ['10M', 10_000_000],
    ['2.5M', 2_500_000],
    ['1G', 1e9],
  ])('%s is a count', (text, value) => {
    expect(countOf(text, range)).toBe(value);
  });

  test.each(['', 'ten', '1e6', '-1', '0', '1.5', '10MB', '11G', '1,000', '0x10'])('%j is none', (text) => {
    expect(countOf(text, range)).toBeUndefined();
  });

  test.each([
    ['200', 200],
    ['4KiB', 4096],
    ['1.5kB', 1500],
    ['1MiB', 1_048_576],
  ])('%s is a size', (text, value) => {
    expect(bytesOf(text, { min: 0, max: 2 ** 24 })).toBe(value);
  });

  test('and the way back', () => {
    expect([0, 900, 4096, 4.5 * 2 ** 30].map(bytesText)).toEqual(['0 B', '900 B', '4 KiB', '4.5 GiB']);
    expect([0.1874, 4.074, 437.15, 10_000].map(short)).toEqual(['0.187', '4.07', '437', '10,000']);
  });
});
