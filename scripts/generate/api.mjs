/**
 * Makes the reference of the library from the comments of what it exports. One page per entry of the package in `docs/reference/api`; what has no comment is an error.
 */
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
    entryPoints: ['.', 'daemon', 'sql', 'testing'].map((entry) => join(root, 'src', entry, 'index.ts')),
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
}
