/**
 * The handlers of `dev --watch`: a process of their own, which Node.js starts anew when a file changes that they import.
 * A module cannot be loaded twice in one process, and jobs that run are handed back by the orderly stop of a worker. The
 * process cannot outlive `dev`, however that ends.
 *
 *     dev (Redis, daemon) ──▶ node --watch ──▶ dev --handlers-only: a worker that tells what it does as `dev` does
 */

import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { spawnGuarded } from '../../embedded/guard.mjs';
import { createAbort } from '../../kernel/abort.ts';
import { systemClock } from '../../kernel/clock.ts';
import type { Screen } from '../terminal/invocation.ts';

const MAIN = fileURLToPath(new URL('../../main.js', import.meta.url));
/** Longer than a worker may take to stop. */
const PATIENCE_MS = 5000;

export interface Watched {
  /** Ends the handlers in order, or after a while without. Twice is fine. */
  readonly stop: (withinMs: number) => Promise<void>;
}

/** @param args of the command line that runs the handlers */
export function watchHandlers(
  args: readonly string[],
  { stdout, stderr }: { readonly stdout: Screen; readonly stderr: Screen },
): Watched {
  const child = spawnGuarded({
    path: process.execPath,
    args: [...process.execArgv, '--watch', '--watch-preserve-output', MAIN, ...args],
  });
  child.stdout.setEncoding('utf8').on('data', (text: string) => stdout.write(text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => stderr.write(text));

  async function stop(withinMs: number): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, 'exit');
    const late = createAbort();
    child.kill('SIGTERM');
    const isOver = await Promise.race([
      exit.then(() => true),
      systemClock.sleep(withinMs + PATIENCE_MS, late.signal).then(() => false),
    ]);
    late.abort();
    if (!isOver) child.kill('SIGKILL');
  }

  return { stop };
}
