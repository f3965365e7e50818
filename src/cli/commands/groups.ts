/** The commands of `groups`: who of a gated queue waits and who runs, by group. Dead letters have groups of their own: `dead groups`. */
import type { Command } from 'commander';
import type { Group, GroupReport, Holder } from '../../client/groups/groups.ts';
import { counted, span } from '../../kernel/humanize.ts';
import {
  type Exit,
  partitionsOfQueue,
  type Register,
  type Session,
  wholeNumber,
  withClient,
  withExamples,
  withRedis,
} from '../session.ts';
import { relative } from '../terminal/instants.ts';
import { fields, line, table } from '../terminal/output.ts';

// `groups ls <queue>`: all groups by name, or the longest.

interface LsFlags {
  readonly top?: boolean;
  readonly limit?: number;
  readonly cursor?: string;
}

export const groupsLs: Register = (parent, runner) => {
  const command = parent
    .command('ls <queue>')
    .description('list the groups that have jobs in line or running, by name')
    .option('--top', 'those with most jobs in line instead, the longest first; looks at every group')
    .option('--limit <n>', 'show at most this many (default: 50, with --top 10)', wholeNumber(1, 1000))
    .option('--cursor <text>', 'go on where the page before has ended')
    .action((queue: string, flags: LsFlags, command: Command) =>
      runner.run(command, (session) => runLs(session, queue, flags)),
    );
  withExamples(command, ['duestream groups ls imports', 'duestream groups ls imports --top --json']);
};

async function runLs(session: Session, queue: string, { top = false, limit = top ? 10 : 50, cursor }: LsFlags) {
  await checkQueue(session, queue);
  const page = await withClient(session, ({ groups }) => groups.list(queue, { top, limit, cursor }));
  session.out.answer({ queue, ...page }, () => [
    ...(page.groups.length === 0
      ? [line`nobody of a group waits${top ? '' : ' or runs'} in ${queue}`]
      : table(session.out.paint, LS_HEAD, page.groups.map(row))),
    ...(page.ungrouped > 0 ? [line`${counted(page.ungrouped, 'job')} without a group in line`] : []),
    ...(page.cursor === undefined ? [] : ['there may be more; go on with', `--cursor ${page.cursor}`]),
  ]);
  return 0 as const;
}

const LS_HEAD = ['group', 'waiting', 'waits', 'running', 'limit', ''];

const row = ({ group, waiting, waitMs, running, perGroup, isFull }: Group) => [
  group,
  waiting,
  waiting === 0 ? undefined : span(waitMs),
  running,
  perGroup,
  isFull ? 'full' : '',
];

// `groups show <queue> <group>`: one group, and who holds its limit.

export const groupsShow: Register = (parent, runner) => {
  const command = parent
    .command('show <queue> <group>')
    .description('show how many jobs of a group wait and run, and which jobs hold its limit')
    .action((queue: string, group: string, _flags: unknown, command: Command) =>
      runner.run(command, (session) => runShow(session, queue, group)),
    );
  withExamples(command, ['duestream groups show imports acme', 'duestream groups show imports acme --json']);
};

async function runShow(session: Session, queue: string, group: string): Promise<Exit> {
  await checkQueue(session, queue);
  const found = await withClient(session, ({ groups }) => groups.get(queue, group));
  session.out.answer({ queue, ...found }, () => [...fields(factsOf(queue, found)), ...holderLines(session, found)]);
  return 0;
}

function factsOf(queue: string, found: GroupReport): readonly (readonly [string, string | undefined])[] {
  const { group, running, waiting, priorities, waitMs, perGroup, isFull } = found;
  const { high, normal, low } = priorities;
  return [
    ['group', group],
    ['queue', queue],
    ['running', `${running}${perGroup === undefined ? '' : ` of ${perGroup}`}${isFull ? ': the group is full' : ''}`],
    ['waiting', waiting === 0 ? 'nobody' : `${waiting}: ${high} high, ${normal} normal, ${low} low priority`],
    ['in line', waiting === 0 ? undefined : `the first of them has waited for ${span(waitMs)}`],
  ];
}

function holderLines(session: Session, { holders, running, nowMs }: GroupReport): readonly string[] {
  if (holders.length === 0) return [];
  const rows = holders.map(({ id, bare, owner, attempt, sinceMs }: Holder) => [
    id + (bare ? ' (bare)' : ''),
    relative(sinceMs, nowMs),
    attempt,
    owner ?? 'no worker has started it yet',
  ]);
  const more = running - holders.length;
  return [
    '',
    ...table(session.out.paint, ['holds it', 'since', 'attempt', 'worker'], rows),
    ...(more > 0 ? [line`and ${more} more`] : []),
  ];
}

/** @throws DuestreamError `not-found`, so that looking declares no queue */
const checkQueue = (session: Session, queue: string) =>
  withRedis(session, (redis) => partitionsOfQueue(session, redis, queue));
