/**
 * The text of a Lua script → its tokens. Lua 5.1 as far as scripts for Redis use it; anything else is an error, so that
 * a script is never understood in part.
 */

/** @typedef {{ kind: 'name' | 'keyword' | 'number' | 'string' | 'symbol' | 'end', text: string, at: number }} Token */

const KEYWORDS = new Set(
  'and break do else elseif end false for function if in local nil not or repeat return then true until while'.split(
    ' ',
  ),
);
/** One pattern for all, in this order, as the first use of a script waits for it. */
const KINDS = {
  space: /\s+|--\[\[[\s\S]*?\]\]|--[^\n]*/,
  name: /[A-Za-z_]\w*/,
  number: /0[xX][\da-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/,
  quoted: /'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*"/,
  long: /\[\[[\s\S]*?\]\]/,
  symbol: /\.\.\.|\.\.|==|~=|<=|>=|[-+*/%^#<>=(){}[\];:,.]/,
};
const TOKEN = new RegExp(
  Object.values(KINDS)
    .map(({ source }) => `(${source})`)
    .join('|'),
  'y',
);

/**
 * @param {string} source
 * @returns {readonly Token[]}
 */
export function tokensOf(source) {
  /** @type {Token[]} */
  const tokens = [];
  let at = 0;
  while (at < source.length) {
    TOKEN.lastIndex = at;
    const found = TOKEN.exec(source);
    if (!found) throw new Error(`no Lua: ${source.slice(at, at + 20)}`);
    if (found[1] === undefined) tokens.push(tokenOf(found, at));
    at += found[0].length;
  }
  tokens.push({ kind: 'end', text: '', at });
  return tokens;
}

/** @param {RegExpExecArray} found @param {number} at @returns {Token} */
function tokenOf([all, , name, number, quoted, long], at) {
  if (name !== undefined) return { kind: KEYWORDS.has(name) ? 'keyword' : 'name', text: name, at };
  if (number !== undefined) return { kind: 'number', text: all, at };
  if (quoted !== undefined) return { kind: 'string', text: unescaped(all.slice(1, -1)), at };
  if (long !== undefined) return { kind: 'string', text: all.slice(2, -2).replace(/^\n/, ''), at };
  return { kind: 'symbol', text: all, at };
}

/** @type {Readonly<Record<string, string>>} */
const ESCAPES = { n: '\n', t: '\t', r: '\r', a: '\x07', b: '\b', f: '\f', v: '\v' };

/** @param {string} text */
function unescaped(text) {
  return text.replace(/\\(\d{1,3}|[\s\S])/g, (_, code) =>
    /\d/.test(code) ? String.fromCharCode(Number(code)) : (ESCAPES[code] ?? code),
  );
}
