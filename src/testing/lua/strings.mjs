/** The string functions of Lua. */
import { numberOf, rounded } from './numbers.mjs';
import { firstMatch, matchAt } from './pattern.mjs';
import { LuaError, LuaTable } from './table.mjs';

/** @typedef {import('./table.mjs').Value} Value */
/** @typedef {import('./pattern.mjs').Match} Match */

/** @param {Value} value @returns {number} */
export function numeral(value) {
  const number = typeof value === 'string' ? numberOf(value) : value;
  if (typeof number === 'number') return number;
  throw new LuaError(`attempt to perform arithmetic on a ${typeof value} value`);
}

/** @param {(value: Value) => string} text how a value is written */
export function stringsOf(text) {
  /** Positions count from 1, or from the end when negative. @param {Value} at @param {number} length */
  const place = (at, length) => (numeral(at) < 0 ? Math.max(0, length + numeral(at)) : Math.max(0, numeral(at) - 1));
  /** @param {Match} found @param {string} of */
  const results = ({ from, to, captures }, of) => (captures.length > 0 ? captures : [of.slice(from, to)]);

  /** @type {Readonly<Record<string, (of: string, ...args: Value[]) => readonly Value[]>>} */
  return {
    len: (of) => [of.length],
    lower: (of) => [of.replace(/[A-Z]/g, (char) => char.toLowerCase())],
    upper: (of) => [of.replace(/[a-z]/g, (char) => char.toUpperCase())],
    rep: (of, count) => [of.repeat(Math.max(0, numeral(count)))],
    sub(of, from = 1, to = -1) {
      const last = numeral(to) < 0 ? of.length + numeral(to) + 1 : numeral(to);
      return [of.slice(place(from, of.length), Math.max(0, last))];
    },
    byte(of, from = 1, to = from) {
      const last = numeral(to) < 0 ? of.length + numeral(to) + 1 : numeral(to);
      return [...of.slice(place(from, of.length), last)].map((char) => char.charCodeAt(0));
    },
    find(of, pattern, from = 1, plain = false) {
      const start = place(from, of.length);
      if (plain !== false && plain !== undefined) {
        const at = of.indexOf(text(pattern), start);
        return at === -1 ? [undefined] : [at + 1, at + text(pattern).length];
      }
      const found = firstMatch(of, text(pattern), start);
      return found ? [found.from + 1, found.to, ...found.captures] : [undefined];
    },
    match(of, pattern, from = 1) {
      const found = firstMatch(of, text(pattern), place(from, of.length));
      return found ? results(found, of) : [undefined];
    },
    gmatch(of, pattern) {
      let at = 0;
      return [
        () => {
          const found = at > of.length ? undefined : firstMatch(of, text(pattern), at);
          at = found ? found.to + (found.to === found.from ? 1 : 0) : of.length + 1;
          return found ? results(found, of) : [undefined];
        },
      ];
    },
    gsub: (of, pattern, by, most = Number.POSITIVE_INFINITY) =>
      replaced(of, { pattern: text(pattern), by, most: numeral(most) }),
    format(of, ...args) {
      let next = 0;
      const made = of.replace(/%(%|(-?\d*)(?:\.(\d+))?([sdf]))/g, (_, all, width, digits, kind) => {
        if (all === '%') return '%';
        const value = args[next++];
        const shown = kind === 's' ? text(value) : figures(numeral(value), kind, digits);
        return String(width).startsWith('-') ? shown.padEnd(-Number(width)) : shown.padStart(Number(width));
      });
      if (next < args.length && /%[^%sdf\d.-]/.test(of)) throw new LuaError(`invalid format ${of}`);
      return [made];
    },
  };

  /** @param {string} of @param {{ pattern: string, by: Value, most: number }} how @returns {readonly Value[]} */
  function replaced(of, { pattern, by, most }) {
    const anchored = pattern.startsWith('^');
    const next = (/** @type {number} */ at) =>
      anchored ? matchAt(of, pattern, { from: 0, begin: 1 }) : firstMatch(of, pattern, at);
    let [made, at, count] = ['', 0, 0];
    const last = anchored ? Math.min(most, 1) : most;
    for (let found = last > 0 ? next(0) : undefined; found; found = count < last ? next(at) : undefined) {
      count += 1;
      // After an empty match the next character is kept.
      const end = found.to + (found.to === found.from ? 1 : 0);
      made += of.slice(at, found.from) + replacement(found, of, by) + of.slice(found.to, end);
      at = end;
    }
    return [made + of.slice(at), count];
  }

  /** @param {Match} found @param {string} of @param {Value} by */
  function replacement(found, of, by) {
    const whole = of.slice(found.from, found.to);
    const [first] = results(found, of);
    let made = /** @type {Value} */ (undefined);
    if (typeof by === 'function') [made] = by(...results(found, of));
    else if (by instanceof LuaTable) made = by.get(first);
    else
      made = text(by).replace(/%(.)/g, (_, at) =>
        at === '0' ? whole : /\d/.test(at) ? text(results(found, of)[at - 1]) : at,
      );
    return made === undefined || made === false ? whole : text(made);
  }
}

/** @param {number} value @param {string} kind @param {string | undefined} digits */
function figures(value, kind, digits) {
  if (kind === 'd') return String(Math.trunc(value) + 0);
  return digits === '0' ? rounded(value) : value.toFixed(Number(digits ?? 6));
}
