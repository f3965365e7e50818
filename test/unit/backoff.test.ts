/** How long to wait after a failure. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readBackoff } from '../../src/cli/terminal/input.ts';
import { defineConfig } from '../../src/config/load.ts';
import { newJob } from '../../src/http/api/routes/job-shapes.ts';
import {
  type Backoff,
  type BackoffInput,
  backoffMs,
  defaultBackoff,
  exponential,
  fixed,
  isBackoff,
  ladder,
  linear,
  storable,
} from '../../src/job/backoff.ts';
import { jobOptions } from '../../src/job/options.ts';
import { defineQueue } from '../../src/job/queue.ts';
import { parseSchedule } from '../../src/schedule/input.ts';

const plain = (backoff: Backoff, upTo = 6) => Array.from({ length: upTo }, (_, at) => backoffMs(backoff, at + 1, 0.5));

describe('without jitter', () => {
  test('fixed is always the same', () => {
    expect(plain(fixed('30s'), 3)).toEqual([30_000, 30_000, 30_000]);
  });

  test('linear grows by its delay, up to its maximum', () => {
    expect(plain(linear('10s', { max: '35s' }), 5)).toEqual([10_000, 20_000, 30_000, 35_000, 35_000]);
  });

  test('exponential grows by its factor, up to its maximum', () => {
    const backoff = exponential('1s', { factor: 3, max: '1m', jitter: 'none' });
    expect(plain(backoff)).toEqual([1000, 3000, 9000, 27_000, 60_000, 60_000]);
  });

  test('ladder takes its steps in order and repeats the last', () => {
    expect(plain(ladder(['1m', '10m', '1h']), 5)).toEqual([60_000, 600_000, 3_600_000, 3_600_000, 3_600_000]);
  });

  test('a function decides from the number of failures', () => {
    expect(backoffMs((failures) => `${failures * 2}s`, 3, 0.5)).toBe(6000);
    expect(() => backoffMs(() => 'later', 1, 0.5)).toThrow(/^backoff is "later"/);
  });

  test('no number of failures overflows', () => {
    expect(backoffMs(exponential('1s', { factor: 100, max: '1h', jitter: 'none' }), 1e9, 0)).toBe(3_600_000);
    expect(backoffMs(fixed('1s'), 0, 0)).toBe(1000);
  });
});

describe('jitter', () => {
  const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  const failures = fc.integer({ min: 1, max: 2000 });

  test('full spreads from nothing to the whole delay', () => {
    expect([0, 0.5, 0.999999].map((r) => backoffMs(fixed('10s', { jitter: 'full' }), 1, r))).toEqual([0, 5000, 10_000]);
  });

  test('equal spreads over the upper half', () => {
    expect([0, 0.5].map((r) => backoffMs(fixed('10s', { jitter: 'equal' }), 1, r))).toEqual([5000, 7500]);
  });

  test('never leaves its bounds, for any kind, failure and random number', () => {
    const kinds = (jitter: 'full' | 'equal' | 'none') => [
      fixed('10s', { jitter }),
      linear('10s', { max: '1m', jitter }),
      exponential('10s', { max: '1h', jitter }),
      ladder(['1m', '10m'], { jitter }),
    ];
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 3 }), failures, random, (kind, nth, r) => {
        const [full, equal, none] = (['full', 'equal', 'none'] as const).map((jitter) => {
          const backoff = kinds(jitter)[kind];
          return backoff === undefined ? Number.NaN : backoffMs(backoff, nth, r);
        });
        const whole = none ?? Number.NaN;
        expect(full).toBeGreaterThanOrEqual(0);
        expect(full).toBeLessThanOrEqual(whole);
        expect(equal).toBeGreaterThanOrEqual(whole / 2 - 1);
        expect(equal).toBeLessThanOrEqual(whole);
      }),
    );
  });

  test('is full by default for exponential, which is the default: 10 s to 1 h', () => {
    expect(defaultBackoff).toEqual({
      kind: 'exponential',
      delayMs: 10_000,
      factor: 2,
      maxMs: 3_600_000,
      jitter: 'full',
    });
  });
});

test.each([
  [() => fixed('soon'), /^fixed delay is "soon"/],
  [() => exponential('1s', { factor: 0.5 }), /^exponential factor is 0.5; allowed: a number from 1 to 100/],
  [
    () => Reflect.apply(exponential, undefined, ['1s', { factor: '2' }]),
    /^exponential factor is "2"; allowed: a number/,
  ],
  [
    () => Reflect.apply(exponential, undefined, ['1s', { maxDelay: '5s' }]),
    /^maxDelay is not an option of exponential/,
  ],
  [() => Reflect.apply(exponential, undefined, ['1s', '1h']), /^the options of exponential are "1h"/],
  [() => Reflect.apply(linear, undefined, ['1s', { maxx: '5s' }]), /^maxx is not .* of linear; did you mean max\?/],
  [
    () => Reflect.apply(fixed, undefined, ['1s', { Jitter: 'full' }]),
    /^Jitter is not .* of fixed; did you mean jitter\?/,
  ],
  [() => Reflect.apply(ladder, undefined, ['1m', {}]), /^ladder is "1m"; allowed: a list of delays/],
  [
    () => Reflect.apply(ladder, undefined, [['1m'], { max: '1h' }]),
    /^max is not an option of ladder; allowed: jitter$/,
  ],
  [() => storable(Object.assign(fixed('1s'), { maxMs: 5 })), /^maxMs is not an option of fixed/],
  [() => storable(Object.assign(exponential('1s'), { factor: '3' })), /^exponential factor is "3"/],
  [() => exponential('1s', { factor: Number.NaN }), /^exponential factor is NaN/],
  [() => linear(-1), /^linear delay is -1/],
  [() => ladder([]), /^ladder has 0 steps; allowed: 1 to 100/],
  [() => ladder(['1m', 'x']), /^ladder step 2 is "x"/],
  [() => Reflect.apply(fixed, undefined, ['1s', { jitter: 'some' }]), /^jitter is "some"; allowed: none, full, equal/],
])('nonsense is refused with what is allowed (%#)', (make, message) => {
  expect(make).toThrow(message);
});

test('the data form is recognised, and nothing else', () => {
  for (const good of [fixed(1), linear(1), exponential(1), ladder([1])]) expect(isBackoff(good)).toBe(true);
  const bad = [null, 1, {}, { kind: 'fixed', delayMs: 1 }, { kind: 'fixed', delayMs: 'x', jitter: 'none' }];
  const worse = [
    { kind: 'ladder', stepsMs: [], jitter: 'none' },
    { kind: 'sometimes', delayMs: 1, jitter: 'none' },
  ];
  for (const value of [...bad, ...worse]) expect(isBackoff(value)).toBe(false);
});

describe('every entrance takes the same backoffs', () => {
  const entrances: Readonly<Record<string, (given: BackoffInput) => unknown>> = {
    defineQueue: (given) => defineQueue('mail', { backoff: given }).backoff,
    schedule: (given) => jobOptions.backoff.check(given, 'backoff'),
    'a schedule': (given) =>
      JSON.parse(parseSchedule('s', { queue: 'q', every: '1h', backoff: given }, { sinceMs: 0 }).body).o.b,
    'the configuration': (given) => defineConfig({ queues: { mail: { backoff: given } } }).queues.mail?.backoff,
    'the HTTP API': (given) => jobOptions.backoff.check(newJob.parse({ backoff: given }).backoff, 'backoff'),
    'the command line': (given) => jobOptions.backoff.check(readBackoff(JSON.stringify(given)), 'backoff'),
  };
  const forms: readonly (readonly [BackoffInput, Backoff])[] = [
    [{ kind: 'fixed', delay: '5s' }, fixed('5s')],
    [{ kind: 'fixed', delayMs: 5000 } as never, fixed('5s')],
    [fixed('5s', { jitter: 'full' }), fixed('5s', { jitter: 'full' })],
    [{ kind: 'linear', delay: 10, max: '1m' }, linear(10, { max: '1m' })],
    [{ kind: 'exponential', delay: '1s' }, exponential('1s')],
    [exponential('1s', { factor: 3 }), exponential('1s', { factor: 3 })],
    [{ kind: 'ladder', steps: ['1m', 5], jitter: 'equal' }, ladder(['1m', 5], { jitter: 'equal' })],
  ];
  test.each(Object.entries(entrances))('%s', (_, take) => {
    for (const [given, made] of forms) expect(take(given)).toEqual(made);
    for (const wrong of [
      { kind: 'cubic' },
      { kind: 'fixed' },
      { kind: 'fixed', delay: 'soon' },
      { kind: 'fixed', delay: 1, delayMs: 1 },
      '5s',
    ]) {
      expect(() => take(wrong as never)).toThrow();
    }
  });
});
