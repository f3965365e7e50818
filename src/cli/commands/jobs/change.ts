/**
 * Cancel, reschedule and edit of jobs: by their ids, with a line for each; or of every job that a filter means, with
 * a dry run first that says how many and which, or a confirmation. While it works through a filter the command tells how far
 * it is, with the cursor to go on with.
 */
import { type Command, InvalidArgumentError, Option } from 'commander';
import type {
  Cancelled,
  CancelledJobs,
  ChangedJobs,
  Client,
  Edited,
  FilterOptions,
  JobChange,
  JobFilter,
  JobMove,
  MovedJobs,
  NewDue,
  Rescheduled,
  RunNow,
} from '../../../client/client.ts';
import { allOptions, editFields } from '../../../job/fields.ts';
import { jobOptions } from '../../../job/options.ts';
import { LIVE_STATES, type OverState } from '../../../job/state.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
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
import { readData } from '../../terminal/input.ts';
import { iso, moment } from '../../terminal/instants.ts';
import {
  DURABILITY_FLAG,
  flagOf,
  type JobFlags,
  readDurability,
  readFlags,
  withFlags,
} from '../../terminal/job-flags.ts';
import { line } from '../../terminal/output.ts';
import { type FilterFlags, isFilterGiven, readWalk, takeFilterFlags, withFilterFlags } from '../find/filter-flags.ts';

interface ChangeFlags {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly limit?: number;
  readonly cursor?: string;
}

const PROGRESS_EVERY = 5000;
const IDS_SHOWN = 20;
/** What needs nobody's attention: the job is as it should be. */
const FINE = ['already', 'already-due', 'kept', 'over'];

function withChangeFlags(command: Command): Command {
  return command
    .option('--dry-run', 'with a filter: change nothing, say how many jobs and which')
    .option('--yes', 'with a filter: really change them; give either this or --dry-run')
    .option('--limit <n>', 'with a filter: end after this many jobs', wholeNumber(1, 1_000_000_000))
    .option('--cursor <text>', 'with a filter: go on where an earlier run has ended');
}

/** Which jobs a command means, and how. */
interface Asked {
  readonly queue: string;
  readonly ids: readonly string[];
  readonly filter: FilterFlags;
  readonly flags: ChangeFlags;
}

/** What became of one job. */
interface Became {
  readonly id: string;
  readonly status: string;
  readonly over?: OverState | undefined;
}

/** What a command calls, and how it says what that did. */
interface Change<Result extends Became> {
  readonly prefix?: '' | 'where-';
  /** `cancelled` */
  readonly done: string;
  readonly byIds: (client: Client, ids: readonly string[]) => Promise<readonly Result[]>;
  readonly byFilter: (
    client: Client,
    filter: JobFilter,
    options: FilterOptions,
  ) => Promise<ChangedJobs | CancelledJobs | MovedJobs>;
  /** Whether nobody needs to look at this job. */
  readonly isFine: (result: Result) => boolean;
  readonly sentence: (result: Result) => string;
}

/** @throws DuestreamError `usage` for both ids and a filter, or neither; for a filter without a dry run or a confirmation */
function runChange<Result extends Became>(session: Session, asked: Asked, change: Change<Result>): Promise<Exit> {
  return isByFilter(asked) ? runByFilter(session, asked, change) : runByIds(session, asked, change);
}

/** @throws DuestreamError `usage` for both ids and a filter, or neither */
function isByFilter({ ids, filter, flags }: Asked): boolean {
  const isGiven = isFilterGiven(filter);
  if (isGiven && ids.length > 0) {
    throw new DuestreamError('usage', 'ids and a filter are both given; allowed: one of them');
  }
  if (!isGiven && ids.length === 0) {
    throw new DuestreamError('usage', 'no job is named; give its id, or a filter such as --tag');
  }
  const { dryRun, yes, limit, cursor } = flags;
  if (!isGiven && (dryRun || yes || limit !== undefined || cursor !== undefined)) {
    throw new DuestreamError('usage', '--dry-run, --yes, --limit and --cursor go with a filter; ids are given here');
  }
  return isGiven;
}

async function runByIds<Result extends Became>(
  session: Session,
  { queue, ids }: Asked,
  { byIds, isFine, sentence }: Change<Result>,
): Promise<Exit> {
  await checkQueue(session, queue);
  const replies = await withClient(session, (client) => byIds(client, ids));
  session.out.answer({ queue, jobs: replies }, () => replies.map(sentence));
  return replies.every(isFine) ? 0 : 1;
}

async function runByFilter<Result extends Became>(
  session: Session,
  asked: Asked,
  { prefix, done, byFilter }: Change<Result>,
): Promise<Exit> {
  const { queue, flags } = asked;
  const { dryRun = false, yes = false, limit } = flags;
  if (dryRun === yes) {
    throw new DuestreamError(
      'usage',
      'this may change many jobs: see how many and which with --dry-run, or confirm with --yes',
    );
  }
  const { filter, cursor, told: tell } = readWalk(asked.filter, { ...(prefix && { prefix }), cursor: flags.cursor });
  await checkQueue(session, queue);
  let told = 0;
  const result = await withClient(session, (client) =>
    byFilter(client, filter, {
      dryRun,
      limit,
      cursor,
      onProgress(progress) {
        if (progress.matched < told + PROGRESS_EVERY) return;
        told = progress.matched;
        const more = progress.cursor === undefined ? '' : `; to go on from here: --cursor ${tell(progress.cursor)}`;
        session.out.note(line`${progress.matched} jobs matched, ${progress.changed} ${done}` + more);
      },
    }),
  );
  const shown = { ...result, cursor: tell(result.cursor) };
  session.out.answer({ queue, ...shown }, () => sentences(shown, done));
  return isFine(result) ? 0 : 1;
}

const isFine = ({ skipped }: ChangedJobs): boolean => Object.keys(skipped).every((reason) => FINE.includes(reason));

function sentences(result: ChangedJobs | CancelledJobs | MovedJobs, done: string): readonly string[] {
  const { dryRun, matched, changed, skipped, ids, cursor, scanned } = result;
  const requested = 'requested' in result && result.requested > 0 ? result.requested : undefined;
  const rest = matched - Math.min(ids.length, IDS_SHOWN);
  const more = cursor === undefined ? [] : ['there may be more; go on with', `--cursor ${cursor}`];
  const moves = 'moves' in result ? new Map(result.moves.map((move) => [move.id, move])) : undefined;
  if (dryRun) {
    return [
      ...ids.slice(0, IDS_SHOWN).map((id) => moveLine(id, moves?.get(id))),
      ...(rest > 0 && matched > 0 ? [line`and ${rest} more`] : []),
      line`${counted(matched, 'job')} would be ${done}, of ${scanned} looked at`,
      ...more,
    ];
  }
  return [
    line`${counted(matched, 'job')} matched, ${changed} ${done}`,
    ...(requested === undefined ? [] : [line`${requested} running: asked to stop`]),
    ...Object.entries(skipped).map(([reason, count]) => line`${count} skipped: ${SKIPPED[reason] ?? reason}`),
    ...more,
  ];
}

function moveLine(id: string, move: JobMove | undefined): string {
  if (!move) return line`${id}`;
  const before = move.wasMs === undefined ? 'waits for a worker' : iso(move.wasMs);
  return line`${id}  ${before}  would be ${moment(move.dueMs, systemClock.wallMs())}`;
}

const SKIPPED: Readonly<Record<string, string>> = {
  changed: 'changed by somebody else meanwhile',
  running: 'running',
  over: 'over',
  unknown: 'gone',
  already: 'so already',
  'already-due': 'due already, waiting for a worker',
  kept: 'kept by --only',
  unreadable: 'its record or its id cannot be read',
  refused: 'the change does not fit this job, or its worker holds it and has not let it go',
  indeterminate: 'unsure, the reply was lost; "duestream show" says more',
};

/** Why a job was not changed. */
function unchanged({ id, status, over }: Became): string {
  switch (status) {
    case 'running':
      return line`${id}  not changed: it runs`;
    case 'over':
      return line`${id}  not changed: it is over, ${over ?? 'its end is not known'}`;
    case 'changed':
      return line`${id}  not changed: somebody else has changed it; look again with "duestream show"`;
    case 'indeterminate':
      return line`${id}  unsure: the reply was lost and the job has been started since; "duestream show" says more`;
    default:
      return line`${id}  unknown: it never existed, or it ended long ago; "duestream show" says more`;
  }
}

// `cancel <queue> [id...]`: one line per job, saying what became of it; or all that a filter means.

export const cancel: Register = (parent, runner) => {
  const command = parent
    .command('cancel <queue> [id...]')
    .description('cancel jobs by id or by a filter; the handler of a job that runs is asked to stop')
    .option('--bare', 'the ids are bare members: a foreign producer put them with ZADD');
  withChangeFlags(withFilterFlags(command, { states: LIVE_STATES }))
    .option(...DURABILITY_FLAG)
    .action((queue: string, ids: readonly string[], flags: CancelFlags, command: Command) =>
      runner.run(command, (session) => runCancel(session, { queue, ids, flags })),
    );
  withExamples(command, [
    'duestream cancel emails welcome:42 welcome:43',
    'duestream cancel emails --tag user:42 --dry-run',
    'duestream cancel emails --tag user:42 --yes',
  ]);
};

function runCancel(
  session: Session,
  { queue, ids, flags }: { readonly queue: string; readonly ids: readonly string[]; readonly flags: CancelFlags },
): Promise<Exit> {
  const { filter, rest } = takeFilterFlags(flags);
  const { bare = false, durability } = rest;
  const asked = { queue, ids, filter, flags: rest };
  if (isByFilter(asked) && (bare || durability !== undefined)) {
    throw new DuestreamError('usage', '--bare and --durability go with ids; a filter is given here');
  }
  const durable = readDurability(durability);
  return runChange<Cancelled>(session, asked, {
    done: 'cancelled',
    byIds: (client, named) => client.cancel(queue, named, { bare, ...durable }),
    byFilter: (client, given, options) => client.cancel(queue, given, options),
    isFine: ({ status, over }) => status === 'cancelled' || status === 'requested' || over === 'cancelled',
    sentence: cancelSentence,
  });
}

interface CancelFlags extends FilterFlags, ChangeFlags {
  readonly bare?: boolean;
  readonly durability?: string;
}

function cancelSentence({ id, status, over }: Cancelled): string {
  switch (status) {
    case 'cancelled':
      return line`${id}  cancelled`;
    case 'requested':
      return line`${id}  running: it was asked to stop`;
    case 'over':
      return line`${id}  over already: ${over ?? 'its end is not known'}`;
    case 'changed':
      return unchanged({ id, status });
    case 'indeterminate':
      return line`${id}  unsure: the reply was lost and nothing is known of the job now`;
    case 'unknown':
      return line`${id}  unknown: it never existed, or it ended long ago; "duestream show" says more`;
  }
}

// `reschedule <queue> [id...]`: another due time for jobs that wait, by id or by a filter.

type RescheduleFlags = Pick<JobFlags, 'delay' | 'at' | 'zone'> &
  Pick<NewDue, 'only'> &
  FilterFlags &
  ChangeFlags & { readonly shift?: string; readonly now?: boolean };

const DUE_OPTIONS = allOptions.filter(({ name }) => ['delay', 'at', 'zone'].includes(name));

export const reschedule: Register = (parent, runner) => {
  const command = parent
    .command('reschedule <queue> [id...]')
    .description('give jobs that wait another due time; options, attempts and history stay');
  withFlags(command, DUE_OPTIONS)
    .option('--now', 'now: they start as soon as a worker is free')
    .option('--shift <duration>', 'so much later than each is due now, as 1d; or earlier, as -1h')
    .addOption(
      new Option('--only <which>', 'only if that is earlier, or later, than it is due now').choices([
        'earlier',
        'later',
      ]),
    );
  withChangeFlags(withFilterFlags(command, { states: ['scheduled', 'waiting', 'ready'] })).action(
    (queue: string, ids: readonly string[], flags: RescheduleFlags, command: Command) =>
      runner.run(command, (session) => (flags.now ? runNow : runReschedule)(session, { queue, ids, flags })),
  );
  withExamples(command, [
    'duestream reschedule reminders payment:42 --delay 1d',
    'duestream reschedule reminders payment:42 --now',
    'duestream reschedule reminders payment:42 --at 2026-03-01T09:00 --zone Europe/Berlin --only later',
    'duestream reschedule mail --tag campaign:7 --at 2026-03-01T09:00:00Z --dry-run',
    'duestream reschedule mail --tag campaign:7 --shift=-1h --yes',
  ]);
};

interface RescheduleAsked {
  readonly queue: string;
  readonly ids: readonly string[];
  readonly flags: RescheduleFlags;
}

function runReschedule(session: Session, { queue, ids, flags: given }: RescheduleAsked): Promise<Exit> {
  const { filter, rest: flags } = takeFilterFlags(given);
  const due: NewDue = { ...readFlags(flags, DUE_OPTIONS), shift: flags.shift, only: flags.only };
  return runChange<Rescheduled>(
    session,
    { queue, ids, filter, flags },
    {
      done: 'rescheduled',
      byIds: (client, named) => client.reschedule(queue, named, due),
      byFilter: (client, jobs, options) => client.reschedule(queue, jobs, due, options),
      isFine: ({ status }) => ['rescheduled', 'already', 'kept'].includes(status),
      sentence: rescheduleSentence,
    },
  );
}

/** @throws DuestreamError `usage` for another due time beside it */
function runNow(session: Session, { queue, ids, flags }: RescheduleAsked): Promise<Exit> {
  const other = (['delay', 'at', 'zone', 'shift', 'only'] as const).find((name) => flags[name] !== undefined);
  if (other) throw new DuestreamError('usage', `--now and --${other} are both given; allowed: one of them`);
  return runChange<RunNow>(
    session,
    { queue, ids, filter: takeFilterFlags(flags).filter, flags },
    {
      done: 'due now',
      byIds: (client, named) => client.runNow(queue, named),
      byFilter: (client, jobs, options) => client.runNow(queue, jobs, options),
      isFine: ({ status }) => status === 'due' || status === 'already-due',
      sentence: dueSentence,
    },
  );
}

function dueSentence({ id, status, over }: RunNow): string {
  if (status === 'due') return line`${id}  due now`;
  if (status === 'already-due') return line`${id}  due already: it waits for a worker`;
  return unchanged({ id, status, over });
}

function rescheduleSentence({ id, status, dueMs = 0, wasMs, waitingBehind, over }: Rescheduled): string {
  const due = moment(dueMs, systemClock.wallMs());
  if (status === 'rescheduled') {
    const before = wasMs === undefined ? 'it waited for a worker' : `was ${moment(wasMs, systemClock.wallMs())}`;
    const behind = waitingBehind ? `  ${counted(waitingBehind, 'job')} of its group in line wait for it` : '';
    return line`${id}  due ${due}  ${before}${behind}`;
  }
  if (status === 'already') return line`${id}  due ${due} already`;
  if (status === 'kept') return line`${id}  kept  due ${due}`;
  if (status === 'ready') return line`${id}  due already: it waits for a worker`;
  return unchanged({ id, status, over });
}

// `edit <queue> [id...]`: other data, another name or other options for jobs that wait, by id or by a filter.

/** `--name` and `--tag` say what is to be. */
const PREFIX = 'where-';
const OPTIONS = editFields.map(({ name, option }) => ({ name, option }));
const TIMES = [
  { name: 'delay' as const, option: jobOptions.delay },
  { name: 'at' as const, option: jobOptions.at },
  { name: 'zone' as const, option: jobOptions.zone },
];
const EDITED = [{ name: 'name' as const, option: jobOptions.name }, ...TIMES, ...OPTIONS];

interface EditFlags extends JobFlags, ChangeFlags {
  readonly data?: string;
  readonly unset?: readonly string[];
  readonly ifDigest?: string;
}

export const edit: Register = (parent, runner) => {
  const command = parent
    .command('edit <queue> [id...]')
    .description(
      'change the data, the name, the options or the due time of jobs that wait; id, attempts and history stay',
    )
    .option('--data <json>', 'new data: JSON, @file, or - for stdin');
  withFlags(command, EDITED)
    .option(
      '--unset <option>',
      "take an option back to the queue's, by the name of its flag; may be given more than once",
      (given: string, before: readonly string[] = []) => [...before, optionNamed(given)],
    )
    .option('--if-digest <digest>', 'only if the job is still what "duestream show --json" showed with this digest');
  withChangeFlags(withFilterFlags(command, { prefix: 'where-', states: ['scheduled', 'waiting', 'ready'] })).action(
    (queue: string, ids: readonly string[], flags: EditFlags, command: Command) =>
      runner.run(command, (session) => runEdit(session, { queue, ids, flags })),
  );
  withExamples(command, [
    `duestream edit reminders payment:42 --data '{"to":"new@example.org"}' --delay 2d`,
    'duestream edit reminders payment:42 payment:43 --attempts 3 --unset timeout',
    'duestream edit reminders --where-tag user:42 --timeout 1m --dry-run',
  ]);
};

function optionNamed(given: string): string {
  const known = OPTIONS.map(flagOf);
  if (known.includes(given)) return given;
  throw new InvalidArgumentError(`Allowed: ${known.join(', ')}.`);
}

interface EditAsked {
  readonly queue: string;
  readonly ids: readonly string[];
  readonly flags: EditFlags;
}

async function runEdit(session: Session, { queue, ids, flags }: EditAsked): Promise<Exit> {
  const { filter, rest } = takeFilterFlags(flags, PREFIX);
  const asked = { queue, ids, filter, flags: rest };
  const { ifDigest } = rest;
  if (isByFilter(asked) && ifDigest !== undefined) {
    throw new DuestreamError('usage', '--if-digest goes with ids; a filter is given here');
  }
  const change = await changeOf(session, rest);
  return runChange<Edited>(session, asked, {
    prefix: PREFIX,
    done: 'edited',
    byIds: (client, named) =>
      client.edit(
        queue,
        named.map((id) => ({ id, ifDigest })),
        change,
      ),
    byFilter: (client, jobs, options) => client.edit(queue, jobs, change, options),
    isFine: ({ status }) => status === 'edited' || status === 'already',
    sentence: editSentence,
  });
}

async function changeOf(session: Session, flags: EditFlags): Promise<JobChange> {
  const { data, unset = [], ...options } = flags;
  const cleared = OPTIONS.filter((one) => unset.includes(flagOf(one))).map(({ name }) => [name, null]);
  return {
    ...readFlags(options, EDITED),
    ...(Object.fromEntries(cleared) as JobChange),
    ...(data === undefined ? {} : { data: await readData(session.invocation, data) }),
  };
}

function editSentence({ id, status, digest, over }: Edited): string {
  switch (status) {
    case 'edited':
      return line`${id}  edited  digest ${digest ?? '-'}`;
    case 'already':
      return line`${id}  is so already  digest ${digest ?? '-'}`;
    case 'changed':
      return line`${id}  not changed: somebody else has changed it; look again with "duestream show"`;
    case 'unreadable':
      return line`${id}  not changed: its record cannot be read`;
    default:
      return unchanged({ id, status, over });
  }
}
