/** `schedules ls`: every schedule with its rule, its next and last instant and what it made; unreadable ones as such. */
import type { Command } from 'commander';
import type { ScheduleView } from '../../../client/schedules/schedules.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { type Exit, type Register, wholeNumber, withExamples } from '../../register.ts';
import { newQueueHint, type Session, withSchedules } from '../../session.ts';
import { line, table } from '../../terminal/text.ts';
import { relative } from '../../terminal/when.ts';
import { ruleText, shownSchedules, shownView, stateText, wallText } from './schedule-lines.ts';

interface Flags {
  readonly queue?: string;
  readonly tag?: string;
  readonly limit?: number;
}

interface Unreadable {
  readonly name: string;
  readonly why: string;
}

/** A terminal is no place for more. */
const SHOWN_MAX = 1000;

export const schedulesLs: Register = (parent, runner) => {
  const command = parent
    .command('ls')
    .description('list schedules: their rule, next and last instant, and runs')
    .option('--queue <name>', 'only the schedules of this queue')
    .option('--tag <text>', 'only the schedules with this tag')
    .option(
      '--limit <n>',
      'show this many, ordered by name (default: 1000; with --json all)',
      wholeNumber(1, 1_000_000),
    )
    .action((flags: Flags, command: Command) => runner.run(command, (session) => run(session, flags)));
  withExamples(command, ['duestream schedules ls', 'duestream schedules ls --queue reports --json']);
};

async function run(session: Session, { limit, ...filter }: Flags): Promise<Exit> {
  const unreadable: Unreadable[] = [];
  const onUnreadable = (name: string, { message }: Error) => unreadable.push({ name, why: message });
  let more = 0;
  const onMore = (count: number) => {
    more = count;
  };
  const most = limit ?? (session.out.json ? undefined : SHOWN_MAX);
  const views = await withSchedules(session, (schedules) =>
    schedules.list({ ...filter, limit: most, onUnreadable, onMore }),
  );
  const nothing = views.length + unreadable.length === 0 ? await whyNone(session, filter) : '';
  const shown = session.out.json ? await shownSchedules(session, views) : views;
  const value = { namespace: session.config.namespace, schedules: shown.map(shownView), unreadable };
  session.out.answer(value, () => {
    if (views.length + unreadable.length === 0) {
      return [nothing];
    }
    const nowMs = systemClock.wallMs();
    const rows = views.map((view) => row(view, nowMs));
    const head = ['name', 'queue', 'rule', 'zone', 'next', 'last', 'runs', 'skipped', 'state'];
    return [
      ...(rows.length === 0 ? [] : table(session.out.paint, head, rows)),
      ...(more > 0 ? [line`and ${more} more; --limit shows them`] : []),
      ...unreadable.slice(0, most).map(({ name, why }) => line`${name}  cannot be read and does not fire: ${why}`),
    ];
  });
  return 0;
}

async function whyNone(session: Session, { queue, tag }: Omit<Flags, 'limit'>): Promise<string> {
  if (queue === undefined && tag === undefined) {
    return 'there is no schedule; "duestream schedules put --help" shows how to create one';
  }
  const hint = queue === undefined ? '' : await newQueueHint(session, queue);
  return `there is no schedule${queue === undefined ? '' : line` of queue ${queue}`}${tag === undefined ? '' : line` with tag ${tag}`}${hint}`;
}

function row(view: ScheduleView, nowMs: number) {
  const { name, queue, schedule, nextMs, lastMs, runs, skipped } = view;
  const seen = (atMs: number | undefined) =>
    atMs === undefined ? '-' : `${wallText(atMs, schedule.zone)} (${relative(atMs, nowMs)})`;
  return [name, queue, ruleText(schedule), schedule.zone, seen(nextMs), seen(lastMs), runs, skipped, stateText(view)];
}
