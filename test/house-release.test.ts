/**
 * What people rely on when they install a release: the licences of all that reaches them, and how a release is made. Each rule is a
 * function that says what is wrong, and is shown something wrong first.
 */
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import lock from '../package-lock.json' with { type: 'json' };
import { builtIntoPages, missingIn, shippedPackages } from '../scripts/sbom.mjs';
import { read, walk } from './support/repository.ts';

/**
 * Licences that ask for no more than that their text stays with the code. Another one needs a person who reads it, and then a line here.
 * An expression such as `MIT OR GPL-2.0` is not read: name it whole.
 */
const LICENCES: readonly string[] = ['MIT', 'ISC', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD'];

const unlicensed = (packages: Parameters<typeof shippedPackages>[0], builtIn: readonly string[]) =>
  shippedPackages(packages, builtIn)
    .filter(({ license }) => license === undefined || !LICENCES.includes(license))
    .map(({ name, license }) => `${name}: ${license ?? 'no licence'}`);

describe('the licences of what is shipped', () => {
  test('are those that the list allows', () => {
    expect(shippedPackages(lock.packages, builtIntoPages()).length).toBeGreaterThan(40);
    expect(unlicensed(lock.packages, builtIntoPages())).toEqual([]);
  });

  test('count for what is installed and for what is built into the pages, with all that these need, and for no tool', () => {
    const packages = {
      '': { version: '1.0.0', license: 'GPL-3.0' },
      'node_modules/installed': { license: 'MIT', dependencies: { deep: '1' } },
      'node_modules/installed/node_modules/deep': { license: 'AGPL-3.0' },
      'node_modules/@scope/silent': {},
      'node_modules/either': { license: '(MIT OR GPL-2.0)' },
      'node_modules/tool': { dev: true, license: 'GPL-3.0' },
      'node_modules/tool-of-tools': { devOptional: true, license: 'GPL-3.0' },
      'node_modules/page': { dev: true, license: 'MIT', dependencies: { 'of-page': '1' } },
      'node_modules/of-page': { dev: true, license: 'SSPL-1.0' },
    };
    const wrong = ['deep: AGPL-3.0', '@scope/silent: no licence', 'either: (MIT OR GPL-2.0)', 'of-page: SSPL-1.0'];
    expect(unlicensed(packages, ['page'])).toEqual(wrong);
  });

  test('are asked of each package that a page imports', () => {
    expect(builtIntoPages()).toContain('preact');
    expect(builtIntoPages().filter((name) => !(`node_modules/${name}` in lock.packages))).toEqual([]);
  });

  test('a list of packages that leaves one out, or has another version of it, is noticed', () => {
    const shipped = [
      { name: '@hono/node-server', version: '2.0.0', license: 'MIT' },
      { name: 'zod', version: '4.0.0', license: 'MIT' },
    ];
    const text = JSON.stringify({
      components: [{ purl: 'pkg:npm/%40hono/node-server@2.0.0' }, { purl: 'pkg:npm/zod@3.0.0' }],
    });
    expect(missingIn(text, shipped)).toEqual(['zod@4.0.0']);
  });
});

interface Job {
  readonly needs?: string | readonly string[];
  readonly permissions?: Readonly<Record<string, string>>;
  readonly steps: readonly { readonly uses?: string; readonly run?: string }[];
}

/** What breaks the rules that the workflow states in its first lines. */
function faultsOf(text: string): readonly string[] {
  const { permissions, jobs }: { permissions?: object; jobs: Readonly<Record<string, Job>> } = parse(text);
  const everywhere = [
    ...(permissions && Object.keys(permissions).length === 0 ? [] : ['a job has rights that it does not name']),
    ...(/\bsecrets\.|_AUTH_TOKEN|\.npmrc/.test(text) ? ['a password is kept'] : []),
    ...[...text.matchAll(/uses: (.*)/g)]
      .filter(([, used = '']) => !/^[\w.-]+\/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(used))
      .map(([, used = '']) => `${used} is not pinned by a commit, with its version behind it`),
  ];
  return [...everywhere, ...Object.entries(jobs).flatMap(([name, job]) => faultsOfJob(name, { job, jobs }))];
}

function faultsOfJob(
  name: string,
  { job, jobs }: { readonly job: Job; readonly jobs: Readonly<Record<string, Job>> },
): readonly string[] {
  const runs = job.steps.flatMap(({ run }) => run ?? []);
  const isTested = (one: string): boolean => {
    const before = [jobs[one]?.needs ?? []].flat();
    return before.includes('test') || before.some(isTested);
  };
  const mayWrite = Object.values(job.permissions ?? {}).includes('write');
  return [
    ...(name === 'test' && !runs.includes('bash .ci/run') ? ['the tests do not run'] : []),
    ...(name !== 'test' && !isTested(name) ? [`${name} does not wait for the tests`] : []),
    ...(mayWrite && runs.some((run) => /\bnpm (ci|i|install|run|pack|exec)\b|\bnpx\b|\bnode /.test(run))
      ? [`${name} may publish, and runs code of dependencies`]
      : []),
    ...(runs.some((run) => run.includes('${{')) ? [`${name} puts a text of somebody else into a script`] : []),
  ];
}

describe('a release', () => {
  const text = read('.github/workflows/release.yml');

  test('is made by the rules that its workflow states', () => expect(faultsOf(text)).toEqual([]));

  test.each<readonly [fault: string, from: string | RegExp, to: string]>([
    ['a job has rights that it does not name', 'permissions: {}', ''],
    ['a password is kept', 'GH_TOKEN:', 'NODE_AUTH_TOKEN:'],
    ['the tests do not run', 'run: bash .ci/run', 'run: bash .ci/run || true'],
    ['package does not wait for the tests', 'needs: test', 'needs: []'],
    ['publish may publish, and runs code of dependencies', 'sha256sum --check SHA256SUMS', 'npm ci'],
    ['release puts a text of somebody else into a script', '--verify-tag', `\${{ github.event.head_commit.message }}`],
    [
      'actions/checkout@v7 is not pinned by a commit, with its version behind it',
      /actions\/checkout@.*/,
      'actions/checkout@v7',
    ],
  ])('%s: such a workflow is noticed', (fault, from, to) => expect(faultsOf(text.replace(from, to))).toContain(fault));

  test('publishes with a provenance, and without the scripts of the package', () => {
    expect(text).toMatch(/npm publish "\.\/release\/[^"]+\.tgz" .*--provenance --ignore-scripts/);
    expect(text).toMatch(/--provenance mode=max --sbom true/);
  });

  test('is the only workflow: each other one would need rules of its own', () => {
    expect(walk('.github')).toEqual(['.github/workflows/release.yml']);
  });
});
