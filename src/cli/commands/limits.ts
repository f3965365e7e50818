/** The commands of `limits`: limits with a name, which several queues share. A queue names them: `queues set <queue> --limits <names>`. */
import type { Command } from 'commander';
import type { LimitStray } from '../../client/limits/check.ts';
import type { LimitUse, LimitView } from '../../client/limits/limits.ts';
import { parseRate } from '../../job/rate.ts';
import { parseShared, type SharedLimitOptions, sharedText } from '../../job/shared-limit.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { counted } from '../../kernel/humanize.ts';
import { type Exit, type Register, type Session, wholeNumber, withClient, withExamples } from '../session.ts';
import { line, type Paint, table } from '../terminal/output.ts';

// `limits ls`: all of them, and who has how much.

export const limitsLs: Register = (parent, runner) => {
  const command = parent
    .command('ls')
    .description('list the limits that queues share, and which partitions have how much of them')
    .action((_flags: unknown, command: Command) => runner.run(command, runLs));
  withExamples(command, ['duestream limits ls', 'duestream limits ls --json']);
};

async function runLs(session: Session): Promise<Exit> {
  const limits = await withClient(session, (client) => client.limits.list());
  session.out.answer({ limits }, () =>
    limits.length === 0
      ? ['queues share no limit', 'define one: duestream limits set <name> --rate 10/s']
      : limits.flatMap((limit) => linesOf(session.out.paint, limit)),
  );
  return 0;
}

function linesOf(paint: Paint, limit: LimitView): readonly string[] {
  const { name, text, queues, partitions, lent } = limit;
  const named = queues.length === 0 ? 'no queue names it' : line`named by ${queues.join(', ')}`;
  const head =
    limit.rate === undefined ? line`${name}: ${text}, ${lent} lent; ${named}` : line`${name}: ${text}; ${named}`;
  if (partitions.length === 0) return [head];
  const rows = partitions.map((use) => row(limit, use));
  return [head, ...table(paint, headOf(limit), rows).map((text) => `  ${text}`)];
}

const headOf = ({ rate: isRate }: LimitView) =>
  isRate === undefined ? ['queue', 'partition', 'places', 'needs'] : ['queue', 'partition', 'last turn'];

const row = ({ rate: isRate }: LimitView, { queue, partition, share, need, servedMs }: LimitUse) =>
  isRate === undefined
    ? [queue, partition, share, need]
    : [queue, partition, servedMs === 0 ? 'never' : new Date(servedMs).toISOString()];

// `limits set <name>`: a rate or a concurrency.

interface SetFlags {
  readonly rate?: string;
  readonly burst?: number;
  readonly concurrency?: number;
  readonly reason?: string;
}

export const limitsSet: Register = (parent, runner) => {
  const command = parent
    .command('set <name>')
    .description('define a limit that several queues share, or change it: a rate or a concurrency')
    .option('--rate <rate>', 'start at most this many jobs of all queues in a time: 10/s, 600/m, 100/h, 50/d')
    .option('--burst <n>', 'with --rate: start this many at once after a while without any', wholeNumber(1, 1_000_000))
    .option('--concurrency <n>', 'run at most this many jobs of all queues at a time', wholeNumber(1, 1_000_000))
    .option('--reason <text>', 'why, for the audit')
    .action((name: string, flags: SetFlags, command: Command) =>
      runner.run(command, (session) => runSet(session, name, flags)),
    );
  withExamples(command, [
    'duestream limits set provider --rate 10/s',
    'duestream limits set provider --rate 10/s --burst 5',
    'duestream limits set licences --concurrency 3 --reason "we bought three"',
  ]);
};

async function runSet(session: Session, name: string, { reason, ...flags }: SetFlags): Promise<Exit> {
  const limit = saidIn(flags);
  const text = sharedText(parseShared(name, limit));
  const done = await withClient(session, ({ limits }) => limits.set(name, limit, { reason }));
  session.out.answer({ name, changed: done.status === 'changed', ...limit, ...done }, () => [
    done.status === 'changed' ? line`limit ${name} is ${text} from now on` : line`limit ${name} was ${text} already`,
    line`a queue shares it: duestream queues set <queue> --limits ${name}`,
  ]);
  return 0;
}

function saidIn({ rate: text, burst, concurrency }: Omit<SetFlags, 'reason'>): SharedLimitOptions {
  if ((text === undefined) === (concurrency === undefined)) {
    throw new DuestreamError('usage', 'say what to set: either --rate 10/s or --concurrency 5');
  }
  if (concurrency !== undefined) {
    if (burst !== undefined) throw new DuestreamError('usage', '--burst goes with --rate');
    return { concurrency };
  }
  const parsed = parseRate(text, '--rate');
  if (parsed === 0) throw new DuestreamError('usage', '--rate is none; allowed: 10/s, 600/m, 100/h, 50/d');
  return { rate: { limit: parsed.limit, per: parsed.perMs, burst: burst ?? parsed.burst } };
}

// `limits rm <name>`

export const limitsRm: Register = (parent, runner) => {
  const command = parent
    .command('rm <name>')
    .description('take away a limit that no queue names')
    .option('--reason <text>', 'why, for the audit')
    .action((name: string, { reason }: Pick<SetFlags, 'reason'>, command: Command) =>
      runner.run(command, async (session) => {
        const done = await withClient(session, ({ limits }) => limits.remove(name, { reason }));
        session.out.answer({ name, changed: done.status === 'changed', ...done }, () => [
          done.status === 'changed' ? line`limit ${name} is gone` : line`there is no limit ${name}`,
        ]);
        return 0;
      }),
    );
  withExamples(command, ['duestream limits rm provider']);
};

// `limits check [name]`: places that were lent to partitions which do not name the limit any more.

export const limitsCheck: Register = (parent, runner) => {
  const command = parent
    .command('check [name]')
    .description(
      'take back places that partitions have of a limit that they do not name any more, as far as nobody uses them',
    )
    .action((name: string | undefined, _flags: unknown, command: Command) =>
      runner.run(command, async (session) => {
        const strays = await withClient(session, ({ limits }) => limits.check(name));
        session.out.answer({ strays }, () =>
          strays.length === 0 ? ['no partition has places of a limit that it does not name'] : strays.map(strayText),
        );
        return 0;
      }),
    );
  withExamples(command, ['duestream limits check', 'duestream limits check licences --json']);
};

function strayText({ limit, queue, partition, share, freed, status }: LimitStray): string {
  const where = line`limit ${limit}: partition ${partition} of ${queue}`;
  switch (status) {
    case 'freed':
      return `${where} had ${counted(freed, 'place')} that nobody used, and has none now`;
    case 'in-use':
      return `${where} keeps ${counted(share - freed, 'place')}, as jobs run there that may be from before, and ${counted(freed, 'place')} more ${freed === 1 ? 'is' : 'are'} free again; check again when these jobs have ended`;
    case 'asking':
      return `${where} has ${counted(share, 'place')} and asked within a minute: its leader gives them back by itself; check again in a minute`;
  }
}
