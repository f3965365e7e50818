/** The flags that say which dead letters are meant, the same for every command of `dead`. */
import type { Command } from 'commander';
import type { DeadLetterFilter } from '../../../client/dead/dead-letters.ts';
import { DuestreamError } from '../../../kernel/errors.ts';

export interface FilterFlags {
  readonly reason?: string;
  readonly name?: string;
  readonly tag?: string;
  readonly id?: string;
  readonly error?: string;
  readonly olderThan?: string;
  readonly newerThan?: string;
}

export function withFilter(command: Command): Command {
  return command
    .option('--reason <reason>', 'only dead letters with exactly this reason')
    .option('--name <name>', 'only those of jobs with this name')
    .option('--tag <tag>', 'only those of jobs with this tag')
    .option('--id <id>', 'only those of this job')
    .option('--error <error>', 'only those with this last error, as "dead groups" prints it')
    .option('--older-than <duration>', 'only dead letters that are at least this old')
    .option('--newer-than <duration>', 'only dead letters that are at most this old');
}

export function filterOf(flags: FilterFlags): DeadLetterFilter {
  const { reason, name, tag, id, error, olderThan, newerThan } = flags;
  return { reason, name, tag, id, error, olderThan, newerThan };
}

/** Whether any flag names some of them. */
export const isNamed = (flags: FilterFlags): boolean => Object.values(filterOf(flags)).some((one) => one !== undefined);

/** How to go on where a limit has ended the command. */
export const moreLines = (cursor: string | undefined): readonly string[] =>
  cursor === undefined ? [] : ['there may be more; go on with', `--cursor ${cursor}`];

/** Either of the two, never both, never none. @throws DuestreamError `usage` */
export function checkConsent(flags: { readonly dryRun?: boolean; readonly yes?: boolean }, what: string): void {
  if ((flags.dryRun === true) !== (flags.yes === true)) return;
  throw new DuestreamError('usage', `${what}: count them first with --dry-run, or confirm with --yes`);
}
