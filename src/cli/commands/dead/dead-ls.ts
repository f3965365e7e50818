/** `dead ls <queue>`: the newest dead letters of all partitions. */
import type { Command } from 'commander';
import { writtenAs } from '../../../inspect/dead-letters.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { type Exit, type Register, wholeNumber, withExamples } from '../../register.ts';
import { type Session, withDeadLetters } from '../../session.ts';
import { line, table } from '../../terminal/text.ts';
import { relative } from '../../terminal/when.ts';
import { type FilterFlags, filterOf, withFilter } from './dead-flags.ts';

interface Flags extends FilterFlags {
  readonly limit: number;
  readonly cursor?: string;
}

export const deadLs: Register = (parent, runner) => {
  const command = withFilter(parent.command('ls <queue>').description('list dead letters, newest first'))
    .option('--limit <n>', 'show at most this many', wholeNumber(1, 1000), 50)
    .option('--cursor <cursor>', 'go on where an earlier list ended, as it printed')
    .action((queue: string, flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, queue, flags)),
    );
  withExamples(command, [
    'duestream dead ls emails --limit 10',
    'duestream dead ls emails --name welcome --newer-than 1d',
  ]);
};

async function run(session: Session, queue: string, flags: Flags): Promise<Exit> {
  const { limit, cursor } = flags;
  const found = await withDeadLetters(session, queue, async (dead, partitions) => {
    const page = await dead.list(queue, filterOf(flags), { limit, cursor });
    const deadLetters = page.deadLetters.map(({ deadLetter, overMs: atMs, queue: _queue, ...row }) => ({
      deadLetter: writtenAs({ deadLetter, partition: row.partition }, partitions),
      ...row,
      atMs,
    }));
    return { deadLetters, scanned: page.scanned, cursor: page.cursor };
  });
  session.out.answer({ queue, ...found }, () => [...linesOf(session, queue, found.deadLetters), ...more(found)]);
  return 0;
}

interface Row {
  readonly deadLetter: string;
  readonly id: string;
  readonly bare: boolean;
  readonly name: string | undefined;
  readonly attempts: number;
  readonly atMs: number;
  readonly reason: string;
}

function linesOf(session: Session, queue: string, deadLetters: readonly Row[]): readonly string[] {
  if (deadLetters.length === 0) return [line`no dead letters in ${queue}`];
  const nowMs = systemClock.wallMs();
  const rows = deadLetters.map(({ deadLetter, id, bare, name, reason, atMs }) => [
    deadLetter,
    id + (bare ? ' (bare)' : ''),
    name,
    relative(atMs, nowMs),
    reason,
  ]);
  return table(session.out.paint, ['dead letter', 'id', 'name', 'died', 'reason'], rows);
}

const more = ({ scanned, cursor }: { readonly scanned: number; readonly cursor: string | undefined }) =>
  cursor === undefined ? [] : [line`${scanned} checked; there may be more: add --cursor ${cursor}`];
