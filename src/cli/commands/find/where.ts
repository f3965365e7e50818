/**
 * Cancel, reschedule, edit and run-now of every job that a filter means: first a dry run that says how many and which, or
 * a confirmation. While it works it tells how far it is, with the cursor to go on with.
 */

import type { Command } from 'commander';
import type { CancelledWhere, ChangedWhere, Client, JobFilter, WhereOptions } from '../../../client/client.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import { counted } from '../../../kernel/humanize.ts';
import { type Exit, wholeNumber } from '../../register.ts';
import { partitionsOfQueue, type Session, withClient, withRedis } from '../../session.ts';
import { line } from '../../terminal/text.ts';
import { type FilterFlags, isFilterGiven, readWalk } from './filter-flags.ts';

export interface WhereFlags {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly limit?: number;
  readonly cursor?: string;
}

const PROGRESS_EVERY = 5000;
const IDS_SHOWN = 20;
/** What needs nobody's attention: the job is as it should be. */
const FINE = ['already', 'already-due', 'kept', 'over'];

export function withWhereFlags(command: Command): Command {
  return command
    .option('--dry-run', 'with a filter: change nothing, say how many jobs and which')
    .option('--yes', 'with a filter: really change them; give either this or --dry-run')
    .option('--limit <n>', 'with a filter: end after this many jobs', wholeNumber(1, 1_000_000_000))
    .option('--cursor <text>', 'with a filter: go on where an earlier run has ended');
}

interface Asked {
  readonly queue: string;
  readonly ids: readonly string[];
  readonly filter: FilterFlags;
  readonly flags: WhereFlags;
}

/** Whether the jobs are named by a filter. @throws DuestreamError `usage` for both ids and a filter, or neither */
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

/** What a command calls, and how it says what it did. */
export interface WhereVerb {
  readonly prefix?: '' | 'where-';
  /** `cancelled` */
  readonly done: string;
  readonly call: (producer: Client, filter: JobFilter, options: WhereOptions) => Promise<ChangedWhere | CancelledWhere>;
}

/** @throws DuestreamError `usage` unless there is either a dry run or a confirmation */
export async function runWhere(session: Session, asked: Asked, verb: WhereVerb): Promise<Exit> {
  const { queue, flags } = asked;
  const { dryRun = false, yes = false, limit } = flags;
  if (dryRun === yes) {
    throw new DuestreamError(
      'usage',
      'this may change many jobs: see how many and which with --dry-run, or confirm with --yes',
    );
  }
  const { prefix } = verb;
  const { filter, cursor, told: tell } = readWalk(asked.filter, { ...(prefix && { prefix }), cursor: flags.cursor });
  await withRedis(session, (redis) => partitionsOfQueue(session, redis, queue));
  let told = 0;
  const result = await withClient(session, (producer) =>
    verb.call(producer, filter, {
      dryRun,
      limit,
      cursor,
      onProgress(progress) {
        if (progress.matched < told + PROGRESS_EVERY) return;
        told = progress.matched;
        const more = progress.cursor === undefined ? '' : `; to go on from here: --cursor ${tell(progress.cursor)}`;
        session.out.note(line`${progress.matched} jobs matched, ${progress.changed} ${verb.done}` + more);
      },
    }),
  );
  const shown = { ...result, cursor: tell(result.cursor) };
  session.out.answer({ queue, ...shown }, () => sentences(shown, verb.done));
  return isFine(result) ? 0 : 1;
}

const isFine = ({ skipped }: ChangedWhere): boolean => Object.keys(skipped).every((reason) => FINE.includes(reason));

function sentences(result: ChangedWhere | CancelledWhere, done: string): readonly string[] {
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
