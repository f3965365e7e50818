/**
 * The values of a Lua script in JavaScript: nil is undefined, a string has one character per byte, and a table is a
 * dense list from 1 with a map for all other keys. Functions take values and return the list of their results.
 */

/** @typedef {undefined | boolean | number | string | LuaTable | LuaFunction} Value */
/** @typedef {(...args: Value[]) => readonly Value[]} LuaFunction */

export class LuaError extends Error {
  /** @param {Value} value what was raised */
  constructor(value) {
    super(typeof value === 'string' ? value : 'a Lua error');
    this.value = value;
  }
}

export class LuaTable {
  /**
   * @param {readonly Value[]} [items]
   * @param {readonly (readonly [Value, Value])[]} [pairs]
   */
  constructor(items = [], pairs = []) {
    /** @type {Value[]} 1, 2, 3 … without holes */
    this.items = [];
    /** @type {Map<Value, Value>} */
    this.others = new Map();
    if (items.includes(undefined)) for (const [index, item] of items.entries()) this.set(index + 1, item);
    else this.items = [...items];
    for (const [key, value] of pairs) this.set(key, value);
  }

  /** @param {Value} key @returns {Value} */
  get(key) {
    if (typeof key === 'number' && key >= 1 && key <= this.items.length) return this.items[key - 1];
    return this.others.get(key);
  }

  /** @param {Value} key @param {Value} value */
  set(key, value) {
    if (key === undefined) throw new LuaError('table index is nil');
    const { items, others } = this;
    if (typeof key === 'number' && key >= 1 && key <= items.length && Number.isInteger(key)) {
      if (value !== undefined) items[key - 1] = value;
      else this.#cut(key);
    } else if (value === undefined) others.delete(key);
    else if (key === items.length + 1) this.#append(value);
    else others.set(key, value);
  }

  get length() {
    return this.items.length;
  }

  /** @returns {Generator<Value[]>} */
  *pairs() {
    for (let at = 0; at < this.items.length; at += 1) yield [at + 1, this.items[at]];
    yield* [...this.others.entries()];
  }

  /** @returns {Generator<Value[]>} */
  *ipairs() {
    for (let at = 1; this.get(at) !== undefined; at += 1) yield [at, this.get(at)];
  }

  /** @param {Value} value */
  #append(value) {
    this.items.push(value);
    for (let key = this.items.length + 1; this.others.has(key); key += 1) {
      this.items.push(this.others.get(key));
      this.others.delete(key);
    }
  }

  /** A hole: what stands behind it goes on as other keys. @param {number} key */
  #cut(key) {
    for (const [index, item] of this.items.splice(key - 1).entries()) {
      if (index > 0) this.others.set(key + index, item);
    }
  }
}
