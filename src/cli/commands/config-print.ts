/** `config print`: every option with its effective value and where it was set; secrets are hidden. */
import type { Command } from 'commander';
import { configRows, printConfig } from '../../config/print.ts';
import { type Exit, type Register, type Session, withExamples } from '../session.ts';
import { line } from '../terminal/output.ts';

export const configPrint: Register = (parent, runner) => {
  const command = parent
    .command('print')
    .description('print every option with its value and where it was set; secrets are hidden')
    .action((_flags: unknown, command: Command) => runner.run(command, run));
  withExamples(command, ['duestream config print', 'duestream config print --config production.yaml --json']);
};

function run({ loaded, out }: Session): Promise<Exit> {
  out.answer({ options: configRows(loaded) }, () =>
    printConfig(loaded)
      .trimEnd()
      .split('\n')
      .map((text) => line`${text}`),
  );
  return Promise.resolve(0);
}
