/** `dead groups <queue>`: how many died alike, so that one look says what is wrong. */
import type { Command } from 'commander';
import { writtenAs } from '../../../inspect/dead-letters.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { type Exit, type Register, wholeNumber, withExamples } from '../../register.ts';
import { type Session, withDeadLetters } from '../../session.ts';
import { line, table } from '../../terminal/text.ts';
import { moment } from '../../terminal/when.ts';
import { type FilterFlags, filterOf, withFilter } from './dead-flags.ts';

interface Flags extends FilterFlags {
  readonly scanMax: number;
}

export const deadGroups: Register = (parent, runner) => {
  const command = withFilter(
    parent.command('groups <queue>').description('count dead letters by reason, last error and name'),
  )
    .option('--scan-max <n>', 'look at no more than this many, the newest', wholeNumber(1, 1_000_000), 100_000)
    .action((queue: string, flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, queue, flags)),
    );
  withExamples(command, ['duestream dead groups emails', 'duestream dead groups emails --newer-than 1h']);
};

async function run(session: Session, queue: string, flags: Flags): Promise<Exit> {
  const found = await withDeadLetters(session, queue, async (dead, partitions) => {
    const { groups, ...rest } = await dead.groups(queue, filterOf(flags), { scanMax: flags.scanMax });
    const written = groups.map((group) => ({
      ...group,
      example: { ...group.example, deadLetter: writtenAs(group.example, partitions) },
    }));
    return { groups: written, ...rest };
  });
  const { groups, others, scanned, cursor } = found;
  session.out.answer({ queue, ...found }, () => {
    if (groups.length === 0) return [line`no dead letters in ${queue}`];
    const nowMs = systemClock.wallMs();
    const rows = groups.map(({ count, reason, error, name, lastMs, example }) => [
      ...[String(count), reason, name, error, moment(lastMs, nowMs), example.deadLetter],
    ]);
    const heads = ['dead letters', 'reason', 'name', 'last error', 'last died', 'one of them'];
    return [
      ...table(session.out.paint, heads, rows),
      ...(others > 0 ? [line`${others} more are in smaller groups`] : []),
      ...(cursor === undefined ? [] : [line`only ${scanned} were checked; raise --scan-max for the rest`]),
    ];
  });
  return 0;
}
