/**
 * Takes the comments out of the code of a package: a fifth of its size. Declarations keep theirs, which editors show. The
 * build of a checkout keeps all of them, for faults are planted at marked lines of it.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { root } from './steps.mjs';

/** @param {string} folder of the package */
export function stripComments(folder) {
  const compilerOptions = { removeComments: true, target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext };
  for (const name of readdirSync(join(folder, 'dist'), { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.js') || name.startsWith('dashboard')) continue;
    const path = join(folder, 'dist', name);
    writeFileSync(path, ts.transpileModule(readFileSync(path, 'utf8'), { compilerOptions }).outputText);
  }
}

if (process.argv[1] === import.meta.filename) {
  stripComments(root);
  // The next run of the tests builds anew.
  rmSync(join(root, '.cache', 'built-from'), { force: true });
}
