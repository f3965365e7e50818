/**
 * Leaves of the declarations in `dist` those that a reader of the package can reach from its entries. The rest,
 * two thirds of them, describes what nobody can import.
 */
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const DIST = fileURLToPath(new URL('../dist', import.meta.url));
/** @type {{ exports: Readonly<Record<string, string | { readonly types: string }>> }} */
const { exports } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const ENTRIES = Object.values(exports).flatMap((entry) =>
  typeof entry === 'string' ? [] : [entry.types.replace('./dist/', '')],
);

/** The relative modules that a declaration names: `from './x.js'`, `import('./x.js')`, `import './x.js'`. */
const NAMED = /(?:\bfrom|\bimport)\s*\(?\s*['"](\.[^'"]+)['"]/g;

/** Takes the declarations away that no entry leads to. @param {string} [dist] of the product */
export function keepPublicTypes(dist = DIST) {
  const reached = new Set(ENTRIES.map((entry) => join(dist, entry)));
  for (const file of reached) {
    for (const [, module = ''] of readFileSync(file, 'utf8').matchAll(NAMED)) {
      const declaration = join(dirname(file), module).replace(/\.(m?)[jt]s$/, '.d.$1ts');
      if (existsSync(declaration)) reached.add(declaration);
    }
  }
  for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
    if (/\.d\.m?ts$/.test(name) && !reached.has(join(dist, name))) rmSync(join(dist, name));
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) keepPublicTypes();
