/**
 * `npm run sbom`: what a user of duestream runs that others have written, as CycloneDX on standard output. `npm sbom` makes
 * it from the lock file.
 *
 * `npm sbom --omit=dev` of npm 11 leaves out each package that a development dependency needs as well: 18 of 46, pino and zod
 * among them. So it is asked about a copy of package.json that has no development dependencies, and a package that is missing
 * all the same is an error.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './steps.mjs';

/** A package in the lock file. @typedef {{ version?: string, license?: string, dev?: boolean, devOptional?: boolean, dependencies?: Readonly<Record<string, string>> }} Locked */
/** @typedef {Readonly<Record<string, Locked>>} Lock by path: `node_modules/pino` */
/** @typedef {{ name: string, version: string | undefined, license: string | undefined }} Shipped */

/**
 * What reaches users: what is installed with the package, and what is built into the pages, which nobody installs.
 *
 * @param {Lock} lock @param {readonly string[]} builtIn names @returns {readonly Shipped[]}
 */
export function shippedPackages(lock, builtIn) {
  const inPages = new Set(builtIn);
  for (const name of inPages) {
    for (const needed of Object.keys(lock[`node_modules/${name}`]?.dependencies ?? {})) inPages.add(needed);
  }
  return Object.entries(lock)
    .map(([path, locked]) => ({ name: path.split('node_modules/').at(-1) ?? '', locked }))
    .filter(({ name, locked: { dev, devOptional } }) => name !== '' && (inPages.has(name) || !(dev || devOptional)))
    .map(({ name, locked: { version, license } }) => ({ name, version, license }));
}

/** The packages that the pages import. @returns {readonly string[]} */
export function builtIntoPages() {
  const folder = join(root, 'src', 'dashboard');
  const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => /\.tsx?$/.test(path));
  const imported = sources.flatMap((path) => [
    ...readFileSync(join(folder, path), 'utf8').matchAll(/(?:\bfrom |^import )'([^'.][^']*)';$/gm),
  ]);
  const names = imported.map(([, to = '']) =>
    to
      .split('/')
      .slice(0, to.startsWith('@') ? 2 : 1)
      .join('/'),
  );
  return [...new Set(names)].sort();
}

/** @returns {string} */
export function sbom() {
  const folder = mkdtempSync(join(tmpdir(), 'duestream-sbom-'));
  // npm takes the name of the folder for that of the package.
  const copy = join(folder, 'duestream');
  mkdirSync(copy);
  try {
    const builtIn = builtIntoPages();
    writeFileSync(join(copy, 'package.json'), JSON.stringify(manifestWith(builtIn)));
    for (const name of ['package-lock.json', '.npmrc']) copyFileSync(join(root, name), join(copy, name));
    npm(copy, 'install', '--package-lock-only', '--ignore-scripts', '--offline');
    const text = npm(copy, 'sbom', '--package-lock-only', '--sbom-format=cyclonedx');
    const missing = missingIn(text, shippedPackages(readJson('package-lock.json').packages, builtIn));
    if (missing.length > 0) throw new Error(`npm sbom has left out ${missing.join(', ')}`);
    return text;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** @param {string} text @param {readonly Shipped[]} shipped @returns {readonly string[]} */
export function missingIn(text, shipped) {
  /** @type {{ components: readonly { purl: string }[] }} */
  const { components } = JSON.parse(text);
  const listed = new Set(components.map(({ purl }) => decodeURIComponent(purl)));
  return shipped.map(({ name, version }) => `${name}@${version}`).filter((one) => !listed.has(`pkg:npm/${one}`));
}

/** @param {readonly string[]} builtIn */
function manifestWith(builtIn) {
  const { name, version, description, license, engines, dependencies, devDependencies } = readJson('package.json');
  const pages = Object.fromEntries(builtIn.map((one) => [one, devDependencies[one]]));
  return { name, version, description, license, engines, dependencies: { ...dependencies, ...pages } };
}

/** @param {string} path */
const readJson = (path) => JSON.parse(readFileSync(join(root, path), 'utf8'));

/** @param {string} cwd @param {readonly string[]} args */
const npm = (cwd, ...args) =>
  execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });

if (process.argv[1] === import.meta.filename) process.stdout.write(sbom());
