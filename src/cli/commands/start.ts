/** `start` and `worker`: the commands that run a daemon, or its workers alone. */
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { DuestreamError } from '../../kernel/errors.ts';
import { collect, type Exit, type Register, type Session, withExamples } from '../session.ts';

// `start`: a daemon with the roles of the configuration, until a signal.

export const start: Register = (parent, runner) => {
  const command = parent
    .command('start')
    .description('run a daemon: it promotes due jobs and serves health and metrics')
    .option('--roles <list>', 'the parts to run: mover, http, worker, dispatcher (default: mover,http)')
    .option('--module <file>', 'the handler module of the role worker')
    .option('--concurrency <n>', 'how many handlers of each queue run at once (default: 50)')
    .option(
      '--schedules <file>',
      'a YAML file of schedules: at start the daemon creates, changes and removes schedules to match it',
    )
    .option('--http-host <host>', 'the address of health and metrics')
    .option('--http-port <port>', 'the port of health and metrics; 0 takes any free one and prints it')
    .option('--log-level <level>', 'write log lines of this level and above it')
    .action((_flags: unknown, command: Command) => runner.run(command, startDaemon));
  withExamples(command, [
    'duestream start',
    'duestream start --roles mover,http,worker --module handlers.mjs --http-port 0',
  ]);
};

async function startDaemon({ config }: Session): Promise<Exit> {
  if (config.roles.includes('worker') && config.worker.module === '') {
    throw new DuestreamError('usage', 'the role worker needs a handler module: name it with --module');
  }
  const { runStart } = await import('../../daemon/run.ts');
  await runStart(config);
  return 0;
}

// `worker <module>`: a process that runs handlers and nothing else, until a signal.

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
      runner.run(command, (session) => startWorker(session, module, flags)),
    );
  withExamples(command, [
    'duestream worker handlers.mjs',
    'duestream worker handlers.mjs --queue emails --concurrency 20 --http-port 0',
  ]);
};

async function startWorker({ config, loaded, invocation }: Session, module: string, { queue }: Flags): Promise<Exit> {
  // The port of a file or the environment is the daemon's; two processes cannot share it.
  const withHttp = loaded.origins['http.port']?.from === 'flag';
  const { runStart } = await import('../../daemon/run.ts');
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
