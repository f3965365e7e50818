/**
 * The rules of Lua: the first lines of a script bind everything it touches, and `src/redis/scripts/scripts.ts` says the same.
 * Callers pass names, so a header and a table that disagree would write one thing into the place of another.
 *
 *     -- verb: what moves from where to where.
 *     -- USES  clock, run
 *     -- KEYS  1 leader  2 scheduled
 *     -- ARGV  1 now  2 term  then per job: member, record
 *     -- RETURN every reply
 *
 * What scripts share is in parts, which are put between the header and the script's own lines:
 *
 *     -- part: what it is about.
 *     -- GIVES   its functions
 *     -- USED BY  the scripts that name it
 *     -- NEEDS   parts that come before it
 *     -- RULE    what holds because this is written once
 */
import { describe, expect, test } from 'vitest';
import { assembledScript, partsNamed } from '../lua/assemble.mjs';
import { scripts } from '../src/redis/scripts/script-table.ts';
import { bindingsOf, boundKeys, callsIn, givenBy, isPacked, sourcesIn } from './support/lua-source.ts';
import { read } from './support/repository.ts';

const LINES_MAX = 80;
const COLUMNS_MAX = 100;

interface Script {
  readonly keys: readonly string[];
  readonly args: readonly string[];
  readonly each?: readonly string[];
}
const table = new Map<string, Script>(Object.entries(scripts));
const verbs = sourcesIn('verbs');
const parts = sourcesIn('lib');
/** Everything that parts give, and which part gives it. */
const given = new Map(
  parts.flatMap((part) => [...givenBy(part)].map(([name, params]) => [name, { part: part.name, params }])),
);
const keyNames = new Set(verbs.flatMap(({ lines }) => headerOf(lines).keys));

/** Commands whose first argument is a word of their own and whose key comes second. */
const KEY_SECOND = ['XINFO', 'XGROUP', 'OBJECT'];
/** Commands without a key. */
const NO_KEY = ['TIME'];

test('every script has a line in the table and every line a script', () => {
  expect(verbs.map(({ name }) => name).toSorted()).toEqual([...table.keys()].toSorted());
});

/** The one call whose command is not ours: what a handler commits with its job, on a key the call declares in KEYS. */
const HANDLERS_EFFECT = 'redis.pcall(ARGV[at + 1], KEYS[index], unpack(ARGV, at + 2, at + 1 + size))';

describe.each([...verbs, ...parts])('$path', ({ name, lines, code }) => {
  test('says in its first line what it does', () => {
    expect(lines.find((line) => line.startsWith('--'))).toMatch(new RegExp(`^-- ${name}: [a-z].+`));
  });

  test(`has at most ${LINES_MAX} lines of code, of at most ${COLUMNS_MAX} columns`, () => {
    expect(code.length).toBeLessThanOrEqual(LINES_MAX);
    expect(lines.filter((line) => line.length > COLUMNS_MAX)).toEqual([]);
  });

  test('has one statement per line', () => {
    expect(code.filter(isPacked)).toEqual([]);
  });

  test('never decodes a payload', () => {
    expect(code.filter((line) => /\bc(json|msgpack)\b/.test(line))).toEqual([]);
  });

  test('reads the clock and the run record by the parts that do', () => {
    const rules = { clock: /'TIME'/, run: /(%d\+\)? \(?){4}/ };
    const own = Object.entries(rules).filter(([part, rule]) => part !== name && code.some((line) => rule.test(line)));
    expect(own).toEqual([]);
  });
});

describe.each(verbs)('$path', (script) => {
  const { name: verb, lines, code, text } = script;
  const header = headerOf(lines);
  const bindings = bindingsOf(script);
  const bound = boundKeys(bindings);
  const named = partsNamed(text);

  test('has the keys, arguments and repeated arguments that the table names, in that order', () => {
    const { keys, args, each = [] } = table.get(verb) ?? { keys: [], args: [] };
    expect(header).toEqual({ keys, args, each });
  });

  test('says what it replies', () => {
    expect(lines.some((line) => /^-- RETURN\s+\S/.test(line))).toBe(true);
  });

  test('binds its keys and arguments once, in its first lines, keys by the names of its header', () => {
    const fixed = [...code.join('\n').matchAll(/\b(KEYS|ARGV)\[(\d+)\]/g)]
      .filter(([, list, index]) => Number(index) <= (list === 'KEYS' ? header.keys : header.args).length)
      .map(([all]) => all);
    const first = [...bindings.join('\n').matchAll(/\b(KEYS|ARGV)\[\d+\]/g)].map(([all]) => all);
    expect(fixed.filter((one, at) => fixed.indexOf(one) !== at)).toEqual([]);
    expect(fixed.filter((one) => !first.includes(one))).toEqual([]);
    const wrong = [...bound].filter(([name, index]) => header.keys[index - 1] !== name.replace('keys.', ''));
    expect(wrong).toEqual([]);
  });

  test('touches nothing but its keys', () => {
    const foreign = calls(code.join('\n').replaceAll(HANDLERS_EFFECT, ''))
      .filter(({ command, key }) => !NO_KEY.includes(command) && !bound.has(key))
      .map(({ command, key }) => `${command} ${key}`);
    expect(foreign).toEqual([]);
  });

  test('hands its keys to parts by their names', () => {
    expect(misplaced(script, (key) => bound.has(key) && !key.startsWith('keys.'))).toEqual([]);
    const asked = named.flatMap((name) =>
      [...(sourceOf(name)?.text ?? '').matchAll(/\bkeys\.\w+/g)].map(([key]) => key),
    );
    expect(asked.filter((key) => !bound.has(key))).toEqual([]);
  });

  test('names the parts it uses, and no other', () => {
    const used = new Set(wordsOf(code).flatMap((word) => given.get(word)?.part ?? []));
    const needed = new Set(named.flatMap((name) => partsNamed(sourceOf(name)?.text ?? '')));
    expect(named.filter((name) => sourceOf(name) === undefined)).toEqual([]);
    expect([...used, ...needed].filter((name) => !named.includes(name))).toEqual([]);
    expect(named.filter((name) => !used.has(name) && !needed.has(name))).toEqual([]);
    // A part comes after those it needs.
    const early = named.filter((name, at) =>
      partsNamed(sourceOf(name)?.text ?? '').some((one) => named.indexOf(one) > at),
    );
    expect(early).toEqual([]);
  });

  test('is put together with its flags and header first, as it lies in `lua/`', () => {
    expect(read(`lua/${verb}.lua`)).toBe(assembledScript(verb));
    expect(read(`lua/${verb}.lua`)).toMatch(new RegExp(`^#!lua( flags=\\S+)?\n-- ${verb}: `));
  });
});

describe.each(parts)('$path', (part) => {
  test('says what it gives, by whom it is used, what it needs and what holds', () => {
    const users = verbs.filter(({ text }) => partsNamed(text).includes(part.name)).map(({ name }) => name);
    expect(users.length).toBeGreaterThan(0);
    expect(/^-- USED BY +([^\n]*(?:\n-- {10}[^\n]*)*)/m.exec(part.text)?.[1]?.match(/[a-z][a-z-]*/g)).toEqual(users);
    for (const line of ['GIVES', 'RULE']) expect(part.text).toMatch(new RegExp(`^-- ${line} +\\S`, 'm'));
    const own = givenBy(part);
    const foreign = wordsOf(part.code).flatMap((word) => (own.has(word) ? [] : (given.get(word)?.part ?? [])));
    expect([...new Set(foreign)].toSorted()).toEqual(partsNamed(part.text).toSorted());
  });

  test('gives what no other part gives, and nothing that nobody uses', () => {
    const names = [...givenBy(part).keys()];
    expect(names.filter((name) => given.get(name)?.part !== part.name)).toEqual([]);
    const all = [...verbs, ...parts].flatMap(({ code }) => wordsOf(code));
    const uses = (name: string) => all.filter((word) => word === name).length - (/^[A-Z_]+$/.test(name) ? 0 : 1);
    expect(names.filter((name) => uses(name) < 1)).toEqual([]);
  });

  test('touches nothing but the keys it is given, each by its name', () => {
    const inside = part.code
      .join('\n')
      .split(/^local function /m)
      .slice(1);
    const foreign = inside.flatMap((text) => {
      const params = (/\((.*)\)/.exec(text)?.[1] ?? '').split(', ');
      const isGiven = (key: string) =>
        keyNames.has(key.replace('keys.', '')) && params.includes(key.split('.')[0] === 'keys' ? 'keys' : key);
      return calls(text).filter(({ command, key }) => !NO_KEY.includes(command) && !isGiven(key));
    });
    expect(foreign).toEqual([]);
    expect(misplaced(part, () => true)).toEqual([]);
  });
});

test.each([
  "if not now then local t = redis.call('TIME') now = t[1] end",
  'for _, one in ipairs(all) do seen[one] = true end',
  'local a = 1 local b = 2',
  'a = 1; b = 2',
  "redis.call('A', b) redis.call('C', d)",
  'if a then b = c else d = e end',
  'local function f(a) return a end',
  'if a then return b else return c end',
  'if a then break end',
])('a line of several statements is noticed: %s', (line) => {
  expect(isPacked(line)).toBe(true);
});

test.each([
  "if redis.call('GET', leader) ~= term then return { 'fenced' } end",
  "local a, b = (c == d and 'x; then y' or e), { f = g, h = i }",
  "return asked .. header:gsub(';[elp]=%w+', '')",
  'until a == b or c',
])('a line of one statement is not: %s', (line) => {
  expect(isPacked(line)).toBe(false);
});

const sourceOf = (name: string) => parts.find((part) => part.name === name);

/** Names that stand alone: no fields, no keys of a table. */
const wordsOf = (code: readonly string[]): readonly string[] =>
  code.flatMap((line) => line.replace(/'(?:\\.|[^'\\])*'/g, "''").match(/(?<![.:\w])[A-Za-z_]\w*\b(?! =[^=])/g) ?? []);

/** Calls of parts in which a key is handed on in the place of another. */
function misplaced(source: Parameters<typeof callsIn>[0], isOurs: (key: string) => boolean): readonly string[] {
  return callsIn(source).flatMap(({ name, args, within }) => {
    const params = given.get(name)?.params ?? [];
    return params.flatMap((param, at) => {
      const arg = args[at] ?? '';
      if (param !== 'keys' && !keyNames.has(param)) return [];
      const isRight = arg === param && (isOurs(arg) || within.includes(arg) || arg === 'keys');
      return isRight || arg === `keys.${param}` ? [] : [`${name}: ${arg} for ${param}`];
    });
  });
}

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

/** Every call of Redis with its key. A command that is not a literal has none, and is foreign. */
function calls(code: string): readonly { readonly command: string; readonly key: string }[] {
  return [...code.matchAll(/redis\.p?call\s*\(([^)]*)/g)].map(([, inside = '']) => {
    const words = inside.split(',').map((part) => part.trim());
    const [first = '', second = '', third = ''] = words;
    const command = /^'([A-Z]+)'$/.exec(first)?.[1] ?? `not a literal: ${first}`;
    if (command === 'XREADGROUP') return { command, key: words[words.indexOf("'STREAMS'") + 1] ?? '' };
    return { command, key: KEY_SECOND.includes(command) ? third : second };
  });
}
