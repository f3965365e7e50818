/** Fields of data that nobody but code sees: what a path finds, what is shown in its place, and what may not come back. */
import { describe, expect, test } from 'vitest';
import { ABANDONED } from '../../src/job/job.ts';
import { defineQueue } from '../../src/job/queue.ts';
import {
  decodeRedact,
  encodeRedact,
  parseRedact,
  redactedData,
  redactedJob,
  redactedText,
  refuseRedacted,
} from '../../src/job/redaction.ts';

const order = {
  email: 'ann@example.org',
  card: { number: '4111111111111111', last4: '1111' },
  items: [{ to: 'bob@example.org', n: 1 }, { n: 2 }, 'plain'],
};

describe('a path', () => {
  test.each([
    ['email', { ...order, email: '[redacted]' }],
    ['card.number', { ...order, card: { number: '[redacted]', last4: '1111' } }],
    ['card', { ...order, card: '[redacted]' }],
    ['card.*', { ...order, card: { number: '[redacted]', last4: '[redacted]' } }],
    ['items.*.to', { ...order, items: [{ to: '[redacted]', n: 1 }, { n: 2 }, 'plain'] }],
    ['items.to', { ...order, items: [{ to: '[redacted]', n: 1 }, { n: 2 }, 'plain'] }],
    ['items.1', { ...order, items: [order.items[0], '[redacted]', 'plain'] }],
    ['items.*', { ...order, items: ['[redacted]', '[redacted]', '[redacted]'] }],
    ['nobody.has.this', order],
    ['email.inside', order],
  ])('%s', (path, shown) => {
    const before = structuredClone(order);
    expect(redactedData(order, [path])).toEqual(shown);
    expect(order).toEqual(before);
  });

  test('of several each counts, and no value but an object has fields', () => {
    expect(redactedData(order, ['email', 'card', 'items'])).toEqual({
      email: '[redacted]',
      card: '[redacted]',
      items: '[redacted]',
    });
    for (const data of [undefined, null, 7, 'email', true]) expect(redactedData(data, ['email'])).toBe(data);
    expect(redactedData({ email: null }, ['email'])).toEqual({ email: '[redacted]' });
  });

  test('never reaches a prototype', () => {
    expect(redactedData({ a: 1 }, ['constructor', '__proto__.x', 'toString'])).toEqual({ a: 1 });
  });

  test('counts within the data of a job that died, which its compensation job holds', () => {
    const told = { body: { n: 'pay', d: { email: 'ann@example.org' } }, told: { id: 'a' } };
    expect(redactedJob({ name: ABANDONED, data: told }, ['email'])).toMatchObject({
      body: { d: { email: '[redacted]' } },
    });
    expect(redactedJob({ name: 'default', data: told }, ['email'])).toEqual(told);
    expect(redactedJob({ name: 'default', data: told }, undefined)).toBe(told);
  });
});

test('paths are checked, sorted and kept once; what nobody can read hides every field', () => {
  expect(defineQueue('mail', { redact: ['to', 'card.number', 'to'] }).redact).toEqual(['card.number', 'to']);
  expect(defineQueue('mail').redact).toBeUndefined();
  expect(parseRedact([])).toEqual([]);
  expect(decodeRedact(encodeRedact(['a.*.b']))).toEqual(['a.*.b']);
  expect(decodeRedact('[]')).toBeUndefined();
  for (const text of ['nonsense', '{"a":1}', '["a..b"]']) expect(decodeRedact(text)).toEqual(['*']);
  for (const redact of [
    'to',
    [''],
    ['a..b'],
    ['.a'],
    ['a.'],
    [7],
    ['x'.repeat(201)],
    Array.from({ length: 51 }, String),
  ]) {
    expect(() => parseRedact(redact)).toThrow(/redact is .*; allowed: a list of at most 50 paths/);
  }
});

test('a text is told without the values, also where they stand within JSON or within each other', () => {
  const jobs = [{ name: 'default', data: { to: 'ann@example.org', path: 'C:\\x "y"', pin: 4711, ok: 'yes' } }];
  const paths = ['to', 'path', 'pin', 'ok'];
  const told = (text: string) => redactedText(text, jobs, paths);
  expect(told('no mail to ann@example.org (4711)')).toBe('no mail to [redacted] ([redacted])');
  expect(told('{"path":"C:\\\\x \\"y\\""} at C:\\x "y"')).toBe('{"path":"[redacted]"} at [redacted]');
  // Shorter values stand in too many words.
  expect(told('yes, yesterday')).toBe('yes, yesterday');
  expect(redactedText('ann@example.org.uk', [{ data: { a: 'ann@example.org', b: 'ann@example.org.uk' } }], ['*'])).toBe(
    '[redacted]',
  );
});

test('what was copied from a view is refused, and nothing else', () => {
  const paths = ['items.*.to', 'card'];
  expect(() => refuseRedacted({ items: [{ to: '[redacted]' }] }, paths)).toThrow(
    /data.items.\*.to is "\[redacted\]", which stands in views for a value that its queue hides; allowed: the value itself/,
  );
  for (const data of [
    undefined,
    '[redacted]',
    { note: '[redacted]' },
    { items: [{ to: 'a' }], card: 'no [redacted]' },
  ]) {
    expect(() => refuseRedacted(data, paths)).not.toThrow();
  }
  expect(() => refuseRedacted({ card: '[redacted]' }, undefined)).not.toThrow();
});

describe('a message that may quote hidden values', () => {
  const told = (text: string, data: unknown, paths = ['*']) => redactedText(text, [{ data }], paths);

  test('is cut first, and a value at the cut is hidden whole', () => {
    const value = 'ann@example.org';
    for (const before of [8191, 8180, 8192]) {
      const shown = told(`${'-'.repeat(before)}${value} and more`, { to: value });
      expect(shown).toBe(`${'-'.repeat(before)}${before < 8192 ? '[redacted]' : ''}`);
    }
    expect(told('x'.repeat(10_000), {})).toHaveLength(8192);
  });

  test('hides what overlaps together, and the longest value that begins at a place', () => {
    expect(told('abcdef', { a: 'abcd', b: 'cdef' })).toBe('[redacted]');
    expect(told('abcdabcd', { a: 'abcd' })).toBe('[redacted][redacted]');
    expect(told('to annabel or anna', { a: 'anna', b: 'annab', c: 'annabella' })).toBe('to [redacted]el or [redacted]');
    expect(told('it is [redacted]', { a: 'redacted' })).toBe('it is [[redacted]]');
    const values = Array.from({ length: 50 }, (_, at) => 'a'.repeat(4 + at * 3));
    expect(told(`b${'a'.repeat(300)}b`, values)).toBe('b[redacted]b');
  });

  test('costs no more for many values: looked for one after the other, these would take hours', () => {
    const values = Array.from({ length: 200_000 }, (_, at) => `secret value ${at}`);
    const text = `${values[7]} ${'secret value '.repeat(1_000_000)}`;
    expect(told(text, { values }).startsWith('[redacted] secret value')).toBe(true);
  });

  test('may come of data that a handler has changed: circular, very deep, or what throws when it is looked at', () => {
    const ring: Record<string, unknown> = { to: 'ann@example.org' };
    ring.self = ring;
    ring.list = [[ring]];
    expect(told('no ann@example.org', ring)).toBe('no [redacted]');
    expect(told('no ann@example.org', [ring], ['list.self.to'])).toBe('no [redacted]');
    const deep = Array.from({ length: 200_000 }).reduce((inner: unknown) => [inner], 'ann@example.org');
    expect(told('no ann@example.org', deep)).toBe('no [redacted]');
    expect(told('no ann@example.org', deep, ['to'])).toBe('no ann@example.org');
    const trap = Object.defineProperty({}, 'to', {
      enumerable: true,
      get: () => {
        throw new Error('trap');
      },
    });
    expect(told('no ann@example.org', trap)).toBe('[redacted]');
  });
});
