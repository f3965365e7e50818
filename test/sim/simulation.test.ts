/**
 * Our processes in virtual time over the model of Redis: some seeds, and some builds that are broken on purpose. Each
 * run is a process of its own, because its time and randomness are replaced. What fails here fails again with
 * `npm run simulate -- --seed <n> --hours <h> --trace`.
 */
import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { build } from '../../scripts/steps.mjs';
import { patchedCopy } from '../chaos/faults/copies.mjs';
import { dropped } from '../chaos/marks.mjs';
import { root } from '../support/repository.ts';
import { isSlice } from '../tiers.mjs';

const run = promisify(execFile);

beforeAll(async () => {
  await build();
});

async function simulate(product: string, ...args: readonly string[]): Promise<string> {
  const script = join(root, 'scripts', 'simulate.mjs');
  const ended = run(process.execPath, [script, '--product', product, ...args], { maxBuffer: 64 * 1024 * 1024 });
  const { stdout } = await ended.catch((error: { stdout: string }) => error);
  return stdout;
}

test.each(isSlice ? [1] : [1, 2, 3])(
  'seed %i: nothing is lost, doubled, early, stuck or left',
  { timeout: 900_000 },
  async (seed) => {
    const { anomalies, jobs, accounts } = JSON.parse(await simulate(root, '--seed', String(seed), '--hours', '0.04'));
    expect(anomalies).toEqual([]);
    expect(jobs).toBeGreaterThan(100);
    expect(accounts).toBeGreaterThan(10);
  },
);

test.each(isSlice ? [1] : [1, 2])(
  'seed %i, one process that is mover and worker: the same',
  { timeout: 900_000 },
  async (seed) => {
    const told = JSON.parse(await simulate(root, '--seed', String(seed), '--hours', '0.04', '--alone'));
    expect(told.anomalies).toEqual([]);
    expect(told.relayed).toBeGreaterThan(10);
  },
);

test.each(isSlice ? [1] : [1, 2, 3])(
  'seed %i, a queue with limits: the same, and no limit is exceeded',
  { timeout: 900_000 },
  async (seed) => {
    const { anomalies, jobs } = JSON.parse(await simulate(root, '--seed', String(seed), '--hours', '0.04', '--gated'));
    expect(anomalies).toEqual([]);
    expect(jobs).toBeGreaterThan(100);
  },
);

const LINGERS = isSlice ? [['--gated']] : [[], ['--alone'], ['--gated']];

test.each(LINGERS)('due jobs linger %j: the same', { timeout: 900_000 }, async (...words) => {
  const lingers = ['--seed', '1', '--hours', isSlice ? '0.02' : '0.04', '--linger', '40', ...words];
  const { anomalies, jobs } = JSON.parse(await simulate(root, ...lingers));
  expect(anomalies).toEqual([]);
  expect(jobs).toBeGreaterThan(50);
});

const AHEADS = isSlice ? [[]] : [[], ['--alone'], ['--faults', 'jump clock', '--density', '8']];

test.each(AHEADS)(
  'jobs are handed out ahead %j: the same, and no handler begins after a cancel has resolved',
  {
    timeout: 900_000,
  },
  async (...words) => {
    const told = JSON.parse(await simulate(root, '--seed', '1', '--hours', '0.04', '--ahead', '60', ...words));
    expect(told.anomalies).toEqual([]);
    expect(told.jobs).toBeGreaterThan(50);
    if (words.includes('--alone')) return;
    expect(told.offered).toBeGreaterThan(5);
    expect(told.cancelled).toBeGreaterThan(5);
  },
);

test('the same seed is the same run, to the microsecond', { timeout: 900_000 }, async () => {
  const [one, other] = await Promise.all([1, 2].map(() => simulate(root, '--seed', '4', '--hours', '0.01', '--trace')));
  expect(one?.length).toBeGreaterThan(1000);
  expect(other).toBe(one);
});

/** What is broken, what gives it away, under which faults, in which seed it did so the last time, and how. */
const CONTROLS = [
  {
    title: 'does not look for entries it holds without knowing',
    wanted: ['STUCK'],
    faults: 'ambush,cut,mute',
    seed: 1,
    file: 'dist/worker/recover/adopter.js',
    mark: 'unseen-entries',
    edit: dropped,
  },
  {
    title: 'promotes without asking whose term it is',
    wanted: ['TWO-LEADERS'],
    faults: 'freeze,hold',
    seed: 1,
    file: 'lua/promote.lua',
    mark: 'fence',
    edit: dropped,
  },
  {
    title: 'does not look how many run',
    wanted: ['OVER-QUEUE'],
    faults: 'crash',
    seed: 1,
    gated: true,
    file: 'lua/serve.lua',
    mark: 'queue-room',
    edit: dropped,
  },
  {
    title: 'gives a place away while its handler goes on',
    wanted: ['OVER-GROUP', 'OVER-QUEUE'],
    faults: 'crash',
    seed: 1,
    gated: true,
    file: 'dist/worker/run/execution.js',
    mark: 'waits-for-its-handler',
    edit: dropped,
  },
  {
    title: 'writes no hold',
    wanted: ['OVER-GROUP'],
    faults: 'crash',
    seed: 9,
    gated: true,
    file: 'lua/serve.lua',
    mark: 'hold-through',
    more: { file: 'lua/serve.lua', mark: 'hold-begun', edit: dropped },
    edit: dropped,
  },
  {
    title: 'begins what it was handed ahead at once',
    wanted: ['EARLY'],
    faults: '',
    seed: 1,
    ahead: true,
    file: 'dist/worker/run/execution.js',
    mark: 'until-due',
    edit: () => 'if (false)',
  },
  {
    title: 'holds for ever',
    wanted: ['STUCK'],
    faults: '',
    seed: 1,
    ahead: true,
    file: 'dist/worker/run/holds.js',
    mark: 'begins',
    edit: () => 'else if (false)',
  },
  {
    title: 'leaves the last part out of the account of a start',
    wanted: ['ACCOUNT'],
    faults: '',
    seed: 1,
    file: 'dist/job/account.js',
    mark: 'last-part',
    edit: () => '',
  },
  {
    title: 'ends a job that is held by a cancel that its worker does not hear of',
    wanted: ['AFTER-CANCEL'],
    faults: '',
    seed: 1,
    ahead: true,
    file: 'lua/cancel.lua',
    mark: 'held-first',
    edit: () => "if run and run.owner ~= '-' and tonumber(run.due) then return cancel(member, record, run, waits) end",
  },
];

/** Tried after the known one. */
const SEEDS = [1, 2, 3, 4, 5, 6];

for (const { title, ...control } of CONTROLS) {
  test(`a build that ${title} is caught`, { timeout: 900_000 }, async () => {
    const { wanted, faults, seed: known, gated = false, ahead = false, more, ...patch } = control;
    const product = patchedCopy(root, [patch, ...(more ? [more] : [])]);
    const found: string[] = [];
    try {
      for (const seed of [known, ...SEEDS.filter((other) => other !== known)]) {
        if (wanted.some((kind) => found.includes(kind))) break;
        const words = ['--seed', String(seed), '--hours', '0.03', '--density', '4', '--faults', faults];
        if (gated) words.push('--gated');
        if (ahead) words.push('--ahead', '60');
        for (const { kind } of JSON.parse(await simulate(product, ...words)).anomalies) found.push(kind);
      }
      expect(wanted.some((kind) => found.includes(kind))).toBe(true);
    } finally {
      rmSync(product, { recursive: true, force: true });
    }
  });
}
