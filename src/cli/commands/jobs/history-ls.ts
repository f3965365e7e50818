/** `history ls <queue>`: jobs that are over, the latest end first, in a queue that keeps a history. */
import { type Command, Option } from 'commander';
import type { PastPage } from '../../../client/query/past.ts';
import { listPast } from '../../../client/query/past.ts';
import { redactedPast } from '../../../inspect/redacted.ts';
import type { OverState } from '../../../job/state.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { durationMs } from '../../../kernel/duration.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import { span } from '../../../kernel/humanize.ts';
import { stats } from '../../../redis/read/inspect.ts';
import {
  type Exit,
  partitionsOfQueue,
  type Register,
  type Session,
  wholeNumber,
  withExamples,
  withRedis,
} from '../../session.ts';
import { moment } from '../../terminal/instants.ts';
import { line, table } from '../../terminal/output.ts';
import { resultText } from './show.ts';

const OUTCOMES: readonly OverState[] = ['done', 'dead', 'cancelled', 'expired'];

interface Flags {
  readonly state?: OverState;
  readonly name?: string;
  readonly tag?: string;
  readonly idPrefix?: string;
  readonly newerThan?: string;
  readonly limit: number;
  readonly scanMax: number;
  readonly cursor?: string;
}

export const historyLs: Register = (parent, runner) => {
  const command = parent
    .command('ls <queue>')
    .description('list jobs that are over, latest end first; the queue has to keep a history')
    .addOption(new Option('--state <state>', 'only those that ended so').choices(OUTCOMES))
    .option('--name <name>', 'only jobs with this name')
    .option('--tag <tag>', 'only jobs with this tag')
    .option('--id-prefix <text>', 'only jobs whose id begins with this')
    .option('--newer-than <duration>', 'only jobs that ended at most this long ago')
    .option('--limit <n>', 'show at most this many', wholeNumber(1, 1000), 50)
    .option('--scan-max <n>', 'look at no more than this many', wholeNumber(1, 1_000_000), 10_000)
    .option('--cursor <cursor>', 'go on where an earlier list ended, as it printed')
    .action((queue: string, flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, queue, flags)),
    );
  withExamples(command, [
    'duestream history ls emails --state dead',
    'duestream history ls emails --tag user:42 --json',
  ]);
};

async function run(session: Session, queue: string, { newerThan, state: outcome, ...flags }: Flags): Promise<Exit> {
  const page = await withRedis(session, async (redis): Promise<PastPage> => {
    const refs = await partitionsOfQueue(session, redis, queue);
    const [first] = refs;
    if (!first?.history) {
      const how = `switch it on with "duestream queues set ${queue} --history 7d"`;
      throw new DuestreamError('not-found', `${queue} keeps no history; ${how}`);
    }
    const policy = { clock: systemClock, budgetMs: 10_000 };
    const ageMs = newerThan === undefined ? undefined : durationMs(newerThan, '--newer-than');
    const newer = ageMs === undefined ? undefined : { ageMs, nowMs: (await stats(redis, first)).nowMs };
    const found = await listPast({ redis, policy }, refs, { ...flags, outcome, newer });
    return { ...found, jobs: found.jobs.map((job) => redactedPast(job, first.redact)) };
  });
  session.out.answer({ queue, ...page }, () => [...linesOf(session, page), ...more(page)]);
  return 0;
}

function linesOf(session: Session, { jobs }: PastPage): readonly string[] {
  if (jobs.length === 0) return ['no job that is over matches'];
  const nowMs = systemClock.wallMs();
  const rows = jobs.map(({ id, bare, outcome, name, attempts, owner, tookMs, overMs, history, result }) => [
    ...[id + (bare ? ' (bare)' : ''), name, outcome, attempts, tookMs === undefined ? undefined : span(tookMs)],
    ...[owner, moment(overMs, nowMs), history.at(-1)?.message ?? resultText(result)],
  ]);
  const heads = ['id', 'name', 'end', 'attempts', 'took', 'worker', 'over', 'last error or result'];
  return table(session.out.paint, heads, rows);
}

const more = ({ scanned, cursor }: PastPage) =>
  cursor === undefined ? [] : [line`${scanned} checked; there may be more: add --cursor ${cursor}`];
