/**
 * Builds the pages of the dashboard into `dist/dashboard`: hashed files below `assets/`, and nothing inline, so that a strict
 * Content-Security-Policy holds. `npm run build` calls it.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** @returns {Promise<void>} */
export async function buildDashboard() {
  await build({
    configFile: false,
    root: join(root, 'src', 'dashboard'),
    // Relative, so that the pages work below any prefix.
    base: './',
    logLevel: 'warn',
    build: {
      outDir: join(root, 'dist', 'dashboard'),
      emptyOutDir: true,
      // An asset as data: in a style sheet would need a wider policy.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      target: 'es2022',
      reportCompressedSize: false,
    },
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildDashboard();
