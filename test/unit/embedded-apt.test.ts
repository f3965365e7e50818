/**
 * The distribution's package, unpacked privately: by the real apt, as a user without rights. The archives are kept in
 * the repository's cache, so only the first run downloads anything.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chmod, cp, lchown, mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { fetchDebianPackages, plannedPackages } from '../../scripts/debian.mjs';
import { judge } from '../../src/embedded/binary.mjs';
import { withLock } from '../../src/embedded/lock.mjs';
import { redisCacheDir } from '../support/redis-binary.ts';
import { root } from '../support/repository.ts';

const run = promisify(execFile);
// Far above need: apt reads lists of 60,000 packages, several times, and some machines are busy.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });
const keptApt = join(redisCacheDir, 'apt');
const MODULES = ['src/embedded', 'scripts/redis-package.mjs', 'scripts/debian.mjs'];
const NOBODY = 65_534;
const OVER = { recursive: true, force: true };
/** Root can become nobody; everybody else is without rights already. */
const unprivileged = process.getuid?.() === 0 && hasNobody() ? { uid: NOBODY, gid: NOBODY } : {};

let dir = '';
let cacheDir = '';

beforeAll(async () => {
  dir = await realpath(await mkdtemp(join(tmpdir(), 'due-')));
  cacheDir = join(dir, 'cache');
  await mkdir(cacheDir);
  // Nobody must be able to read the modules, wherever the repository lies.
  for (const part of MODULES) await cp(join(root, part), join(dir, part), { recursive: true });
  await withKept(() => cp(keptApt, join(cacheDir, 'apt'), { recursive: true }).catch(() => {}));
  if (unprivileged.uid !== undefined) await giveAway(cacheDir);
  await chmod(dir, 0o755);
});

afterAll(async () => {
  await withKept(async () => {
    for (const part of ['archives', 'lists']) await cp(join(cacheDir, 'apt', part), join(keptApt, part), OVER);
  });
  await rm(dir, { recursive: true, force: true });
});

/** Others may be reading or filling the repository's cache. */
function withKept(work: () => Promise<void>): Promise<void> {
  return withLock({ path: `${keptApt}.lock`, timeoutMs: 60_000 }, work);
}

async function giveAway(folder: string): Promise<void> {
  const entries = await readdir(folder, { recursive: true });
  // Never through a link.
  for (const entry of ['', ...entries]) await lchown(join(folder, entry), NOBODY, NOBODY);
}

/** In a user namespace there may be no such user. */
function hasNobody(): boolean {
  const lines = readFileSync('/proc/self/uid_map', 'utf8').trim().split('\n');
  return lines.some((line) => {
    const [first = 0, , count = 0] = line.trim().split(/\s+/).map(Number);
    return first <= NOBODY && NOBODY < first + count;
  });
}

/** In a process of its own, because a user is a property of a process. */
async function resolveAsNobody(env: Record<string, string>) {
  const code = `import { findRedis } from ${JSON.stringify(join(dir, 'scripts', 'redis-package.mjs'))};
    console.log(JSON.stringify(await findRedis({ cacheDir: ${JSON.stringify(cacheDir)} })));`;
  const { stdout, stderr } = await run(process.execPath, ['--input-type=module', '-e', code], {
    ...unprivileged,
    cwd: dir,
    env: { PATH: process.env.PATH, HOME: cacheDir, ...env },
  });
  return { found: JSON.parse(stdout), stderr };
}

const server = () => join(cacheDir, 'server', 'bin', 'redis-server');

test('two users without rights unpack at once, get one working server, and the next takes it from the cache', async () => {
  const both = [resolveAsNobody({ DUESTREAM_REDIS_SOURCE: 'apt' }), resolveAsNobody({ DUESTREAM_REDIS_SOURCE: 'apt' })];
  for (const { found } of await Promise.all(both)) {
    expect(found).toMatchObject({
      kind: 'binary',
      source: 'apt',
      path: server(),
      version: expect.stringMatching(/^\d/),
    });
    expect((await run(found.cli, ['--version'])).stdout).toMatch(/^(redis|valkey)-cli /);
  }
  const { found, stderr } = await resolveAsNobody({ DUESTREAM_REDIS_SOURCE: 'cache' });
  expect(found).toMatchObject({ source: 'cache', path: server() });
  expect(stderr).toBe('');
  expect(await readdir(cacheDir)).not.toContainEqual(expect.stringMatching(/^draft/));
});

test('a corrupt cached copy is replaced', async () => {
  // What we find there may lead to the system's own program: it is removed before we write, never written through.
  await rm(server());
  await writeFile(server(), 'not a program', { flag: 'wx' });
  await resolveAsNobody({ DUESTREAM_REDIS_SOURCE: 'apt' });
  expect(await judge(server())).toMatchObject({ ok: true });
});

test('other packages are unpacked by the same path, once', async () => {
  const wanted = { names: ['liblzf1'], dir: join(dir, 'lzf'), stateDir: join(cacheDir, 'apt') };
  const first = await fetchDebianPackages(wanted);
  const second = await fetchDebianPackages(wanted);
  expect(first.dir).toBe(wanted.dir);
  expect(second.packages).toEqual([]);
});

/** An apt that knows no package before its private lists were read, and notes each call. */
async function slimApt(folder: string, update: string) {
  const bin = join(dir, folder);
  await mkdir(bin);
  const script = `#!/bin/sh
echo "$*" | sed -E 's/-q|-[co] [^ ]*//g; s/^ *//' >> ${bin}/calls
case "$*" in
  *update) ${update} ;;
  *"-s --no-install"*) [ -e ${bin}/lists ] || { echo "E: Unable to locate package tiny" >&2; exit 100; }; echo "Inst tiny (1:2.0-1 Debian:12 [all])" ;;
  *download*) touch tiny_1%3a2.0-1_all.deb ;;
esac
`;
  await writeFile(join(bin, 'apt-get'), script, { mode: 0o755 });
  await writeFile(join(bin, 'dpkg-deb'), '#!/bin/sh\ntouch "$3/unpacked"\n', { mode: 0o755 });
  const env = { PATH: `${bin}:/usr/bin:/bin` };
  const fetch = () => fetchDebianPackages({ names: ['tiny'], dir: join(bin, 'out'), env });
  const calls = async () => (await readFile(join(bin, 'calls'), 'utf8')).trim().split(/ *\n */);
  return { bin, fetch, calls };
}

test('where the system has no package lists, private ones are read', async () => {
  const { bin, fetch, calls } = await slimApt('slim', 'touch "$(dirname "$0")/lists"');
  expect(await fetch()).toEqual({ dir: join(bin, 'out'), packages: ['tiny=1:2.0-1'] });
  expect(await readdir(join(bin, 'out'))).toEqual(['unpacked']);
  const plan = '-s --no-install-recommends install tiny';
  expect(await calls()).toEqual([plan, 'update', plan, 'download tiny=1:2.0-1']);
});

test('where no list knows the package and the mirror is away, the error tells both and nothing is left', async () => {
  const { bin, fetch } = await slimApt('offline', 'echo "E: no mirror" >&2; exit 100');
  await expect(fetch()).rejects.toThrow(/cannot fetch tiny: E: Unable to locate package.*apt-get update: E: no mirror/);
  expect(await readdir(bin)).not.toContainEqual(expect.stringMatching(/^out(\.[0-9a-f]+)?$/));
});

test("the system's hooks are not run, and apt keeps its caches in our folder", async () => {
  const bin = join(dir, 'hooks');
  await mkdir(join(bin, 'elsewhere'), { recursive: true });
  const touch = (name: string) => `{ "touch ${join(bin, 'elsewhere', name)}"; };`;
  const settings = [
    'Dir::Etc::sourcelist "/dev/null";',
    'Dir::Etc::sourceparts "/dev/null";',
    `Dir::Cache::pkgcache "${join(bin, 'elsewhere', 'pkgcache.bin')}";`,
    `Dir::Cache::srcpkgcache "${join(bin, 'elsewhere', 'srcpkgcache.bin')}";`,
    `Dir::Cache::archives "${join(bin, 'elsewhere', 'archives')}";`,
    `APT::Update::Pre-Invoke ${touch('before')}`,
    `APT::Update::Post-Invoke ${touch('after')}`,
    `APT::Update::Post-Invoke-Success ${touch('success')}`,
  ];
  await writeFile(join(bin, 'apt.conf'), settings.join('\n'));
  const wanted = { names: ['no-such-package'], dir: join(bin, 'out'), stateDir: join(bin, 'state') };
  const env = { ...process.env, APT_CONFIG: join(bin, 'apt.conf') };
  await expect(fetchDebianPackages({ ...wanted, env })).rejects.toThrow('cannot fetch no-such-package');
  expect(await readdir(join(bin, 'elsewhere'))).toEqual([]);
});

test('what apt would install is read from its simulation, new packages and upgrades', () => {
  const simulation = `NOTE: This is only a simulation!
Inst libjemalloc2 (5.3.0-1 Debian:12.15/oldstable [amd64])
Inst libssl3 [3.0.1-1] (3.0.2-1 Debian:12.15/oldstable [amd64]) []
Conf libjemalloc2 (5.3.0-1 Debian:12.15/oldstable [amd64])`;
  expect(plannedPackages(simulation)).toEqual(['libjemalloc2=5.3.0-1', 'libssl3=3.0.2-1']);
});
