/**
 * What a compiled script calls: operators, indexing, calls, and the global functions that Redis gives a script. A
 * script that does what Lua would refuse gets a LuaError here as well.
 */
import { compile } from './compile.mjs';
import { general, numberOf } from './numbers.mjs';
import { numeral, stringsOf } from './strings.mjs';
import { LuaError, LuaTable } from './table.mjs';

/** @typedef {import('./table.mjs').Value} Value */
/** @typedef {import('./table.mjs').LuaFunction} LuaFunction */

/** @param {Value} value */
function text(value) {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return general(value, 14);
  throw new LuaError(`attempt to concatenate a ${typeOf(value)} value`);
}

/** @param {Value} value */
function shown(value) {
  if (value === undefined) return 'nil';
  return typeof value === 'boolean' ? String(value) : typeof value === 'object' ? 'table: 0x0' : text(value);
}

/** @param {Value} value */
function typeOf(value) {
  if (value === undefined) return 'nil';
  return value instanceof LuaTable ? 'table' : typeof value;
}

const strings = stringsOf(shown);
/** @type {Readonly<Record<string, LuaFunction>>} */
const stringFunctions = Object.fromEntries(
  Object.entries(strings).map(([name, call]) => [name, (of, ...args) => call(text(of), ...args)]),
);

const operators = {
  text,
  number: numeral,
  /** @param {Value} value */
  truth: (value) => value !== undefined && value !== false,
  /** @param {Value} a @param {Value} b */
  modulo: (a, b) => numeral(a) - Math.floor(numeral(a) / numeral(b)) * numeral(b),
  /** @param {Value} a @param {Value} b */
  less: (a, b) => comparable(a, b) && /** @type {string} */ (a) < /** @type {string} */ (b),
  /** @param {Value} a @param {Value} b */
  lessEqual: (a, b) => comparable(a, b) && /** @type {string} */ (a) <= /** @type {string} */ (b),
  /** @param {Value} of */
  length(of) {
    if (typeof of === 'string' || of instanceof LuaTable) return of.length;
    throw new LuaError(`attempt to get length of a ${typeOf(of)} value`);
  },
  /** @param {readonly Value[]} items @param {readonly (readonly [Value, Value])[]} pairs */
  table: (items, pairs) => new LuaTable(items, pairs),
  /** @param {Value} of @param {Value} key @returns {Value} */
  index(of, key) {
    if (of instanceof LuaTable) return of.get(key);
    if (typeof of === 'string' && typeof key === 'string') return stringFunctions[key];
    throw new LuaError(`attempt to index a ${typeOf(of)} value`);
  },
  /** @param {Value} of @param {Value} key @param {Value} value */
  put(of, key, value) {
    if (!(of instanceof LuaTable)) throw new LuaError(`attempt to index a ${typeOf(of)} value`);
    of.set(key, value);
  },
  /** @param {Value} value */
  called(value) {
    if (typeof value === 'function') return value;
    throw new LuaError(`attempt to call a ${typeOf(value)} value`);
  },
  /** @param {Value} of @param {string} name @param {readonly Value[]} args */
  method(of, name, args) {
    const found = typeof of === 'string' ? strings[name] : undefined;
    if (found && typeof of === 'string') return found(of, ...args);
    throw new LuaError(`attempt to call method ${name} of a ${typeOf(of)} value`);
  },
  /** @param {Value} over @returns {Iterable<readonly Value[]>} */
  each: (over) => {
    if (over instanceof Walk) return over.over;
    if (typeof over === 'function') return called(over);
    throw new LuaError('for needs pairs, ipairs or a function');
  },
};

/** What a function returns each time, until it returns nothing: the iterator of gmatch. @param {Function} next */
function* called(next) {
  for (let values = next(); values[0] !== undefined; values = next()) yield values;
}

/** What pairs and ipairs return: only `for` knows what to do with it. */
class Walk extends LuaTable {
  /** @param {Iterable<readonly Value[]>} over */
  constructor(over) {
    super();
    this.over = over;
  }
}

/** @param {Value} a @param {Value} b */
function comparable(a, b) {
  if (typeof a === typeof b && (typeof a === 'number' || typeof a === 'string')) return true;
  throw new LuaError(`attempt to compare ${typeOf(a)} with ${typeOf(b)}`);
}

/** @param {Value} value @returns {LuaTable} */
function tableOf(value) {
  if (value instanceof LuaTable) return value;
  throw new LuaError(`bad argument (table expected, got ${typeOf(value)})`);
}

/** @param {Readonly<Record<string, Value>>} of */
export const named = (of) => new LuaTable([], Object.entries(of));

/** @type {Readonly<Record<string, Value>>} */
const GLOBALS = {
  tostring: (value) => [shown(value)],
  tonumber: (value, base) => [
    typeof value === 'number'
      ? value
      : typeof value === 'string'
        ? numberOf(value, base === undefined ? 10 : numeral(base))
        : undefined,
  ],
  type: (value) => [typeOf(value)],
  ipairs: (of) => [new Walk(tableOf(of).ipairs())],
  pairs: (of) => [new Walk(tableOf(of).pairs())],
  select: (from, ...args) => (from === '#' ? [args.length] : args.slice(numeral(from) - 1)),
  unpack(of, from = 1, to = tableOf(of).length) {
    const count = Math.max(0, numeral(to) - numeral(from) + 1);
    if (count >= 8000) throw new LuaError('too many results to unpack');
    return Array.from({ length: count }, (_, at) => tableOf(of).get(numeral(from) + at));
  },
  error(value) {
    throw new LuaError(value);
  },
  string: named(stringFunctions),
  table: named({
    concat: (of, between = '') => [tableOf(of).items.map(text).join(text(between))],
    insert(of, ...given) {
      const table = tableOf(of);
      const [at, value] = given.length > 1 ? given : [table.length + 1, given[0]];
      // From the end on each makes room for the one before it.
      for (let free = table.length + 1; free > numeral(at); free -= 1) table.set(free, table.get(free - 1));
      table.set(at, value);
      return [];
    },
  }),
  math: named({
    huge: Number.POSITIVE_INFINITY,
    floor: (value) => [Math.floor(numeral(value))],
    ceil: (value) => [Math.ceil(numeral(value))],
    abs: (value) => [Math.abs(numeral(value))],
    min: (...values) => [Math.min(...values.map(numeral))],
    max: (...values) => [Math.max(...values.map(numeral))],
  }),
};

/** @typedef {(globals: Readonly<Record<string, Value>>) => Value} Script */

/**
 * @param {string} source
 * @returns {Script} runs with the globals of this call and returns its first result
 */
export function scriptOf(source) {
  /** @type {($: typeof operators, G: LuaTable) => readonly Value[]} */
  const run = /** @type {never} */ (new Function('$', 'G', compile(source.replace(/^#![^\n]*/, ''))));
  return (globals) => run(operators, named({ ...GLOBALS, ...globals }))[0];
}
