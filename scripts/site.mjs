/**
 * The documentation as a site: `npm run site` builds it into `site/dist`, `npm run site -- dev` shows it while pages are
 * written, `npm run site -- preview` shows what was built. SITE_BASE is its path where it is not at the top: `/duestream/`.
 */
import { join } from 'node:path';
import { Failed, show } from './run.mjs';
import { packagesOf, root } from './steps.mjs';

const [command = 'build', ...rest] = process.argv.slice(2);
const folder = join(root, 'site');
try {
  await packagesOf('site');
  process.exitCode = await show(join(folder, 'node_modules', '.bin', 'vitepress'), [command, '.', ...rest], {
    cwd: folder,
  });
} catch (error) {
  if (!(error instanceof Failed)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = error.exitCode;
}
