/**
 * Renders a chart without Helm, so that `npm run generate` needs none: the part of Go's templates that our chart uses, and nothing else. A
 * word that is not known here is an error and never a guess, and so is a value that is not there. `test/flow/deploy/helm.test.ts` compares it with
 * Helm.
 *
 *  text of a template ──piecesOf──▶ texts and actions ──readNodes──▶ a tree ──write──▶ text
 */
import { createHash } from 'node:crypto';
import { parse, stringify } from 'yaml';

/**
 * @typedef {{ readonly kind: 'constant', readonly value: unknown }
 *   | { readonly kind: 'path', readonly from: '$' | '.', readonly names: readonly string[] }
 *   | { readonly kind: 'field', readonly of: Expression, readonly names: readonly string[] }
 *   | { readonly kind: 'call', readonly name: string, readonly args: readonly Expression[] }
 *   | { readonly kind: 'method', readonly of: Expression, readonly args: readonly Expression[] }} Expression
 */
/**
 * @typedef {{ readonly kind: 'text', readonly text: string }
 *   | { readonly kind: 'print', readonly what: Expression }
 *   | { readonly kind: 'block', readonly verb: string, readonly of: Expression, readonly body: readonly Node[], readonly otherwise: readonly Node[] }} Node
 */
/** @typedef {{ readonly kind: 'text' | 'action', readonly text: string }} Piece */
/** What `$` and `.` stand for. @typedef {{ readonly root: unknown, readonly dot: unknown }} Scope */

/**
 * @param {{ readonly templates: Readonly<Record<string, string>>, readonly root: unknown }} chart `root` has Values, Release, Chart and Files
 * @returns {Readonly<Record<string, string>>} what each template comes to; those whose name begins with `_` define words for the others
 */
export function renderTemplates({ templates, root }) {
  /** @type {Map<string, readonly Node[]>} */
  const defined = new Map();
  const trees = Object.entries(templates).map(
    ([name, text]) => /** @type {const} */ ([name, inTemplate(name, () => readAll(piecesOf(text), defined))]),
  );
  const functions = functionsOf(defined);
  const shown = trees.filter(([name]) => !name.startsWith('_'));
  return Object.fromEntries(
    shown.map(([name, nodes]) => [name, inTemplate(name, () => write(nodes, { root, dot: root }, functions))]),
  );
}

/** An error says in which template it is. @template T @param {string} name @param {() => T} act */
function inTemplate(name, act) {
  try {
    return act();
  } catch (error) {
    throw new Error(`${name}: ${error instanceof Error ? error.message : error}`, { cause: error });
  }
}

/** Texts and actions by turns. `{{-` takes the white space before it away, and `-}}` that behind it. @param {string} source */
function piecesOf(source) {
  /** @type {Piece[]} */
  const pieces = [];
  let at = 0;
  let trims = false;
  const take = (/** @type {number} */ end, /** @type {boolean} */ trimsBefore) => {
    const text = source.slice(at, end);
    const begun = trims ? text.trimStart() : text;
    pieces.push({ kind: 'text', text: trimsBefore ? begun.trimEnd() : begun });
  };
  for (const match of source.matchAll(/\{\{(-(?=\s))?([\s\S]*?)((?<=\s)-)?\}\}/g)) {
    const [, before, inner = '', after] = match;
    take(match.index, before !== undefined);
    const text = inner.trim();
    if (!text.startsWith('/*')) pieces.push({ kind: 'action', text });
    trims = after !== undefined;
    at = match.index + match[0].length;
  }
  take(source.length, false);
  return pieces;
}

/** @param {Piece[]} pieces @param {Map<string, readonly Node[]>} defined */
function readAll(pieces, defined) {
  const { nodes, stop } = readNodes(pieces, defined);
  if (stop !== '') throw new Error(`{{ ${stop} }} ends nothing`);
  return nodes;
}

/**
 * Up to the `end` or the `else` that belongs to somebody around.
 *
 * @param {Piece[]} pieces @param {Map<string, readonly Node[]>} defined @returns {{ nodes: Node[], stop: string }}
 */
function readNodes(pieces, defined) {
  /** @type {Node[]} */
  const nodes = [];
  for (let piece = pieces.shift(); piece; piece = pieces.shift()) {
    if (piece.kind === 'text') {
      nodes.push({ kind: 'text', text: piece.text });
      continue;
    }
    const [, verb = '', rest = ''] = /^(\w*)\s*([\s\S]*)$/.exec(piece.text) ?? [];
    if (verb === 'end' || verb === 'else') return { nodes, stop: piece.text };
    if (verb === 'define') defined.set(JSON.parse(rest), readBody(pieces, defined));
    else if (verb === 'if' || verb === 'with' || verb === 'range') nodes.push(readBlock(verb, rest, pieces, defined));
    else nodes.push({ kind: 'print', what: expressionOf(piece.text) });
  }
  return { nodes, stop: '' };
}

/** @param {Piece[]} pieces @param {Map<string, readonly Node[]>} defined */
function readBody(pieces, defined) {
  const { nodes, stop } = readNodes(pieces, defined);
  if (stop !== 'end') throw new Error(`a block has no end; it has ${stop === '' ? 'the end of the file' : stop}`);
  return nodes;
}

/**
 * @param {string} verb @param {string} of @param {Piece[]} pieces @param {Map<string, readonly Node[]>} defined @returns {Node}
 */
function readBlock(verb, of, pieces, defined) {
  const { nodes: body, stop } = readNodes(pieces, defined);
  const block = { kind: /** @type {const} */ ('block'), verb, of: expressionOf(of), body };
  if (stop === 'end') return { ...block, otherwise: [] };
  if (stop === 'else') return { ...block, otherwise: readBody(pieces, defined) };
  const [, next = '', condition = ''] = /^else\s+(if|with)\s+([\s\S]+)$/.exec(stop) ?? [];
  if (next === '') throw new Error(`{{ ${verb} ${of} }} has no end`);
  return { ...block, otherwise: [readBlock(next, condition, pieces, defined)] };
}

// Expressions: `.Values.a | default "b" | quote`, `include "name" $`, `(fromYaml (.Files.Get "a")).groups`.

const TOKEN = /\s*(?:("(?:[^"\\]|\\.)*")|(-?\d+)|(\|)|(\()|(\)(?:\.[\w.]+)?)|([$.][\w.]*)|([A-Za-z]\w*))/y;

/** @param {string} text @returns {Expression} */
function expressionOf(text) {
  const tokens = tokensOf(text);
  const found = readPipeline(tokens);
  if (tokens.length > 0) throw new Error(`${tokens[0]} is not expected in: ${text}`);
  return found;
}

/** @param {string} text */
function tokensOf(text) {
  /** @type {string[]} */
  const tokens = [];
  const pattern = new RegExp(TOKEN);
  while (pattern.lastIndex < text.trimEnd().length) {
    const from = pattern.lastIndex;
    const [token] = pattern.exec(text) ?? [];
    if (token === undefined) throw new Error(`cannot be read here: ${text.slice(from)}`);
    tokens.push(token.trim());
  }
  return tokens;
}

/** What stands before a `|` is the last argument of what stands behind it. @param {string[]} tokens @returns {Expression} */
function readPipeline(tokens) {
  let found = readCommand(tokens);
  while (tokens[0] === '|') {
    tokens.shift();
    found = readCommand(tokens, found);
  }
  return found;
}

/** @param {string[]} tokens @param {Expression} [last] @returns {Expression} */
function readCommand(tokens, last) {
  const [first = ''] = tokens;
  const isName = /^[A-Za-z]/.test(first) && first !== 'true' && first !== 'false';
  if (isName) tokens.shift();
  /** @type {Expression[]} */
  const operands = [];
  while (tokens.length > 0 && tokens[0] !== '|' && !tokens[0]?.startsWith(')')) operands.push(readOperand(tokens));
  const given = last === undefined ? operands : [...operands, last];
  if (isName) return { kind: 'call', name: first, args: given };
  const [of, ...args] = operands;
  if (of === undefined || last !== undefined) throw new Error(`no function, but ${first}`);
  return args.length === 0 ? of : { kind: 'method', of, args };
}

/** @param {string[]} tokens @returns {Expression} */
function readOperand(tokens) {
  const token = tokens.shift() ?? '';
  if (token === '(') {
    const of = readPipeline(tokens);
    const closing = tokens.shift() ?? '';
    if (!closing.startsWith(')')) throw new Error('a ( is not closed');
    return closing === ')' ? of : { kind: 'field', of, names: closing.slice(2).split('.') };
  }
  const from = token[0];
  if (from === '$' || from === '.') return { kind: 'path', from, names: token.slice(1).split('.').filter(Boolean) };
  if (/^["\d-]/.test(token) || token === 'true' || token === 'false')
    return { kind: 'constant', value: JSON.parse(token) };
  return { kind: 'call', name: token, args: [] };
}

// What it comes to.

/** @typedef {Readonly<Record<string, (...args: readonly unknown[]) => unknown>>} Functions */

/** @param {readonly Node[]} nodes @param {Scope} scope @param {Functions} functions @returns {string} */
function write(nodes, scope, functions) {
  return nodes
    .map((node) => {
      if (node.kind === 'text') return node.text;
      if (node.kind === 'print') return printed(evaluate(node.what, scope, functions));
      return writeBlock(node, scope, functions);
    })
    .join('');
}

/** @param {Extract<Node, { kind: 'block' }>} block @param {Scope} scope @param {Functions} functions */
function writeBlock({ verb, of, body, otherwise }, scope, functions) {
  const value = evaluate(of, scope, functions, 'may be missing');
  if (isEmpty(value)) return write(otherwise, scope, functions);
  if (verb === 'if') return write(body, scope, functions);
  if (verb === 'with') return write(body, { ...scope, dot: value }, functions);
  return listOf(value)
    .map((dot) => write(body, { ...scope, dot }, functions))
    .join('');
}

/**
 * @param {Expression} expression @param {Scope} scope @param {Functions} functions
 * @param {'may be missing'} [missing] what is not there is an error elsewhere
 * @returns {unknown}
 */
function evaluate(expression, scope, functions, missing) {
  const each = (/** @type {readonly Expression[]} */ args) =>
    args.map((one) => evaluate(one, scope, functions, missing));
  switch (expression.kind) {
    case 'constant':
      return expression.value;
    case 'path':
      return fieldOf(expression.names, expression.from === '$' ? scope.root : scope.dot, missing);
    case 'field':
      return fieldOf(expression.names, evaluate(expression.of, scope, functions), missing);
    case 'method': {
      const method = evaluate(expression.of, scope, functions);
      if (typeof method !== 'function') throw new Error('only a function takes arguments');
      return method(...each(expression.args));
    }
    case 'call': {
      const { name } = expression;
      const act = Object.hasOwn(functions, name) ? functions[name] : undefined;
      if (act === undefined) throw new Error(`${name} is no function that is known here`);
      return act(...each(expression.args));
    }
  }
}

/** @param {readonly string[]} names @param {unknown} of @param {'may be missing'} [missing] */
function fieldOf(names, of, missing) {
  let inner = of;
  for (const [at, name] of names.entries()) {
    const fields = typeof inner === 'object' && inner !== null ? new Map(Object.entries(inner)) : undefined;
    const mayBeMissing = missing !== undefined && at === names.length - 1;
    if (!fields?.has(name) && !mayBeMissing) throw new Error(`there is no .${names.join('.')}`);
    inner = fields?.get(name);
  }
  return inner;
}

/** @param {unknown} value */
function printed(value) {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw new Error(`${JSON.stringify(value)} is no text; toYaml makes one of it`);
}

/** @param {unknown} value */
function isEmpty(value) {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0;
  return value === undefined || value === null || value === false || value === '' || value === 0;
}

/** @param {unknown} value @returns {readonly unknown[]} */
function listOf(value) {
  if (!Array.isArray(value)) throw new Error(`${JSON.stringify(value)} is no list`);
  return value;
}

/** Those of Go, Sprig and Helm, by their names there. @param {ReadonlyMap<string, readonly Node[]>} defined @returns {Functions} */
function functionsOf(defined) {
  /** @type {Functions} */
  const functions = {
    include(name, dot) {
      const nodes = defined.get(printed(name));
      if (nodes === undefined) throw new Error(`nothing defines ${name}`);
      return write(nodes, { root: dot, dot }, functions);
    },
    // Kubernetes reads YAML 1.1, where `off` is no text.
    toYaml: (value) => stringify(value, { lineWidth: 0, compat: 'yaml-1.1', sortMapEntries: true }).trimEnd(),
    fromYaml: (text) => parse(printed(text)),
    nindent: (count, text) => `\n${printed(text)}`.replaceAll('\n', `\n${' '.repeat(Number(count))}`),
    quote: (value) => JSON.stringify(printed(value)),
    sha256sum: (text) => createHash('sha256').update(printed(text)).digest('hex'),
    join: (between, all) => listOf(all).join(printed(between)),
    default: (fallback, value) => (isEmpty(value) ? fallback : value),
    add: (...all) => all.reduce((sum, one) => Number(sum) + Number(one), 0),
    not: (value) => isEmpty(value),
    has: (one, all) => listOf(all).includes(one),
  };
  return functions;
}
