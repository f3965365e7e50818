/**
 * `dead replay <queue>`: dead letters → scheduled jobs with fresh budgets. A replayed dead letter is gone, so a run that was
 * cut short goes on where it stopped when it is repeated; dead letters that die meanwhile are left for the next run.
 */
import type { Command } from 'commander';
import { systemClock } from '../../../core/clock.ts';
import { durationMs } from '../../../core/duration.ts';
import { DuestreamError } from '../../../core/errors.ts';
import type { Redis } from '../../../redis/connection/connect.ts';
import { withRetry } from '../../../redis/connection/outage.ts';
import type { PartitionRef } from '../../../redis/keys.ts';
import { everyDeadLetter } from '../../../redis/pages.ts';
import { createJobs, type Jobs } from '../../../redis/transitions/jobs.ts';
import type { ReplayReply } from '../../../redis/transitions/replies.ts';
import { type Exit, type Register, wholeNumber, withExamples } from '../../register.ts';
import { partitionsOfQueue, type Session, withRedis } from '../../session.ts';
import { line } from '../../terminal/text.ts';
import { addressOf, findDeadLetter, type Placed } from './dead-letters.ts';

interface Flags {
  readonly all?: boolean;
  readonly id?: string;
  readonly limit: number;
  readonly delay?: string;
}

interface Replayed {
  readonly deadLetter: string;
  readonly id: string;
  readonly status: ReplayReply['kind'];
}

/** How many are under way at once. */
const AT_ONCE = 50;
const PROGRESS_EVERY = 1000;
const DEAD_LETTERS_MAX = 10_000_000;

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
  const results: Replayed[] = [];
  await withRedis(session, async (redis) => {
    const refs = await partitionsOfQueue(session, redis, queue);
    const one = replayer(redis, flags.delay);
    const source = many ? chosen(redis, refs, flags) : named(redis, refs, deadLetters);
    let batch: Placed[] = [];
    const flush = async () => {
      const statuses = await Promise.all(batch.map(one));
      results.push(...batch.map((placed, index) => resultOf(placed, refs.length, statuses[index] ?? 'gone')));
      if (results.length % PROGRESS_EVERY === 0) session.out.note(line`${results.length} dead letters replayed`);
      batch = [];
    };
    for await (const placed of source) {
      batch.push(placed);
      if (batch.length === AT_ONCE) await flush();
    }
    if (batch.length > 0) await flush();
  });
  tell(session, { queue, results, byName: !many });
  return results.every(({ status }) => status === 'ok') ? 0 : 1;
}

async function* named(
  redis: Redis,
  refs: readonly PartitionRef[],
  deadLetters: readonly string[],
): AsyncGenerator<Placed> {
  for (const address of deadLetters) yield await findDeadLetter(redis, refs, address);
}

async function* chosen(redis: Redis, refs: readonly PartitionRef[], { id, limit }: Flags): AsyncGenerator<Placed> {
  let taken = 0;
  for (const ref of refs) {
    for await (const deadLetter of everyDeadLetter(redis, ref, DEAD_LETTERS_MAX)) {
      if (id !== undefined && deadLetter.id !== id) continue;
      if (taken === limit) return;
      taken += 1;
      yield { ref, deadLetter };
    }
  }
}

/** The due is fixed before the first call, so that a call whose reply was lost is repeated as it was. */
function replayer(redis: Redis, delay: string | undefined): (placed: Placed) => Promise<ReplayReply['kind']> {
  const jobs: Jobs = createJobs(redis);
  const due = delay === undefined ? {} : { dueMs: systemClock.wallMs() + durationMs(delay, '--delay') };
  const policy = { clock: systemClock, budgetMs: 10_000 };
  return async ({ ref, deadLetter }) =>
    (await withRetry('replay', () => jobs.replay(ref, deadLetter.entry, due), policy)).kind;
}

function resultOf(placed: Placed, partitions: number, status: ReplayReply['kind']): Replayed {
  return { deadLetter: addressOf(placed, partitions), id: placed.deadLetter.id, status };
}

const WHY: Readonly<Record<ReplayReply['kind'], string>> = {
  ok: 'scheduled again',
  live: 'not replayed: a job of this id is live; cancel it, or wait until it ends',
  empty: 'not replayed: the dead letter holds no record to run',
  gone: 'gone: somebody else replayed it or removed it',
  moved: 'not replayed: the queue was resized; repeat the command',
};

function tell(
  session: Session,
  { queue, results, byName }: { queue: string; results: readonly Replayed[]; byName: boolean },
): void {
  const replayed = results.filter(({ status }) => status === 'ok').length;
  const rest = results.filter(({ status }) => status !== 'ok');
  session.out.answer({ queue, replayed, failed: rest.length, deadLetters: byName ? results : rest }, () => [
    ...(byName ? results : rest).map(({ deadLetter, id, status }) => line`${deadLetter}  ${id}  ${WHY[status]}`),
    ...(byName ? [] : [line`${replayed} replayed${rest.length > 0 ? `, ${rest.length} not` : ''}`]),
  ]);
}
