/** `cancel <queue> <id...>`: one line per job, saying what became of it. */
import type { Command } from 'commander';
import type { Cancelled } from '../../../client/producer.ts';
import { countOf } from '../../../operations/audit.ts';
import { type Exit, type Register, withExamples } from '../../register.ts';
import { partitionsOfQueue, type Session, withProducer, withRedis } from '../../session.ts';
import { DURABILITY_FLAG, readDurability } from '../../terminal/durability-flag.ts';
import { line } from '../../terminal/text.ts';

export const cancel: Register = (parent, runner) => {
  const command = parent
    .command('cancel <queue> <id...>')
    .description('cancel jobs; the handler of a job that runs is asked to stop')
    .option('--bare', 'the ids are bare members: a foreign producer put them with ZADD')
    .option(...DURABILITY_FLAG)
    .action((queue: string, ids: readonly string[], { bare = false, durability }: Flags, command: Command) =>
      runner.run(command, (session) => run(session, { queue, ids, bare, durability })),
    );
  withExamples(command, ['duestream cancel emails welcome:42 welcome:43']);
};

interface Flags {
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
  const replies = await withProducer(session, async (producer) => {
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
    case 'unknown':
      return line`${id}  unknown: it never existed, or it ended long ago; "duestream show" says more`;
  }
}
