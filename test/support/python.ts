/**
 * A Python with the packages that a test needs: the system's own, with Debian's packages unpacked into the cache and
 * nothing installed. Where the system has no Python, its packages come along and the unpacked one runs. Where there is
 * no Debian, a Python that has the modules already will do.
 */
import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fetchDebianPackages, hasApt } from '../../scripts/debian.mjs';
import { redisCacheDir } from './redis-binary.ts';
import { root } from './repository.ts';

const run = promisify(execFile);

export interface Program {
  readonly path: string;
  readonly env: NodeJS.ProcessEnv;
}

export interface Wanted {
  readonly modules: readonly string[];
  /** The Debian packages that hold them. */
  readonly packages: readonly string[];
  /** Where they are unpacked, below `.cache/python`. */
  readonly folder: string;
}

const REDIS: Wanted = { modules: ['redis'], packages: ['python3-redis'], folder: 'root' };
/** tzdata comes along where the system has none. */
const CRONITER: Wanted = {
  modules: ['croniter', 'zoneinfo'],
  packages: ['python3-croniter', 'tzdata'],
  folder: 'croniter',
};

/** A Python that can talk to Redis, for producers that are not ours. @throws Error with what was tried */
export const findPython = (): Promise<Program> => findPythonWith(REDIS);

/** A Python that reads cron expressions and time zones. @throws Error with what was tried */
export const findCroniter = (): Promise<Program> => findPythonWith(CRONITER);

async function findPythonWith(wanted: Wanted): Promise<Program> {
  const reasons: string[] = [];
  const imports = `import ${wanted.modules.join(', ')}`;
  for (const candidate of await candidates(wanted, reasons)) {
    try {
      await run(candidate.path, ['-c', imports], { env: candidate.env, timeout: 20_000 });
      return candidate;
    } catch (error) {
      reasons.push(`${candidate.path}: ${error instanceof Error ? error.message.trim() : 'failed'}`);
    }
  }
  throw new Error(`no Python can ${imports} (Debian: ${wanted.packages.join(', ')}):\n${reasons.join('\n')}`);
}

async function candidates({ packages, folder }: Wanted, reasons: string[]): Promise<readonly Program[]> {
  // No caches of byte code beside the examples.
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' };
  const plain = { path: 'python3', env };
  if (!(await hasApt(process.env))) return [plain];
  const unpacked = join(root, '.cache', 'python', folder);
  try {
    await fetchDebianPackages({ names: packages, dir: unpacked, stateDir: join(redisCacheDir, 'apt') });
  } catch (error) {
    reasons.push(error instanceof Error ? error.message : 'fetching failed');
  }
  const debian = {
    ...env,
    PYTHONPATH: join(unpacked, 'usr/lib/python3/dist-packages'),
    PYTHONTZPATH: ['/usr/share/zoneinfo', join(unpacked, 'usr/share/zoneinfo')].join(':'),
  };
  const libraries = { LD_LIBRARY_PATH: (await libraryFolders(unpacked)).join(':') };
  return [
    { path: '/usr/bin/python3', env: debian },
    { path: join(unpacked, 'usr/bin/python3'), env: { ...debian, ...libraries } },
    { path: 'python3', env: debian },
    plain,
  ];
}

/** The folders of libraries below a folder of unpacked packages. */
export async function libraryFolders(unpacked: string): Promise<readonly string[]> {
  const folders = await Promise.all(
    ['usr/lib', 'lib'].map(async (base) => {
      const names = await readdir(join(unpacked, base)).catch(() => []);
      return names.filter((name) => name.endsWith('-linux-gnu')).map((name) => join(unpacked, base, name));
    }),
  );
  return folders.flat();
}
