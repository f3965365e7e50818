/**
 * Rows that a relay has claimed → Redis → how each ended. Rows of one claim have different keys, so their order does not matter:
 * jobs of a queue go together, and all queues at once.
 */
import type { Answers } from '../client/calls/batch.ts';
import type { Plan } from '../client/calls/plan.ts';
import type { TagsClosed } from '../client/client.ts';
import { DuestreamError, type ErrorCode, messageOf, oneLine } from '../kernel/errors.ts';
import { type ClaimedRow, type ClosedTags, callOf, type RowCall } from './row.ts';

/** What became of a row. */
export type RowEnd =
  | { readonly kind: 'done' }
  /** `isAway`: nothing can be said of the row, as Redis did not answer or takes nothing. */
  | { readonly kind: 'later'; readonly why: unknown; readonly isAway: boolean }
  | { readonly kind: 'refused'; readonly why: string };

/** A row, and what became of it. */
export interface Carried {
  readonly row: ClaimedRow;
  readonly end: RowEnd;
}

/** The calls of a client that rows stand for. */
export interface RelayCalls {
  readonly schedule: (queue: string, plans: readonly Plan[]) => Promise<Answers>;
  readonly cancel: (queue: string, ids: readonly string[]) => Promise<unknown>;
  readonly close: (queue: string, closed: ClosedTags) => Promise<Pick<TagsClosed, 'full'>>;
}

const DONE: RowEnd = { kind: 'done' };

/** It never rejects: what goes wrong is the end of a row. */
export async function carry(rows: readonly ClaimedRow[], calls: RelayCalls): Promise<readonly Carried[]> {
  const read = rows.map((row) => readRow(row));
  const refused = read.flatMap((one) => ('end' in one ? [one] : []));
  const good = read.flatMap((one) => ('call' in one ? [one] : []));
  const queues = new Map<string, Named[]>();
  for (const one of good) queues.set(one.call.queue, [...(queues.get(one.call.queue) ?? []), one]);
  const carried = await Promise.all([...queues].map(([queue, named]) => inQueue(queue, named, calls)));
  return [...refused, ...carried.flat()];
}

interface Named {
  readonly row: ClaimedRow;
  readonly call: RowCall;
}

function readRow(row: ClaimedRow): Named | Carried {
  try {
    return { row, call: callOf(row) };
  } catch (error) {
    return { row, end: endOf(error) };
  }
}

async function inQueue(queue: string, named: readonly Named[], calls: RelayCalls): Promise<readonly Carried[]> {
  const jobs = named.flatMap(({ row, call }) => (call.verb === 'schedule' ? [{ row, plan: call.plan }] : []));
  const cancels = named.flatMap(({ row, call }) => (call.verb === 'cancel' ? [{ row, id: call.id }] : []));
  const closes = named.flatMap(({ row, call }) => (call.verb === 'close' ? [{ row, call }] : []));
  const carried = await Promise.all([
    scheduled(queue, jobs, calls),
    ended(cancels, async () => {
      if (cancels.length > 0)
        await calls.cancel(
          queue,
          cancels.map(({ id }) => id),
        );
      return DONE;
    }),
    ...closes.map(({ row, call }) => ended([{ row }], async () => closedEnd(await calls.close(queue, call)))),
  ]);
  return carried.flat();
}

async function scheduled(
  queue: string,
  jobs: readonly { readonly row: ClaimedRow; readonly plan: Plan }[],
  calls: RelayCalls,
): Promise<readonly Carried[]> {
  if (jobs.length === 0) return [];
  try {
    const { errors } = await calls.schedule(
      queue,
      jobs.map(({ plan }) => plan),
    );
    return jobs.map(({ row }, at) => ({ row, end: errors.has(at) ? endOf(errors.get(at)) : DONE }));
  } catch (error) {
    return jobs.map(({ row }) => ({ row, end: endOf(error) }));
  }
}

/** One call for these rows. */
async function ended(
  rows: readonly { readonly row: ClaimedRow }[],
  call: () => Promise<RowEnd>,
): Promise<readonly Carried[]> {
  const end = await call().catch(endOf);
  return rows.map(({ row }) => ({ row, end }));
}

function closedEnd({ full = [] }: Pick<TagsClosed, 'full'>): RowEnd {
  if (full.length === 0) return DONE;
  const why = `${full.length} tags are not closed: as many as closedMax are`;
  return { kind: 'later', why: new DuestreamError('refused', why), isAway: false };
}

/** The row is right, and another time will do. */
const LATER: ReadonlySet<ErrorCode> = new Set(['queue-full', 'group-full', 'moved']);
/** Nothing was said of the row. */
const AWAY: ReadonlySet<ErrorCode> = new Set([
  'unavailable',
  'indeterminate',
  'out-of-memory',
  'refused',
  'wrong-schema',
  'stopped',
]);

function endOf(error: unknown): RowEnd {
  const code = error instanceof DuestreamError ? error.code : undefined;
  if (code !== undefined && AWAY.has(code)) return { kind: 'later', why: error, isAway: true };
  // What is no error of ours may be over next time; the lag tells if it is not.
  if (code === undefined || LATER.has(code)) return { kind: 'later', why: error, isAway: false };
  return { kind: 'refused', why: oneLine(messageOf(error)) };
}
