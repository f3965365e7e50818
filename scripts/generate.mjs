/**
 * Writes every file that is made from code or from results of the bench anew: `npm run generate`. The list is
 * `scripts/generate/files.mjs`; it needs the sources as TypeScript, so the test that compares the files writes them. The
 * pages of the library's types are made beside it, by TypeDoc.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { answerSchemas } from './generate/answers.mjs';
import { writeApiReference } from './generate/api.mjs';
import { show } from './run.mjs';
import { root } from './steps.mjs';

const vitest = join(root, 'node_modules', '.bin', 'vitest');
await writeApiReference();
// The OpenAPI file is made by the code that has these.
writeFileSync(join(root, 'src', 'http', 'api', 'answer-schemas.ts'), answerSchemas());
process.exitCode = await show(vitest, ['run', 'test/generated.test.ts', '-u'], { cwd: root });
