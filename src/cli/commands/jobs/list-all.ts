/** `ls` of all queues, or of several: their jobs by due time, and behind them those that are over, the latest end first. */
import type { JobView } from '../../../client/client.ts';
import { isOverState } from '../../../client/query/filter.ts';
import { heldText, JOB_STATES, type JobState } from '../../../job/state.ts';
import { systemClock } from '../../../kernel/clock.ts';
import type { UnreadQueue } from '../../../redis/read/each-queue.ts';
import { checkQueue, type Exit, type Session, withClient } from '../../session.ts';
import { second } from '../../terminal/instants.ts';
import { line, table, unreadLines } from '../../terminal/output.ts';
import { type FilterFlags, readWalk, takeFilterFlags } from '../find/filter-flags.ts';

interface Flags extends Omit<FilterFlags, 'state'> {
  readonly state?: JobState | 'over';
  readonly limit: number;
  readonly cursor?: string;
  readonly id?: string;
  readonly ranFrom?: string;
  readonly ranTo?: string;
}

/** @param queues none: all */
export async function listAll(session: Session, queues: readonly string[], flags: Flags): Promise<Exit> {
  const { state: given, limit, cursor: from, id, ranFrom, ranTo } = flags;
  const { state: _, ...filterFlags } = takeFilterFlags(flags).filter;
  const { filter, cursor, told, instant } = readWalk(filterFlags, { cursor: from, instants: [ranFrom, ranTo] });
  const isRan = ranFrom !== undefined || ranTo !== undefined;
  const ran = { from: instant(ranFrom, 'ran-from'), to: instant(ranTo, 'ran-to') };
  for (const queue of queues) await checkQueue(session, queue);
  const found = await withClient(session, (client) =>
    client.find({
      ...filter,
      state: given === 'over' ? JOB_STATES.filter(isOverState) : given,
      id,
      ran: isRan ? ran : undefined,
      queues: queues.length === 0 ? undefined : queues,
      limit,
      cursor,
    }),
  );
  const { unread, scanned } = found;
  const page = { jobs: found.jobs.map(rowOfFound), scanned, cursor: told(found.cursor) };
  session.out.answer({ ...page, unread }, () => [...linesOf(session, page), ...unreadLines(unread)]);
  return unread.every(isForgetful) ? 0 : 1;
}

/** It has answered: what is over there was asked for, and it keeps nothing of that. */
const isForgetful = ({ why }: UnreadQueue): boolean => /keeps no history/.test(why);

/** What `--json` has of a job. */
export interface Row
  extends Pick<JobView, 'id' | 'bare' | 'partition' | 'state' | 'name' | 'dueMs' | 'startedMs' | 'attempts' | 'owner'> {
  readonly tags: readonly string[];
}

export function rowOf({
  id,
  bare,
  partition,
  state,
  name,
  dueMs,
  startedMs,
  attempts,
  owner,
  tags = [],
}: JobView): Row {
  return { id, bare, partition, state, name, dueMs, startedMs, attempts, owner, tags };
}

/** Of a job that is over, the due time that was asked for. */
function rowOfFound(job: JobView) {
  const { queue, overMs, askedDueMs, dueMs } = job;
  return { queue, ...rowOf(job), dueMs: overMs === undefined ? dueMs : askedDueMs, overMs };
}

interface Page {
  readonly jobs: readonly ReturnType<typeof rowOfFound>[];
  readonly scanned: number;
  readonly cursor: string | undefined;
}

function linesOf(session: Session, { jobs, scanned, cursor }: Page): readonly string[] {
  const more = cursor === undefined ? [] : ['there may be more; go on with', `--cursor ${cursor}`];
  if (jobs.length === 0) return [line`no such jobs among ${scanned} looked at`, ...more];
  const nowMs = systemClock.wallMs();
  const rows = jobs.map((job) => {
    const { queue, id, bare, state, name, dueMs, overMs } = job;
    const atMs = overMs ?? dueMs;
    const at = atMs === undefined ? undefined : second(atMs, nowMs);
    return [queue, id + (bare ? ' (bare)' : ''), state, name, heldText(job, nowMs) ?? at];
  });
  const isOver = jobs.some(({ overMs }) => overMs !== undefined);
  return [
    ...table(session.out.paint, ['queue', 'id', 'state', 'name', isOver ? 'due, or over' : 'due'], rows),
    ...more,
  ];
}
