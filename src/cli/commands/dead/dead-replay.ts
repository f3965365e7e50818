/**
 * `dead replay <queue>`: dead letters → scheduled jobs with fresh budgets. A replayed dead letter is gone, so a run that was
 * cut short may be repeated. A job that dies again is then the newest dead letter and is met first: `--cursor` goes on behind
 * it.
 */
import type { Command } from 'commander';
import type { DeadLetters, Replayed, ReplayFilterOptions } from '../../../client/dead/dead-letters.ts';
import { createSteps, parseAddress, writtenAs } from '../../../inspect/dead-letters.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { durationMs } from '../../../kernel/duration.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import { counted } from '../../../kernel/humanize.ts';
import { type Exit, type Register, wholeNumber, withExamples } from '../../register.ts';
import { type Session, withDeadLetters } from '../../session.ts';
import { DURABILITY_FLAG, readDurability } from '../../terminal/durability-flag.ts';
import { line } from '../../terminal/text.ts';
import { type FilterFlags, filterOf, isNamed, moreLines, withFilter } from './dead-flags.ts';

interface Flags extends FilterFlags {
  readonly all?: boolean;
  readonly limit: number;
  readonly delay?: string;
  readonly over?: string;
  readonly dryRun?: boolean;
  readonly cursor?: string;
  readonly durability?: string;
}

interface Result {
  readonly deadLetter: string;
  readonly id: string | undefined;
  readonly status: Replayed['status'];
}

/** What one call of the library does. */
const SLICE = 1000;

export const deadReplay: Register = (parent, runner) => {
  const command = withFilter(
    parent
      .command('replay <queue> [dead-letter...]')
      .description('schedule the jobs of dead letters again; their failures and crashes count from 0')
      .option('--all', 'replay every dead letter that there is now, newest first'),
  )
    .option(
      '--limit <n>',
      'replay at most this many; go on with --cursor for the rest',
      wholeNumber(1, 1_000_000),
      1000,
    )
    .option('--delay <duration>', 'make them due this long from now instead of at once')
    .option('--over <duration>', 'spread their due times over this long, so that they do not all start at once')
    .option('--dry-run', 'only count what --all or the filters name')
    .option('--cursor <text>', 'with --all or filters: go on where an earlier run has ended')
    .option(...DURABILITY_FLAG)
    .action((queue: string, deadLetters: readonly string[], flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, { queue, deadLetters, flags })),
    );
  withExamples(command, [
    'duestream dead replay emails 1763719000000-0',
    'duestream dead replay emails --all --limit 10000',
    'duestream dead replay emails --name welcome --newer-than 1d --over 10m',
  ]);
};

interface Asked {
  readonly queue: string;
  readonly deadLetters: readonly string[];
  readonly flags: Flags;
}

async function run(session: Session, asked: Asked): Promise<Exit> {
  const { queue, deadLetters, flags } = asked;
  const many = flags.all === true || isNamed(flags);
  if (many === deadLetters.length > 0) {
    throw new DuestreamError(
      'usage',
      'name the dead letters in one way; allowed: their addresses, --all, or filters such as --id, --reason and --name',
    );
  }
  if (!many && (flags.dryRun === true || flags.over !== undefined || flags.cursor !== undefined)) {
    throw new DuestreamError('usage', '--dry-run, --over and --cursor go with --all or with filters');
  }
  const delayMs = flags.delay === undefined ? undefined : durationMs(flags.delay, '--delay');
  const level = readDurability(flags.durability);
  // Fixed before the first call, so that all of them have the same due time. Those by a filter have it in their cursor.
  const at = delayMs === undefined ? {} : { at: new Date(systemClock.wallMs() + delayMs) };
  return withDeadLetters(session, queue, (dead, partitions) =>
    many
      ? replayAll(session, dead, { ...asked, options: { delay: delayMs, ...level }, partitions })
      : replayNamed(session, dead, { ...asked, options: { ...at, ...level }, partitions }),
  );
}

interface Replaying extends Asked {
  readonly options: Pick<ReplayFilterOptions, 'at' | 'delay' | 'durability'>;
  readonly partitions: number;
}

async function replayNamed(
  session: Session,
  dead: DeadLetters,
  { queue, deadLetters, options }: Replaying,
): Promise<Exit> {
  const replies = await dead.replay(queue, deadLetters.map(parseAddress), options);
  const results = replies.map(({ status, id }, at): Result => ({ deadLetter: deadLetters[at] ?? '', id, status }));
  const refused = results.filter(({ status }) => status !== 'scheduled');
  session.changes.push({ verb: 'dead.replay', queue, count: results.length - refused.length });
  session.out.answer(
    { queue, replayed: results.length - refused.length, failed: refused.length, deadLetters: results },
    () => results.map(lineOf),
  );
  return refused.length === 0 ? 0 : 1;
}

async function replayAll(
  session: Session,
  dead: DeadLetters,
  { queue, flags, options, partitions }: Replaying,
): Promise<Exit> {
  const { limit, over, dryRun = false } = flags;
  const steps = createSteps((looked, matched) => {
    session.out.note(line`${looked} dead letters checked, ${matched} ${dryRun ? 'match' : 'taken'}`);
  });
  const refused: Result[] = [];
  let [matched, replayed, looked] = [0, 0, 0];
  let { cursor } = flags;
  do {
    const most = Math.min(SLICE, limit - matched);
    const [seen, taken] = [looked, matched];
    const slice = await dead.replay(queue, filterOf(flags), {
      ...options,
      over,
      dryRun,
      cursor,
      limit: most,
      all: true,
      onProgress: (soFar) => steps(seen + soFar.scanned, taken + soFar.matched),
    });
    matched += slice.matched;
    replayed += slice.changed;
    looked += slice.scanned;
    cursor = slice.cursor;
    refused.push(...slice.refused.map((one) => ({ ...one, deadLetter: writtenAs(one, partitions) })));
  } while (cursor !== undefined && matched < limit);
  const failed = dryRun ? 0 : matched - replayed;
  session.changes.push({ verb: 'dead.replay', queue, count: replayed });
  const value = { queue, dryRun, matched, looked, replayed, failed, deadLetters: refused, cursor };
  session.out.answer(value, () => [
    ...refused.map(lineOf),
    dryRun
      ? line`${counted(matched, 'dead letter')} would be replayed, of ${looked} checked`
      : line`${replayed} replayed${failed > 0 ? `, ${failed} not` : ''}`,
    ...moreLines(cursor),
  ]);
  return failed === 0 ? 0 : 1;
}

const WHY: Readonly<Record<Result['status'], string>> = {
  scheduled: 'scheduled again',
  live: 'not replayed: a job of this id is live; cancel it, or wait until it ends',
  empty: 'not replayed: the dead letter holds no record to run',
  gone: 'gone: it was replayed or removed, or never was in this queue',
  indeterminate: 'unsure: the reply was lost and nothing is known of its job now',
  changed: 'not replayed: it is another dead letter',
};

const lineOf = ({ deadLetter, id = '', status }: Result): string => line`${deadLetter}  ${id}  ${WHY[status]}`;
