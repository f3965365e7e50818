/** `schedules rm <name>...`: schedules that fire no more. Jobs that they made stay. */
import type { Command } from 'commander';
import { type Exit, type Register, withExamples } from '../../register.ts';
import { noSchedule, type Session, withSchedules } from '../../session.ts';
import { line } from '../../terminal/text.ts';

export const schedulesRm: Register = (parent, runner) => {
  const command = parent
    .command('rm <name...>')
    .description('remove schedules; the jobs that they made stay')
    .action((names: readonly string[], _flags: unknown, command: Command) =>
      runner.run(command, (session) => run(session, names)),
    );
  withExamples(command, ['duestream schedules rm nightly', 'duestream schedules rm nightly hourly --json']);
};

async function run(session: Session, names: readonly string[]): Promise<Exit> {
  const results = await withSchedules(session, async (schedules) => {
    const removed: { readonly name: string; readonly removed: boolean }[] = [];
    for (const name of names) removed.push({ name, removed: await schedules.remove(name) });
    return removed;
  });
  const lines: string[] = [];
  for (const { name, removed } of results) {
    session.changes.push({ verb: 'schedules.rm', target: name, count: removed ? 1 : 0 });
    lines.push(removed ? line`${name} is removed` : line`${(await noSchedule(session, name)).message}`);
  }
  session.out.answer({ schedules: results }, () => lines);
  return results.every(({ removed }) => removed) ? 0 : 1;
}
