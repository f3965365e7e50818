/**
 * A start that Redis has made for a worker over HTTP → the job as that worker gets it, or its end where nobody can run it. What
 * decides is what decides for workers of Node: `job/judge.ts`. The handler is elsewhere, so any name has one, and the data
 * are handed on as they are stored.
 */
import { encodeAttempted, idOf } from '../job/codec.ts';
import { type Life, type Rules, type StartVerdict, startVerdict } from '../job/judge.ts';
import { groupOf, type JobHeaders, type Priority } from '../job/labels.ts';
import { encodeNote } from '../job/past.ts';
import type { Queue } from '../job/queue.ts';
import { endMark } from '../job/record-header.ts';
import { keepsHistory, type PartitionRef } from '../redis/keys.ts';
import type { Delivery, Started } from '../redis/scripts/replies.ts';
import { writeRun } from './run-handle.ts';

/** A job that a worker over HTTP is handed. */
export interface ClaimedJob {
  /** Names this start in every call about it. Opaque: at most 512 bytes, and 4096 where a foreign producer wrote a longer member. */
  readonly run: string;
  readonly id: string;
  readonly name: string;
  /** With a codec: as it is stored. */
  readonly data: unknown;
  /** The codec that encoded the data. */
  readonly codec?: string | undefined;
  readonly group?: string | undefined;
  readonly priority?: Priority | undefined;
  readonly headers?: JobHeaders | undefined;
  /** Which start of the job this is, from 1. */
  readonly attempt: number;
  readonly failures: number;
  readonly crashes: number;
  /** It only grows: a store that is given it can refuse effects of an older start. */
  readonly token: string;
  /** The due time of this start, in epoch ms by the clock of Redis. */
  readonly dueMs: number;
  /** For how long the handler may run. */
  readonly timeoutMs: number;
  /** Workers died under it: it is handed out alone. */
  readonly suspect?: true | undefined;
  /** Of a queue that delivers at most once: `begin` comes before the handler. */
  readonly begin?: true | undefined;
}

/** One start: the entry, and what Redis said of it. */
export type Start = Delivery & Started;

/** There is a handler for any name: it is elsewhere. */
const HANDLER = true;

/** The rules of a queue whose handlers are elsewhere. */
export const remoteRules = (queue: Queue): Rules<true> => ({
  queue,
  handlerOf: () => HANDLER,
  compensations: false,
  areSealed: true,
});

export const rulesIn = (rules: Rules<true>, { redact }: Pick<PartitionRef, 'redact'>): Rules<true> =>
  redact ? { ...rules, redact } : rules;

export const lifeOf = (member: string, started: Life['started']): Life => ({ member, started });

export function judged(ref: PartitionRef, start: Start, { rules, nowMs }: { rules: Rules<true>; nowMs: number }) {
  return startVerdict(lifeOf(start.member, start), rulesIn(rules, ref), nowMs);
}

type Run = Extract<StartVerdict<true>, { kind: 'run' }>;
type Refused = Extract<StartVerdict<true>, { kind: 'refused' }>;

/** So far ahead of the clock of Redis, as it was measured, a token may be. */
const CLOCK_MS = 1000;

export function jobOf(
  ref: PartitionRef,
  start: Start,
  { verdict, nowMs, windowMs }: { readonly verdict: Run; readonly nowMs: number; readonly windowMs: number },
): ClaimedJob {
  const { record, timeoutMs, completesFirst } = verdict;
  const { entry, member, token, attempts, failures, crashes, dueMs } = start;
  const { id } = idOf(member);
  const { partition, layoutGeneration: generation } = ref;
  const claim = { entry, member, token };
  // The same at each answer to the same claim. A token that is far ahead was made by a clock that went back.
  const mintedMs = Math.floor(Number(token) / 1000);
  const startedMs = mintedMs > nowMs + CLOCK_MS ? nowMs : mintedMs;
  // Of a queue that keeps a history its end reads the record in any case.
  const mark = keepsHistory(ref) ? '' : endMark(start.record, windowMs);
  const about = { generation, partition, startedMs, timeoutMs, attempt: attempts, name: record.name, mark };
  return {
    run: writeRun({ ...claim, ...about }),
    id,
    name: record.name,
    data: record.data ?? null,
    codec: record.codec,
    group: groupOf(member),
    priority: record.priority,
    headers: record.headers,
    attempt: attempts,
    failures,
    crashes,
    token,
    dueMs,
    timeoutMs,
    begin: completesFirst || undefined,
  };
}

/** What Redis is told of a start that nobody can run. */
export function burialOf(ref: PartitionRef, start: Start, { name, outcome }: Refused) {
  const { history } = ref;
  const note = { name, record: start.record, startedMs: undefined, tookMs: undefined };
  return {
    reason: outcome.reason,
    error: encodeAttempted(outcome.error),
    ...(history?.isOn && { note: encodeNote(note, undefined, history) }),
  };
}
