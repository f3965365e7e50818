/**
 * The container image without a container engine: the steps of the Dockerfile are carried out in an empty folder by an
 * unprivileged user, and what comes out is run as the image's own user, against a Redis of its own. What needs an engine
 * (layers, networks, limits) is not shown here; that every step works, and what is in the image, is.
 */
import type { ChildProcess } from 'node:child_process';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import lock from '../../../package-lock.json' with { type: 'json' };
import { freePort } from '../../../src/embedded/port.mjs';
import { contextFiles } from '../../support/container-context.ts';
import { buildImage, hostIds, type Image, runIn } from '../../support/container-steps.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { read, root } from '../../support/repository.ts';

const dockerignore = read('.dockerignore');
const packages: Readonly<Record<string, Readonly<Record<string, unknown>>>> = lock.packages;
const folder = mkdtempSync(join(tmpdir(), 'due-image-'));
let image: Image;
let server: TestRedis;
let running: ChildProcess[] = [];

beforeAll(async () => {
  chmodSync(folder, 0o755);
  server = await startRedis({ port: true });
  const dockerfile = read('Dockerfile');
  image = await buildImage({ dockerfile, dockerignore, context: root, folder, env: await npmSettings(), fillCache });
}, 600_000);

afterEach(async () => {
  for (const child of running) if (child.exitCode === null) await ended(child, 'SIGKILL');
  running = [];
});

afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe('the build', () => {
  test('is sent nothing but what its steps need', () => {
    const sent = contextFiles(root, dockerignore);
    const places = new Set(sent.map((path) => path.split('/')[0]));
    expect([...places].sort()).toEqual(
      ['.npmrc', 'CHANGELOG.md', 'LICENSE', 'config', 'lua', 'package-lock.json', 'package.json'].concat([
        ...['src', 'tsconfig.build.json', 'tsconfig.json'],
      ]),
    );
    for (const kept of ['.cache', '.git', 'node_modules', 'dist', 'test', '.duestream'])
      expect(places).not.toContain(kept);
  });

  test('leaves in the image what the daemon runs, and nothing of what built it', () => {
    const app = readdirSync(join(image.root, 'app')).sort();
    expect(app).toEqual([...['CHANGELOG.md', 'LICENSE', 'config', 'dist', 'lua', 'node_modules', 'package.json']]);
    expect(readdirSync(image.root).sort()).toEqual(['app', 'root']);
    expect(readdirSync(join(image.root, 'root'))).toEqual([]);
  });

  test('installs every dependency and no development dependency', () => {
    const listed = Object.entries(packages).filter(([path]) => path.startsWith('node_modules/'));
    const isThere = (path: string) => existsSync(join(image.root, 'app', path));
    const isForDevelopment = (of: object) => 'dev' in of || 'devOptional' in of;
    const isOptional = (of: object) => 'optional' in of;
    expect(listed.filter(([path, of]) => isForDevelopment(of) && isThere(path)).map(([path]) => path)).toEqual([]);
    const needed = listed.filter(([, of]) => !isForDevelopment(of) && !isOptional(of));
    expect(needed.length).toBeGreaterThan(20);
    expect(needed.filter(([path]) => !isThere(path)).map(([path]) => path)).toEqual([]);
  });

  test('says what the image is, what it listens on and which signal ends it', () => {
    expect(image.labels).toMatchObject({
      'org.opencontainers.image.title': 'duestream',
      'org.opencontainers.image.licenses': 'MIT',
    });
    expect(image.ports).toEqual(['7420']);
    expect(image.stopSignal).toBe('SIGTERM');
    expect([...image.entrypoint, ...image.cmd]).toEqual(['node', 'dist/main.js', 'start']);
  });
});

describe('the user of the image', () => {
  test('is a number and not root', () => {
    expect(image.user).toMatch(/^[1-9]\d*:[1-9]\d*$/);
  });

  test('owns no file of it and can write none', () => {
    const app = join(image.root, 'app');
    const { uid } = hostIds(image.user);
    const wrong = ['', ...readdirSync(app, { recursive: true, encoding: 'utf8' })].filter((name) => {
      const { mode, uid: owner } = statSync(join(app, name));
      return (mode & 0o002) !== 0 || owner === uid;
    });
    expect(wrong).toEqual([]);
  });
});

describe('a container', () => {
  test('runs as that user, gets healthy, and ends with 0 on SIGTERM', async () => {
    const env = await environment();
    expect(await healthy(env)).toBe(1);
    const daemon = container([...image.entrypoint, ...image.cmd], env);
    await daemon.says('"started"');
    await expect.poll(() => healthy(env)).toBe(0);
    expect(uidOf(daemon.child)).toBe(hostIds(image.user).uid ?? process.getuid?.());
    expect(uidOf(daemon.child)).not.toBe(0);
    expect(await ended(daemon.child, 'SIGTERM')).toBe(0);
    await expect.poll(() => daemon.output()).toContain('"stopped"');
    expect(await healthy(env)).toBe(1);
  });

  test('listens beyond its loopback only with a token', async () => {
    const env = { ...(await environment()), DUESTREAM_HTTP__HOST: '0.0.0.0' };
    const refused = container([...image.entrypoint, ...image.cmd], env);
    expect(await ended(refused.child)).toBe(78);
    expect(refused.output()).toContain('http.token is empty');

    const open = { ...env, DUESTREAM_HTTP__TOKEN: 'a-token-of-16-or-more' };
    await container([...image.entrypoint, ...image.cmd], open).says('"started"');
    await expect.poll(() => healthy(open)).toBe(0);
    expect((await fetch(`http://127.0.0.1:${env.DUESTREAM_HTTP__PORT}/metrics`)).status).toBe(401);
  });

  test('runs handlers that are mounted into the folder of the application', async () => {
    const env = await environment();
    cpSync(join(root, 'examples', 'notification-failover'), join(image.root, 'app', 'handlers'), { recursive: true });
    await container([...image.entrypoint, ...image.cmd], env).says('"started"');
    const healthPort = String(await freePort(somePort()));
    const args = ['worker', 'handlers/handlers.mjs', '--http-port', healthPort];
    const worker = container([...image.entrypoint, ...args], { DUESTREAM_REDIS_URL: server.url });
    await worker.says('"started"');
    await expect.poll(() => healthy({ DUESTREAM_HTTP__PORT: healthPort })).toBe(0);
    const job = ['schedule', 'notes', '--name', 'push', '--data', '{"note":"n1","text":"Hello","fate":{}}'];
    const scheduling = container([...image.entrypoint, ...job], { DUESTREAM_REDIS_URL: server.url });
    expect(await ended(scheduling.child)).toBe(0);
    await worker.says('"delivered"');
  });
});

/** For RUN: npm as the caller has it, without the caller's files. */
async function npmSettings(): Promise<Readonly<Record<string, string>>> {
  const passed = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'NODE_EXTRA_CA_CERTS'].flatMap((name) => {
    const value = process.env[name];
    return value ? [[name, value] as const] : [];
  });
  const npm = { npm_config_prefer_offline: 'true', npm_config_update_notifier: 'false' };
  return { ...Object.fromEntries(passed), ...npm, npm_config_registry: await npmConfig('registry') };
}

async function npmConfig(key: string): Promise<string> {
  const { stdout } = await promisify(execFile)('npm', ['config', 'get', key], { cwd: root });
  return stdout.trim();
}

/** What the caller's npm has fetched before need not be fetched again: packages are found by their checksum. */
async function fillCache(cache: string): Promise<void> {
  const own = join(await npmConfig('cache'), '_cacache');
  for (const { integrity } of Object.values(packages)) {
    if (typeof integrity !== 'string' || !integrity.startsWith('sha512-')) continue;
    const hex = Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex');
    const place = join('content-v2', 'sha512', hex.slice(0, 2), hex.slice(2, 4), hex.slice(4));
    if (!existsSync(join(own, place))) continue;
    const target = join(cache, '_cacache', place);
    mkdirSync(dirname(target), { recursive: true });
    cpSync(join(own, place), target);
  }
}

/** Other test files look for free ports at the same time. */
const somePort = () => 10_000 + Math.floor(Math.random() * 10_000);

async function environment() {
  return { DUESTREAM_REDIS_URL: server.url, DUESTREAM_HTTP__PORT: String(await freePort(somePort())) };
}

/** A command in the image. */
function container(command: readonly string[], env: Readonly<Record<string, string>>) {
  const child = runIn(image, command, env);
  running.push(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  const says = (text: string) => expect.poll(() => output, { interval: 20 }).toContain(text);
  return { child, says, output: () => output };
}

/** The exit status of the health check. */
function healthy(env: Readonly<Record<string, string>>): Promise<number | null> {
  return ended(container(image.healthcheck, env).child);
}

async function ended(child: ChildProcess, signal?: NodeJS.Signals): Promise<number | null> {
  const closed = once(child, 'close');
  if (signal !== undefined) child.kill(signal);
  await closed;
  return child.exitCode;
}

/** Who the process really is, as the kernel says where it can be asked; elsewhere nobody but we can be it. */
function uidOf({ pid }: ChildProcess): number | undefined {
  const status = `/proc/${pid}/status`;
  if (!existsSync(status)) return process.getuid?.();
  return Number(/^Uid:\s+(\d+)/m.exec(readFileSync(status, 'utf8'))?.[1]);
}
