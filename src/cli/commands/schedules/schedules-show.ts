/** `schedules show <name>`: the whole definition of a schedule, how far it was fired and what comes next. */
import type { Command } from 'commander';
import type { ScheduleView } from '../../../client/schedules/schedules.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { type Exit, type Register, withExamples } from '../../register.ts';
import { noSchedule, type Session, withSchedules } from '../../session.ts';
import { type Cell, fields } from '../../terminal/text.ts';
import { moment } from '../../terminal/when.ts';
import { shownSchedules, shownView, stateText, wallText } from './schedule-lines.ts';

export const schedulesShow: Register = (parent, runner) => {
  const command = parent
    .command('show <name>')
    .description('show the definition of a schedule, what it has fired and what comes next')
    .action((name: string, _flags: unknown, command: Command) => runner.run(command, (session) => run(session, name)));
  withExamples(command, ['duestream schedules show nightly', 'duestream schedules show nightly --json']);
};

async function run(session: Session, name: string): Promise<Exit> {
  const found = await withSchedules(session, (schedules) => schedules.get(name));
  if (found === undefined) throw await noSchedule(session, name);
  const [view = found] = await shownSchedules(session, [found]);
  session.out.answer(shownView(view), () => fields([...definitionPairs(view), ...firedPairs(view)]));
  return 0;
}

/** Its queue, and every other field that was written, in the order of writing. */
function definitionPairs({ name, source, input }: ScheduleView): readonly (readonly [string, Cell])[] {
  const { queue, ...rest } = input;
  const written = Object.entries({ queue, ...rest }).filter(([field]) => field !== 'paused');
  return [
    ['schedule', name],
    ['put by', source === 'file' ? 'the file of the configuration' : 'a call'],
    ...written.map(([field, value]) => [field, typeof value === 'string' ? value : JSON.stringify(value)] as const),
  ];
}

function firedPairs(view: ScheduleView): readonly (readonly [string, Cell])[] {
  const { schedule, nextMs, lastMs, reachedMs, runs, skipped } = view;
  const nowMs = systemClock.wallMs();
  const seen = (atMs: number | undefined) =>
    atMs === undefined ? undefined : `${wallText(atMs, schedule.zone)} ${schedule.zone}, ${moment(atMs, nowMs)}`;
  return [
    ['state', stateText(view)],
    ['next', seen(nextMs)],
    ['last', seen(lastMs)],
    ['reached', reachedMs && moment(reachedMs, nowMs)],
    ['runs', runs],
    ['skipped', skipped],
    ['advice', view.unreadable && 'remove it with "duestream schedules rm", and put it again'],
  ];
}
