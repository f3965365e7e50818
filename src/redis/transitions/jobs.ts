/**
 * One method per transition of a job, named by its verb: the whole life of a job is this list. Each is one script on
 * one partition; what a reply means is given a type here. Refusals are values, never exceptions.
 */

import type { Redis } from '../connection/connect.ts';
import type { PartitionRef } from '../keys.ts';
import { READ_BYTES_MAX } from './bytes.ts';
import {
  type CancelReply,
  type Claim,
  type CommitReply,
  type Compensation,
  cancelReply,
  type Delivery,
  type Effect,
  type ExpireReply,
  type ExtendReply,
  type Moved,
  moved,
  type PromoteReply,
  promoteReply,
  type ReleaseReply,
  type ReplayReply,
  replayReply,
  type ScheduleItem,
  type ScheduleReply,
  type SettleReply,
  type StartReply,
  scheduleReply,
  settleReply,
  startReply,
} from './replies.ts';
import { list, run, text } from './scripts.ts';

export interface ScheduleSettings {
  readonly mode: 'keep' | 'replace';
  readonly horizonMs: number;
  readonly bytesMax: number;
  /**
   * When the layout was read. `remembered`: a partition without a generation is answered `moved`, as its queue may have
   * been removed since. `fresh`: just now, so the partition gets its generation. Without it none is asked for.
   */
  readonly layout?: 'remembered' | 'fresh';
  readonly nowMs?: number;
}

const LAYOUT_SIGNS = { remembered: '=', fresh: '+' } as const;

interface PromoteSettings {
  readonly term: string;
  /** What the lease is prolonged to; undefined: it was prolonged lately, and stays as it is. */
  readonly leaseMs: number | undefined;
  readonly limit: number;
  readonly cap: number;
  readonly nowMs?: number;
}

export interface StartSettings {
  readonly consumer: string;
  readonly bytesMax: number;
  readonly windowMs: number;
  /** Jobs under which so many workers died are answered `suspect`. Default 0: all are started. */
  readonly suspects?: number;
  readonly nowMs?: number;
}

interface ExpireSettings {
  readonly consumer: string;
  readonly windowMs: number;
  readonly bytesMax?: number;
  readonly nowMs?: number;
}

export interface BuryOptions {
  readonly windowMs: number;
  readonly reason: string;
  readonly error: string;
  readonly compensation?: Compensation | undefined;
  readonly nowMs?: number;
}

/** The transitions of a job on one connection. `nowMs` is for tests; without it the server's clock decides. */
export function createJobs(redis: Redis) {
  return { ...waiting(redis), ...given(redis), ...ended(redis) };
}

export type Jobs = ReturnType<typeof createJobs>;

/** Of jobs that wait for their time, or are over. */
function waiting(redis: Redis) {
  return {
    /** What is answered `later` is to be sent again. */
    async schedule(
      ref: PartitionRef,
      items: readonly ScheduleItem[],
      { mode, horizonMs, bytesMax, layout, nowMs }: ScheduleSettings,
    ): Promise<readonly ScheduleReply[] | Moved> {
      const generation = `${layout === undefined ? '' : LAYOUT_SIGNS[layout]}${ref.layoutGeneration}`;
      const args = { now: nowMs ?? '', generation, mode, horizon: horizonMs, bytes: bytesMax };
      const each = items.flatMap(({ member, record, dueMs }) => [member, record, dueMs]);
      const reply = list(await run(redis, 'schedule', { keys: ref.keys, args, each }));
      return moved(reply) ?? reply.map((item) => scheduleReply(text(item)));
    },

    /** What is answered `later` is to be asked again. */
    async cancel(
      ref: PartitionRef,
      members: readonly string[],
      { windowMs, nowMs }: { windowMs: number; nowMs?: number },
    ): Promise<readonly CancelReply[] | Moved> {
      const args = { now: nowMs ?? '', generation: ref.layoutGeneration, window: windowMs };
      const reply = list(await run(redis, 'cancel', { keys: ref.keys, args, each: members }));
      return moved(reply) ?? reply.map((item) => cancelReply(text(item)));
    },

    async promote(ref: PartitionRef, { term, leaseMs, limit, cap, nowMs }: PromoteSettings): Promise<PromoteReply> {
      const args = { now: nowMs ?? '', term, lease: leaseMs ?? '', limit, cap };
      return promoteReply(list(await run(redis, 'promote', { keys: ref.keys, args })));
    },

    async replay(
      ref: PartitionRef,
      deadLetter: string,
      { dueMs, nowMs }: { dueMs?: number; nowMs?: number } = {},
    ): Promise<ReplayReply> {
      const args = { now: nowMs ?? '', generation: ref.layoutGeneration, deadLetter, due: dueMs ?? '' };
      return replayReply(list(await run(redis, 'replay', { keys: ref.keys, args })));
    },
  };
}

/** Of entries that a worker was given. */
function given(redis: Redis) {
  return {
    /** Deliveries must be in ascending order of their entry ids. Suspects run unless they are refused. */
    async start(
      ref: PartitionRef,
      deliveries: readonly Delivery[],
      { consumer, bytesMax, windowMs, suspects = 0, nowMs }: StartSettings,
    ): Promise<readonly StartReply[]> {
      const args = { now: nowMs ?? '', consumer, bytes: bytesMax, window: windowMs, suspects };
      const reply = await run(redis, 'start', { keys: ref.keys, args, each: deliveries.flatMap(deliveryArgs) });
      return list(reply).map((item) => startReply(list(item)));
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
      const reply = await run(redis, 'expire', { keys: ref.keys, args, each });
      return list(reply).map((item) => text(item) as ExpireReply);
    },

    async release(
      ref: PartitionRef,
      deliveries: readonly Delivery[],
      { consumer, nowMs }: { consumer: string; nowMs?: number },
    ): Promise<readonly ReleaseReply[]> {
      const args = { now: nowMs ?? '', consumer };
      const reply = await run(redis, 'release', { keys: ref.keys, args, each: deliveries.flatMap(deliveryArgs) });
      return list(reply).map((item) => text(item) as ReleaseReply);
    },

    async extend(ref: PartitionRef, claims: readonly Claim[], consumer: string): Promise<readonly ExtendReply[]> {
      const reply = await run(redis, 'extend', { keys: ref.keys, args: { consumer }, each: claims.flatMap(claimArgs) });
      return list(reply).map((item) => text(item) as ExtendReply);
    },
  };
}

/** Of starts that have ended. */
function ended(redis: Redis) {
  return {
    /** With `hold` the entries stay with their consumer, as the proof that these starts are over; without it they go. */
    async complete(
      ref: PartitionRef,
      claims: readonly Claim[],
      { windowMs, hold = false, nowMs }: { windowMs: number; hold?: boolean; nowMs?: number },
    ): Promise<readonly SettleReply[]> {
      const args = { now: nowMs ?? '', window: windowMs, hold: hold ? 1 : 0 };
      const reply = await run(redis, 'complete', { keys: ref.keys, args, each: claims.flatMap(claimArgs) });
      return list(reply).map((item) => text(item) as SettleReply);
    },

    /** Completes together with effects on keys of the partition's slot. */
    async commit(
      ref: PartitionRef,
      claim: Claim,
      { windowMs, effects, nowMs }: { windowMs: number; effects: readonly Effect[]; nowMs?: number },
    ): Promise<CommitReply> {
      const args = { now: nowMs ?? '', window: windowMs, ...claim };
      const each = effects.flatMap(({ command, args: words }) => [words.length, command, ...words]);
      const moreKeys = effects.map(({ key }) => key);
      return text(await run(redis, 'commit', { keys: ref.keys, args, each, moreKeys })) as CommitReply;
    },

    async retry(
      ref: PartitionRef,
      claim: Claim,
      { windowMs, delayMs, error, nowMs }: { windowMs: number; delayMs: number; error: string; nowMs?: number },
    ): Promise<SettleReply> {
      const args = { now: nowMs ?? '', window: windowMs, ...claim, delay: delayMs, error };
      return settleReply(await run(redis, 'retry', { keys: ref.keys, args }));
    },

    async defer(
      ref: PartitionRef,
      claim: Claim,
      { windowMs, delayMs, nowMs }: { windowMs: number; delayMs: number; nowMs?: number },
    ): Promise<SettleReply> {
      const args = { now: nowMs ?? '', window: windowMs, ...claim, delay: delayMs };
      return settleReply(await run(redis, 'defer', { keys: ref.keys, args }));
    },

    async bury(
      ref: PartitionRef,
      claim: Claim,
      { windowMs, reason, error, compensation, nowMs }: BuryOptions,
    ): Promise<SettleReply> {
      const inheritance = { compensation: compensation?.member ?? '', compensationRecord: compensation?.record ?? '' };
      const args = { now: nowMs ?? '', window: windowMs, ...claim, reason, error, ...inheritance };
      return settleReply(await run(redis, 'bury', { keys: ref.keys, args }));
    },
  };
}

const deliveryArgs = ({ entry, member, dueMs }: Delivery) => [entry, member, dueMs];
const claimArgs = ({ entry, member, token }: Claim) => [entry, member, token];
