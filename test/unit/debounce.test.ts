/** What of a debounce call is refused before anything is sent, and which order a call has. */
import { describe, expect, test } from 'vitest';
import { Orders, Overtaken } from '../../src/client/calls/orders.ts';
import { newerPlan, planJob } from '../../src/client/calls/plan.ts';
import type { ScheduleOptions } from '../../src/job/options.ts';

const DAY = 86_400_000;
const nowMs = Date.UTC(2026, 2, 1);
const limits = { horizonMs: 3650 * DAY, dataBytesMax: 1000, nowMs };
const plan = (options: object, more = {}) => planJob({}, options as ScheduleOptions, { ...limits, ...more });
const base = (number: number) => number.toString(36);

describe('a call', () => {
  test.each([
    ['a wait and a longest one', { debounce: { wait: '1s', max: '5s' } }, 1000, 4000],
    ['a wait alone, which is up to the horizon', { debounce: { wait: 1000 } }, 1000, limits.horizonMs - 1000],
    ['a longest wait that is the wait', { debounce: { wait: '1m', max: '1m' } }, 60_000, 0],
    ['a part of a millisecond, which is a whole one', { debounce: { wait: 1.5, max: 1.5 } }, 2, 0],
  ])('with %s says when it is due, and its order', (_, options, wait, rest) => {
    const { record, dueMs, mode } = plan({ id: 'x', ...options });
    expect([dueMs, mode]).toEqual([nowMs + wait, 'debounce']);
    expect(record).toBe(`1${base(dueMs)};d=${base(nowMs)}.${base(rest)}|{"d":{}}`);
  });

  test('has the mark of its record without headers, also with another order', () => {
    const { record } = plan({ id: 'x', debounce: { wait: '1m', max: '1m' }, headers: { a: 'b' }, tags: ['t'] });
    expect(record).toMatch(/^1\w+;d=\w+\.0;t=t;h=a=b;m=\w+\.[0-9a-f]{16}\|/);
    const later = newerPlan({ record }, nowMs + 7).record;
    expect(later).toBe(record.replace(base(nowMs), base(nowMs + 7)));
  });

  test.each<[string, object, RegExp]>([
    [
      'without an id',
      { debounce: { wait: '1m', max: '1m' } },
      /^debounce is given without id; allowed: together with the id/,
    ],
    [
      'with a delay',
      { id: 'x', debounce: { wait: '1m', max: '1m' }, delay: '1m' },
      /^debounce is given together with delay; allowed: deb/,
    ],
    ['with an instant', { id: 'x', debounce: { wait: '1m', max: '1m' }, at: new Date(nowMs) }, /together with at;/],
    ['with a spread', { id: 'x', debounce: { wait: 1 }, within: '1m' }, /^debounce is given together with within;/],
    ['with ifExists', { id: 'x', debounce: { wait: 1 }, ifExists: 'replace' }, /together with ifExists;/],
    [
      'with a max below its wait',
      { id: 'x', debounce: { wait: '5s', max: '1s' } },
      /^max of debounce is "1s", and wait is "5s"; allowed: a max that is/,
    ],
    [
      'past the horizon',
      { id: 'x', debounce: { wait: '1s', max: '4000d' } },
      /allowed: up to the horizon of 3650 days$/,
    ],
    ['that waits past it', { id: 'x', debounce: { wait: '4000d' } }, /allowed: up to the horizon/],
    ['without a wait', { id: 'x', debounce: { max: '1s' } }, /^debounce is .*allowed: \{ wait, max \}/],
    [
      'with something else',
      { id: 'x', debounce: { wait: 1, most: 2 } },
      /an object with "most"; allowed: \{ wait, max \}/,
    ],
    ['that waits for nothing', { id: 'x', debounce: { wait: 0 } }, /^wait of debounce is 0; allowed: 1 ms or longer/],
  ])('%s is refused', (_, options, message) => {
    expect(() => plan(options)).toThrow(
      expect.objectContaining({ code: 'bad-input', message: expect.stringMatching(message) }),
    );
  });

  test('for a queue that delivers at most once is refused', () => {
    expect(() => plan({ id: 'x', debounce: { wait: '1m', max: '1m' } }, { delivery: 'at-most-once' })).toThrow(
      /delivers at most once.*allowed: in a queue/,
    );
  });
});

describe('orders', () => {
  test('are the moment of the call, and of one id and one moment each is the next', () => {
    const orders = new Orders();
    expect([orders.next('x', 5.9), orders.next('x', 5), orders.next('y', 5), orders.next('x', 6)]).toEqual([
      5, 6, 5, 7,
    ]);
    expect(orders.next('x', 3)).toBe(8);
  });

  test('of ids that are past are forgotten, those that count are not', () => {
    const orders = new Orders();
    orders.next('x', 100);
    for (let nth = 0; nth < 20_001; nth += 1) orders.next(`id${nth}`, 50);
    expect([orders.next('x', 100), orders.next('id7', 60), orders.next('id7', 60)]).toEqual([101, 60, 61]);
  });

  test('of calls that were overtaken are higher, each than the one before it', () => {
    const overtaken = new Overtaken();
    expect([overtaken.orderAfter('x', 9), overtaken.orderAfter('x', 9), overtaken.orderAfter('y', 9)]).toEqual([
      10, 11, 10,
    ]);
    expect(overtaken.orderAfter('x', 20)).toBe(21);
  });
});
