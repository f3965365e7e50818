/** The reference of the command line says what the program says. `npm run generate` rewrites it. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { renderCli } from '../../../scripts/generate-cli-docs.mjs';
import { createProgram } from '../../../src/cli/cli.ts';
import { examplesOf } from '../../../src/cli/session.ts';
import { root } from '../../support/repository.ts';

test('the reference lists every command, flag and example', async () => {
  const program = createProgram({ run: async () => undefined });
  await expect(renderCli(program, examplesOf)).toMatchFileSnapshot(join(root, 'docs/reference/cli.md'));
});
