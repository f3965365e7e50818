/** Patterns of Lua 5.1: one matcher for find, match, gmatch and gsub. Without %b and %f, which no script of ours uses. */
import { LuaError } from './table.mjs';

/** @typedef {{ from: number, to: number, captures: (string | number)[] }} Match positions from 0, `to` excluded */

/** @type {Readonly<Record<string, RegExp>>} */
const CLASSES = {
  a: /[A-Za-z]/,
  d: /\d/,
  l: /[a-z]/,
  p: /[!-/:-@[-`{-~]/,
  s: /[\t-\r ]/,
  u: /[A-Z]/,
  w: /[A-Za-z0-9]/,
  x: /[0-9A-Fa-f]/,
};

/** %c: control characters. */
const CONTROL = { test: (/** @type {string} */ char) => char < ' ' || char === '\x7f' };

/** @param {string} char @param {string} name of a class */
function inClass(char, name) {
  if (name === 'z') return char === '\0';
  const known = CLASSES[name.toLowerCase()] ?? (/c/i.test(name) ? CONTROL : undefined);
  if (!known) return char === name;
  return known.test(char) === (name === name.toLowerCase());
}

/**
 * The first place from `start` on where the pattern fits.
 *
 * @param {string} text
 * @param {string} pattern
 * @param {number} start
 * @returns {Match | undefined}
 */
export function firstMatch(text, pattern, start) {
  const anchored = pattern.startsWith('^');
  for (let from = start; from <= text.length; from += 1) {
    const found = matchAt(text, pattern, { from, begin: anchored ? 1 : 0 });
    if (found) return found;
    if (anchored) return undefined;
  }
  return undefined;
}

/**
 * @param {string} text
 * @param {string} pattern
 * @param {{ from: number, begin: number }} where
 * @returns {Match | undefined}
 */
export function matchAt(text, pattern, { from, begin }) {
  const matcher = new Matcher(text, pattern);
  const to = matcher.match(from, begin);
  return to === -1 ? undefined : { from, to, captures: matcher.captured() };
}

const OPEN = -1;
const POSITION = -2;

/** Every method takes a place in the text and one in the pattern, and returns where the match ends, or -1. */
class Matcher {
  /** @param {string} text @param {string} pattern */
  constructor(text, pattern) {
    this.text = text;
    this.pattern = pattern;
    /** @type {{ from: number, length: number }[]} */
    this.captures = [];
  }

  captured() {
    return this.captures.map(({ from, length }) =>
      length === POSITION ? from + 1 : this.text.slice(from, from + length),
    );
  }

  /** @param {number} s @param {number} p @returns {number} */
  match(s, p) {
    const { pattern } = this;
    const char = pattern[p];
    if (char === undefined) return s;
    if (char === '(') return this.open(s, p);
    if (char === ')') return this.shut(s, p);
    if (char === '$' && p + 1 === pattern.length) return s === this.text.length ? s : -1;
    return this.item(s, p, itemEnd(pattern, p));
  }

  /** @param {number} s @param {number} p @param {number} end */
  item(s, p, end) {
    switch (this.pattern[end]) {
      case '?':
        return this.maybe(s, p, end);
      case '*':
        return this.most({ s, p, end, least: 0 });
      case '+':
        return this.most({ s, p, end, least: 1 });
      case '-':
        return this.least(s, p, end);
      default:
        return this.fits(s, p, end) ? this.match(s + 1, end) : -1;
    }
  }

  /** @param {number} s @param {number} p */
  open(s, p) {
    const position = this.pattern[p + 1] === ')';
    this.captures.push({ from: s, length: position ? POSITION : OPEN });
    const end = this.match(s, p + (position ? 2 : 1));
    if (end === -1) this.captures.pop();
    return end;
  }

  /** @param {number} s @param {number} p */
  shut(s, p) {
    const capture = this.captures.findLast(({ length }) => length === OPEN);
    if (!capture) throw new LuaError('invalid pattern capture');
    capture.length = s - capture.from;
    const end = this.match(s, p + 1);
    if (end === -1) capture.length = OPEN;
    return end;
  }

  /** @param {number} s @param {number} p @param {number} end */
  maybe(s, p, end) {
    const taken = this.fits(s, p, end) ? this.match(s + 1, end + 1) : -1;
    return taken === -1 ? this.match(s, end + 1) : taken;
  }

  /** @param {{ s: number, p: number, end: number, least: number }} of */
  most({ s, p, end, least }) {
    let count = 0;
    while (this.fits(s + count, p, end)) count += 1;
    for (; count >= least; count -= 1) {
      const found = this.match(s + count, end + 1);
      if (found !== -1) return found;
    }
    return -1;
  }

  /** @param {number} s @param {number} p @param {number} end */
  least(s, p, end) {
    for (let at = s; ; at += 1) {
      const found = this.match(at, end + 1);
      if (found !== -1) return found;
      if (!this.fits(at, p, end)) return -1;
    }
  }

  /** One character, one item. @param {number} s @param {number} p @param {number} end */
  fits(s, p, end) {
    const char = this.text[s];
    if (char === undefined) return false;
    const item = this.pattern[p];
    if (item === '.') return true;
    if (item === '%') return inClass(char, this.pattern[p + 1] ?? '');
    return item === '[' ? inSet(char, this.pattern.slice(p + 1, end - 1)) : item === char;
  }
}

/** Where the item that begins at `p` is over. @param {string} pattern @param {number} p */
function itemEnd(pattern, p) {
  if (pattern[p] === '%') return p + 2;
  if (pattern[p] !== '[') return p + 1;
  let at = p + 1;
  if (pattern[at] === '^') at += 1;
  do {
    if (at >= pattern.length) throw new LuaError('malformed pattern (missing ])');
    at += pattern[at] === '%' ? 2 : 1;
  } while (pattern[at] !== ']');
  return at + 1;
}

/** @param {string} char @param {string} set without its brackets */
function inSet(char, set) {
  const negated = set.startsWith('^');
  let at = negated ? 1 : 0;
  while (at < set.length) {
    const { is, length } = inPart(char, set.slice(at, at + 3));
    if (is) return !negated;
    at += length;
  }
  return negated;
}

/** A set begins with a class, a range or one character. @param {string} char @param {string} part */
function inPart(char, part) {
  const [one = '', second = '', third] = part;
  if (one === '%') return { is: inClass(char, second), length: 2 };
  if (second === '-' && third !== undefined) return { is: one <= char && char <= third, length: 3 };
  return { is: one === char, length: 1 };
}
