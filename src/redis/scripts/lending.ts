/**
 * A limit that several queues share lends turns or places to partitions: `lend` asks its ledger, `borrow` takes what it gave to
 * the jobs of a partition. `mover/chores/borrower.ts` makes both calls, and docs/decisions/0039 says why they are as they are.
 */
import { kindOf, type LentKind, mostOf, paceUs, type SharedLimit } from '../../job/shared-limit.ts';
import type { Redis } from '../connection/connect.ts';
import type { LimitKeys, PartitionRef } from '../keys.ts';
import { scripts } from './script-table.ts';
import { list, type Reply, run, text } from './scripts.ts';

/** How a ledger calls a partition. */
export const rowOf = ({ queue, partition }: Pick<PartitionRef, 'queue' | 'partition'>): string =>
  `${queue}:${partition}`;

/** What the leader of a partition asks a ledger for. */
export interface Ask {
  /** `<queue>:<partition>`. */
  readonly row: string;
  readonly epoch: number;
  /** Which call of this term it is: a later one is larger. */
  readonly seq: number;
  /** The row has this later epoch, and its leader is gone for good. */
  readonly over?: number | undefined;
  /** Turns of a rate. */
  readonly want: number;
  /** Places of a concurrency, those that are used included. */
  readonly need: number;
  /** The partition has given places up, and has so many left. */
  readonly back?: number | undefined;
}

/** What is lent. */
export interface Lent {
  readonly kind: 'ok';
  readonly turns: number;
  /** So many places the ledger has written down for the partition. */
  readonly share: number;
  /** It is asked to have no more than these. */
  readonly target: number;
  /** Of the limit that the ledger knows, which may be a later one. */
  readonly of: LentKind;
  /** How many partitions asked within a second. */
  readonly active: number;
}

/** `fenced`: a later call was there; `claim`: the leader before may have been lent more than this one knows. */
export type LendReply =
  | Lent
  | { readonly kind: 'fenced'; readonly epoch: number; readonly seq: number }
  | { readonly kind: 'claim' };

const LETTERS = { rate: 'r', concurrency: 'c' } as const satisfies Readonly<Record<LentKind, string>>;
const ofLetter = (letter: string): LentKind => (letter === LETTERS.concurrency ? 'concurrency' : 'rate');

export async function lend(
  redis: Redis,
  keys: LimitKeys,
  of: { readonly limit: SharedLimit; readonly ask: Ask; readonly nowMs?: number | undefined },
): Promise<LendReply> {
  const { limit, ask, nowMs = '' } = of;
  const rule = {
    revision: limit.revision,
    kind: LETTERS[kindOf(limit)],
    pace: paceUs(limit),
    most: mostOf(limit),
  };
  const args = { now: nowMs, ...ask, over: ask.over ?? '', back: ask.back ?? '', ...rule };
  const [kind, ...rest] = list(await run(redis, scripts.lend, { keys, args })).map(text);
  if (kind === 'claim') return { kind };
  const [first = 0, second = 0, third = 0] = rest.map(Number);
  if (kind === 'fenced') return { kind, epoch: first, seq: second };
  const [, , , letter = '', active = ''] = rest;
  return { kind: 'ok', turns: first, share: second, target: third, of: ofLetter(letter), active: Number(active) };
}

/** Tells a ledger a limit, so that it holds before a leader has read it. */
export async function tellLedger(redis: Redis, keys: LimitKeys, limit: SharedLimit, nowMs?: number): Promise<void> {
  await lend(redis, keys, { limit, ask: { row: '', epoch: 0, seq: 0, want: 0, need: 0 }, nowMs });
}

/** What the leader of a partition brings from a ledger. */
export interface Gift {
  readonly name: string;
  readonly kind: LentKind;
  readonly seq: number;
  readonly turns: number;
  /** Until when the turns may be used, ms of the clock of the partition. */
  readonly endsMs: number;
  /** So many places may be used from now on. */
  readonly share: number;
}

/** What a partition has and can use. */
export interface Borrowed {
  readonly kind: 'ok';
  readonly nowMs: number;
  /** Entries of ready. */
  readonly running: number;
  /** How many more its own limits let through soon, of those that wait. */
  readonly room: number;
  /** How many are in line. */
  readonly line: number;
  readonly limits: ReadonlyMap<string, Stock>;
}

/** What it has of one limit. */
export interface Stock {
  /** So many places it has or uses. */
  readonly keeps: number;
  /** Turns that have not ended. */
  readonly stock: number;
  /** Jobs that were ever let through by this limit. */
  readonly used: number;
}

export async function borrow(
  redis: Redis,
  { keys }: PartitionRef,
  of: { readonly term: string; readonly gifts: readonly Gift[]; readonly nowMs?: number | undefined },
): Promise<Borrowed | { readonly kind: 'fenced' }> {
  const { term, gifts, nowMs = '' } = of;
  const each = gifts.flatMap((gift) => [
    ...[gift.name, LETTERS[gift.kind], gift.seq],
    ...[gift.turns, Math.floor(gift.endsMs), gift.share],
  ]);
  const [now, ...rest] = list(await run(redis, scripts.borrow, { keys, args: { now: nowMs, term }, each }));
  if (now === 'fenced') return { kind: 'fenced' };
  const [running = 0, room = 0, line = 0] = rest.slice(0, 3).map(Number);
  return { kind: 'ok', nowMs: Number(now), running, room, line, limits: stocksIn(rest.slice(3)) };
}

function stocksIn(words: readonly Reply[]): ReadonlyMap<string, Stock> {
  const stocks = new Map<string, Stock>();
  for (let at = 0; at + 3 < words.length; at += 4) {
    const [keeps = 0, stock = 0, used = 0] = words.slice(at + 1, at + 4).map(Number);
    stocks.set(text(words[at]), { keeps, stock, used });
  }
  return stocks;
}

/** What a ledger says of a partition. */
export interface LedgerRow {
  /** `<queue>:<partition>`. */
  readonly row: string;
  readonly epoch: number;
  readonly seq: number;
  readonly share: number;
  readonly need: number;
  /** When its leader asked last, ms of the clock of the ledger. */
  readonly beatMs: number;
  /** When it was last given a turn. */
  readonly servedMs: number;
  /** At its last call it was asked to have no more places than these. */
  readonly target: number;
}

/** Every partition that has places or has asked lately, by name. */
export async function ledgerRows(redis: Redis, { ledger }: LimitKeys): Promise<readonly LedgerRow[]> {
  const fields = await redis.hgetall(ledger);
  const rows = Object.entries(fields).flatMap(([row, words]) => {
    if (!row.includes(':')) return [];
    const numbers = words.split(' ').map(Number);
    const [epoch = 0, seq = 0, share = 0, need = 0, beatMs = 0, , servedMs = 0, , , , , target = 0] = numbers;
    return [{ row, epoch, seq, share, need, beatMs, servedMs, target }];
  });
  return rows.sort((a, b) => (a.row < b.row ? -1 : 1));
}

interface Freed {
  readonly limit: SharedLimit;
  readonly row: string;
  /** So many places it keeps. */
  readonly left?: number;
  /** The row as it was when somebody looked at its partition: nothing is taken from one that has asked since. */
  readonly seen?: Pick<LedgerRow, 'epoch' | 'seq'>;
}

/**
 * A ledger has back what it had lent to a partition that is gone, or does not name the limit any more. Nobody else asks for it then: the
 * epoch is later than that of any leader that there was.
 *
 * @returns whether it has some back
 */
export async function freeRow(redis: Redis, keys: LimitKeys, { limit, row, left = 0, seen }: Freed): Promise<boolean> {
  const found = (await ledgerRows(redis, keys)).find((one) => one.row === row);
  if (!found || found.share <= left) return false;
  if (seen && (found.epoch !== seen.epoch || found.seq !== seen.seq)) return false;
  const ask = { row, epoch: found.epoch + 1, want: 0, need: 0 };
  await lend(redis, keys, { limit, ask: { ...ask, seq: 1 } });
  await lend(redis, keys, { limit, ask: { ...ask, seq: 2, back: left } });
  return true;
}
