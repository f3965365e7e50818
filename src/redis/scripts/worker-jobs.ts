/** The transitions that a worker calls, for `createJobs`: of entries that the worker was given, and of starts that ended. */
import { LINES_BYTES_MAX, LINES_MAX, type SaidLines } from '../../job/log-lines.ts';
import type { Closing } from '../../job/outcome.ts';
import type { Redis } from '../connection/connect.ts';
import { keepsHistory, type PartitionRef } from '../keys.ts';
import { inParts, READ_BYTES_MAX, READ_JOBS_MAX } from './bytes.ts';
import { type LeadersPass, LINE_MAX, type PromoteReply, promoteReply } from './passes.ts';
import {
  type Claim,
  type CommitReply,
  type Compensation,
  type Delivery,
  type Effect,
  type Ended,
  type ExpireReply,
  type ExtendReply,
  type Handed,
  handedOf,
  type LogReply,
  type ReleaseReply,
  type Served,
  type SettleReply,
  type SpendReply,
  type StartReply,
  servedOf,
  settleReply,
  takenOf,
} from './replies.ts';
import { scripts } from './script-table.ts';
import { list, lostCount, run, spent, text } from './scripts.ts';

export interface StartSettings {
  readonly consumer: string;
  readonly bytesMax: number;
  readonly windowMs: number;
  /** Jobs under which so many workers died are answered `suspect`. Default 0: all are started. */
  readonly suspects?: number;
  readonly nowMs?: number;
}

export interface ExpireSettings {
  readonly consumer: string;
  readonly windowMs: number;
  readonly bytesMax?: number;
  readonly nowMs?: number;
}

/** What a start says of the turns that it has used. */
export interface Spending extends Claim {
  /** Which word of this start it is, from 1. */
  readonly nth: number;
  /** So many it has used in all. */
  readonly turns: number;
}

/** The end of one start. */
export interface Noted {
  readonly windowMs: number;
  /** For the history, if the queue keeps one: `encodeNote` in `job/past.ts`. */
  readonly note?: string | undefined;
  readonly nowMs?: number;
}

export interface BuryOptions extends Noted {
  readonly reason: string;
  readonly error: string;
  readonly compensation?: Compensation | undefined;
}

/** Of a worker that says nothing. */
const BARE_NOTE = '- {}';

/** Of entries that a worker was given. */
export function given(redis: Redis) {
  return { ...starting(redis), ...holding(redis) };
}

function starting(redis: Redis) {
  return {
    /** Deliveries must be in ascending order of their entry ids. Suspects run unless they are refused. */
    async start(
      ref: PartitionRef,
      deliveries: readonly Delivery[],
      { consumer, bytesMax, windowMs, suspects = 0, nowMs }: StartSettings,
    ): Promise<readonly StartReply[]> {
      const args = { now: nowMs ?? '', consumer, bytes: bytesMax, window: windowMs, suspects };
      const [first, others, startedMs] = list(
        await run(redis, scripts.start, {
          keys: ref.keys,
          keeps: keepsHistory(ref),
          args,
          each: deliveries.flatMap(deliveryArgs),
        }),
      );
      const taken = takenOf(first, others, startedMs);
      if (taken.length !== deliveries.length) lostCount(redis, scripts.start);
      const byEntry = new Map(taken.map(({ entry, member, dueMs, ...reply }) => [entry, reply]));
      return deliveries.map(({ entry }) => byEntry.get(entry) ?? lostCount(redis, scripts.start));
    },

    /** Entries that start called late: over without a start, if they still are late. What is `later` is to be asked again. */
    async expire(
      ref: PartitionRef,
      deliveries: readonly (Delivery & { readonly compensation?: Compensation | undefined })[],
      { consumer, windowMs, bytesMax = READ_BYTES_MAX, nowMs }: ExpireSettings,
    ): Promise<readonly ExpireReply[]> {
      const args = { now: nowMs ?? '', consumer, window: windowMs, bytes: bytesMax };
      const each = deliveries.flatMap((one) => [
        ...deliveryArgs(one),
        one.compensation?.member ?? '',
        one.compensation?.record ?? '',
      ]);
      const reply = await run(redis, scripts.expire, { keys: ref.keys, keeps: keepsHistory(ref), args, each });
      return list(reply).map((item) => text(item) as ExpireReply);
    },
  };
}

function holding(redis: Redis) {
  return {
    async release(
      ref: PartitionRef,
      deliveries: readonly Delivery[],
      { consumer, nowMs }: { consumer: string; nowMs?: number },
    ): Promise<readonly ReleaseReply[]> {
      const args = { now: nowMs ?? '', consumer };
      const release = async (some: readonly Delivery[]) =>
        list(await run(redis, scripts.release, { keys: ref.keys, args, each: some.flatMap(deliveryArgs) }));
      // A read or an adoption that a stop meets brings any number.
      const replies = await inParts(deliveries, release, READ_JOBS_MAX);
      return replies.map((item) => text(item) as ReleaseReply);
    },

    /** `progress`: how far the handler is, by `encodeProgress` in `job/codec.ts`; left out where there is nothing new. */
    async extend(
      ref: PartitionRef,
      claims: readonly (Claim & { readonly progress?: string | undefined })[],
      consumer: string,
    ): Promise<readonly ExtendReply[]> {
      const each = claims.flatMap((claim) => [...claimArgs(claim), claim.progress ?? '']);
      const reply = await run(redis, scripts.extend, { keys: ref.keys, args: { consumer }, each });
      return list(reply).map((item) => text(item) as ExtendReply);
    },

    /** Lines that handlers said. At most `LOG_JOBS_MAX` jobs; the same lines again change nothing. */
    async log(
      ref: PartitionRef,
      said: readonly (Claim & { readonly lines: SaidLines })[],
    ): Promise<readonly LogReply[]> {
      const each = said.flatMap(({ lines: { last, tags, texts }, ...claim }) => [
        ...claimArgs(claim),
        last,
        tags,
        texts.join('\n'),
      ]);
      const args = { most: LINES_MAX, bytes: LINES_BYTES_MAX };
      const reply = await run(redis, scripts.log, { keys: ref.keys, args, each });
      return list(reply).map((item) => text(item) as LogReply);
    },

    /** How many turns of its rates a start has really used. The same call again changes nothing, nor does an earlier one that comes late. */
    async spend(ref: PartitionRef, { nth, turns, ...claim }: Spending, nowMs?: number): Promise<SpendReply> {
      const each = [...claimArgs(claim), nth, turns];
      const reply = await run(redis, scripts.spend, { keys: ref.keys, args: { now: nowMs ?? '' }, each });
      return text(list(reply)[0]) as SpendReply;
    },
  };
}

/** Of both, and of a leader's pass, in one call. */
export function together(redis: Redis) {
  return {
    /** Completes what is over, starts what was given (ascending), and brings up to `take` new entries, all in one call. */
    async serve(
      ref: PartitionRef,
      { ended, given, take }: { ended: readonly Ended[]; given: readonly Delivery[]; take: number },
      { consumer, bytesMax, windowMs, suspects = 0, nowMs }: StartSettings,
    ): Promise<Served> {
      const numbers = { suspects, take, given: given.length };
      const args = { now: nowMs ?? '', consumer, bytes: bytesMax, window: windowMs, ...numbers };
      const each = serveArgs(given, ended);
      const reply = list(await run(redis, scripts.serve, { keys: ref.keys, keeps: keepsHistory(ref), args, each }));
      const served = servedOf(reply);
      spent(reply);
      if (!answers(served, { ended, given })) lostCount(redis, scripts.serve);
      return served;
    },

    /** The claim of a worker over HTTP: completes what is over, starts what it takes over (ascending), and brings new entries. */
    async hand(
      ref: PartitionRef,
      { ended, given, take, lane, seq }: HandAsk,
      { consumer, bytesMax, windowMs, suspects = 0, nowMs }: StartSettings,
    ): Promise<Handed> {
      const numbers = { suspects, take, given: given.length, lane, seq };
      const args = { now: nowMs ?? '', consumer, bytes: bytesMax, window: windowMs, ...numbers };
      const each = serveArgs(given, ended);
      const reply = list(await run(redis, scripts.hand, { keys: ref.keys, keeps: keepsHistory(ref), args, each }));
      const handed = handedOf(reply);
      spent(reply);
      const count = handed.word === 'new' ? given.length + handed.delivered : handed.delivered;
      const isWhole = (handed.completed?.length ?? ended.length) === ended.length && handed.taken.length === count;
      if (!isWhole) lostCount(redis, scripts.hand);
      return handed;
    },

    /** Completes what is over, promotes as its leader, and brings up to `take` (1 or more) new entries, all in one call. */
    async relay(
      ref: PartitionRef,
      { ended, take, pass }: { ended: readonly Ended[]; take: number; pass: LeadersPass },
      { consumer, bytesMax, windowMs, suspects = 0, nowMs }: StartSettings,
    ): Promise<Served & { readonly promoted: PromoteReply }> {
      const { term, leaseMs, limit, cap, lineMax = LINE_MAX } = pass;
      const leader = { now: nowMs ?? '', term, lease: leaseMs ?? '', limit, cap, lineMax };
      const args = { ...leader, consumer, bytes: bytesMax, window: windowMs, suspects, take };
      const each = serveArgs([], ended);
      const reply = list(await run(redis, scripts.relay, { keys: ref.keys, keeps: keepsHistory(ref), args, each }));
      const [promoted, ...rest] = reply;
      const served = servedOf(rest);
      spent(reply);
      if (!answers(served, { ended, given: [] })) lostCount(redis, scripts.relay);
      return { ...served, promoted: promoteReply(list(promoted)) };
    },
  };
}

/** What a claim of a worker over HTTP asks of one partition. */
export interface HandAsk {
  readonly ended: readonly Ended[];
  readonly given: readonly Delivery[];
  /** -1: the claim was handed jobs in another partition, and takes nothing here, nor does an older call of it. */
  readonly take: number;
  /** In which of its lines the worker claims. */
  readonly lane: number;
  /** The number of the claim in its lane. */
  readonly seq: number;
}

type DeferSettings = Noted & {
  readonly delayMs: number;
  readonly why?: string;
  readonly closing?: Closing | undefined;
  /** Of a job whose handler has not begun: its due time. It is as if it had not been started. */
  readonly heldDueMs?: number;
};

/** Of starts that have ended. */
export function ended(redis: Redis) {
  return {
    /** With `hold` the entries stay with their consumer, as the proof that these starts are over; without it they go. */
    async complete(
      ref: PartitionRef,
      claims: readonly (Claim & { readonly mark?: string })[],
      {
        windowMs,
        consumer = '',
        hold = false,
        nowMs,
      }: { windowMs: number; consumer?: string; hold?: boolean; nowMs?: number },
    ): Promise<readonly SettleReply[]> {
      const args = { now: nowMs ?? '', window: windowMs, hold: hold ? 1 : 0, consumer };
      const each = claims.flatMap((claim) => [...claimArgs(claim), claim.mark ?? '']);
      const reply = await run(redis, scripts.complete, { keys: ref.keys, keeps: keepsHistory(ref), args, each });
      return list(reply).map((item) => text(item) as SettleReply);
    },

    /** Completes together with effects on keys of the partition's slot. */
    async commit(
      ref: PartitionRef,
      claim: Claim,
      { windowMs, effects, note = '', nowMs }: Noted & { readonly effects: readonly Effect[] },
    ): Promise<CommitReply> {
      const args = { now: nowMs ?? '', window: windowMs, ...claim, note: keepsHistory(ref) ? note || BARE_NOTE : '' };
      const each = effects.flatMap(({ command, args: words }) => [words.length, command, ...words]);
      const moreKeys = effects.map(({ key }) => key);
      return text(await run(redis, scripts.commit, { keys: ref.keys, args, each, moreKeys })) as CommitReply;
    },

    async retry(
      ref: PartitionRef,
      claim: Claim,
      { windowMs, delayMs, error, note = '', nowMs }: Noted & { readonly delayMs: number; readonly error: string },
    ): Promise<SettleReply> {
      const args = { now: nowMs ?? '', window: windowMs, ...claim, delay: delayMs, error, note };
      return settleReply(await run(redis, scripts.retry, { keys: ref.keys, keeps: keepsHistory(ref), args }));
    },

    async defer(ref: PartitionRef, claim: Claim, options: DeferSettings): Promise<SettleReply> {
      const { windowMs, delayMs, why = '', note = '', closing, heldDueMs, nowMs } = options;
      const { scope = '', forMs = 0, reason = '' } = closing ?? {};
      const closes = { close: scope, closeMs: forMs, reason, held: heldDueMs ?? '' };
      const args = { now: nowMs ?? '', window: windowMs, ...claim, delay: delayMs, why, note, ...closes };
      return settleReply(await run(redis, scripts.defer, { keys: ref.keys, keeps: keepsHistory(ref), args }));
    },

    async bury(
      ref: PartitionRef,
      claim: Claim,
      { windowMs, reason, error, compensation, note = '', nowMs }: BuryOptions,
    ): Promise<SettleReply> {
      const inheritance = { compensation: compensation?.member ?? '', compensationRecord: compensation?.record ?? '' };
      const args = { now: nowMs ?? '', window: windowMs, ...claim, reason, error, ...inheritance, note };
      return settleReply(await run(redis, scripts.bury, { keys: ref.keys, keeps: keepsHistory(ref), args }));
    },
  };
}

/** Whether it is the reply of this call. */
function answers(
  { completed, taken, delivered }: Served,
  { ended, given }: { readonly ended: readonly Ended[]; readonly given: readonly Delivery[] },
): boolean {
  return (completed?.length ?? ended.length) === ended.length && taken.length === given.length + delivered;
}

function serveArgs(given: readonly Delivery[], ended: readonly Ended[]): readonly (string | number)[] {
  const each: (string | number)[] = [];
  for (const { entry, member, dueMs } of given) each.push(entry, member, dueMs, '');
  for (const { entry, member, token, mark } of ended) each.push(entry, member, token, mark);
  return each;
}

const deliveryArgs = ({ entry, member, dueMs }: Delivery) => [entry, member, dueMs];
const claimArgs = ({ entry, member, token }: Claim) => [entry, member, token];
