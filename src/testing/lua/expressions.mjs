/**
 * Expressions of Lua → JavaScript. Each is a text, with a mark when it may be several values or what kind of value it always
 * is, and a place if it is one. `v` is a local of each function: the value that an `and` or `or` has just looked at.
 */

/** @typedef {import('./cursor.mjs').Cursor} Cursor */
/** @typedef {{ js: string, many?: boolean, is?: 'number' | 'boolean', truth?: string, place?: { table: string, key: string } | { local: string } }} Expression */

/** @typedef {(a: Expression, b: Expression) => Expression} Write */

/** @param {(a: string, b: string) => string} write @returns {Write} */
const onNumbers = (write) => (a, b) => ({ js: write(number(a), number(b)), is: 'number' });
/** @param {(a: string, b: string) => string} write @returns {Write} */
const compared = (write) => (a, b) => ({ js: write(single(a), single(b)), is: 'boolean' });

/** Binary operators: strength to the left and to the right, as in the manual, and how they are written. */
/** @type {Readonly<Record<string, { toLeft: number, toRight: number, write: Write }>>} */
const BINARY = {
  or: { toLeft: 1, toRight: 1, write: (a, b) => either(a, b, '||') },
  and: { toLeft: 2, toRight: 2, write: (a, b) => either(a, b, '&&') },
  '<': { toLeft: 3, toRight: 3, write: compared((a, b) => `$.less(${a},${b})`) },
  '>': { toLeft: 3, toRight: 3, write: compared((a, b) => `$.less(${b},${a})`) },
  '<=': { toLeft: 3, toRight: 3, write: compared((a, b) => `$.lessEqual(${a},${b})`) },
  '>=': { toLeft: 3, toRight: 3, write: compared((a, b) => `$.lessEqual(${b},${a})`) },
  '==': { toLeft: 3, toRight: 3, write: compared((a, b) => `(${a}===${b})`) },
  '~=': { toLeft: 3, toRight: 3, write: compared((a, b) => `(${a}!==${b})`) },
  '..': { toLeft: 5, toRight: 4, write: (a, b) => ({ js: `($.text(${single(a)})+$.text(${single(b)}))` }) },
  '+': { toLeft: 6, toRight: 6, write: onNumbers((a, b) => `(${a}+${b})`) },
  '-': { toLeft: 6, toRight: 6, write: onNumbers((a, b) => `(${a}-${b})`) },
  '*': { toLeft: 7, toRight: 7, write: onNumbers((a, b) => `(${a}*${b})`) },
  '/': { toLeft: 7, toRight: 7, write: onNumbers((a, b) => `(${a}/${b})`) },
  '%': { toLeft: 7, toRight: 7, write: onNumbers((a, b) => `$.modulo(${a},${b})`) },
  '^': { toLeft: 10, toRight: 9, write: onNumbers((a, b) => `((${a})**(${b}))`) },
};
const UNARY_STRENGTH = 8;
/** @type {Readonly<Record<string, (a: Expression) => Expression>>} */
const UNARY = {
  not: (a) => ({ js: `!${truth(a)}`, is: 'boolean' }),
  '#': (a) => ({ js: `$.length(${single(a)})`, is: 'number' }),
  '-': (a) => ({ js: `(-${number(a)})`, is: 'number' }),
};
/** @type {Readonly<Record<string, string>>} */
const WORDS = { nil: 'undefined', true: 'true', false: 'false' };

export class Expressions {
  /** @param {Cursor} cursor @param {() => string} closure reads a function after its keyword */
  constructor(cursor, closure) {
    this.cursor = cursor;
    this.closure = closure;
  }

  list() {
    return this.cursor.separated(() => this.one());
  }

  /** @param {number} [strength] of what stands before it @returns {Expression} */
  one(strength = 0) {
    let left = this.unary();
    for (let sign = this.word(BINARY); sign && sign.toLeft > strength; sign = this.word(BINARY)) {
      this.cursor.take();
      left = sign.write(left, this.one(sign.toRight));
    }
    return left;
  }

  /** What the keyword or symbol that follows means there. @template T @param {Readonly<Record<string, T>>} words */
  word(words) {
    const { kind, text } = this.cursor.here;
    return kind === 'symbol' || kind === 'keyword' ? words[text] : undefined;
  }

  /** @returns {Expression} */
  unary() {
    const write = this.word(UNARY);
    if (!write) return this.simple();
    this.cursor.take();
    return write(this.one(UNARY_STRENGTH));
  }

  /** @returns {Expression} */
  simple() {
    const { cursor } = this;
    const { kind } = cursor.here;
    if (kind === 'number') return { js: String(Number(cursor.take().text)), is: 'number' };
    if (kind === 'string') return { js: JSON.stringify(cursor.take().text) };
    const word = this.word(WORDS);
    if (word) return { js: cursor.take() && word };
    if (cursor.skip('...')) return { js: cursor.lookUp('...') ?? '[]', many: true };
    if (cursor.skip('function')) return { js: this.closure() };
    return cursor.is('{') ? { js: this.table() } : this.suffixed();
  }

  table() {
    const { cursor } = this;
    /** @type {Expression[]} */
    const items = [];
    /** @type {string[]} */
    const pairs = [];
    cursor.expect('{');
    while (!cursor.is('}')) {
      const key = this.keyOfPair();
      if (key === undefined) items.push(this.one());
      else pairs.push(`[${key},${single(this.one())}]`);
      if (!cursor.skip(',') && !cursor.skip(';')) break;
    }
    cursor.expect('}');
    return `$.table(${all(items)},[${pairs.join(',')}])`;
  }

  /** `[key] =` or `name =`, if that is what follows. */
  keyOfPair() {
    const { cursor } = this;
    let key = /** @type {string | undefined} */ (undefined);
    if (cursor.skip('[')) {
      key = single(this.one());
      cursor.expect(']');
    } else if (cursor.here.kind === 'name' && cursor.next.kind === 'symbol' && cursor.next.text === '=') {
      key = JSON.stringify(cursor.name());
    }
    if (key !== undefined) cursor.expect('=');
    return key;
  }

  /** A local, or a global. @returns {Expression} */
  named() {
    const lua = this.cursor.name();
    const local = this.cursor.lookUp(lua);
    if (local === undefined) return indexed({ js: 'G' }, JSON.stringify(lua));
    return { js: local, place: { local } };
  }

  /** A name or a bracket with everything that may follow it. @returns {Expression} */
  suffixed() {
    let one = this.cursor.is('(') ? this.bracket() : this.named();
    for (let longer = this.suffix(one); longer; longer = this.suffix(one)) one = longer;
    return one;
  }

  /** @param {Expression} one @returns {Expression | undefined} */
  suffix(one) {
    const { cursor } = this;
    if (cursor.skip('.')) return indexed(one, JSON.stringify(cursor.name()));
    if (cursor.skip('[')) {
      const key = single(this.one());
      cursor.expect(']');
      return indexed(one, key);
    }
    if (cursor.skip(':')) {
      const method = JSON.stringify(cursor.name());
      return { js: `$.method(${single(one)},${method},[${this.args()}])`, many: true };
    }
    return cursor.is('(') ? { js: `$.called(${single(one)})(${this.args()})`, many: true } : undefined;
  }

  /** Brackets cut several values to one. @returns {Expression} */
  bracket() {
    this.cursor.expect('(');
    const { many, place, ...one } = this.one();
    this.cursor.expect(')');
    return many ? { js: `${one.js}[0]` } : one;
  }

  args() {
    this.cursor.expect('(');
    const args = this.cursor.is(')') ? [] : this.list();
    this.cursor.expect(')');
    return listed(args);
  }
}

/** @param {Expression} a @param {Expression} b @param {'&&' | '||'} sign @returns {Expression} */
function either(a, b, sign) {
  const both = `(${truth(a)}${sign}${truth(b)})`;
  if (a.is === 'boolean')
    return { js: `(${single(a)}${sign}${single(b)})`, truth: both, ...(b.is === 'boolean' ? { is: b.is } : {}) };
  const [first, second] = sign === '&&' ? [single(b), 'v'] : ['v', single(b)];
  return { js: `($.truth(v=${single(a)})?${first}:${second})`, truth: both };
}

/** Whether it holds, as JavaScript has it. @param {Expression} one */
export function truth(one) {
  return one.truth ?? (one.is === 'boolean' ? single(one) : `$.truth(${single(one)})`);
}

/** @param {Expression} one */
export function number(one) {
  return one.is === 'number' ? one.js : `$.number(${single(one)})`;
}

/** @param {Expression} of @param {string} key @returns {Expression} */
export function indexed(of, key) {
  const table = single(of);
  return { js: `$.index(${table},${key})`, place: { table, key } };
}

/** @param {Expression | undefined} one */
export function single(one) {
  if (!one) return 'undefined';
  return one.many ? `${one.js}[0]` : one.js;
}

/** Several expressions, one after the other: the last one may bring several values. @param {readonly Expression[]} list */
export function listed(list) {
  const last = list.at(-1);
  if (!last) return '';
  const parts = list.slice(0, -1).map(single);
  return [...parts, last.many ? `...${last.js}` : last.js].join(',');
}

/** @param {readonly Expression[]} list */
export const all = (list) => `[${listed(list)}]`;
