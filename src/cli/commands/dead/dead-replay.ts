/** `dead replay <queue>`: dead letters → scheduled jobs with fresh budgets. */
import type { Command } from 'commander';
import { DuestreamError } from '../../../core/errors.ts';
import { countOf } from '../../../operations/audit.ts';
import { type ReplayedLetter, replayDead } from '../../../operations/dead-replay.ts';
import { type Exit, type Register, wholeNumber, withExamples } from '../../register.ts';
import { type Session, withRedis } from '../../session.ts';
import { line } from '../../terminal/text.ts';

interface Flags {
  readonly all?: boolean;
  readonly id?: string;
  readonly limit: number;
  readonly delay?: string;
}

const PROGRESS_EVERY = 1000;

export const deadReplay: Register = (parent, runner) => {
  const command = parent
    .command('replay <queue> [dead-letter...]')
    .description('schedule the jobs of dead letters again; their failures and crashes count from 0')
    .option('--all', 'replay every dead letter that there is now, newest first')
    .option('--id <id>', 'replay only the dead letters of this job')
    .option('--limit <n>', 'replay at most this many; repeat the command for the rest', wholeNumber(1, 1_000_000), 1000)
    .option('--delay <duration>', 'make them due this long from now instead of at once')
    .action((queue: string, deadLetters: readonly string[], flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, { queue, deadLetters, flags })),
    );
  withExamples(command, [
    'duestream dead replay emails 1763719000000-0',
    'duestream dead replay emails --all --limit 10000',
    'duestream dead replay emails --id welcome:42',
  ]);
};

interface Asked {
  readonly queue: string;
  readonly deadLetters: readonly string[];
  readonly flags: Flags;
}

async function run(session: Session, { queue, deadLetters, flags }: Asked): Promise<Exit> {
  const many = flags.all === true || flags.id !== undefined;
  if (many === deadLetters.length > 0) {
    throw new DuestreamError(
      'usage',
      'name the dead letters in one way; allowed: their addresses, --all, or --id with the id of a job',
    );
  }
  const { namespace } = session.config;
  const which = many ? { id: flags.id, limit: flags.limit } : { deadLetters };
  const delay = flags.delay === undefined ? undefined : { given: flags.delay, what: '--delay' };
  const onBatch = (replayed: number) => {
    if (replayed % PROGRESS_EVERY === 0) session.out.note(line`${replayed} dead letters replayed`);
  };
  const results = await withRedis(session, (redis) =>
    replayDead({ redis, namespace }, queue, which, { delay, onBatch }),
  );
  session.changes.push({ verb: 'dead.replay', queue, count: countOf(results, 'ok') });
  tell(session, { queue, results, byName: !many });
  return results.every(({ status }) => status === 'ok') ? 0 : 1;
}

const WHY: Readonly<Record<ReplayedLetter['status'], string>> = {
  ok: 'scheduled again',
  live: 'not replayed: a job of this id is live; cancel it, or wait until it ends',
  empty: 'not replayed: the dead letter holds no record to run',
  gone: 'gone: somebody else replayed it or removed it',
  moved: 'not replayed: the queue was resized; repeat the command',
};

function tell(
  session: Session,
  { queue, results, byName }: { queue: string; results: readonly ReplayedLetter[]; byName: boolean },
): void {
  const replayed = results.filter(({ status }) => status === 'ok').length;
  const rest = results.filter(({ status }) => status !== 'ok');
  session.out.answer({ queue, replayed, failed: rest.length, deadLetters: byName ? results : rest }, () => [
    ...(byName ? results : rest).map(({ deadLetter, id, status }) => line`${deadLetter}  ${id}  ${WHY[status]}`),
    ...(byName ? [] : [line`${replayed} replayed${rest.length > 0 ? `, ${rest.length} not` : ''}`]),
  ]);
}
