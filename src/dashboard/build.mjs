/**
 * Builds the pages of the dashboard: hashed files below `assets/`, and nothing inline, so that a strict
 * Content-Security-Policy holds. All of them together become one module of text, `dist/dashboard/pages.mjs`: the product
 * imports it, so that a bundler takes it along. `npm run build` calls it.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** @returns {Promise<void>} */
export async function buildDashboard() {
  const built = mkdtempSync(join(tmpdir(), 'duestream-pages-'));
  try {
    await buildInto(built);
    mkdirSync(join(root, 'dist', 'dashboard'), { recursive: true });
    writeFileSync(join(root, 'dist', 'dashboard', 'pages.mjs'), moduleOf(built));
  } finally {
    rmSync(built, { recursive: true });
  }
}

/** The files of a folder as text by their paths. @param {string} folder */
function moduleOf(folder) {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => statSync(join(folder, path)).isFile())
    .sort();
  const texts = paths.map((path) => [path.replaceAll(sep, '/'), readFileSync(join(folder, path), 'utf8')]);
  return `export const pages = ${JSON.stringify(Object.fromEntries(texts), null, 2)};\n`;
}

/** @param {string} folder */
async function buildInto(folder) {
  await build({
    configFile: false,
    root: join(root, 'src', 'dashboard'),
    // Relative, so that the pages work below any prefix.
    base: './',
    logLevel: 'warn',
    // Whoever builds, such as a test with NODE_ENV=test: the pages are those that are shipped, without notes for a developer.
    oxc: { jsx: { development: false } },
    build: {
      outDir: folder,
      emptyOutDir: true,
      // An asset as data: in a style sheet would need a wider policy.
      assetsInlineLimit: 0,
      // Pages that are loaded later find their styles there.
      cssCodeSplit: false,
      modulePreload: { polyfill: false },
      target: 'es2022',
      // What others have written asks that its licence goes with it.
      license: { fileName: 'licenses.md' },
      reportCompressedSize: false,
    },
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildDashboard();
