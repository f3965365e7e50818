/** `schedules pause <name>` and `schedules resume <name>`: what passes meanwhile is not caught up. Jobs that exist go on. */
import type { Command } from 'commander';
import type { Schedules } from '../../../client/schedules/schedules.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { type Exit, type Register, withExamples } from '../../register.ts';
import { type Session, withSchedules } from '../../session.ts';
import { line } from '../../terminal/text.ts';
import { moment } from '../../terminal/when.ts';
import { stateText } from './schedule-lines.ts';

export const schedulesPause: Register = (parent, runner) => {
  const command = parent
    .command('pause <name>')
    .description('pause a schedule: it makes no jobs until you resume it; its jobs go on')
    .option('--reason <text>', 'why, for the next person who looks')
    .action((name: string, { reason = '' }: { readonly reason?: string }, command: Command) =>
      runner.run(command, (session) =>
        run(session, name, { verb: 'pause', act: (schedules) => schedules.pause(name, reason) }),
      ),
    );
  withExamples(command, ['duestream schedules pause nightly --reason "the database moves"']);
};

export const schedulesResume: Register = (parent, runner) => {
  const command = parent
    .command('resume <name>')
    .description('resume a paused schedule, from now on')
    .action((name: string, _flags: unknown, command: Command) =>
      runner.run(command, (session) =>
        run(session, name, { verb: 'resume', act: (schedules) => schedules.resume(name) }),
      ),
    );
  withExamples(command, ['duestream schedules resume nightly']);
};

async function run(
  session: Session,
  name: string,
  {
    verb,
    act,
  }: {
    readonly verb: 'pause' | 'resume';
    readonly act: (schedules: Schedules) => Promise<{ readonly status: string }>;
  },
): Promise<Exit> {
  const { changed, nextMs, paused, unreadable } = await withSchedules(session, async (schedules) => {
    const { status } = await act(schedules);
    const view = await schedules.get(name);
    return {
      changed: status !== 'unchanged',
      nextMs: view?.nextMs,
      paused: view?.paused,
      unreadable: view?.unreadable,
    };
  });
  session.changes.push({ verb: `schedules.${verb}`, target: name, count: changed ? 1 : 0 });
  session.out.answer({ name, paused: paused !== undefined, reason: paused, changed, nextMs, unreadable }, () => {
    const state = `${name} ${changed ? 'is' : 'was already'} ${stateText({ nextMs, paused, unreadable })}`;
    return [nextMs === undefined ? line`${state}` : line`${state}, next ${moment(nextMs, systemClock.wallMs())}`];
  });
  return 0;
}
