/**
 * The table of the options of a job: every row is whole, its example goes the whole way into a record and back, and the
 * pages say what it says. `npm run generate` rewrites `docs/reference/job-options.md`.
 */
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { renderJobOptions } from '../../scripts/job-options-reference.mjs';
import { planJob } from '../../src/client/plan.ts';
import { decodeRecord, encodeRecord } from '../../src/core/codec.ts';
import { allOptions, bodyFields, headerFields, optionNames, optionsOfFires } from '../../src/core/job-fields.ts';
import type { OptionName } from '../../src/core/job-options.ts';
import { decodeHeader } from '../../src/core/record-header.ts';
import { parseSchedule } from '../../src/core/recurring/schedule-input.ts';
import { createTestKit } from '../../src/testing/index.ts';
import { exampleOf } from '../support/job-options.ts';
import { read, root } from '../support/repository.ts';

const limits = { horizonMs: 3650 * 86_400_000, dataBytesMax: 1000, nowMs: Date.UTC(2026, 2, 1) };
const inRecord = [...bodyFields, ...headerFields];
const source = read('src/core/job-options.ts');

test('the reference lists every option', async () => {
  await expect(renderJobOptions(allOptions)).toMatchFileSnapshot(join(root, 'docs/reference/job-options.md'));
});

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
    for (const odd of [{}, Number.NaN, '', [], -1, null]) {
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
  for (const keys of [bodyFields.map(({ key }) => key), ['b', ...headerFields.map(({ key }) => key)]]) {
    expect(new Set(keys).size).toBe(keys.length);
    expect(keys.filter((key) => !/^[a-z]$/.test(key))).toEqual([]);
  }
});

test.each(inRecord)('$name is in the wire protocol', ({ key, option }) => {
  const place = 'json' in (option.record ?? {}) ? `o.${key}` : key;
  expect(read('docs/wire-protocol.md')).toContain(`\n| \`${place}\` |`);
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
    expect(() => parseSchedule('n', input, { sinceMs: 0 })).toThrow(/unknown field .* of a schedule.* allowed: queue/);
  });
});

test.each(allOptions)('the test kit takes $name', async ({ name }) => {
  const kit = createTestKit({ handlers: { q: async () => undefined } });
  const { status } = await kit.schedule('q', {}, exampleOf(name));
  expect(status).toBe('scheduled');
  await kit.advance('3650d');
  expect(kit.jobs().map(({ state }) => state)).toEqual(['done']);
});
