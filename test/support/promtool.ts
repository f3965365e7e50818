/**
 * Prometheus, and its own judge of rules. Those on PATH are taken; else Debian's package is fetched once, as the embedded
 * Redis is, and its programs kept in the cache of the repository. Nothing is installed.
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fetchDebianPackages } from '../../scripts/debian.mjs';
import { executable, findOnPath } from '../../src/embedded/binary.mjs';
import { root } from './repository.ts';

const run = promisify(execFile);
const CACHE = join(root, '.cache', 'promtool');
const TIMEOUT_MS = 60_000;

type Program = 'promtool' | 'prometheus';

export const promtoolPath = (): Promise<string> => pathOf('promtool');
export const prometheusPath = (): Promise<string> => pathOf('prometheus');

/** Rejects with what to do when it cannot be had. */
async function pathOf(program: Program): Promise<string> {
  const kept = join(CACHE, program);
  const [found] = [...(await findOnPath(program, process.env.PATH)), await executable(kept)];
  if (found !== undefined) return found;
  try {
    return await fetched(program, kept);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`${program} cannot be had (${why}); put it on PATH: it is in Debian's package prometheus`, {
      cause: error,
    });
  }
}

/** The package brings a hundred megabytes besides, so only the program is kept. It appears by one rename. */
async function fetched(program: Program, kept: string): Promise<string> {
  await mkdir(CACHE, { recursive: true });
  const draft = await mkdtemp(join(CACHE, 'draft-'));
  try {
    const dir = join(draft, 'root');
    await fetchDebianPackages({ names: ['prometheus'], dir, stateDir: join(draft, 'apt') });
    await rename(join(dir, 'usr', 'bin', program), kept);
    return kept;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** Runs it. Its answer, and what it found on failure. */
export async function promtool(args: readonly string[]): Promise<{ readonly ok: boolean; readonly said: string }> {
  const path = await promtoolPath();
  return run(path, args, { cwd: root, timeout: TIMEOUT_MS }).then(
    ({ stdout, stderr }) => ({ ok: true, said: stdout + stderr }),
    (error: { readonly stdout?: string; readonly stderr?: string; readonly message: string }) => ({
      ok: false,
      said: [error.stdout, error.stderr, error.message].join('\n'),
    }),
  );
}
