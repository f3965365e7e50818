/** The command line inside this process: what a verb says and its exit status, without the time that a process takes. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll } from 'vitest';
import { runCli } from '../../src/cli/cli.ts';
import type { Called, Ended } from './cli.ts';

/** Of our own: in the folder that all share, somebody's settings or development server may lie. */
const EMPTY = mkdtempSync(join(tmpdir(), 'due-'));
afterAll(() => rmSync(EMPTY, { recursive: true, force: true }));

/** Runs one command line to its end. */
export async function runHere(
  args: readonly string[],
  { input = '', env = {}, cwd = EMPTY }: Called & { readonly cwd?: string } = {},
): Promise<Ended> {
  let out = '';
  let err = '';
  const code = await runCli({
    args,
    env,
    cwd,
    stdin: Readable.from([input]),
    stdout: { write: (text) => (out += text) },
    stderr: { write: (text) => (err += text) },
  });
  return { code, out, err };
}
