/** `queues rm <queue>`: an unused queue vanishes with all its keys. */
import type { Command } from 'commander';
import { heldText } from '../../../client/queues/remove.ts';
import { counted } from '../../../kernel/humanize.ts';
import { type Exit, type Register, type Session, withClient, withExamples } from '../../session.ts';
import { line } from '../../terminal/output.ts';

export const queuesRm: Register = (parent, runner) => {
  const command = parent
    .command('rm <queue>')
    .description('remove an empty queue with all its keys')
    .option('--force', 'remove it although it holds jobs or dead letters, has schedules, or workers serve it')
    .action((queue: string, { force = false }: { readonly force?: boolean }, command: Command) =>
      runner.run(command, (session) => run(session, queue, force)),
    );
  withExamples(command, ['duestream queues rm emails', 'duestream queues rm emails --force']);
};

async function run(session: Session, queue: string, force: boolean): Promise<Exit> {
  const done = await withClient(session, ({ queues }) => queues.remove(queue, { force }));
  const { isRemoved: removed, came, held, schedules } = done;
  const had = [heldText(held), schedules.length === 0 ? '' : counted(schedules.length, 'schedule')];
  const content = had.filter((one) => one !== '').join(', ');
  session.out.answer({ queue, removed, forced: force, held, schedules }, () => [
    removed
      ? line`${queue} is removed` + (content === '' ? '' : ` with ${content}`)
      : line`${came === 'schedules' ? 'schedules were put' : 'jobs were scheduled'} in ${queue} while it was removed: it is kept with those; stop its producers and repeat`,
  ]);
  return removed ? 0 : 1;
}
