/** What is the same for every verb: help, usage errors, exit codes, which Redis is meant, and that no escape gets out. */
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import packageJson from '../../../package.json' with { type: 'json' };
import { createProgram, everyCommand, runCli } from '../../../src/cli/cli.ts';
import { examplesOf } from '../../../src/cli/session.ts';
import { useCli } from '../../support/cli.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const cli = useCli();
const nowhere = 'redis://127.0.0.1:1';
let server: TestRedis;

beforeAll(async () => {
  server = await startRedis({ appendonly: true, port: true });
});
afterAll(() => server.stop());

/** All else is asked of the command line in this process; here it is the executable, as a shell runs it. */
describe('the executable', () => {
  test('answers on stdout, ends with 0, and says nothing else', async () => {
    expect(await cli.spawn(['--version'])).toEqual({ code: 0, out: `${packageJson.version}\n`, err: '' });
  });

  test('complains on stderr and passes the status of the command line on', async () => {
    const { code, out, err } = await cli.spawn(['lst']);
    expect({ code, out }).toEqual({ code: 64, out: '' });
    expect(err).toBe("duestream: unknown command 'lst'; did you mean ls?\nnext: duestream --help\n");
    expect((await cli.spawn(['ls', 'q', '--redis', nowhere])).code).toBe(69);
  });

  test('reads data from its stdin and settings from its environment', async () => {
    const env = { DUESTREAM_REDIS_URL: server.url, DUESTREAM_NAMESPACE: 'spawned' };
    const args = ['schedule', 'q', '--id', 'a', '--data', '-', '--delay', '1h'];
    expect(await cli.spawn(args, { input: '{"from":"stdin"}', env })).toMatchObject({ code: 0, err: '' });
    const client = await server.client();
    expect(await client.hget('spawned:v1:{q:0}:jobs', 'j:a')).toContain('{"d":{"from":"stdin"}}');
  });

  test('ends with 0 when whoever reads has seen enough', async () => {
    const { child } = await cli.start(['dead', 'replay', '--help']);
    child.stdout?.destroy();
    await once(child, 'close');
    expect(child.exitCode).toBe(0);
  });
});

describe('help', () => {
  test('every verb has a description and an example that begins with its own words', () => {
    const program = createProgram({ run: async () => undefined });
    for (const command of everyCommand(program).filter((one) => one.commands.length === 0)) {
      const words = `duestream ${command.parent === program ? '' : `${command.parent?.name()} `}${command.name()}`;
      expect(command.description(), words).toMatch(/^[a-z].{10,}[^.]$/);
      expect(examplesOf(command)[0], words).toMatch(new RegExp(`^${words}( |$)`));
    }
  });

  test('is shown with its examples and the flags that all verbs have', async () => {
    const { code, out } = await cli.run(['dead', 'replay', '--help']);
    expect(code).toBe(0);
    expect(out).toContain('Usage: duestream dead replay [options] <queue> [dead-letter...]');
    for (const flag of ['--all', '--json', '--redis', '--namespace', '--config']) expect(out).toContain(flag);
    expect(out).toContain('$ duestream dead replay emails --all');
  });

  test('the version is the one of the package', async () => {
    expect(await cli.run(['--version'])).toEqual({ code: 0, out: `${packageJson.version}\n`, err: '' });
  });

  test('no verb at all shows the help on stderr and ends with 64', async () => {
    const { code, out, err } = await cli.run([]);
    expect({ code, out }).toEqual({ code: 64, out: '' });
    expect(err).toContain('Usage: duestream');
  });
});

describe('a usage error ends with 64 and two lines that tell the next step', () => {
  test.each([
    ['an unknown verb', ['lst'], "unknown command 'lst'; did you mean ls?", 'duestream --help'],
    ['a missing argument', ['show', 'emails'], "missing required argument 'id'", 'duestream show --help'],
    ['an unknown flag', ['dead', 'ls', 'q', '--limmit', '1'], "unknown option '--limmit'", 'duestream dead ls --help'],
    ['a number out of range', ['ls', 'q', '--limit', '0'], 'a whole number from 1 to 1000', 'duestream ls --help'],
    ['an unknown state', ['ls', 'q', '--state', 'lost'], 'Allowed choices are scheduled', 'duestream ls --help'],
    ['a queue outside the grammar', ['ls', 'A B'], 'queue name is "A B"; allowed:', 'duestream ls --help'],
    [
      'dead letters and --all',
      ['dead', 'replay', 'q', '1-0', '--all'],
      'name the dead letters in one way',
      'duestream dead replay --help',
    ],
    ['the role worker without handlers', ['start', '--roles', 'worker'], '--module', 'duestream start --help'],
  ])('%s', async (_, args, message, next) => {
    const { code, out, err } = await cli.run([...args, '--redis', server.url]);
    const lines = err.trimEnd().split('\n');
    expect({ code, out, lines: lines.length }).toEqual({ code: 64, out: '', lines: 2 });
    expect(lines[0]).toMatch(/^duestream: /);
    expect(lines[0]).toContain(message);
    expect(lines[1]).toBe(`next: ${next}`);
  });

  test('with --json the error is JSON on stderr', async () => {
    const { code, out, err } = await cli.run(['ls', 'q', '--limit', 'many', '--json']);
    expect({ code, out }).toEqual({ code: 64, out: '' });
    expect(JSON.parse(err)).toEqual({ error: { code: 'usage', message: expect.stringContaining('--limit') } });
  });
});

describe('a Redis that is away', () => {
  // Every verb waits for it as long as this says; the executable above waits for the default.
  const env = { DUESTREAM_REDIS__CONNECT_TIMEOUT: '200ms' };
  const verbs = [
    ['schedule', 'q'],
    ['ls', 'q'],
    ['show', 'q', 'a'],
    ['cancel', 'q', 'a'],
    ['dead', 'ls', 'q'],
    ['dead', 'show', 'q', '1-0'],
    ['dead', 'replay', 'q', '1-0'],
    ['dead', 'purge', 'q', '--yes'],
    ...['ls', 'show q', 'pause q', 'resume q', 'rm q'].map((verb) => ['queues', ...verb.split(' ')]),
    ['queues', 'leaders'],
    ['queues', 'workers'],
  ];
  test.each(verbs.map((verb) => [verb.join(' '), verb] as const))('ends "%s" with 69', async (_, verb) => {
    const { code, out, err } = await cli.run([...verb, '--redis', nowhere, '--json'], { env });
    expect({ code, out }).toEqual({ code: 69, out: '' });
    expect(JSON.parse(err)).toEqual({ error: { code: 'unavailable', message: expect.stringContaining(nowhere) } });
  });

  test('is told to people with where it was looked for and how to get one', async () => {
    const { err } = await cli.run(['queues', 'ls', '--redis', 'redis://u:secret@127.0.0.1:1'], { env });
    expect(err).toContain('cannot reach Redis at redis://127.0.0.1:1: connect ECONNREFUSED');
    expect(err).toContain('next: start one with "duestream dev"');
    expect(err).not.toContain('secret');
  });
});

test.each([
  ['close mail x', 'queues close, or groups close, or tags close'],
  ['leaders', 'queues leaders'],
  ['count mail', 'ls <queue> --count'],
  ['history ls mail', 'ls <queue> --state over'],
  ['fsck mail', 'doctor --keys'],
  ['help fsck', 'doctor --keys'],
  ['run-now mail x', 'reschedule <queue> <id> --now'],
  ['dead groups mail', 'dead ls <queue> --groups'],
  ['queues unset mail rate', 'queues set <queue> --unset <setting>'],
  ['groups unset mail acme', 'groups set <queue> <group> --unset'],
])('%s is told where it is now', async (line, meant) => {
  const { code, err } = await cli.run(line.split(' '));
  expect(code).toBe(64);
  for (const one of meant.split(', or ')) expect(err).toContain(one);
});

test('the first screen has headings, and no more than 30 commands', async () => {
  const { out } = await cli.run(['--help']);
  for (const heading of ['Run:', 'Jobs:', 'Queues and schedules:', 'Watch and look after:'])
    expect(out).toContain(heading);
  expect(out.match(/^ {2}[a-z][a-z-]* /gm)?.length).toBeLessThanOrEqual(30);
});

describe('admin config', () => {
  test('shows each value and where it was set, without secrets', async () => {
    const env = {
      DUESTREAM_REDIS_URL: 'redis://u:not-shown@10.0.0.5:6379',
      DUESTREAM_HTTP__TOKEN: 'a-token-of-some-length',
    };
    const { code, out } = await cli.run(['admin', 'config', '--namespace', 'shop'], { env });
    expect(code).toBe(0);
    expect(out).toMatch(/^namespace: "shop" +# --namespace$/m);
    expect(out).toMatch(/^redis\.url: "redis:\/\/\*\*\*@10\.0\.0\.5:6379" +# DUESTREAM_REDIS_URL$/m);
    expect(out).toMatch(/^mover\.lease: "5s" +# default$/m);
    expect(out).not.toMatch(/not-shown|a-token/);
  });

  test('is a list with --json', async () => {
    const { out } = await cli.run(['admin', 'config', '--json']);
    const { options } = JSON.parse(out);
    expect(options).toContainEqual({ key: 'mover.lease', value: '5s', origin: 'default' });
  });

  test('a bad configuration ends with 78 and names the place', async () => {
    const { code, err } = await cli.run(['admin', 'config'], { env: { DUESTREAM_MOVER__LEASE: '5 parsecs' } });
    expect(code).toBe(78);
    expect(err).toContain('mover.lease is "5 parsecs" (DUESTREAM_MOVER__LEASE); allowed:');
    const missing = await cli.run(['admin', 'config', '--config', 'none.yaml', '--json']);
    expect(missing.code).toBe(78);
    expect(JSON.parse(missing.err).error.code).toBe('bad-config');
  });
});

describe('which Redis', () => {
  const urlOf = async (args: readonly string[] = [], env: Record<string, string> = {}) => {
    const { out } = await cli.run(['admin', 'config', '--json', ...args], { env });
    const row = JSON.parse(out).options.find(({ key }: { readonly key: string }) => key === 'redis.url');
    return [row.value, row.origin];
  };
  const devFile = (server: object) => {
    mkdirSync(join(cli.folder, '.duestream'), { recursive: true });
    writeFileSync(join(cli.folder, '.duestream/dev.json'), JSON.stringify(server));
  };

  test('a flag wins over the environment, that over the development server, that over the default', async () => {
    const dev = 'redis://127.0.0.1:7001';
    devFile({ url: dev, pid: process.pid });
    const env = { DUESTREAM_REDIS_URL: 'redis://127.0.0.1:7002' };
    expect(await urlOf(['--redis', 'redis://127.0.0.1:7003'], env)).toEqual(['redis://127.0.0.1:7003', '--redis']);
    expect(await urlOf([], env)).toEqual(['redis://127.0.0.1:7002', 'DUESTREAM_REDIS_URL']);
    expect(await urlOf()).toEqual([dev, '.duestream/dev.json']);
    rmSync(join(cli.folder, '.duestream'), { recursive: true });
    expect(await urlOf()).toEqual(['redis://127.0.0.1:6379', 'default']);
  });

  test('a development server whose process is gone is not believed', async () => {
    // Above the largest pid there can be.
    devFile({ url: 'redis://127.0.0.1:7001', pid: 2 ** 30 });
    expect(await urlOf()).toEqual(['redis://127.0.0.1:6379', 'default']);
    rmSync(join(cli.folder, '.duestream'), { recursive: true });
  });
});

describe('colours', () => {
  const printed = async (isTTY: boolean, env: Readonly<Record<string, string>>) => {
    let text = '';
    const screen = { isTTY, write: (part: string) => (text += part) };
    const stdin = Readable.from([]);
    await runCli({
      args: ['doctor', '--redis', server.url],
      env,
      cwd: cli.folder,
      stdin,
      stdout: screen,
      stderr: screen,
    });
    return text;
  };

  test('are for terminals that want them', async () => {
    expect(await printed(true, {})).toContain('\u001b[32mok  \u001b[39m');
    expect(await printed(false, {})).not.toContain('\u001b');
    expect(await printed(true, { NO_COLOR: '1' })).not.toContain('\u001b');
    expect(await printed(true, { TERM: 'dumb' })).not.toContain('\u001b');
  });
});

describe('doctor', () => {
  test('finds nothing wrong with a server that keeps what it is given', async () => {
    const { code, out } = await cli.run(['doctor', '--redis', server.url]);
    // What is known about the version under test is not the server's fault.
    const said = out.replace(/^(ok {4}|warn {2})patches .*\n( {19}.*\n)?/m, '');
    expect(said.match(/^ok {4}\w+/gm)?.map((text) => text.slice(6))).toEqual([
      ...['reachable', 'version', 'role', 'eviction', 'persistence', 'clock', 'rights', 'scripts', 'offers'],
      ...[
        'schema',
        'workers',
        'processes',
        'policies',
        'limits',
        'lateness',
        'scores',
        'members',
        'schedules',
        'streams',
        'done',
        'closed',
        'sets',
        'targets',
      ],
    ]);
    expect(said.trimEnd()).toMatch(/(all is well|usable, with 1 warning)$/);
    expect(said).not.toMatch(/^(warn|fail)/m);
    expect(code).toBe(0);
  });

  test('refuses one that evicts, and warns of one that only makes snapshots', async () => {
    const args = ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru', '--save', '900 1'];
    const evicting = await startRedis({ args });
    const { code, out } = await cli.run(['doctor', '--redis', evicting.url, '--json']);
    await evicting.stop();
    expect(code).toBe(1);
    const { ok, checks } = JSON.parse(out);
    expect(ok).toBe(false);
    expect(checks).toContainEqual({
      check: 'eviction',
      status: 'fail',
      saw: 'allkeys-lru, limit 100 MiB',
      advice: expect.stringContaining('CONFIG SET maxmemory-policy noeviction'),
    });
    expect(checks).toContainEqual({
      check: 'persistence',
      status: 'warn',
      saw: expect.stringContaining('snapshots only, last snapshot'),
      advice: expect.stringContaining('loses every job'),
    });
  });

  test('fails one that keeps nothing, and a replica', async () => {
    const bare = await startRedis({ args: ['--replicaof', '127.0.0.1', '1'] });
    const { code, out } = await cli.run(['doctor', '--redis', bare.url]);
    await bare.stop();
    expect(code).toBe(1);
    expect(out).toMatch(/^fail {2}role +replica\n +name the primary/m);
    expect(out).toMatch(/^fail {2}persistence +none\n +CONFIG SET appendonly yes/m);
    expect(out).toMatch(/2 failed: correct that/);
  });

  test('says what it cannot see for want of rights', async () => {
    const client = await server.client();
    await client.call('ACL', 'SETUSER', 'limited', 'on', '>pw', '~*', '&*', '+@all', '-config');
    const { code, out } = await cli.run(['doctor', '--json', '--redis', `redis://limited:pw@127.0.0.1:${server.port}`]);
    expect(JSON.parse(out).checks).toContainEqual({
      check: 'persistence',
      status: 'warn',
      saw: 'AOF, fsync not visible',
      advice: expect.stringContaining('appendfsync'),
    });
    expect(code).toBe(0);
  });

  test('ends with 69 when there is nothing to look at', async () => {
    const env = { DUESTREAM_REDIS__CONNECT_TIMEOUT: '200ms' };
    const { code, out } = await cli.run(['doctor', '--redis', nowhere], { env });
    expect(code).toBe(69);
    expect(out).toContain('fail  reachable    cannot reach Redis');
  });
});
