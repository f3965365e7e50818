/**
 * EDN, the notation of Clojure, as far as histories of Jepsen need it. A keyword is a symbol of JavaScript here
 * (`Symbol.for('ok')` is `:ok`), a vector or a list an array, a map whose keys are all keywords an object, and any other
 * map a `Map`. A tag, such as `#jepsen.history.Op`, is read over: what follows it is the value.
 */

/**
 * @param {unknown} value
 * @returns {string}
 */
export function ednOf(value) {
  if (value === null || value === undefined) return 'nil';
  if (typeof value === 'symbol') return `:${value.description}`;
  if (typeof value === 'string') return textOf(value);
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') return String(value);
  if (Array.isArray(value)) return `[${value.map(ednOf).join(' ')}]`;
  const pairs = value instanceof Map ? [...value] : Object.entries(value).map(([name, of]) => [Symbol.for(name), of]);
  return `{${pairs.map(([key, of]) => `${ednOf(key)} ${ednOf(of)}`).join(', ')}}`;
}

/** Strings of EDN know fewer escapes than those of JSON: all else stands as it is. @param {string} text */
const textOf = (text) => `"${text.replaceAll(/["\\]/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\r', '\\r')}"`;

/**
 * All values of a text, in their order.
 *
 * @param {string} text
 * @returns {readonly unknown[]}
 */
export function readEdn(text) {
  const words = (text.match(WORD) ?? []).filter((word) => !word.startsWith(';'));
  const reader = { words, at: 0 };
  const values = [];
  while (reader.at < words.length) {
    const value = next(reader);
    if (value !== NOTHING) values.push(value);
  }
  return values;
}

/** A string, a comment, a character, a bracket, or a word. Commas are white space. */
const WORD = /"(?:\\.|[^"\\])*"|;[^\n]*|\\[^\s()[\]{}]+|#_|#\{|[()[\]{}]|[^\s,;()[\]{}"]+/g;
const CLOSING = { '(': ')', '[': ']', '{': '}', '#{': '}' };
const ESCAPED = { n: '\n', r: '\r', t: '\t' };
/** What `#_` leaves of a value. */
const NOTHING = Symbol('nothing');

/** @typedef {{ readonly words: readonly string[], at: number }} Reader */

/** @param {Reader} reader @returns {unknown} */
function next(reader) {
  const word = reader.words[reader.at];
  if (word === undefined) throw new Error('the text ends where a value should be');
  reader.at += 1;
  if (word === '#_') {
    next(reader);
    return NOTHING;
  }
  if (word in CLOSING) return collection(reader, /** @type {keyof typeof CLOSING} */ (word));
  if (word.startsWith('#')) return next(reader);
  if (/^[)\]}]$/.test(word)) throw new Error(`nothing was opened that ${word} closes, at word ${reader.at}`);
  return atomOf(word);
}

/** @param {Reader} reader @param {keyof typeof CLOSING} opening @returns {unknown} */
function collection(reader, opening) {
  /** @type {unknown[]} */
  const values = [];
  while (reader.words[reader.at] !== CLOSING[opening]) {
    const value = next(reader);
    if (value !== NOTHING) values.push(value);
  }
  reader.at += 1;
  if (opening === '#{') return new Set(values);
  if (opening !== '{') return values;
  if (values.length % 2 === 1) throw new Error(`a map with ${values.length} words; allowed: a value for each key`);
  const pairs = values.flatMap((key, at) => (at % 2 === 0 ? [/** @type {const} */ ([key, values[at + 1]])] : []));
  if (!pairs.every(([key]) => typeof key === 'symbol')) return new Map(pairs);
  return Object.fromEntries(pairs.map(([key, of]) => [typeof key === 'symbol' ? key.description : '', of]));
}

/** @param {string} word @returns {unknown} */
function atomOf(word) {
  if (word.startsWith('"')) {
    return word.slice(1, -1).replaceAll(/\\(.)/g, (_all, letter) => ESCAPED[/** @type {'n'} */ (letter)] ?? letter);
  }
  if (word.startsWith(':')) return Symbol.for(word.slice(1));
  if (/^[-+]?\d+N?$/.test(word)) return Number(word.replace('N', ''));
  if (/^[-+]?\d+(\.\d*)?([eE][-+]?\d+)?M?$/.test(word)) return Number(word.replace('M', ''));
  if (word === 'nil') return null;
  if (word === 'true' || word === 'false') return word === 'true';
  // A character, or a name: neither means anything to us.
  return word;
}
