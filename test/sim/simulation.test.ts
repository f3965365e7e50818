/**
 * Our processes in virtual time over the model of Redis, some seeds of it. Each runs in a process of its own, because
 * time and randomness of that process are replaced. A seed that fails here fails again with
 * `npm run simulate -- --seed <n> --hours <h> --trace`.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { build } from '../../scripts/steps.mjs';
import { root } from '../support/repository.ts';

const run = promisify(execFile);

beforeAll(async () => {
  await build();
}, 120_000);

async function simulate(...args: readonly string[]): Promise<string> {
  const script = join(root, 'scripts', 'simulate.mjs');
  const ended = run(process.execPath, [script, '--product', root, ...args], { maxBuffer: 64 * 1024 * 1024 });
  const { stdout } = await ended.catch((error: { stdout: string }) => error);
  return stdout;
}

test.each([1, 2, 3])(
  'seed %i: nothing is lost, doubled, early, stuck or left',
  async (seed) => {
    const { anomalies, jobs } = JSON.parse(await simulate('--seed', String(seed), '--hours', '0.04'));
    expect(anomalies).toEqual([]);
    expect(jobs).toBeGreaterThan(100);
  },
  60_000,
);

test('the same seed is the same run, to the microsecond', async () => {
  const [one, other] = await Promise.all([1, 2].map(() => simulate('--seed', '4', '--hours', '0.01', '--trace')));
  expect(one?.length).toBeGreaterThan(1000);
  expect(other).toBe(one);
}, 60_000);
