/** Lua as the house test sees it: what the lines of a script say, as far as its rules need to know. */
import { namesIn } from '../../lua/assemble.mjs';
import { read } from './repository.ts';

export interface Source {
  readonly path: string;
  readonly name: string;
  readonly text: string;
  readonly lines: readonly string[];
  /** Without comments and empty lines. */
  readonly code: readonly string[];
}

const isCode = (line: string): boolean => !/^\s*(--|#!|$)/.test(line);

/** Scripts or parts, as the repository keeps them. */
export const sourcesIn = (kind: 'verbs' | 'lib'): readonly Source[] =>
  namesIn(kind).map((name) => {
    const path = `lua/${kind}/${name}.lua`;
    const text = read(path);
    const lines = text.split('\n');
    return { path, name, text, lines, code: lines.filter(isCode) };
  });

/** The lines that bind keys and arguments: those before the first that is about something else. */
export function bindingsOf({ lines }: Source): readonly string[] {
  const from = lines.findIndex(isCode);
  const rest = lines.slice(from);
  const to = rest.findIndex((line) => line === '' || !isBinding(line));
  return rest.slice(0, to);
}

const isBinding = (line: string): boolean => /^(local (?!function)| {2})/.test(line) && !/\bredis\./.test(line);

/** `local a, b = KEYS[1], KEYS[2]` → a 1, b 2; `local keys = { a = a, c = KEYS[3] }` → keys.a 1, keys.c 3. */
export function boundKeys(lines: readonly string[]): ReadonlyMap<string, number> {
  const bound = new Map<string, number>();
  for (const statement of lines.join(' ').split(/ (?=local )/)) {
    const [, fields] = /^local keys = \{(.*)\}/.exec(statement) ?? [];
    const [, names = '', values = ''] = /^local ([\w, ]+) = (.*)$/.exec(statement) ?? [];
    const pairs = fields === undefined ? paired(names, values) : fieldsOf(fields);
    for (const [name, value] of pairs) {
      const index = /^KEYS\[(\d+)\]$/.exec(value)?.[1] ?? bound.get(value);
      if (index !== undefined) bound.set(name, Number(index));
    }
  }
  return bound;
}

type Pair = readonly [name: string, value: string];
const split = (list: string): readonly string[] => list.split(',').map((one) => one.trim());
const paired = (names: string, values: string): readonly Pair[] =>
  split(names).map((name, at) => [name, split(values)[at] ?? '']);
const fieldsOf = (text: string): readonly Pair[] =>
  split(text).map((field) => [`keys.${field.split(' = ')[0]}`, field.split(' = ')[1] ?? '']);

/** Texts and comments away, so that what is left is structure. */
const bare = (line: string): string => line.replace(/'(?:\\.|[^'\\])*'/g, "''").replace(/\s*--.*$/, '');

/** What stands outside of brackets. */
function outside(line: string): string {
  let depth = 0;
  let text = '';
  for (const sign of line) {
    if ('({['.includes(sign)) depth += 1;
    if (depth === 0) text += sign;
    if (')}]'.includes(sign)) {
      depth = Math.max(0, depth - 1);
      if (depth === 0) text += sign;
    }
  }
  return text;
}

/** Whether a line holds more than one statement. A guard, `if … then return … end`, is one. */
export function isPacked(line: string): boolean {
  const text = bare(line).trim();
  const guard = /^if (?:(?!\bthen\b).)* then return\b(.*) end$/.exec(text);
  if (guard) return /\b(then|else|elseif|do|function|end)\b|;/.test(guard[1] ?? '');
  const flat = outside(text);
  // Fields of a table that goes over several lines are no statements.
  const isInside = /,$|^[^{]*\}$/.test(text);
  return (
    /;/.test(text) ||
    /\b(then|do|else|repeat)\s+\S/.test(text) ||
    /\bfunction\b[^(]*\([^)]*\)\s*\S/.test(text) ||
    /\S\s+(end|return|break|local)\b/.test(text) ||
    (!isInside && (flat.match(/[^=~<>]=(?!=)/g) ?? []).length > 1) ||
    /[)\]}]\s+(?!(and|or|then|do)\b)[A-Za-z_]/.test(flat)
  );
}

/** The functions and constants that a part gives. Helpers of its own come with them: a script has them all. */
export function givenBy({ code }: Source): ReadonlyMap<string, readonly string[]> {
  const found = code.flatMap((line) => {
    const [, name, params] = /^local (?:function )?(\w+)(?:\((.*)\)| = )/.exec(line) ?? [];
    return name === undefined ? [] : [[name, (params ?? '').split(',').map((param) => param.trim())] as const];
  });
  return new Map(found);
}

export interface Call {
  readonly name: string;
  readonly args: readonly string[];
  /** Names of the parameters of the function that it is in; none outside of one. */
  readonly within: readonly string[];
}

/** Calls of functions by their name, with what stands between the brackets. */
export function callsIn({ code }: Source): readonly Call[] {
  const text = code.map((line) => line.replaceAll("'('", "''").replaceAll("')'", "''")).join('\n');
  return [...text.matchAll(/(?<![.:\w])(?<!function )([a-z]\w*)\(/g)].map(({ 1: name = '', index, 0: all }) => {
    const before = text.slice(0, index);
    const from = Math.max(before.lastIndexOf('\nlocal function '), before.lastIndexOf('\nfunction '));
    const isClosed = /\nend(\n|$)/.test(before.slice(from + 1));
    const params = from === -1 || isClosed ? '' : (/\(([^)]*)\)/.exec(before.slice(from))?.[1] ?? '');
    return { name, args: argumentsAt(text, index + all.length), within: params.split(',').map((one) => one.trim()) };
  });
}

function argumentsAt(text: string, from: number): readonly string[] {
  const args = [''];
  let depth = 0;
  for (const sign of text.slice(from)) {
    if (')}'.includes(sign) && depth === 0) break;
    if ('({'.includes(sign)) depth += 1;
    if (')}'.includes(sign)) depth -= 1;
    if (sign === ',' && depth === 0) args.push('');
    else args.push(`${args.pop() ?? ''}${sign}`);
  }
  return args.map((arg) => arg.trim());
}
