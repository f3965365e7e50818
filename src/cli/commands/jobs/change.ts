/**
 * Cancel, reschedule, edit and run-now of jobs: by their ids, with a line for each; or of every job that a filter means, with
 * a dry run first that says how many and which, or a confirmation. While it works through a filter the command tells how far
 * it is, with the cursor to go on with.
 */

import type { Command } from 'commander';
import { countOf } from '../../../access/audit.ts';
import type { CancelledJobs, ChangedJobs, Client, FilterOptions, JobFilter } from '../../../client/client.ts';
import type { OverState } from '../../../job/state.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import { counted } from '../../../kernel/humanize.ts';
import { type Exit, wholeNumber } from '../../register.ts';
import { partitionsOfQueue, type Session, withClient, withRedis } from '../../session.ts';
import { line } from '../../terminal/text.ts';
import { type FilterFlags, isFilterGiven, readWalk } from '../find/filter-flags.ts';

export interface ChangeFlags {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly limit?: number;
  readonly cursor?: string;
}

const PROGRESS_EVERY = 5000;
const IDS_SHOWN = 20;
/** What needs nobody's attention: the job is as it should be. */
const FINE = ['already', 'already-due', 'kept', 'over'];

export function withChangeFlags(command: Command): Command {
  return command
    .option('--dry-run', 'with a filter: change nothing, say how many jobs and which')
    .option('--yes', 'with a filter: really change them; give either this or --dry-run')
    .option('--limit <n>', 'with a filter: end after this many jobs', wholeNumber(1, 1_000_000_000))
    .option('--cursor <text>', 'with a filter: go on where an earlier run has ended');
}

/** Which jobs a command means, and how. */
export interface Asked {
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
export interface Change<Result extends Became> {
  /** In the audit. */
  readonly verb: `jobs.${'cancel' | 'reschedule' | 'edit' | 'run'}`;
  readonly prefix?: '' | 'where-';
  /** `cancelled` */
  readonly done: string;
  readonly byIds: (client: Client, ids: readonly string[]) => Promise<readonly Result[]>;
  readonly byFilter: (
    client: Client,
    filter: JobFilter,
    options: FilterOptions,
  ) => Promise<ChangedJobs | CancelledJobs>;
  /** The statuses of jobs that are different now. */
  readonly changed: readonly Result['status'][];
  /** Whether nobody needs to look at this job. */
  readonly isFine: (result: Result) => boolean;
  readonly sentence: (result: Result) => string;
}

/** @throws DuestreamError `usage` for both ids and a filter, or neither; for a filter without a dry run or a confirmation */
export function runChange<Result extends Became>(
  session: Session,
  asked: Asked,
  change: Change<Result>,
): Promise<Exit> {
  return isByFilter(asked) ? runByFilter(session, asked, change) : runByIds(session, asked, change);
}

/** @throws DuestreamError `usage` for both ids and a filter, or neither */
export function isByFilter({ ids, filter, flags }: Asked): boolean {
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
  { verb, byIds, changed, isFine, sentence }: Change<Result>,
): Promise<Exit> {
  await withRedis(session, (redis) => partitionsOfQueue(session, redis, queue));
  const replies = await withClient(session, (client) => byIds(client, ids));
  const target = ids.length === 1 ? ids[0] : undefined;
  session.changes.push({ verb, queue, count: countOf(replies, ...changed), target });
  session.out.answer({ queue, jobs: replies }, () => replies.map(sentence));
  return replies.every(isFine) ? 0 : 1;
}

async function runByFilter<Result extends Became>(
  session: Session,
  asked: Asked,
  { verb, prefix, done, byFilter }: Change<Result>,
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
  await withRedis(session, (redis) => partitionsOfQueue(session, redis, queue));
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
  const count = result.changed + ('requested' in result ? result.requested : 0);
  session.changes.push({ verb, queue, count });
  const shown = { ...result, cursor: tell(result.cursor) };
  session.out.answer({ queue, ...shown }, () => sentences(shown, done));
  return isFine(result) ? 0 : 1;
}

const isFine = ({ skipped }: ChangedJobs): boolean => Object.keys(skipped).every((reason) => FINE.includes(reason));

function sentences(result: ChangedJobs | CancelledJobs, done: string): readonly string[] {
  const { dryRun, matched, changed, skipped, ids, cursor, scanned } = result;
  const requested = 'requested' in result && result.requested > 0 ? result.requested : undefined;
  const rest = matched - Math.min(ids.length, IDS_SHOWN);
  const more = cursor === undefined ? [] : ['there may be more; go on with', `--cursor ${cursor}`];
  if (dryRun) {
    return [
      ...ids.slice(0, IDS_SHOWN).map((id) => line`${id}`),
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

const SKIPPED: Readonly<Record<string, string>> = {
  changed: 'changed by somebody else meanwhile',
  running: 'running',
  over: 'over',
  unknown: 'gone',
  already: 'so already',
  'already-due': 'due already, waiting for a worker',
  kept: 'kept by --only',
  unreadable: 'its record or its id cannot be read',
  refused: 'the change does not fit this job',
  indeterminate: 'unsure, the reply was lost; "duestream show" says more',
};

/** Why a job was not changed. */
export function unchanged({ id, status, over }: Became): string {
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
