/**
 * How many bytes jobs take in Redis, counted as Redis allocates them: each text, node and table entry is an allocation of
 * its own, rounded up to a class of jemalloc. So a record of 216 bytes takes 224, and one of 221 takes 256.
 *
 * These are Redis 7 and a jemalloc with classes of 16 bytes, as Linux distributions build it. Redis' own build has classes
 * of 24, 40 and 56 bytes as well, and Redis 8 packs more into one allocation: both take a few percent less.
 */
import { memberOf } from '../../job/codec.ts';

export interface JobShape {
  readonly idChars: number;
  /** Of the data as JSON. */
  readonly payloadBytes: number;
}

/** Characters around the data in a record: version, due time in base 36, bar, `{"d":` and `}`. */
const RECORD_CHARS = 16;
/** `.d` and the due time, digest, token, attempts, no dead letter, with spaces. */
const TOMBSTONE_CHARS = 48;
/** Token, counters, entry and owner of a job that runs. */
const RUN_CHARS = 69;
/** A due time, ids and lengths in a packed entry of a stream, beside the member. */
const READY_BYTES = 30;
/** In the group and in its consumer, while a job is delivered. */
const PENDING_ENTRY_BYTES = 105;
/** Reason, token, counters and lengths of a dead letter, beside member, record and history. */
const DEAD_BYTES = 90;
/** One line of the history: a short message with its attempt and time. */
const FAILURE_BYTES = 80;
const FAILURES_KEPT = 5;

const POINTER = 8;
const TABLE_ENTRY = 24;
const NODE = 24;
const LEVEL = 16;
/** Each node of a skip list has another level with this chance. */
const LEVEL_CHANCE = 0.25;
const LEVELS_MAX = 32;

/** What an allocation of so many bytes takes. */
export function allocated(bytes: number): number {
  if (bytes <= 8) return 8;
  if (bytes <= 128) return Math.ceil(bytes / 16) * 16;
  const step = 2 ** (Math.ceil(Math.log2(bytes)) - 3);
  return Math.ceil(bytes / step) * step;
}

/** A text as Redis keeps it: a header that grows with its length, and a zero at its end. */
export function textBytes(chars: number): number {
  const header = chars < 32 ? 1 : chars < 256 ? 3 : chars < 65_536 ? 5 : 9;
  return allocated(header + chars + 1);
}

const memberChars = ({ idChars }: JobShape): number => memberOf('').length + idChars;

/** One entry of a hash table that holds so many; the table has the next power of two of places. */
function tableBytes(count: number): number {
  const places = 2 ** Math.ceil(Math.log2(Math.max(4, count)));
  return allocated(TABLE_ENTRY) + (POINTER * places) / Math.max(1, count);
}

/** One field of a hash, with its value. */
function fieldBytes(shape: JobShape, { chars, count }: { readonly chars: number; readonly count: number }): number {
  return tableBytes(count) + textBytes(memberChars(shape)) + textBytes(chars);
}

/** One member of a sorted set: a node of the skip list, and an entry of a table for the same text. */
function scoreBytes(shape: JobShape, count: number): number {
  let node = 0;
  for (let level = 1; level <= LEVELS_MAX; level += 1) {
    node += (1 - LEVEL_CHANCE) * LEVEL_CHANCE ** (level - 1) * allocated(NODE + LEVEL * level);
  }
  return node + tableBytes(count) + textBytes(memberChars(shape));
}

export const recordChars = ({ payloadBytes }: JobShape): number => RECORD_CHARS + payloadBytes;

/** A job that waits, when so many wait in its partition: member and due in `scheduled`, record in `jobs`. */
export function pendingBytes(shape: JobShape, count: number): { readonly zset: number; readonly hash: number } {
  return { zset: scoreBytes(shape, count), hash: fieldBytes(shape, { chars: recordChars(shape), count }) };
}

/** A job that is ready: its record, and a thin entry of the stream. */
export function readyBytes(shape: JobShape, count: number): number {
  return fieldBytes(shape, { chars: recordChars(shape), count }) + READY_BYTES + memberChars(shape);
}

/** A job that runs: ready and delivered, with a field in `runs`. */
export function runningBytes(shape: JobShape, count: number): number {
  return readyBytes(shape, count) + PENDING_ENTRY_BYTES + fieldBytes(shape, { chars: RUN_CHARS, count });
}

/** A job that is over and remembered: a tombstone in `jobs`, and a member of `done`. */
export function endBytes(shape: JobShape, count: number): number {
  return scoreBytes(shape, count) + fieldBytes(shape, { chars: TOMBSTONE_CHARS, count });
}

/** Of the stack of the last failure, a few frames of a handler; at most 2,000. */
const STACK_BYTES = 200;

/** A dead letter, by default with a full history. */
export function deadBytes(shape: JobShape, failures = FAILURES_KEPT): number {
  return DEAD_BYTES + memberChars(shape) + recordChars(shape) + failures * FAILURE_BYTES + STACK_BYTES;
}
