/** `start`: a daemon with the roles of the configuration, until a signal. */
import type { Command } from 'commander';
import { DuestreamError } from '../../kernel/errors.ts';
import { type Exit, type Register, withExamples } from '../register.ts';
import type { Session } from '../session.ts';

export const start: Register = (parent, runner) => {
  const command = parent
    .command('start')
    .description('run a daemon: it promotes due jobs and serves health and metrics')
    .option('--roles <list>', 'the parts to run: mover, http, worker (default: mover,http)')
    .option('--module <file>', 'the handler module of the role worker')
    .option('--concurrency <n>', 'how many handlers of each queue run at once (default: 50)')
    .option(
      '--schedules <file>',
      'a YAML file of schedules: at start the daemon creates, changes and removes schedules to match it',
    )
    .option('--http-host <host>', 'the address of health and metrics')
    .option('--http-port <port>', 'the port of health and metrics; 0 takes any free one and prints it')
    .option('--log-level <level>', 'write log lines of this level and above it')
    .action((_flags: unknown, command: Command) => runner.run(command, run));
  withExamples(command, [
    'duestream start',
    'duestream start --roles mover,http,worker --module handlers.mjs --http-port 0',
  ]);
};

async function run({ config }: Session): Promise<Exit> {
  if (config.roles.includes('worker') && config.worker.module === '') {
    throw new DuestreamError('usage', 'the role worker needs a handler module: name it with --module');
  }
  const { runStart } = await import('../../daemon/start.ts');
  await runStart(config);
  return 0;
}
