/**
 * Runs a command in a mount namespace where only some folders can be written. Root needs no more than that namespace;
 * anybody else becomes root of a user namespace to seal it, and is themselves again when the command runs.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readlinkSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { messageOf } from '../../src/kernel/errors.ts';
import { root } from './repository.ts';

const SEAL = fileURLToPath(new URL('./seal.mjs', import.meta.url));

interface Sealed {
  /** Absolute and real paths. */
  readonly writable: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** The words that lead into the namespace, and whom to be again inside. */
interface Way {
  readonly words: readonly string[];
  readonly user?: readonly [uid: number, gid: number];
}

/** How this machine lets a process seal itself off, or why it does not. */
export async function wayToSeal(): Promise<Way | { readonly refused: string }> {
  const [uid, gid] = [process.getuid?.(), process.getgid?.()];
  if (uid === undefined || gid === undefined) return { refused: 'this system has no mount namespaces' };
  const asRoot: Way = { words: ['--mount'] };
  const asUser: Way = { words: ['--user', '--map-root-user', '--mount'], user: [uid, gid] };
  const reasons: string[] = [];
  for (const way of uid === 0 ? [asRoot, asUser] : [asUser]) {
    const { code, output } = await sealed(way, ['true'], { writable: [] });
    if (code === 0) return way;
    reasons.push(`unshare ${way.words.join(' ')}: ${output.trim().split('\n').at(-1) ?? code}`);
  }
  return { refused: reasons.join('; ') };
}

/** Runs a command to its end. */
export async function sealed(
  { words, user }: Way,
  command: readonly string[],
  { writable, env = process.env }: Sealed,
): Promise<{ readonly code: number; readonly output: string }> {
  const settings = JSON.stringify({ writable, outside: readlinkSync('/proc/self/ns/mnt'), user });
  const child = spawn('unshare', [...words, '--', process.execPath, SEAL, settings, ...command], {
    cwd: root,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output = (output + chunk).slice(-20_000);
    });
  }
  try {
    const [code] = await once(child, 'close');
    return { code: Number(code ?? 1), output };
  } catch (error) {
    return { code: 127, output: messageOf(error) };
  }
}
