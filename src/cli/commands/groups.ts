/** The commands of `groups`: who of a gated queue waits and who runs, by group. Dead letters have groups of their own: `dead ls --groups`. */
import type { Command } from 'commander';
import type { Group, GroupReport, Holder } from '../../client/groups/groups.ts';
import { operations } from '../../client/operations.ts';
import { keeperText } from '../../client/queues/why.ts';
import { durationText } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { counted, span } from '../../kernel/humanize.ts';
import {
  checkQueue,
  type Exit,
  type Register,
  type Session,
  wholeNumber,
  withClient,
  withExamples,
} from '../session.ts';
import { asking } from '../terminal/asking.ts';
import { relative } from '../terminal/instants.ts';
import { fields, line, type Paint, table } from '../terminal/output.ts';
import { groupExamples, readGroupFlags, type SettingFlags, withGroupFlags } from '../terminal/setting-flags.ts';

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
      : rows(session.out.paint, page.groups)),
    ...(page.ungrouped > 0 ? [line`${counted(page.ungrouped, 'job')} without a group in line`] : []),
    ...(page.cursor === undefined ? [] : ['there may be more; go on with', `--cursor ${page.cursor}`]),
  ]);
  return 0 as const;
}

const LS_HEAD = ['group', 'waiting', 'waits', 'running', 'limit'];

/** How many are pending is counted where groups have a limit of that. */
function rows(paint: Paint, groups: readonly Group[]): readonly string[] {
  const isCounted = groups.some(({ maxPending }) => maxPending !== undefined);
  const head = [...LS_HEAD, ...(isCounted ? ['pending'] : []), ''];
  return table(
    paint,
    head,
    groups.map((group) => [...row(group), ...(isCounted ? [pendingText(group)] : []), noteOf(group)]),
  );
}

const row = ({ group, waiting, waitMs, running, perGroup }: Group) => [
  group,
  waiting,
  waiting === 0 ? undefined : span(waitMs),
  running,
  perGroup,
];

const pendingText = ({ pending, maxPending }: Group) =>
  maxPending === undefined ? undefined : `${pending} of ${maxPending}`;

const noteOf = ({ closed, isFull }: Group) =>
  closed ? line`closed${closed.reason === '' ? '' : `: ${closed.reason}`}` : isFull ? 'full' : '';

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
  const { group, running, waiting, priorities, waitMs, perGroup, isFull, weight, intervalMs, nowMs } = found;
  const { closed, keeper } = found;
  const { high, normal, low } = priorities;
  return [
    ['group', group],
    ['queue', queue],
    ['running', `${running}${perGroup === undefined ? '' : ` of ${perGroup}`}${isFull ? ': the group is full' : ''}`],
    ['waiting', waiting === 0 ? 'nobody' : `${waiting}: ${high} high, ${normal} normal, ${low} low priority`],
    ['pending', pendingText(found)],
    ['rate', intervalMs === undefined ? undefined : `one start each ${durationText(intervalMs)}`],
    ['weight', weight === 1 ? undefined : `${weight} turns where another has one`],
    ['closed', closed && closedText(closed, nowMs)],
    ['held by', keeper && keeperText(keeper, nowMs)],
    ['in line', waiting === 0 ? undefined : `the first of them has waited for ${span(waitMs)}`],
  ];
}

const closedText = (
  { untilMs, reason }: { readonly untilMs: number; readonly reason: string },
  nowMs: number,
): string => line`for ${span(Math.max(0, untilMs - nowMs))} more${reason === '' ? '' : `: ${reason}`}`;

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

// `groups set`, `close` and `open`: what a group may have, and whether anybody of it is let through.

interface Became {
  readonly queue: string;
  readonly group: string;
  readonly changed: boolean;
}

const became =
  (changed: string, same: string) =>
  (done: Became): readonly string[] => [line`${done.group} of ${done.queue} ${done.changed ? changed : same}`];

export const groupsSet: Register = (parent, runner) => {
  const command = withGroupFlags(
    parent
      .command('set <queue> <group>')
      .description(
        'give a group limits of its own, or all whose names begin so: pro-*; they replace those that it had',
      ),
  )
    .option('--unset', 'give it the limits of all groups again')
    .option('--reason <text>', 'why, for the next person who looks, and for the audit')
    .action((queue: string, group: string, flags: SettingFlags & GroupFlags, command: Command) =>
      runner.run(command, (session) => runSet(session, { queue, group, ...flags })),
    );
  withExamples(command, [
    'duestream groups set calls acme --concurrency 10 --rate 20/s --reason "they pay for it"',
    "duestream groups set calls 'pro-*' --weight 3",
    'duestream groups set calls acme --unset',
    "duestream groups set imports 'free-*' --max-pending 100",
  ]);
};

interface GroupFlags {
  readonly unset?: boolean;
  readonly reason?: string;
}

async function runSet(
  session: Session,
  {
    queue,
    group,
    reason,
    unset,
    ...flags
  }: SettingFlags & GroupFlags & { readonly queue: string; readonly group: string },
): Promise<Exit> {
  const isGiven = Object.keys(flags).length > 0;
  if (unset && isGiven) {
    throw new DuestreamError('usage', '--unset and limits are both given; allowed: one of them');
  }
  if (!unset && !isGiven) {
    throw new DuestreamError(
      'usage',
      `say what it may have: ${groupExamples.slice(0, -1).join(', ')} or ${groupExamples.at(-1)}`,
    );
  }
  const limits = readGroupFlags(flags);
  await checkQueue(session, queue);
  const { status } = await withClient(session, ({ groups }) =>
    unset ? groups.unset(queue, group, { reason }) : groups.set(queue, group, limits, { reason }),
  );
  const done = { queue, group, changed: status === 'changed' };
  session.out.answer(done, () => (unset ? UNSET : SET)(done));
  return 0;
}

const SET = became('has these limits of its own from now on', 'has these limits already');
const UNSET = became('has the limits of all groups from now on', 'has no limits of its own');

export const groupsClose = asking(operations.groups.close, {
  description: 'let no job of a group through for some time; running jobs go on, and it opens by itself',
  examples: ['duestream groups close calls acme --for 10m --reason "their API is down"'],
  say: became('is closed; what was let through before starts all the same', 'is closed for as long or longer already'),
});

export const groupsOpen = asking(operations.groups.open, {
  description: 'open a closed group at once',
  examples: ['duestream groups open calls acme'],
  say: became('is open', 'was open'),
});
