/**
 * A Python that can talk to Redis, for producers that are not ours: the system's own, with Debian's python3-redis
 * unpacked into the cache and nothing installed. Where the system has no Python, its packages come along and the
 * unpacked one runs. Where there is no Debian, a Python that has `redis` already will do.
 */
import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fetchDebianPackages, hasApt } from '../../src/embedded/debian.mjs';
import { redisCacheDir } from './redis-binary.ts';
import { root } from './repository.ts';

const run = promisify(execFile);

export interface Program {
  readonly path: string;
  readonly env: NodeJS.ProcessEnv;
}

const unpacked = join(root, '.cache', 'python', 'root');

/** @throws Error with what was tried and why each failed */
export async function findPython(): Promise<Program> {
  const reasons: string[] = [];
  for (const candidate of await candidates(reasons)) {
    try {
      await run(candidate.path, ['-c', 'import redis'], { env: candidate.env, timeout: 20_000 });
      return candidate;
    } catch (error) {
      reasons.push(`${candidate.path}: ${error instanceof Error ? error.message.trim() : 'failed'}`);
    }
  }
  throw new Error(`no Python can import redis (Debian: python3-redis):\n${reasons.join('\n')}`);
}

async function candidates(reasons: string[]): Promise<readonly Program[]> {
  // No caches of byte code beside the examples.
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' };
  const plain = { path: 'python3', env };
  if (!(await hasApt(process.env))) return [plain];
  try {
    await fetchDebianPackages({ names: ['python3-redis'], dir: unpacked, stateDir: join(redisCacheDir, 'apt') });
  } catch (error) {
    reasons.push(error instanceof Error ? error.message : 'fetching failed');
  }
  const debian = { ...env, PYTHONPATH: join(unpacked, 'usr/lib/python3/dist-packages') };
  const libraries = { LD_LIBRARY_PATH: (await libraryFolders()).join(':') };
  return [
    { path: '/usr/bin/python3', env: debian },
    { path: join(unpacked, 'usr/bin/python3'), env: { ...debian, ...libraries } },
    { path: 'python3', env: debian },
    plain,
  ];
}

async function libraryFolders(): Promise<readonly string[]> {
  const folders = await Promise.all(
    ['usr/lib', 'lib'].map(async (base) => {
      const names = await readdir(join(unpacked, base)).catch(() => []);
      return names.filter((name) => name.endsWith('-linux-gnu')).map((name) => join(unpacked, base, name));
    }),
  );
  return folders.flat();
}
