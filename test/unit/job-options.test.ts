/**
 * The table of the options of a job: every row is whole, its example goes the whole way into a record and back, and the
 * pages say what it says.
 */
import { describe, expect, test } from 'vitest';
import { planJob } from '../../src/client/calls/plan.ts';
import { decodeRecord, encodeRecord } from '../../src/job/codec.ts';
import { allOptions, bodyFields, headerFields, optionNames, optionsOfFires } from '../../src/job/fields.ts';
import type { JobHeaders } from '../../src/job/labels.ts';
import type { OptionName } from '../../src/job/options.ts';
import { defineQueue } from '../../src/job/queue.ts';
import { editRecord } from '../../src/job/record-edit.ts';
import { decodeHeader, markOf } from '../../src/job/record-header.ts';
import { parseSchedule } from '../../src/schedule/input.ts';
import { createTestKit } from '../../src/testing/index.ts';
import { exampleOf } from '../support/job-options.ts';
import { read } from '../support/repository.ts';

const limits = { horizonMs: 3650 * 86_400_000, dataBytesMax: 1000, nowMs: Date.UTC(2026, 2, 1) };
const inRecord = [...bodyFields, ...headerFields];
const source = read('src/job/options.ts');

describe.each(optionNames)('%s', (name: OptionName) => {
  const { option } = allOptions.find((one) => one.name === name) ?? {};

  test('has a comment with an example for editors, and one line for people', () => {
    const [, comment = ''] = new RegExp(`/\\*\\*((?:(?!\\*/)[^])*)\\*/\\n {2}${name}: \\{`).exec(source) ?? [];
    expect(comment).toMatch(/^\s+\* [A-Z`1][^@]*\.\n/);
    expect(comment).toMatch(new RegExp(`@example \\{.*\\b${name}: `));
    expect(option?.doc).toMatch(/^[^A-Z|\n][^|\n]*[^.\n]$/);
    expect([option?.allowed, option?.otherwise].join()).not.toMatch(/[|\n]/);
  });

  test('is taken as its example says, and nothing else that is odd', () => {
    expect(() => planJob({}, exampleOf(name), limits)).not.toThrow();
    const odds = option?.kind === 'pairs' ? [[['a', 'b']], new Map()] : [{}];
    for (const odd of [...odds, Number.NaN, '', [], -1, null]) {
      expect(() => planJob({}, { ...exampleOf(name), [name]: odd }, limits)).toThrow(/ is .*allowed/);
    }
  });
});

test.each(inRecord)('$name comes out of a record as it went in', ({ name, stored, key, option }) => {
  const { record } = planJob({}, exampleOf(name), limits);
  const given = option.check(option.example, name);
  expect(decodeRecord(record)).toMatchObject({ [stored]: given });
  expect(record).toContain('json' in (option.record ?? {}) ? `"${key}":` : `;${key}=`);
});

test.each(bodyFields)('$name that a foreign producer wrote as nonsense is refused when it is read', ({ name, key }) => {
  for (const odd of ['"many"', 'null', '-1', '{}']) {
    expect(() => decodeRecord(`1abc|{"o":{"${key}":${odd}}}`)).toThrow(
      new RegExp(`^${name} in the record is .*allowed`),
    );
  }
});

test.each(headerFields)('$name that cannot be read in the header is left out', ({ key, stored, fallback }) => {
  expect(decodeHeader(`1abc;${key}=|{}`)).toEqual({ askedDueMs: 13368, bare: false });
  expect(decodeHeader(`1abc;${key}=!!;e=abc|{}`)).toMatchObject(fallback === undefined ? {} : { [stored]: fallback });
});

test('no two options share a place in the record', () => {
  // The priority and the set are tags of their own kinds.
  const inHeader = headerFields.filter(({ name }) => name !== 'priority' && name !== 'set');
  for (const keys of [bodyFields.map(({ key }) => key), ['b', ...inHeader.map(({ key }) => key)]]) {
    expect(new Set(keys).size).toBe(keys.length);
    expect(keys.filter((key) => !/^[a-z]$/.test(key))).toEqual([]);
  }
});

test.each(inRecord)('$name is in the wire protocol', ({ key, option }) => {
  const place = 'json' in (option.record ?? {}) ? `o.${key}` : key;
  expect(read('docs/wire-protocol.md')).toContain(`\n| \`${place}\` |`);
});

describe('headers', () => {
  const plan = (headers: unknown, data: unknown = {}) =>
    planJob(data, { id: 'a', at: new Date(limits.nowMs), headers: headers as JobHeaders }, limits).record;
  const text = (length: number) => 'x'.repeat(length);

  test.each([
    [
      { TraceParent: '00-1', 'X-b': '' },
      { traceparent: '00-1', 'x-b': '' },
    ],
    [
      { a: 'a|b;h=c&d=e%20+f', 'b!#$%&': '"\\ü漢🙂' },
      { a: 'a|b;h=c&d=e%20+f', 'b!#$%&': '"\\ü漢🙂' },
    ],
    [JSON.parse('{"__proto__":"p","constructor":"c"}'), JSON.parse('{"__proto__":"p","constructor":"c"}')],
    [Object.assign(Object.create(null), { a: '1' }), { a: '1' }],
    [{ a: text(4095) }, { a: text(4095) }],
    [{ ü: 'x' }, undefined],
    [{ ...Array.from({ length: 20 }, String) }, { ...Array.from({ length: 20 }, String) }],
  ])('%j are read as they were given, with names in lower case', (given, meant) => {
    if (meant === undefined) expect(() => plan(given)).toThrow(/a name in headers is "ü"; allowed: letters/);
    else expect(decodeRecord(plan(given)).headers).toEqual(meant);
  });

  test.each([
    ['a list', [['a', 'b']], /^headers is .*; allowed: at most 20/],
    ['a Map', new Map([['a', 'b']]), /^headers is/],
    ['Headers', new Headers({ a: 'b' }), /^headers is/],
    ['URLSearchParams', new URLSearchParams('a=b'), /^headers is/],
    ['a number', { a: 1 }, /^headers\.a is a number; allowed: a text$/],
    ['undefined', { a: undefined }, /^headers\.a is a undefined/],
    ['a list of texts', { a: ['b'] }, /^headers\.a is a object/],
    ['a line break', { a: 'secret\nb' }, /^headers\.a is a text with a control character; allowed: a text without$/],
    ['C1', { a: 'secret\u0085' }, /^headers\.a is a text with a control character/],
    ['half a character', { a: 'secret\ud800' }, /^headers\.a is/],
    ['no name', { '': 'x' }, /^a name in headers is ""/],
    ['a space in a name', { 'a b': 'x' }, /^a name in headers is "a b"/],
    ['a name twice', { a: 'x', A: 'y' }, /^a name in headers is "A"; allowed: a once, in whatever case$/],
    ['21', { ...Array.from({ length: 21 }, String) }, /^the number of headers is 21; allowed: at most 20$/],
    ['too many bytes', { a: text(4096) }, /^the size of headers is 4097 bytes; allowed: at most 4096 bytes/],
    ['too many bytes of UTF-8', { a: 'ü'.repeat(2048) }, /^the size of headers is 4097 bytes/],
  ])('%s: refused, and no value is shown', (_what, given, message) => {
    expect(() => plan(given)).toThrow(message);
    expect(() => plan(given)).not.toThrow(/secret/);
  });

  test('do not count when calls are compared, and cost nothing where there are none', () => {
    const plain = plan(undefined);
    expect(plan({})).toBe(plain);
    expect(plain).not.toContain(';');
    const marks = [{ a: '1' }, { a: '2' }, { b: '漢' }, { a: 'x', b: 'y' }].map((headers) => markOf(plan(headers)));
    expect(marks).toEqual(marks.map(() => markOf(plain)));
    expect(markOf(plan({ a: '1' }, { n: 2 }))).not.toBe(markOf(plain));
    expect(plan({ b: '2', a: '1' })).toBe(plan({ A: '1', b: '2' }));
  });

  test('an edit keeps them, changes them, and takes them away, and the call stays known', () => {
    const first = plan({ a: '1' });
    const edit = (record: string, options: Readonly<Record<string, unknown>>) =>
      editRecord(record, { hasData: false, options, dueMs: limits.nowMs }) ?? '';
    const records = [{ attempts: 3 }, { headers: { B: '2' } }, { headers: {} }, { headers: null }].map((options) =>
      edit(first, options),
    );
    expect(records.map((record) => decodeRecord(record).headers)).toEqual([
      { a: '1' },
      { b: '2' },
      undefined,
      undefined,
    ]);
    expect(records.map(markOf)).toEqual(records.map(() => markOf(first)));
    expect(edit(first, { headers: { A: '1' } })).toBe(first);
    expect(decodeRecord(edit(plan(undefined), { headers: { c: '3' } })).headers).toEqual({ c: '3' });
  });

  test('that a foreign producer wrote as nonsense count as left out', () => {
    const odd = ['', 'a=1&A=2', 'a%20b=1', `a=${text(5000)}`, 'a=%0A', '=x'];
    for (const one of odd) expect(decodeRecord(`1abc;h=${one}|{"d":1}`).headers).toBeUndefined();
    expect(decodeRecord('1abc;h=Trace=00-1&b=|{}').headers).toEqual({ trace: '00-1', b: '' });
  });
});

describe('a schedule', () => {
  test.each(optionsOfFires)('says $name for its jobs, as its page tells', ({ name, option }) => {
    const input = { queue: 'q', every: '1h', maxLateness: '1h', [name]: option.example };
    const { body, header } = parseSchedule('n', input, { sinceMs: 0 });
    const record = decodeRecord(encodeRecord(0, body, header));
    expect(Object.values(record)).toContainEqual(option.check(option.example, name));
    expect(read('docs/reference/schedules.md')).toContain(`\`${name}\``);
  });

  const fields: readonly string[] = optionsOfFires.map(({ name }) => name);
  // What is a field of its own there has its own meaning.
  const others = allOptions.filter(({ name, option }) => option.schedule === undefined && name !== 'zone');
  test.each(others)('does not know $name', ({ name, option }) => {
    expect(fields).not.toContain(name);
    const input = { queue: 'q', every: '1h', [name]: option.example };
    expect(() => parseSchedule('n', input, { sinceMs: 0 })).toThrow(/is not an option of a schedule; allowed: queue/);
  });
});

test.each(allOptions)('the test kit takes $name', async ({ name }) => {
  // What the target of a queue is sent is no work of a handler.
  const isSent = name === 'target';
  const target = isSent ? 'https://api.example.com/due' : undefined;
  const kit = createTestKit({
    handlers: isSent ? {} : { q: async () => undefined },
    queues: [defineQueue('q', { fair: true, costs: true, target })],
  });
  if (name === 'set') await kit.client.sets.begin('q', 'import-7', { then: { data: {} } });
  const { status } = await kit.schedule('q', {}, exampleOf(name));
  expect(status).toBe('scheduled');
  await kit.advance('3650d');
  expect(kit.jobs().map(({ state }) => state)).toEqual([isSent ? 'ready' : 'done']);
});
