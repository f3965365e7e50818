/**
 * A job that dies after a crash or a timeout may have left half of its work outside. `bury` then schedules one more job
 * in the same step, its compensation job, whose handler (`onAbandoned`) can take that half back. The compensation job is a job like any other:
 * at least once, with attempts, backoff and a dead letter of its own.
 *
 * The dead job's record is carried over as text and parsed only when the compensation job is started and counted, because parsing
 * it may be what killed the workers.
 */

import {
  decodeHistory,
  decodeRecord,
  encodeAttempted,
  encodeRecord,
  idOf,
  type JobRecord,
  lengthened,
  memberOf,
} from './codec.ts';
import { ABANDONED, DEFAULT_NAME } from './job.ts';
import { derivedId } from './job-id.ts';
import type { Attempted, Outcome } from './outcome.ts';
import type { Untyped } from './queue.ts';

/** How the JSON of a compensation job begins, so that it is known without being parsed. */
const COMPENSATION = `{"n":"${ABANDONED}"`;

/** The `job.data` of an `onAbandoned` handler. */
export interface Abandoned<Data = Untyped> {
  /** The job that died. */
  readonly id: string;
  readonly name: string;
  readonly data: Data;
  /** The number of its last start: effects of this and older starts may be half done. */
  readonly token: string;
  /** Why it died, as in its dead letter. */
  readonly reason: string;
  readonly history: readonly Attempted[];
}

/** What is known of a job that dies: it may have been started just now, or long before. */
export interface Departed {
  readonly token: string;
  readonly crashes: number;
  readonly history: readonly Attempted[];
  readonly record: string;
}

type Compensation = NonNullable<Extract<Outcome, { kind: 'dead' }>['compensation']>;

/** The compensation job of a job that dies now, or undefined when nothing can have been left half done. */
export function compensationOf(
  death: { readonly member: string; readonly started: Departed; readonly reason: string; readonly error: Attempted },
  dueMs: number,
): Compensation | undefined {
  const { member, started, reason, error } = death;
  const history = lengthened(started.history, error, { stacks: false });
  // The history is the last five errors, the count of crashes is all of them.
  const halfDone = started.crashes > 0 || history.some(({ kind }) => kind === 'timeout');
  if (!halfDone || isCompensation(started.record)) return undefined;
  const { id } = idOf(member);
  const told = { id, token: started.token, reason, history: history.map(encodeAttempted) };
  const body = started.record.slice(started.record.indexOf('|') + 1);
  const data = `{"told":${JSON.stringify(told)},"body":${body}}`;
  return {
    member: memberOf(derivedId(id, `abandoned:${started.token}`)),
    record: encodeRecord(dueMs, `${COMPENSATION},"d":${data}}`),
  };
}

/** Compensations have none of their own: one that kills its workers would otherwise leave another one that does, for ever. */
const isCompensation = (record: string) => record.slice(record.indexOf('|') + 1).startsWith(COMPENSATION);

/** A record as its handler sees it: the data of a compensation job has its own shape. @throws Error when it cannot be read */
export function readRecord(text: string): JobRecord {
  const record = decodeRecord(text);
  return record.name === ABANDONED ? { ...record, ...abandonedOf(record.data) } : record;
}

function abandonedOf(data: unknown): { readonly data: Abandoned; readonly codec?: string } {
  const { told, body } = data as {
    told: { id: string; token: string; reason: string; history: readonly string[] };
    body: { n?: string; d?: unknown; c?: string };
  };
  const abandoned = {
    id: told.id,
    token: told.token,
    reason: told.reason,
    name: body.n ?? DEFAULT_NAME,
    data: body.d,
    history: decodeHistory(told.history),
  };
  return { data: abandoned, ...(body.c === undefined ? {} : { codec: body.c }) };
}
