/** `dead purge <queue>`: dead letters go for ever, oldest first, by age and reason. */

import type { Command } from 'commander';
import { durationMs } from '../../../core/duration.ts';
import { DuestreamError } from '../../../core/errors.ts';
import { counted } from '../../../core/plain-words.ts';
import { type Purged, purgeDead } from '../../../operations/dead-purge.ts';
import { type Exit, type Register, wholeNumber, withExamples } from '../../register.ts';
import { type Session, withRedis } from '../../session.ts';
import { line } from '../../terminal/text.ts';

interface Flags {
  readonly olderThan?: string;
  readonly reason?: string;
  readonly limit: number;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

const PROGRESS_EVERY = 5000;

export const deadPurge: Register = (parent, runner) => {
  const command = parent
    .command('purge <queue>')
    .description('remove dead letters for ever, oldest first')
    .option('--older-than <duration>', 'only dead letters that are at least this old')
    .option('--reason <reason>', 'only dead letters with exactly this reason')
    .option(
      '--limit <n>',
      'remove at most this many; repeat the command for the rest',
      wholeNumber(1, 10_000_000),
      100_000,
    )
    .option('--dry-run', 'only count them')
    .option('--yes', 'really remove them; give either this or --dry-run')
    .action((queue: string, flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, queue, flags)),
    );
  withExamples(command, [
    'duestream dead purge emails --older-than 7d --dry-run',
    'duestream dead purge emails --older-than 7d --reason no-handler --yes',
  ]);
};

async function run(session: Session, queue: string, flags: Flags): Promise<Exit> {
  if ((flags.dryRun === true) === (flags.yes === true)) {
    throw new DuestreamError(
      'usage',
      'this removes dead letters for ever: count them first with --dry-run, or confirm with --yes',
    );
  }
  const ageMs = flags.olderThan === undefined ? 0 : durationMs(flags.olderThan, '--older-than');
  const dryRun = flags.dryRun === true;
  const { namespace } = session.config;
  const onBatch = (before: number, { looked, matched }: Purged) => {
    if (Math.floor(before / PROGRESS_EVERY) === Math.floor(looked / PROGRESS_EVERY)) return;
    session.out.note(line`${looked} dead letters checked, ${matched} ${dryRun ? 'match' : 'removed'}`);
  };
  const request = { ageMs, reason: flags.reason, limit: flags.limit, dryRun, onBatch };
  const { matched, looked, more } = await withRedis(session, (redis) =>
    purgeDead({ redis, namespace }, queue, request),
  );
  session.changes.push({ verb: 'dead.purge', queue, count: dryRun ? 0 : matched });
  session.out.answer({ queue, dryRun, [dryRun ? 'matched' : 'removed']: matched, looked, more }, () => [
    dryRun
      ? line`${counted(matched, 'dead letter')} would be removed, of ${looked} checked`
      : line`${counted(matched, 'dead letter')} removed`,
    ...(more ? [line`the limit of ${flags.limit} is reached; repeat the command for the rest`] : []),
  ]);
  return 0;
}
