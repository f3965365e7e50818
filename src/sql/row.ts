/**
 * A row of the outbox ⇄ the call that it stands for. All that decides what the call is stands in the row, fixed: the id, the
 * due instant, the bytes of the record, the end of a closed tag. A relay that carries it out twice makes the same call twice.
 */
import { needsOf } from '../client/calls/needs.ts';
import { type Plan, UPDATABLE } from '../client/calls/plan.ts';
import { parseAnyId } from '../client/calls/settings.ts';
import { decodeRecord, type JobRecord, memberOf } from '../job/codec.ts';
import { parseJobId, parseName } from '../job/job.ts';
import { groupOf, parseTag } from '../job/labels.ts';
import { show } from '../kernel/duration.ts';
import { DuestreamError, messageOf } from '../kernel/errors.ts';
import { numberIn, textIn } from './database.ts';

/** What is written: the rest of a row is the database's and the relay's. */
export interface NewRow {
  readonly verb: 'schedule' | 'cancel' | 'close';
  readonly queue: string;
  /** What has an order: the id of a job, or `#` and the first tag. */
  readonly key: string;
  readonly body: string;
}

/** A row as it is claimed. */
export interface ClaimedRow {
  readonly seq: number;
  readonly verb: string;
  readonly queue: string;
  readonly key: string;
  readonly body: string;
  /** How often it was claimed, this time included. */
  readonly attempts: number;
}

/** The call of a row. */
export type RowCall =
  | { readonly verb: 'schedule'; readonly queue: string; readonly plan: Plan }
  | { readonly verb: 'cancel'; readonly queue: string; readonly id: string }
  | ({ readonly verb: 'close'; readonly queue: string } & ClosedTags);

export interface ClosedTags {
  readonly tags: readonly string[];
  readonly untilMs: number;
  readonly reason: string;
  readonly by: string;
}

export function scheduleRow(queue: string, { id, record, mode, strict, names }: Plan): NewRow {
  const body = { record, mode: strict ? 'error' : mode, names };
  return { verb: 'schedule', queue, key: id, body: JSON.stringify(body) };
}

export const cancelRow = (queue: string, id: string): NewRow => ({ verb: 'cancel', queue, key: id, body: '{}' });

export const closeRow = (queue: string, closed: ClosedTags): NewRow => ({
  verb: 'close',
  queue,
  key: `#${closed.tags[0] ?? ''}`,
  body: JSON.stringify(closed),
});

export const claimedRow = (row: unknown): ClaimedRow => ({
  seq: numberIn(row, 'seq'),
  verb: textIn(row, 'verb') ?? '',
  queue: textIn(row, 'queue') ?? '',
  key: textIn(row, 'key') ?? '',
  body: textIn(row, 'body') ?? '',
  attempts: numberIn(row, 'attempts'),
});

/** Anybody may have written into the table. @throws DuestreamError `bad-input` that says what is wrong with the row */
export function callOf(row: ClaimedRow): RowCall {
  const queue = parseName(row.queue, 'queue');
  const body = bodyOf(row.body);
  switch (row.verb) {
    case 'schedule':
      return { verb: 'schedule', queue, plan: planOf(row, body) };
    case 'cancel':
      return { verb: 'cancel', queue, id: parseAnyId(row.key, false) };
    case 'close':
      return { verb: 'close', queue, ...closedOf(body) };
    default:
      throw new DuestreamError('bad-input', `verb is ${show(row.verb)}; allowed: schedule, cancel, close`);
  }
}

type Body = Readonly<Record<string, unknown>>;

function bodyOf(text: string): Body {
  const body = parsed(text);
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return { ...body };
  throw new DuestreamError('bad-input', `body is ${show(text)}; allowed: an object of JSON`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const MODES = ['keep', 'update', 'replace', 'error', 'debounce'] as const;

function planOf({ key, attempts }: ClaimedRow, { record, mode: given, names }: Body): Plan {
  const id = parseJobId(key);
  const member = memberOf(id);
  const mode = MODES.find((one) => one === given);
  if (typeof record !== 'string') throw notIn('record', record, 'the record of a job');
  if (mode === undefined) throw notIn('mode', given, MODES.join(', '));
  const { askedDueMs: dueMs, ...options } = contentOf(record);
  return {
    id,
    member,
    record,
    dueMs,
    bytes: Buffer.byteLength(record) + member.length,
    mode: mode === 'error' ? 'keep' : mode,
    strict: mode === 'error',
    ...(mode === 'update' && { names: namesIn(names) }),
    needs: needsOf(options, groupOf(id)),
    ...(attempts > 1 && { isRepeated: true }),
  };
}

/** What of the job an update changes. A name of a later version is refused: the job would not be as the row says. */
function namesIn(names: unknown): readonly string[] {
  if (Array.isArray(names) && names.every((name) => UPDATABLE.includes(name))) return names;
  throw notIn('names', names, `a list of ${UPDATABLE.join(', ')}`);
}

function contentOf(record: string): JobRecord {
  try {
    return decodeRecord(record);
  } catch (error) {
    throw new DuestreamError('bad-input', `the record in the body cannot be read: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

function closedOf({ tags, untilMs, reason, by }: Body): ClosedTags {
  if (!Array.isArray(tags) || tags.length === 0) throw notIn('tags', tags, 'a list of tags');
  if (typeof untilMs !== 'number' || !Number.isFinite(untilMs)) throw notIn('untilMs', untilMs, 'epoch ms');
  return {
    tags: tags.map((tag) => parseTag(tag)),
    untilMs,
    reason: typeof reason === 'string' ? reason : '',
    by: typeof by === 'string' ? by : '',
  };
}

const notIn = (name: string, given: unknown, allowed: string): DuestreamError =>
  new DuestreamError('bad-input', `${name} in the body is ${show(given)}; allowed: ${allowed}`);
