/**
 * What the scripts of `jobs.ts` answer, as closed unions, and how the raw replies become them. A refusal is a member of
 * the union that says why; callers switch over `kind` and the compiler sees that none is forgotten.
 */
import { decodeHistory } from '../../job/codec.ts';
import type { EntryId, Token } from '../../job/job.ts';
import type { Attempted } from '../../job/outcome.ts';
import { type OverState, outcomeLetters } from '../../job/state.ts';
import { list, type Reply, score, text } from './scripts.ts';

export interface ScheduleItem {
  readonly member: string;
  readonly record: string;
  readonly dueMs: number;
}

export type ScheduleReply =
  | { readonly kind: BareReply }
  /** The call had read its share: nothing was looked at or written for this job. */
  | { readonly kind: 'later' }
  | Held
  /** `dueMs`: of a job in strict order that had no time; its partition has given it one. */
  | { readonly kind: 'ok' | 'replaced'; readonly dueMs?: number }
  | { readonly kind: 'already'; readonly over: OverState | undefined; readonly dueMs?: number }
  | { readonly kind: 'exists'; readonly dueMs: number }
  /** Of a debounce call: the job that waits has its data; `merged` is due anew, `kept` as before. */
  | { readonly kind: 'merged' | 'kept'; readonly dueMs: number }
  /** Of a debounce call: one with this order, or a higher one, has come. */
  | { readonly kind: 'overtaken'; readonly order: number }
  | { readonly kind: 'bad-due'; readonly nowMs: number }
  /** A limit of the queue, as its partition has its share, or of the group: nothing was changed. */
  | { readonly kind: 'full'; readonly what: FullOf; readonly limit: number; readonly there: number }
  /** A tag of it is closed: nothing was changed. */
  | Closed;

/** A word and nothing else. */
type BareReply =
  | ('running' | 'too-large' | 'bad-member' | 'bad-record')
  /** Its group has a limit of pending jobs, and its record does not say that it counts: see `countedRecord`. */
  | 'uncounted'
  /** It would be a member of a set that is not there, or is over. */
  | 'no-set'
  /** Of a debounce call: the job runs, and has another life when that ends. */
  | 'behind';

/** A worker holds the job until it is due, and was told to let it go: the call is to be made again. */
export interface Held {
  readonly kind: 'held';
}

type FullOf = 'pending' | 'bytes' | 'group';

/** The tag that is closed for the longest, of those that a job has. */
export interface Closed {
  readonly kind: 'closed';
  readonly tag: string;
  readonly untilMs: number;
}

/** What became of one tag. */
export type CloseTagReply =
  /** `longer`: it was closed, for less long · `full`: refused, too many are closed · `open`: it was not closed. */
  | { readonly kind: 'closed' | 'longer' | 'full' | 'opened' | 'open' }
  /** It is closed for as long, or longer. */
  | { readonly kind: 'already'; readonly untilMs: number };

/** The partition has another generation: the queue was resized, look it up again. */
export interface Moved {
  readonly kind: 'moved';
  readonly layoutGeneration: number;
}

/** One entry a consumer was given: what the stream says of it. */
export interface Delivery {
  readonly entry: EntryId;
  readonly member: string;
  readonly dueMs: number;
}

export interface Started {
  /** `again`: this consumer had started it before, in a reply that was lost. */
  readonly kind: 'run' | 'again';
  readonly token: Token;
  readonly attempts: number;
  readonly failures: number;
  readonly crashes: number;
  readonly generation: number;
  readonly history: readonly Attempted[];
  readonly record: string;
  /** So long before it is due Redis has started it. Undefined: it was due. */
  readonly holdMs?: number;
}

export type StartReply =
  | Started
  /** A worker died under it, and the caller runs other jobs: nothing was written. The token is that of its last start. */
  | { readonly kind: 'suspect'; readonly token: Token }
  | { readonly kind: 'later' | 'late' | 'dropped' | 'cancelled' | 'released' | 'parked' | 'deadLetter' | 'lost' };

/** What became of one entry. */
export type Taken = Delivery & StartReply;

/** The reply of `serve`. */
export interface Served {
  /** Of each job that was over; undefined when all are `ok`. */
  readonly completed: readonly SettleReply[] | undefined;
  /** Of the entries that were given, and of new ones. */
  readonly taken: readonly Taken[];
  /** How many new entries were delivered. */
  readonly delivered: number;
  /** The error with which Redis refused to deliver. */
  readonly refusal: string | undefined;
  /** How many are in line, where the queue is gated. */
  readonly waiting?: number;
  /** What time it was, where jobs may be started before they are due. */
  readonly nowMs?: number;
}

/** The reply of `hand`. */
export interface Handed {
  /** `again`: what is taken is what this very claim was handed before. `superseded`: a later claim of the lane was made. */
  readonly word: 'new' | 'again' | 'superseded';
  /** Of each job that was over; undefined when all are `ok`. */
  readonly completed: readonly SettleReply[] | undefined;
  readonly taken: readonly Taken[];
  /** How many entries were delivered, or were handed before. */
  readonly delivered: number;
  /** The error with which Redis refused to deliver. */
  readonly refusal: string | undefined;
}

/** One Redis command on one key of the partition's slot, carried out together with `commit`. */
export interface Effect {
  readonly command: string;
  readonly key: string;
  readonly args: readonly (string | number)[];
}

/** A job that is scheduled in the same step in which another one dies. */
export interface Compensation {
  readonly member: string;
  readonly record: string;
}

/** What a settle addresses: one start of one job. */
export interface Claim {
  readonly entry: EntryId;
  readonly member: string;
  readonly token: Token;
}

/** A start that is over, with what its tombstone keeps of the record (`markOf` in `job/codec.ts`); '': Redis reads it. */
export interface Ended extends Claim {
  readonly mark: string;
}

export type SettleReply = 'ok' | 'cancelled' | 'already' | 'fenced' | 'gone';
/** `half`: the number of the command that was refused, and its error; those before it stay, the job is a dead letter. */
export type CommitReply = SettleReply | `half ${string}`;
export type ExtendReply = 'ok' | 'cancel' | 'fenced' | 'gone';
export type LogReply = 'ok' | 'fenced' | 'gone';

/** `uncounted`: each job of the queue costs one turn. */
export type SpendReply = 'ok' | 'uncounted' | 'fenced' | 'gone';
export type ReleaseReply = 'ok' | 'dropped' | 'started' | 'lost';
/** `over …`: the job has expired already, perhaps by the same call. */
export type ExpireReply = 'expired' | 'dead' | 'over expired' | 'over dead' | 'kept' | 'lost' | 'later';
export type CancelReply =
  | { readonly kind: 'cancelled' | 'requested' | 'unknown' }
  /** It is not what was seen. */
  | { readonly kind: 'changed' }
  | { readonly kind: 'later' }
  | Held
  | { readonly kind: 'over'; readonly over: OverState | undefined };
/** How a job ended: the outcome, and the token of its last start, `0` for a job that was never started. */
export interface End {
  readonly kind: 'over';
  readonly over: OverState;
  readonly token: Token;
}

/** `waits`: whoever ends the job says so on `K:over`. */
export type AwaitReply = End | { readonly kind: 'waits' | 'unknown' };
export type ReplayReply =
  /** `place`: in strict order, whether the job has its group as before, or its group has gone on. */
  | { readonly kind: 'ok'; readonly dueMs: number; readonly member: string; readonly place?: 'first' | 'last' }
  | { readonly kind: 'live' | 'empty'; readonly member: string }
  | { readonly kind: 'gone' }
  | Closed
  | Moved;

export function moved(reply: readonly Reply[]): Moved | undefined {
  return reply[0] === 'moved' && reply.length === 2 ? { kind: 'moved', layoutGeneration: Number(reply[1]) } : undefined;
}

export function settleReply(reply: Reply): SettleReply {
  return text(list(reply)[0]) as SettleReply;
}

/** Nearly every reply is this one. */
const OK: ScheduleReply = { kind: 'ok' };

export function scheduleReply(reply: string): ScheduleReply {
  if (reply === 'ok') return OK;
  const [kind, detail = '', limit, there] = reply.split(' ');
  if (kind === 'ok' || kind === 'replaced') return { kind, ...(detail !== '' && { dueMs: Number(detail) }) };
  if (kind === 'full') {
    return { kind, what: detail as FullOf, limit: Number(limit), there: Number(there) };
  }
  if (kind === 'already') {
    return { kind, over: outcomeLetters[detail], ...(limit !== undefined && { dueMs: score(limit) }) };
  }
  if (kind === 'exists' || kind === 'merged' || kind === 'kept') return { kind, dueMs: score(detail) };
  if (kind === 'overtaken') return { kind, order: Number(detail) };
  if (kind === 'closed') return { kind, untilMs: Number(detail), tag: limit ?? '' };
  if (kind === 'bad-due') return { kind, nowMs: Number(detail) };
  return { kind: kind as BareReply | 'later' | Held['kind'] };
}

/** What a start replies: one text or two for each that started for the first time, and a list for each other entry. */
export function takenOf(first: Reply | undefined, others: Reply | undefined, now?: Reply): Taken[] {
  const taken: Taken[] = [];
  const texts = list(first).values();
  for (const one of texts) taken.push(firstOf(text(one), texts));
  for (const other of list(others)) taken.push(otherOf(list(other)));
  return typeof now === 'number' ? taken.map((one) => heldUntilDue(one, now)) : taken;
}

/** Redis says what time it was where it may have started jobs that are not due. */
function heldUntilDue(one: Taken, nowMs: number): Taken {
  const isStarted = one.kind === 'run' || one.kind === 'again';
  return isStarted && one.dueMs > nowMs ? { ...one, holdMs: one.dueMs - nowMs } : one;
}

const NO_HISTORY: readonly Attempted[] = [];

/**
 * `entry due token member record`: one text, because each costs a buffer of its own on its way here. A record above 1 KiB
 * is the next text, because Lua copies and hashes each byte of what it joins.
 */
function firstOf(words: string, more: Iterator<Reply>): Taken {
  const due = words.indexOf(' ') + 1;
  const token = words.indexOf(' ', due) + 1;
  const member = words.indexOf(' ', token) + 1;
  const end = words.indexOf(' ', member);
  const isJoined = end >= 0;
  return {
    entry: words.slice(0, due - 1) as EntryId,
    member: isJoined ? words.slice(member, end) : words.slice(member),
    dueMs: Number(words.slice(due, token - 1)) || 0,
    kind: 'run',
    token: words.slice(token, member - 1) as Token,
    attempts: 1,
    failures: 0,
    crashes: 0,
    generation: 0,
    history: NO_HISTORY,
    record: isJoined ? words.slice(end + 1) : text(more.next().value),
  };
}

function otherOf(reply: readonly Reply[]): Taken {
  const [entry, member, due, kind, token, attempts, failures, crashes, generation, history, record] = reply;
  const delivery = { entry: text(entry) as EntryId, member: text(member), dueMs: Number(due) || 0 };
  if (kind === 'suspect') return { ...delivery, kind, token: text(token) as Token };
  if (kind !== 'run' && kind !== 'again') {
    return { ...delivery, kind: kind as Exclude<StartReply, Started | { kind: 'suspect' }>['kind'] };
  }
  return {
    ...delivery,
    kind,
    token: text(token) as Token,
    attempts: Number(attempts),
    failures: Number(failures),
    crashes: Number(crashes),
    generation: Number(generation),
    history: history === '' ? NO_HISTORY : decodeHistory(text(history).split('\n')),
    record: text(record),
  };
}

export function servedOf(reply: readonly Reply[]): Served {
  const [completed, first, others, delivered, waiting, startedMs] = reply;
  const served: Served = {
    completed: completed === '' ? undefined : (list(completed) as readonly SettleReply[]),
    taken: takenOf(first, others, startedMs),
    delivered: typeof delivered === 'number' ? delivered : 0,
    refusal: typeof delivered === 'number' ? undefined : text(delivered),
    ...(typeof startedMs === 'number' && { nowMs: startedMs }),
  };
  return Number(waiting) >= 0 ? { ...served, waiting: Number(waiting) } : served;
}

export function handedOf(reply: readonly Reply[]): Handed {
  const [word, completed, first, others, delivered] = reply;
  return {
    word: text(word) as Handed['word'],
    completed: completed === '' ? undefined : (list(completed) as readonly SettleReply[]),
    taken: takenOf(first, others),
    delivered: typeof delivered === 'number' ? delivered : 0,
    refusal: typeof delivered === 'number' ? undefined : text(delivered),
  };
}

export function cancelReply(reply: string): CancelReply {
  const [kind, letter = ''] = reply.split(' ');
  if (kind === 'later' || kind === 'held' || kind === 'changed') return { kind };
  return kind === 'over'
    ? { kind, over: outcomeLetters[letter] }
    : { kind: kind as 'cancelled' | 'requested' | 'unknown' };
}

export function awaitReply(reply: string): AwaitReply {
  const [kind, letter = '', token = '0'] = reply.split(' ');
  const over = outcomeLetters[letter];
  if (kind === 'over' && over !== undefined) return { kind, over, token: token as Token };
  return { kind: kind === 'waits' ? kind : 'unknown' };
}

/** A message of `K:over`: the end, and the member behind it. Undefined for what is none. */
export function endTold(message: string): (End & { readonly member: string }) | undefined {
  const [, letter = '', token = '', member = ''] = /^(\S+) (\d+) (.+)$/s.exec(message) ?? [];
  const over = outcomeLetters[letter];
  return over && { kind: 'over', over, token: token as Token, member };
}

export function closeTagReply(reply: string): CloseTagReply {
  const [kind, until] = reply.split(' ');
  if (kind === 'already') return { kind, untilMs: Number(until) };
  return { kind: kind as 'closed' | 'longer' | 'full' | 'opened' | 'open' };
}

export function replayReply(reply: readonly Reply[]): ReplayReply {
  const [kind, first, second, place] = reply;
  if (kind === 'ok') {
    const isPlaced = place === 'first' || place === 'last';
    return { kind, dueMs: Number(first), member: text(second), ...(isPlaced && { place }) };
  }
  if (kind === 'live' || kind === 'empty') return { kind, member: text(first) };
  if (kind === 'closed') return { kind, untilMs: Number(first), tag: text(second) };
  return kind === 'moved' ? { kind, layoutGeneration: Number(first) } : { kind: 'gone' };
}
