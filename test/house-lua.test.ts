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
 *     -- NEEDS   parts that come before it
 *     -- RULE    what holds because this is written once
 */
import { expect, test } from 'vitest';
import { assembledScript, partsNamed } from '../lua/assemble.mjs';
import { type Late, scriptsByVerb } from '../src/redis/scripts/script-table.ts';
import { bindingsOf, boundKeys, callsIn, givenBy, isPacked, type Source, sourcesIn } from './support/lua-source.ts';
import { read } from './support/repository.ts';

const LINES_MAX = 110;
const COLUMNS_MAX = 100;

interface Script {
  readonly late: Late;
  readonly keys: readonly string[];
  readonly args: readonly string[];
  readonly each?: readonly string[];
}
const table = new Map<string, Script>(scriptsByVerb);
const verbs = sourcesIn('verbs');
const parts = sourcesIn('lib');
const all = [...verbs, ...parts];
/** Everything that parts give, and which part gives it. */
const given = new Map(
  parts.flatMap((part) => [...givenBy(part)].map(([name, params]) => [name, { part: part.name, params }])),
);
const keyNames = new Set(verbs.flatMap(({ lines }) => headerOf(lines).keys));

/** Commands whose first argument is a word of their own and whose key comes second. */
const KEY_SECOND = ['XINFO', 'XGROUP', 'OBJECT'];
/** Commands without a key. */
const NO_KEY = ['TIME'];
/** The one channel whose name a part makes itself, from that of `meta`: docs/decisions/0020. It holds nothing. */
const isMade = ({ command, key }: { readonly command: string; readonly key: string }) =>
  command === 'SPUBLISH' && (key === 'over' || key === 'stop');

/** The one call whose command is not ours: what a handler commits with its job, on a key the call declares in KEYS. */
const HANDLERS_EFFECT = 'redis.pcall(ARGV[at + 1], KEYS[index], unpack(ARGV, at + 2, at + 1 + size))';

/** Runs a rule over files of Lua. It gives what is wrong in each, and the report names the file. */
const broken = (of: readonly Source[], rule: (source: Source) => readonly unknown[]): readonly string[] =>
  of.flatMap((source) => rule(source).map((what) => `${source.path}: ${String(what)}`));

test('every script has a line in the table and every line a script, with the same names in the same order', () => {
  expect(verbs.map(({ name }) => name).toSorted()).toEqual([...table.keys()].toSorted());
  const headers = verbs.map(({ name, lines }) => [name, headerOf(lines)]);
  const rows = verbs.map(({ name }) => {
    const { keys = [], args = [], each = [] }: Partial<Script> = table.get(name) ?? {};
    return [name, { keys, args, each }];
  });
  expect(headers).toEqual(rows);
});

test('a file says in its first line what it does, a script what it replies, and a part what it gives and guards', () => {
  const wrong = broken(all, ({ name, lines }) => {
    const first = lines.find((line) => line.startsWith('--')) ?? 'no comment';
    return new RegExp(`^-- ${name}: [a-z].+`).test(first) ? [] : [first];
  });
  const lacks = (label: string) => (source: Source) =>
    new RegExp(`^-- ${label} +\\S`, 'm').test(source.text) ? [] : [`no ${label}`];
  const unsaid = [...broken(verbs, lacks('RETURN')), ...broken(parts, lacks('GIVES')), ...broken(parts, lacks('RULE'))];
  expect([...wrong, ...unsaid]).toEqual([]);
});

test(`a file has at most ${LINES_MAX} lines of code and ${COLUMNS_MAX} columns, and one statement per line`, () => {
  const wrong = broken(all, ({ lines, code }) => [
    ...(code.length > LINES_MAX ? [`${code.length} lines of code`] : []),
    ...lines.filter((line) => line.length > COLUMNS_MAX),
    ...code.filter(isPacked),
  ]);
  expect(wrong).toEqual([]);
});

test('no file decodes a payload, and only the parts for it read the clock and the run record', () => {
  const rules = { clock: /'TIME'/, run: /(%d\+\)? \(?){4}/ };
  const wrong = broken(all, ({ name, code }) => [
    ...code.filter((line) => /\bc(json|msgpack)\b/.test(line)),
    ...Object.entries(rules).flatMap(([part, rule]) => (part === name ? [] : code.filter((line) => rule.test(line)))),
  ]);
  expect(wrong).toEqual([]);
});

test('a script binds its keys and arguments once, in its first lines, keys by the names of its header', () => {
  const wrong = broken(verbs, (script) => {
    const header = headerOf(script.lines);
    const bindings = bindingsOf(script);
    const fixed = [...script.code.join('\n').matchAll(/\b(KEYS|ARGV)\[(\d+)\]/g)]
      .filter(([, list, index]) => Number(index) <= (list === 'KEYS' ? header.keys : header.args).length)
      .map(([whole]) => whole);
    const first = [...bindings.join('\n').matchAll(/\b(KEYS|ARGV)\[\d+\]/g)].map(([whole]) => whole);
    return [
      ...fixed.filter((one, at) => fixed.indexOf(one) !== at).map((one) => `${one} is bound twice`),
      ...fixed.filter((one) => !first.includes(one)).map((one) => `${one} is bound late`),
      ...[...boundKeys(bindings)].filter(([name, index]) => header.keys[index - 1] !== name.replace('keys.', '')),
    ];
  });
  expect(wrong).toEqual([]);
});

test('a script touches nothing but its keys, and a part nothing but those that it is given, by their names', () => {
  const foreign = broken(verbs, ({ code, ...script }) => {
    const bound = boundKeys(bindingsOf({ code, ...script }));
    return calls(code.join('\n').replaceAll(HANDLERS_EFFECT, ''))
      .filter(({ command, key }) => !NO_KEY.includes(command) && !bound.has(key))
      .map(({ command, key }) => `${command} ${key}`);
  });
  const inParts = broken(parts, ({ code }) => {
    const functions = code
      .join('\n')
      .split(/^local function /m)
      .slice(1);
    return functions.flatMap((text) => {
      const params = (/\((.*)\)/.exec(text)?.[1] ?? '').split(', ');
      const isGiven = (key: string) =>
        keyNames.has(key.replace('keys.', '')) && params.includes(key.split('.')[0] === 'keys' ? 'keys' : key);
      return calls(text)
        .filter((call) => !NO_KEY.includes(call.command) && !isGiven(call.key) && !isMade(call))
        .map(({ command, key }) => `${command} ${key}`);
    });
  });
  expect([...foreign, ...inParts]).toEqual([]);
});

test('a script that changes something is refused when it comes late, fenced, or harmless whenever it comes', () => {
  const wrong = broken(verbs, ({ name, text, lines, code }) => {
    const { args, each } = headerOf(lines);
    const late = table.get(name)?.late;
    const isBounded = args[0] === 'now' && partsNamed(text).includes('clock');
    const looksFirst = code
      .slice(
        0,
        code.findIndex((line) => line.includes('redis.')),
      )
      .join('')
      .includes('clock(ARGV[1])');
    return [
      ...(late === 'refused' && !(isBounded && looksFirst) ? ['it does not look at its end before all else'] : []),
      ...(late === 'fenced' && ![...args, ...each].some((one) => one === 'term' || one === 'entry')
        ? ['no fence']
        : []),
      ...((late === 'reads') !== (/^#!lua .*no-writes/.test(text) || name.startsWith('check-')) ? [`${late}?`] : []),
    ];
  });
  expect(wrong).toEqual([]);
});

test('keys are handed to parts by their names', () => {
  const inScripts = broken(verbs, (script) => {
    const bound = boundKeys(bindingsOf(script));
    const asked = partsNamed(script.text).flatMap((name) =>
      [...(sourceOf(name)?.text ?? '').matchAll(/\bkeys\.\w+/g)].map(([key]) => key),
    );
    return [
      ...misplaced(script, (key) => bound.has(key) && !key.startsWith('keys.')),
      ...asked.filter((key) => !bound.has(key)),
    ];
  });
  expect([...inScripts, ...broken(parts, (part) => misplaced(part, () => true))]).toEqual([]);
});

test('a script and a part name the parts that they use, each after those it needs, and no other', () => {
  const inScripts = broken(verbs, ({ text, code }) => {
    const named = partsNamed(text);
    const used = new Set(wordsOf(code).flatMap((word) => given.get(word)?.part ?? []));
    const needed = new Set(named.flatMap((name) => partsNamed(sourceOf(name)?.text ?? '')));
    return [
      ...named.filter((name) => sourceOf(name) === undefined).map((name) => `${name} is no part`),
      ...[...used, ...needed].filter((name) => !named.includes(name)).map((name) => `${name} is not named`),
      ...named.filter((name) => !used.has(name) && !needed.has(name)).map((name) => `${name} is not used`),
      ...named
        .filter((name, at) => partsNamed(sourceOf(name)?.text ?? '').some((one) => named.indexOf(one) > at))
        .map((name) => `${name} comes too early`),
    ];
  });
  const inParts = broken(parts, (part) => {
    const own = givenBy(part);
    const foreign = wordsOf(part.code).flatMap((word) => (own.has(word) ? [] : (given.get(word)?.part ?? [])));
    const needs = partsNamed(part.text);
    return [
      ...[...new Set(foreign)].filter((name) => !needs.includes(name)).map((name) => `${name} is not named`),
      ...needs.filter((name) => !foreign.includes(name)).map((name) => `${name} is not used`),
      ...(verbs.some(({ text }) => partsNamed(text).includes(part.name)) ? [] : ['no script uses it']),
    ];
  });
  expect([...inScripts, ...inParts]).toEqual([]);
});

test('a part gives what no other part gives, and nothing that nobody uses', () => {
  const words = all.flatMap(({ code }) => wordsOf(code));
  const uses = (name: string) => words.filter((word) => word === name).length - (/^[A-Z_]+$/.test(name) ? 0 : 1);
  const wrong = broken(parts, (part) => {
    const names = [...givenBy(part).keys()];
    return [
      ...names.filter((name) => given.get(name)?.part !== part.name).map((name) => `${name} is given twice`),
      ...names.filter((name) => uses(name) < 1).map((name) => `nobody uses ${name}`),
    ];
  });
  expect(wrong).toEqual([]);
});

test('a script is assembled with its flags and header first, as it lies in `lua/`', () => {
  const wrong = broken(verbs, ({ name }) => {
    const text = read(`lua/${name}.lua`);
    return [
      ...(text === assembledScript(name) ? [] : ['it is not what its parts make']),
      ...(new RegExp(`^#!lua( flags=\\S+)?\n-- ${name}: `).test(text) ? [] : ['its header is not first']),
    ];
  });
  expect(wrong).toEqual([]);
});

test('a line of several statements is noticed, and a line of one is not', () => {
  const several = [
    "if not now then local t = redis.call('TIME') now = t[1] end",
    'for _, one in ipairs(all) do seen[one] = true end',
    'local a = 1 local b = 2',
    'a = 1; b = 2',
    "redis.call('A', b) redis.call('C', d)",
    'if a then b = c else d = e end',
    'local function f(a) return a end',
    'if a then return b else return c end',
    'if a then break end',
  ];
  const one = [
    "if redis.call('GET', leader) ~= term then return { 'fenced' } end",
    "local a, b = (c == d and 'x; then y' or e), { f = g, h = i }",
    "return asked .. header:gsub(';[elp]=%w+', '')",
    'until a == b or c',
  ];
  expect(several.filter((line) => !isPacked(line))).toEqual([]);
  expect(one.filter(isPacked)).toEqual([]);
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
function headerOf(lines: readonly string[]): Required<Omit<Script, 'late'>> {
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
