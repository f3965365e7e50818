/**
 * The JSON schema of each answer of the HTTP API, made of its TypeScript type in src/http/api/answers.ts: names, required
 * fields and words follow from the views of the library. Pure. It knows only what these types use, and throws at anything else.
 */
import { join } from 'node:path';
import ts from 'typescript';
import { root } from '../steps.mjs';

const ANSWERS = join(root, 'src', 'http', 'api', 'answers.ts');

/** Numbers are whole and not below 0, but for times, and these. */
const REAL = new Set(['fraction', 'perSecond', 'epoch', 'factor', 'burn']);
/** Of these numbers a list of counters is made by name. */
const REAL_OWNERS = new Set(['Rates']);
/** Of a promise these are shares, and what is left may be below 0. */
const REAL_OF_PROMISE = new Set(['of', 'share', 'budget', 'left']);
const PROMISES = new Set(['QueueSlo', 'SloDay']);
/** Times that are an instant; all others are how long something takes. */
const INSTANT =
  /^(at|now|due|askedDue|nextLife|started|over|since|until|was|next|nextTurn|start|first|last|made|reached|expires|waitingThrough|through|upTo)Ms$/;
const INSTANT_EXAMPLE = 1_763_719_000_000;

/** A view that extends another has its own fields before those: what an answer is about comes first all the same. */
const FIRST = ['namespace', 'id', 'queue', 'name'];

/** @typedef {Record<string, unknown>} Schema */
/** @typedef {{ isSeen: boolean, name: string, owner: string | undefined, at: string }} Where */

export function answerSchemas() {
  const options = {
    ...{ strict: true, exactOptionalPropertyTypes: true, noEmit: true, allowImportingTsExtensions: true, types: [] },
    ...{ module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2023, lib: ['lib.es2023.d.ts'] },
  };
  const host = ts.createCompilerHost(options);
  // No view has a type of a package, and most of the time would be theirs.
  host.resolveModuleNameLiterals = (literals, file) =>
    literals.map(({ text }) =>
      text.startsWith('.') ? ts.resolveModuleName(text, file, options, host) : { resolvedModule: undefined },
    );
  const program = ts.createProgram([ANSWERS], options, host);
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(ANSWERS);
  const fieldsOf = (/** @type {string} */ name) => {
    const found = source?.statements.find((one) => ts.isInterfaceDeclaration(one) && one.name.text === name);
    if (!found) throw new Error(`src/http/api/answers.ts has no ${name}`);
    return checker.getPropertiesOfType(checker.getTypeAtLocation(found));
  };
  const entriesOf = (/** @type {string} */ interfaceName) =>
    fieldsOf(interfaceName).map((property) => {
      const { valueDeclaration } = property;
      const node = valueDeclaration && ts.isPropertySignature(valueDeclaration) ? valueDeclaration.type : undefined;
      if (!node) throw new Error(`${property.name} has no type`);
      const isSeen = ts.isTypeReferenceNode(node) && node.typeName.getText() === 'Seen';
      const told = checker.getTypeFromTypeNode(node);
      const type = isSeen && node.typeArguments?.[0] ? checker.getTypeFromTypeNode(node.typeArguments[0]) : told;
      return { name: property.name, property, isSeen, type, told };
    });
  const entries = entriesOf('Answers');
  const walk = new Walk(checker, [...entries, ...entriesOf('Elsewhere')], fieldsOf('Unseen'));
  const schemas = entries.map((entry) => [entry.name, walk.named(entry)]);
  return `${HEAD}export const answerSchemas: Readonly<Record<keyof Answers, AnswerSchema>> = ${JSON.stringify(Object.fromEntries(schemas), undefined, 2)};\n`;
}

const HEAD = `/**
 * What each answer of the HTTP API has, as JSON schema. Made by \`npm run generate\`; edit answers.ts, or the view of the
 * library that it names.
 */
import type { AnswerSchema, Answers } from './answers.ts';

`;

class Walk {
  #checker;
  /** @type {Map<string, string>} by the type without undefined */
  #names = new Map();
  /** @type {Map<string, string>} */
  #unseen;

  /**
   * @param {ts.TypeChecker} checker
   * @param {readonly { name: string, type: ts.Type, told: ts.Type }[]} entries
   * @param {readonly ts.Symbol[]} unseen
   */
  constructor(checker, entries, unseen) {
    this.#checker = checker;
    for (const { name, type, told } of entries) {
      for (const key of new Set([type, told].map((one) => keyOf(this.#members(one))))) {
        const before = this.#names.get(key);
        if (before !== undefined) throw new Error(`${before} and ${name} are one type`);
        this.#names.set(key, name);
      }
    }
    this.#unseen = new Map(unseen.map((one) => [one.name, this.#words(one)]));
  }

  /** @param {{ name: string, property: ts.Symbol, isSeen: boolean, type: ts.Type }} entry */
  named({ name, property, isSeen, type }) {
    const owner = (type.aliasSymbol ?? type.symbol)?.name;
    const made = this.#shape(this.#members(type), { isSeen, name, owner, at: name });
    const doc = this.#words(property) || wordsOf(type.symbol?.getDocumentationComment(this.#checker));
    return doc === '' ? made : { ...made, description: doc };
  }

  /** @param {ts.Type} type @param {Where} where @returns {Schema} */
  #schema(type, where) {
    const members = this.#members(type);
    const name = this.#names.get(keyOf(members));
    return name === undefined ? this.#shape(members, where) : { $ref: `#/components/schemas/${name}` };
  }

  /** Of a union its members, without undefined; else itself. @param {ts.Type} type */
  #members(type) {
    const all = type.isUnion() ? type.types : [type];
    return all.filter(({ flags }) => (flags & ts.TypeFlags.Undefined) === 0);
  }

  /** @param {readonly ts.Type[]} members @param {Where} where @returns {Schema} */
  #shape(members, where) {
    const [first, ...others] = members;
    if (!first) throw new Error(`${where.at} is never there`);
    const isAll = (/** @type {number} */ flag) => members.every(({ flags }) => (flags & flag) !== 0);
    const isNull = (/** @type {ts.Type} */ one) => (one.flags & ts.TypeFlags.Null) !== 0;
    if (members.some(isNull)) {
      const { type, ...rest } = this.#shape(
        members.filter((one) => !isNull(one)),
        where,
      );
      return { type: [type, 'null'], ...rest };
    }
    if (isAll(ts.TypeFlags.Any | ts.TypeFlags.Unknown)) return {};
    if (isAll(ts.TypeFlags.StringLiteral)) {
      return { type: 'string', enum: members.map((one) => (one.isStringLiteral() ? one.value : '')).sort() };
    }
    if (isAll(ts.TypeFlags.BooleanLike)) {
      const isOne = others.length === 0 && (first.flags & ts.TypeFlags.BooleanLiteral) !== 0;
      return { type: 'boolean', ...(isOne ? { enum: [this.#checker.typeToString(first) === 'true'] } : {}) };
    }
    if (others.length > 0) return this.#union(members, where);
    if (isAll(ts.TypeFlags.StringLike)) return { type: 'string' };
    if (isAll(ts.TypeFlags.NumberLike)) return numberOf(where);
    if (isAll(ts.TypeFlags.Object | ts.TypeFlags.Intersection)) return this.#object([first], where);
    throw new Error(`${where.at} is ${this.#checker.typeToString(first)}, which has no schema`);
  }

  /** Objects that say in one field which they are become one; others stand side by side. @param {readonly ts.Type[]} members @param {Where} where @returns {Schema} */
  #union(members, where) {
    const isTold = ['kind', 'status'].some((name) =>
      members.every((one) => {
        const property = one.getProperty(name);
        return (
          property && this.#checker.getTypeOfSymbol(property).flags & (ts.TypeFlags.StringLiteral | ts.TypeFlags.Union)
        );
      }),
    );
    if (isTold) return this.#object(members, where);
    return { anyOf: members.map((one, at) => this.#schema(one, { ...where, at: `${where.at}|${at}` })) };
  }

  /** @param {readonly ts.Type[]} members @param {Where} where @returns {Schema} */
  #object(members, where) {
    const [first] = members;
    if (!first) throw new Error(`${where.at} is nothing`);
    const { at } = where;
    if (this.#checker.isArrayType(first)) {
      const [item] = this.#checker.getTypeArguments(/** @type {ts.TypeReference} */ (first));
      if (!item) throw new Error(`${at} is a list of nothing`);
      return { type: 'array', items: this.#schema(item, { ...where, at: `${at}[]` }) };
    }
    const index = this.#checker.getIndexInfoOfType(first, ts.IndexKind.String);
    if (index)
      return { type: 'object', additionalProperties: this.#schema(index.type, { ...where, name: '', at: `${at}{}` }) };
    const all = [...new Set(members.flatMap((one) => one.getProperties().map(({ name }) => name)))];
    const names = [...FIRST.filter((name) => all.includes(name)), ...all.filter((name) => !FIRST.includes(name))];
    const fields = names.map((name) => /** @type {const} */ ([name, this.#field(name, members, where)]));
    const required = fields.filter(([, { isRequired }]) => isRequired).map(([name]) => name);
    return {
      type: 'object',
      properties: Object.fromEntries(fields.map(([name, { schema }]) => [name, schema])),
      ...(required.length > 0 ? { required } : {}),
    };
  }

  /** One field of one object, or of several that become one. @param {string} name @param {readonly ts.Type[]} members @param {Where} where */
  #field(name, members, { isSeen, at }) {
    const found = members.flatMap((one) => one.getProperty(name) ?? []);
    const types = found.map((one) => this.#checker.getTypeOfSymbol(one));
    const isMissing = (/** @type {ts.Type} */ type) =>
      (type.flags & (ts.TypeFlags.Undefined | ts.TypeFlags.Any | ts.TypeFlags.Unknown)) !== 0 ||
      (type.isUnion() && type.types.some(({ flags }) => (flags & ts.TypeFlags.Undefined) !== 0));
    const isOptional =
      found.length < members.length ||
      found.some(({ flags }) => (flags & ts.SymbolFlags.Optional) !== 0) ||
      types.some(isMissing);
    const parent = members.length === 1 ? members[0] : undefined;
    const owner = (parent?.aliasSymbol ?? parent?.symbol)?.name;
    const all = [...new Set(types.flatMap((type) => this.#members(type)))];
    const where = { isSeen, name, owner, at: `${at}.${name}` };
    const named = this.#names.get(keyOf(all));
    const schema = named === undefined ? this.#shape(all, where) : { $ref: `#/components/schemas/${named}` };
    const unseen = isSeen ? this.#unseen.get(name) : undefined;
    const doc = [...new Set(found.map((one) => this.#words(one))), unseen].filter(Boolean).join(' ');
    const described = doc === '' ? schema : { ...schema, description: doc };
    return { schema: described, isRequired: !isOptional && unseen === undefined };
  }

  /** @param {ts.Symbol} symbol */
  #words(symbol) {
    return wordsOf(symbol.getDocumentationComment(this.#checker));
  }
}

/** An answer leaves out what is undefined in the library. @param {readonly ts.SymbolDisplayPart[] | undefined} parts */
function wordsOf(parts) {
  return ts
    .displayPartsToString([...(parts ?? [])])
    .replaceAll(/\s*\n\s*/g, ' ')
    .replaceAll('Undefined', 'Left out')
    .replaceAll('undefined', 'left out');
}

/** @param {readonly ts.Type[]} members */
const keyOf = (members) =>
  members
    .map((one) => /** @type {ts.Type & { id: number }} */ (one).id)
    .sort((a, b) => a - b)
    .join();

/** @param {Where} where @returns {Schema} */
function numberOf({ name, owner = '' }) {
  if (INSTANT.test(name))
    return { type: 'number', description: 'Milliseconds since 1970 in UTC.', example: INSTANT_EXAMPLE };
  const isOfPromise = PROMISES.has(owner) && REAL_OF_PROMISE.has(name);
  if (name.endsWith('Ms') || REAL.has(name) || REAL_OWNERS.has(owner) || isOfPromise) return { type: 'number' };
  return { type: 'integer', minimum: 0 };
}
