/** Job ⇄ bytes: what goes in comes out, and what cannot be carried is refused with its place. */
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { DateTime } from 'luxon';
import { describe, expect, test } from 'vitest';
import { exponential, ladder } from '../../src/job/backoff.ts';
import {
  decodeHistory,
  decodeRecord,
  decodeRun,
  decodeTombstone,
  encodeAttempted,
  encodeBody,
  encodeRecord,
  idOf,
  isTombstone,
  memberOf,
} from '../../src/job/codec.ts';
import { decodeHeader } from '../../src/job/record-header.ts';

const DUE = 1_763_719_000_000;
const record = (data: unknown) => encodeRecord(DUE, encodeBody({ name: 'default', data }));

describe('a record', () => {
  test('of golden bytes never changes: other languages write it too', () => {
    const body = encodeBody({ name: 'welcome', data: { to: 'x' } }, { attempts: 3, timeoutMs: 1000 });
    expect(encodeRecord(DUE, body)).toBe('1mi8or64g|{"n":"welcome","d":{"to":"x"},"o":{"a":3,"t":1000}}');
    expect(record(undefined)).toBe('1mi8or64g|{}');
    expect(record(null)).toBe('1mi8or64g|{"d":null}');
  });

  test('carries any data that JSON carries, any name and any due time', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.string(), fc.integer({ min: 0, max: 9e15 }), (data, name, dueMs) => {
        const text = encodeRecord(dueMs, encodeBody({ name, data }));
        expect(decodeRecord(text)).toEqual({
          askedDueMs: dueMs,
          bare: false,
          name,
          data: JSON.parse(JSON.stringify(data)),
        });
        expect(decodeHeader(text)).toEqual({ askedDueMs: dueMs, bare: false });
        expect(isTombstone(text)).toBe(false);
      }),
    );
  });

  test('carries the options of its job', () => {
    for (const backoff of [exponential('1s'), ladder(['1m', '1h'])]) {
      const options = { attempts: 7, timeoutMs: 5000, backoff };
      expect(decodeRecord(encodeRecord(DUE, encodeBody({ name: 'default', data: 1 }, options)))).toMatchObject(options);
    }
  });

  test('keeps the order of a day: a date is its text', () => {
    expect(decodeRecord(record({ at: new Date(DUE) })).data).toEqual({ at: new Date(DUE).toISOString() });
  });

  test('of a bare job says so; unknown letters of the header are ignored', () => {
    expect(decodeHeader('1mi8or64g;b=1|{}')).toEqual({ askedDueMs: DUE, bare: true });
    expect(decodeHeader('1mi8or64g;z=x;b=1;y|{}')).toEqual({ askedDueMs: DUE, bare: true });
    expect(decodeRecord('1mi8or64g;e=abc|{"d":1,"zz":2}')).toMatchObject({ bare: false, data: 1, name: 'default' });
  });

  test.each([
    '',
    '2abc|{}',
    '1|{}',
    'abc',
    '1abc',
    '1abc|',
    '1abc|{',
    '1abc|[]',
    '1abc|null',
    '1abc|7',
    '1abc|{"n":5}',
  ])('like %j cannot be read, which is an error for its caller', (text) => {
    expect(() => decodeRecord(text)).toThrow(Error);
  });

  test.each(['{"a":"many"}', '{"a":-1}', '{"t":"long"}', '{"b":{"kind":"sometimes"}}'])(
    'with options like %s cannot be read: they would never be exhausted',
    (options) => {
      expect(() => decodeRecord(`1abc|{"o":${options}}`)).toThrow(/in the record/);
    },
  );
});

describe('data that JSON cannot carry', () => {
  const cycle: { self?: unknown } = {};
  cycle.self = cycle;
  const nested = (depth: number) => Array.from({ length: depth }).reduce((inner: unknown) => [inner], 1);

  test.each<[string, unknown, RegExp]>([
    ['NaN', Number.NaN, /^data \(NaN\)/],
    ['infinity', { a: [1, Number.POSITIVE_INFINITY] }, /^data\.a\.1 \(Infinity\)/],
    ['a function', { a: { b: () => 1 } }, /^data\.a\.b \(a function\)/],
    ['a symbol', [Symbol('s')], /^data\.0 \(a symbol\)/],
    ['a map', { m: new Map() }, /^data\.m \(a Map\)/],
    ['a set', new Set([1]), /^data \(a Set\)/],
    ['an expression', { r: /x/ }, /^data\.r \(a RegExp\)/],
    ['bytes', { b: new Uint8Array(2) }, /^data\.b \(a Uint8Array\)/],
    ['a buffer of bytes', new ArrayBuffer(2), /^data \(an ArrayBuffer\)/],
    ['an error', { e: new TypeError('x') }, /^data\.e \(a TypeError\)/],
    ['a promise', { p: Promise.resolve(1) }, /^data\.p \(a Promise\)/],
    ['an invalid date', { at: new Date(Number.NaN) }, /^data\.at \(an invalid Date\)/],
    ['a list with undefined', { a: [1, undefined] }, /^data\.a \(a list with undefined\)/],
    ['a big integer', { n: 5n }, /^data\.n \(a bigint\)/],
    ['a cycle', { in: [cycle] }, /^data\.in\.0\.self\.self.* \(a circular reference\)/],
    ['an object that says nothing', { toJSON: () => undefined }, /^data \(an object, whose toJSON gives undefined\)/],
    [
      'a getter that throws',
      {
        get a() {
          throw new Error('no');
        },
      },
      /^data\.a cannot be carried by JSON: no/,
    ],
  ])('is refused with its place: %s', (_what, data, message) => {
    expect(() => record(data)).toThrow(message);
    expect(() => record(data)).toThrow(expect.objectContaining({ code: 'bad-input' }));
  });

  test('nested 1,000 deep is carried, and a level more is refused with its place, however deep it is', () => {
    expect(decodeRecord(record(nested(1000))).data).toEqual(nested(1000));
    for (const depth of [1001, 4000, 100_000]) {
      expect(() => record(nested(depth))).toThrow(
        /^data(\.0){58}… is nested deeper than allowed; allowed: 1000 levels/,
      );
    }
    const tree = (depth: number) => Array.from({ length: depth }).reduce((inner: unknown) => ({ a: inner, b: 1 }), 1);
    expect(() => record({ at: new Date(0), tree: tree(1000) })).toThrow(/^data\.tree\.a\.a/);
  });

  const other = (code: string): unknown => runInNewContext(code);
  const revoked = (): unknown => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  };
  const invalid = DateTime.fromISO('nonsense');
  class Order {
    readonly id = 1;
    readonly #secret = 2;
    sum(): number {
      return this.#secret + this.id;
    }
  }
  test.each<[string, unknown, RegExp]>([
    [
      'a query',
      { x: new URLSearchParams('a=1') },
      /^data\.x \(a URLSearchParams\) cannot be carried by JSON; allowed: /,
    ],
    ['headers', [new Headers()], /^data\.0 \(a Headers\)/],
    ['a form', { x: new FormData() }, /^data\.x \(a FormData\)/],
    ['a blob', { x: new Blob(['a']) }, /^data\.x \(a Blob\)/],
    ['a Map of another realm', { x: other('new Map([[1, 2]])') }, /^data\.x \(a Map\)/],
    ['a Set of another realm', { x: other('new Set([1])') }, /^data\.x \(a Set\)/],
    ['an invalid Date of another realm', { x: other('new Date(NaN)') }, /^data\.x \(an invalid Date\)/],
    ['an invalid DateTime', { x: invalid }, /^data\.x \(a DateTime, whose toJSON gives null\)/],
    ['a toJSON that gives NaN', { x: { toJSON: () => Number.NaN } }, /^data\.x \(an object, whose toJSON gives NaN\)/],
    ['a toJSON that gives a function', { x: { toJSON: () => () => 1 } }, /^data\.x \(.*gives a function\)/],
    ['a toJSON that gives a bigint', { x: { toJSON: () => 1n } }, /^data\.x \(.*gives a bigint\)/],
    ['a toJSON with such a part', { x: { toJSON: () => ({ y: [new Map()] }) } }, /^data\.x\.y\.0 \(a Map\)/],
    [
      'a toJSON that throws',
      {
        x: {
          toJSON() {
            throw new Error('out of order');
          },
        },
      },
      /^data\.x cannot be carried by JSON: out of order/,
    ],
    ['an object of a class', { order: new Order() }, /^data\.order \(an Order\)/],
    ['an object that inherits', Object.create({ a: 1 }), /^data \(an object that inherits from another\)/],
    ['a Buffer', { x: Buffer.from('abc') }, /^data\.x \(a Buffer\)/],
    ['a view of bytes', { x: new DataView(new ArrayBuffer(2)) }, /^data\.x \(a DataView\)/],
    ['a boxed number', { x: Object(1) }, /^data\.x \(a Number\)/],
    ['a boxed text', { x: Object('a') }, /^data\.x \(a String\)/],
    ['a weak map', { x: new WeakMap() }, /^data\.x \(a WeakMap\)/],
    ['a key that is a symbol', { x: { [Symbol('s')]: 1 } }, /^data\.x \(an object whose Symbol\(s\) JSON leaves out\)/],
    ['a hidden property', Object.defineProperty({ a: 1 }, 'b', { value: 2 }), /^data \(an object whose b JSON leaves/],
    ['a list with a name', { x: /(a)/.exec('a') }, /^data\.x \(a list whose index JSON leaves out\)/],
    ['a list with holes', { x: new Array(1e9) }, /^data\.x \(a list with undefined\)/],
    ['a generator', { x: [1].values() }, /^data\.x \(an? /],
    ['a Proxy that is revoked', { x: revoked() }, /^data\.x cannot be carried by JSON: .*revoked/],
  ])('is refused with its place, whatever it is: %s', (_what, data, message) => {
    expect(() => record(data)).toThrow(message);
  });

  test('is not what only looks like it', () => {
    const data = {
      plain: other('({ a: [1, { b: null }] })'),
      bare: Object.assign(Object.create(null), { a: 1 }),
      at: other('new Date(0)'),
      luxon: DateTime.fromMillis(0, { zone: 'utc' }),
      url: new URL('https://example.org/'),
      own: { toJSON: () => ({ a: new Date(0) }) },
      proto: JSON.parse('{"__proto__":{"a":1}}'),
      none: undefined,
      zero: -0,
    };
    expect(record(data).slice(record(data).indexOf('|') + 1)).toBe(`{"d":${JSON.stringify(data)}}`);
  });

  test('asks a toJSON once, so that what was looked at is what is carried', () => {
    const asked: unknown[] = [];
    const once = { toJSON: (key: string) => (asked.push(key) === 1 ? 'a' : new Map()) };
    expect(decodeRecord(record({ in: [once] })).data).toEqual({ in: ['a'] });
    expect(asked).toEqual(['0']);
  });

  test('leaves undefined properties out, as JSON does', () => {
    expect(record({ a: undefined, b: 1 })).toContain('{"d":{"b":1}}');
  });
});

describe('a tombstone', () => {
  test('is read with all its parts', () => {
    expect(decodeTombstone('.xmi8or64g e0a3c1bd52f9dee7 1795264499478168 3 1795264499478-0')).toEqual({
      outcome: 'dead',
      askedDueMs: DUE,
      digest: 'e0a3c1bd52f9dee7',
      token: '1795264499478168',
      attempts: 3,
      deadLetter: '1795264499478-0',
    });
    expect(decodeTombstone('.dmi8or64g e0a3c1bd52f9dee7 0 0 -')).toMatchObject({
      outcome: 'done',
      deadLetter: undefined,
    });
    expect(decodeTombstone('.c0 - 0 0 -')?.outcome).toBe('cancelled');
    expect(decodeTombstone('.e0 - 0 0 -')?.outcome).toBe('expired');
  });

  test.each(['', '.', '.q0 - 0 0 -', '.d0 - 0', '1mi8or64g|{}'])('like %j is none', (text) => {
    expect(decodeTombstone(text)).toBeUndefined();
  });
});

describe('a run', () => {
  test('is read with all its parts', () => {
    const line = encodeAttempted({ atMs: 5, attempt: 2, kind: 'timeout', message: 'too "long"' });
    expect(decodeRun(`17 1 3 1 1 1763-0 w1 1763719000500 1\n${line}`)).toEqual({
      token: '17',
      generation: 1,
      attempts: 3,
      failures: 1,
      crashes: 1,
      entry: '1763-0',
      owner: 'w1',
      nextDueMs: 1763719000500,
      cancelRequested: true,
      hasNews: false,
      history: [{ atMs: 5, attempt: 2, kind: 'timeout', message: 'too "long"' }],
    });
    expect(decodeRun('0 0 0 0 0 - - - 0')).toMatchObject({
      entry: undefined,
      owner: undefined,
      nextDueMs: undefined,
      cancelRequested: false,
      history: [],
    });
  });

  test.each(['', '1 2 3', '1 2 3 4 5 6 7 8 9 10 11 12'])('like %j is none', (text) => {
    expect(decodeRun(text)).toBeUndefined();
  });
});

describe('a history', () => {
  test('carries any message on one line', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.nat(), fc.boolean(), (message, attempt, hasRun) => {
        const ran = hasRun ? { worker: 'host:1', tookMs: attempt } : {};
        const error = { atMs: DUE, attempt, kind: 'failure', message, ...ran } as const;
        const line = encodeAttempted(error);
        expect(line).not.toContain('\n');
        expect(decodeHistory([line])).toEqual([error]);
      }),
    );
  });

  test.each(['not json', 'null', '5', '{}', '{"m":5}'])('shows a line it cannot read (%s) as it is', (line) => {
    expect(decodeHistory([line, ''])).toEqual([{ atMs: 0, attempt: 0, kind: 'failure', message: line }]);
  });
});

test('a member stands for an id, and a bare one for itself', () => {
  expect([memberOf('a'), memberOf('a', { bare: true })]).toEqual(['j:a', 'a']);
  expect(idOf('j:a')).toEqual({ id: 'a', bare: false });
  expect(idOf('order-1')).toEqual({ id: 'order-1', bare: true });
  expect(idOf('j:j:a')).toEqual({ id: 'j:a', bare: false });
});
