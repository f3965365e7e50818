/** `tags close`, `tags open` and `tags ls`: no job with a tag starts in a queue until an end. A queue or a group closes with `queues close` and `groups close`. */
import type { Command } from 'commander';
import type { ClosedTag } from '../../../client/client.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { counted } from '../../../kernel/humanize.ts';
import {
  checkQueue,
  type Exit,
  type Register,
  type Session,
  wholeNumber,
  withClient,
  withExamples,
} from '../../session.ts';
import { moment } from '../../terminal/instants.ts';
import { line, table } from '../../terminal/output.ts';

interface CloseFlags {
  readonly for: string;
  readonly reason?: string;
}

export const closeTags: Register = (parent, runner) => {
  const command = parent
    .command('close <queue> <tags...>')
    .description('cancel the jobs that have a tag, and start none with it until an end')
    .requiredOption('--for <duration>', 'for how long: 90d, 12h; the longest end of a tag wins')
    .option('--reason <text>', 'why, for the next person who looks')
    .action((queue: string, tags: readonly string[], flags: CloseFlags, command: Command) =>
      runner.run(command, (session) => runClose(session, { queue, tags, flags })),
    );
  withExamples(command, [
    'duestream tags close mail invoice:7 --for 90d --reason paid',
    'duestream tags close mail user:42 user:43 --for 365d --json',
  ]);
};

async function runClose(
  session: Session,
  { queue, tags, flags }: { readonly queue: string; readonly tags: readonly string[]; readonly flags: CloseFlags },
): Promise<Exit> {
  await checkQueue(session, queue);
  const done = await withClient(session, (client) => client.tags.close(queue, tags, flags));
  const { cancelled, running, untilMs, full = [] } = done;
  const closed = tags.filter((tag) => !full.includes(tag));
  session.out.answer({ queue, tags, ...done }, () => [
    ...(closed.length === 0
      ? []
      : [line`${closed.join(', ')} of ${queue}  closed until ${moment(untilMs, systemClock.wallMs())}`]),
    ...(full.length === 0
      ? []
      : [
          line`${full.join(', ')}  not closed: as many tags as mover.closedMax allows are closed; open some, or raise it`,
        ]),
    line`${counted(cancelled, 'job')} cancelled`,
    ...(running.length === 0 ? [] : [line`asked to stop, as they had started before: ${running.join(', ')}`]),
  ]);
  return full.length === 0 ? 0 : 1;
}

export const openTags: Register = (parent, runner) => {
  const command = parent
    .command('open <queue> <tags...>')
    .description('open closed tags before their end; what was cancelled stays cancelled')
    .action((queue: string, tags: readonly string[], _flags: unknown, command: Command) =>
      runner.run(command, (session) => runOpen(session, queue, tags)),
    );
  withExamples(command, ['duestream tags open mail invoice:7']);
};

async function runOpen(session: Session, queue: string, tags: readonly string[]): Promise<Exit> {
  await checkQueue(session, queue);
  const { opened } = await withClient(session, (client) => client.tags.open(queue, tags));
  session.out.answer({ queue, tags, opened }, () =>
    tags.map((tag) => line`${tag} of ${queue}  ${opened.includes(tag) ? 'is open' : 'was open'}`),
  );
  return 0;
}

interface LsFlags {
  readonly search?: string;
  readonly limit?: number;
  readonly cursor?: string;
}

export const closedTags: Register = (parent, runner) => {
  const command = parent
    .command('ls <queue> [tags...]')
    .description('list the closed tags of a queue, the soonest end first, or only those that are named')
    .option('--search <text>', 'only tags that have this in them')
    .option('--limit <n>', 'show at most this many (default: 50)', wholeNumber(1, 1000))
    .option('--cursor <text>', 'go on where the page before has ended')
    .action((queue: string, tags: readonly string[], flags: LsFlags, command: Command) =>
      runner.run(command, (session) => runLs(session, { queue, tags, flags })),
    );
  withExamples(command, ['duestream tags ls mail', 'duestream tags ls mail --search invoice: --json']);
};

async function runLs(
  session: Session,
  { queue, tags, flags }: { readonly queue: string; readonly tags: readonly string[]; readonly flags: LsFlags },
): Promise<Exit> {
  await checkQueue(session, queue);
  const { limit = 50, ...which } = flags;
  const named = tags.length === 0 ? {} : { tag: tags };
  const page = await withClient(session, (client) => client.tags.list(queue, { ...which, limit, ...named }));
  session.out.answer({ queue, ...page }, () => [
    ...(page.tags.length === 0
      ? [line`none of these tags is closed in ${queue}; ${counted(page.count, 'tag')} in all`]
      : table(session.out.paint, ['tag', 'until', 'closed', 'by', 'reason'], page.tags.map(row))),
    ...(page.cursor === undefined ? [] : ['there may be more; go on with', `--cursor ${page.cursor}`]),
  ]);
  return 0;
}

function row({ tag, untilMs, atMs, by, reason }: ClosedTag) {
  const nowMs = systemClock.wallMs();
  return [tag, moment(untilMs, nowMs), atMs === undefined ? undefined : moment(atMs, nowMs), by, reason];
}
