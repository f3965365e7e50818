/** How scripts are put together from their parts. */
import { expect, test } from 'vitest';
import { assembled } from '../../lua/assemble.mjs';

const PARTS: Readonly<Record<string, string>> = {
  small:
    '-- small: three numbers.\nlocal ONE = 1\n\nlocal function two()\n  return ONE + ONE\nend\n\nlocal function nobody()\n  return 0\nend',
  large: '-- large: sums.\n-- NEEDS   small\nlocal function three()\n  return two() + ONE\nend',
};
const partOf = (name: string): string => PARTS[name] ?? '';
const script = (body: string): string => assembled(`#!lua\n-- sum: adds.\n-- USES  small, large\n${body}`, partOf);

test('what a script uses comes before its body, in the order of the parts, and nothing else', () => {
  const text = script('return three()\n');
  expect(text.indexOf('#!lua\n-- sum: adds.')).toBe(0);
  expect(text.match(/^local (?:function )?\w+/gm)).toEqual(['local ONE', 'local function two', 'local function three']);
  expect(text.endsWith('return three()\n')).toBe(true);
});

test('what is used rarely comes where it is used, and what is used elsewhere too stays above', () => {
  const text = script('if ARGV[1] then\n  -- rarely\n  return three()\nend\nreturn ONE\n');
  expect(text.match(/^local (?:function )?\w+/gm)).toEqual(['local ONE']);
  expect(text).toContain(
    '  -- rarely\n  local function two()\n    return ONE + ONE\n  end\n\n  local function three()\n    return two() + ONE\n  end\n\n  return three()\nend\nreturn ONE\n',
  );
});

test('what comes after the block of a rare place is not rare', () => {
  const text = script('if ARGV[1] then\n  -- rarely\n  local a = two()\n\n  return a\nend\nreturn two()\n');
  expect(text.match(/function two/g)).toHaveLength(1);
  expect(text.indexOf('local function two')).toBeLessThan(text.indexOf('if ARGV[1]'));
});
