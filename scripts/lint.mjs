/**
 * `npm run lint`: biome, oxlint, tsc and knip at the same time, each with its output when it has ended. Exits with 1 when
 * one of them found something.
 */
import { join } from 'node:path';
import { capture } from './run.mjs';
import { root, say } from './steps.mjs';

/** @type {Readonly<Record<string, readonly string[]>>} */
const LINTERS = {
  biome: ['biome', 'ci', '--error-on-warnings'],
  oxlint: ['oxlint'],
  tsc: ['tsc', '--noEmit'],
  'tsc of the pages': ['tsc', '--noEmit', '-p', 'src/dashboard'],
  knip: ['knip'],
};

const codes = await Promise.all(
  Object.entries(LINTERS).map(async ([name, [program = name, ...args]]) => {
    const startedMs = performance.now();
    const { code, output } = await capture(join(root, 'node_modules', '.bin', program), args, { cwd: root });
    say(
      name,
      `${code === 0 ? 'nothing found' : 'found something'}, ${((performance.now() - startedMs) / 1000).toFixed(1)} s`,
    );
    if (code !== 0) process.stdout.write(`${output.trim()}\n`);
    return code;
  }),
);
process.exitCode = codes.every((code) => code === 0) ? 0 : 1;
