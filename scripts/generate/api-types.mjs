/**
 * The HTTP API for the pages, made of docs/reference/openapi.json: the types of what is asked and answered, and each call
 * with its path, parameters, body and answer. Pure.
 */
import openapiTS, { astToString } from 'openapi-typescript';

/**
 * @typedef {object} Operation
 * @property {string} operationId
 * @property {string} summary
 * @property {readonly { name: string, in: string, required?: boolean, schema: object }[]} [parameters]
 * @property {{ required: boolean, content: Readonly<Record<string, { schema: object }>> }} [requestBody]
 * @property {Readonly<Record<string, { content?: Readonly<Record<string, { schema: object }>> }>>} responses
 */

/** @param {string} text what openapi.json holds */
export async function apiTypes(text) {
  const { openapi, info, paths, components } = JSON.parse(text, withoutWords);
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const shapes = Object.fromEntries(operations.map(({ operation }) => [operation.operationId, shapeOf(operation)]));
  const document = { openapi, info, paths: {}, components: { schemas: { ...components.schemas, ...shapes } } };
  const made = astToString(await openapiTS(document, { immutable: true }));
  const [, schemas = ''] = /^ {4}schemas: \{\n(.*?)^ {4}\};$/ms.exec(made) ?? [];
  const types = schemas
    .replace(/^ *\/\*\*.*\*\/\n/gm, '')
    .replace(/^( +)/gm, (indent) => ' '.repeat(indent.length / 2 - 2))
    .replaceAll('components["schemas"]', 'Schemas')
    .replaceAll(' & unknown', '')
    .replaceAll('"', "'");
  const entries = types.split(/^(?= {2}readonly )/m);
  const count = entries.length - operations.length;
  return {
    schemas: `${HEAD}\nexport interface Schemas {\n${entries.slice(0, count).join('')}}\n`,
    calls: `${CALLS_HEAD}${operations.map((one, at) => callOf(one, entries[count + at] ?? '')).join('')}`,
  };
}

/** Path and query together, because no name is in both: the path says which of them it has. @param {Operation} operation */
function shapeOf({ operationId, parameters = [], requestBody, responses }) {
  const given = parameters.filter((one) => one.in !== 'header');
  const properties = Object.fromEntries(
    given.map((one) => [one.name, one.in === 'path' ? { type: 'string' } : one.schema]),
  );
  if (Object.keys(properties).length < given.length) throw new Error(`${operationId} has a name in path and query`);
  const required = given.filter((one) => one.required).map(({ name }) => name);
  const answers = Object.entries(responses).flatMap(([status, { content = {} }]) =>
    Number(status) < 300 ? [Object.values(content).at(0)?.schema] : [],
  );
  const [answer, ...others] = answers.filter((schema) => schema !== undefined);
  if (others.some((other) => JSON.stringify(other) !== JSON.stringify(answer))) {
    throw new Error(`${operationId} has several answers`);
  }
  const body = requestBody?.content['application/json']?.schema;
  return {
    type: 'object',
    properties: {
      given: { type: 'object', properties, required },
      ...(body === undefined ? {} : { body }),
      ...(answer === undefined ? {} : { answer }),
    },
    required: ['given', ...(requestBody?.required ? ['body'] : []), ...(answers.includes(undefined) ? [] : ['answer'])],
  };
}

/** @param {{ path: string, method: string, operation: Operation }} one @param {string} shape as it stands in an interface */
function callOf({ path, method, operation: { operationId, summary } }, shape) {
  const name = operationId.replace(/\.(\w)/g, (_, letter) => letter.toUpperCase());
  const type = shape
    .slice(shape.indexOf('{'), shape.lastIndexOf(';'))
    .replace(/^ {2}/gm, '')
    .replace('Record<string, never>', '{}');
  return `\n/** ${summary}. */\nexport const ${name}: Call<${type}> = { method: '${method.toUpperCase()}', at: '${path.slice(1)}' };\n`;
}

const HEAD = `/**
 * What the HTTP API is asked and answers, by the names of docs/reference/openapi.json, which has the words too.
 * Made by \`npm run generate\`; edit the schemas in src/http/api.
 */`;

const CALLS_HEAD = `/**
 * Each call of the HTTP API, by its name in docs/reference/openapi.json: where it is, what it is given and what it answers.
 * Made by \`npm run generate\`; edit the verbs in src/http/api/routes.
 */
import type { Schemas } from './api-types.ts';
import type { Call } from './call.ts';
`;

/** The words stand in the reference; here they would be most of the file. What has a default may be left out. A field may have their names. */
function withoutWords(/** @type {string} */ key, /** @type {unknown} */ value) {
  const isObject = typeof value === 'object' && value !== null;
  const isLeftOut = key === 'example' ? !isObject || !('type' in value) : isWord(key) && typeof value !== 'object';
  return isLeftOut ? undefined : value;
}

const isWord = (/** @type {string} */ key) => ['description', 'default'].includes(key);
