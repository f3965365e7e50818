/**
 * `dead purge <queue>`: dead letters go for ever, oldest first. They go in bounded batches, so a run that was cut short may
 * be repeated; `--cursor` goes on where a run has ended, with the ages of that run.
 */
import type { Command } from 'commander';
import type { DeadLetters, RemovedLetters } from '../../../client/dead/dead-letters.ts';
import { createSteps } from '../../../inspect/dead-letters.ts';
import { counted } from '../../../kernel/humanize.ts';
import { type Exit, type Register, wholeNumber, withExamples } from '../../register.ts';
import { type Session, withDeadLetters } from '../../session.ts';
import { line } from '../../terminal/text.ts';
import { checkConsent, type FilterFlags, filterOf, moreLines, withFilter } from './dead-flags.ts';

interface Flags extends FilterFlags {
  readonly limit: number;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly cursor?: string;
}

/** What one call of the library does. */
const SLICE = 10_000;

export const deadPurge: Register = (parent, runner) => {
  const command = withFilter(parent.command('purge <queue>').description('remove dead letters for ever, oldest first'))
    .option(
      '--limit <n>',
      'remove at most this many; go on with --cursor for the rest',
      wholeNumber(1, 10_000_000),
      100_000,
    )
    .option('--dry-run', 'only count them')
    .option('--yes', 'really remove them; give either this or --dry-run')
    .option('--cursor <text>', 'go on where an earlier run has ended')
    .action((queue: string, flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, queue, flags)),
    );
  withExamples(command, [
    'duestream dead purge emails --older-than 7d --dry-run',
    'duestream dead purge emails --older-than 7d --reason no-handler --yes',
  ]);
};

async function run(session: Session, queue: string, flags: Flags): Promise<Exit> {
  checkConsent(flags, 'this removes dead letters for ever');
  const dryRun = flags.dryRun === true;
  const {
    matched,
    scanned: looked,
    cursor,
  } = await withDeadLetters(session, queue, (dead) => purgeAll(session, dead, { queue, flags, dryRun }));
  const more = cursor !== undefined;
  session.changes.push({ verb: 'dead.purge', queue, count: dryRun ? 0 : matched });
  session.out.answer({ queue, dryRun, [dryRun ? 'matched' : 'removed']: matched, looked, more, cursor }, () => [
    dryRun
      ? line`${counted(matched, 'dead letter')} would be removed, of ${looked} checked`
      : line`${counted(matched, 'dead letter')} removed`,
    ...moreLines(cursor),
  ]);
  return 0;
}

/** Slice after slice, until nothing is left or the limit is reached. */
async function purgeAll(
  session: Session,
  dead: DeadLetters,
  { queue, flags, dryRun }: { readonly queue: string; readonly flags: Flags; readonly dryRun: boolean },
): Promise<RemovedLetters> {
  const verb = dryRun ? 'match' : 'removed';
  const steps = createSteps((looked, matched) => {
    session.out.note(line`${looked} dead letters checked, ${matched} ${verb}`);
  });
  let sum = { matched: 0, changed: 0, scanned: 0 };
  let { cursor } = flags;
  do {
    const limit = Math.min(SLICE, flags.limit - sum.matched);
    const before = sum;
    const slice = await dead.remove(queue, filterOf(flags), {
      limit,
      cursor,
      dryRun,
      all: true,
      onProgress: ({ scanned, matched }) => steps(before.scanned + scanned, before.matched + matched),
    });
    sum = {
      matched: before.matched + slice.matched,
      changed: before.changed + slice.changed,
      scanned: before.scanned + slice.scanned,
    };
    cursor = slice.cursor;
  } while (cursor !== undefined && sum.matched < flags.limit);
  return { ...sum, skipped: {}, dryRun, cursor };
}
