/** The commands of `sets`: jobs with one callback, which is made when the last of them is over. */
import type { Command } from 'commander';
import type { SetCallbackOptions, SetView } from '../../../client/client.ts';
import { callbackFields } from '../../../client/jobs/sets.ts';
import { operations } from '../../../client/operations.ts';
import { queueOptions } from '../../../config/load.ts';
import { queueFrom } from '../../../job/queue.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import { counted, span } from '../../../kernel/humanize.ts';
import {
  checkQueue,
  type Exit,
  type Register,
  type Session,
  wholeNumber,
  withClient,
  withExamples,
} from '../../session.ts';
import { asking } from '../../terminal/asking.ts';
import { readData } from '../../terminal/input.ts';
import { relative } from '../../terminal/instants.ts';
import { type JobFlags, readFlags, withFlags } from '../../terminal/job-flags.ts';
import { fields, line, table } from '../../terminal/output.ts';

// `sets ls <queue>`: the sets whose callbacks were not made yet.

interface LsFlags {
  readonly limit?: number;
  readonly cursor?: string;
}

export const setsLs: Register = (parent, runner) => {
  const command = parent
    .command('ls <queue>')
    .description('list the sets of a queue whose callbacks were not made yet')
    .option('--limit <n>', 'show at most this many (default: 50)', wholeNumber(1, 1000))
    .option('--cursor <text>', 'go on where the page before has ended')
    .action((queue: string, flags: LsFlags, command: Command) =>
      runner.run(command, (session) => runLs(session, queue, flags)),
    );
  withExamples(command, ['duestream sets ls imports', 'duestream sets ls imports --json']);
};

async function runLs(session: Session, queue: string, { limit = 50, cursor }: LsFlags): Promise<Exit> {
  await checkQueue(session, queue);
  const page = await withClient(session, (client) => client.sets.list(queue, { limit, cursor }));
  session.out.answer({ queue, ...page }, () => [
    ...(page.sets.length === 0
      ? [line`no set of ${queue} waits for its members`]
      : table(session.out.paint, LS_HEAD, page.sets.map(row))),
    ...(page.cursor === undefined ? [] : ['there may be more; go on with', `--cursor ${page.cursor}`]),
  ]);
  return 0;
}

const LS_HEAD = ['set', 'sealed', 'open', 'done', 'dead', 'cancelled', 'expired', 'made'];

const row = ({ name, sealed, open, done, dead, cancelled, expired, madeMs }: SetView) => [
  ...[name, sealed ? 'yes' : 'no', open, done, dead, cancelled, expired],
  relative(madeMs, systemClock.wallMs()),
];

// `sets show <queue> <set>`: how far it is, and what it leads to.

interface GroupFlag {
  readonly group?: string;
}

const GROUP_FLAG = ['--group <group>', 'the group of the set, in a queue with limits'] as const;

export const setsShow: Register = (parent, runner) => {
  const command = parent
    .command('show <queue> <set>')
    .description('show how many members of a set are open, how the others ended, and what its callback is')
    .option(...GROUP_FLAG)
    .action((queue: string, set: string, flags: GroupFlag, command: Command) =>
      runner.run(command, (session) => runShow(session, { queue, set, flags })),
    );
  withExamples(command, ['duestream sets show imports import-7', 'duestream ls imports --set import-7']);
};

interface Asked {
  readonly queue: string;
  readonly set: string;
  readonly flags: GroupFlag;
}

async function runShow(session: Session, { queue, set, flags: { group } }: Asked): Promise<Exit> {
  await checkQueue(session, queue);
  const { sets } = await withClient(session, (client) => client.sets.list(queue, { set }));
  const found = sets.find((one) => group === undefined || one.group === group);
  if (!found) {
    throw new DuestreamError('not-found', `queue ${queue} has no set ${set}: nobody began it, or it is over`);
  }
  session.out.answer({ queue, ...found }, () => fields(factsOf(queue, found)));
  return 0;
}

function factsOf(queue: string, found: SetView): readonly (readonly [string, string | undefined])[] {
  const { name, sealed, open, done, dead, cancelled, expired, madeMs, group, callback } = found;
  return [
    ['set', name],
    ['queue', queue],
    ['group', group],
    ['made', relative(madeMs, systemClock.wallMs())],
    ['sealed', sealed ? 'yes' : 'no: its callback is not made before'],
    ['open', counted(open, 'member')],
    ['over', `${done} done, ${dead} dead, ${cancelled} cancelled, ${expired} expired`],
    [
      'callback',
      `${callback.id}, named ${callback.name}${callback.delayMs > 0 ? `, ${span(callback.delayMs)} later` : ''}`,
    ],
  ];
}

// `sets create <queue> <set>`: with the callback from flags, as `schedule` has them.

interface CreateFlags extends JobFlags {
  readonly data?: string;
}

export const setsCreate: Register = (parent, runner) => {
  const command = parent
    .command('create <queue> <set>')
    .description('begin a set: these flags say what its callback will be')
    .option('--data <json>', 'the data of the callback: JSON, @file, or - for stdin');
  withFlags(command, callbackFields)
    .option(...GROUP_FLAG)
    .action((queue: string, set: string, flags: CreateFlags, command: Command) =>
      runner.run(command, (session) => runCreate(session, { queue, set, flags })),
    );
  withExamples(command, [
    `duestream sets create imports import-7 --name imported --data '{"file":7}'`,
    'duestream schedule imports --set import-7 --id row-1',
    'duestream sets seal imports import-7',
  ]);
};

async function runCreate(
  session: Session,
  { queue: name, set, flags }: { readonly queue: string; readonly set: string; readonly flags: CreateFlags },
): Promise<Exit> {
  const { data, group, ...rest } = flags;
  const queue = queueFrom(name, queueOptions(session.config, name));
  const content = await readData(session.invocation, data);
  const then = { ...(readFlags(rest, callbackFields) as SetCallbackOptions), data: content };
  const made = await withClient(session, (client) => client.sets.begin<unknown>(queue, set, { then, group }));
  const said = { made: 'is there', already: 'was there with this callback', over: 'is over: its callback was made' };
  session.out.answer({ queue: name, ...made }, () => [line`set ${set} of ${name}  ${said[made.status]}`]);
  return made.status === 'over' ? 1 : 0;
}

// `sets seal <queue> <set>`: all members are there. `sets rm <queue> <set>`: without a callback.

const SEALED = { sealed: 'is sealed', already: 'was sealed', over: 'is over: its callback was made' };

export const setsSeal = asking(operations.sets.seal, {
  description: 'seal a set: its callback is made when the last member is over',
  examples: ['duestream sets seal imports import-7'],
  say: ({ queue, set, status }) => [line`set ${set} of ${queue}  ${SEALED[status]}`],
});

export const setsRm = asking(operations.sets.remove, {
  command: 'rm',
  description: 'remove a set without its callback, and cancel its members',
  examples: ['duestream sets rm imports import-7'],
  say: ({ queue, set, cancelled, running }) => [
    line`set ${set} of ${queue}  removed, ${counted(cancelled, 'member')} cancelled`,
    ...(running.length === 0 ? [] : [line`asked to stop: ${running.join(', ')}`]),
  ],
});
