/**
 * Puts the code of a package into a few files without comments: a process that imports it reads a dozen files instead of
 * two hundred. One statement is one line and names stay, because Node prints the line of an error that nobody catches, and its
 * message behind it. Declarations stay as they are, for editors. So does the build of a checkout, for faults are planted at
 * marked lines of it.
 */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { rolldown } from 'rolldown';
import { root } from './steps.mjs';

/** What is imported or started by its path, and from which file of the build. */
const ENTRIES = {
  index: 'index',
  'daemon/index': 'daemon/index',
  'nestjs/index': 'nestjs/index',
  'sql/index': 'sql/index',
  'testing/index': 'testing/index',
  main: 'main',
  // It lies beside the code that forks it.
  'code/actor': 'prove/actor',
  'code/daemon-process': 'conformance/daemon-process',
};

/** @param {string} folder of the package */
export async function packageCode(folder) {
  const dist = join(folder, 'dist');
  const bundle = await rolldown({
    // Paths in the files are those of the package.
    cwd: folder,
    input: Object.fromEntries(Object.entries(ENTRIES).map(([to, from]) => [to, join(dist, `${from}.js`)])),
    platform: 'node',
    // Dependencies are installed with the package.
    external: (name) => !/^[./]/.test(name),
    logLevel: 'warn',
  });
  const { output } = await bundle.generate({
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'code/[name].js',
    // What tells a bundler to leave an import alone stays.
    comments: { legal: false, annotation: true, jsdoc: false },
    minify: false,
  });
  for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
    if (/\.m?js$/.test(name)) rmSync(join(dist, name));
  }
  for (const file of output) {
    if (file.type !== 'chunk') throw new Error(`${file.fileName} is no code`);
    mkdirSync(dirname(join(dist, file.fileName)), { recursive: true });
    writeFileSync(join(dist, file.fileName), file.code);
  }
}

if (process.argv[1] === import.meta.filename) {
  await packageCode(root);
  // The next run of the tests builds anew.
  rmSync(join(root, '.cache', 'built-from'), { force: true });
}
