/** `dev --watch`: who saves the handler module has the new handlers at once, and Redis and the daemon stay. */
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { isAlive } from '../../../src/embedded/lock.mjs';
import { freePort } from '../../../src/embedded/port.mjs';
import { runHere } from '../../support/console.ts';
import { type Line, useProcesses } from '../../support/processes.ts';
import { testBinary } from '../../support/redis-binary.ts';
import { root } from '../../support/repository.ts';

const processes = useProcesses();
let cwd = '';
let env: Readonly<Record<string, string>> = {};

beforeEach(async () => {
  cwd = mkdtempSync(join(processes.folder, 'watched-'));
  mkdirSync(join(cwd, 'node_modules'));
  symlinkSync(root, join(cwd, 'node_modules', 'duestream'));
  env = { DUESTREAM_REDIS_SERVER_BIN: await testBinary() };
});

const said = (): readonly string[] => {
  try {
    return readFileSync(join(cwd, 'said'), 'utf8').trimEnd().split('\n');
  } catch {
    return [];
  }
};

const pidsOf = (lines: readonly string[]): readonly number[] =>
  lines.flatMap((line) => (/^loaded .* in \d+$/.test(line) ? Number(/\d+$/.exec(line)?.[0]) : []));

/** Handlers that write down which they are, from a file that the module imports. */
function save(word: string, { broken = false } = {}): void {
  writeFileSync(join(cwd, 'word.mjs'), broken ? 'export const word = ;\n' : `export const word = '${word}';\n`);
}

const MODULE = `
import { appendFileSync } from 'node:fs';
import { defineHandlers } from 'duestream';
import { word } from './word.mjs';
appendFileSync('said', 'loaded ' + word + ' in ' + process.pid + '\\n');
export default defineHandlers({ mail: async (job) => appendFileSync('said', word + ' ' + job.id + '\\n') });
`;

const schedule = (id: string): Promise<Line> =>
  processes.launch({ name: id, args: ['schedule', 'mail', '--id', id, '--json'], env, cwd }).line(() => true);

test('a saved file starts the handlers anew; a broken one waits for the next save; nothing is left behind', async () => {
  save('first');
  writeFileSync(join(cwd, 'handlers.mjs'), MODULE);
  const port = await freePort(20_000 + Math.floor(Math.random() * 10_000));
  const dev = processes.launch({
    name: 'dev',
    args: ['dev', 'handlers.mjs', '--watch', '--json', '--redis-port', String(port)],
    env,
    cwd,
  });
  const { pid } = await dev.line((line) => 'attached' in line);
  await expect.poll(() => said().some((line) => line.startsWith('loaded first'))).toBe(true);
  await schedule('a');
  await expect.poll(said).toContain('first a');

  const [first = 0] = pidsOf(said());
  save('', { broken: true });
  await expect.poll(() => isAlive(first)).toBe(false);
  save('second');
  await expect.poll(() => said().some((line) => line.startsWith('loaded second'))).toBe(true);
  await schedule('b');
  await expect.poll(said).toContain('second b');

  const pids = pidsOf(said());
  expect(new Set(pids).size).toBeGreaterThanOrEqual(2);
  expect(pids).not.toContain(pid);
  expect(await dev.end('SIGTERM')).toMatchObject({ code: 0 });
  await expect.poll(() => pids.filter(isAlive)).toEqual([]);
});

test('handlers do not outlive a dev that is killed', async () => {
  save('only');
  writeFileSync(join(cwd, 'handlers.mjs'), MODULE);
  const port = await freePort(20_000 + Math.floor(Math.random() * 10_000));
  const args = ['dev', 'handlers.mjs', '--watch', '--json', '--redis-port', String(port)];
  const dev = processes.launch({ name: 'dev', args, env, cwd });
  await expect.poll(() => pidsOf(said())).toHaveLength(1);
  const [pid = 0] = pidsOf(said());
  await dev.end('SIGKILL');
  await expect.poll(() => isAlive(pid)).toBe(false);
});

test('without a module there is nothing to watch', async () => {
  const { code, err } = await runHere(['dev', '--watch']);
  expect(code).toBe(64);
  expect(err).toContain('--watch needs the module');
});
