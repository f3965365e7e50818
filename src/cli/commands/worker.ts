/** `worker <module>`: a process that runs handlers and nothing else, until a signal. */
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { collect, type Exit, type Register, withExamples } from '../register.ts';
import type { Session } from '../session.ts';

interface Flags {
  readonly queue?: readonly string[];
}

export const worker: Register = (parent, runner) => {
  const command = parent
    .command('worker <module>')
    .description(
      'run the handlers of a module, a file whose default export is defineHandlers({ … }): JavaScript, or TypeScript from Node 22.18 on',
    )
    .option('--concurrency <n>', 'how many handlers of each queue run at once (default: 50)')
    .option('--queue <name>', 'only this queue of the module; may be given several times', collect)
    .option(
      '--http-port <port>',
      'serve health and metrics on this port; 0 takes any free port and prints it; without this flag they are off',
    )
    .option('--log-level <level>', 'write log lines of this level and above it')
    .action((module: string, flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, module, flags)),
    );
  withExamples(command, [
    'duestream worker handlers.mjs',
    'duestream worker handlers.mjs --queue emails --concurrency 20 --http-port 0',
  ]);
};

async function run({ config, loaded, invocation }: Session, module: string, { queue }: Flags): Promise<Exit> {
  // The port of a file or the environment is the daemon's; two processes cannot share it.
  const withHttp = loaded.origins['http.port']?.from === 'flag';
  const { runStart } = await import('../../daemon/start.ts');
  await runStart(
    Object.freeze({
      ...config,
      roles: withHttp ? (['worker', 'http'] as const) : (['worker'] as const),
      worker: Object.freeze({ ...config.worker, module: resolve(invocation.cwd, module) }),
    }),
    queue === undefined ? {} : { only: queue },
  );
  return 0;
}
