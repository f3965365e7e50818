/** The dashboard: from `src/dashboard` into `dist/dashboard`, as files that any address can serve. */
import { defineConfig } from 'vite';

export default defineConfig({
  root: 'src/dashboard',
  // Relative addresses: it also works behind a path prefix.
  base: './',
  logLevel: 'warn',
  build: {
    outDir: '../../dist/dashboard',
    emptyOutDir: true,
    assetsDir: 'assets',
    // A data: URL of a script or style is refused by the Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
