/** What is kept in the repository and made from code or from results is what they make. `npm run generate` writes it anew. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { files } from '../scripts/generate/files.mjs';
import { root } from './support/repository.ts';

test.for(Object.entries(files))('%s is what it is made from', async ([path, make]) => {
  await expect(await make()).toMatchFileSnapshot(join(root, path));
});
