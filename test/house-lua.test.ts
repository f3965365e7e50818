/**
 * The rules of Lua: the first lines of a script bind everything it touches, and `src/redis/transitions/scripts.ts` says the same.
 * Callers pass names, so a header and a table that disagree would write one thing into the place of another.
 *
 *     -- verb: what moves from where to where.
 *     -- KEYS  1 leader  2 scheduled
 *     -- ARGV  1 now  2 term  then per job: member, record
 *     -- RETURN every reply
 */
import { describe, expect, test } from 'vitest';
import { scripts } from '../src/redis/transitions/scripts.ts';
import { read, walk } from './support/repository.ts';

const LINES_MAX = 80;

interface Script {
  readonly keys: readonly string[];
  readonly args: readonly string[];
  readonly each?: readonly string[];
}
const table = new Map<string, Script>(Object.entries(scripts));
const files = walk('lua').map((path) => path.slice('lua/'.length, -'.lua'.length));

/** Commands whose first argument is a word of their own and whose key comes second. */
const KEY_SECOND = ['XINFO', 'XGROUP', 'OBJECT'];
/** Commands without a key. */
const NO_KEY = ['TIME'];

test('every script has a line in the table and every line a script', () => {
  expect(files.toSorted()).toEqual([...table.keys()].toSorted());
});

/** The one call whose command is not ours: what a handler commits with its job, on a key the call declares in KEYS. */
const HANDLERS_EFFECT = 'redis.pcall(ARGV[at + 1], KEYS[index], unpack(ARGV, at + 2, at + 1 + size))';

describe.each(files)('%s', (verb) => {
  const text = read(`lua/${verb}.lua`);
  const lines = text.split('\n');
  const header = headerOf(lines);
  const code = lines.filter((line) => !/^\s*(--|#!|$)/.test(line)).map((line) => line.replace(/\s--\s.*$/, ''));

  test('says in its first line what it does', () => {
    expect(lines.find((line) => line.startsWith('--'))).toMatch(new RegExp(`^-- ${verb}: [a-z].+`));
  });

  test('has the keys, arguments and repeated arguments that the table names, in that order', () => {
    const { keys, args, each = [] } = table.get(verb) ?? { keys: [], args: [] };
    expect(header).toEqual({ keys, args, each });
  });

  test('says what it replies', () => {
    expect(lines.some((line) => /^-- RETURN\s+\S/.test(line))).toBe(true);
  });

  test(`has at most ${LINES_MAX} lines of code`, () => {
    expect(code.length).toBeLessThanOrEqual(LINES_MAX);
  });

  test('calls its keys by the names of its header', () => {
    const wrong = [...boundKeys(code)].filter(([name, index]) => header.keys[index - 1] !== name);
    expect(wrong).toEqual([]);
  });

  test('touches nothing but its keys', () => {
    const bound = boundKeys(code);
    const allowed = (key: string) => bound.has(key) || /^KEYS\[\d+\]$/.test(key);
    const foreign = calls(code.join('\n').replaceAll(HANDLERS_EFFECT, ''))
      .filter(({ command, key }) => !NO_KEY.includes(command) && !allowed(key))
      .map(({ command, key }) => `${command} ${key}`);
    expect(foreign).toEqual([]);
  });

  test('never decodes a payload', () => {
    expect(code.filter((line) => /\bc(json|msgpack)\b/.test(line))).toEqual([]);
  });
});

/** Names in the order of their numbers; a line of prose below KEYS or ARGV does not begin with a number. */
function headerOf(lines: readonly string[]): Required<Script> {
  const section = (name: string) => {
    const from = lines.findIndex((line) => line.startsWith(`-- ${name}`));
    const rest = lines.slice(from + 1);
    const more = rest.slice(
      0,
      rest.findIndex((line) => !/^-- {7}(\d|then )/.test(line)),
    );
    return [lines[from] ?? '', ...more].join(' ');
  };
  const numbered = (text: string) => {
    const names: string[] = [];
    for (const [, index, name = ''] of text.matchAll(/(?<=\s)(\d+) ([A-Za-z]+)/g)) {
      if (Number(index) === names.length + 1) names.push(name);
    }
    return names;
  };
  const [fixed = '', repeated = ''] = section('ARGV').split(/\bthen per \w+:/);
  return {
    keys: numbered(section('KEYS')),
    args: numbered(fixed),
    each: repeated
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== ''),
  };
}

/** `local a, b = KEYS[1], KEYS[2]` → a 1, b 2. */
function boundKeys(code: readonly string[]): ReadonlyMap<string, number> {
  const bound = new Map<string, number>();
  for (const line of code) {
    const [, names = '', values = ''] = /^local ([\w, ]+) = (.*KEYS\[\d\].*)$/.exec(line) ?? [];
    const list = names.split(',').map((name) => name.trim());
    for (const [position, value] of values.split(',').entries()) {
      const index = /^\s*KEYS\[(\d)\]\s*$/.exec(value)?.[1];
      if (index !== undefined) bound.set(list[position] ?? '', Number(index));
    }
  }
  return bound;
}

/** Every call of Redis with its key. A command that is not a literal has none, and is foreign. */
function calls(code: string): readonly { readonly command: string; readonly key: string }[] {
  return [...code.matchAll(/redis\.p?call\s*\(([^)\n]*)/g)].map(([, inside = '']) => {
    const [first = '', second = '', third = ''] = inside.split(',').map((part) => part.trim());
    const command = /^'([A-Z]+)'$/.exec(first)?.[1] ?? `not a literal: ${first}`;
    return { command, key: KEY_SECOND.includes(command) ? third : second };
  });
}
