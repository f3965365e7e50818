/**
 * Makes the reference of the library from the comments of what it exports. One page per entry of the package in `docs/reference/api`; what has no comment is an error.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Application } from 'typedoc';
import { root } from '../steps.mjs';

/** In the order of the page: first what is called. */
const GROUPS = ['Functions', 'Interfaces', 'Type Aliases', 'Classes', 'Variables', 'References'];
const TABLES = /** @type {const} */ ({
  interfacePropertiesFormat: 'table',
  classPropertiesFormat: 'table',
  typeAliasPropertiesFormat: 'table',
  parametersFormat: 'table',
  propertyMembersFormat: 'table',
});

/** @param {string} [folder] where the pages go */
export async function writeApiReference(folder = join(root, 'docs', 'reference', 'api')) {
  const app = await Application.bootstrapWithPlugins({
    plugin: ['typedoc-plugin-markdown'],
    entryPoints: ['.', 'daemon', 'nestjs', 'sql', 'testing'].map((entry) => join(root, 'src', entry, 'index.ts')),
    tsconfig: join(root, 'tsconfig.build.json'),
    // `npm run lint` compiles everything, with a newer compiler.
    skipErrorChecking: true,
    readme: 'none',
    ...{ excludePrivate: true, excludeExternals: true, disableSources: true, disableGit: true },
    validation: { notDocumented: true, notExported: false, invalidLink: true },
    requiredToBeDocumented: ['Class', 'Interface', 'TypeAlias', 'Function', 'Method', 'Variable'],
    treatWarningsAsErrors: true,
    groupOrder: GROUPS,
    outputs: [{ name: 'markdown', path: folder }],
    router: 'module',
    ...{ hidePageHeader: true, hideBreadcrumbs: true, ...TABLES },
    logLevel: 'Warn',
  });
  const project = await app.convert();
  if (!project) throw new Error('the library could not be read');
  app.validate(project);
  if (app.logger.hasErrors() || app.logger.hasWarnings())
    throw new Error('what is exported needs a comment: see above');
  await app.generateOutputs(project);
  for (const name of readdirSync(folder)) mendLinks(join(folder, name));
}

/**
 * The plugin numbers the headings of two entries together where they have the same name, though each entry is a page of its own. A link to a heading that
 * its page does not have twice leads to the one it has.
 *
 * @param {string} path
 */
function mendLinks(path) {
  const text = readFileSync(path, 'utf8');
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading.toLowerCase().replace(/\W/g, ''),
  );
  const isTwice = (/** @type {string} */ name) => headings.filter((heading) => heading === name).length > 1;
  const mended = text.replace(/\(#(\w+)-1\)/g, (link, name) => (isTwice(name) ? link : `(#${name})`));
  writeFileSync(path, mended);
}
