/** `duestream conformance` as a process: the clients of this repository keep every rule, and one that does not is caught. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Conformance } from '../../../src/conformance/conformance.ts';
import type { ProducerConformance } from '../../../src/conformance/producer.ts';
import { clientRules } from '../../../src/conformance/rules.ts';
import { findOnPath } from '../../../src/embedded/binary.mjs';
import { useCli } from '../../support/cli.ts';
import { root } from '../../support/repository.ts';
import { findGo, findPhp } from '../../support/toolchains.ts';

const cli = useCli();
const run = promisify(execFile);
const [go, php] = await Promise.all([findGo(), findPhp()]);
const [python] = await findOnPath('python3', process.env.PATH);
const PATIENCE = { timeout: 600_000 };
const HELD = Object.fromEntries(Object.keys(clientRules).map((rule) => [rule, 'held']));

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'due-conformance-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function conformed(command: string, args: readonly string[] = [], env: Readonly<Record<string, string>> = {}) {
  const { code, out, err } = await cli.spawn(['conformance', '--worker', command, '--json', ...args], { env });
  const found: Conformance = JSON.parse(out);
  const statusOf = Object.fromEntries(found.rows.map(({ rule, status }) => [rule, status]));
  return { code, err, found, statusOf, failures: found.rows.filter(({ status }) => status === 'failed') };
}

describe('the clients keep every rule', PATIENCE, () => {
  test.skipIf(python === undefined)('Python', async () => {
    const env = { PYTHONPATH: join(root, 'clients/python'), PYTHONDONTWRITEBYTECODE: '1' };
    const { code, statusOf, failures } = await conformed(`${python} ${join(root, 'clients/python/probe.py')}`, [], env);
    expect(failures).toEqual([]);
    expect({ code, statusOf }).toEqual({ code: 0, statusOf: HELD });
  });

  test('Go', async ({ skip }) => {
    if (!go.program) return skip(go.reason);
    const { path, env } = go.program;
    const built = join(folder, 'probe');
    const own = { ...env, GOFLAGS: '-mod=mod', GOPROXY: 'off', GOCACHE: join(folder, 'go-cache') };
    await run(path, ['build', '-o', built, './probe'], { cwd: join(root, 'clients/go'), env: own });
    const { code, statusOf, failures } = await conformed(built);
    expect(failures).toEqual([]);
    // A process of Go cannot fork itself.
    expect({ code, statusOf }).toEqual({ code: 0, statusOf: { ...HELD, fork: 'not tried' } });
  });

  test('PHP', async ({ skip }) => {
    if (!php.program) return skip(php.reason);
    const { path, env } = php.program;
    const named = ['PHP_INI_SCAN_DIR', 'LD_LIBRARY_PATH'].flatMap((name) =>
      env[name] ? [`${name}=${env[name]}`] : [],
    );
    const command = ['env', ...named, path, join(root, 'clients/php/probe.php')].join(' ');
    const { code, statusOf, failures } = await conformed(command);
    expect(failures).toEqual([]);
    expect({ code, statusOf }).toEqual({ code: 0, statusOf: HELD });
  });
});

/** A client that takes what it gets: a fixed name, no repetition, no beat, no look at the clock. */
const CARELESS = `
const name = 'h-careless-' + '0'.repeat(32);
const [url] = process.env.DUESTREAM_URLS.split(',');
const call = async (verb, body) => {
  const at = url + '/v1/queues/' + process.env.DUESTREAM_QUEUE + '/' + verb;
  const response = await fetch(at, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ worker: name, ...body }) });
  return response.json();
};
if (process.env.DUESTREAM_FORK === '1') { console.log('no fork'); process.exit(0); }
for (let seq = 1; ; seq += 1) {
  const answer = await call('claim', { seq, max: 5, wait: '1s' }).catch(() => ({}));
  for (const job of answer.jobs ?? []) {
    console.log('began', job.id, job.token);
    if (job.data.do !== 'wait') void call('complete', { run: job.run }).catch(() => undefined);
  }
}
`;

describe('a client that keeps few rules', PATIENCE, () => {
  test('is told which, with what was seen and what becomes of jobs', async () => {
    const program = join(folder, 'careless.mjs');
    writeFileSync(program, CARELESS);
    const asked = ['number', 'late', 'name', 'once', 'refused'];
    const { code, statusOf, found } = await conformed(
      `${process.execPath} ${program}`,
      asked.flatMap((rule) => ['--rule', rule]),
    );
    expect(code).toBe(1);
    expect(statusOf).toEqual(Object.fromEntries(asked.map((rule) => [rule, 'failed'])));
    expect(found.rows.find(({ rule }) => rule === 'late')).toMatchObject({ else: clientRules.late.else });
  });
});

test('a worker that ends early is told with what it said last', PATIENCE, async () => {
  const { code, found } = await conformed('echo no >&2; exit 3', ['--rule', 'fork']);
  expect(code).toBe(1);
  expect(found.rows[0]?.saw).toMatch(/^the program claims, .*: not seen, and the program has ended: no$/);
});

describe('a producer', PATIENCE, () => {
  test.skipIf(python === undefined)('of the examples answers every question of the golden vectors', async () => {
    const command = `${python} ${join(root, 'examples/foreign-producers/answer_vectors.py')}`;
    const env = { PYTHONDONTWRITEBYTECODE: '1' };
    const { code, out } = await cli.spawn(['conformance', '--producer', command, '--json'], { env });
    const found: ProducerConformance = JSON.parse(out);
    expect(found.rows.filter(({ status }) => status !== 'held')).toEqual([]);
    expect(code).toBe(0);
  });

  test('that ends early is told with what it said last', async () => {
    const { code, err } = await cli.spawn(['conformance', '--producer', 'echo no >&2; exit 3']);
    expect(code).toBe(1);
    expect(err).toMatch(/answered 0 of \d+ questions, then it ended: no/);
  });
});

test('one program is tried at a time', async () => {
  const { code, err } = await cli.run(['conformance']);
  expect(code).toBe(64);
  expect(err).toContain('--worker or --producer, one of the two');
});
