/** The commands of `dead`: ls, groups, show, purge and replay. */
import type { Command } from 'commander';
import type {
  DeadLetterFilter,
  DeadLetterShare,
  DeadLetters,
  RemovedLetters,
  Replayed,
  ReplayFilterOptions,
} from '../../client/dead/dead-letters.ts';
import { addressOf, createSteps, findDeadLetter, parseAddress, writtenAs } from '../../inspect/dead-letters.ts';
import { contentOf, memberOf } from '../../job/codec.ts';
import { asideText } from '../../job/job-facts.ts';
import { REDACTED, redactedJob } from '../../job/redaction.ts';
import { systemClock } from '../../kernel/clock.ts';
import { durationMs } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { counted } from '../../kernel/humanize.ts';
import { readLog } from '../../redis/read/log-lines.ts';
import {
  type Exit,
  partitionsOfQueue,
  type Register,
  type Session,
  wholeNumber,
  withClient,
  withDeadLetters,
  withExamples,
  withRedis,
} from '../session.ts';
import { moment, relative } from '../terminal/instants.ts';
import { DURABILITY_FLAG, readDurability } from '../terminal/job-flags.ts';
import { fields, line, table, unreadLines } from '../terminal/output.ts';
import { attemptLines, jobFields, logLines } from './jobs/show.ts';

// The flags that say which dead letters are meant, the same for every command of `dead`.

interface FilterFlags {
  readonly reason?: string;
  readonly name?: string;
  readonly tag?: string;
  readonly set?: string;
  readonly id?: string;
  readonly error?: string;
  readonly olderThan?: string;
  readonly newerThan?: string;
}

function withFilter(command: Command): Command {
  return command
    .option('--reason <reason>', 'only dead letters with exactly this reason')
    .option('--name <name>', 'only those of jobs with this name')
    .option('--tag <tag>', 'only those of jobs with this tag')
    .option('--set <name>', 'only those of members of this set')
    .option('--id <id>', 'only those of this job')
    .option('--error <error>', 'only those with this last error, as --groups prints it')
    .option('--older-than <duration>', 'only dead letters that are at least this old')
    .option('--newer-than <duration>', 'only dead letters that are at most this old');
}

function filterOf(flags: FilterFlags): DeadLetterFilter {
  const { reason, name, tag, set, id, error, olderThan, newerThan } = flags;
  return { reason, name, tag, set, id, error, olderThan, newerThan };
}

/** Whether any flag names some of them. */
const isNamed = (flags: FilterFlags): boolean => Object.values(filterOf(flags)).some((one) => one !== undefined);

/** How to go on where a limit has ended the command. */
const moreLines = (cursor: string | undefined): readonly string[] =>
  cursor === undefined ? [] : ['there may be more; go on with', `--cursor ${cursor}`];

/** Either of the two, never both, never none. @throws DuestreamError `usage` */
export function checkConsent(flags: { readonly dryRun?: boolean; readonly yes?: boolean }, what: string): void {
  if ((flags.dryRun === true) !== (flags.yes === true)) return;
  throw new DuestreamError('usage', `${what}: count them first with --dry-run, or confirm with --yes`);
}

// `dead ls <queue>`: the newest dead letters of all partitions.

interface LsFlags extends FilterFlags {
  readonly groups?: boolean;
  readonly scanMax?: number;
  readonly limit?: number;
  readonly cursor?: string;
}

export const deadLs: Register = (parent, runner) => {
  const command = withFilter(
    parent
      .command('ls [queue]')
      .description('list dead letters, newest first; without a queue, what jobs of all queues died of'),
  )
    .option('--limit <n>', 'show at most this many (default: 50)', wholeNumber(1, 1000))
    .option('--cursor <cursor>', 'go on where an earlier list ended, as it printed')
    .option('--groups', 'count them by reason, last error and name instead')
    .option(
      '--scan-max <n>',
      'with --groups, or without a queue: look at no more than this many (default: 100000; without a queue 10000)',
      wholeNumber(1, 1_000_000),
    )
    .action((queue: string | undefined, flags: LsFlags, command: Command) =>
      runner.run(command, (session) => {
        if (queue === undefined) return runOverview(session, flags);
        return (flags.groups ? runGroups : runLs)(session, queue, flags);
      }),
    );
  withExamples(command, [
    'duestream dead ls --newer-than 1d',
    'duestream dead ls emails --limit 10',
    'duestream dead ls emails --groups --newer-than 1h',
    'duestream dead ls emails --name welcome --newer-than 1d',
  ]);
};

async function runLs(session: Session, queue: string, flags: LsFlags): Promise<Exit> {
  const { limit = 50, cursor, scanMax } = flags;
  if (scanMax !== undefined) throw new DuestreamError('usage', '--scan-max goes with --groups');
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

// `dead ls <queue> --groups`: how many died alike, so that one look says what is wrong.

async function runGroups(session: Session, queue: string, flags: LsFlags): Promise<Exit> {
  const { scanMax = 100_000, limit, cursor: from } = flags;
  if ((limit ?? from) !== undefined) throw new DuestreamError('usage', '--limit and --cursor do not go with --groups');
  const found = await withDeadLetters(session, queue, async (dead, partitions) => {
    const { groups, ...rest } = await dead.groups(queue, filterOf(flags), { scanMax });
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

// `dead ls`: what jobs of all queues died of.

async function runOverview(session: Session, flags: LsFlags): Promise<Exit> {
  const { scanMax, limit, cursor, groups } = flags;
  if ((limit ?? cursor) !== undefined) throw new DuestreamError('usage', '--limit and --cursor go with a queue');
  if (groups) {
    throw new DuestreamError(
      'usage',
      '--groups is given without a queue, where dead letters are counted by what they died of anyway; leave it out, or name a queue',
    );
  }
  const found = await withClient(session, ({ deadLetters }) => deadLetters.overview({ ...filterOf(flags), scanMax }));
  const { kinds, others, scanned, untilMs, unread } = found;
  session.out.answer(found, () => {
    const nowMs = systemClock.wallMs();
    const rows = kinds.map(({ count, reason, error, lastMs, shares }) => [
      count,
      sharesText(shares.queue),
      reason,
      error,
      relative(lastMs, nowMs),
      sharesText(shares.host),
    ]);
    const heads = ['dead letters', 'queues', 'reason', 'last error', 'last died', 'hosts'];
    return [
      ...(rows.length === 0 ? ['no dead letters'] : table(session.out.paint, heads, rows)),
      ...(others > 0 ? [line`${others} more are of other kinds`] : []),
      ...(untilMs === undefined ? [] : [line`only the newest ${scanned} were checked; raise --scan-max for the rest`]),
      ...unreadLines(unread),
    ];
  });
  return unread.length === 0 ? 0 : 1;
}

/** The first two of them. */
function sharesText(shares: readonly DeadLetterShare[]): string | undefined {
  if (shares.length === 0) return undefined;
  const rest = shares.length > 2 ? `, ${shares.length - 2} more` : '';
  return (
    shares
      .slice(0, 2)
      .map(({ value }) => value)
      .join(', ') + rest
  );
}

// `dead show <queue> <dead-letter>`: one dead letter with its data and history.

export const deadShow: Register = (parent, runner) => {
  const command = parent
    .command('show <queue> <dead-letter>')
    .description('show one dead letter with its data and history')
    .action((queue: string, address: string, _flags: unknown, command: Command) =>
      runner.run(command, (session) => runShow(session, queue, address)),
    );
  withExamples(command, ['duestream dead show emails 1763719000000-0']);
};

async function runShow(session: Session, queue: string, address: string): Promise<Exit> {
  const found = await withRedis(session, async (redis) => {
    const refs = await partitionsOfQueue(session, redis, queue);
    const placed = await findDeadLetter(redis, refs, address);
    const { ref, deadLetter } = placed;
    const member = memberOf(deadLetter.id, { bare: deadLetter.bare });
    const log = await readLog(redis, ref, { member, deadLetter });
    return { placed, log, address: addressOf(placed, refs.length) };
  });
  const { record, entry: _entry, ...deadLetter } = found.placed.deadLetter;
  const { partition, redact } = found.placed.ref;
  const content = contentOf(record);
  const shown = {
    ...content,
    data: redactedJob(content, redact),
    unreadable: redact && content.unreadable !== undefined ? REDACTED : content.unreadable,
    tags: content.options.tags,
  };
  const value = {
    queue,
    partition,
    deadLetter: found.address,
    ...deadLetter,
    readable: content.readable,
    name: content.name,
    data: shown.data,
    headers: content.headers,
    askedDueMs: content.askedDueMs,
    log: found.log,
  };
  session.out.answer(value, () => {
    const nowMs = systemClock.wallMs();
    return [
      ...jobFields({ ...shown, id: deadLetter.id, bare: deadLetter.bare, queue, partition }),
      ...fields([
        ['died', moment(deadLetter.atMs, nowMs)],
        ['reason', deadLetter.reason],
        ['attempts', deadLetter.attempts],
        ['put aside', deadLetter.deferred?.times ? asideText(deadLetter.deferred) : undefined],
      ]),
      '',
      ...(deadLetter.history.length === 0 ? ['no attempt was recorded'] : deadLetter.history.flatMap(attemptLines)),
      ...logLines(found.log),
      '',
      line`to run it again: duestream dead replay ${queue} ${found.address}`,
    ];
  });
  return 0;
}

// `dead purge <queue>`: dead letters go for ever, oldest first. They go in bounded batches, so a run that was cut short
// may be repeated; `--cursor` goes on where a run has ended, with the ages of that run.

interface PurgeFlags extends FilterFlags {
  readonly limit: number;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly cursor?: string;
}

/** What one call of the library does. */
const PURGE_SLICE = 10_000;

export const deadPurge: Register = (parent, runner) => {
  const command = withFilter(parent.command('purge <queue>').description('remove dead letters for ever, oldest first'))
    .option(
      '--limit <n>',
      'remove at most this many; go on with --cursor for the rest',
      wholeNumber(1, 10_000_000),
      100_000,
    )
    .option('--dry-run', 'only count them')
    .option('--yes', 'really remove them; give either this or --dry-run')
    .option('--cursor <text>', 'go on where an earlier run has ended')
    .action((queue: string, flags: PurgeFlags, command: Command) =>
      runner.run(command, (session) => runPurge(session, queue, flags)),
    );
  withExamples(command, [
    'duestream dead purge emails --older-than 7d --dry-run',
    'duestream dead purge emails --older-than 7d --reason no-handler --yes',
  ]);
};

async function runPurge(session: Session, queue: string, flags: PurgeFlags): Promise<Exit> {
  checkConsent(flags, 'this removes dead letters for ever');
  const dryRun = flags.dryRun === true;
  const {
    matched,
    scanned: looked,
    cursor,
  } = await withDeadLetters(session, queue, (dead) => purgeAll(session, dead, { queue, flags, dryRun }));
  const more = cursor !== undefined;
  session.out.answer({ queue, dryRun, [dryRun ? 'matched' : 'removed']: matched, looked, more, cursor }, () => [
    dryRun
      ? line`${counted(matched, 'dead letter')} would be removed, of ${looked} checked`
      : line`${counted(matched, 'dead letter')} removed`,
    ...moreLines(cursor),
  ]);
  return 0;
}

/** Slice after slice, until nothing is left or the limit is reached. */
async function purgeAll(
  session: Session,
  dead: DeadLetters,
  { queue, flags, dryRun }: { readonly queue: string; readonly flags: PurgeFlags; readonly dryRun: boolean },
): Promise<RemovedLetters> {
  const verb = dryRun ? 'match' : 'removed';
  const steps = createSteps((looked, matched) => {
    session.out.note(line`${looked} dead letters checked, ${matched} ${verb}`);
  });
  let sum = { matched: 0, changed: 0, scanned: 0 };
  let { cursor } = flags;
  do {
    const limit = Math.min(PURGE_SLICE, flags.limit - sum.matched);
    const before = sum;
    const slice = await dead.remove(queue, filterOf(flags), {
      limit,
      cursor,
      dryRun,
      all: true,
      onProgress: ({ scanned, matched }) => steps(before.scanned + scanned, before.matched + matched),
    });
    sum = {
      matched: before.matched + slice.matched,
      changed: before.changed + slice.changed,
      scanned: before.scanned + slice.scanned,
    };
    cursor = slice.cursor;
  } while (cursor !== undefined && sum.matched < flags.limit);
  return { ...sum, skipped: {}, dryRun, cursor };
}

// `dead replay <queue>`: dead letters → scheduled jobs with fresh budgets. A replayed dead letter is gone, so a run
// that was cut short may be repeated. A job that dies again is then the newest dead letter and is met first: `--cursor`
// goes on behind it.

interface ReplayFlags extends FilterFlags {
  readonly all?: boolean;
  readonly limit: number;
  readonly delay?: string;
  readonly over?: string;
  readonly dryRun?: boolean;
  readonly cursor?: string;
  readonly durability?: string;
}

interface Result {
  readonly deadLetter: string;
  readonly id: string | undefined;
  readonly status: Replayed['status'];
  readonly place?: Replayed['place'];
}

/** What one call of the library does. */
const REPLAY_SLICE = 1000;

export const deadReplay: Register = (parent, runner) => {
  const command = withFilter(
    parent
      .command('replay <queue> [dead-letter...]')
      .description('schedule the jobs of dead letters again; their failures and crashes count from 0')
      .option('--all', 'replay every dead letter that there is now, newest first'),
  )
    .option(
      '--limit <n>',
      'replay at most this many; go on with --cursor for the rest',
      wholeNumber(1, 1_000_000),
      1000,
    )
    .option('--delay <duration>', 'make them due this long from now instead of at once')
    .option('--over <duration>', 'spread their due times over this long, so that they do not all start at once')
    .option('--dry-run', 'only count what --all or the filters name')
    .option('--cursor <text>', 'with --all or filters: go on where an earlier run has ended')
    .option(...DURABILITY_FLAG)
    .action((queue: string, deadLetters: readonly string[], flags: ReplayFlags, command: Command) =>
      runner.run(command, (session) => runReplay(session, { queue, deadLetters, flags })),
    );
  withExamples(command, [
    'duestream dead replay emails 1763719000000-0',
    'duestream dead replay emails --all --limit 10000',
    'duestream dead replay emails --name welcome --newer-than 1d --over 10m',
  ]);
};

interface Asked {
  readonly queue: string;
  readonly deadLetters: readonly string[];
  readonly flags: ReplayFlags;
}

async function runReplay(session: Session, asked: Asked): Promise<Exit> {
  const { queue, deadLetters, flags } = asked;
  const many = flags.all === true || isNamed(flags);
  if (many === deadLetters.length > 0) {
    throw new DuestreamError(
      'usage',
      'name the dead letters in one way; allowed: their addresses, --all, or filters such as --id, --reason and --name',
    );
  }
  if (!many && (flags.dryRun === true || flags.over !== undefined || flags.cursor !== undefined)) {
    throw new DuestreamError('usage', '--dry-run, --over and --cursor go with --all or with filters');
  }
  const delayMs = flags.delay === undefined ? undefined : durationMs(flags.delay, '--delay');
  const level = readDurability(flags.durability);
  // Fixed before the first call, so that all of them have the same due time. Those by a filter have it in their cursor.
  const at = delayMs === undefined ? {} : { at: new Date(systemClock.wallMs() + delayMs) };
  return withDeadLetters(session, queue, (dead, partitions) =>
    many
      ? replayAll(session, dead, { ...asked, options: { delay: delayMs, ...level }, partitions })
      : replayNamed(session, dead, { ...asked, options: { ...at, ...level }, partitions }),
  );
}

interface Replaying extends Asked {
  readonly options: Pick<ReplayFilterOptions, 'at' | 'delay' | 'durability'>;
  readonly partitions: number;
}

async function replayNamed(
  session: Session,
  dead: DeadLetters,
  { queue, deadLetters, options }: Replaying,
): Promise<Exit> {
  const replies = await dead.replay(queue, deadLetters.map(parseAddress), options);
  const results = replies.map(
    ({ status, id, place }, at): Result => ({ deadLetter: deadLetters[at] ?? '', id, status, ...(place && { place }) }),
  );
  const refused = results.filter(({ status }) => status !== 'scheduled');
  session.out.answer(
    { queue, replayed: results.length - refused.length, failed: refused.length, deadLetters: results },
    () => results.map(lineOf),
  );
  return refused.length === 0 ? 0 : 1;
}

async function replayAll(
  session: Session,
  dead: DeadLetters,
  { queue, flags, options, partitions }: Replaying,
): Promise<Exit> {
  const { limit, over, dryRun = false } = flags;
  const steps = createSteps((looked, matched) => {
    session.out.note(line`${looked} dead letters checked, ${matched} ${dryRun ? 'match' : 'taken'}`);
  });
  const refused: Result[] = [];
  let [matched, replayed, looked] = [0, 0, 0];
  let { cursor } = flags;
  do {
    const most = Math.min(REPLAY_SLICE, limit - matched);
    const [seen, taken] = [looked, matched];
    const slice = await dead.replay(queue, filterOf(flags), {
      ...options,
      over,
      dryRun,
      cursor,
      limit: most,
      all: true,
      onProgress: (soFar) => steps(seen + soFar.scanned, taken + soFar.matched),
    });
    matched += slice.matched;
    replayed += slice.changed;
    looked += slice.scanned;
    cursor = slice.cursor;
    refused.push(...slice.refused.map((one) => ({ ...one, deadLetter: writtenAs(one, partitions) })));
  } while (cursor !== undefined && matched < limit);
  const failed = dryRun ? 0 : matched - replayed;
  const value = { queue, dryRun, matched, looked, replayed, failed, deadLetters: refused, cursor };
  session.out.answer(value, () => [
    ...refused.map(lineOf),
    dryRun
      ? line`${counted(matched, 'dead letter')} would be replayed, of ${looked} checked`
      : line`${replayed} replayed${failed > 0 ? `, ${failed} not` : ''}`,
    ...moreLines(cursor),
  ]);
  return failed === 0 ? 0 : 1;
}

const WHY: Readonly<Record<Result['status'], string>> = {
  scheduled: 'scheduled again',
  live: 'not replayed: a job of this id is live; cancel it, or wait until it ends',
  closed: 'not replayed: a tag of it is closed; "duestream tags ls <queue>" says which',
  empty: 'not replayed: the dead letter holds no record to run',
  gone: 'gone: it was replayed or removed, or never was in this queue',
  indeterminate: 'unsure: the reply was lost and nothing is known of its job now',
  changed: 'not replayed: it is another dead letter',
};

/** Where it stands in strict order. */
const PLACES = {
  first: '; its group waited for it',
  last: '; its group has gone on: it is a new job behind others',
} as const;

const lineOf = ({ deadLetter, id = '', status, place }: Result): string =>
  line`${deadLetter}  ${id}  ${WHY[status]}${place === undefined ? '' : PLACES[place]}`;
