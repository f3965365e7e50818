/** The OpenAPI file is made from the schemas that check each request, and is kept so that others can read it. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { documentOf } from '../src/http/api/api.ts';
import { root } from './support/repository.ts';

test('docs/reference/openapi.json is what the schemas say; npm run generate writes it', async () => {
  await expect(documentOf()).toMatchFileSnapshot(join(root, 'docs/reference/openapi.json'));
});
