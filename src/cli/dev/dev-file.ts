/**
 * `.duestream/dev.json`: where the development server of this folder is. Written by `dev`, read by the other commands when
 * no Redis was named anywhere. A file whose process is gone says nothing.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface DevServer {
  readonly url: string;
  readonly pid: number;
  /** Where health and metrics are, such as `http://127.0.0.1:7420`. */
  readonly http: string | undefined;
}

export const DEV_FOLDER = '.duestream';
export const DEV_FILE = `${DEV_FOLDER}/dev.json`;

/** The running development server of a folder, or undefined. */
export function readDevFile(cwd: string): DevServer | undefined {
  try {
    const { url, pid, http }: Record<string, unknown> = JSON.parse(readFileSync(join(cwd, DEV_FILE), 'utf8'));
    if (typeof url !== 'string' || typeof pid !== 'number' || !isAlive(pid)) return undefined;
    return { url, pid, http: typeof http === 'string' ? http : undefined };
  } catch {
    return undefined;
  }
}

/** Makes the folder for the server's data, and keeps it out of the repository that it lies in. */
export function makeDevFolder(cwd: string): string {
  const folder = join(cwd, DEV_FOLDER);
  mkdirSync(folder, { recursive: true });
  try {
    writeFileSync(join(folder, '.gitignore'), '*\n', { flag: 'wx' });
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
  return folder;
}

/** A draft and a rename: who reads sees all of it or nothing, and a link that lies there is not written through. */
export function writeDevFile(cwd: string, server: DevServer): void {
  const draft = join(makeDevFolder(cwd), `dev.json.${server.pid}`);
  rmSync(draft, { force: true });
  writeFileSync(draft, `${JSON.stringify(server)}\n`, { flag: 'wx' });
  renameSync(draft, join(cwd, DEV_FILE));
}

/** Removes the file if it is still the one of this process. */
export function removeDevFile(cwd: string, pid: number): void {
  if (readDevFile(cwd)?.pid === pid) rmSync(join(cwd, DEV_FILE), { force: true });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: there is such a process, of another user.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
