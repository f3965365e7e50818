/** `cancel <queue> [id...]`: one line per job, saying what became of it; or all that a filter means. */

import type { Command } from 'commander';
import type { Cancelled } from '../../../client/client.ts';
import { LIVE_STATES } from '../../../job/state.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import { type Exit, type Register, withExamples } from '../../register.ts';
import type { Session } from '../../session.ts';
import { DURABILITY_FLAG, readDurability } from '../../terminal/durability-flag.ts';
import { line } from '../../terminal/text.ts';
import { type FilterFlags, takeFilterFlags, withFilterFlags } from '../find/filter-flags.ts';
import { type ChangeFlags, isByFilter, runChange, unchanged, withChangeFlags } from './change.ts';

export const cancel: Register = (parent, runner) => {
  const command = parent
    .command('cancel <queue> [id...]')
    .description('cancel jobs by id or by a filter; the handler of a job that runs is asked to stop')
    .option('--bare', 'the ids are bare members: a foreign producer put them with ZADD');
  withChangeFlags(withFilterFlags(command, { states: LIVE_STATES }))
    .option(...DURABILITY_FLAG)
    .action((queue: string, ids: readonly string[], flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, { queue, ids, flags })),
    );
  withExamples(command, [
    'duestream cancel emails welcome:42 welcome:43',
    'duestream cancel emails --tag user:42 --dry-run',
    'duestream cancel emails --tag user:42 --yes',
  ]);
};

function run(
  session: Session,
  { queue, ids, flags }: { readonly queue: string; readonly ids: readonly string[]; readonly flags: Flags },
): Promise<Exit> {
  const { filter, rest } = takeFilterFlags(flags);
  const { bare = false, durability } = rest;
  const asked = { queue, ids, filter, flags: rest };
  if (isByFilter(asked) && (bare || durability !== undefined)) {
    throw new DuestreamError('usage', '--bare and --durability go with ids; a filter is given here');
  }
  const durable = readDurability(durability);
  return runChange<Cancelled>(session, asked, {
    verb: 'jobs.cancel',
    done: 'cancelled',
    byIds: (client, named) => client.cancel(queue, named, { bare, ...durable }),
    byFilter: (client, given, options) => client.cancel(queue, given, options),
    changed: ['cancelled', 'requested'],
    isFine: ({ status, over }) => status === 'cancelled' || status === 'requested' || over === 'cancelled',
    sentence,
  });
}

interface Flags extends FilterFlags, ChangeFlags {
  readonly bare?: boolean;
  readonly durability?: string;
}

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
