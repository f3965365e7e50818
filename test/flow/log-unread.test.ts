/** A process whose log nobody reads any more ends like any other. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { build } from '../../scripts/steps.mjs';

const DIST = new URL('../../dist/', import.meta.url).href;
const SERVICE = `
  import { createEmitter } from '${DIST}core/events.js';
  import { createLog } from '${DIST}daemon/log.js';
  import { runUntilSignal } from '${DIST}daemon/run.js';
  const log = createLog({ level: 'info', role: 'test' });
  const service = { start: async () => setInterval(() => {}, 1000), stop: async () => {} };
  await runUntilSignal(service, { shutdownMs: 1000, log, events: createEmitter() });
  log.info({}, 'started');
`;

beforeAll(async () => {
  await build();
}, 120_000);

async function started() {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', SERVICE], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const ended = once(child, 'exit');
  await once(child.stdout, 'data');
  return { child, ended };
}

test('a signal ends it with 0 although the reader has gone', { timeout: 20_000 }, async () => {
  const { child, ended } = await started();
  child.stdout.destroy();
  child.kill('SIGTERM');
  expect(await Promise.race([ended, sleep(10_000, 'it tries to write for ever')])).toEqual([0, null]);
});

test('and all it said is there when somebody reads', { timeout: 20_000 }, async () => {
  const { child, ended } = await started();
  let said = '';
  child.stdout.on('data', (chunk) => {
    said += String(chunk);
  });
  const read = once(child.stdout, 'end');
  child.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
  await read;
  expect(said).toMatch(/"msg":"stopping"\}\n.*"msg":"stopped"\}\n$/);
});
