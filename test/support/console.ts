/** The command line inside this process: what a verb says and its exit status, without the time that a process takes. */
import { tmpdir } from 'node:os';
import { Readable } from 'node:stream';
import { runCli } from '../../src/cli/cli.ts';
import type { Called, Ended } from './cli.ts';

/** Runs one command line to its end. */
export async function runHere(
  args: readonly string[],
  { input = '', env = {}, cwd = tmpdir() }: Called & { readonly cwd?: string } = {},
): Promise<Ended> {
  let out = '';
  let err = '';
  const code = await runCli({
    ...{ args, env, cwd, stdin: Readable.from([input]) },
    stdout: { write: (text) => (out += text) },
    stderr: { write: (text) => (err += text) },
  });
  return { code, out, err };
}
