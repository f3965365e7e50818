/** `cancel <queue> [id...]`: one line per job, saying what became of it; or all that a filter means. */
import type { Command } from 'commander';
import { countOf } from '../../../access/audit.ts';
import type { Cancelled } from '../../../client/client.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import { type Exit, type Register, withExamples } from '../../register.ts';
import { partitionsOfQueue, type Session, withClient, withRedis } from '../../session.ts';
import { DURABILITY_FLAG, readDurability } from '../../terminal/durability-flag.ts';
import { line } from '../../terminal/text.ts';
import { type FilterFlags, takeFilterFlags, withFilterFlags } from '../find/filter-flags.ts';
import { isByFilter, runWhere, type WhereFlags, withWhereFlags } from '../find/where.ts';
import { unchanged } from './reschedule.ts';

export const cancel: Register = (parent, runner) => {
  const command = parent
    .command('cancel <queue> [id...]')
    .description('cancel jobs by id or by a filter; the handler of a job that runs is asked to stop')
    .option('--bare', 'the ids are bare members: a foreign producer put them with ZADD');
  withWhereFlags(withFilterFlags(command, { states: ['scheduled', 'ready', 'running'] }))
    .option(...DURABILITY_FLAG)
    .action((queue: string, ids: readonly string[], flags: Flags, command: Command) =>
      runner.run(command, (session) => runEither(session, { queue, ids, flags })),
    );
  withExamples(command, [
    'duestream cancel emails welcome:42 welcome:43',
    'duestream cancel emails --tag user:42 --dry-run',
    'duestream cancel emails --tag user:42 --yes',
  ]);
};

async function runEither(
  session: Session,
  { queue, ids, flags }: { readonly queue: string; readonly ids: readonly string[]; readonly flags: Flags },
): Promise<Exit> {
  const { filter, rest } = takeFilterFlags(flags);
  const { bare = false, durability } = rest;
  const asked = { queue, ids, filter, flags: rest };
  if (!isByFilter(asked)) return run(session, { queue, ids, bare, durability });
  if (bare || durability !== undefined) {
    throw new DuestreamError('usage', '--bare and --durability go with ids; a filter is given here');
  }
  return runWhere(session, asked, {
    done: 'cancelled',
    call: (producer, given, options) => producer.cancelWhere(queue, given, options),
  });
}

interface Flags extends FilterFlags, WhereFlags {
  readonly bare?: boolean;
  readonly durability?: string;
}

interface Asked {
  readonly queue: string;
  readonly ids: readonly string[];
  readonly bare: boolean;
  readonly durability: string | undefined;
}

async function run(session: Session, { queue, ids, bare, durability }: Asked): Promise<Exit> {
  const durable = readDurability(durability);
  await withRedis(session, (redis) => partitionsOfQueue(session, redis, queue));
  const replies = await withClient(session, async (producer) => {
    if (!bare) return producer.cancelMany(queue, ids, durable);
    const all: Cancelled[] = [];
    for (const id of ids) all.push(await producer.cancel(queue, id, { bare, ...durable }));
    return all;
  });
  const count = countOf(replies, 'cancelled', 'requested');
  session.changes.push({ verb: 'jobs.cancel', queue, count, target: ids.length === 1 ? ids[0] : undefined });
  session.out.answer({ queue, jobs: replies }, () => replies.map(sentence));
  return replies.every(isCancelled) ? 0 : 1;
}

const isCancelled = ({ status, over }: Cancelled): boolean =>
  status === 'cancelled' || status === 'requested' || over === 'cancelled';

function sentence({ id, status, over }: Cancelled): string {
  switch (status) {
    case 'cancelled':
      return line`${id}  cancelled`;
    case 'requested':
      return line`${id}  running: it was asked to stop`;
    case 'over':
      return line`${id}  over already: ${over ?? 'its end is not known'}`;
    case 'changed':
      return unchanged({ id, status });
    case 'indeterminate':
      return line`${id}  unsure: the reply was lost and nothing is known of the job now`;
    case 'unknown':
      return line`${id}  unknown: it never existed, or it ended long ago; "duestream show" says more`;
  }
}
