/** The scripts for people tell what their flags mean, and refuse what they do not know before they do anything. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { root } from '../support/repository.js';

const scripts = [
  ...['bench', 'own', 'idle', 'lateness', 'stages', 'fleet', 'fsck', 'done', 'schedules', 'beyond'].map(
    (name) => `bench/${name}.mjs`,
  ),
  ...['chaos', 'matrix', 'simulate', 'fixture'].map((name) => `scripts/${name}.mjs`),
];

const run = (script: string, ...args: readonly string[]) =>
  promisify(execFile)(process.execPath, [join(root, script), ...args], { cwd: root }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  );

describe.each(scripts)('%s', (script) => {
  it('says with --help what it does and which npm command runs it', async () => {
    const { code, stdout, stderr } = await run(script, '--help');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/npm run [a-z:]+/);
    expect(stdout).not.toMatch(/^ ?\*/m);
  });

  it('ends with 64 at a flag that it does not know, and names those that it knows', async () => {
    const { code, stdout, stderr } = await run(script, '--nonsense');
    expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
    expect(stderr).toMatch(/'--nonsense'.*; allowed: .*--help\n$/);
  });
});

it.each([
  ['bench/bench.mjs', '--only', 'brust'],
  ['bench/bench.mjs', '--against', 'no-such-file.json'],
  ['bench/bench.mjs', '--against', 'package.json'],
  ['bench/stages.mjs', '--only', 'nothing'],
  ['bench/stages.mjs', '--rounds', '0'],
  ['bench/beyond.mjs', '--only', 'everything'],
  ['bench/beyond.mjs', '--rounds', 'some'],
  ['scripts/simulate.mjs', '--hours', 'ever'],
  ['scripts/simulate.mjs', '--seeds', '1.5'],
  ['scripts/chaos.mjs', '--mode', 'perhaps'],
  ['scripts/matrix.mjs', '--tier', 'all'],
])('%s %s %s is told with what is allowed', async (script, flag, value) => {
  const { code, stderr } = await run(script, flag, value);
  expect(code).toBe(64);
  expect(stderr).toMatch(new RegExp(`${flag} ${value}; allowed: `));
});
