/**
 * Asks the ledgers of the limits that a queue shares with others, and brings a partition what they lend, while this process leads it.
 *
 *  somebody in line ──▶ look ──▶ ask each ledger ──▶ give, and look again ──▶ 50 ms ──▶ ask …
 *                                                    └ nobody in line, nothing runs: rest until a pass puts a job in line
 *
 * Turns of a rate end 250 ms after the ledger was asked, in the clock of the partition: `its clock at the last look + (asked + 250 −
 * when the look was answered)`. All that is uncertain makes the end earlier. A share of a concurrency belongs to the partition. It falls
 * there first, and is given back when the partition has said what is left; after a call without an answer, and as a new leader, nothing
 * is given back before a gift of this term was answered: an older gift may be on its way, and the partition takes none that is older than one it has.
 */

import { kindOf, type SharedLimit } from '../../job/shared-limit.ts';
import { type Idle, idle } from '../../kernel/loop.ts';
import { limitKeys, type PartitionRef } from '../../redis/keys.ts';
import {
  type Ask,
  type Borrowed,
  borrow,
  type Gift,
  type LendReply,
  type Lent,
  lend,
  rowOf,
} from '../../redis/scripts/lending.ts';
import type { Leadership } from '../election/election.ts';
import { type Chore, type Duty, partitionLoop } from '../partition-loop.ts';

/** How long a turn may be used after its ledger was asked. */
export const TURN_MS = 250;
/** Between two looks while somebody is in line; longer where many partitions ask the same ledger. */
const LOOK_MS = 50;
const LOOK_FOR_EACH_MS = 2;
const LOOK_MAX_MS = 1000;
/** Between two looks while jobs run and nobody is in line. */
const RUNNING_MS = 500;
/** Between two looks where nobody is in line and nothing runs: what puts a job in line wakes it. */
const REST_MS = 1000;
/** How often a queue that shares no limit is looked at again. */
const IDLE_MS = 5000;
/** A look that is older than this says too little of what is wanted. */
const OLD_MS = 200;
/** A rate is asked for no more than it gives in this time, and its burst. */
const AHEAD_MS = 100;

/** The two calls, as a test may put others in their place. */
export interface Lending {
  readonly lend: (limit: SharedLimit, ask: Ask) => Promise<LendReply>;
  readonly borrow: (term: string, gifts: readonly Gift[]) => Promise<Borrowed | { readonly kind: 'fenced' }>;
}

interface BorrowingParts {
  readonly row: string;
  readonly calls: Lending;
  readonly leading: () => Leadership | undefined;
  /** The limits of its queue, as the registry has them. */
  readonly limits: () => readonly SharedLimit[];
  readonly clock: { readonly monotonicMs: () => number };
}

/** What the partition said, and when. */
interface Look extends Borrowed {
  readonly receivedMs: number;
}

/** What this leader knows of one limit. */
interface Account {
  limit: SharedLimit;
  /** Its queue names the limit no more: what is lent goes back. */
  isGone: boolean;
  seq: number;
  /** What the ledger has written down; undefined: this leader does not know. */
  share: number | undefined;
  /** A gift of this term was answered since the last call without an answer. */
  isGiven: boolean;
  /** The row is from an earlier life of the queue. */
  over: number | undefined;
  /** Jobs that the limit had let through at the last look but one. */
  used: number | undefined;
  active: number;
}

interface Answered {
  readonly limit: SharedLimit;
  readonly account: Account;
  readonly sentMs: number;
  readonly lent: Lent;
}

export interface BorrowerParts extends Duty {
  readonly namespace: string;
  /** The partition with the settings of its queue as they are now. */
  readonly current: () => PartitionRef;
}

export function createBorrower(parts: BorrowerParts): Chore {
  const { redis, namespace, ref, current, leading, clock, events } = parts;
  const borrowing = new Borrowing({
    row: rowOf(ref),
    calls: {
      lend: (limit, ask) => lend(redis, limitKeys(namespace, limit.name), { limit, ask }),
      borrow: (term, gifts) => borrow(redis, ref, { term, gifts }),
    },
    leading,
    limits: () => current().shared ?? [],
    clock,
  });
  const loop = partitionLoop('borrower', parts, () => borrowing.pass());
  const wake = (): void => {
    borrowing.forgetLook();
    loop.wake();
  };
  const isMine = (of: { readonly queue: string; readonly partition: number }) =>
    of.queue === ref.queue && of.partition === ref.partition;
  const off = [
    events.on('jobs.promoted', (of) => {
      if (isMine(of) && (of.waiting ?? 0) > 0 && borrowing.isResting) wake();
    }),
    events.on('leader.elected', (of) => {
      if (isMine(of)) wake();
    }),
  ];
  return {
    start: loop.start,
    stop() {
      for (const stop of off) stop();
      return loop.stop();
    },
    pass: () => borrowing.pass(),
  };
}

/** Asks and brings, one step at a time. */
export class Borrowing {
  readonly #parts: BorrowingParts;
  #term = '';
  #look: Look | undefined;
  #accounts = new Map<string, Account>();
  /** Nobody was in line at the last look, and what comes into line is to wake it. */
  #isResting = true;

  constructor(parts: BorrowingParts) {
    this.#parts = parts;
  }

  get isResting(): boolean {
    return this.#isResting;
  }

  /** Somebody came into line since. */
  forgetLook(): void {
    this.#look = undefined;
  }

  async pass(): Promise<number | Idle> {
    const { leading, limits, calls } = this.#parts;
    const leadership = leading();
    const named = this.#named(limits());
    if (!leadership || named.length === 0) return idle(IDLE_MS);
    if (this.#term !== leadership.term) this.#begin(leadership.term);
    const look = this.#fresh() ?? (await this.#see(calls.borrow(leadership.term, [])));
    if (!look) return IDLE_MS;
    if (this.#rests(look, named)) return REST_MS;
    const asked = await Promise.allSettled(named.map((limit) => this.#ask(leadership, limit, look)));
    const answered = asked.flatMap((one) => (one.status === 'fulfilled' && one.value ? [one.value] : []));
    const gifts = answered.map((one) => giftOf(one, look));
    const next = await this.#see(calls.borrow(leadership.term, gifts));
    if (!next) return IDLE_MS;
    for (const { account } of answered) account.isGiven = true;
    this.#isResting = next.line === 0;
    const failed = asked.find((one) => one.status === 'rejected');
    if (failed) throw failed.reason;
    return this.#restMs(next, answered.length < named.length);
  }

  /** Those of the queue, and those that it names no more and of which places are lent. */
  #named(limits: readonly SharedLimit[]): readonly SharedLimit[] {
    for (const [name, account] of this.#accounts) {
      account.isGone = limits.every((limit) => limit.name !== name);
      if (account.isGone && (account.share === 0 || kindOf(account.limit) === 'rate')) this.#accounts.delete(name);
    }
    const gone = [...this.#accounts.values()].flatMap((account) => (account.isGone ? [account.limit] : []));
    return gone.length === 0 ? limits : [...limits, ...gone];
  }

  #begin(term: string): void {
    this.#term = term;
    this.#look = undefined;
    this.#accounts = new Map();
  }

  #fresh(): Look | undefined {
    const look = this.#look;
    return look && this.#parts.clock.monotonicMs() - look.receivedMs < OLD_MS ? look : undefined;
  }

  /** What the partition answers. Where it does not, a gift may still be on its way, and nothing is given back before the next one. */
  async #see(reply: ReturnType<Lending['borrow']>): Promise<Look | undefined> {
    this.#look = undefined;
    const seen = await reply.catch((error: unknown) => {
      for (const account of this.#accounts.values()) account.isGiven = false;
      throw error;
    });
    if (seen.kind === 'fenced') return undefined;
    this.#look = { ...seen, receivedMs: this.#parts.clock.monotonicMs() };
    return this.#look;
  }

  /** Nobody waits, nothing runs, and the ledgers have all that they had lent. */
  #rests(look: Look, named: readonly SharedLimit[]): boolean {
    const isGivenBack = (limit: SharedLimit) =>
      kindOf(limit) === 'rate' || (this.#accounts.get(limit.name)?.share === 0 && keptOf(look, limit) === 0);
    const rests = look.line === 0 && named.every(isGivenBack);
    if (rests) {
      this.#look = undefined;
      this.#isResting = true;
    }
    return rests;
  }

  #accountOf(limit: SharedLimit): Account {
    const { name } = limit;
    const known = this.#accounts.get(name);
    if (known) {
      known.limit = limit;
      return known;
    }
    const made = {
      limit,
      isGone: false,
      seq: 0,
      share: undefined,
      isGiven: false,
      over: undefined,
      used: undefined,
      active: 0,
    };
    this.#accounts.set(name, made);
    return made;
  }

  async #ask({ epoch }: Leadership, limit: SharedLimit, look: Look): Promise<Answered | undefined> {
    const { calls, row, clock } = this.#parts;
    const account = this.#accountOf(limit);
    const kept = keptOf(look, limit);
    const isLess = account.isGiven && account.share !== undefined && kept < account.share;
    account.seq += 1;
    const sentMs = clock.monotonicMs();
    const lent = await calls.lend(limit, {
      row,
      epoch,
      seq: account.seq,
      over: account.over,
      want: kindOf(limit) === 'rate' ? this.#wanted(limit, account, look) : 0,
      need: kindOf(limit) === 'concurrency' && !account.isGone ? look.running + look.room : 0,
      back: isLess ? kept : undefined,
    });
    if (lent.kind === 'ok') {
      account.share = lent.share;
      account.active = lent.active;
      account.over = undefined;
      return { limit, account, sentMs, lent };
    }
    account.isGiven = false;
    if (lent.kind === 'fenced') this.#takeOver(account, epoch, lent);
    return undefined;
  }

  /**
   * A later leader was there, or the row is from an earlier life of the queue, or from before a failover that lost an epoch. The next
   * look tells: if this leader still leads after it was refused, there is no later one.
   */
  #takeOver(account: Account, epoch: number, row: { readonly epoch: number; readonly seq: number }): void {
    this.#look = undefined;
    if (row.epoch === epoch) account.seq = Math.max(account.seq, row.seq);
    else account.over = row.epoch;
  }

  /** No more turns than can be used until the next look: twice what was used since the last one, and free places of another limit. */
  #wanted(limit: SharedLimit, account: Account, look: Look): number {
    const { stock = 0, used = 0 } = look.limits.get(limit.name) ?? {};
    const did = account.used === undefined ? 0 : Math.max(0, used - account.used);
    account.used = used;
    const { limit: many, perMs, burst } = limit.rate ?? { limit: 0, perMs: 1, burst: 0 };
    const most = Math.ceil((many / perMs) * AHEAD_MS) + burst;
    const places = this.#parts
      .limits()
      .filter((one) => kindOf(one) === 'concurrency')
      .map((one) => keptOf(look, one));
    // Without a place a turn would lapse.
    const can = places.includes(0) ? 0 : Math.max(1, 2 * did + 1, ...places.map((kept) => kept - look.running));
    return Math.max(0, Math.min(look.room, most, can) - stock);
  }

  #restMs(look: Look, isRefused: boolean): number {
    if (isRefused) return LOOK_MS;
    const active = Math.max(0, ...[...this.#accounts.values()].map((account) => account.active));
    if (look.line > 0) return Math.min(LOOK_MAX_MS, Math.max(LOOK_MS, active * LOOK_FOR_EACH_MS));
    return look.running > 0 ? RUNNING_MS : 0;
  }
}

const keptOf = (look: Look, { name }: SharedLimit): number => look.limits.get(name)?.keeps ?? 0;

/** Nobody new where nobody waits: the places go back as the jobs end. */
function giftOf({ limit, account, sentMs, lent }: Answered, look: Look): Gift {
  const share = look.line === 0 || account.isGone ? 0 : Math.min(lent.share, lent.target, look.running + look.room);
  return {
    name: limit.name,
    kind: lent.of,
    seq: account.seq,
    turns: lent.turns,
    endsMs: look.nowMs + (sentMs + TURN_MS - look.receivedMs),
    share: lent.of === 'concurrency' ? share : 0,
  };
}
