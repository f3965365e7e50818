/**
 * The types of the HTTP API for the pages, made of docs/reference/openapi.json. Pure: a test compares the file with it, and
 * `npm run generate` lets that test rewrite it. Only what is asked and answered is here: the pages name their own paths.
 */
import openapiTS, { astToString } from 'openapi-typescript';

/** @param {string} text what openapi.json holds */
export async function apiTypes(text) {
  const { openapi, info, components } = JSON.parse(text, withoutWords);
  const document = { openapi, info, paths: {}, components: { schemas: components.schemas } };
  const made = astToString(await openapiTS(document, { immutable: true }));
  const [, schemas = ''] = /^ {4}schemas: \{\n(.*?)^ {4}\};$/ms.exec(made) ?? [];
  const types = schemas
    .replace(/^ *\/\*\*.*\*\/\n/gm, '')
    .replace(/^( +)/gm, (indent) => ' '.repeat(indent.length / 2 - 2))
    .replaceAll('components["schemas"]', 'Schemas')
    .replaceAll(' & unknown', '')
    .replaceAll('"', "'");
  return `${HEAD}\nexport interface Schemas {\n${types}}\n`;
}

const HEAD = `/**
 * What the HTTP API is asked and answers, by the names of docs/reference/openapi.json, which has the words too.
 * Made by \`npm run generate\`; edit the schemas in src/http/api.
 */`;

/** The words stand in the reference; here they would be most of the file. */
function withoutWords(/** @type {string} */ key, /** @type {unknown} */ value) {
  return typeof value === 'string' && key === 'description' ? undefined : key === 'example' ? undefined : value;
}
