/**
 * The tools of agents: one more window on the verbs of the HTTP API. Which verbs are tools, and how a change is shown before it is made,
 * says the word `tool` in the row of the verb; name, sentences and fields follow from the row, by way of the OpenAPI document. So there
 * is no list of tools, and a verb that is new is one when its row says so.
 *
 *     row of a verb ──▶ OpenAPI ──▶ { name, title, description, input }
 *     jobs.cancel                    jobs_cancel { queue, id, bare } and, of a change, { why, confirm }
 */
import { documentOf, verbs } from '../http/api/api.ts';
import type { AnyVerb, DryRun } from '../http/api/verb.ts';
import { isObject, type JsonObject, objectIn } from './json.ts';

export interface Tool {
  /** As the protocol has it: `jobs_cancel`. */
  readonly name: string;
  readonly verb: AnyVerb;
  readonly description: string;
  /** JSON schema of what it takes. */
  readonly input: JsonObject;
  /** Fields that stand in the path, and in the query. A body is the field `body`. */
  readonly path: readonly string[];
  readonly query: readonly string[];
  /** Of a change. */
  readonly dryRun: DryRun | undefined;
}

/** What a caller may do. */
export interface May {
  readonly changes: boolean;
  /** Undefined: nobody knows yet, and the API refuses what is not allowed. */
  readonly scopes: readonly string[] | undefined;
}

/** By the name of the verb. */
export type Tools = ReadonlyMap<string, Tool>;

/** Every tool that there is. A look that only shows what a change would do is among them. */
export function allTools(): Tools {
  const { paths, components }: Document = JSON.parse(documentOf());
  const all = verbs.flatMap((verb) => {
    const operation = paths[verb.at]?.[verb.method];
    return verb.tool === undefined || operation === undefined ? [] : [toolOf(verb, operation, components.schemas)];
  });
  return new Map(all.map((tool) => [tool.verb.name, tool]));
}

/** Those that a caller is offered. */
export const toolsFor = (tools: Tools, { changes, scopes }: May): readonly Tool[] =>
  [...tools.values()].filter(
    ({ dryRun, verb }) => (changes || dryRun === undefined) && (scopes === undefined || isIn(verb.scope, scopes)),
  );

const isIn = (scope: string, scopes: readonly string[]): boolean => scope === 'none' || scopes.includes(scope);

/** As much of the OpenAPI document as a tool is made of. */
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, JsonObject>> };
}

interface Operation {
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: { readonly 'application/json': { readonly schema: JsonObject } } };
}

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly schema: JsonObject;
}

function toolOf(verb: AnyVerb, operation: Operation, schemas: Document['components']['schemas']): Tool {
  const { parameters = [], requestBody } = operation;
  const dryRun = verb.tool === 'look' ? undefined : verb.tool;
  const given = parameters.filter((one) => one.in !== 'header');
  const body = requestBody && wholeOf(requestBody.content['application/json'].schema, schemas);
  const needsBody = body !== undefined && (verb.bodyRequired ?? true);
  const properties = {
    ...Object.fromEntries(given.map(({ name, schema }) => [name, wholeOf(schema, schemas)])),
    ...(body && { body: dryRun ? withoutOurs(body, dryRun) : body }),
    ...(dryRun && CHANGING),
  };
  const needed = given.filter(({ required }) => required).map(({ name }) => name);
  const namesIn = (place: Parameter['in']) => given.filter((one) => one.in === place).map(({ name }) => name);
  return {
    name: verb.name.replaceAll('.', '_'),
    verb,
    description: descriptionOf(verb, dryRun),
    input: {
      type: 'object',
      properties,
      required: [...needed, ...(needsBody ? ['body'] : []), ...(dryRun ? ['why'] : [])],
      additionalProperties: false,
    },
    path: namesIn('path'),
    query: namesIn('query'),
    dryRun,
  };
}

/** What every change takes besides. */
const CHANGING: Readonly<Record<string, JsonObject>> = {
  why: {
    type: 'string',
    minLength: 1,
    description: 'Why you make it, in one sentence for people: it stands in the audit.',
  },
  confirm: {
    type: 'string',
    description: 'The digest that the dry run told. Left out: a dry run.',
  },
};

/** Of a change by filter what was seen is named in the request. All else that bounds such a request is ours as well. */
const OURS_BY_FILTER = ['ids', 'jobs', 'deadLetters', 'dryRun', 'limit', 'cursor', 'spread'];
const OURS = ['dryRun'];

function withoutOurs(body: JsonObject, { names }: DryRun): JsonObject {
  const ours = names === undefined ? OURS : OURS_BY_FILTER;
  const properties = Object.entries({ ...objectIn(body.properties) }).filter(([name]) => !ours.includes(name));
  const required = Array.isArray(body.required) ? body.required.filter((name) => !ours.includes(String(name))) : [];
  return { ...body, properties: Object.fromEntries(properties), required: [...required, ...filterOf(body, names)] };
}

/** Without a filter all jobs of a queue would be meant. */
const filterOf = (body: JsonObject, names: DryRun['names']): readonly string[] =>
  names === 'ids' && objectIn(body.properties).filter !== undefined ? ['filter'] : [];

function descriptionOf({ summary, doc, scope }: AnyVerb, dryRun: DryRun | undefined): string {
  const how =
    'Without `confirm` a dry run, which changes nothing and tells a digest; with that digest, and all else the same, it is made.';
  return [`${summary}.`, doc, dryRun && how, `Scope: ${scope}.`].filter((text) => text !== undefined).join(' ');
}

const REF = /[^/]+$/;

/**
 * A schema that needs no other one: what it names stands in it. The list of tools stands in the context of a model, so it has what a model
 * reads: names, types, words and choices. What only refuses is left to the daemon, which says what is allowed.
 */
function wholeOf(schema: unknown, schemas: Readonly<Record<string, JsonObject>>): JsonObject {
  const { $ref, example, ...rest } = objectIn(schema);
  if (typeof $ref === 'string') return { ...wholeOf(schemas[REF.exec($ref)?.[0] ?? ''], schemas), ...rest };
  const whole = Object.entries(rest)
    .filter(isRead)
    .map(([name, value]) => [name, name === 'properties' ? eachWhole(value, schemas) : wholeIn(value, schemas)]);
  const needsExample = example !== undefined && rest.description === undefined;
  return { ...Object.fromEntries(whole), ...(needsExample && { examples: [example] }) };
}

/** Keywords that only refuse. */
const REFUSING = ['pattern', 'minLength', 'maxLength', 'minItems', 'maxItems'];

const isRead = ([name, value]: readonly [name: string, value: unknown]): boolean =>
  !REFUSING.includes(name) &&
  value !== Number.MAX_SAFE_INTEGER &&
  !(name === 'additionalProperties' && value === false);

/** Here names are those of fields. */
const eachWhole = (fields: unknown, schemas: Readonly<Record<string, JsonObject>>): JsonObject =>
  Object.fromEntries(Object.entries(objectIn(fields)).map(([name, value]) => [name, wholeOf(value, schemas)]));

function wholeIn(value: unknown, schemas: Readonly<Record<string, JsonObject>>): unknown {
  if (Array.isArray(value)) return value.map((one) => (isObject(one) ? wholeOf(one, schemas) : one));
  return isObject(value) ? wholeOf(value, schemas) : value;
}
