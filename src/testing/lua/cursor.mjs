/** Where a compiler is in a script: the token it looks at, and the names that mean a local there. */

import { tokensOf } from './tokens.mjs';

/** @typedef {import('./tokens.mjs').Token} Token */

/** @type {Token} */
const END = { kind: 'end', text: '', at: 0 };

export class Cursor {
  /** @param {string} source */
  constructor(source) {
    this.source = source;
    this.tokens = tokensOf(source);
    this.at = 0;
    /** @type {Map<string, string>[]} */
    this.scopes = [new Map()];
    this.named = 0;
  }

  get here() {
    return this.tokens[this.at] ?? END;
  }

  get next() {
    return this.tokens[this.at + 1] ?? END;
  }

  /** @param {string} text of a keyword or a symbol */
  is(text) {
    const { here } = this;
    return here.text === text && (here.kind === 'symbol' || here.kind === 'keyword');
  }

  /** @param {string} text */
  skip(text) {
    const found = this.is(text);
    if (found) this.at += 1;
    return found;
  }

  take() {
    this.at += 1;
    return this.tokens[this.at - 1] ?? END;
  }

  /** @param {string} text */
  expect(text) {
    if (!this.skip(text)) this.refuse(`expected ${text}, found ${this.here.text}`);
  }

  name() {
    const { kind, text } = this.here;
    if (kind !== 'name') this.refuse(`expected a name, found ${text}`);
    this.at += 1;
    return text;
  }

  /** @param {string} why @returns {never} */
  refuse(why) {
    const line = this.source.slice(0, this.here.at).split('\n').length;
    throw new Error(`line ${line}: ${why}`);
  }

  /** A new local. Each has a name of its own, so that scopes need no care. @param {string} lua */
  declare(lua) {
    const js = this.temporary(lua === '...' ? 'rest' : lua);
    this.scopes.at(-1)?.set(lua, js);
    return js;
  }

  temporary(prefix = 't') {
    this.named += 1;
    return `${prefix}$${this.named}`;
  }

  /** @param {string} lua */
  lookUp(lua) {
    return this.scopes.findLast((scope) => scope.has(lua))?.get(lua);
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
