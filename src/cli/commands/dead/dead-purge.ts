/**
 * `dead purge <queue>`: dead letters go for ever, oldest first, by age and reason. Dead letters are matched and removed where
 * they are, a bounded batch at a time, so a run that was cut short goes on where it stopped when it is repeated.
 */
import type { Command } from 'commander';
import { systemClock } from '../../../core/clock.ts';
import { durationMs } from '../../../core/duration.ts';
import { DuestreamError } from '../../../core/errors.ts';
import type { Redis } from '../../../redis/connection/connect.ts';
import { withRetry } from '../../../redis/connection/outage.ts';
import type { PartitionRef } from '../../../redis/keys.ts';
import { type PurgeReply, purge } from '../../../redis/transitions/upkeep.ts';
import { type Exit, type Register, wholeNumber, withExamples } from '../../register.ts';
import { partitionsOfQueue, type Session, withRedis } from '../../session.ts';
import { counted, line } from '../../terminal/text.ts';

interface Flags {
  readonly olderThan?: string;
  readonly reason?: string;
  readonly limit: number;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

/** How much of the limit is used up, and whether it ended the run. */
interface Tally {
  matched: number;
  looked: number;
  more: boolean;
}

const BATCH = 100;
const PROGRESS_EVERY = 5000;
const RETRY = { clock: systemClock, budgetMs: 10_000 };

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
  const tally: Tally = { matched: 0, looked: 0, more: false };
  await withRedis(session, async (redis) => {
    for (const ref of await partitionsOfQueue(session, redis, queue)) {
      if (tally.matched >= flags.limit) tally.more = true;
      else await purgePartition(session, { redis, ref, flags, ageMs, tally });
    }
  });
  const { matched, looked, more } = tally;
  const dryRun = flags.dryRun === true;
  session.out.answer({ queue, dryRun, [dryRun ? 'matched' : 'removed']: matched, looked, more }, () => [
    dryRun
      ? line`${counted(matched, 'dead letter')} would be removed, of ${looked} checked`
      : line`${counted(matched, 'dead letter')} removed`,
    ...(more ? [line`the limit of ${flags.limit} is reached; repeat the command for the rest`] : []),
  ]);
  return 0;
}

/** A batch is never larger than what is left of the limit. */
async function purgePartition(
  session: Session,
  of: { redis: Redis; ref: PartitionRef; flags: Flags; ageMs: number; tally: Tally },
): Promise<void> {
  const { redis, ref, flags, ageMs, tally } = of;
  const mode = flags.dryRun ? 'count' : 'remove';
  let after: string | undefined;
  do {
    const limit = Math.min(BATCH, flags.limit - tally.matched);
    const which = { mode, ageMs, limit, reason: flags.reason, after } as const;
    const batch: PurgeReply = await withRetry('purge', () => purge(redis, ref, which), RETRY);
    const before = tally.looked;
    tally.matched += batch.matched;
    tally.looked += batch.looked;
    after = batch.next;
    if (Math.floor(before / PROGRESS_EVERY) < Math.floor(tally.looked / PROGRESS_EVERY)) {
      session.out.note(
        line`${tally.looked} dead letters checked, ${tally.matched} ${flags.dryRun ? 'match' : 'removed'}`,
      );
    }
  } while (after !== undefined && tally.matched < flags.limit);
  if (after !== undefined) tally.more = true;
}
