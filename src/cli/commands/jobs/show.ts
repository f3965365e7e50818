/** `show <queue> <id>`: the report of one job in every state, also after it was over. */

import type { Command } from 'commander';
import { findReport, type JobReport } from '../../../client/query/report.ts';
import { addressOf } from '../../../inspect/dead-letters.ts';
import { shownReport } from '../../../inspect/report.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { show as quoted } from '../../../kernel/duration.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import { span } from '../../../kernel/humanize.ts';
import type { Redis } from '../../../redis/connection/connect.ts';
import type { PartitionRef } from '../../../redis/keys.ts';
import { stats } from '../../../redis/read/inspect.ts';
import { everyDeadLetter } from '../../../redis/read/over.ts';
import { type Exit, type Register, withExamples } from '../../register.ts';
import { partitionsOfQueue, type Session, withRedis } from '../../session.ts';
import { reportLines } from './report-lines.ts';

/** How far back dead letters are searched for an id whose end is no longer remembered. */
const DEAD_LETTERS_SEARCHED_MAX = 1000;
const RETRY_MS = 10_000;

export const show: Register = (parent, runner) => {
  const command = parent
    .command('show <queue> <id>')
    .description('show what happened to one job: due time, attempts, errors, worker, end')
    .option('--bare', 'the id is a bare member: a foreign producer put it with ZADD')
    .action((queue: string, id: string, { bare = false }: { readonly bare?: boolean }, command: Command) =>
      runner.run(command, (session) => run(session, { queue, id, bare })),
    );
  withExamples(command, ['duestream show emails welcome:42', 'duestream show emails order-1042 --bare']);
};

interface Asked {
  readonly queue: string;
  readonly id: string;
  readonly bare: boolean;
}

async function run(session: Session, asked: Asked): Promise<Exit> {
  const { report, partition } = await withRedis(session, async (redis) => {
    const refs = await partitionsOfQueue(session, redis, asked.queue);
    const found = await find(redis, refs, asked);
    if (!found) return explain(session, { redis, refs, asked });
    const ref = refs[found.partition];
    const { leaseTtlMs = 0, paused = false } = ref ? await stats(redis, ref) : {};
    return { report: shownReport(found, refs), partition: { led: leaseTtlMs > 0, paused } };
  });
  session.out.answer(report, () => reportLines(report, partition));
  return 0;
}

async function find(redis: Redis, refs: readonly PartitionRef[], asked: Asked): Promise<JobReport | undefined> {
  const found = await findReport({ redis, policy: { clock: systemClock, budgetMs: RETRY_MS } }, refs, asked);
  if (!found || !('kind' in found)) return found;
  throw new DuestreamError('moved', `queue ${quoted(asked.queue)} was resized while it was read`);
}

/** Nothing is known of the id: says what that can mean, and looks in the places where it may be after all. */
async function explain(
  session: Session,
  { redis, refs, asked }: { redis: Redis; refs: readonly PartitionRef[]; asked: Asked },
): Promise<never> {
  const { queue, id, bare } = asked;
  const job = `${queue} has no ${bare ? 'bare ' : ''}job ${quoted(id)}`;
  const twin = await find(redis, refs, { ...asked, bare: !bare });
  if (twin !== undefined) {
    throw new DuestreamError(
      'not-found',
      `${job}, but a ${bare ? 'managed' : 'bare'} one: ${bare ? 'leave out' : 'add'} --bare`,
    );
  }
  for (const ref of refs) {
    for await (const found of everyDeadLetter(redis, ref, DEAD_LETTERS_SEARCHED_MAX)) {
      if (found.id !== id) continue;
      const address = addressOf({ ref, deadLetter: found }, refs.length);
      throw new DuestreamError('not-found', `${job} any more; it is dead: "duestream dead show ${queue} ${address}"`);
    }
  }
  const window = session.config.done.windowMs;
  throw new DuestreamError(
    'not-found',
    `${job}: it never existed, it was over more than ${span(window)} ago, or it is in another queue or namespace (this is ${session.config.namespace})`,
  );
}
