/**
 * The text of a Lua script → its tokens. Lua 5.1 as far as scripts for Redis use it; anything else is an error, so that
 * a script is never understood in part.
 */

/** @typedef {{ kind: 'name' | 'keyword' | 'number' | 'string' | 'symbol' | 'end', text: string, line: number }} Token */

const KEYWORDS = new Set(
  'and break do else elseif end false for function if in local nil not or repeat return then true until while'.split(
    ' ',
  ),
);
const SPACE = /\s+|--\[\[[\s\S]*?\]\]|--[^\n]*/y;
const NAME = /[A-Za-z_]\w*/y;
const NUMBER = /0[xX][\da-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/y;
const SYMBOL = /\.\.\.|\.\.|==|~=|<=|>=|[-+*/%^#<>=(){}[\];:,.]/y;
const QUOTED = /'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*"/y;
const LONG = /\[\[([\s\S]*?)\]\]/y;

/**
 * @param {string} source
 * @returns {readonly Token[]}
 */
export function tokensOf(source) {
  /** @type {Token[]} */
  const tokens = [];
  let line = 1;
  let at = 0;

  /** @param {RegExp} pattern */
  function take(pattern) {
    pattern.lastIndex = at;
    const found = pattern.exec(source);
    if (!found) return undefined;
    at += found[0].length;
    line += found[0].split('\n').length - 1;
    return found;
  }

  while (true) {
    while (take(SPACE));
    if (at >= source.length) break;
    tokens.push({ ...next(take, source.slice(at, at + 20)), line });
  }
  return [...tokens, { kind: 'end', text: '', line }];
}

/**
 * @param {(pattern: RegExp) => RegExpExecArray | undefined} take
 * @param {string} shown
 * @returns {Omit<Token, 'line'>}
 */
function next(take, shown) {
  const name = take(NAME)?.[0];
  if (name !== undefined) return { kind: KEYWORDS.has(name) ? 'keyword' : 'name', text: name };
  const number = take(NUMBER)?.[0];
  if (number !== undefined) return { kind: 'number', text: number };
  const quoted = take(QUOTED)?.[0];
  if (quoted !== undefined) return { kind: 'string', text: unescaped(quoted.slice(1, -1)) };
  const long = take(LONG)?.[1];
  if (long !== undefined) return { kind: 'string', text: long.replace(/^\n/, '') };
  const symbol = take(SYMBOL)?.[0];
  if (symbol !== undefined) return { kind: 'symbol', text: symbol };
  throw new Error(`no Lua: ${shown}`);
}

/** @type {Readonly<Record<string, string>>} */
const ESCAPES = { n: '\n', t: '\t', r: '\r', a: '\x07', b: '\b', f: '\f', v: '\v' };

/** @param {string} text */
function unescaped(text) {
  return text.replace(/\\(\d{1,3}|[\s\S])/g, (_, code) =>
    /\d/.test(code) ? String.fromCharCode(Number(code)) : (ESCAPES[code] ?? code),
  );
}
