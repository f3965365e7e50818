/**
 * nginx and Caddy for the tests of `docs/how-to/http-api.md`. One on PATH is taken; else Debian's package is unpacked
 * once, with the libraries that the system lacks, into the cache of the repository, as the embedded Redis is. Nothing is
 * installed.
 */
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fetchDebianPackages } from '../../scripts/debian.mjs';
import { executable, findOnPath, firstLine } from '../../src/embedded/binary.mjs';
import { spawnGuarded } from '../../src/embedded/guard.mjs';
import { root } from './repository.ts';

export type ProxyProgram = 'nginx' | 'caddy';

interface Program {
  readonly path: string;
  readonly env: Readonly<Record<string, string>>;
}

const CACHE = join(root, '.cache', 'proxies');
const START_MS = 30_000;
const STEP_MS = 50;
const FOLDERS: Readonly<Record<ProxyProgram, string>> = { nginx: 'usr/sbin', caddy: 'usr/bin' };

/** Rejects with what to do when it cannot be had. */
async function find(name: ProxyProgram): Promise<Program> {
  const [installed] = await findOnPath(name, process.env.PATH);
  if (installed !== undefined) return { path: installed, env: {} };
  try {
    return await unpack(name);
  } catch (error) {
    throw new Error(
      `${name} cannot be had (${firstLine(error)}); put it on PATH, or let a mirror of Debian be reached`,
      {
        cause: error,
      },
    );
  }
}

/** Appears by one rename: what is there is complete. */
async function unpack(name: ProxyProgram): Promise<Program> {
  const dir = join(CACHE, name);
  const path = join(dir, FOLDERS[name], name);
  if ((await executable(path)) === undefined) {
    await mkdir(CACHE, { recursive: true });
    const draft = await mkdtemp(join(CACHE, 'draft-'));
    try {
      const unpacked = join(draft, 'root');
      await fetchDebianPackages({ names: [name], dir: unpacked, stateDir: join(draft, 'apt') });
      await rename(unpacked, dir).catch(async (error: unknown) => {
        // Another process was quicker.
        if ((await executable(path)) === undefined) throw error;
      });
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  }
  const lib = join(dir, 'usr', 'lib');
  const libraries = (await readdir(lib).catch(() => [])).filter((one) => one.includes('-linux-'));
  const before = process.env.LD_LIBRARY_PATH;
  const folders = [...libraries.map((one) => join(lib, one)), ...(before ? [before] : [])];
  return { path, env: folders.length === 0 ? {} : { LD_LIBRARY_PATH: folders.join(':') } };
}

/** @param dir for all that it writes */
const commands: Readonly<
  Record<ProxyProgram, (dir: string, config: string) => { text: string; args: readonly string[] }>
> = {
  nginx: (dir, config) => ({
    text: `daemon off;
worker_processes 1;
pid ${dir}/pid;
error_log stderr;
events {}
http {
  access_log off;
${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `  ${name}_temp_path ${dir}/${name};`).join('\n')}
${config}
}
`,
    args: ['-p', dir, '-e', 'stderr', '-c', join(dir, 'config')],
  }),
  caddy: (dir, config) => ({
    text: `{
  admin off
  auto_https off
  storage file_system ${dir}/storage
}
${config}
`,
    args: ['run', '--adapter', 'caddyfile', '--config', join(dir, 'config')],
  }),
};

/** Runs it until `stop`. @param config a `server` of nginx, a site of a Caddyfile @param url what it answers then */
export async function startProxyProgram(name: ProxyProgram, config: string, url: string) {
  const { path, env } = await find(name);
  const dir = await mkdtemp(join(tmpdir(), 'due-proxy-'));
  const { text, args } = commands[name](dir, config);
  await writeFile(join(dir, 'config'), text);
  const variables = Object.entries({ HOME: dir, ...env }).map(([key, value]) => `${key}=${value}`);
  const child = spawnGuarded({ path: '/usr/bin/env', args: [...variables, path, ...args] });
  const gone = once(child, 'exit');
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (said += String(chunk)));
  const stop = async () => {
    child.kill('SIGTERM');
    await gone;
    await rm(dir, { recursive: true, force: true });
  };
  for (const endMs = Date.now() + START_MS; Date.now() < endMs && child.exitCode === null; await sleep(STEP_MS)) {
    const isThere = await fetch(url).then(
      () => true,
      () => false,
    );
    if (isThere) return { stop };
  }
  await stop();
  throw new Error(`${name} did not start: ${said.slice(-2000)}`);
}
