/** A Lua script → JavaScript: its statements. One pass over the tokens writes the text of a function. */
import { Cursor } from './cursor.mjs';
import { all, Expressions, indexed, number, single, truth } from './expressions.mjs';

/** @typedef {import('./expressions.mjs').Expression} Expression */

/** Functions by how deep they stand and how they are written. @type {Map<string, { readonly js: string, readonly outside: readonly (readonly [string, string | undefined])[] }>} */
const read = new Map();
const ENDS = new Set(['end', 'else', 'elseif', 'until']);

/**
 * @param {string} source
 * @returns {string} the body of a function of `$` (the runtime) and `G` (the globals)
 */
export function compile(source) {
  const cursor = new Cursor(source);
  const body = new Compiler(cursor).block();
  if (cursor.here.kind !== 'end') cursor.refuse(`${cursor.here.text} is left over`);
  return `let v;${body}return [];`;
}

class Compiler {
  /** @param {Cursor} cursor */
  constructor(cursor) {
    this.cursor = cursor;
    this.expressions = new Expressions(cursor, () => this.closure());
    /** @type {Readonly<Record<string, () => string>>} */
    this.statements = {
      break: () => 'break;',
      do: () => `{${this.body()}}`,
      while: () => this.whileLoop(),
      repeat: () => cursor.scoped(() => this.untilLoop()),
      if: () => this.choice(),
      for: () => cursor.scoped(() => this.forLoop()),
      function: () => this.named(),
      local: () => (cursor.skip('function') ? this.localFunction() : this.locals()),
    };
  }

  isOver() {
    const { kind, text } = this.cursor.here;
    return kind === 'end' || (kind === 'keyword' && ENDS.has(text));
  }

  /** @returns {string} */
  block() {
    let js = '';
    while (!this.isOver()) {
      const last = this.cursor.skip('return');
      js += last ? this.result() : this.statement();
      this.cursor.skip(';');
      if (last) break;
    }
    return js;
  }

  /** A block of its own scope up to its `end`. */
  body() {
    const js = this.cursor.scoped(() => this.block());
    this.cursor.expect('end');
    return js;
  }

  result() {
    const nothing = this.isOver() || this.cursor.is(';');
    return `return ${nothing ? '[]' : all(this.expressions.list())};`;
  }

  statement() {
    const { kind, text } = this.cursor.here;
    const known = kind === 'keyword' ? this.statements[text] : undefined;
    if (!known) return this.assignment();
    this.cursor.take();
    return known();
  }

  condition() {
    return truth(this.expressions.one());
  }

  whileLoop() {
    const condition = this.condition();
    this.cursor.expect('do');
    return `while(${condition}){${this.body()}}`;
  }

  untilLoop() {
    const body = this.block();
    this.cursor.expect('until');
    return `while(true){${body}if(${this.condition()})break;}`;
  }

  choice() {
    const { cursor } = this;
    /** @type {string[]} */
    const ways = [];
    do {
      const condition = this.condition();
      cursor.expect('then');
      ways.push(`if(${condition}){${cursor.scoped(() => this.block())}}`);
    } while (cursor.skip('elseif'));
    if (cursor.skip('else')) ways.push(`{${cursor.scoped(() => this.block())}}`);
    cursor.expect('end');
    return ways.join('else ');
  }

  forLoop() {
    const { cursor } = this;
    const names = cursor.separated(() => cursor.name());
    if (cursor.skip('=')) return this.count(names[0] ?? '');
    cursor.expect('in');
    const over = single(this.expressions.one());
    cursor.expect('do');
    const locals = names.map((name) => cursor.declare(name));
    return `for(let [${locals.join(',')}] of $.each(${over})){${this.body()}}`;
  }

  /** @param {string} name */
  count(name) {
    const { cursor } = this;
    const [from, to, step = { js: '1', is: /** @type {const} */ ('number') }] = this.expressions.list();
    cursor.expect('do');
    const [js, limit, by] = [cursor.declare(name), cursor.temporary(), cursor.temporary()];
    const start = [from, to, step].map((one) => number(one ?? { js: 'undefined' }));
    const head = `let ${js}=${start[0]},${limit}=${start[1]},${by}=${start[2]}`;
    return `for(${head};${by}>0?${js}<=${limit}:${js}>=${limit};${js}+=${by}){${this.body()}}`;
  }

  named() {
    let place = this.expressions.named();
    while (this.cursor.skip('.')) place = indexed(place, JSON.stringify(this.cursor.name()));
    return assign(place, this.closure());
  }

  localFunction() {
    const js = this.cursor.declare(this.cursor.name());
    return `let ${js};${js}=${this.knownClosure()};`;
  }

  /** Many scripts have the same functions. One that was read before is not read again, if it finds the same names around it. */
  knownClosure() {
    const { cursor } = this;
    const { from } = cursor.here;
    const line = cursor.source.slice(cursor.source.lastIndexOf('\n', from) + 1, from);
    const last = `\n${/^ */.exec(line)?.[0]}end`;
    const end = cursor.source.indexOf(last, from) + last.length;
    const name = `${cursor.functions.length} ${cursor.source.slice(from, end)}`;
    const known = read.get(name);
    if (known?.outside.every(([lua, js]) => cursor.lookUp(lua) === js)) {
      cursor.leap(end);
      return known.js;
    }
    const { made: js, outside } = cursor.reading(() => this.closure());
    if (cursor.end === end) read.set(name, { js, outside: [...outside] });
    return js;
  }

  locals() {
    const { cursor } = this;
    const names = cursor.separated(() => cursor.name());
    const values = cursor.skip('=') ? this.expressions.list() : [];
    const locals = names.map((name) => cursor.declare(name));
    if (locals.length === 1 && values.length <= 1) return `let ${locals[0]}=${single(values[0])};`;
    return `let [${locals.join(',')}]=${all(values)};`;
  }

  assignment() {
    const { cursor } = this;
    const places = cursor.separated(() => this.expressions.suffixed());
    const [first] = places;
    if (!cursor.is('=') && first?.many) return `${first.js};`;
    cursor.expect('=');
    const values = this.expressions.list();
    return places.length === 1 && first ? assign(first, single(values[0])) : this.assignAll(places, values);
  }

  /** All is read before anything is written, the last place first, as Lua 5.1 does. @param {readonly Expression[]} places @param {readonly Expression[]} values */
  assignAll(places, values) {
    const { cursor } = this;
    const said = places.map(({ place }) => {
      if (!place || 'local' in place) return { read: '', place };
      const [table, key] = [cursor.temporary(), cursor.temporary()];
      return { read: `const ${table}=${place.table},${key}=${place.key};`, place: { table, key } };
    });
    const made = cursor.temporary();
    const reads = said.map(({ read }) => read).join('');
    const writes = said.map(({ place }, at) => assign({ js: '', ...(place ? { place } : {}) }, `${made}[${at}]`));
    return `{${reads}const ${made}=${all(values)};${writes.reverse().join('')}}`;
  }

  closure() {
    const { cursor } = this;
    return cursor.inFunction(() => {
      cursor.expect('(');
      /** @type {string[]} */
      const parameters = [];
      while (!cursor.skip(')')) {
        if (cursor.skip('...')) parameters.push(`...${cursor.declare('...')}`);
        else parameters.push(cursor.declare(cursor.name()));
        cursor.skip(',');
      }
      return `((${parameters.join(',')})=>{let v;${this.body()}return [];})`;
    });
  }
}

/** @param {Expression} to @param {string} value */
function assign({ place }, value) {
  if (!place) throw new Error('nothing can be assigned there');
  return 'local' in place ? `${place.local}=${value};` : `$.put(${place.table},${place.key},${value});`;
}
