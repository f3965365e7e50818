/** Where a compiler is in a script: the token it looks at, and the names that mean a local there. */

import { tokenAt } from './tokens.mjs';

export class Cursor {
  /** @param {string} source */
  constructor(source) {
    this.source = source;
    this.here = tokenAt(source, 0);
    /** @type {Map<string, string>[]} */
    this.scopes = [new Map()];
    /** How often each name was declared in each of the functions around this place. @type {Map<string, number>[]} */
    this.functions = [new Map()];
    /** @type {{ readonly depth: number, readonly outside: Map<string, string | undefined> }[]} */
    this.readings = [];
    /** Where the last token that was taken ends. */
    this.end = 0;
  }

  get next() {
    return tokenAt(this.source, this.here.to);
  }

  /** @param {string} text of a keyword or a symbol */
  is(text) {
    const { here } = this;
    return here.text === text && (here.kind === 'symbol' || here.kind === 'keyword');
  }

  /** @param {string} text */
  skip(text) {
    const found = this.is(text);
    if (found) this.take();
    return found;
  }

  take() {
    const { here } = this;
    this.end = here.to;
    this.here = tokenAt(this.source, here.to);
    return here;
  }

  /** @param {string} text */
  expect(text) {
    if (!this.skip(text)) this.refuse(`expected ${text}, found ${this.here.text}`);
  }

  name() {
    const { kind, text } = this.here;
    if (kind !== 'name') this.refuse(`expected a name, found ${text}`);
    this.take();
    return text;
  }

  /** @param {string} why @returns {never} */
  refuse(why) {
    const line = this.source.slice(0, this.here.from).split('\n').length;
    throw new Error(`line ${line}: ${why}`);
  }

  /** Goes on there. @param {number} place */
  leap(place) {
    this.here = tokenAt(this.source, place);
  }

  /** A new local: its name, how many functions are around it, and how many there were of that name in its function. @param {string} lua */
  declare(lua) {
    const js = this.temporary(lua === '...' ? 'rest' : lua);
    this.scopes.at(-1)?.set(lua, js);
    return js;
  }

  temporary(prefix = 't') {
    const own = this.functions.at(-1) ?? new Map();
    const count = own.get(prefix) ?? 0;
    own.set(prefix, count + 1);
    return `${prefix}$${this.functions.length}${count === 0 ? '' : `_${count}`}`;
  }

  /** @param {string} lua */
  lookUp(lua) {
    let at = this.scopes.length - 1;
    while (at >= 0 && !this.scopes[at]?.has(lua)) at -= 1;
    const js = this.scopes[at]?.get(lua);
    for (const { depth, outside } of this.readings) if (at < depth) outside.set(lua, js);
    return js;
  }

  /** Notes which names the inner part finds outside of it. @template T @param {() => T} inner */
  reading(inner) {
    /** @type {Map<string, string | undefined>} */
    const outside = new Map();
    this.readings.push({ depth: this.scopes.length, outside });
    const made = inner();
    this.readings.pop();
    return { made, outside };
  }

  /** @template T @param {() => T} inner */
  inFunction(inner) {
    this.functions.push(new Map());
    const made = this.scoped(inner);
    this.functions.pop();
    return made;
  }

  /** @template T @param {() => T} inner */
  scoped(inner) {
    this.scopes.push(new Map());
    const made = inner();
    this.scopes.pop();
    return made;
  }

  /** @template T @param {() => T} one */
  separated(one) {
    const all = [one()];
    while (this.skip(',')) all.push(one());
    return all;
  }
}
