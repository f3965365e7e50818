#!/usr/bin/env node
/** The executable: hands arguments, environment and streams of the process to the command line, and its answer to the shell. */
import { runCli } from './cli/cli.ts';

// `duestream ls … | head` closes our output early; that is no error.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
}

process.exitCode = await runCli({
  args: process.argv.slice(2),
  env: process.env,
  cwd: process.cwd(),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
});
