/** Completion as a shell does it: bash reads our lines, and asks the built command line. */
import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { build } from '../../../scripts/steps.mjs';
import { createClient } from '../../../src/client/client.ts';
import { useCli } from '../../support/cli.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { root } from '../../support/repository.ts';

const cli = useCli();
const run = promisify(execFile);
let server: TestRedis;
let bin: string;

beforeAll(async () => {
  await build();
  server = await startRedis({ port: true });
  await using producer = createClient({ redis: server.url });
  await producer.schedule('emails', {}, { delay: '1h' });
  bin = mkdtempSync(join(tmpdir(), 'duestream-bin-'));
  writeFileSync(join(bin, 'duestream'), `#!/bin/sh\nexec '${process.execPath}' '${join(root, 'dist/main.js')}' "$@"\n`);
  chmodSync(join(bin, 'duestream'), 0o755);
});
afterAll(async () => {
  rmSync(bin, { recursive: true, force: true });
  await server.stop();
});

/** What bash offers after these words. */
async function bash(words: readonly string[], url = server.url): Promise<readonly string[]> {
  const script = [
    'set -eu',
    'source <(duestream admin completion bash)',
    'complete -p duestream >&2',
    'COMP_WORDS=(duestream "$@")',
    'COMP_CWORD=$#',
    // Outside of a completion bash has no options of one to change.
    'compopt() { echo "compopt $*"; }',
    '_duestream',
    `printf "%s\\n" "\${COMPREPLY[@]}"`,
  ];
  const env = { PATH: `${bin}:${process.env.PATH}`, DUESTREAM_REDIS_URL: url, HOME: cli.folder };
  const args = ['--norc', '--noprofile', '-c', script.join('\n'), 'bash', ...words];
  const { stdout, stderr } = await run('bash', args, { env, cwd: cli.folder });
  expect(stderr).toBe('complete -F _duestream duestream\n');
  return stdout.split('\n').filter((word) => word !== '');
}

test('bash completes verbs, flags, choices and the names of queues', async () => {
  expect(await bash(['queues', 'p'])).toEqual(['pause']);
  expect(await bash(['schedules', 'forecast', '--by', ''])).toEqual(['minute', 'hour', 'auto']);
  expect(await bash(['ls', ''])).toEqual(['emails']);
  expect(await bash(['--config', ''])).toEqual(['compopt -o default']);
});

test('without a Redis there are no names, and nobody is told', async () => {
  expect(await bash(['ls', ''], 'redis://127.0.0.1:1')).toEqual([]);
});

test('a name that a shell would take apart is not offered', async () => {
  const client = await server.client();
  await client.zadd('duestream:v1:queues', 0, 'a$(touch owned)');
  expect(await bash(['ls', ''])).not.toContain('a$(touch owned)');
});

test('another shell is refused with those that there are', async () => {
  const { code, err } = await cli.run(['admin', 'completion', 'tcsh']);
  expect(code).toBe(64);
  expect(err).toContain('Allowed choices are bash, zsh, fish');
});
