/** Expressions of Lua → JavaScript. Each is a text, with a mark when it may be several values, and a place if it is one. */

/** @typedef {import('./cursor.mjs').Cursor} Cursor */
/** @typedef {{ js: string, many?: boolean, place?: { table: string, key: string } | { local: string } }} Expression */

/** Binary operators: strength to the left and to the right, as in the manual, and how they are written. */
/** @type {Readonly<Record<string, readonly [number, number, (a: string, b: string) => string]>>} */
const BINARY = {
  '<': [3, 3, (a, b) => `$.less(${a},${b})`],
  '>': [3, 3, (a, b) => `$.less(${b},${a})`],
  '<=': [3, 3, (a, b) => `$.lessEqual(${a},${b})`],
  '>=': [3, 3, (a, b) => `$.lessEqual(${b},${a})`],
  '==': [3, 3, (a, b) => `(${a}===${b})`],
  '~=': [3, 3, (a, b) => `(${a}!==${b})`],
  '..': [5, 4, (a, b) => `($.text(${a})+$.text(${b}))`],
  '+': [6, 6, (a, b) => `($.number(${a})+$.number(${b}))`],
  '-': [6, 6, (a, b) => `($.number(${a})-$.number(${b}))`],
  '*': [7, 7, (a, b) => `($.number(${a})*$.number(${b}))`],
  '/': [7, 7, (a, b) => `($.number(${a})/$.number(${b}))`],
  '%': [7, 7, (a, b) => `$.modulo(${a},${b})`],
  '^': [10, 9, (a, b) => `($.number(${a})**$.number(${b}))`],
};
const UNARY_STRENGTH = 8;
/** @type {Readonly<Record<string, (a: string) => string>>} */
const UNARY = { not: (a) => `!$.truth(${a})`, '#': (a) => `$.length(${a})`, '-': (a) => `(-$.number(${a}))` };
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
    for (let sign = this.sign(); sign.toLeft > strength; sign = this.sign()) {
      this.cursor.take();
      left = { js: sign.write(single(left), single(this.one(sign.toRight))) };
    }
    return left;
  }

  /** The binary operator that follows, or one that binds nothing. */
  sign() {
    const { kind, text } = this.cursor.here;
    const [toLeft, toRight, write] = (kind === 'symbol' ? BINARY[text] : undefined) ?? [0, 0, () => ''];
    if (kind !== 'keyword' || (text !== 'and' && text !== 'or')) return { toLeft, toRight, write };
    const strength = text === 'and' ? 2 : 1;
    const value = this.cursor.temporary();
    /** @param {string} a @param {string} b */
    const both = (a, b) =>
      `((${value})=>$.truth(${value})?${text === 'and' ? b : value}:${text === 'and' ? value : b})(${a})`;
    return { toLeft: strength, toRight: strength, write: both };
  }

  /** @returns {Expression} */
  unary() {
    const { kind, text } = this.cursor.here;
    const write = kind === 'keyword' || kind === 'symbol' ? UNARY[text] : undefined;
    if (!write) return this.simple();
    this.cursor.take();
    return { js: write(single(this.one(UNARY_STRENGTH))) };
  }

  /** @returns {Expression} */
  simple() {
    const { cursor } = this;
    const { kind, text } = cursor.here;
    if (kind === 'number') return { js: String(Number(cursor.take().text)) };
    if (kind === 'string') return { js: JSON.stringify(cursor.take().text) };
    const word = kind === 'keyword' ? WORDS[text] : undefined;
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
      return { js: `$.method(${single(one)},${method},${this.args()})`, many: true };
    }
    return cursor.is('(') ? { js: `$.call(${single(one)},${this.args()})`, many: true } : undefined;
  }

  /** Brackets cut several values to one. @returns {Expression} */
  bracket() {
    this.cursor.expect('(');
    const js = single(this.one());
    this.cursor.expect(')');
    return { js };
  }

  args() {
    this.cursor.expect('(');
    const args = this.cursor.is(')') ? [] : this.list();
    this.cursor.expect(')');
    return all(args);
  }
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

/** Several expressions as a list: the last one may bring several values. @param {readonly Expression[]} list */
export function all(list) {
  const last = list.at(-1);
  const parts = list.slice(0, -1).map(single);
  return `[${[...parts, ...(last ? [last.many ? `...${last.js}` : last.js] : [])].join(',')}]`;
}
