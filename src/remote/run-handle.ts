/**
 * How a start of a job is named on the line between a daemon and a worker over HTTP. A daemon keeps nothing of what workers
 * run, so the handle says all that a call about the run needs: where the job is, which start it is, and what its end needs. It
 * is not signed: Redis compares entry and token, and both are of whoever was handed them.
 */
import type { EntryId, Token } from '../job/job.ts';
import type { Claim } from '../redis/scripts/replies.ts';

export interface RunHandle extends Claim {
  /** Of the layout of the queue. */
  readonly generation: number;
  readonly partition: number;
  /** When it was handed out, in epoch ms by the clock of Redis. */
  readonly startedMs: number;
  /** For how long the handler may run. */
  readonly timeoutMs: number;
  readonly attempt: number;
  readonly name: string;
  /** What its tombstone keeps of the record; '': Redis reads the record. */
  readonly mark: string;
}

/** So long a handle is at most, as documented. */
const HANDLE_CHARS = 512;
/** A member that a foreign producer wrote may be longer than any of ours. */
const READ_CHARS = 4096;

export function writeRun(run: RunHandle): string {
  const whole = textOf(run);
  return whole.length <= HANDLE_CHARS ? whole : textOf({ ...run, mark: '' });
}

function textOf({ generation, partition, entry, member, token, startedMs, timeoutMs, attempt, name, mark }: RunHandle) {
  const fields = [generation, partition, entry, member, token, startedMs, timeoutMs, attempt, name, mark];
  return Buffer.from(JSON.stringify(fields)).toString('base64url');
}

/** Undefined for a text that is none. */
export function readRun(text: string): RunHandle | undefined {
  if (text.length > READ_CHARS) return undefined;
  const fields = fieldsOf(text);
  if (!fields || fields.length !== FIELDS.length || !fields.every((field, at) => FIELDS[at]?.(field))) return undefined;
  const [generation, partition, entry, member, token, startedMs, timeoutMs, attempt, name, mark] = fields;
  return {
    generation: Number(generation),
    partition: Number(partition),
    entry: String(entry) as EntryId,
    member: String(member),
    token: String(token) as Token,
    startedMs: Number(startedMs),
    timeoutMs: Number(timeoutMs),
    attempt: Number(attempt),
    name: String(name),
    mark: String(mark),
  };
}

function fieldsOf(text: string): readonly unknown[] | undefined {
  try {
    const fields: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    return Array.isArray(fields) ? fields : undefined;
  } catch {
    return undefined;
  }
}

const isCount = (field: unknown): boolean => Number.isSafeInteger(field) && Number(field) >= 0;
const isText = (field: unknown): boolean => typeof field === 'string';
const isEntry = (field: unknown): boolean => typeof field === 'string' && /^\d{1,20}-\d{1,20}$/.test(field);
const isToken = (field: unknown): boolean => typeof field === 'string' && /^\d{1,20}$/.test(field);

const FIELDS = [isCount, isCount, isEntry, isText, isToken, isCount, isCount, isCount, isText, isText];
