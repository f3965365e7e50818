/** A process whose log nobody reads, or that cannot be written, works on and ends in time. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { build } from '../../../scripts/steps.mjs';

const DIST = new URL('../../../dist/', import.meta.url).href;
const SERVICE = `
  import { createEmitter } from '${DIST}job/events.js';
  import { createLog } from '${DIST}daemon/log.js';
  import { runUntilSignal } from '${DIST}daemon/run.js';
  const log = createLog({ level: 'info', role: 'test' });
  const service = { start: async () => setInterval(() => {}, 1000), stop: async () => {} };
  await runUntilSignal(service, { shutdownMs: 1000, log, events: createEmitter() });
  log.info({}, 'started');
  if (process.argv.includes('much')) for (let nth = 0; nth < 3000; nth += 1) log.info({ pad: 'x'.repeat(200) }, 'much');
  process.stderr.write('said all');
`;

beforeAll(async () => {
  await build();
});

/** Resolves when it has said all it says before a signal. */
async function started({
  out = 'pipe',
  much = false,
}: {
  readonly out?: 'pipe' | number;
  readonly much?: boolean;
} = {}) {
  const args = ['--input-type=module', '--eval', SERVICE, ...(much ? ['much'] : [])];
  const child = spawn(process.execPath, args, { stdio: ['ignore', out, 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const ended = once(child, 'exit');
  if (!child.stderr) throw new Error('no pipe');
  await once(child.stderr, 'data');
  return { child, ended };
}

test('a signal ends it with 0 although the reader has gone', async () => {
  const { child, ended } = await started();
  child.stdout?.destroy();
  child.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
});

test('a signal ends it with 0 although the disk of the log is full', async () => {
  const full = openSync('/dev/full', 'w');
  onTestFinished(() => closeSync(full));
  const { child, ended } = await started({ out: full, much: true });
  expect(child.exitCode).toBeNull();
  child.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
});

test('a signal ends it, the hard way, although the reader stands still', async () => {
  const { child, ended } = await started({ much: true });
  child.kill('SIGTERM');
  expect(await ended).toEqual([null, 'SIGKILL']);
});

test('all it said is there when somebody reads', async () => {
  const { child, ended } = await started({ much: true });
  if (!child.stdout) throw new Error('no pipe');
  const said = text(child.stdout);
  child.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
  const lines = (await said).trimEnd().split('\n');
  expect(lines).toHaveLength(3003);
  expect(lines.slice(-2).map((line) => JSON.parse(line).msg)).toEqual(['stopping', 'stopped']);
});
