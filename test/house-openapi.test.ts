/** The OpenAPI file is made from the schemas that check each request, and is kept so that others can read it; the types of the pages are made from it. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { apiTypes } from '../scripts/api-types.mjs';
import { documentOf } from '../src/http/api/api.ts';
import { root } from './support/repository.ts';

test('docs/reference/openapi.json is what the schemas say; npm run generate writes it', async () => {
  await expect(documentOf()).toMatchFileSnapshot(join(root, 'docs/reference/openapi.json'));
});

test('the types and calls of the pages are what openapi.json says; npm run generate writes them', async () => {
  const { schemas, calls } = await apiTypes(documentOf());
  await expect(schemas).toMatchFileSnapshot(join(root, 'src/dashboard/api-types.ts'));
  await expect(calls).toMatchFileSnapshot(join(root, 'src/dashboard/calls.ts'));
});
