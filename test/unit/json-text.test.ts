/** JSON and YAML that others wrote: numbers that would lose digits are refused with their place, harmless spellings are not. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseYaml } from '../../src/config/file.ts';
import { inexactNumber, keepsDigits, parseBounded, parseExact } from '../../src/job/json-text.ts';

test.each([
  ...['0', '-0', '0.0', '0e999', '1.0', '1.10', '1e3', '1E+3', '-12.50e-2', '100000000000000000000000', '1e21'],
  ...['9007199254740992', '0.1', '0.30000000000000004', '5e-324', '1.7976931348623157e308', '123456789012345.600'],
  // As C, PHP and others write 0.1.
  '0.10000000000000001',
])('%s keeps its digits', (literal) => {
  expect(keepsDigits(literal)).toBe(true);
  expect(parseExact(`{"a":[${literal}]}`, 'data')).toEqual({ a: [Number(literal)] });
});

test.each([
  ...['1234567824702058497', '9007199254740993', '-9007199254740993', '12345678901234567890.5', '1e400', '-1e400'],
  ...['1e-400', '0.1234567890123456789', '3.14159265358979323846', '0.30000000000000001', '1234567824702058496'],
])('%s does not', (literal) => {
  expect(keepsDigits(literal)).toBe(false);
  expect(() => parseExact(`{"a":[1,{"b":${literal}}]}`, 'data')).toThrow(
    `data.a.1.b is ${literal}, which would be read as ${Number(literal)}; allowed: a number that keeps its digits, or the same digits in quotes`,
  );
});

describe('the place of a number', () => {
  test.each([
    ['9007199254740993', []],
    ['[[],[{}],[[1,9007199254740993]]]', ['2', '0', '1']],
    ['{"a":{"b":[0]},"c" : \n {"d":1e400}}', ['c', 'd']],
    ['{"text":"9007199254740993, \\"1e400\\", {[","\\\\":9007199254740993}', ['\\\\']],
    ['{"9007199254740993":"1e400","n":[true,null,"\\\\",{"x":1e400}]}', ['n', '3', 'x']],
  ])('of %s', (json, path) => {
    expect(inexactNumber(json)?.path).toEqual(path);
  });

  test('is looked for in any text that JSON writes, and none is found', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        // The digits make it look twice.
        const text = JSON.stringify([value, '9007199254740993']);
        expect(inexactNumber(text)).toBeUndefined();
        expect(parseBounded(text, 'it')).toEqual(JSON.parse(text));
      }),
    );
  });

  test('costs no more than the length of the text, whatever is in it', () => {
    const zeros = '0'.repeat(1_000_000);
    for (const json of [
      `[1${zeros}1]`,
      `"${'\\\\'.repeat(1_000_000)}${zeros}"`,
      `[0.${zeros}1, "${zeros}`,
      '['.repeat(1e6),
    ]) {
      inexactNumber(`${json}1234567890123456`);
    }
  });
});

describe('YAML', () => {
  test.each([
    ['a: 1234567824702058497', 'a is 1234567824702058497'],
    ['a:\n  - b: 1\n  - b: {c: [0.1234567890123456789]}', 'a.1.b.c.0 is 0.1234567890123456789'],
    ['a: &x 1e400\nb: *x', 'a is 1e400'],
    ['a: 0xFFFFFFFFFFFFFFFF', 'a is 0xFFFFFFFFFFFFFFFF'],
    ['a: {1234567824702058497: x}', 'is 1234567824702058497'],
  ])('%s is refused', (text, message) => {
    expect(() => parseYaml(text, 's.yaml')).toThrow(`s.yaml: `);
    expect(() => parseYaml(text, 's.yaml')).toThrow(message);
  });

  test('with other spellings of numbers is not', () => {
    const text = 'a: [+1.10, 1e3, .5, 5., 0x1F, 0o17]\nb: "1234567824702058497"\nc: 2026-03-01';
    expect(parseYaml(text, 's.yaml')).toEqual({
      a: [1.1, 1000, 0.5, 5, 31, 15],
      b: '1234567824702058497',
      c: '2026-03-01',
    });
  });

  const lists = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
  const maps = (depth: number) => `${'{b: '.repeat(depth)}1${'}'.repeat(depth)}`;
  const block = (depth: number) => Array.from({ length: depth }, (_, at) => `\n${' '.repeat(at + 2)}c:`).join('');

  test.each([
    ['lists', lists, '0.0.0'],
    ['maps', maps, 'b.b.b'],
    ['maps in a map', (depth: number) => `{ok: ${lists(9)}, c: ${maps(depth - 1)}}`, 'c.b.b'],
    ['lists in a key', (depth: number) => `{? ${lists(depth - 1)} : 1}`, '0.0.0'],
    ['lists line by line', (depth: number) => `\n  ${'- '.repeat(depth)}1`, '0.0.0'],
    ['maps line by line', block, 'c.c.c'],
  ])('of 500 levels is read, and deeper %s are refused with their place', (_, make, place) => {
    // The mapping `a:` is a level too.
    expect(() => parseYaml(`fine: [1]\na: ${make(499)}`, 's.yaml')).not.toThrow();
    for (const depth of [500, 1000, 5000]) {
      if (depth === 5000 && make === block) continue;
      expect(() => parseYaml(`fine: [1]\na: ${make(depth)}`, 's.yaml')).toThrow(
        new RegExp(`^s\\.yaml: a\\.${place}\\..{80,200}… is nested deeper than allowed; allowed: 500 levels$`),
      );
    }
  });

  test('that never closes is refused with its place too', () => {
    expect(() => parseYaml(`a:\n  b: ${'['.repeat(5000)}`, 's.yaml')).toThrow(
      /^s\.yaml: a\.b\.0\.0.* is nested deeper/,
    );
    expect(() => parseYaml('['.repeat(100_000), 's.yaml', 'bad-input')).toThrow(
      expect.objectContaining({ code: 'bad-input' }),
    );
  });

  test('with many brackets side by side is read', () => {
    expect(parseYaml(`[${'[{}],'.repeat(2000)}]`, 's.yaml')).toHaveLength(2000);
  });
});
