/** Where a compiler is in a script: the token it looks at, and the names that mean a local there. */

/** @typedef {import('./tokens.mjs').Token} Token */

/** @type {Token} */
const END = { kind: 'end', text: '', line: 0 };

export class Cursor {
  /** @param {readonly Token[]} tokens */
  constructor(tokens) {
    this.tokens = tokens;
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

  /** @param {readonly string[]} texts */
  is(...texts) {
    const { kind, text } = this.here;
    return (kind === 'keyword' || kind === 'symbol') && texts.includes(text);
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
    if (!this.skip(text)) throw new Error(`line ${this.here.line}: expected ${text}, found ${this.here.text}`);
  }

  name() {
    const { kind, text, line } = this.take();
    if (kind !== 'name') throw new Error(`line ${line}: expected a name, found ${text}`);
    return text;
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
