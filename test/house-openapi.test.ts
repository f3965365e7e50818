/** The OpenAPI file is made from the schemas that check each request, and is kept so that others can read it; the types of the pages are made from it. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { apiTypes } from '../scripts/api-types.mjs';
import { documentOf } from '../src/http/api/api.ts';
import { root } from './support/repository.ts';

test('docs/reference/openapi.json is what the schemas say; npm run generate writes it', async () => {
  await expect(documentOf()).toMatchFileSnapshot(join(root, 'docs/reference/openapi.json'));
});

test('src/dashboard/api-types.ts is what openapi.json says; npm run generate writes it', async () => {
  await expect(await apiTypes(documentOf())).toMatchFileSnapshot(join(root, 'src/dashboard/api-types.ts'));
});
