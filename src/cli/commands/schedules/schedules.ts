/**
 * The commands of `schedules` that show, fire out of turn, pause and remove: ls, show, trigger, backfill, pause,
 * resume, rm.
 */
import type { Command } from 'commander';
import type { FiredJob, Schedules, ScheduleView } from '../../../client/schedules/schedules.ts';
import { redactedSchedules } from '../../../inspect/redacted.ts';
import { newJobId } from '../../../job/job-id.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { counted, span } from '../../../kernel/humanize.ts';
import type { Schedule } from '../../../schedule/schedule.ts';
import { zoneNamed } from '../../../time/zone.ts';
import {
  type Exit,
  newQueueHint,
  noSchedule,
  type Register,
  type Session,
  wholeNumber,
  withExamples,
  withRedis,
  withSchedules,
} from '../../session.ts';
import { instantOf, iso, moment, relative } from '../../terminal/instants.ts';
import { type Cell, fields, line, table } from '../../terminal/output.ts';

// How commands of schedules show rules, wall-clock times and states.

/** `30 2 * * *`, or `every 15 min`. */
function ruleText({ rule }: Schedule): string {
  return 'cron' in rule ? rule.cron : `every ${span(rule.everyMs)}`;
}

/** The wall-clock time of a zone at an instant, such as `2026-03-08 03:30:00`. */
function wallText(atMs: number, zone: string): string {
  const wallMs = atMs + zoneNamed(zone).offsetMs(atMs);
  return new Date(wallMs)
    .toISOString()
    .replace('T', ' ')
    .replace(/(\.000)?Z$/, '');
}

/** `on`, `over`, that it is paused and why, or that nobody can read how far it is. */
export function stateText({
  paused,
  nextMs,
  unreadable,
}: Pick<ScheduleView, 'paused' | 'nextMs' | 'unreadable'>): string {
  if (unreadable !== undefined) return `does not fire: ${unreadable}`;
  if (paused !== undefined) return paused === '' ? 'paused' : `paused: ${paused}`;
  return nextMs === undefined ? 'over' : 'on';
}

const PAUSED_BY = {
  hand: 'by hand: this holds until "duestream schedules resume", whatever is put meanwhile',
  definition: 'by its definition',
} as const;

/** As people may see their data. */
async function shownSchedules(session: Session, views: readonly ScheduleView[]): Promise<readonly ScheduleView[]> {
  if (views.every(({ input }) => input.data === undefined)) return views;
  const { namespace } = session.config;
  return withRedis(session, (redis) => redactedSchedules(views, async () => ({ redis, namespace })));
}

/** Without the parsed form: the input says the same as people wrote it. */
function shownView({ schedule: _, ...view }: ScheduleView) {
  return view;
}

// `schedules ls`: every schedule with its rule, its next and last instant and what it made; unreadable ones as such.

interface Flags {
  readonly queue?: string;
  readonly tag?: string;
  readonly limit?: number;
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
    .action((flags: Flags, command: Command) => runner.run(command, (session) => runLs(session, flags)));
  withExamples(command, ['duestream schedules ls', 'duestream schedules ls --queue reports --json']);
};

async function runLs(session: Session, { limit, ...filter }: Flags): Promise<Exit> {
  const most = limit ?? (session.out.json ? undefined : SHOWN_MAX);
  const page = await withSchedules(session, (schedules) => schedules.list({ ...filter, limit: most }));
  const { schedules: views, unreadable, more } = page;
  const nothing = views.length + unreadable.length === 0 ? await whyNone(session, filter) : '';
  const shown = session.out.json ? await shownSchedules(session, views) : views;
  const value = { namespace: session.config.namespace, schedules: shown.map(shownView), unreadable, more };
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
  return unreadable.length === 0 ? 0 : 1;
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

// `schedules show <name>`: the whole definition of a schedule, how far it was fired and what comes next.

export const schedulesShow: Register = (parent, runner) => {
  const command = parent
    .command('show <name>')
    .description('show the definition of a schedule, what it has fired and what comes next')
    .action((name: string, _flags: unknown, command: Command) =>
      runner.run(command, (session) => runShow(session, name)),
    );
  withExamples(command, ['duestream schedules show nightly', 'duestream schedules show nightly --json']);
};

async function runShow(session: Session, name: string): Promise<Exit> {
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
    ['paused', view.pausedBy && PAUSED_BY[view.pausedBy]],
    ['paused by', view.hand && `${view.hand.by}, ${moment(view.hand.atMs, nowMs)}`],
    ['next', seen(nextMs)],
    ['last', seen(lastMs)],
    ['reached', reachedMs && moment(reachedMs, nowMs)],
    ['runs', runs],
    ['skipped', skipped],
    ['advice', view.unreadable && 'remove it with "duestream schedules rm", and put it again'],
  ];
}

// `schedules trigger <name>` and `schedules backfill <name>`: jobs of a schedule out of turn; its own instants go on.

interface BackfillFlags {
  readonly from: string;
  readonly to: string;
  readonly dryRun?: boolean;
  readonly limit?: number;
}

export const schedulesTrigger: Register = (parent, runner) => {
  const command = parent
    .command('trigger <name>')
    .description('run one extra job of a schedule now')
    .option('--id <id>', 'an id for this run; the same id twice makes one job')
    .action((name: string, flags: { readonly id?: string }, command: Command) =>
      runner.run(command, (session) => runTrigger(session, name, flags)),
    );
  withExamples(command, ['duestream schedules trigger nightly', 'duestream schedules trigger nightly --id ticket:42']);
};

export const schedulesBackfill: Register = (parent, runner) => {
  const command = parent
    .command('backfill <name>')
    .description('run the jobs of a range of past instants now, in their order')
    .requiredOption(
      '--from <instant>',
      'the first instant: -2d, 2026-03-01, or ISO 8601; a date means the beginning of that day in the zone',
    )
    .requiredOption(
      '--to <instant>',
      'the last instant, included: now, -2h, 2026-03-08, or ISO 8601; a date means the end of that day in the zone',
    )
    .option('--dry-run', 'only show what would be scheduled')
    .option('--limit <n>', 'refuse a range with more instants (default: 1000)', wholeNumber(1, 100_000))
    .action((name: string, flags: BackfillFlags, command: Command) =>
      runner.run(command, (session) => runBackfill(session, name, flags)),
    );
  withExamples(command, [
    'duestream schedules backfill nightly --from 2026-03-01 --to 2026-03-08 --dry-run',
    'duestream schedules backfill nightly --from -2d --to now',
  ]);
};

async function runTrigger(session: Session, name: string, flags: { readonly id?: string }): Promise<Exit> {
  // Made here, so that a call whose reply is lost is repeated with the same id.
  const id = flags.id ?? newJobId();
  const job = await withSchedules(session, (schedules) => schedules.trigger(name, { id }));
  session.out.answer(job, () => [line`${job.id}  ${job.status}  ${SAID[job.status]}`]);
  return 0;
}

async function runBackfill(session: Session, name: string, flags: BackfillFlags): Promise<Exit> {
  const nowMs = systemClock.wallMs();
  const { dryRun = false, limit } = flags;
  const range = { from: instantOf(flags.from, '--from', nowMs), to: instantOf(flags.to, '--to', nowMs) };
  const jobs = await withSchedules(session, (schedules) => schedules.backfill(name, { ...range, dryRun, limit }));
  session.out.answer({ name, dryRun, jobs: jobs.map(withInstant) }, () => [
    ...table(
      session.out.paint,
      ['instant', 'status', 'id'],
      jobs.map(({ atMs, status, id }) => [atMs === undefined ? '-' : iso(atMs), status, id]),
    ),
    summary(jobs, dryRun),
  ]);
  return 0;
}

const withInstant = ({ id, atMs, status }: FiredJob) => ({
  id,
  status,
  at: atMs === undefined ? undefined : iso(atMs),
});

function summary(jobs: readonly FiredJob[], dryRun: boolean): string {
  const count = (status: FiredJob['status']) => jobs.filter((job) => job.status === status).length;
  if (jobs.length === 0) return 'the rule has no instant in this range';
  if (dryRun) return line`${counted(jobs.length, 'job')} would be scheduled; nothing was done`;
  const others = count('exists') + count('over') + count('closed');
  const rest = others === 0 ? '' : `; ${others} were not run again`;
  return line`${counted(count('scheduled'), 'job')} scheduled${rest}`;
}

const SAID: Readonly<Record<FiredJob['status'], string>> = {
  would: '',
  scheduled: 'due now',
  exists: 'a job of this id is live',
  over: 'a job of this id ran already',
  closed: 'a tag of it is closed',
};

// `schedules pause <name>` and `schedules resume <name>`: what passes meanwhile is not caught up. Jobs that exist go
// on.

export const schedulesPause: Register = (parent, runner) => {
  const command = parent
    .command('pause <name>')
    .description('pause a schedule: it makes no jobs until you resume it; its jobs go on')
    .option('--reason <text>', 'why, for the next person who looks')
    .action((name: string, { reason = '' }: { readonly reason?: string }, command: Command) =>
      runner.run(command, (session) => runPause(session, name, (schedules) => schedules.pause(name, reason))),
    );
  withExamples(command, ['duestream schedules pause nightly --reason "the database moves"']);
};

export const schedulesResume: Register = (parent, runner) => {
  const command = parent
    .command('resume <name>')
    .description('resume a paused schedule, from now on')
    .action((name: string, _flags: unknown, command: Command) =>
      runner.run(command, (session) => runPause(session, name, (schedules) => schedules.resume(name))),
    );
  withExamples(command, ['duestream schedules resume nightly']);
};

async function runPause(
  session: Session,
  name: string,
  act: (schedules: Schedules) => Promise<{ readonly status: string }>,
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
  session.out.answer({ name, paused: paused !== undefined, reason: paused, changed, nextMs, unreadable }, () => {
    const state = `${name} ${changed ? 'is' : 'was already'} ${stateText({ nextMs, paused, unreadable })}`;
    return [nextMs === undefined ? line`${state}` : line`${state}, next ${moment(nextMs, systemClock.wallMs())}`];
  });
  return 0;
}

// `schedules rm <name>...`: schedules that fire no more. Jobs that they made stay.

export const schedulesRm: Register = (parent, runner) => {
  const command = parent
    .command('rm <name...>')
    .description('remove schedules; the jobs that they made stay')
    .action((names: readonly string[], _flags: unknown, command: Command) =>
      runner.run(command, (session) => runRm(session, names)),
    );
  withExamples(command, ['duestream schedules rm nightly', 'duestream schedules rm nightly hourly --json']);
};

async function runRm(session: Session, names: readonly string[]): Promise<Exit> {
  const results = await withSchedules(session, async (schedules) => {
    const removed: { readonly name: string; readonly removed: boolean }[] = [];
    for (const name of names) removed.push({ name, removed: await schedules.remove(name) });
    return removed;
  });
  const lines: string[] = [];
  for (const { name, removed } of results) {
    lines.push(removed ? line`${name} is removed` : line`${(await noSchedule(session, name)).message}`);
  }
  session.out.answer({ schedules: results }, () => lines);
  return results.every(({ removed }) => removed) ? 0 : 1;
}
