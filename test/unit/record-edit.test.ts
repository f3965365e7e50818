/** A record with some of it changed: what is not named stays, and the first record's mark travels along. */
import { describe, expect, test } from 'vitest';
import { decodeRecord, encodeBody, encodeRecord } from '../../src/job/codec.ts';
import { editRecord, type RecordChange } from '../../src/job/record-edit.ts';
import { digestOf, markOf } from '../../src/job/record-header.ts';

const DUE = 1_763_719_000_000;
const FIRST = encodeRecord(DUE, encodeBody({ name: 'welcome', data: { to: 'ada' } }, { attempts: 3 }), {
  maxLatenessMs: 600_000,
  onLate: 'dead',
});

function edit(record: string, change: Partial<RecordChange>): string {
  const edited = editRecord(record, { hasData: 'data' in change, options: {}, dueMs: DUE, ...change });
  if (edited === undefined) throw new Error('unreadable');
  return edited;
}

test('what is not named stays', () => {
  expect(decodeRecord(edit(FIRST, { data: 7 }))).toEqual({ ...decodeRecord(FIRST), data: 7 });
  expect(decodeRecord(edit(FIRST, { name: 'bye' }))).toEqual({ ...decodeRecord(FIRST), name: 'bye' });
  expect(decodeRecord(edit(FIRST, { options: { timeout: '5s' } }))).toEqual({
    ...decodeRecord(FIRST),
    timeoutMs: 5000,
  });
  expect(decodeRecord(edit(FIRST, { options: { maxLateness: '1s' } }))).toMatchObject({
    maxLatenessMs: 1000,
    onLate: 'dead',
  });
});

test('null takes an option away, and what means nothing without it', () => {
  const { attempts, ...rest } = decodeRecord(FIRST);
  expect(attempts).toBe(3);
  expect(decodeRecord(edit(FIRST, { options: { attempts: null } }))).toEqual(rest);
  const plain = decodeRecord(edit(FIRST, { options: { maxLateness: null } }));
  expect([plain.maxLatenessMs, plain.onLate]).toEqual([undefined, undefined]);
});

test('the name default and data that is undefined are left out', () => {
  expect(edit(FIRST, { name: 'default', data: undefined })).toMatch(/\|\{"o":\{"a":3\}\}$/);
});

test('the mark is that of the first record, after any number of edits', () => {
  const once = edit(FIRST, { data: 1 });
  const twice = edit(once, { data: 2, options: { maxLateness: null } });
  expect([markOf(once), markOf(twice)]).toEqual([markOf(FIRST), markOf(FIRST)]);
  expect(digestOf(once)).not.toBe(digestOf(twice));
  expect(markOf(FIRST)).toBe(`${DUE.toString(36)} ${digestOf(FIRST)}`);
});

test('a change that changes nothing gives the same text, and so does the same change again', () => {
  expect(edit(FIRST, { data: { to: 'ada' } })).toBe(FIRST);
  const once = edit(FIRST, { data: 1 });
  expect(edit(once, { data: 1 })).toBe(once);
});

test('letters and keys that nobody here knows stay', () => {
  const later = `1${DUE.toString(36)};z=q1;l=go|{"n":"x","t":[1],"o":{"z":9}}`;
  const edited = edit(later, { data: 5, options: { attempts: 2 } });
  expect(edited).toContain(';z=q1;l=go;m=');
  expect(JSON.parse(edited.slice(edited.indexOf('|') + 1))).toEqual({ n: 'x', d: 5, o: { z: 9, a: 2 }, t: [1] });
});

describe('numbers that JavaScript would round', () => {
  const foreign = `1${DUE.toString(36)}|{"d":{"n":"9007199254740993","id":9007199254740993,"x":1e400}}`;

  test('are not written anew in silence', () => {
    expect(() => edit(foreign, { name: 'x' })).toThrow(/holds 9007199254740993, which JavaScript would round/);
  });

  test('do not matter to an edit of the header, nor beside new data', () => {
    expect(edit(foreign, { options: { maxLateness: '1s' } })).toContain('"id":9007199254740993');
    expect(decodeRecord(edit(foreign, { data: 1 })).data).toBe(1);
  });
});

test.each([
  [{ options: { attempts: 0 } }, /attempts is 0/],
  [{ options: { expiresAt: new Date(DUE - 1) } }, /not before the job is due/],
  [{ data: Number.NaN }, /cannot be carried by JSON/],
])('%o is refused', (change, message) => {
  expect(() => edit(FIRST, change)).toThrow(message);
});

test('onLate means nothing alone', () => {
  const plain = encodeRecord(DUE, encodeBody({ name: 'a', data: 1 }));
  expect(() => edit(plain, { options: { onLate: 'dead' } })).toThrow(
    /onLate is "dead" without expiresAt or maxLateness/,
  );
});

test.each(['', '.d1 2 3 4 -', '2abc|{}', '1abc', '1abc|[]', '1abc|{', `1abc|{"d":"\ufffd"}`])(
  'a record that cannot be read gives none: %j',
  (record) => {
    expect(editRecord(record, { hasData: true, data: 1, options: {}, dueMs: DUE })).toBeUndefined();
  },
);
