/**
 * Go and PHP for tests of clients: those of the system, else Debian's packages, unpacked into the cache and nothing installed. Undefined
 * with a reason where there is neither, for a test to skip with.
 */
import { execFile } from 'node:child_process';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fetchDebianPackages, hasApt } from '../../scripts/debian.mjs';
import { findOnPath } from '../../src/embedded/binary.mjs';
import { replaceFile } from '../../src/embedded/replace.mjs';
import { libraryFolders, type Program } from './python.ts';
import { redisCacheDir } from './redis-binary.ts';
import { root } from './repository.ts';

const run = promisify(execFile);

interface Toolchain {
  readonly name: string;
  /** What says that it runs, and has what the client needs. */
  readonly probe: readonly string[];
  readonly packages: readonly string[];
  /** The program of the unpacked packages, with what it needs to know. */
  readonly unpacked: (folder: string) => Program | Promise<Program>;
}

/** The links of Debian's packages lead to each other inside the folder; there is no compiler of C beside them. 80 MB are downloaded. */
const GO: Toolchain = {
  name: 'go',
  probe: ['version'],
  packages: ['golang-go'],
  unpacked: (folder) => ({
    path: join(folder, 'usr/lib/go/bin/go'),
    env: { ...process.env, GOROOT: join(folder, 'usr/lib/go'), CGO_ENABLED: '0' },
  }),
};

const PHP: Toolchain = {
  name: 'php',
  probe: ['-r', 'posix_getpid(); curl_version();'],
  packages: ['php-cli', 'php-curl'],
  unpacked: phpIn,
};

/** An installation would link the program by its version, and name its extensions in files that are read at each start. */
async function phpIn(folder: string): Promise<Program> {
  const programs = await readdir(join(folder, 'usr/bin'));
  const name = programs.find((one) => /^php\d+\.\d+$/.test(one)) ?? 'php';
  const modules = await readdir(join(folder, 'usr/lib/php'));
  const built = modules.find((one) => /^\d{8}$/.test(one)) ?? '';
  const lines = ['posix', 'curl'].map((one) => `extension=${join(folder, 'usr/lib/php', built, `${one}.so`)}\n`);
  await mkdir(join(folder, 'ini'), { recursive: true });
  await replaceFile(join(folder, 'ini/duestream.ini'), lines.join(''));
  return {
    path: join(folder, 'usr/bin', name),
    env: {
      ...process.env,
      PHP_INI_SCAN_DIR: join(folder, 'ini'),
      LD_LIBRARY_PATH: (await libraryFolders(folder)).join(':'),
    },
  };
}

export const findGo = (): Promise<Found> => find(GO);
export const findPhp = (): Promise<Found> => find(PHP);

const ask = ({ path, env }: Program, probe: readonly string[]) => run(path, [...probe], { env, timeout: 20_000 });
const runs = (program: Program, probe: readonly string[]): Promise<boolean> =>
  ask(program, probe).then(
    () => true,
    () => false,
  );

export type Found = { readonly program: Program } | { readonly program?: undefined; readonly reason: string };

async function find({ name, probe, packages, unpacked }: Toolchain): Promise<Found> {
  const [own] = await findOnPath(name, process.env.PATH);
  if (own !== undefined && (await runs({ path: own, env: process.env }, probe))) {
    return { program: { path: own, env: { ...process.env } } };
  }
  if (!(await hasApt(process.env)))
    return { reason: `there is no ${name} with what the client needs, and no apt to fetch it` };
  const dir = join(root, '.cache', name);
  try {
    await fetchDebianPackages({ names: packages, dir, stateDir: join(redisCacheDir, 'apt') });
    const program = await unpacked(dir);
    await ask(program, probe);
    return { program };
  } catch (error) {
    return { reason: `${name} does not run: ${error instanceof Error ? error.message.split('\n')[0] : 'unknown'}` };
  }
}
