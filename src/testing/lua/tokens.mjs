/**
 * The text of a Lua script → its tokens, one at a time. Lua 5.1 as far as scripts for Redis use it; anything else is an error,
 * so that a script is never understood in part.
 */

/** @typedef {'name' | 'keyword' | 'number' | 'string' | 'symbol' | 'end'} Kind */
/** @typedef {{ kind: Kind, text: string, from: number, to: number }} Token */

const KEYWORDS = new Set(
  'and break do else elseif end false for function if in local nil not or repeat return then true until while'.split(
    ' ',
  ),
);
const SPACE = /(?:\s+|--\[\[[\s\S]*?\]\]|--[^\n]*)*/y;
const NAME = /[A-Za-z_]\w*/y;
const NUMBER = /0[xX][\da-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/y;
const QUOTED = /'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*"/y;
const LONG = /\[\[[\s\S]*?\]\]/y;
const SYMBOL = /\.\.\.|\.\.|==|~=|<=|>=|[-+*/%^#<>=(){}[\];:,.]/y;

/**
 * The first token behind a place.
 *
 * @param {string} source
 * @param {number} place
 * @returns {Token}
 */
export function tokenAt(source, place) {
  const from = endOf(SPACE, source, place);
  if (from === source.length) return { kind: 'end', text: '', from, to: from };
  const named = endOf(NAME, source, from);
  if (named > from) {
    const text = source.slice(from, named);
    return { kind: KEYWORDS.has(text) ? 'keyword' : 'name', text, from, to: named };
  }
  const counted = endOf(NUMBER, source, from);
  if (counted > from) return { kind: 'number', text: source.slice(from, counted), from, to: counted };
  const quoted = endOf(QUOTED, source, from);
  if (quoted > from) return { kind: 'string', text: unescaped(source.slice(from + 1, quoted - 1)), from, to: quoted };
  const long = endOf(LONG, source, from);
  if (long > from) {
    return { kind: 'string', text: source.slice(from + 2, long - 2).replace(/^\n/, ''), from, to: long };
  }
  const to = endOf(SYMBOL, source, from);
  if (to > from) return { kind: 'symbol', text: source.slice(from, to), from, to };
  throw new Error(`no Lua: ${source.slice(from, from + 20)}`);
}

/** Where it ends, if it begins there. @param {RegExp} pattern @param {string} source @param {number} from */
function endOf(pattern, source, from) {
  pattern.lastIndex = from;
  return pattern.test(source) ? pattern.lastIndex : from;
}

/** @type {Readonly<Record<string, string>>} */
const ESCAPES = { n: '\n', t: '\t', r: '\r', a: '\x07', b: '\b', f: '\f', v: '\v' };

/** @param {string} text */
function unescaped(text) {
  return text.replace(/\\(\d{1,3}|[\s\S])/g, (_, code) =>
    /\d/.test(code) ? String.fromCharCode(Number(code)) : (ESCAPES[code] ?? code),
  );
}
